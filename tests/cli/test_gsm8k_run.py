"""`nel eval run --bench gsm8k` over the real test set: scored right, resumed, sharded and merged."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from openai_server import FakeOpenAI

from nel.observability.volatile import comparable

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "gsm8k-test.jsonl"
ROWS = 1319

pytestmark = pytest.mark.skipif(not DATA.is_file(), reason="the GSM8K test set (shared/data) is not beside the project")


@pytest.fixture(scope="module")
def server():
    """Answers each question with its own solution, but for every tenth row, which gets a wrong number."""
    rows = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]
    answers = {}
    for number, row in enumerate(rows):
        solution, _, gold = row["answer"].partition("####")
        said = f"{solution}\nThe answer is **${gold.strip()}.00**."
        answers[row["question"]] = "The answer is 1234567." if number % 10 == 0 else said

    def answer(body):
        text = body["messages"][-1]["content"]
        return next(answers[question] for question in (text, *candidates(text)) if question in answers)

    def candidates(text):
        return (question for question in answers if question in text)

    with FakeOpenAI(answer) as fake:
        yield fake


def nel(server, *arguments, env=None, code=0):
    command = [sys.executable, "-m", "nel", "eval", *map(str, arguments)]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=110, env={**os.environ, **(env or {})}
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def run(server, directory, *more, env=None):
    quick = ("--bench", "gsm8k", "--dataset", DATA, "--model-url", f"{server.url}/v1", "--max-concurrent", 64)
    return nel(server, "run", *quick, "-o", directory, *more, env=env)


def report(directory):
    return json.loads((directory / "gsm8k" / "eval-gsm8k.json").read_text())


@pytest.fixture(scope="module")
def whole(server, tmp_path_factory):
    directory = tmp_path_factory.mktemp("gsm8k") / "whole"
    run(server, directory)
    return directory


def test_every_row_is_scored_right(whole):
    bundle = report(whole)
    assert bundle["counts"] == {"planned": ROWS, "attempted": ROWS, "scored": ROWS, "unscored": 0, "error": 0}
    wrong = len(range(0, ROWS, 10))
    assert bundle["benchmark"]["scores"]["pass@1"]["value"] == (ROWS - wrong) / ROWS
    assert bundle["data"]["rows"] == ROWS
    assert bundle["data"]["sha256"]


def test_resuming_a_finished_run_sends_no_request(server, whole):
    before, files = server.count, comparable(whole)
    run(server, whole, "--resume")
    assert server.count == before
    assert comparable(whole) == files


def test_three_shards_merge_into_the_same_run(server, whole, tmp_path):
    for index in range(3):
        run(server, tmp_path / "parts", env={"NEL_SHARD_IDX": str(index), "NEL_TOTAL_SHARDS": "3"})
    said = nel(server, "merge", tmp_path / "parts")
    assert "gsm8k" in said
    cell = {name: lines for name, lines in comparable(tmp_path / "parts" / "merged").items() if "gsm8k/" in name}
    assert cell == {name: lines for name, lines in comparable(whole).items() if "gsm8k/" in name}
