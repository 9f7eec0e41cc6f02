"""A run in memory whose attempts have texts."""

from memory_run import MemoryRun, cell

from nel.observability.records import Outcome
from nel.reporting.run_view import Unit, UnitDetail


class DetailedRun(MemoryRun):
    """One cell; `details` are its attempts, in order."""

    def __init__(self, *details, **fields):
        self.details = details
        self._units = [
            Unit(
                unit_key=f"{number:064x}",
                problem_idx=number,
                values={"reward": float(number % 2)},
                category="odd" if number % 2 else "even",
                outcome=Outcome.SCORED,
                latency_ms=10.0 + number,
                tokens=number,
            )
            for number in range(len(details))
        ]
        super().__init__(cell(**fields))

    def units(self, cell):
        yield from self._units

    def detail(self, cell, unit):
        return self.details[unit.problem_idx]


def detail(answer="4", question="2+2?", **fields):
    return UnitDetail(messages=[{"role": "user", "content": question}], answer=answer, expected="4", **fields)
