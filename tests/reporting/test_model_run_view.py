"""A run of models as the read model: numbers from the bundles, attempts from the logs, failures with their reasons."""

import json

import msgspec
import pytest
from real_run import Adder, Sums, evaluate

from nel.core.errors import RecordError
from nel.core.rundir import RunDir, Stage
from nel.engine.checkpoint import CheckpointManager
from nel.engine.loop import CellAbortedError
from nel.observability.records import Outcome
from nel.reporting.run_view import Direction, Means, open_run


def only_cell(path, **options):
    view = open_run(path, **options)
    (cell,) = view.cells()
    return view, cell


def units(path, **options):
    view, cell = only_cell(path, **options)
    return list(view.units(cell))


def test_a_cell_has_the_numbers_of_its_bundle(tmp_path):
    bundle = evaluate(tmp_path, solver=Adder(wrong=(2,), down=(3,), unreadable=(4,)), repeats=2)
    _, cell = only_cell(tmp_path)
    scores = bundle["benchmark"]["scores"]
    assert (cell.key, cell.name, cell.benchmark) == ("sums", "sums", "sums")
    assert (cell.headline, cell.problems, cell.repeats) == ("pass@1", 6, 2)
    assert set(cell.metrics) == set(scores)
    for name, metric in cell.metrics.items():
        stored = msgspec.to_builtins(scores[name])
        assert {field: getattr(metric, field) for field in stored} == stored
    assert msgspec.to_builtins(cell.counts) == {"planned": 12, "scored": 8, "unscored": 2, "error": 2}
    assert cell.means == Means(excluding_errors=0.75, errors_as_zero=0.6)
    assert cell.categories["odd"].error == 2
    assert cell.runtime.total_steps == 12
    assert cell.failures.categories["rate_limit"].count == 2
    assert cell.data["source"] == "sums"
    assert cell.identity["solver"]["solver"].endswith("Adder")
    assert cell.config["max_error_rate"] == 1.0
    assert cell.bundle == "sums/eval-sums.json"


def test_a_metric_knows_its_direction_and_what_it_is_the_mean_of(tmp_path):
    evaluate(tmp_path, repeats=2)
    _, cell = only_cell(tmp_path)
    known = {name: (metric.unit, metric.direction, metric.of) for name, metric in cell.metrics.items()}
    assert known == {
        "pass@1": ("fraction", Direction.HIGHER, "reward"),
        "pass@2": ("fraction", Direction.HIGHER, None),
        "pass^2": ("fraction", Direction.HIGHER, None),
        "scorer:length": ("", Direction.UNKNOWN, "length"),
    }
    assert cell.categories["odd"].direction is Direction.HIGHER


def test_units_are_the_attempts_with_every_metric(tmp_path):
    evaluate(tmp_path, solver=Adder(wrong=(1,), down=(2,), unreadable=(3,)), repeats=2)
    found = units(tmp_path)
    assert [(unit.problem_idx, unit.repeat) for unit in found] == [(idx, rep) for idx in range(6) for rep in range(2)]
    by_problem = {unit.problem_id: unit for unit in found}
    assert by_problem["s0"].values == {"reward": 1.0, "length": 1.0}
    assert by_problem["s1"].values["reward"] == 0.0
    assert (by_problem["s2"].outcome, by_problem["s2"].values["reward"]) == (Outcome.ERROR, None)
    assert by_problem["s2"].failure_category == "rate_limit"
    assert (by_problem["s3"].outcome, by_problem["s3"].values["reward"]) == (Outcome.UNSCORED, None)
    assert (by_problem["s5"].cluster, by_problem["s5"].category) == ("page 2", "odd")
    assert (by_problem["s5"].tokens, by_problem["s5"].latency_ms) == (6, 15.0)


def test_the_mean_of_the_units_is_the_headline(tmp_path):
    evaluate(tmp_path, solver=Adder(wrong=(1,), down=(2,)))
    view, cell = only_cell(tmp_path)
    rewards = [unit.values[cell.headline_metric.of] for unit in view.units(cell) if unit.outcome is Outcome.SCORED]
    assert sum(rewards) / len(rewards) == cell.headline_metric.value


