"""`junit`: a test suite for each cell and a test case for each problem, for the pages that CI systems show."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar
from xml.sax.saxutils import XMLGenerator
from xml.sax.xmlreader import AttributesImpl

from nel.core.errors import UsageError
from nel.exporters.base import attempts, run_name, text_of
from nel.observability.records import Outcome
from nel.reporting.run_view import CellView, RunView, Unit, UnitDetail

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SHOWN = 2000


class JUnitExporter:
    """A reward of at least `pass_from` passes, a lower one fails; errors are errors, unscored attempts are skipped."""

    name: ClassVar[str] = "junit"

    def __init__(self, *, pass_from: float = 1.0) -> None:
        if isinstance(pass_from, bool) or not isinstance(pass_from, int | float):
            raise UsageError(f"pass_from is {pass_from!r}; a number is expected")
        self.pass_from = pass_from

    def export(self, run: RunView, output: Path) -> Sequence[str]:
        """See `Exporter.export`."""
        path = output / f"{run_name(run)}.xml"
        output.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8") as file:
            xml = XMLGenerator(file, encoding="utf-8", short_empty_elements=True)
            xml.startDocument()
            _open(xml, "testsuites", {"name": _clean(run.manifest.run_id)})
            for cell in run.cells():
                self._suite(xml, run, cell)
            xml.endElement("testsuites")
            xml.endDocument()
        return [str(path)]

    def _suite(self, xml: XMLGenerator, run: RunView, cell: CellView) -> None:
        counts = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
        for unit in run.units(cell):
            counts["tests"] += 1
            kind = self._kind(unit)
            if kind:
                counts[kind] += 1
        numbers = {name: str(count) for name, count in counts.items()}
        _open(xml, "testsuite", {"name": _clean(cell.name), **numbers})
        if cell.error:
            self._told(xml, "system-err", cell.error)
        for unit, detail in attempts(run, cell):
            self._case(xml, cell, unit, detail)
        xml.endElement("testsuite")

    def _kind(self, unit: Unit) -> str:
        if unit.outcome is Outcome.ERROR:
            return "errors"
        if unit.outcome is Outcome.UNSCORED:
            return "skipped"
        reward = unit.values.get("reward")
        return "" if reward is not None and reward >= self.pass_from else "failures"

    def _case(self, xml: XMLGenerator, cell: CellView, unit: Unit, detail: UnitDetail) -> None:
        name = unit.problem_id or f"problem {unit.problem_idx}"
        name = f"{name}, repeat {unit.repeat}" if cell.repeats > 1 else name
        place = f"{cell.name}.{unit.category}" if unit.category else cell.name
        seconds = f"{unit.latency_ms / 1000:.3f}"
        _open(xml, "testcase", {"classname": _clean(place), "name": _clean(name), "time": seconds})
        kind = self._kind(unit)
        if kind == "errors":
            self._told(xml, "error", detail.error or "", {"type": _clean(unit.failure_category or "error")})
        elif kind == "skipped":
            self._told(xml, "skipped", detail.error or "not graded")
        elif kind == "failures":
            said = f"answer: {detail.answer[:_SHOWN]}\nextracted: {text_of(detail.extracted)[:_SHOWN]}\n"
            said += f"expected: {text_of(detail.expected)[:_SHOWN]}"
            self._told(xml, "failure", said, {"message": f"reward {unit.values.get('reward')}"})
        xml.endElement("testcase")

    @staticmethod
    def _told(xml: XMLGenerator, name: str, text: str, attributes: dict[str, str] | None = None) -> None:
        _open(xml, name, attributes or {})
        xml.characters(_clean(text))
        xml.endElement(name)


def _open(xml: XMLGenerator, name: str, attributes: dict[str, str]) -> None:
    xml.startElement(name, AttributesImpl(attributes))


def _clean(text: str) -> str:
    """The text without what XML cannot hold."""
    return _FORBIDDEN.sub("\ufffd", text)
