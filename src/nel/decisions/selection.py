"""Which cells are meant: from the paths and names on a command line to pairs of cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from nel.core.errors import RecordError, RunDirError, UsageError
from nel.core.rundir import Stage
from nel.reporting.run_view import CellView, RunView, open_run


@dataclass(frozen=True, slots=True)
class Chosen:
    """A run, and the cells of it that were named."""

    path: Path
    """As it was named."""
    view: RunView
    cells: list[CellView]

    def of(self, benchmark: str) -> list[CellView]:
        """The cells of one benchmark."""
        return [cell for cell in self.cells if cell.benchmark == benchmark]


@dataclass(frozen=True, slots=True)
class CellPair:
    """Two cells to compare; None where a run has no such cell."""

    benchmark: str
    baseline: CellView | None
    candidate: CellView | None


def open_cells(path: Path | str) -> Chosen:
    """The run at `path` with its cells, or the one cell whose directory or bundle (`eval-*.json`) `path` is.

    `RunDirError` says what is wrong with the directory, and what to name instead.
    """
    named = Path(path)
    place = named.parent if named.is_file() else named
    try:
        if not (place / "manifest.json").is_file() and (place.resolve().parent / "manifest.json").is_file():
            run = open_run(place.resolve().parent)
            cells = [cell for cell in run.cells() if (run.path / cell.name).resolve() == place.resolve()]
            if not cells:
                known = ", ".join(cell.name for cell in run.cells())
                raise RunDirError(f"{named} is no cell of the run in {run.path}.", hint=f"Its cells: {known}.")
            return Chosen(named, run, cells)
        run = open_run(place)
        return Chosen(named, run, run.cells())
    except RecordError as error:
        raise RunDirError(error.message, hint=error.hint) from None


def pair_cells(baseline: Chosen, candidate: Chosen, wanted: Sequence[str] = ()) -> list[CellPair]:
    """The cells of both runs, matched by benchmark, in the baseline's order; two single cells always match.

    `wanted` names cells or benchmarks. `UsageError` where a run holds several cells of a benchmark and none is named.
    """
    if wanted:
        return [_wanted(name, baseline, candidate) for name in wanted]
    if len(baseline.cells) == len(candidate.cells) == 1:
        only = baseline.cells[0]
        return [CellPair(only.benchmark, only, candidate.cells[0])]
    names = dict.fromkeys(cell.benchmark for cell in (*baseline.cells, *candidate.cells))
    if not names:
        raise UsageError(
            f"Neither {baseline.path} nor {candidate.path} holds a cell.", hint="Run the benchmarks first."
        )
    return [CellPair(name, _only(baseline, name), _only(candidate, name)) for name in names]


def _only(chosen: Chosen, benchmark: str) -> CellView | None:
    cells = chosen.of(benchmark)
    if len(cells) > 1:
        names = [cell.name for cell in cells]
        raise UsageError(
            f"{chosen.path} holds {len(cells)} cells of {benchmark}: {', '.join(names)}.",
            hint=f"Choose one by its directory, {chosen.path / names[0]}, or by its name, with --cell or in a policy.",
        )
    return cells[0] if cells else None


def _wanted(name: str, baseline: Chosen, candidate: Chosen) -> CellPair:
    """The cell called `name` on each side; where only one side has it, the other side's cell of that benchmark."""
    found = [next((cell for cell in chosen.cells if cell.name == name), None) for chosen in (baseline, candidate)]
    benchmark = next((cell.benchmark for cell in found if cell), name)
    left, right = (cell or _only(chosen, benchmark) for cell, chosen in zip(found, (baseline, candidate), strict=True))
    if left is None and right is None:
        known = list(dict.fromkeys(cell.name for cell in (*baseline.cells, *candidate.cells)))
        near = get_close_matches(name, known, n=1)
        hint = f"Did you mean {near[0]}?" if near else f"Cells: {', '.join(known)}."
        raise UsageError(f"Neither run has a cell or a benchmark called {name!r}.", hint=hint)
    return CellPair(benchmark, left, right)


def unusable(chosen: Chosen, cell: CellView | None, benchmark: str) -> str | None:
    """Why a side of a pair has nothing to compare; None where it has."""
    if cell is None:
        return f"{chosen.path} has no cell of {benchmark}"
    if cell.stage is Stage.FAILED:
        return f"{chosen.view.path / cell.name} failed: {cell.error or 'no reason was recorded'}"
    if cell.counts.planned and not cell.counts.scored:
        return f"{chosen.view.path / cell.name} has no scored attempt"
    return None


def incomplete(chosen: Chosen, cell: CellView) -> str | None:
    """What a reader must know of a cell whose numbers are partial or doubtful; None where they are whole."""
    place = chosen.view.path / cell.name
    counts = cell.counts
    if cell.stage is not Stage.COMPLETED:
        done = counts.scored + counts.unscored + counts.error
        return f"{place} is {cell.stage}: {done} of {counts.planned} planned attempts were made"
    if cell.degraded:
        return f"{place} is degraded: {counts.error} of {counts.planned} planned attempts ended in errors"
    return None
