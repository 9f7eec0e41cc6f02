import json
import os
import threading

import pytest

from nel.core.errors import RunDirError
from nel.core.rundir import Manifest, RunDir, Stage, is_run_dir


def start(path, **options):
    return RunDir.open(path, **{"kind": "models", "resume": False, **options})


def cell(run, key, name=None):
    return run.cell_dir(key, key if name is None else name, benchmark="b", model="m", variant="v")


def finished_run(path):
    with start(path) as run:
        (cell(run, "gsm8k") / "results.jsonl").write_text("scores")
        (path / "report.md").write_text("report")
        run.finish(Stage.COMPLETED, counts={"scored": 3})
    return run.manifest.run_id


def edit(path, **fields):
    file = path / "manifest.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **fields}))


def names(path):
    return sorted(entry.name for entry in path.iterdir() if not entry.name.startswith("."))


def test_a_new_run_is_created_with_its_parents_and_described(tmp_path):
    path = tmp_path / "a" / "b"
    with start(path, command=["nel", "eval", "run"], shard={"index": 1, "total": 4}) as run:
        on_disk = RunDir.read(path)
        assert on_disk == run.manifest
        assert on_disk.stage is Stage.RUNNING
        assert on_disk.kind == "models"
        assert on_disk.command == ["nel", "eval", "run"]
        assert on_disk.shard == {"index": 1, "total": 4}
        assert on_disk.nel_version
        assert on_disk.lock_digest.startswith("sha256:")
        assert on_disk.started > 0
        assert on_disk.finished is None


def test_finish_records_stage_time_and_fields(tmp_path):
    with start(tmp_path) as run:
        run.finish(Stage.FAILED, error="no server", counts={"error": 2})
    manifest = RunDir.read(tmp_path)
    assert (manifest.stage, manifest.error, manifest.counts) == (Stage.FAILED, "no server", {"error": 2})
    assert manifest.finished >= manifest.started


def test_credentials_on_the_command_line_are_not_recorded(tmp_path):
    with start(tmp_path, command=["nel", "--api-key", "hunter2", "-O", "services.m.api_key=hunter2"]):
        assert "hunter2" not in (tmp_path / "manifest.json").read_text()


def test_an_unknown_field_is_refused_and_changes_nothing(tmp_path):
    with start(tmp_path) as run:
        before = (tmp_path / "manifest.json").read_bytes()
        with pytest.raises(TypeError):
            run.update(stagee="x")
        assert (tmp_path / "manifest.json").read_bytes() == before


def test_a_resumed_run_keeps_its_identity_and_content_and_loses_what_was_derived(tmp_path):
    run_id = finished_run(tmp_path)
    (tmp_path / "gsm8k" / "eval-gsm8k.json").touch()
    started = RunDir.read(tmp_path).started
    with start(tmp_path, resume=True, derived=["report.*", "*/eval-*.json"]) as run:
        assert run.manifest.run_id == run_id
        assert run.manifest.started == started
        assert run.manifest.stage is Stage.RUNNING
        assert run.manifest.finished is None
        assert cell(run, "gsm8k") == tmp_path / "gsm8k"
    assert names(tmp_path) == ["gsm8k", "manifest.json"]
    assert names(tmp_path / "gsm8k") == ["results.jsonl"]


def test_resuming_nothing_starts_a_run(tmp_path):
    with start(tmp_path, resume=True) as run:
        assert run.manifest.stage is Stage.RUNNING


def test_a_fresh_run_sets_the_earlier_one_aside_and_deletes_nothing(tmp_path):
    first = finished_run(tmp_path)
    (tmp_path / "nel.pid").write_text("of the run that starts")
    second = finished_run(tmp_path)
    with start(tmp_path) as run:
        assert run.manifest.run_id not in {first, second}
        assert names(tmp_path) == ["manifest.json", "nel.pid", "previous"]
    assert names(tmp_path / "previous") == sorted([first, second])
    for run_id in (first, second):
        aside = tmp_path / "previous" / run_id
        assert RunDir.read(aside).run_id == run_id
        assert (aside / "gsm8k" / "results.jsonl").read_text() == "scores"
        assert (aside / "report.md").exists()


def test_a_run_resumed_with_another_nel_says_so(tmp_path):
    finished_run(tmp_path)
    edit(tmp_path, nel_version="0.0.1")
    with start(tmp_path, resume=True) as run:
        assert len(run.manifest.warnings) == 1
        assert "instead of 0.0.1" in run.manifest.warnings[0]
    with start(tmp_path, resume=True) as run:
        assert len(run.manifest.warnings) == 1


@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "worlds"}, "kind 'worlds', not 'models'"),
        ({"schema": "nel.manifest/2"}, "reads up to nel.manifest/1"),
        ({"schema": "worldfoundry-run-manifest"}, "no schema tag"),
        ({"schema": "other.manifest/1"}, "is not nel.manifest/1"),
        ({"run_id": "../../elsewhere"}, "not the name of one folder"),
        ({"run_id": ".."}, "not the name of one folder"),
        ({"cells": {"k": {"dir": "/etc", "benchmark": "", "model": "", "variant": ""}}}, "not the name of one folder"),
        ({"stage": "odd"}, "stage"),
    ],
)
def test_a_foreign_newer_or_other_kind_of_run_is_refused_and_left_as_it_is(tmp_path, resume, change, message):
    run_id = finished_run(tmp_path)
    edit(tmp_path, **change)
    with pytest.raises(RunDirError, match=message):
        start(tmp_path, resume=resume)
    assert names(tmp_path) == ["gsm8k", "manifest.json", "report.md"]
    assert run_id