def test_a_unit_is_known_by_what_was_asked_and_expected_not_by_the_answer_or_the_run(tmp_path):
    evaluate(tmp_path / "a")
    evaluate(tmp_path / "b", solver=Adder(wrong=(0, 1)), max_problems=4)
    evaluate(tmp_path / "c", env=Sums(gold=2))
    keys = {name: [unit.unit_key for unit in units(tmp_path / name)] for name in "abc"}
    assert keys["b"] == keys["a"][:4]
    assert not set(keys["a"]) & set(keys["c"])
    assert len(set(keys["a"])) == 6


def test_repeats_of_a_problem_share_their_key(tmp_path):
    evaluate(tmp_path, repeats=3)
    assert len({unit.unit_key for unit in units(tmp_path)}) == 6


def test_the_detail_of_a_unit_is_what_was_sent_answered_and_graded(tmp_path):
    evaluate(tmp_path, solver=Adder(wrong=(4,)))
    view, cell = only_cell(tmp_path)
    unit = next(unit for unit in view.units(cell) if unit.problem_idx == 4)
    detail = view.detail(cell, unit)
    assert detail.messages == [{"role": "system", "content": "Add."}, {"role": "user", "content": "4+1?"}]
    assert (detail.answer, detail.extracted, detail.expected) == ("0", "0", "5")
    assert detail.scoring["metrics"] == {"length": {"value": 1.0}}
    assert detail.metadata == {"row": 4}


def test_the_detail_of_an_error_is_its_message_and_what_would_have_been_asked(tmp_path):
    evaluate(tmp_path, solver=Adder(down=(0,)))
    view, cell = only_cell(tmp_path)
    detail = view.detail(cell, next(iter(view.units(cell))))
    assert detail.error == "HTTP 429: slow down"
    assert detail.messages == [{"role": "user", "content": "0+1?"}]


def test_a_long_answer_comes_back_from_the_blobs(tmp_path):
    text = "4" * (2 << 20)
    evaluate(tmp_path, env=Sums(1), solver=Adder(answer=text))
    view, cell = only_cell(tmp_path)
    assert (tmp_path / "sums" / "blobs").is_dir()
    assert view.detail(cell, next(iter(view.units(cell)))).answer == text


def test_a_failed_cell_is_there_with_its_reason_and_without_numbers(tmp_path):
    with pytest.raises(CellAbortedError):
        evaluate(tmp_path, solver=Adder(down=(3,)), error_policy="abort")
    view, cell = only_cell(tmp_path)
    assert view.manifest.stage is Stage.FAILED
    assert cell.stage is Stage.FAILED
    assert "HTTP 429" in cell.error
    assert (cell.headline, cell.metrics, cell.categories) == (None, {}, {})
    assert cell.failures.categories["rate_limit"].count == 1


def test_a_cell_that_failed_before_it_had_a_directory_is_there_too(tmp_path):
    evaluate(tmp_path)
    CheckpointManager(tmp_path).fail("mmlu/m", "no such file: questions.jsonl")
    ok, failed = open_run(tmp_path).cells()
    assert ok.stage is Stage.COMPLETED
    assert (failed.name, failed.stage, failed.error) == ("mmlu/m", Stage.FAILED, "no such file: questions.jsonl")
    assert list(open_run(tmp_path).units(failed)) == []


def test_an_interrupted_cell_keeps_its_partial_numbers_and_says_so(tmp_path):
    evaluate(tmp_path)
    CheckpointManager(tmp_path).interrupt("sums")
    _, cell = only_cell(tmp_path)
    assert cell.stage is Stage.INTERRUPTED
    assert cell.metrics["pass@1"].value == 1.0


@pytest.mark.parametrize(("stage", "expected"), [("running", "running"), ("failed", "interrupted")])
def test_a_cell_without_an_end_is_running_only_while_its_run_is(tmp_path, stage, expected):
    with RunDir.open(tmp_path, kind="models", resume=False) as run:
        run.cell_dir("gsm8k/m", "gsm8k", benchmark="gsm8k", model="m", variant="")
        run.update(stage=Stage(stage))
    _, cell = only_cell(tmp_path, unfinished=True)
    assert (cell.stage, cell.model, cell.metrics) == (expected, "m", {})


