"""Bad input: each a message that names the file and the next step, with exit 64."""

import json
import math
import shutil
from collections.abc import Iterator
from hashlib import sha256

import numpy as np
import pytest
from decision_runs import make_run

from nel.core.errors import UsageError
from nel.core.rundir import CellEntry, Manifest
from nel.decisions.columns import read_all, read_columns
from nel.decisions.compare import CompareOptions, compare_runs
from nel.decisions.pairing import pair
from nel.decisions.selection import Chosen, open_cells
from nel.reporting.run_view import CellView, Counts, Direction, MetricView, Unit


@pytest.fixture
def runs(tmp_path):
    return make_run(tmp_path / "base", [1.0, 0.0] * 20), make_run(tmp_path / "cand", [1.0, 0.0] * 20)


def refused(nel, *arguments):
    code, out, err = nel("compare", *arguments)
    assert code == 64, (out, err)
    assert out == ""
    return err


def test_a_log_with_a_damaged_line(nel, runs):
    log = runs[1] / "graded" / "results.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    lines[3] = b'{"schema":"nel.score/1","attempt":' + b"\n"
    log.write_bytes(b"".join(lines))
    err = refused(nel, *runs)
    assert f"{log}:4" in err
    assert "--resume" in err


def test_a_bundle_without_rows(nel, runs):
    (runs[1] / "graded" / "results.jsonl").unlink()
    err = refused(nel, *runs)
    assert "results.jsonl is missing" in err
    assert "--resume" in err


def test_rows_without_a_bundle(nel, runs):
    for bundle in (runs[1] / "graded").glob("eval-*.json"):
        bundle.unlink()
    err = refused(nel, *runs)
    assert "eval-*.json" in err
    assert str(runs[1]) in err


def test_a_truncated_bundle(nel, runs):
    (bundle,) = (runs[1] / "graded").glob("eval-*.json")
    bundle.write_bytes(bundle.read_bytes()[:200])
    assert "eval-graded.json" in refused(nel, *runs)


def test_a_truncated_manifest(nel, runs):
    manifest = runs[0] / "manifest.json"
    manifest.write_bytes(manifest.read_bytes()[:80])
    assert "manifest.json" in refused(nel, *runs)


def test_a_run_that_is_still_going(nel, runs):
    manifest = json.loads((runs[1] / "manifest.json").read_text())
    (runs[1] / "manifest.json").write_text(json.dumps(manifest | {"stage": "running"}))
    err = refused(nel, *runs)
    assert "has not finished" in err
    assert "--resume" in err


def test_a_directory_that_is_no_run(nel, runs, tmp_path):
    (tmp_path / "empty").mkdir()
    assert "empty is not a run directory" in refused(nel, tmp_path / "empty", runs[1])
    assert "does not exist" in refused(nel, runs[0], tmp_path / "nowhere")
    assert "is no cell of the run" in refused(nel, _folder(runs[0] / "notes"), runs[1])


def _folder(path):
    path.mkdir()
    return path


def test_a_bundle_outside_of_any_run(nel, runs, tmp_path):
    (bundle,) = (runs[0] / "graded").glob("eval-*.json")
    shutil.copy(bundle, tmp_path / bundle.name)
    assert "not a run directory" in refused(nel, tmp_path / bundle.name, runs[1])


def test_different_data(nel, runs, tmp_path):
    other = make_run(tmp_path / "other", [1.0] * 20, first=1000)
    assert "no problem in common" in refused(nel, runs[0], other)


def test_one_run_alone(nel, runs):
    assert "Only one run" in refused(nel, runs[0])


def test_a_drop_that_is_none(nel, runs):
    assert "max_drop is -1" in refused(nel, *runs, "--max-drop", "-1")
    assert "max_drop is nan" in refused(nel, *runs, "--max-drop", "nan")


def test_a_metric_that_is_not_there(nel, runs):
    assert "Did you mean 'scorer:loss'?" in refused(nel, *runs, "--metric", "scorer:los")


def test_a_cell_that_is_not_there(nel, runs):
    assert "Did you mean graded?" in refused(nel, *runs, "--cell", "grade")


def test_a_run_in_which_everything_failed(nel, runs, tmp_path):
    down = make_run(tmp_path / "down", [None] * 40)
    err = refused(nel, runs[0], down)
    assert "has no scored attempt" in err
    assert str(down) in err


