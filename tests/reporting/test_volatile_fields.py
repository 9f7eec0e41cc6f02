"""Equal runs differ only in volatile fields: times, tries, cache hits, replica, host, run id, shard."""

import pytest
from real_run import Adder, Sums, evaluate

from nel.observability.volatile import VOLATILE, comparable, mask


def test_two_runs_of_the_same_are_equal(tmp_path):
    for name in ("a", "b"):
        evaluate(tmp_path / name, solver=Adder(wrong=(1,), down=(2,), unreadable=(3,)), repeats=2)
    assert (tmp_path / "a/manifest.json").read_bytes() != (tmp_path / "b/manifest.json").read_bytes()
    first, second = comparable(tmp_path / "a"), comparable(tmp_path / "b")
    assert first == second
    assert set(first) == {
        "manifest.json",
        "checkpoint.json",
        "sums/trajectories.jsonl",
        "sums/results.jsonl",
        "sums/eval-sums.json",
        "sums/runtime_stats.json",
        "sums/failure_analysis.json",
    }
    assert len(first["sums/results.jsonl"]) == 12


@pytest.mark.parametrize(
    ("other", "differs"),
    [
        ({"solver": Adder(wrong=(1, 4))}, "sums/results.jsonl"),
        ({"solver": Adder(wrong=(1,), answer="7")}, "sums/trajectories.jsonl"),
        ({"env": Sums(5)}, "sums/eval-sums.json"),
        ({"max_error_rate": 0.5}, "sums/eval-sums.json"),
    ],
)
def test_runs_of_something_else_are_not_equal(tmp_path, other, differs):
    evaluate(tmp_path / "a", solver=Adder(wrong=(1,)))
    evaluate(tmp_path / "b", **{"solver": Adder(wrong=(1,)), **other})
    assert comparable(tmp_path / "a")[differs] != comparable(tmp_path / "b")[differs]


def test_an_earlier_run_in_the_same_directory_does_not_count(tmp_path):
    evaluate(tmp_path / "a")
    evaluate(tmp_path / "b", solver=Adder(wrong=(1,)))
    evaluate(tmp_path / "b")
    assert (tmp_path / "b" / "previous").is_dir()
    assert comparable(tmp_path / "a") == comparable(tmp_path / "b")


def test_masking_reaches_into_lists_and_leaves_the_record_alone():
    record = {
        "problem_idx": 3,
        "timestamp": 1.0,
        "model": {"content": "4", "latency_ms": 12.0, "tries": 3},
        "trajectory": [{"session_id": "x", "steps": [{"timestamp": "t", "message": "hi"}, {"message": "ho"}]}],
    }
    assert mask(record, "trajectories.jsonl") == {
        "problem_idx": 3,
        "model": {"content": "4"},
        "trajectory": [{"steps": [{"message": "hi"}, {"message": "ho"}]}],
    }
    assert record["model"]["latency_ms"] == 12.0


def test_a_bundle_is_known_by_its_pattern():
    assert mask({"run_id": "x", "n_results": 1}, "eval-gsm8k--qwen3-8b.json") == {"n_results": 1}


def test_a_record_of_an_unknown_file_is_refused():
    with pytest.raises(ValueError, match=r"report\.md holds no records") as caught:
        mask({}, "report.md")
    assert all(name in str(caught.value) for name in VOLATILE)
