"""A run asks each problem once, scores what was answered, and keeps errors out of the score."""

import json

import pytest
from conftest_engine import Sums, rows
from openai_faults import Fault

from nel.core.errors import UsageError
from nel.engine.loop import CellAbortedError
from nel.environments.base import SeedResult, VerifyResult
from nel.observability.records import MetricScore, Outcome
from nel.solvers.base import SolveResult


def test_a_run_reports_the_true_accuracy_with_interval_and_counts(lab):
    bundle = lab.run(Sums(rows(20)))
    score = bundle["benchmark"]["scores"]["pass@1"]
    assert score.value == 0.9
    assert score.ci_lower < 0.9 < score.ci_upper
    assert bundle["counts"] == {"planned": 20, "attempted": 20, "scored": 20, "unscored": 0, "error": 0}
    assert bundle["outcome"] == "completed"
    assert lab.requests == 20


def test_the_logs_hold_what_was_sent_and_what_came_back(lab):
    lab.run(Sums(rows(2)), system_prompt="Add.", generation={"temperature": 0.5, "max_tokens": 7})
    attempt, score = lab.lines("trajectories.jsonl")[1], lab.lines("results.jsonl")[1]
    sent = lab.server.requests[-1].body
    assert attempt["messages"] == [{"role": "system", "content": "Add."}, {"role": "user", "content": "1+1"}]
    assert {"messages": attempt["messages"], **attempt["request"]} == {
        k: v for k, v in sent.items() if k != "model"
    } or (sorted(request.body["messages"][1]["content"] for request in lab.server.requests) == ["0+0", "1+1"])
    assert attempt["request"] == {"temperature": 0.5, "max_tokens": 7}
    assert all(request.body["messages"][0]["content"] == "Add." for request in lab.server.requests)
    assert attempt["model"]["content"] == "2"
    assert "expected_answer" not in attempt
    assert (score["expected_answer"], score["extracted_answer"], score["reward"]) == ("2", "2", 1.0)
    assert score["attempt"] == attempt["attempt"]


def test_the_solver_never_sees_the_expected_answer_nor_undeclared_metadata(lab):
    seen = []

    class Curious:
        reads_metadata = ("row",)

        async def solve(self, task: SeedResult) -> SolveResult:
            seen.append((task.expected_answer, dict(task.metadata)))
            return SolveResult(response="x")

    lab.run(Sums(rows(2)), solver=Curious())
    assert sorted(seen, key=str) == [(None, {"row": 0}), (None, {"row": 1})]


def test_files_derived_again_from_the_logs_are_byte_identical(lab):
    import msgspec

    from nel.core.rundir import RunDir
    from nel.engine.derive import CellInfo, derive, pairs_from_logs

    lab.run(Sums(rows(30)), repeats=2)
    cell = lab.path / "sums"
    names = ("eval-sums.json", "runtime_stats.json", "failure_analysis.json")
    before = {name: (cell / name).read_bytes() for name in names}
    (entry,) = RunDir.read(lab.path).cells.values()
    derive(cell, msgspec.convert(entry.info, CellInfo), pairs_from_logs(cell))
    assert {name: (cell / name).read_bytes() for name in names} == before


def test_an_outage_is_an_error_and_never_a_zero(lab):
    lab.server.rule = lambda body, _n: Fault(status=500) if body["messages"][-1]["content"] in {"1+1", "2+2"} else None
    bundle = lab.run(Sums(rows(10)), max_error_rate=0.5)
    assert bundle["counts"] == {"planned": 10, "attempted": 10, "scored": 8, "unscored": 0, "error": 2}
    assert bundle["benchmark"]["scores"]["pass@1"].value == 7 / 8
    assert bundle["means"] == {"excluding_errors": 7 / 8, "errors_as_zero": 7 / 10}
    errors = (
        [line for line in lab.lines("results.jsonl") if line["outcome"] == "error"]
        if False
        else [line for line in lab.lines("results.jsonl") if line.get("outcome") == "error"]
    )
    assert [line["failure_category"] for line in errors] == ["server_error"] * 2
    assert all("reward" not in line for line in errors)


