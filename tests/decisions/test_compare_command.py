"""`nel compare` on real run directories: verdicts, exit codes, and what the page says."""

import json

import pytest
from decision_runs import make_run


def test_a_judge_score_that_fell_from_085_to_045_is_blocked(nel, judged):
    code, out, _ = nel("compare", *judged, "--format", "json")
    report = json.loads(out)
    one = report["comparisons"][0]
    assert (code, report["verdict"]) == (1, "BLOCK")
    assert -0.42 < one["difference"]["value"] < -0.38
    assert one["difference"]["ci_upper"] < -0.05
    assert one["test"]["kind"] == "permutation"
    assert one["test"]["p_value"] == pytest.approx(1 / 10_001)


def test_twenty_balanced_flips_of_500_pass(nel, balanced):
    code, out, _ = nel("compare", *balanced, "--max-drop", "0.05", "--format", "json")
    report = json.loads(out)
    one = report["comparisons"][0]
    assert (code, report["verdict"]) == (0, "PASS")
    assert one["test"]["kind"] == "mcnemar"
    assert one["test"]["p_value"] == 1.0
    flips = one["flips"]
    assert (flips["regressions"], flips["improvements"], flips["both_right"], flips["both_wrong"]) == (10, 10, 340, 140)
    assert one["difference"]["value"] == 0.0
    assert one["difference"]["mde"] == pytest.approx(2.8 * one["difference"]["stderr"], rel=0.01)
    assert one["difference"]["mde"] < 0.03, "in score units over all pairs, not over the 20 that differ"


def test_a_run_against_itself_passes(nel, balanced):
    code, out, _ = nel("compare", balanced[0], balanced[0])
    assert code == 0
    assert "PASS" in out


def test_a_small_drop_that_is_sure_is_a_warning(nel, tmp_path):
    baseline = make_run(tmp_path / "a", [1.0] * 400)
    candidate = make_run(tmp_path / "b", [0.0] * 8 + [1.0] * 392)
    code, out, _ = nel("compare", baseline, candidate)
    assert code == 2
    assert out.startswith("WARN")
    assert nel("compare", baseline, candidate, "--no-strict")[0] == 0


def test_too_few_problems_are_inconclusive_and_it_says_how_many_more_decide(nel, tmp_path):
    baseline = make_run(tmp_path / "a", [1.0, 0.0] * 30)
    candidate = make_run(tmp_path / "b", [1.0, 0.0] * 28 + [0.0, 1.0] * 2)
    code, out, _ = nel("compare", baseline, candidate, "--max-drop", "0.05", "--format", "json")
    one = json.loads(out)["comparisons"][0]
    assert (code, one["verdict"]) == (2, "INCONCLUSIVE")
    more = one["more_units"]
    assert f"{more} more problems" in one["reasons"][1]
    # Ask that many: the same shares now decide.
    from nel.decisions.evidence import PairedProportions
    from nel.decisions.verdict import Verdict, damage_interval, decide

    total = 60 + more
    enough = PairedProportions(2 * total / 60, 2 * total / 60, total)
    short = PairedProportions(2 * (total - 2) / 60, 2 * (total - 2) / 60, total - 2)
    assert decide(damage_interval(enough, -1), 0.05) is Verdict.PASS
    assert decide(damage_interval(short, -1), 0.05) is Verdict.INCONCLUSIVE


def test_where_lower_is_better_a_rise_is_damage(nel, judged):
    code, out, err = nel("compare", *judged, "--metric", "scorer:loss")
    assert code == 64
    assert "--direction" in err
    code, out, _ = nel("compare", *judged, "--metric", "scorer:loss", "--direction", "lower")
    assert (code, out[:5]) == (1, "BLOCK")
    code, out, _ = nel("compare", *judged, "--metric", "scorer:loss", "--direction", "higher")
    assert (code, out[:4]) == (0, "PASS")


def test_repeats_are_one_number_a_problem(nel, tmp_path):
    baseline = make_run(tmp_path / "a", [[1.0, 0.0, 1.0]] * 40 + [[0.0, 0.0, 1.0]] * 40)
    candidate = make_run(tmp_path / "b", [[1.0, 1.0]] * 30 + [[0.0, 0.0]] * 50)
    _, out, _ = nel("compare", baseline, candidate, "--format", "json")
    one = json.loads(out)["comparisons"][0]
    assert one["units"]["paired"] == 80
    assert (one["units"]["baseline_attempts"], one["units"]["candidate_attempts"]) == (240, 160)
    assert one["difference"]["value"] == pytest.approx(30 / 80 - 0.5)
    assert one["difference"]["method"] == "t, clustered by problem"
    assert one["test"]["kind"] == "permutation"
    assert any("repeats differ (3 and 2)" in text for text in one["warnings"])


