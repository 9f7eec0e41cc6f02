"""The CSV report: one line for each estimate, exact numbers, and no text that a spreadsheet would run."""

import csv
import io

from hypothesis import given
from hypothesis import strategies as st
from memory_run import MemoryRun, cell, estimate

from nel.core.rundir import Stage
from nel.reporting.csv_report import COLUMNS, render_csv
from nel.reporting.run_view import Counts


def lines(*cells):
    return list(csv.DictReader(io.StringIO(render_csv(MemoryRun(*cells)))))


def test_each_metric_and_category_has_a_line_with_exact_numbers():
    third = estimate(1 / 3, ci_lower=0.0)
    found = lines(cell(metrics={"pass@1": third, "length": estimate(12.5)}, categories={"algebra": estimate(0.5)}))
    assert [(line["metric"], line["category"], line["headline"]) for line in found] == [
        ("pass@1", "", "1"),
        ("length", "", "0"),
        ("pass@1", "algebra", "0"),
    ]
    assert float(found[0]["value"]) == 1 / 3
    assert found[0]["ci_lower"] == "0.0"
    assert found[0]["status"] == "completed"


def test_a_failed_cell_has_its_line_with_the_reason_and_no_numbers():
    counts = Counts(planned=10, scored=2, error=3)
    (line,) = lines(cell(stage=Stage.FAILED, error="no disk", headline=None, metrics={}, counts=counts))
    assert (line["status"], line["reason"], line["value"]) == ("failed", "no disk", "")
    assert (line["scored"], line["error"]) == ("2", "3")


def test_an_absent_number_is_empty_and_never_zero():
    (line,) = lines(cell(metrics={"pass@1": estimate(None, ci_lower=None, ci_upper=None, stderr=None)}))
    assert [line[name] for name in ("value", "ci_lower", "ci_upper", "stderr")] == [""] * 4


@given(st.text(min_size=1))
def test_no_cell_is_a_formula_and_no_text_breaks_the_table(text):
    for line in lines(cell(text, model=text, categories={text: estimate()})):
        assert set(line) == set(COLUMNS)
        assert not line["model"].startswith(("=", "+", "-", "@"))
        assert "\n" not in line["cell"]