@pytest.mark.parametrize("text", ["", "{", "[]", "null"])
def test_a_manifest_that_is_none_is_refused_with_its_path(tmp_path, text):
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(RunDirError, match=r"manifest\.json: "):
        start(tmp_path, resume=True)
    assert not is_run_dir(tmp_path)


def test_another_shard_is_refused_on_resume(tmp_path):
    with start(tmp_path, shard={"index": 0, "total": 2}):
        pass
    with pytest.raises(RunDirError, match="holds shard"):
        start(tmp_path, resume=True, shard={"index": 0, "total": 3})
    with start(tmp_path, resume=True, shard={"index": 0, "total": 2}):
        pass


@pytest.mark.parametrize("resume", [False, True])
def test_a_directory_that_holds_something_else_is_refused_and_gets_no_lock_file(tmp_path, resume):
    for name in ("thesis.tex", "b", "c", "d"):
        (tmp_path / name).touch()
    with pytest.raises(RunDirError, match=r"it holds b, c, d \.\.\. and no manifest\.json"):
        start(tmp_path, resume=resume)
    assert len(list(tmp_path.iterdir())) == 4


def test_hidden_files_and_those_of_the_executor_do_not_count(tmp_path):
    for name in (".DS_Store", "nel.pid", "nel_eval.log"):
        (tmp_path / name).touch()
    with start(tmp_path):
        pass
    assert names(tmp_path) == ["manifest.json", "nel.pid", "nel_eval.log"]


def test_a_file_in_the_place_of_the_directory_is_refused(tmp_path):
    (tmp_path / "out").touch()
    with pytest.raises(RunDirError, match="out: File exists"):
        start(tmp_path / "out")


@pytest.mark.parametrize("resume", [False, True])
def test_a_directory_in_use_is_refused(tmp_path, resume):
    with start(tmp_path) as run:
        with pytest.raises(RunDirError, match=f"in use by process {os.getpid()} "):
            start(tmp_path, resume=resume)
        assert RunDir.read(tmp_path) == run.manifest


def test_reading_needs_no_lock_and_a_run(tmp_path):
    with start(tmp_path / "run"):
        assert RunDir.read(tmp_path / "run").kind == "models"
        assert is_run_dir(tmp_path / "run")
    (tmp_path / "none").mkdir()
    for path in (tmp_path / "none", tmp_path / "missing"):
        assert not is_run_dir(path)
        with pytest.raises(RunDirError, match="not a run directory"):
            RunDir.read(path)


def test_a_newer_run_is_still_known_as_a_run(tmp_path):
    finished_run(tmp_path)
    edit(tmp_path, schema="nel.manifest/9")
    assert is_run_dir(tmp_path)


def test_cells_get_the_wanted_name_or_the_next_free_one_and_keep_it(tmp_path):
    with start(tmp_path) as run:
        assert cell(run, "1", "gsm8k") == tmp_path / "gsm8k"
        assert cell(run, "2", "gsm8k").name == "gsm8k-2"
        assert cell(run, "3", "GSM8K").name == "GSM8K-3"  # some file systems cannot tell the two apart
    with start(tmp_path, resume=True) as run:
        assert cell(run, "2", "whatever").name == "gsm8k-2"
        assert cell(run, "4", "gsm8k").name == "gsm8k-4"
        assert run.manifest.cells["4"].benchmark == "b"


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        ("gsm8k--qwen3-8b", "gsm8k--qwen3-8b"),
        ("lm-eval://task/x", "lm-eval-task-x"),
        ("../../etc", "etc"),
        (".hidden", "hidden"),
        ("", "cell"),
        ("..", "cell"),
        ("a b\n\0c", "a-b-c"),
        ("数学", "数学"),
        ("x" * 300, "x" * 100),
        ("é" * 300, "é" * 50),
        ("previous", "previous-2"),
        ("merged", "merged-2"),
        ("shard_0", "shard_0-2"),
        ("manifest.json", "manifest.json-2"),
    ],
)
def test_a_cell_name_is_one_safe_folder(tmp_path, wanted, name):
    with start(tmp_path) as run:
        folder = cell(run, "key", wanted)
        assert folder == tmp_path / name
        assert folder.is_dir()
    with start(tmp_path, resume=True) as run:
        assert cell(run, "key", wanted) == folder


def test_a_run_directory_can_be_moved(tmp_path):
    finished_run(tmp_path / "here")
    (tmp_path / "here").rename(tmp_path / "there")
    with start(tmp_path / "there", resume=True) as run:
        assert cell(run, "gsm8k") == tmp_path / "there" / "gsm8k"
    assert str(tmp_path) not in (tmp_path / "there" / "manifest.json").read_text()


def test_threads_may_name_cells_and_update_together(tmp_path):
    with start(tmp_path) as run:
        threads = [threading.Thread(target=cell, args=(run, str(number), "same")) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({entry.dir for entry in run.manifest.cells.values()}) == 8
        assert RunDir.read(tmp_path) == run.manifest


@pytest.mark.parametrize("pattern", ["/etc/*", "../*"])
def test_derived_files_lie_inside_the_run(tmp_path, pattern):
    finished_run(tmp_path)
    with pytest.raises(ValueError, match="inside the run directory"):
        start(tmp_path, resume=True, derived=[pattern])
    with start(tmp_path, resume=True):  # the lock was freed
        pass


def test_the_manifest_is_readable_json_with_its_schema_first(tmp_path):
    finished_run(tmp_path)
    text = (tmp_path / "manifest.json").read_text()
    assert text.startswith('{\n  "schema": "nel.manifest/1",\n')
    assert Manifest.from_json(text).cells["gsm8k"].dir == "gsm8k"