def test_declared_clusters_widen_the_interval(nel, tmp_path):
    before = [1.0] * 200
    after = [0.0 if place // 10 in {3, 11} else 1.0 for place in range(200)]  # two whole pages are lost
    alone = make_run(tmp_path / "a", before), make_run(tmp_path / "b", after)
    paged = make_run(tmp_path / "c", before, cluster=10), make_run(tmp_path / "d", after, cluster=10)
    ones = [json.loads(nel("compare", *runs, "-f", "json")[1])["comparisons"][0] for runs in (alone, paged)]
    widths = [one["difference"]["ci_upper"] - one["difference"]["ci_lower"] for one in ones]
    assert widths[1] > 2 * widths[0]
    assert ones[1]["difference"]["method"] == "t, clustered by cluster"
    assert ones[0]["test"]["p_value"] < 0.001
    assert ones[1]["test"]["p_value"] == pytest.approx(0.5)  # two pages of twenty: 2 of 4 sign patterns are as far


def test_only_equal_content_is_paired_and_the_rest_is_counted(nel, tmp_path):
    baseline = make_run(tmp_path / "a", [1.0] * 40)
    candidate = make_run(tmp_path / "b", [1.0] * 40, first=10, gold={20: "another", 21: "another"})
    _, out, _ = nel("compare", baseline, candidate, "--format", "json")
    one = json.loads(out)["comparisons"][0]
    units = one["units"]
    assert (units["paired"], units["only_baseline"], units["only_candidate"], units["changed_gold"]) == (28, 10, 10, 2)
    assert any("another expected answer" in text for text in one["warnings"])


def test_errors_are_left_out_named_and_counted_both_ways(nel, tmp_path):
    baseline = make_run(tmp_path / "a", [1.0] * 40)
    candidate = make_run(tmp_path / "b", [None] * 4 + [1.0] * 36)
    _, out, _ = nel("compare", baseline, candidate, "--format", "json")
    one = json.loads(out)["comparisons"][0]
    assert one["units"]["paired"] == 36
    assert one["units"]["unmeasured"] == 4
    assert one["difference"]["value"] == 0
    assert "the candidate has 4 errors: its mean reward is 1.000 without them, 0.900 with each as 0" in one["warnings"]


def test_flips_come_with_both_answers(nel, balanced):
    _, out, _ = nel("compare", *balanced, "--show-flips", "--format", "markdown")
    assert "problem q0, even: 1.000 to 0.000" in out
    assert "- asked: question 0" in out
    assert "- expected: gold" in out
    assert out.index("- baseline: 1.0") < out.index("- candidate: 0.0")
    assert "Better: 10 of 10" in out


def test_correct_above_makes_flips_and_mcnemar_of_scores(nel, judged):
    code, _, err = nel("compare", *judged, "--test", "mcnemar")
    assert code == 64
    assert "--correct-above" in err
    _, out, _ = nel("compare", *judged, "--test", "mcnemar", "--correct-above", "0.6", "--format", "json")
    one = json.loads(out)["comparisons"][0]
    assert one["flips"]["regressions"] == one["test"]["worse"] > 150
    assert one["test"]["name"] == "McNemar, exact"


def test_one_sided_tests_only_damage(nel, judged):
    _, out, _ = nel("compare", judged[1], judged[0], "--one-sided", "--format", "json")
    test = json.loads(out)["comparisons"][0]["test"]
    assert test["alternative"] == "worse"
    assert test["p_value"] == 1.0


def test_categories_are_corrected_for_being_many(nel, tmp_path):
    before = [1.0] * 100
    after = [0.0 if place % 2 and place < 16 else 1.0 for place in range(100)]  # eight of the odd ones are lost
    runs = make_run(tmp_path / "a", before), make_run(tmp_path / "b", after)
    for flag, name in (("holm", "Holm"), ("bh", "Benjamini-Hochberg")):
        _, out, _ = nel("compare", *runs, "--correction", flag)
        assert f"p ({name})" in out
    _, out, _ = nel("compare", *runs, "--format", "json")
    even, odd = json.loads(out)["comparisons"][0]["categories"]
    assert (even["category"], odd["category"]) == ("even", "odd")
    assert (even["p_value"], even["p_adjusted"]) == (1.0, 1.0)
    assert odd["p_value"] == pytest.approx(2 / 2**8)
    assert odd["p_adjusted"] == pytest.approx(2 * odd["p_value"])


def test_runtime_and_cost_stand_beside_the_score(nel, balanced):
    _, out, _ = nel("compare", *balanced)
    assert "latency p50" in out
    assert "+100%" in out
    assert "cost per attempt" in out


def test_files_get_json_and_markdown_whatever_is_printed(nel, judged, tmp_path):
    code, out, _ = nel("compare", *judged, "--compact", "-o", tmp_path / "c.json", "--report", tmp_path / "c.md")
    assert code == 1
    assert json.loads((tmp_path / "c.json").read_text())["schema"] == "nel.comparison/1"
    assert (tmp_path / "c.md").read_text().startswith("# BLOCK: ")
    assert len(out.splitlines()) < 8, "compact is the verdict and the table"


def test_a_cell_directory_and_a_bundle_name_their_run(nel, judged):
    bundle = next((judged[0] / "graded").glob("eval-*.json"))
    for baseline in (judged[0] / "graded", bundle):
        code, out, _ = nel("compare", baseline, judged[1])
        assert (code, out[:5]) == (1, "BLOCK")


def test_verbose_shows_every_setting_that_differs(nel, judged):
    _, out, _ = nel("compare", *judged, "--verbose")
    assert "identity.solver" in out
    assert "--verbose" not in out
