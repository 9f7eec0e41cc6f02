"""`docs/run-directory.md` lists every key that a run writes, and marks those that may differ between equal runs."""

import re
from pathlib import Path

import msgspec
import pytest
from real_run import Adder, Sums, evaluate

from nel.core.rundir import Manifest
from nel.engine.checkpoint import CheckpointManager
from nel.engine.derive import CellInfo
from nel.observability.failure_report import FailureReport
from nel.observability.records import AttemptRecord, ScoreRecord
from nel.observability.runtime import RuntimeStats
from nel.observability.volatile import VOLATILE

PAGE = Path(__file__).parents[2] / "docs" / "run-directory.md"
FILES = {
    "manifest.json": Manifest,
    "trajectories.jsonl": AttemptRecord,
    "results.jsonl": ScoreRecord,
    "runtime_stats.json": RuntimeStats,
    "failure_analysis.json": FailureReport,
}
ONLY_SOMETIMES = {
    *(f"config.{key}" for key in ("base_url", "protocol", "solver", "scorers", "generation", "system_prompt")),
    *(f"config.{key}" for key in ("error_policy", "max_error_rate", "max_problems", "problem_range", "select")),
    *(f"config.{key}" for key in ("shuffle_seed", "instruction_template", "shard")),
}
"""Keys of a bundle that depend on what was asked for; the run below asks for little."""


def documented(file):
    """The keys of a file's table with what its last column says."""
    heading = file.replace("*", "<name>")
    section = PAGE.read_text(encoding="utf-8").split(f"## `{heading}`\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `([^`]+)` \|.*\| ([a-z ]*)\|$", section, re.MULTILINE)
    assert len(dict(rows)) == len(rows)
    return {key: mark.strip() for key, mark in rows}


def fields_of(struct, prefix=""):
    """Dotted paths of every field, through nested structs, lists and dicts of them."""
    if prefix == "" and (tag := struct.__struct_config__.tag_field):
        yield tag
    for field in msgspec.inspect.type_info(struct).fields:
        yield from _paths(field.type, prefix + field.encode_name)


def _paths(kind, path):
    if isinstance(kind, msgspec.inspect.UnionType):
        kind = next(item for item in kind.types if not isinstance(item, msgspec.inspect.NoneType))
    if isinstance(kind, msgspec.inspect.StructType):
        yield path
        yield from fields_of(kind.cls, f"{path}.")
    elif isinstance(kind, msgspec.inspect.DictType) and isinstance(kind.value_type, msgspec.inspect.StructType):
        yield f"{path}.*"
        yield from fields_of(kind.value_type.cls, f"{path}.*.")
    elif isinstance(kind, msgspec.inspect.ListType) and isinstance(kind.item_type, msgspec.inspect.StructType):
        yield path
        yield from fields_of(kind.item_type.cls, f"{path}.*.")
    else:
        yield path


def has_children(parent, paths):
    return any(path.startswith(f"{parent}.") for path in paths)


def is_below(path, parents):
    return any(path.startswith(f"{parent}.") for parent in parents)


@pytest.mark.parametrize("file", FILES)
def test_every_field_of_a_record_is_listed_and_nothing_else(file):
    fields = set(fields_of(FILES[file]))
    if file == "manifest.json":
        fields |= set(fields_of(CellInfo, "cells.*.info."))
    keys = set(documented(file))
    assert fields - keys == set()
    # What a record keeps as plain JSON may be described further.
    assert {key for key in keys - fields if not is_below(key, fields)} == set()


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The bundle and the checkpoint of a real run."""
    path = tmp_path_factory.mktemp("run")
    evaluate(path, env=Sums(8), solver=Adder(wrong=(1,), down=(2,), unreadable=(3,)), repeats=2)
    checkpoint = CheckpointManager(path)
    checkpoint.fail("b", "no data")
    checkpoint.interrupt("c")
    return {
        "eval-*.json": msgspec.json.decode((path / "sums" / "eval-sums.json").read_bytes()),
        "checkpoint.json": msgspec.json.decode((path / "checkpoint.json").read_bytes()),
    }


def covered(path, keys):
    """The documented key that a real path falls under, if any: its own, or that of a value that is free in form."""
    for length in range(len(path), 0, -1):
        for key in keys:
            parts = key.split(".")
            if len(parts) == length and all(part in {"*", found} for part, found in zip(parts, path, strict=False)):
                return key
    return None


def leaves(value, path=()):
    if isinstance(value, dict) and value:
        for key, child in value.items():
            yield from leaves(child, (*path, key))
    else:
        yield path


@pytest.mark.parametrize("file", ["eval-*.json", "checkpoint.json"])
def test_every_key_of_a_real_file_is_listed(written, file):
    keys = documented(file)
    found = {path: covered(path, keys) for path in leaves(written[file])}
    assert [path for path, key in found.items() if key is None] == []
    # A key whose children are listed has no others.
    closed = {key for key in keys if has_children(key, keys)}
    assert [path for path, key in found.items() if key in closed and len(path) > len(key.split("."))] == []


@pytest.mark.parametrize("file", ["eval-*.json", "checkpoint.json"])
def test_every_listed_key_is_written(written, file):
    keys = documented(file)
    found = {covered(path[:length], keys) for path in leaves(written[file]) for length in range(1, len(path) + 1)}
    assert set(keys) - found - ONLY_SOMETIMES == set()


@pytest.mark.parametrize("file", VOLATILE)
def test_just_the_volatile_keys_are_marked(file):
    rows = documented(file)
    own = {path for path in VOLATILE[file] if not path.startswith("runtime.")}
    assert own <= set(rows)
    for key, mark in rows.items():
        expected = key in own or is_below(key, own)
        assert mark == ("as there" if key == "runtime" else "yes" if expected else ""), key


def test_the_runtime_within_a_bundle_is_masked_like_its_own_file():
    within = {path.removeprefix("runtime.") for path in VOLATILE["eval-*.json"] if path.startswith("runtime.")}
    assert within == set(VOLATILE["runtime_stats.json"])
