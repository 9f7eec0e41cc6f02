"""Stored answers are measured again without a model, wherever the run directory lies."""

import asyncio

from conftest_engine import Sums, rows

from nel.core.rundir import RunDir
from nel.engine.rescore import rescore_cell
from nel.engine.session import Session
from nel.environments.base import VerifyResult


def rescore(path, env):
    async def main():
        with Session.open(path, resume=True) as session:
            (key,) = session.run.manifest.cells
            await rescore_cell(session, key, env)

    asyncio.run(main())


def no_data(**options):
    """The benchmark's scorers without its rows."""
    return Sums([], **options)


def test_rescoring_needs_neither_data_nor_endpoint(lab, tmp_path):
    lab.run(Sums(rows(10)))
    lab.server.rule = None
    before = lab.lines("trajectories.jsonl")
    moved = tmp_path / "moved"
    lab.path.rename(moved)
    env = no_data(
        scorer_version="2", verify=lambda response, expected, _m: VerifyResult(reward=float(response != expected))
    )
    rescore(moved, env)
    assert env.verified == 10
    assert [line["reward"] for line in lab.lines("results.jsonl", moved)] == [0, 0, 0, 1, 0, 0, 0, 0, 0, 0]
    assert lab.lines("trajectories.jsonl", moved) == before
    assert len(lab.lines("superseded.jsonl", moved)) == 10


def test_rescoring_by_the_same_scorer_measures_nothing(lab):
    lab.run(Sums(rows(10)))
    env = no_data()
    rescore(lab.path, env)
    assert env.verified == 0


def test_rescoring_back_finds_the_earlier_scores(lab):
    lab.run(Sums(rows(10)))
    before = lab.lines("results.jsonl")
    rescore(lab.path, no_data(scorer_version="2", verify=lambda *_: VerifyResult(reward=0.5)))
    assert {line["reward"] for line in lab.lines("results.jsonl")} == {0.5}
    env = no_data()
    rescore(lab.path, env)
    assert env.verified == 0
    assert lab.lines("results.jsonl") == before


def test_a_rescored_run_is_what_a_resume_with_that_scorer_would_be(lab):
    lab.run(Sums(rows(10)))
    verify = lambda *_: VerifyResult(reward=0.5)
    rescore(lab.path, no_data(scorer_version="2", verify=verify))
    env = Sums(rows(10), scorer_version="2", verify=verify)
    bundle = lab.run(env, resume=True)
    assert (lab.requests, env.verified) == (0, 0)
    assert bundle["benchmark"]["scores"]["mean_reward"]["value"] == 0.5
    assert RunDir.read(lab.path).stage == "completed"
