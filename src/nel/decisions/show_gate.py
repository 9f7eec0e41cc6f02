"""A gate's verdict as a page for people, and as JUnit XML for CI."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from nel.decisions.document import Block, Heading, Line, Table
from nel.decisions.gate import GatedBenchmark, GateReport, GateVerdict, Status
from nel.decisions.policy import Tier
from nel.decisions.show_compare import interval, p_text, signed
from nel.observability.format import format_count, format_number, format_percent
from nel.reporting.text import one_line


def gate_page(report: GateReport) -> list[Block]:
    """The page of a gate."""
    header = ("Benchmark", "Tier", "Status", "Metric", "Baseline", "Candidate", "Difference", "95 % interval")
    page: list[Block] = [
        Heading(f"{report.verdict}: {report.candidate} against {report.baseline}", 1),
        *(Line(text, "-", strong=True) for text in report.verdict_reasons),
        Table(
            (*header, "Allowed", "p within", "p beyond", "Problems"),
            [_row(one) for one in report.benchmarks],
            frozenset({4, 5, 6, 8, 9, 10, 11}),
        ),
        *(Line(f"{one.benchmark}: {'; '.join(one.reasons)}", "-") for one in report.benchmarks),
        *(Line(text, "!") for text in report.warnings),
    ]
    if sum(one.p_within is not None for one in report.benchmarks if one.tier is not Tier.ADVISORY) > 1:
        page.append(Line("p-values of critical and supporting benchmarks are corrected together by Holm's method."))
    return page


def _row(one: GatedBenchmark) -> tuple[str, ...]:
    difference = one.difference
    relative = "" if one.max_relative_drop is None else f", {format_percent(one.max_relative_drop)}"
    return (
        one.benchmark,
        str(one.tier),
        str(one.status),
        one.metric or "-",
        "-" if one.baseline_score is None else format_number(one.baseline_score),
        "-" if one.candidate_score is None else format_number(one.candidate_score),
        signed(difference.value) if difference else "-",
        interval(difference.ci_lower, difference.ci_upper) if difference else "-",
        f"{format_number(one.max_drop)}{relative}",
        "-" if one.p_within is None else p_text(one.p_within),
        "-" if one.p_beyond is None else p_text(one.p_beyond),
        format_count(one.n_paired),
    )


def gate_junit(report: GateReport) -> str:
    """JUnit XML: a test case per benchmark, and one for the verdict.

    A breach, or a critical benchmark that is missing, is a failure; what else holds up a GO is an error; what does not
    matter to the verdict is skipped.
    """
    suite = ET.Element("testsuite", name="nel gate", tests=str(len(report.benchmarks) + 1))
    counts = {"failure": 0, "error": 0, "skipped": 0}
    for one in report.benchmarks:
        case = ET.SubElement(suite, "testcase", classname=f"gate.{one.tier}", name=one_line(one.benchmark))
        kind = _outcome(one)
        if kind:
            _add(case, kind, str(one.status), "; ".join(one.reasons), counts)
    case = ET.SubElement(suite, "testcase", classname="gate", name="verdict")
    if report.verdict is not GateVerdict.GO:
        kind = "failure" if report.verdict is GateVerdict.NO_GO else "error"
        _add(case, kind, str(report.verdict), "; ".join(report.verdict_reasons), counts)
    suite.set("failures", str(counts["failure"]))
    suite.set("errors", str(counts["error"]))
    suite.set("skipped", str(counts["skipped"]))
    ET.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(suite, encoding="unicode") + "\n"


def _outcome(one: GatedBenchmark) -> str | None:
    if one.status is Status.PASS:
        return None
    return "failure" if one.stops else "error" if one.holds_up else "skipped"


def _add(case: ET.Element, kind: str, status: str, reason: str, counts: dict[str, int]) -> None:
    counts[kind] += 1
    if kind == "skipped":
        ET.SubElement(case, kind, message=one_line(f"{status}: {reason}"))
    else:
        ET.SubElement(case, kind, type=status, message=one_line(reason))
