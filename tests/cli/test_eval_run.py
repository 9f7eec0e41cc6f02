"""`nel eval run`: quick mode and config files, what reaches the wire, what is stored, and how it ends."""

import json
import os
import signal
import subprocess
import sys
import threading

import pytest
from openai_faults import Fault
from openai_server import FakeOpenAI
from sums_benchmark import SOURCE, right

from nel.cli.keys import ANY_ENDPOINT, BY_DOMAIN
from nel.cli.main import main

CONFIG = """\
services:
  model: {{type: api, url: {url}, model: fake}}
benchmarks:
  - name: sums.py
    solver: {{type: simple, service: model}}
output: {{dir: from_config}}
"""


@pytest.fixture
def server():
    with FakeOpenAI(right) as running:
        yield running


@pytest.fixture(autouse=True)
def work(tmp_path, monkeypatch):
    """A working directory with the benchmark in it, and no keys or defaults of whoever runs the tests."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / ".config"))
    for name in (*ANY_ENDPOINT, *BY_DOMAIN, "NEL_MODEL_URL", "NEL_MODEL_ID", "NEMO_MODEL_URL", "NEMO_MODEL_ID"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "sums.py").write_text(SOURCE)
    return tmp_path


def quick(server, *more):
    return ["eval", "run", "--bench", "sums.py", "--model-url", f"{server.url}/v1", "-o", "out", *more]


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_quick_mode_asks_every_problem_and_prints_scores_counts_and_the_report(server, work, capsys):
    assert main(quick(server)) == 0
    said = capsys.readouterr()
    assert server.count == 6
    assert "sums" in said.out
    assert "1.000" in said.out
    assert "Report: out/report.md" in said.out
    assert (work / "out/report.md").is_file()


def test_the_flags_reach_the_wire(server):
    flags = ["--system-prompt", "Be brief.", "--temperature", "0.5", "--max-tokens", "7", "--max-problems", "1"]
    assert main(quick(server, *flags, "-O", "services.model.generation.top_p=0.9")) == 0
    body = server.bodies[0]
    assert body["messages"][0] == {"role": "system", "content": "Be brief."}
    assert (body["temperature"], body["max_tokens"], body["top_p"]) == (0.5, 7, 0.9)
    assert body["model"] == "fake"  # the only one that the endpoint lists


def test_repeats_and_the_order_of_problems_are_as_the_flags_say(server):
    assert main(quick(server, "-n", "2", "--shuffle-seed", "none", "--max-problems", "2", "--max-concurrent", "1")) == 0
    assert server.count == 4
    assert server.max_in_flight == 1
    asked = {body["messages"][-1]["content"] for body in server.bodies}
    assert asked == {"What is 1 + 2?", "What is 2 + 4?"}


def test_several_benchmarks_are_several_cells(server, work):
    (work / "more.py").write_text(SOURCE.replace('name="sums"', 'name="more"'))
    assert main(quick(server, "--bench", "more.py")) == 0
    assert {path.parent.name for path in (work / "out").glob("*/results.jsonl")} == {"sums", "more"}


def test_the_endpoint_may_come_from_the_environment(server, work, monkeypatch):
    monkeypatch.setenv("NEMO_MODEL_URL", server.chat_url)
    monkeypatch.setenv("NEMO_MODEL_ID", "fake")
    assert main(["eval", "run", "-b", "sums.py", "-o", "out"]) == 0
    assert server.count == 6


def test_without_a_model_id_an_endpoint_with_several_models_is_an_error_that_lists_them(server, capsys):
    server.models = ["one", "two"]
    assert main(quick(server)) != 0
    assert "one, two" in capsys.readouterr().err
    assert server.count == 0


def test_other_data_replace_the_benchmarks_own(server, work):
    (work / "rows.jsonl").write_text('{"a": 20, "b": 22, "target": "42"}\n')
    assert main(quick(server, "--dataset", "rows.jsonl")) == 0
    assert [body["messages"][-1]["content"] for body in server.bodies] == ["What is 20 + 22?"]


def test_protocol_chooses_the_path_of_the_url(server, work):
    (work / "sums.py").write_text(SOURCE.replace("system_prompt=", 'endpoint_type="completions", version=', 1))
    assert main(quick(server, "--protocol", "completions")) == 0
    assert {request.path for request in server.requests} == {"/v1/completions"}


def test_protocol_against_the_path_of_the_url_is_refused(server, capsys):
    assert main(["eval", "run", "-b", "sums.py", "--model-url", server.chat_url, "--protocol", "responses"]) == 64
    assert "chat_completions" in capsys.readouterr().err


def test_a_key_from_the_environment_is_sent_and_stored_by_its_name_alone(server, work, monkeypatch):
    monkeypatch.setenv("NEL_API_KEY", "the-key-of-the-user")
    assert main(quick(server)) == 0
    assert server.requests[0].headers["authorization"] == "Bearer the-key-of-the-user"
    assert "api_key: ${NEL_API_KEY}" in (work / "out/config.yaml").read_text()
    assert not any(b"the-key-of-the-user" in content for content in contents(work).values())


def test_a_key_from_the_command_line_is_in_no_file_and_is_asked_for_again(server, work, capsys):
    server.api_key = "the-key-of-the-user"
    assert main(quick(server, "--max-problems", "3", "--api-key", "the-key-of-the-user")) == 0
    assert not any(b"the-key-of-the-user" in content for content in contents(work).values())
    capsys.readouterr()
    more = ["-O", "benchmarks[0].max_problems=null"]
    assert main(["eval", "resume", "out", *more]) == 64
    assert "--api-key" in capsys.readouterr().err
    assert main(["eval", "resume", "out", *more, "--api-key", "the-key-of-the-user"]) == 0
    assert server.count == 6


def test_a_vendors_key_is_not_sent_to_somebody_elses_endpoint(server, monkeypatch):
    monkeypatch.setenv("NVIDIA_API_KEY", "the-key-of-the-user")
    monkeypatch.setenv("OPENAI_API_KEY", "the-key-of-the-user")
    assert main(quick(server, "--max-problems", "1")) == 0
    assert "authorization" not in server.requests[0].headers


def test_a_config_file_runs_and_the_output_directory_may_be_another(server, work):
    (work / "suite.yaml").write_text(CONFIG.format(url=server.chat_url))
    assert main(["eval", "run", "suite.yaml"]) == 0
    assert (work / "from_config/sums/results.jsonl").is_file()
    assert main(["eval", "run", "suite.yaml", "-o", "else where's"]) == 0
    assert (work / "else where's/sums/results.jsonl").is_file()


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ([], "--bench"),
        (["suite.yaml", "--bench", "sums.py"], "not both"),
        (["suite.yaml", "--max-problems", "3"], "-O 'benchmarks[0].max_problems=VALUE'"),
        (["suite.yaml", "--retry-errors", "all"], "--resume"),
        (["suite.yaml", "--dry-run", "--background"], "--dry-run"),
        (["nowhere.yaml"], "nowhere.yaml"),
        (["--bench", "sums.py"], "--model-url"),
        (["--bench", "sums.py", "--model-url", "http://h/v1", "--shuffle-seed", "some"], "none"),
        (["--bench", "sums.py", "--model-url", "http://h/v1", "-O", "benchmarks[0].repaets=2"], "repeats"),
        (["--bench", "sums.py", "--model-url", "http://h/v1", "--temperature", "9"], "temperature"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_written(work, capsys, arguments, named):
    (work / "suite.yaml").write_text(CONFIG.format(url="http://localhost:8000/v1/chat/completions"))
    before = contents(work)
    assert main(["eval", "run", *arguments]) == 64
    assert named in capsys.readouterr().err
    assert contents(work) == before


def test_a_dry_run_asks_nothing_and_writes_nothing(server, work, capsys):
    before = contents(work)
    assert main(quick(server, "--dry-run", "-n", "3", "--max-tokens", "10", "--json")) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["output_dir"] == "out"
    assert plan["totals"]["requests"] == 18
    assert plan["cells"][0]["problems"] == 6
    assert plan["cells"][0]["completion_tokens"] == 180
    assert server.count == 0
    assert contents(work) == before


def test_a_dry_run_as_text_has_a_line_for_each_cell(server, capsys):
    assert main(quick(server, "--dry-run", "-O", "services.model.prices={prompt: 1.0, completion: 2.0}")) == 0
    said = capsys.readouterr().out
    assert "Would run 1 cell in out" in said
    assert any(line.split()[:4] == ["sums", "fake", "6", "1"] for line in said.splitlines())


def test_a_dry_run_of_what_cannot_run_ends_with_64_and_the_reason(server, work, capsys):
    (work / "suite.yaml").write_text(CONFIG.format(url=server.chat_url) + "# \n")
    override = ["-O", "benchmarks=[{name: sums.py, solver: {type: simple, service: model}, params: {no_such: 1}}]"]
    assert main(["eval", "run", "suite.yaml", "--dry-run", *override]) == 64
    assert "no_such" in capsys.readouterr().err


def test_as_json_the_result_is_one_document(server, capsys):
    assert main(quick(server, "--json")) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["run_dir"], result["exit_code"]) == ("out", 0)
    assert result["report"]["benchmarks"]["sums"]["stage"] == "completed"


def test_too_many_errors_end_as_degraded(server, capsys):
    server.rule = lambda body, number: Fault(status=400) if number < 3 else None
    assert main(quick(server)) == 3
    assert "degraded" in capsys.readouterr().out


def test_a_benchmark_that_fails_does_not_stop_the_others(server, work, capsys):
    assert main(quick(server, "--bench", "absent.py")) == 1
    assert server.count == 6
    assert "absent.py" in capsys.readouterr().out


def test_ctrl_c_keeps_what_was_measured_and_ends_with_130(server, work):
    third = threading.Event()
    server.rule = lambda body, number: third.set() if number == 2 else None
    server.delay = 0.2
    command = [sys.executable, "-m", "nel", *quick(server, "--max-concurrent", "1", "--model-id", "fake")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert third.wait(30)
        running.send_signal(signal.SIGINT)
        _, err = running.communicate()
    assert running.returncode == 130, err
    assert "Traceback" not in err
    assert json.loads((work / "out/manifest.json").read_text())["stage"] == "interrupted"
    assert (work / "out/sums/results.jsonl").read_text().count("\n") >= 2


def test_ctrl_c_before_the_run_began_leaves_an_earlier_one_as_it_was(server, work):
    assert main(quick(server)) == 0
    earlier = {path: path.read_bytes() for path in (work / "out").rglob("*") if path.is_file()}
    slow = "import os, signal, time\nfrom nel import benchmark, scorer\n\n"
    slow += "def rows():\n    os.kill(os.getpid(), signal.SIGTERM)\n    time.sleep(1)\n    return [{'q': 'x', 'target': 'y'}]\n\n"
    slow += "@benchmark(name='slow', dataset=rows, prompt='{q}')\n@scorer\ndef slow(sample):\n    return True\n"
    (work / "slow.py").write_text(slow)
    command = [sys.executable, "-m", "nel", *quick(server, "--bench", "slow.py", "--model-id", "fake")]
    running = subprocess.run(command, capture_output=True, text=True, check=False)
    assert running.returncode == 130, running.stderr
    assert "nothing was written" in running.stderr
    assert running.stdout == ""
    assert {path: path.read_bytes() for path in (work / "out").rglob("*") if path.is_file()} == earlier


def test_resume_asks_nothing_that_is_known(server):
    assert main(quick(server)) == 0
    assert main(quick(server, "--resume")) == 0
    assert server.count == 6
    assert main(quick(server, "--resume", "-n", "2")) == 0
    assert server.count == 12


def test_without_resume_the_earlier_run_is_set_aside(server, work):
    assert main(quick(server)) == 0
    earlier = json.loads((work / "out/manifest.json").read_text())["run_id"]
    assert main(quick(server)) == 0
    assert server.count == 12
    assert (work / "out/previous" / earlier / "manifest.json").is_file()


def test_refusals_are_asked_again_only_when_all_errors_are(server):
    server.rule = lambda body, number: Fault(status=400) if number < 3 else None
    assert main(quick(server)) == 3
    assert main(quick(server, "--resume")) == 3
    assert server.count == 6
    assert main(quick(server, "--resume", "--retry-errors", "all")) == 0
    assert server.count == 9


@pytest.mark.skipif(os.name == "nt", reason="modes are POSIX")
def test_the_stored_config_is_readable_by_its_owner_alone(server, work):
    assert main(quick(server)) == 0
    assert (work / "out/config.yaml").stat().st_mode & 0o077 == 0
