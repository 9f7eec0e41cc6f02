"""The Markdown report: every cell, every count, every reason, and nothing that a name could break."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from memory_run import MemoryRun, cell, estimate
from real_run import Adder, evaluate

from nel.core.rundir import Stage
from nel.engine.checkpoint import CheckpointManager
from nel.reporting.formats import render
from nel.reporting.run_view import Counts, Means, open_run
from nel.reporting.text import one_line

PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def report(run):
    return render(run, "markdown")


def tables(page):
    """Under each heading, its tables as lists of rows of cells, as a reader sees them."""
    found, heading = {}, None
    tokens = PARSER.parse(page)
    for number, token in enumerate(tokens):
        if token.type == "heading_open":
            heading = tokens[number + 1].content
        elif token.type == "table_open":
            found.setdefault(heading, []).append([])
        elif token.type == "tr_open":
            found[heading][-1].append([])
        elif token.type == "inline" and tokens[number - 1].type in {"td_open", "th_open"}:
            text = "".join(child.content for child in token.children if child.type == "text")
            found[heading][-1][-1].append(text)
    return found


def results(run):
    ((head, *rows),) = tables(report(run))["Results"]
    return [dict(zip(head, row, strict=True)) for row in rows]


def warnings(run):
    page = report(run)
    if "## Warnings" not in page:
        return []
    section = page.split("## Warnings\n\n")[1].split("\n\n")[0]
    return [line.removeprefix("- ") for line in section.splitlines()]


def test_the_table_shows_value_interval_and_all_three_counts():
    run = MemoryRun(cell(counts=Counts(planned=105, scored=100, unscored=3, error=2), repeats=1))
    assert results(run) == [
        {
            "Cell": "gsm8k",
            "Model": "qwen3-8b",
            "Metric": "pass@1",
            "Value": "0.725",
            "95 % interval": "[0.630, 0.803]",
            "Problems × repeats": "100 × 1",
            "Scored": "100",
            "Unscored": "3",
            "Errors": "2",
            "Status": "completed",
        }
    ]


def test_an_interval_that_begins_at_zero_is_shown():
    run = MemoryRun(cell(metrics={"pass@1": estimate(0.0, ci_lower=0.0, ci_upper=0.037)}))
    assert (results(run)[0]["Value"], results(run)[0]["95 % interval"]) == ("0.000", "[0.000, 0.037]")


def test_a_single_repeat_of_a_binary_benchmark_has_an_interval(tmp_path):
    bundle = evaluate(tmp_path, solver=Adder(wrong=(1,)))
    estimated = bundle["benchmark"]["scores"]["pass@1"]
    (row,) = results(open_run(tmp_path))
    assert row["Problems × repeats"] == "6 × 1"
    assert row["95 % interval"] == f"[{estimated.ci_lower:.3f}, {estimated.ci_upper:.3f}]"


def test_two_models_and_two_variants_of_one_benchmark_are_rows_of_their_own():
    run = MemoryRun(
        cell("gsm8k--a", benchmark="gsm8k", model="a"),
        cell("gsm8k--b", benchmark="gsm8k", model="b"),
        cell("gsm8k--b--cot", benchmark="gsm8k", model="b", variant="cot"),
    )
    assert [(row["Cell"], row["Model"]) for row in results(run)] == [
        ("gsm8k--a", "a"),
        ("gsm8k--b", "b"),
        ("gsm8k--b--cot", "b"),
    ]
    assert ["Variant", "cot"] in tables(report(run))["gsm8k--b--cot"][0]


def test_a_failed_cell_is_a_row_and_the_first_warning():
    failed = cell("mmlu", stage=Stage.FAILED, error="row 3\nhas no `question`", headline=None, metrics={})
    failed.counts = Counts()
    run = MemoryRun(cell(counts=Counts(planned=100, scored=99, error=1)), failed)
    row = results(run)[1]
    assert (row["Cell"], row["Value"], row["Scored"], row["Status"]) == ("mmlu", "–", "–", "failed")
    assert warnings(run)[0] == r"mmlu: failed: row 3 has no \`question\`"


def test_a_failed_cell_of_a_real_run_is_reported(tmp_path):
    evaluate(tmp_path)
    CheckpointManager(tmp_path).fail("mmlu/m", "no such file: questions.jsonl")
    run = open_run(tmp_path)
    assert [row["Status"] for row in results(run)] == ["completed", "failed"]
    assert warnings(run) == ["mmlu/m: failed: no such file: questions.jsonl"]


def test_errors_bring_both_means():
    counts = Counts(planned=100, scored=98, error=2)
    run = MemoryRun(cell(counts=counts, means=Means(excluding_errors=0.725, errors_as_zero=0.711)))
    assert warnings(run) == [
        "gsm8k: 2 attempts not measured (errors): the mean reward is 0.725 without them, 0.711 with each as 0."
    ]


def test_a_degraded_cell_names_its_rate_and_the_limit():
    run = MemoryRun(
        cell(degraded=True, counts=Counts(planned=100, scored=90, error=10), config={"max_error_rate": 0.05})
    )
    assert results(run)[0]["Status"] == "degraded"
    assert warnings(run)[0] == "gsm8k: degraded: 10% of the planned attempts ended in errors, above the limit of 5%."


def test_what_is_unscored_or_missing_is_said():
    run = MemoryRun(cell(counts=Counts(planned=110, scored=100, unscored=1)))
    assert warnings(run) == [
        "gsm8k: 1 attempt answered but not graded: in no mean.",
        "gsm8k: 9 attempts planned but not made.",
    ]


@pytest.mark.parametrize(
    ("stage", "said"), [(Stage.INTERRUPTED, "--resume continues it"), (Stage.RUNNING, "has not finished")]
)
def test_a_run_that_did_not_finish_says_so_first(stage, said):
    run = MemoryRun(cell(stage=stage), stage=stage, finished=None)
    assert said in warnings(run)[0]
    assert warnings(run)[1] == f"gsm8k: {stage}; its numbers are missing or partial."


def test_an_estimate_without_value_or_interval_says_why():
    run = MemoryRun(
        cell("a", metrics={"pass@1": estimate(None, ci_lower=None, ci_upper=None)}),
        cell("b", metrics={"pass@1": estimate(1.0, ci_lower=None, ci_upper=None, method="none: one problem")}),
    )
    assert [row["95 % interval"] for row in results(run)] == ["–", "–"]
    assert warnings(run) == [
        "a: no attempt was scored, so there is no value.",
        "b: pass@1 has no interval: none: one problem.",
    ]


def test_warnings_of_the_run_and_its_error_are_shown():
    run = MemoryRun(cell(), stage=Stage.FAILED, error="disk full", warnings=["2 lines were cut"])
    assert warnings(run) == ["The run ended with an error: disk full", "2 lines were cut"]


def test_a_clean_run_has_no_warnings():
    assert warnings(MemoryRun(cell())) == []


def test_a_run_without_cells_says_so():
    assert "The run has no cells." in report(MemoryRun())


def test_another_level_stands_beside_its_interval():
    run = MemoryRun(cell(metrics={"pass@1": estimate(level=0.9)}))
    assert results(run)[0]["95 % interval"] == "[0.630, 0.803] (90%)"


def test_the_head_says_which_run_when_and_made_by_what():
    page = report(MemoryRun(cell(), shard={"index": 1, "total": 4}))
    assert page.startswith("# Evaluation report: 20260301T120000Z-00c0ffee\n")
    facts = dict(tables(page)["Evaluation report: 20260301T120000Z-00c0ffee"][0])
    assert facts["Started"] == "2026-03-01 12:00:00 UTC"
    assert facts["Finished"] == "2026-03-01 12:02:00 UTC (after 2m00s)"
    assert facts["Software"] == "nel 0.1.0, Python 3.12.1, Linux"
    assert facts["Shard"] == "index=1, total=4"


def test_a_real_cell_shows_categories_runtime_failures_with_texts_and_identity(tmp_path):
    evaluate(tmp_path, solver=Adder(wrong=(1,), down=(3,), unreadable=(4,)), repeats=2)
    found = tables(report(open_run(tmp_path)))
    categories = {row[0]: row for row in found["Categories"][0]}
    assert categories["odd"][1:3] == ["0.500", "[0.095, 0.905]"]
    assert categories["odd"][5:] == ["4", "0", "2"]
    runtime = dict(found["Runtime"][0])
    assert runtime["Latency p50 / p90 / p99"] == "12ms / 15ms / 15ms"
    assert runtime["Tokens"] == "60 (50 prompt, 10 completion)"
    counts, examples = found["Failures"]
    assert counts[1][:6] == ["rate_limit", "2", "16.7%", "2", "0", "0"]
    assert examples[1] == ["rate_limit", "s3", "0", "HTTP 429: slow down", "3+1?", "–"]
    assert ["unscorable", "s4", "0", "unscorable", "4+1?", "?"] in examples
    identity = dict(found["Identity"][0])
    assert identity["data.source"] == "sums"
    assert identity["nel"]


def test_categories_without_end_are_cut_and_the_rest_is_named():
    categories = {f"c{number}": estimate() for number in range(1300)}
    page = report(MemoryRun(cell(categories=categories, bundle="gsm8k/eval-gsm8k.json")))
    assert [row[0] for row in tables(page)["Categories"][0][1:]] == [f"c{number}" for number in range(200)]
    assert "1,100 more categories are in gsm8k/eval-gsm8k.json." in page


def test_a_report_of_damaged_logs_is_still_a_report(tmp_path):
    evaluate(tmp_path, solver=Adder(down=(3,)))
    (tmp_path / "sums" / "results.jsonl").unlink()
    _, examples = tables(report(open_run(tmp_path)))["Failures"]
    assert examples[1] == ["rate_limit", "3", "0", "HTTP 429: slow down", "–", "–"]


def test_an_endpoint_is_shown_without_its_credentials_and_a_long_prompt_with_its_digest():
    prompt = "Be careful. " * 100
    config = {"base_url": "https://me:secret@host/v1?api_key=secret", "system_prompt": prompt, "generation": {"n": 1}}
    page = report(MemoryRun(cell(config=config)))
    identity = dict(tables(page)["Identity"][0])
    assert identity["base_url"] == "https://host/v1"
    assert identity["generation"] == "n=1"
    assert identity["system_prompt"].startswith("Be careful. Be careful.")
    assert "1,200 characters, sha256 " in identity["system_prompt"]
    assert "secret" not in page


NAME = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30).map(one_line).filter(bool)


@given(name=NAME, model=NAME, category=NAME, error=NAME)
@settings(deadline=None, max_examples=100)
def test_no_name_can_break_a_table(name, model, category, error):
    run = MemoryRun(
        cell(name, model=model, categories={category: estimate()}),
        cell(f"{name}2", model=model, stage=Stage.FAILED, error=error),
    )
    rows = results(run)
    assert [row["Cell"] for row in rows] == [name, f"{name}2"]
    assert [row["Model"] for row in rows] == [model, model]
    assert tables(report(run))["Categories"][0][1][:3] == [category, "0.725", "[0.630, 0.803]"]


def test_html_in_a_name_is_text():
    page = report(MemoryRun(cell("<script>alert(1)</script>", model="a|b\n`c`")))
    assert "<script>" not in page
    assert "<script>" not in PARSER.render(page)


def test_the_same_run_gives_the_same_report(tmp_path):
    evaluate(tmp_path)
    assert report(open_run(tmp_path)) == report(open_run(tmp_path))


def test_a_report_names_no_machine_path(tmp_path):
    evaluate(tmp_path, solver=Adder(down=(1,)))
    assert str(tmp_path) not in report(open_run(tmp_path))