def test_of_an_uncompacted_log_the_last_lines_count(tmp_path):
    evaluate(tmp_path, solver=Adder(wrong=(1,)))
    for log in ("trajectories.jsonl", "results.jsonl"):
        path = tmp_path / "sums" / log
        lines = path.read_bytes().splitlines(keepends=True)
        again = [line.replace(b'"reward":0.0', b'"reward":1.0') for line in lines[1:3]]
        path.write_bytes(b"".join([*reversed(lines), *again]))
    found = units(tmp_path)
    assert [unit.problem_idx for unit in found] == list(range(6))
    assert [unit.values["reward"] for unit in found] == [1.0] * 6
    view, cell = only_cell(tmp_path)
    assert view.detail(cell, found[1]).messages[-1]["content"] == "1+1?"


def test_logs_that_run_apart_are_joined(tmp_path):
    evaluate(tmp_path)
    path = tmp_path / "sums" / "trajectories.jsonl"
    path.write_bytes(b"".join(reversed(path.read_bytes().splitlines(keepends=True))))
    view, cell = only_cell(tmp_path)
    found = list(view.units(cell))
    assert [view.detail(cell, unit).messages[-1]["content"] for unit in found] == [f"{idx}+1?" for idx in range(6)]


def test_a_completed_cell_without_rows_is_refused_when_its_units_are_read(tmp_path):
    evaluate(tmp_path)
    (tmp_path / "sums" / "results.jsonl").unlink()
    with pytest.raises(RecordError, match=r"results.jsonl is missing.*\n.*--resume"):
        units(tmp_path)


def test_a_damaged_row_of_a_completed_cell_is_named(tmp_path):
    evaluate(tmp_path)
    path = tmp_path / "sums" / "results.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2][:20] + b"\n"
    path.write_bytes(b"".join(lines))
    with pytest.raises(RecordError, match=r"results.jsonl:3: "):
        units(tmp_path)


def test_rows_without_a_bundle_make_a_failed_cell(tmp_path):
    evaluate(tmp_path)
    (tmp_path / "sums" / "eval-sums.json").unlink()
    _, cell = only_cell(tmp_path)
    assert cell.stage is Stage.FAILED
    assert "no eval-*.json" in cell.error
    assert cell.data["source"] == "sums"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b'{"benchmark": {"name"', "not JSON"),
        (b"{}", "benchmark"),
        (b'{"benchmark": {"name": "x", "scores": {"pass@1": {"value": NaN}}}}', "not JSON"),
        (b'{"benchmark": {"name": "x", "scores": {"pass@1": {"value": "high"}}}}', "scores"),
    ],
)
def test_a_bundle_that_cannot_be_read_fails_its_cell_and_not_the_run(tmp_path, content, reason):
    evaluate(tmp_path)
    (tmp_path / "sums" / "eval-sums.json").write_bytes(content)
    _, cell = only_cell(tmp_path)
    assert cell.stage is Stage.FAILED
    assert cell.error.startswith("sums/eval-sums.json: ")
    assert reason in cell.error


def test_a_checkpoint_that_cannot_be_read_is_named(tmp_path):
    evaluate(tmp_path)
    (tmp_path / "checkpoint.json").write_text('{"completed_benchmarks": 3}')
    with pytest.raises(RecordError, match=r"checkpoint.json: "):
        open_run(tmp_path).cells()


def test_a_bundle_path_cannot_lead_out_of_the_run(tmp_path):
    evaluate(tmp_path / "run")
    (tmp_path / "eval-other.json").write_text("{}")
    file = tmp_path / "run" / "checkpoint.json"
    checkpoint = json.loads(file.read_text())
    checkpoint["completed_benchmarks"]["sums"]["bundle_path"] = "../eval-other.json"
    file.write_text(json.dumps(checkpoint))
    with pytest.raises(RecordError, match="outside"):
        open_run(tmp_path / "run").cells()
