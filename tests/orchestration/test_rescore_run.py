"""`nel eval rescore` grades what a run keeps with the scorers as they are now, even where their file is gone."""

import json
import shutil

from openai_server import FakeOpenAI

from nel.config.load import load_config
from nel.orchestration.rescore import rescore
from nel.orchestration.suite import run_local

BENCHMARK = """
from nel import benchmark, scorer

@benchmark(name="echo", dataset="echo.jsonl", prompt="{question}", target_field="answer")
@scorer
def echo(sample):
    return sample.response == sample.target
"""


def run(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "echo.py").write_text(BENCHMARK)
    rows = [{"question": f"Word{n}", "answer": f"word{n}"} for n in range(6)]
    (folder / "echo.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with FakeOpenAI() as server:
        config = f"""
services:
  m: {{type: api, url: "{server.url}/v1/chat/completions", model: fake}}
benchmarks:
  - {{name: "{folder}/echo.py", solver: {{type: simple, service: m}}}}
output: {{dir: "{tmp_path}/run"}}
"""
        run_local(load_config(config, use_defaults=False))
    return folder


def test_a_changed_scorer_is_applied_without_server_or_data(tmp_path):
    folder = run(tmp_path)
    (folder / "echo.jsonl").unlink()
    (folder / "echo.py").write_text(BENCHMARK.replace("sample.response ==", "sample.response.lower() =="))
    (change,) = rescore(tmp_path / "run")
    assert (change.metric, change.before, change.after, change.changed) == ("pass@1", 0.0, 1.0, True)
    assert "1.000" in (tmp_path / "run" / "report.md").read_text()


def test_a_run_carried_elsewhere_is_scored_by_the_code_that_it_keeps(tmp_path):
    folder = run(tmp_path)
    shutil.rmtree(folder)
    moved = (tmp_path / "run").rename(tmp_path / "moved")
    (change,) = rescore(moved)
    assert (change.before, change.after, change.changed) == (0.0, 0.0, False)