def test_error_policy_zero_counts_errors_as_zero_in_the_headline(lab):
    lab.server.rule = lambda body, _n: Fault(status=500) if body["messages"][-1]["content"] == "1+1" else None
    bundle = lab.run(Sums(rows(10)), error_policy="zero", max_error_rate=1.0)
    assert bundle["benchmark"]["scores"]["pass@1"].value == 0.8
    assert bundle["benchmark"]["scores"]["pass@1"].error == 0 or bundle["counts"]["error"] == 1


def test_error_policy_abort_ends_the_benchmark_at_the_first_error(lab):
    lab.server.rule = lambda body, _n: Fault(status=500) if body["messages"][-1]["content"] == "1+1" else None
    with pytest.raises(CellAbortedError, match=r"problem 1 ended as server_error"):
        lab.run(Sums(rows(1000)), error_policy="abort", max_concurrent=2)
    assert lab.server.count < 20


def test_more_errors_than_the_limit_make_the_run_degraded(lab):
    lab.server.rule = lambda body, _n: Fault(status=500) if body["messages"][-1]["content"] == "1+1" else None
    assert lab.run(Sums(rows(20)), max_error_rate=0.05)["outcome"] == "completed"
    assert lab.run(Sums(rows(19)), max_error_rate=0.05)["outcome"] == "degraded"


def test_a_scorer_that_raises_is_an_error_with_its_message(lab):
    def verify(response, expected, _metadata):
        if expected == "4":
            raise KeyError("gold")
        return VerifyResult(reward=1.0)

    bundle = lab.run(Sums(rows(4), verify=verify), max_error_rate=1.0)
    (error,) = [line for line in lab.lines("results.jsonl") if line.get("outcome") == "error"]
    assert error["failure_category"] == "scorer_error"
    assert "KeyError: 'gold'" in error["error"]
    assert bundle["benchmark"]["scores"]["pass@1"].value == 1.0


@pytest.mark.parametrize("reward", [float("nan"), float("inf"), None, "1"])
def test_a_reward_that_is_no_finite_number_is_an_error(lab, reward):
    env = Sums(rows(1), verify=lambda *_: VerifyResult(reward=reward))
    assert lab.run(env, max_error_rate=1.0)["counts"]["error"] == 1


def test_an_unscored_answer_enters_no_mean(lab):
    def verify(response, expected, _metadata):
        if expected == "4":
            return VerifyResult(reward=None, outcome=Outcome.UNSCORED, failure_category="judge_unparsable")
        return VerifyResult(reward=1.0)

    bundle = lab.run(Sums(rows(4), verify=verify))
    assert bundle["counts"] == {"planned": 4, "attempted": 4, "scored": 3, "unscored": 1, "error": 0}
    assert bundle["means"] == {"excluding_errors": 1.0, "errors_as_zero": 1.0}


def test_every_metric_of_an_attempt_has_its_own_estimate(lab):
    def verify(response, expected, _metadata):
        return VerifyResult(reward=1.0, metrics={"length": MetricScore(value=float(len(response)))})

    scores = lab.run(Sums(rows(12), verify=verify))["benchmark"]["scores"]
    assert scores["scorer:length"].value == pytest.approx((6 + 14 - 2 + 2) / 12, abs=0.5)
    assert scores["scorer:length"].n == 12


def test_repeats_are_clustered_by_problem_and_give_pass_at_k(lab):
    scores = lab.run(Sums(rows(10)), repeats=4)["benchmark"]["scores"]
    assert list(scores) == ["pass@1", "pass@2", "pass@4", "pass^2", "pass^4", "maj@4"]
    assert scores["pass@1"].n == 10
    assert scores["pass@1"].scored == 40
    assert {score.value for score in scores.values()} == {0.9}


def test_a_configured_seed_is_sent_as_seed_plus_repeat(lab):
    lab.run(Sums(rows(1)), repeats=3, generation={"seed": 7})
    assert sorted(request.body["seed"] for request in lab.server.requests) == [7, 8, 9]
    assert [line["request"]["seed"] for line in lab.lines("trajectories.jsonl")] == [7, 8, 9]


