"""A suite runs every benchmark, isolates the one that fails, and on resume redoes only what is missing."""

import json
import os
import signal
import textwrap
import threading

import pytest
from openai_faults import Fault
from openai_server import FakeOpenAI

from nel.config.load import load_config
from nel.core.errors import ConfigError, ExitCode, UsageError
from nel.core.rundir import RunDir
from nel.orchestration.plan import make_plan
from nel.orchestration.suite import run_local

BENCHMARK = """
from nel import benchmark, scorer
from nel.scoring import exact_match

@benchmark(name="echo", dataset="echo.jsonl", prompt="{question}", target_field="answer")
@scorer
def echo(sample):
    return exact_match(sample)
"""


@pytest.fixture
def server():
    with FakeOpenAI() as fake:
        yield fake


@pytest.fixture
def suite(tmp_path, server):
    """Runs a configuration whose benchmark echoes ten words; `{...}` in it is filled in."""
    (tmp_path / "echo.py").write_text(BENCHMARK)
    rows = [{"question": f"word{n}", "answer": f"word{n}" if n % 2 else "no"} for n in range(10)]
    (tmp_path / "echo.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def load(text, **options):
        url = f"{server.url}/v1/chat/completions"
        text = textwrap.dedent(text).replace("URL", url).replace("HERE", str(tmp_path))
        return load_config(text, use_defaults=False, **options)

    return load


ONE = """
services:
  m: {type: api, url: URL, model: fake, proxy: {max_retries: 0}}
benchmarks:
  - {name: HERE/echo.py, solver: {type: simple, service: m}}
output: {dir: HERE/run}
"""


def test_a_benchmark_runs_from_config_to_report(suite, tmp_path):
    result = run_local(suite(ONE))
    assert result.exit_code == ExitCode.OK
    (bundle,) = result.bundles.values()
    assert bundle["benchmark"]["scores"]["pass@1"].value == 0.5
    assert "| echo" in (tmp_path / "run" / "report.md").read_text()
    assert RunDir.read(tmp_path / "run").stage == "completed"


def test_a_failing_benchmark_is_isolated_and_resume_retries_it_alone(suite, tmp_path, server):
    config = ONE.replace("output", "  - {name: HERE/absent.py, solver: {type: simple, service: m}}\noutput")
    result = run_local(suite(config))
    assert result.exit_code == ExitCode.FAILED
    assert list(result.failed) == ["benchmarks[1] " + str(tmp_path / "absent.py")]
    assert len(result.bundles) == 1
    assert "absent.py" in (tmp_path / "run" / "report.md").read_text()
    (tmp_path / "absent.py").write_text(BENCHMARK.replace('name="echo"', 'name="found"'))
    before = server.count
    result = run_local(suite(config), resume=True)
    assert (result.exit_code, server.count - before) == (ExitCode.OK, 10)
    assert RunDir.read(tmp_path / "run").stage == "completed"


def test_two_entries_of_one_benchmark_never_share_a_result(suite, tmp_path, server):
    config = """
    services:
      a: {type: api, url: URL, model: first}
      b: {type: api, url: URL, model: second}
    benchmarks:
      - {name: HERE/echo.py, solver: {type: simple, service: a}}
      - {name: HERE/echo.py, solver: {type: simple, service: b}}
      - {name: HERE/echo.py, solver: {type: simple, service: b, generation: {temperature: 1}}}
      - {name: HERE/echo.py, id: terse, solver: {type: simple, service: b, system_prompt: Be brief.}}
    output: {dir: HERE/run}
    """
    result = run_local(suite(config))
    assert result.exit_code == ExitCode.OK, result.failed
    assert server.count == 40
    names = {entry.dir for entry in RunDir.read(tmp_path / "run").cells.values()}
    assert len(names) == 4
    assert {"echo--first", "echo--second--terse"} < names


def test_two_equal_entries_are_refused(suite):
    twice = ONE.replace("output", "  - {name: HERE/echo.py, solver: {type: simple, service: m}}\noutput")
    with pytest.raises(ConfigError, match="is the same as"):
        run_local(suite(twice))


def test_adding_an_entry_keeps_the_results_of_the_first(suite, server):
    run_local(suite(ONE))
    more = ONE.replace(
        "output", "  - {name: HERE/echo.py, solver: {type: simple, service: m, generation: {temperature: 1}}}\noutput"
    )
    before = server.count
    assert run_local(suite(more), resume=True).exit_code == ExitCode.OK
    assert server.count - before == 10


def test_the_stored_config_resumes_the_run(suite, tmp_path, server):
    run_local(suite(ONE))
    before = server.count
    loaded = load_config(tmp_path / "run" / "config.yaml", use_defaults=False)
    assert run_local(loaded, resume=True).exit_code == ExitCode.OK
    assert server.count == before


def test_a_key_is_in_no_file_and_reaches_the_server(suite, tmp_path, monkeypatch, server):
    monkeypatch.setenv("MY_KEY", "sk-test-0123456789abcdef")
    config = ONE.replace("model: fake", "model: fake, api_key: '${MY_KEY}'")
    run_local(suite(config), command=["nel", "--api-key", "sk-test-0123456789abcdef"])
    assert server.requests[0].headers["authorization"] == "Bearer sk-test-0123456789abcdef"
    for path in (tmp_path / "run").rglob("*"):
        if path.is_file():
            assert b"sk-test-0123456789abcdef" not in path.read_bytes(), path
    assert "${MY_KEY}" in (tmp_path / "run" / "config.yaml").read_text()
    assert (tmp_path / "run" / "config.yaml").stat().st_mode & 0o777 == 0o600


def test_too_many_errors_end_as_degraded(suite, server):
    server.rule = lambda body, _n: Fault(status=500) if body["messages"][-1]["content"] == "word1" else None
    result = run_local(suite(ONE))
    assert result.exit_code == ExitCode.DEGRADED


def test_skip_failed_lets_every_error_pass(suite, server):
    server.rule = lambda body, _n: Fault(status=500) if body["messages"][-1]["content"] == "word1" else None
    assert run_local(suite(ONE.replace("{name:", "{skip_failed: true, name:"))).exit_code == ExitCode.OK


def test_the_only_model_of_an_endpoint_is_found(suite, server):
    result = run_local(suite(ONE.replace("model: fake, ", "")))
    assert result.exit_code == ExitCode.OK
    assert server.requests[0].body["model"] == "fake"


def test_an_endpoint_with_several_models_lists_them(suite, server):
    server.models = ["one", "two"]
    with pytest.raises(UsageError, match="one, two"):
        run_local(suite(ONE.replace("model: fake, ", "")))


def test_a_benchmark_for_the_other_kind_of_endpoint_is_refused_before_the_first_request(suite, server):
    with pytest.raises(UsageError, match="written for chat endpoints"):
        run_local(suite(ONE.replace("URL", f"{server.url}/v1/completions")))
    assert server.count == 0


def test_what_is_not_available_yet_is_refused_with_its_line(suite, server):
    with pytest.raises(ConfigError, match="not available yet"):
        run_local(suite(ONE.replace("{name: HERE", "{context_window: 5, name: HERE")))
    assert server.count == 0


def test_a_custom_solver_gets_its_client_and_settings(suite, tmp_path):
    (tmp_path / "mine.py").write_text(
        textwrap.dedent("""
        from nel import SolveResult

        class Shout:
            def __init__(self, client, *, mark):
                self.client, self.mark = client, mark

            async def solve(self, task):
                reply = await self.client.chat([{"role": "user", "content": task.prompt}])
                return SolveResult(response=reply.content + self.mark, model_response=reply)
        """)
    )
    config = ONE.replace(
        "{type: simple, service: m}", "{type: custom, service: m, class_path: HERE/mine.py:Shout, config: {mark: s}}"
    )
    (bundle,) = run_local(suite(config)).bundles.values()
    assert bundle["benchmark"]["scores"]["pass@1"].value == 0.0
    lines = [json.loads(line) for line in (tmp_path / "run" / "echo" / "trajectories.jsonl").read_text().splitlines()]
    assert lines[0]["response"] == "word0s"


def test_a_custom_solver_that_does_not_exist_is_an_error_and_never_another_solver(suite, server):
    config = ONE.replace("{type: simple, service: m}", "{type: custom, class_path: no.such.module:Solver}")
    with pytest.raises(UsageError, match=r"no\.such"):
        run_local(suite(config))
    assert server.count == 0


def test_sigterm_stops_in_good_order_and_says_interrupted(suite, tmp_path, server):
    reached = threading.Event()

    def rule(_body, number):
        if number >= 3:
            reached.set()
            return Fault.hang()
        return None

    server.rule = rule
    threading.Thread(target=lambda: reached.wait(20) and os.kill(os.getpid(), signal.SIGTERM), daemon=True).start()
    result = run_local(suite(ONE))
    assert result.exit_code == ExitCode.INTERRUPTED
    assert RunDir.read(tmp_path / "run").stage == "interrupted"
    server.rule, before = None, server.count
    assert run_local(suite(ONE), resume=True).exit_code == ExitCode.OK
    assert server.count - before <= 10


def test_a_plan_says_what_would_be_asked_and_writes_nothing(suite, tmp_path, server):
    before = sorted(tmp_path.rglob("*"))
    config = ONE.replace(
        "proxy:", "generation: {max_tokens: 100}, prices: {prompt: 1, completion: 10}, proxy:"
    ).replace("{name: HERE", "{repeats: 3, name: HERE")
    plan = make_plan(suite(config)).to_dict()
    (cell,) = plan["cells"]
    assert (cell["problems"], cell["attempts"], cell["requests"], cell["completion_tokens"]) == (10, 30, 30, 3000)
    assert cell["cost"] == pytest.approx(0.03, rel=0.01)
    assert server.count == 0
    assert [path for path in sorted(tmp_path.rglob("*")) if "__pycache__" not in str(path)] == before


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("HERE/echo.py", "gsm9k"), r"config:5: benchmarks\[0\]\.name: .*gsm9k"),
        (
            ("{name: HERE/echo.py", "{name: HERE/echo.py, params: {colour: 1}"),
            r"config:5: benchmarks\[0\]\.params\.colour",
        ),
        (
            ("{type: simple, service: m}", "{type: custom, class_path: 'no.such:X'}"),
            r"config:5: .*class_path: .*no\.such",
        ),
    ],
    ids=["benchmark", "parameter", "solver"],
)
def test_what_cannot_be_loaded_is_refused_with_file_and_line(suite, change, said):
    with pytest.raises(UsageError, match=said):
        run_local(suite(ONE.replace(*change)))


