"""What was done is never done twice, and what changed is redone: exactly that, and nothing else."""

import pytest
from conftest_engine import Sums, add, rows
from openai_faults import Fault

from nel.environments.base import VerifyResult
from nel.observability.records import Outcome


def masked(lab, path=None):
    return lab.lines("trajectories.jsonl", path, masked=True), lab.lines("results.jsonl", path, masked=True)


def test_nothing_changed_sends_no_request_and_changes_no_line(lab):
    first = lab.run(Sums(rows(20)), repeats=2)
    before = masked(lab)
    again = lab.run(Sums(rows(20)), repeats=2, resume=True)
    assert lab.requests == 0
    assert masked(lab) == before
    assert again["benchmark"]["scores"]["pass@1"]["value"] == first["benchmark"]["scores"]["pass@1"].value


def test_without_resume_a_used_directory_starts_afresh_and_keeps_the_earlier_run(lab):
    first = lab.run(Sums(rows(3)))
    lab.run(Sums(rows(3)))
    assert lab.requests == 3
    assert (lab.path / "previous" / first["run_id"] / "sums" / "results.jsonl").exists()


def test_an_edited_question_asks_that_row_alone(lab):
    data = rows(10)
    lab.run(Sums(data))
    data[4] = ("40+4", "44")
    bundle = lab.run(Sums(data), resume=True)
    assert lab.requests == 1
    assert bundle["counts"]["scored"] == 10
    assert [line["expected_answer"] for line in lab.lines("results.jsonl")] == [answer for _, answer in data]
    assert len(lab.lines("superseded.jsonl")) == 2


def test_an_edited_gold_answer_scores_that_row_again_without_a_request(lab):
    data = rows(10)
    lab.run(Sums(data))
    data[4] = (data[4][0], "wrong")
    env = Sums(data)
    bundle = lab.run(env, resume=True)
    assert (lab.requests, env.verified) == (0, 1)
    assert bundle["benchmark"]["scores"]["pass@1"].value == 0.8


def test_a_changed_scorer_sends_no_request(lab):
    lab.run(Sums(rows(10)))
    env = Sums(rows(10), scorer_version="2", verify=lambda *_: VerifyResult(reward=0.0))
    bundle = lab.run(env, resume=True)
    assert (lab.requests, env.verified) == (0, 10)
    assert bundle["benchmark"]["scores"]["pass@1"].value == 0.0


@pytest.mark.parametrize(
    "change",
    [
        {"generation": {"temperature": 0.7}},
        {"generation": {"temperature": 0.0, "max_tokens": 5}},
        {"system_prompt": "Be brief."},
        {"instruction_template": "{prompt}"},
    ],
    ids=str,
)
def test_what_changes_an_answer_asks_again_and_going_back_finds_the_old_answers(lab, change):
    lab.run(Sums(rows(6)))
    before = masked(lab)
    lab.run(Sums(rows(6)), resume=True, **change)
    asked = lab.requests
    assert asked == (0 if change == {"instruction_template": "{prompt}"} else 6)
    lab.run(Sums(rows(6)), resume=True)
    assert lab.requests == 0
    assert masked(lab) == before


def test_another_model_never_inherits_scores(lab):
    lab.run(Sums(rows(6)))
    lab.server.answer = lambda _body: "never"
    lab.service = {"model": "other"}
    bundle = lab.run(Sums(rows(6)), resume=True)
    assert lab.requests == 6
    assert bundle["benchmark"]["scores"]["pass@1"].value == 0.0


def test_another_endpoint_asks_again_but_a_declared_identity_may_move(lab):
    lab.service = {"declared_identity": "the-model"}
    lab.run(Sums(rows(4)))
    lab.service = {"declared_identity": "the-model", "urls": [f"{lab.server.url}/v1/chat/completions?moved=1"]}
    lab.run(Sums(rows(4)), resume=True)
    assert lab.requests == 0
    lab.service = {"urls": [f"{lab.server.url}/v1/chat/completions?moved=1"]}
    lab.run(Sums(rows(4)), resume=True)
    assert lab.requests == 4


def test_limits_retries_and_time_outs_are_no_part_of_identity(lab):
    lab.run(Sums(rows(4)))
    lab.service = {"max_concurrent": 3, "request_timeout": 9.0, "max_retries": 2}
    env = Sums(rows(4))
    env.data_identity = dict  # nothing is known of the data, so the cell is walked through again
    lab.run(env, resume=True, max_concurrent=2, timeout=77.0)
    assert lab.requests == 0


def test_a_row_inserted_in_front_moves_labels_and_asks_one_row(lab):
    lab.run(Sums(rows(5, start=10)))
    bundle = lab.run(Sums([("1+1", "2"), *rows(5, start=10)]), resume=True)
    assert lab.requests == 1
    for log in ("trajectories.jsonl", "results.jsonl"):
        assert [line["problem_idx"] for line in lab.lines(log)] == [0, 1, 2, 3, 4, 5]
    assert [line["step_id"] for line in lab.lines("trajectories.jsonl")] == [f"p{n}_r0" for n in range(6)]
    assert bundle["counts"]["scored"] == 6


def test_a_moved_run_directory_is_continued(lab, tmp_path):
    lab.run(Sums(rows(5)))
    moved = tmp_path / "elsewhere"
    lab.path.rename(moved)
    lab.run(Sums(rows(6)), resume=True, path=moved)
    assert lab.requests == 1


