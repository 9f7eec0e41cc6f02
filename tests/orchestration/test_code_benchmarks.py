"""HumanEval from request to verdict: programs of a model over HTTP, run in a real sandbox."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from openai_server import FakeOpenAI, prompt_text
from sandboxes import IMAGE, ensure_image

from nel.cli.main import main

DATA = Path(__file__).parents[3] / "shared" / "data" / "HumanEval.jsonl.gz"

pytestmark = pytest.mark.skipif(not DATA.exists(), reason=f"{DATA} is not here")


@pytest.fixture
def rows():
    with gzip.open(DATA) as file:
        return [json.loads(line) for line in file]


@pytest.fixture(scope="module")
def image():
    return ensure_image()


@pytest.fixture
def server(rows):
    def answer(body):
        row = next(row for row in rows if row["prompt"] in prompt_text(body))
        number = int(row["task_id"].rpartition("/")[2])
        whole = f"Here:\n```python\n{row['prompt']}{row['canonical_solution']}```\nDone."
        return [whole, row["canonical_solution"], "I cannot do that.", f"{row['prompt']}    exit(0)\n"][number % 4]

    with FakeOpenAI(answer) as server:
        yield server


def run(server, tmp_path, *more):
    data = ["--bench", "humaneval", "--dataset", str(DATA)]
    model = ["--model-url", f"{server.url}/v1", "--model-id", "fake"]
    return main(["eval", "run", *data, *model, "-o", str(tmp_path / "out"), *more])


def results(tmp_path):
    lines = (tmp_path / "out/humaneval/results.jsonl").read_text().splitlines()
    return {row["problem_id"]: row for row in map(json.loads, lines)}


@pytest.mark.parametrize("box", ["{type: bwrap}", f"{{type: docker, image: {IMAGE}}}"])
def test_programs_are_run_and_told_apart(server, tmp_path, image, box):
    few = ["--max-problems", "8", "-O", "benchmarks[0].shuffle_seed=null"]
    assert run(server, tmp_path, *few, "-O", f"benchmarks[0].sandbox={box}") == 0
    found = results(tmp_path)
    for number in range(8):
        row = found[f"HumanEval/{number}"]
        assert (row.get("outcome", "scored"), row["reward"]) == ("scored", float(number % 4 < 2)), row
    assert {found[f"HumanEval/{number}"]["failure_category"] for number in (3, 7)} == {"wrong_answer"}
    bundle = json.loads((tmp_path / "out/humaneval/eval-humaneval.json").read_text())
    assert bundle["benchmark"]["scores"]["pass@1"]["value"] == 0.5
    assert bundle["config"]["sandbox"].split()[0] in {"bubblewrap", "docker"}


def test_without_a_word_the_best_sandbox_of_the_machine_is_taken_and_said(server, tmp_path, capsys):
    assert run(server, tmp_path, "--max-problems", "4") == 0
    bundle = json.loads((tmp_path / "out/humaneval/eval-humaneval.json").read_text())
    assert bundle["config"]["sandbox"].startswith("bubblewrap")


def test_a_configuration_without_a_sandbox_is_refused_before_any_request(server, tmp_path, capsys):
    assert run(server, tmp_path, "-O", "benchmarks[0].sandbox={type: none}") == 64
    assert "needs a sandbox" in capsys.readouterr().err
    assert server.count == 0


def test_no_isolation_has_to_be_said(server, tmp_path, capsys):
    assert run(server, tmp_path, "-O", "benchmarks[0].sandbox={type: local}") == 64
    assert "isolation" in capsys.readouterr().err
    assert (
        run(server, tmp_path, "--max-problems", "2", "-O", "benchmarks[0].sandbox={type: local, isolation: none}") == 0
    )


def test_a_sandbox_that_does_not_work_is_an_error_and_no_zero(server, tmp_path, image, capsys):
    box = "{type: docker, image: no-such-image-here:1}"
    assert run(server, tmp_path, "--max-problems", "2", "-O", f"benchmarks[0].sandbox={box}") == 1
    assert "no-such-image-here:1 is not here and cannot be pulled" in capsys.readouterr().out + capsys.readouterr().err


def test_resume_and_rescore_send_no_request(server, tmp_path):
    assert run(server, tmp_path, "--max-problems", "8") == 0
    asked = server.count
    assert run(server, tmp_path, "--max-problems", "8", "--resume") == 0
    before = results(tmp_path)
    assert main(["eval", "rescore", str(tmp_path / "out")]) == 0
    assert server.count == asked
    assert {key: row["reward"] for key, row in results(tmp_path).items()} == {
        key: row["reward"] for key, row in before.items()
    }