def test_a_mistake_leaves_an_earlier_run_in_the_directory_alone(suite, tmp_path):
    run_local(suite(ONE))
    run_id = RunDir.read(tmp_path / "run").run_id
    with pytest.raises(UsageError):
        run_local(suite(ONE.replace("HERE/echo.py", "gsm9k")))
    assert RunDir.read(tmp_path / "run").run_id == run_id
    assert not (tmp_path / "run" / "previous").exists()


def test_a_benchmark_whose_code_raises_is_isolated_too(suite, tmp_path):
    (tmp_path / "broken.py").write_text(
        "from nel import EvalEnvironment, register\n\n"
        "@register\nclass Broken(EvalEnvironment):\n    name = 'broken'\n"
        "    async def dataset_size(self):\n        raise ZeroDivisionError('no rows')\n"
        "    async def seed(self, idx): ...\n    async def verify(self, *a, **k): ...\n"
    )
    config = ONE.replace(
        "benchmarks:\n", "benchmarks:\n  - {name: HERE/broken.py, solver: {type: simple, service: m}}\n"
    )
    result = run_local(suite(config))
    assert result.exit_code == ExitCode.FAILED
    assert "ZeroDivisionError: no rows" in next(iter(result.failed.values()))
    assert len(result.bundles) == 1


