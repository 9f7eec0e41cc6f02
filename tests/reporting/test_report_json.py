"""The JSON report: stable keys, unrounded numbers, every cell."""

import json

from memory_run import MemoryRun, cell, estimate
from real_run import Adder, evaluate

from nel.core.rundir import Stage
from nel.reporting.formats import render
from nel.reporting.run_view import open_run


def report(run):
    return json.loads(render(run, "json"))


def test_a_real_run_has_the_bundles_numbers_unrounded(tmp_path):
    bundle = evaluate(tmp_path, solver=Adder(wrong=(1, 2), down=(3,)), repeats=2)
    found = report(open_run(tmp_path))
    assert (found["schema"], found["run_id"], found["stage"]) == ("nel.report/1", bundle["run_id"], "completed")
    sums = found["benchmarks"]["sums"]
    assert (sums["samples"], sums["repeats"], sums["headline"]) == (6, 2, "pass@1")
    for name, estimated in bundle["benchmark"]["scores"].items():
        assert sums["scores"][name]["value"] == estimated.value
        assert sums["scores"][name]["ci_lower"] == estimated.ci_lower
    assert sums["categories"]["odd"]["mean_reward"] == sums["categories"]["odd"]["value"]
    assert sums["counts"] == {"planned": 12, "scored": 10, "unscored": 0, "error": 2}
    assert sums["means"] == {"excluding_errors": 0.6, "errors_as_zero": 0.5}
    assert (sums["total_tokens"], sums["latency_p50_ms"]) == (60, 12.0)
    assert sums["failures"]["categories"]["rate_limit"]["count"] == 2
    assert sums["data"]["source"] == "sums"


def test_every_key_is_there_whatever_became_of_the_cell():
    failed = cell("mmlu", stage=Stage.FAILED, error="no data", metrics={}, headline=None)
    found = report(MemoryRun(cell(), failed))["benchmarks"]
    assert set(found["mmlu"]) == set(found["gsm8k"])
    assert (found["mmlu"]["stage"], found["mmlu"]["error"], found["mmlu"]["scores"]) == ("failed", "no data", {})
    assert found["mmlu"]["total_tokens"] is None


def test_one_model_is_named_and_several_are_listed():
    assert report(MemoryRun(cell(model="a"), cell("b", model="a")))["model"] == "a"
    found = report(MemoryRun(cell(model="a"), cell("b", model="b")))
    assert (found["model"], found["models"], found["n_benchmarks"]) == (None, ["a", "b"], 2)


def test_an_absent_number_is_null_and_a_bound_of_zero_is_zero():
    metrics = {"pass@1": estimate(0.0, ci_lower=0.0), "mean_reward": estimate(None, ci_lower=None)}
    scores = report(MemoryRun(cell(metrics=metrics)))["benchmarks"]["gsm8k"]["scores"]
    assert scores["pass@1"]["ci_lower"] == 0.0
    assert scores["mean_reward"]["value"] is None


def test_warnings_are_those_of_the_other_reports():
    run = MemoryRun(cell(), stage=Stage.INTERRUPTED)
    assert report(run)["warnings"] == ["The run was interrupted; --resume continues it."]


def test_texts_are_kept_as_they_are():
    found = report(MemoryRun(cell('a"b\n漢<x>', model="m|n")))
    assert found["benchmarks"]['a"b\n漢<x>']["model"] == "m|n"
