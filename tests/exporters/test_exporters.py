"""Exporters: what they write is opened with the tools that they write it for, and a run is never changed."""

from __future__ import annotations

import csv
import http.server
import json
import os
import subprocess
import sys
import threading
import xml.etree.ElementTree as ET
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from openai_faults import Fault
from openai_server import FakeOpenAI, prompt_text

from nel.cli.main import main

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / ".cache" / "exporters" / "bin" / "python"
HOSTILE = [
    '=HYPERLINK("http://x")',
    "</testcase><x>&\"'",
    'a,b\n"c"\r\nd',
    "\u202eright to left",
    "nul \x00 and \x07 bell",
    "−5",
]
BENCHMARK = f"""
from nel import benchmark, scorer
ROWS = [{{"q": text, "target": "yes", "kind": "a" if n % 2 else "b"}} for n, text in enumerate({HOSTILE!r})]

@benchmark(name="hostile", dataset=lambda: ROWS, prompt="{{q}}", category_field="kind")
@scorer
def hostile(sample):
    if "right" in sample.response:
        return {{"outcome": "unscored", "reason": "unreadable"}}
    return {{"correct": sample.response.startswith("="), "length": len(sample.response)}}
"""
needs_tools = pytest.mark.skipif(
    not TOOLS.exists() and not os.environ.get("CI"), reason="scripts/exporter-packages installs the other tools"
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    (folder / "hostile.py").write_text(BENCHMARK)
    rule = lambda body, number: Fault(status=400) if "bell" in prompt_text(body) else None
    with FakeOpenAI(prompt_text, rule=rule) as server:
        quick = ["--bench", str(folder / "hostile.py"), "--model-url", f"{server.url}/v1", "--model-id", "fake"]
        assert main(["eval", "run", *quick, "-n", "2", "-o", str(folder / "out")]) == 3
    return folder / "out"


def tree(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def export(run, tmp_path, capsys):
    def act(dest, *options, code=0):
        before = tree(run)
        assert main(["export", str(run), "-d", dest, "-o", str(tmp_path / "out"), "--json", *options]) == code
        assert tree(run) == before
        return json.loads(capsys.readouterr().out)["runs"][0]

    return act


def test_csv_has_a_line_for_each_attempt_and_no_formula(export):
    (path,) = export("csv")["places"]
    with Path(path).open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 12
    assert {row["prompt"] for row in rows} >= {"'" + HOSTILE[0], HOSTILE[1], HOSTILE[2]}
    assert {row["outcome"] for row in rows} == {"scored", "unscored", "error"}
    assert all(row["metric:length"] for row in rows if row["outcome"] == "scored")


def test_parquet_keeps_every_text_and_number_as_it_is(export):
    (path,) = export("parquet")["places"]
    table = pq.read_table(path).to_pylist()
    assert len(table) == 12
    assert {row["prompt"] for row in table} == set(HOSTILE)
    assert {row["reward"] for row in table if row["outcome"] == "scored"} == {0.0, 1.0}
    assert {row["reward"] for row in table if row["outcome"] != "scored"} == {None}


def test_jsonl_is_the_joined_form(export):
    (path,) = export("jsonl")["places"]
    rows = [json.loads(line) for line in Path(path).read_text().splitlines()]
    row = next(row for row in rows if row["prompt"] == HOSTILE[0])
    assert (row["model_response"], row["reward"], row["expected_answer"]) == (HOSTILE[0], 1.0, "yes")
    assert row["metadata"]["kind"] == "b"


def test_junit_is_well_formed_and_its_counts_are_those_of_its_cases(export):
    (path,) = export("junit")["places"]
    suite = ET.parse(path).getroot().find("testsuite")
    cases = suite.findall("testcase")
    kinds = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    assert int(suite.get("tests")) == len(cases) == 12
    for count, tag in kinds.items():
        assert int(suite.get(count)) == sum(case.find(tag) is not None for case in cases) > 0


def test_junit_passes_from_the_reward_that_was_said(export):
    (path,) = export("junit", "-O", "pass_from=0")["places"]
    assert ET.parse(path).getroot().find("testsuite").get("failures") == "0"


def spans(documents):
    return [
        span
        for document in documents
        for resource in document["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]


def test_otel_has_a_span_for_each_attempt_without_texts_unless_they_are_asked_for(export):
    (path,) = export("otel")["places"]
    found = spans(map(json.loads, Path(path).read_text().splitlines()))
    assert len({span["spanId"] for span in found}) == 12
    keys = {attribute["key"] for span in found for attribute in span["attributes"]}
    assert {"gen_ai.request.model", "gen_ai.usage.input_tokens", "gen_ai.evaluation.score.value"} <= keys
    assert "gen_ai.input.messages" not in keys
    assert all(int(span["endTimeUnixNano"]) >= int(span["startTimeUnixNano"]) > 10**18 for span in found)
    (path,) = export("otel", "-O", "content=true")["places"]
    assert "gen_ai.input.messages" in Path(path).read_text()


def test_otel_posts_to_a_collector_and_a_refusal_changes_the_exit_code(export):
    taken = []

    class Collector(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            taken.append(json.loads(body))
            self.send_response(200 if len(taken) == 1 else 503)
            self.end_headers()

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        endpoint = f"endpoint=http://127.0.0.1:{server.server_port}/v1/traces"
        export("otel", "-O", endpoint)
        assert len(spans(taken)) == 12
        assert "did not take the spans" in export("otel", "-O", endpoint, code=1)["error"]
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-d", "cvs"], "Did you mean 'csv'"),
        (["-d", "otel", "-O", "endpiont=x"], "Did you mean 'endpoint'"),
        (["-d", "csv", "-O", "x=1"], "It takes none"),
        (["-d", "csv", "-O", "x"], "is not NAME=VALUE"),
        (["-d", "junit", "-O", "pass_from=high"], "a number is expected"),
        (["-d", "wandb", "-O", "mode=sideways"], "offline or online"),
    ],
)
def test_what_an_exporter_does_not_know_is_refused(run, tmp_path, capsys, arguments, said):
    assert main(["export", str(run), "-o", str(tmp_path / "out"), *arguments]) == 64
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_run_that_cannot_be_read_does_not_stop_the_others(run, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    code = main(["export", str(tmp_path / "empty"), str(run), "-d", "csv", "-o", str(tmp_path / "out")])
    out = capsys.readouterr()
    assert code == 1
    assert "hostile.csv" in out.out
    assert "empty" in out.err


def test_an_exporter_of_ones_own_is_found_by_its_path(run, tmp_path, capsys):
    (tmp_path / "mine.py").write_text(
        "class Mine:\n    name = 'mine'\n    def __init__(self, *, word='x'):\n        self.word = word\n"
        "    def export(self, run, output):\n        return [f'{self.word} {len(run.cells())}']\n"
    )
    assert main(["export", str(run), "-d", f"{tmp_path / 'mine.py'}:Mine", "-O", "word=cells"]) == 0
    assert "cells 1" in capsys.readouterr().out


def with_tools(*arguments, code=0, script=None):
    command = [TOOLS, "-c", script] if script else [TOOLS, "-m", "nel", *arguments]
    env = {**os.environ, "WANDB_SILENT": "true", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, env=env, timeout=110)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


@needs_tools
def test_inspects_own_reader_opens_the_log(export):
    (path,) = export("inspect")["places"]
    script = f"""
from inspect_ai.log import read_eval_log
log = read_eval_log({path!r})
scores = [sample.scores.get("nel") for sample in log.samples]
print(log.status, log.eval.task, len(log.samples), log.results.scores[0].metrics["pass@1"].value,
      sum(score.value for score in scores if score), sum(sample.error is not None for sample in log.samples),
      {HOSTILE[1]!r} in [sample.output.completion for sample in log.samples])
"""
    assert with_tools(script=script).split() == ["success", "hostile", "12", "0.25", "2.0", "2", "True"]


@needs_tools
def test_wandb_writes_an_offline_run(run, tmp_path):
    with_tools("export", run, "-d", "wandb", "-o", tmp_path)
    (file,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    assert b"hostile/pass@1" in file.read_bytes()


@needs_tools
def test_mlflow_has_one_run_for_a_cell_however_often_it_is_exported(run, tmp_path):
    for _ in range(2):
        out = with_tools("export", run, "-d", "mlflow", "-o", tmp_path)
    assert "there already" in out
    script = f"""
import os
os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
from mlflow.tracking import MlflowClient
client = MlflowClient(tracking_uri={(tmp_path / "mlruns").as_uri()!r})
(found,) = client.search_runs([client.get_experiment_by_name("nel").experiment_id])
print(found.data.metrics["pass_at_1"], found.data.params["model"], found.data.metrics["count.error"])
"""
    assert with_tools(script=script).split() == ["0.25", "fake", "2.0"]


def test_without_the_package_the_command_that_installs_it_is_told(run, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    assert main(["export", str(run), "-d", "wandb", "-o", str(tmp_path)]) == 1
    assert "pip install 'nel[wandb]'" in capsys.readouterr().err
