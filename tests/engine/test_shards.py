"""Shards cover a run exactly, and merged they equal the run that was not sharded."""

import msgspec
import pytest
from conftest_engine import Sums, rows
from hypothesis import given
from hypothesis import strategies as st
from openai_faults import Fault

from nel.core.errors import RunDirError, UsageError
from nel.core.rundir import RunDir
from nel.engine.merge import merge_results
from nel.engine.selection import Shard, get_shard_range, shard_from_environment
from nel.observability.volatile import mask


@given(st.integers(0, 5000), st.integers(1, 60))
def test_shards_cover_every_problem_once_and_differ_by_one_at_most(total, shards):
    ranges = [get_shard_range(total, index, shards) for index in range(shards)]
    assert [n for start, end in ranges for n in range(start, end)] == list(range(total))
    sizes = {end - start for start, end in ranges}
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize(
    ("environ", "shard"),
    [
        ({}, None),
        ({"NEL_SHARD_IDX": "2", "NEL_TOTAL_SHARDS": "5"}, Shard(2, 5)),
        ({"SLURM_ARRAY_TASK_ID": "3", "SLURM_ARRAY_TASK_COUNT": "4"}, Shard(3, 4)),
        ({"SLURM_ARRAY_TASK_ID": "4", "SLURM_ARRAY_TASK_COUNT": "4", "SLURM_ARRAY_TASK_MIN": "1"}, Shard(3, 4)),
    ],
    ids=str,
)
def test_the_shard_comes_from_the_environment(environ, shard):
    assert shard_from_environment(environ) == shard


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"NEL_SHARD_IDX": "5", "NEL_TOTAL_SHARDS": "5"}, "shard 5 of 5 does not exist"),
        ({"NEL_SHARD_IDX": "1"}, "NEL_TOTAL_SHARDS is not set"),
        ({"NEL_SHARD_IDX": "one", "NEL_TOTAL_SHARDS": "5"}, "must be whole numbers"),
        ({"SLURM_ARRAY_TASK_ID": "9", "SLURM_ARRAY_TASK_COUNT": "4"}, "shard 9 of 4 does not exist"),
    ],
)
def test_a_shard_that_makes_no_sense_is_refused(environ, said):
    with pytest.raises(UsageError, match=said):
        shard_from_environment(environ)


def run_shards(lab, data, total, monkeypatch, path, indexes=None, **config):
    for index in indexes if indexes is not None else range(total):
        monkeypatch.setenv("NEL_SHARD_IDX", str(index))
        monkeypatch.setenv("NEL_TOTAL_SHARDS", str(total))
        lab.run(Sums(data), path=path, **config)
    monkeypatch.delenv("NEL_SHARD_IDX")
    monkeypatch.delenv("NEL_TOTAL_SHARDS")


def files(cell):
    return {
        name: [mask(msgspec.json.decode(line), name) for line in (cell / name).read_bytes().splitlines()]
        for name in ("trajectories.jsonl", "results.jsonl")
    } | {
        name: mask(msgspec.json.decode((cell / name).read_bytes()), name)
        for name in ("eval-sums.json", "runtime_stats.json", "failure_analysis.json")
    }


@pytest.mark.parametrize("seed", [None, 7])
def test_a_merged_run_equals_an_unsharded_one(lab, tmp_path, monkeypatch, seed):
    data = [*rows(9), ("1+1", "2"), ("2+2", "5"), ("1+1", "2")]  # equal problems fall into different shards
    lab.server.rule = lambda body, _n: Fault(status=400) if body["messages"][-1]["content"] == "5+5" else None
    settings = {"repeats": 2, "shuffle_seed": seed, "max_error_rate": 1.0}
    lab.run(Sums(data), path=tmp_path / "whole", **settings)
    run_shards(lab, data, 3, monkeypatch, tmp_path / "parts", **settings)
    merged = merge_results(tmp_path / "parts")
    assert files(merged / "sums") == files(tmp_path / "whole" / "sums")


def test_a_merged_run_can_be_continued_without_a_request(lab, tmp_path, monkeypatch):
    run_shards(lab, rows(10), 2, monkeypatch, tmp_path / "parts")
    merged = merge_results(tmp_path / "parts")
    lab.run(Sums(rows(10)), path=merged, resume=True)
    assert lab.requests == 0
    lab.run(Sums(rows(12)), path=merged, resume=True)
    assert lab.requests == 2


def test_a_shard_is_a_run_directory_of_its_own(lab, tmp_path, monkeypatch):
    run_shards(lab, rows(10), 2, monkeypatch, tmp_path / "parts", [1])
    assert RunDir.read(tmp_path / "parts" / "shard_1").shard == {"index": 1, "total": 2}
    assert [line["problem_idx"] for line in lab.lines("results.jsonl", tmp_path / "parts" / "shard_1")] == [
        5,
        6,
        7,
        8,
        9,
    ]


def test_missing_shards_are_named(lab, tmp_path, monkeypatch):
    run_shards(lab, rows(10), 4, monkeypatch, tmp_path / "parts", [0, 2])
    with pytest.raises(RunDirError, match=r"2 of 4 shards are missing: 1, 3"):
        merge_results(tmp_path / "parts")


def test_shards_of_another_plan_are_refused(lab, tmp_path, monkeypatch):
    run_shards(lab, rows(10), 2, monkeypatch, tmp_path / "parts", [0])
    run_shards(lab, rows(10), 2, monkeypatch, tmp_path / "parts", [1], generation={"temperature": 1.0})
    with pytest.raises(RunDirError, match="another plan"):
        merge_results(tmp_path / "parts")


def test_another_total_than_recorded_is_refused(lab, tmp_path, monkeypatch):
    run_shards(lab, rows(10), 2, monkeypatch, tmp_path / "parts", [0])
    with pytest.raises(RunDirError, match="shard"):
        run_shards(lab, rows(10), 3, monkeypatch, tmp_path / "parts", [0], resume=True)
