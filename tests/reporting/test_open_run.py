"""Opening a directory: a run is read whatever its kind, and anything else is told what it is and what to name."""

import json

import pytest
from real_run import evaluate

from nel.core.errors import RunDirError
from nel.core.rundir import RunDir, Stage
from nel.reporting import run_view
from nel.reporting.run_view import RunView, open_run


def refusal(path, **options):
    with pytest.raises(RunDirError) as caught:
        open_run(path, **options)
    return str(caught.value)


def start(path, kind="models"):
    with RunDir.open(path, kind=kind, resume=False) as run:
        return run.manifest


def edit(path, **fields):
    file = path / "manifest.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **fields}))


def test_a_run_is_opened_by_the_adapter_of_its_kind(tmp_path):
    evaluate(tmp_path)
    view = open_run(tmp_path)
    assert isinstance(view, RunView)
    assert (view.kind, view.path, view.manifest.stage) == ("models", tmp_path, Stage.COMPLETED)


def test_a_moved_run_reads_the_same(tmp_path):
    evaluate(tmp_path / "here")
    before = open_run(tmp_path / "here").cells()
    (tmp_path / "here").rename(tmp_path / "there")
    assert open_run(str(tmp_path / "there")).cells() == before


def test_every_adapter_of_the_table_can_be_loaded(tmp_path, monkeypatch):
    for kind in run_view.ADAPTERS:
        start(tmp_path / kind, kind)
        assert open_run(tmp_path / kind, unfinished=True).kind == kind


def test_a_path_that_is_not_there_says_so(tmp_path):
    assert "does not exist" in refusal(tmp_path / "nowhere")


def test_a_file_is_no_run(tmp_path):
    file = tmp_path / "eval-x.json"
    file.write_text("{}")
    assert "is a file" in refusal(file)


def test_an_empty_directory_is_no_run(tmp_path):
    said = refusal(tmp_path)
    assert "no manifest.json" in said
    assert "`nel eval run` with -o" in said


def test_the_folder_of_a_cell_names_its_run(tmp_path):
    evaluate(tmp_path)
    assert f"Name {tmp_path} instead" in refusal(tmp_path / "sums")


def test_a_folder_of_runs_lists_them(tmp_path):
    for name in ("monday", "tuesday"):
        start(tmp_path / name)
    assert "name one of monday, tuesday" in refusal(tmp_path)


def test_a_folder_of_many_runs_lists_the_first(tmp_path):
    for number in range(8):
        start(tmp_path / f"run{number}")
    assert "It holds 8 runs: name one of run0, run1, run2, run3, run4 and 3 more." in refusal(tmp_path)


def test_shards_that_were_not_merged_name_the_command(tmp_path):
    for number in range(2):
        start(tmp_path / f"shard_{number}")
    assert f"`nel eval merge {tmp_path}`" in refusal(tmp_path)


def test_merged_shards_are_named_like_other_runs(tmp_path):
    start(tmp_path / "shard_0")
    start(tmp_path / "merged")
    assert "name one of merged, shard_0" in refusal(tmp_path)


def test_a_run_that_is_going_or_was_killed_is_refused_unless_asked_for(tmp_path):
    manifest = start(tmp_path)
    said = refusal(tmp_path)
    assert manifest.run_id in said
    assert "--resume" in said
    assert open_run(tmp_path, unfinished=True).manifest.stage is Stage.RUNNING


def test_a_newer_manifest_is_refused_with_its_version(tmp_path):
    start(tmp_path)
    edit(tmp_path, schema="nel.manifest/99")
    said = refusal(tmp_path)
    assert "nel.manifest/99" in said
    assert "newer" in said


def test_a_manifest_that_is_not_whole_names_its_file(tmp_path):
    start(tmp_path)
    file = tmp_path / "manifest.json"
    file.write_bytes(file.read_bytes()[:40])
    assert str(file) in refusal(tmp_path)


def test_an_unknown_kind_lists_those_that_can_be_read(tmp_path):
    start(tmp_path, "dreams")
    edit(tmp_path, stage="completed")
    said = refusal(tmp_path)
    assert "'dreams'" in said
    assert "models" in said