def test_n_is_transport_only(lab, tmp_path):
    lab.run(Sums(rows(5)), repeats=4)
    together = tmp_path / "together"
    lab.run(Sums(rows(5)), repeats=4, choices=4, path=together)
    assert lab.requests == 5
    one, other = lab.lines("trajectories.jsonl"), lab.lines("trajectories.jsonl", together)
    assert [line["attempt"] for line in one] == [line["attempt"] for line in other]
    assert sum(line["model"].get("prompt_tokens", 0) for line in other) * 4 == sum(
        line["model"]["prompt_tokens"] for line in one
    )


def test_a_problem_that_takes_too_long_is_a_timeout(lab):
    lab.server.rule = lambda body, _n: Fault.hang() if body["messages"][-1]["content"] == "1+1" else None
    bundle = lab.run(Sums(rows(3)), timeout=0.3, max_error_rate=1.0)
    assert bundle["counts"]["error"] == 1
    (error,) = [line for line in lab.lines("results.jsonl") if line.get("outcome") == "error"]
    assert (error["failure_category"], error["error"]) == ("problem_timeout", "no answer within 0.3 s")


def test_a_crash_of_the_solver_is_tried_again_and_then_an_error(lab):
    tries = {}

    class Flaky:
        async def solve(self, task):
            tries[task.prompt] = tries.get(task.prompt, 0) + 1
            if task.prompt == "0+0" or (task.prompt == "1+1" and tries["1+1"] == 1):
                raise RuntimeError("lost my mind")
            return SolveResult(response="2")

    bundle = lab.run(Sums(rows(2)), solver=Flaky(), max_system_retries=1, max_error_rate=1.0)
    assert tries == {"0+0": 2, "1+1": 2}
    assert bundle["counts"]["error"] == 1
    error, right = lab.lines("trajectories.jsonl")
    assert error["model_error"]["category"] == "solver_error"
    assert "RuntimeError: lost my mind" in error["model_error"]["message"]
    assert right["retries"] == 1


def test_a_problem_that_cannot_be_made_is_an_error_of_that_problem(lab):
    class Broken(Sums):
        async def seed(self, idx):
            if idx == 1:
                raise ValueError("no such column")
            return await super().seed(idx)

    bundle = lab.run(Broken(rows(3)), max_error_rate=1.0)
    assert bundle["counts"] == {"planned": 3, "attempted": 3, "scored": 2, "unscored": 0, "error": 1}
    assert "no such column" in lab.lines("results.jsonl")[1]["error"]


def test_an_instruction_template_changes_what_is_sent(lab):
    lab.server.answer = lambda body: body["messages"][-1]["content"]
    lab.run(Sums(rows(1)), instruction_template="{{Q}} {prompt} ?")
    assert lab.server.requests[0].body["messages"][-1]["content"] == "{Q} 0+0 ?"


def test_a_giant_answer_stands_in_a_blob_and_is_still_scored(lab):
    giant = "x" * 3_000_000
    lab.server.answer = lambda _body: giant
    bundle = lab.run(Sums([("1+1", giant)]))
    assert bundle["benchmark"]["scores"]["pass@1"].value == 1.0
    (line,) = lab.lines("trajectories.jsonl")
    assert line["model"].get("content", "") == ""
    assert list(line["blobs"]) == ["model/content"]
    changed = lab.run(Sums([("1+1", giant)], scorer_version="2"), resume=True)
    assert lab.requests == 0
    assert changed["benchmark"]["scores"]["pass@1"].value == 1.0


def test_the_bundle_says_what_made_the_number(lab):
    bundle = json.loads((lab.run(Sums(rows(3))), (lab.path / "sums" / "eval-sums.json").read_text())[1])
    assert bundle["identity"]["solver"]["service"]["url"] == f"{lab.server.url}/v1/chat/completions"
    assert bundle["identity"]["solver"]["generation"] == {"temperature": 0.0}
    assert bundle["identity"]["scoring"] == {"scorer": "equal", "version": "1"}
    assert bundle["data"]["source"] == "rows"
    assert bundle["versions"]["nel"]


def test_an_unknown_setting_names_the_nearest_valid_one(lab):
    with pytest.raises(UsageError, match="Did you mean 'max_concurrent'"):
        lab.run(Sums(rows(1)), max_concurent=3)


def test_no_problem_selected_is_refused(lab):
    with pytest.raises(UsageError, match="no problem is selected"):
        lab.run(Sums([]))