def test_equal_problems_are_each_attempted_and_each_found_again(lab):
    data = [("1+1", "2")] * 3 + [("2+2", "4")]
    bundle = lab.run(Sums(data))
    assert lab.requests == 4
    assert bundle["benchmark"]["samples"] == 4
    lab.run(Sums([*data, ("1+1", "2")]), resume=True)
    assert lab.requests == 1


def test_more_repeats_ask_only_the_new_ones(lab):
    lab.run(Sums(rows(5)), repeats=2)
    bundle = lab.run(Sums(rows(5)), repeats=5, resume=True)
    assert lab.requests == 15
    assert bundle["benchmark"]["scores"]["pass@5"].n == 5


def test_fewer_problems_keep_the_rest_for_later(lab):
    lab.run(Sums(rows(10)))
    bundle = lab.run(Sums(rows(10)), resume=True, max_problems=4)
    assert (lab.requests, bundle["n_results"]) == (0, 4)
    bundle = lab.run(Sums(rows(10)), resume=True)
    assert (lab.requests, bundle["n_results"]) == (0, 10)
    assert lab.lines("superseded.jsonl") == []


def test_an_error_is_never_known(lab):
    lab.server.rule = lambda body, _n: Fault(status=503) if body["messages"][-1]["content"] == "1+1" else None
    assert lab.run(Sums(rows(5)), max_error_rate=1.0)["counts"]["error"] == 1
    lab.server.rule = None
    bundle = lab.run(Sums(rows(5)), resume=True)
    assert lab.requests == 1
    assert bundle["counts"]["error"] == 0


def test_what_a_service_refused_for_good_is_asked_again_only_on_request(lab):
    lab.server.rule = lambda body, _n: Fault(status=400) if body["messages"][-1]["content"] == "1+1" else None
    assert lab.run(Sums(rows(5)), max_error_rate=1.0)["counts"]["error"] == 1
    assert lab.requests == 5
    lab.server.rule = None
    bundle = lab.run(Sums(rows(5)), resume=True, max_error_rate=1.0)
    assert lab.requests == 0
    bundle = lab.run(Sums(rows(5)), resume=True, max_error_rate=1.0, retry_errors="all")
    assert lab.requests == 1
    assert bundle["counts"]["error"] == 0


def test_an_unscored_answer_is_measured_again_without_a_request(lab):
    mood = {"reward": None, "outcome": Outcome.UNSCORED}
    env = Sums(rows(4), verify=lambda *_: VerifyResult(**mood))
    assert lab.run(env)["counts"]["unscored"] == 4
    mood = {"reward": 1.0}
    bundle = lab.run(env, resume=True)
    assert lab.requests == 0
    assert bundle["counts"] == {"planned": 4, "attempted": 4, "scored": 4, "unscored": 0, "error": 0}


def test_a_scorer_that_crashed_is_run_again_without_a_request(lab):
    def broken(*_):
        raise ZeroDivisionError

    lab.run(Sums(rows(4), verify=broken), max_error_rate=1.0)
    bundle = lab.run(Sums(rows(4)), resume=True)
    assert lab.requests == 0
    assert bundle["counts"]["scored"] == 4


def test_a_damaged_line_is_reported_and_redone(lab):
    lab.run(Sums(rows(5)))
    log = lab.path / "sums" / "trajectories.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    lines[2] = b"#" * (len(lines[2]) - 1) + b"\n"
    log.write_bytes(b"".join(lines))
    bundle = lab.run(Sums(rows(6)), resume=True)
    assert lab.requests == 2
    assert bundle["counts"]["scored"] == 6


@pytest.mark.parametrize("log", ["trajectories.jsonl", "results.jsonl"])
def test_a_log_cut_anywhere_ends_in_the_same_files(lab, log):
    data = rows(4)
    lab.run(Sums(data))
    before = masked(lab)
    whole = (lab.path / "sums" / log).read_bytes()
    for length in range(0, len(whole), 97):
        (lab.path / "sums" / log).write_bytes(whole[:length])
        env = Sums(data)
        env.data_identity = dict
        lab.run(env, resume=True)
        assert lab.requests <= (4 if log == "trajectories.jsonl" else 0)
        assert masked(lab) == before


def test_a_score_without_its_attempt_counts_for_nothing(lab):
    lab.run(Sums(rows(3)))
    (lab.path / "sums" / "trajectories.jsonl").write_bytes(b"")
    lab.server.answer = lambda body: "none" if body["messages"][-1]["content"] == "0+0" else add(body)
    env = Sums(rows(3))
    env.data_identity = dict
    bundle = lab.run(env, resume=True)
    assert lab.requests == 3
    assert bundle["counts"]["scored"] == 3


def test_the_run_s_own_secret_is_replaced_before_scoring(lab, tmp_path):
    import asyncio

    from nel.engine.cell import plan_cell
    from nel.engine.session import CellKey, Session
    from nel.engine.settings import EvaluationSettings
    from nel.inference.client import ModelClient
    from nel.solvers.simple import simple_solver

    secret = "sk-very-secret-value-123"
    lab.server.answer = lambda _body: f"the key is {secret}"

    async def main():
        client = ModelClient(lab.settings())
        env = Sums([("1+1", "the key is [redacted]")])
        plan = await plan_cell(env, simple_solver(client), EvaluationSettings())
        with Session.open(tmp_path / "r", resume=False, secrets=[secret]) as session:
            result = await session.evaluate(CellKey("sums", "fake"), plan, directory="sums")
        await client.close()
        return result.bundle

    assert asyncio.run(main())["benchmark"]["scores"]["pass@1"].value == 1.0
    assert all(secret.encode() not in path.read_bytes() for path in (tmp_path / "r").rglob("*") if path.is_file())