def test_a_report_that_cannot_be_written(nel, runs, tmp_path):
    code, _, err = nel("compare", *runs, "--report", tmp_path / "no" / "such" / "r.md")
    assert code == 64
    assert "cannot be written" in err


class Foreign:
    """A run of another tool in memory: units by hand."""

    kind = "models"

    def __init__(self, path, units, *, cells=("bench",)):
        self.path = path
        entries = {name: CellEntry(dir=name, benchmark="bench", model="m", variant=name) for name in cells}
        self.manifest = Manifest(run_id="r", kind="models", cells=entries)
        self._units = units
        metric = MetricView(value=0.5, direction=Direction.HIGHER, of="reward")
        self._cells = [
            CellView(
                key=name,
                name=name,
                benchmark="bench",
                headline="pass@1",
                metrics={"pass@1": metric},
                counts=Counts(planned=len(units), scored=len(units)),
            )
            for name in cells
        ]

    def cells(self) -> list[CellView]:
        return self._cells

    def units(self, cell: CellView) -> Iterator[Unit]:
        yield from self._units

    def detail(self, cell, unit):
        raise NotImplementedError


def foreign(tmp_path, values, *, keys=True, **more):
    units = [
        Unit(unit_key=sha256(b"%d" % place).hexdigest() if keys else "", problem_idx=place, values={"reward": value})
        for place, value in enumerate(values)
    ]
    view = Foreign(tmp_path / "foreign", units, **more)
    return Chosen(view.path, view, view.cells())


def test_not_a_number_in_a_foreign_file(tmp_path):
    good, bad = foreign(tmp_path, [1.0] * 20), foreign(tmp_path, [1.0] * 7 + [math.nan] + [1.0] * 12)
    with pytest.raises(UsageError, match=r"foreign/bench: reward of row 8 is nan"):
        compare_runs(good, bad)


def test_two_cells_of_one_benchmark_ask_which(tmp_path):
    one, two = foreign(tmp_path, [1.0] * 20), foreign(tmp_path, [1.0] * 20, cells=("bench--a", "bench--b"))
    with pytest.raises(UsageError, match="holds 2 cells of bench: bench--a, bench--b") as caught:
        compare_runs(one, two)
    assert "--cell" in caught.value.hint
    assert compare_runs(one, two, cells=["bench--b"]).comparisons[0].candidate.cell == "bench--b"


def test_rows_without_content_are_paired_by_place_with_a_warning(tmp_path):
    with_keys, without = foreign(tmp_path, [1.0] * 20), foreign(tmp_path, [1.0] * 20, keys=False)
    for runs in ((with_keys, without), (without, with_keys), (without, without)):
        (one,) = compare_runs(*runs).comparisons
        assert one.units.paired == 20
        assert "paired by place in the data" in one.warnings[0]


def test_a_reader_process_gives_the_columns_that_reading_here_gives(runs, monkeypatch):
    sources = [(chosen.view, chosen.cells[0]) for chosen in map(open_cells, runs)]
    here = [read_columns(*source, "reward") for source in sources]
    monkeypatch.setattr("nel.decisions.columns.PARALLEL", 1)
    there = read_all(sources, "reward")
    for one, other in zip(here, there, strict=True):
        assert one.category_names == other.category_names
        for name in ("keys", "asked", "values", "outcomes", "clusters", "categories"):
            assert np.array_equal(getattr(one, name), getattr(other, name), equal_nan=name == "values")


def test_a_damaged_log_is_named_also_by_a_reader_process(nel, runs, monkeypatch):
    monkeypatch.setattr("nel.decisions.columns.PARALLEL", 1)
    (runs[1] / "graded" / "results.jsonl").unlink()
    assert "results.jsonl is missing" in refused(nel, *runs)


def test_pairs_do_not_depend_on_the_order_of_the_rows(tmp_path):
    values = [float(place % 3 == 0) for place in range(30)]
    straight, mixed = foreign(tmp_path, values), foreign(tmp_path, values)
    np.random.default_rng(0).shuffle(mixed.view._units)
    columns = read_all([(straight.view, straight.cells[0]), (mixed.view, mixed.cells[0])], "reward")
    pairs = pair(*columns)
    assert np.array_equal(pairs.baseline, pairs.candidate)
    assert pairs.counts.paired == 30
    assert compare_runs(straight, mixed, CompareOptions(max_drop=0.2)).verdict == "PASS"