def service_with(**proxy):
    return ONE.replace("proxy: {max_retries: 0}", f"proxy: {json.dumps({'max_retries': 0, **proxy})}")


def test_extra_body_and_headers_reach_the_server(suite, server):
    run_local(suite(service_with(extra_body={"top_a": 0.3}, extra_headers={"X-Team": "blue"})))
    assert server.requests[0].body["top_a"] == 0.3
    assert server.requests[0].headers["x-team"] == "blue"


def test_the_request_timeout_is_the_configured_one(suite, server):
    server.rule = lambda body, _n: Fault.hang() if body["messages"][-1]["content"] == "word1" else None
    (bundle,) = run_local(suite(service_with(request_timeout=0.3))).bundles.values()
    assert bundle["runtime"]["errors_by_category"] == {"model_timeout": 1}


def test_retries_and_the_statuses_that_are_retried_are_the_configured_ones(suite, server):
    server.rule = lambda body, _n: Fault(status=418) if body["messages"][-1]["content"] == "word1" else None
    run_local(suite(service_with(max_retries=2, retry_on_status=[418])))
    assert server.count == 12
    server.rule, before = None, server.count
    server.script([Fault(status=503)])
    (bundle,) = run_local(suite(service_with(max_retries=2, retry_on_status=[418]))).bundles.values()
    assert (server.count - before, bundle["counts"]["error"]) == (10, 1)


def test_no_more_requests_are_in_flight_than_the_smaller_limit(suite, server):
    server.delay = 0.02
    run_local(suite(service_with(max_concurrent_upstream=2)))
    assert server.max_in_flight == 2


def test_the_data_s_order_and_a_shuffle_are_both_kept(suite, server):
    run_local(suite(ONE.replace("{name:", "{shuffle_seed: null, max_concurrent: 1, name:")))
    assert [request.body["messages"][-1]["content"] for request in server.requests] == [f"word{n}" for n in range(10)]


def test_generation_n_asks_several_repeats_in_one_request(suite, server):
    config = ONE.replace("model: fake,", "model: fake, generation: {n: 4},").replace("{name:", "{repeats: 4, name:")
    (bundle,) = run_local(suite(config)).bundles.values()
    assert (server.count, bundle["counts"]["scored"]) == (10, 40)
    assert server.requests[0].body["n"] == 4


def test_two_runs_at_once_in_one_directory_are_refused(suite, tmp_path):
    from nel.core.errors import RunDirError

    with RunDir.open(tmp_path / "run", kind="models", resume=False), pytest.raises(RunDirError, match="in use"):
        run_local(suite(ONE))
