"""The index: made once, used while the files are the same, made anew when they are not, never in the run directory."""

import os
import sqlite3

import pytest
from viewer_runs import Adder, Sums, evaluate, held

from nel.reporting.viewer import index as module
from nel.reporting.viewer.index import RunIndex, cache_directory, fingerprint


@pytest.fixture
def run(tmp_path):
    evaluate(tmp_path / "run", Sums(20), Adder(wrong=(3,)))
    return tmp_path / "run"


@pytest.fixture
def builds(monkeypatch):
    made = []
    original = module._build
    monkeypatch.setattr(module, "_build", lambda *args: made.append(args) or original(*args))
    return made


def test_an_index_serves_until_a_file_of_the_run_changes(run, tmp_path, builds):
    index = RunIndex(run, tmp_path / "cache")
    first = index.refresh()[1]
    assert index.refresh()[1] is first
    assert RunIndex(run, tmp_path / "cache").refresh()[1].version == first.version
    assert len(builds) == 1
    evaluate(run, Sums(25), Adder())
    index._took = 0  # otherwise it would rest for a moment
    second = index.refresh()[1]
    assert (first.count, second.count) == (20, 25)
    assert len(builds) == 2


def test_an_index_that_is_damaged_or_deleted_is_made_again(run, tmp_path, builds):
    index = RunIndex(run, tmp_path / "cache")
    index.refresh()
    index.file.write_bytes(b"no database")
    assert RunIndex(run, tmp_path / "cache").refresh()[1].count == 20
    index.file.unlink()
    assert index.refresh()[1].count == 20
    assert len(builds) == 3


def test_the_run_directory_is_only_read(run, tmp_path):
    def state():
        return {path: path.stat().st_mtime_ns for path in run.rglob("*")}

    before = state()
    with RunIndex(run, tmp_path / "cache").open() as (_, contents, _database):
        assert contents.count == 20
    assert state() == before


def test_an_index_is_for_its_user_alone_and_for_reading(run, tmp_path):
    index = RunIndex(run, tmp_path / "cache")
    with index.open() as (_, _, database), pytest.raises(sqlite3.OperationalError, match="readonly"):
        database.execute("DELETE FROM units")
    assert index.file.stat().st_mode & 0o077 == 0
    assert [path.name for path in index.file.parent.iterdir()] == [index.file.name]


def test_the_fingerprint_sees_time_and_size_of_every_log(run):
    before = fingerprint(run)
    log = run / "sums" / "results.jsonl"
    stat = log.stat()
    os.utime(log, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))
    assert fingerprint(run) != before


def test_a_large_run_is_indexed_in_the_background_and_not_searched_in_its_texts(run, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "TEXTS", 5)
    index = RunIndex(run, tmp_path / "cache")
    assert index.begin() is False
    contents = index.refresh()[1]
    assert index.begin() is True
    assert (contents.count, contents.texts) == (20, False)


def test_a_small_run_need_not_be_waited_for(run, tmp_path):
    assert RunIndex(run, tmp_path / "cache").begin() is True


def test_a_run_in_progress_is_indexed_as_far_as_it_is(tmp_path):
    with held(tmp_path / "run", free=5, count=12) as finish:
        index = RunIndex(tmp_path / "run", tmp_path / "cache")
        view, contents = index.refresh()
        assert (contents.count, str(view.manifest.stage)) == (5, "running")
        finish()
        index._took = 0
        view, contents = index.refresh()
        assert (contents.count, str(view.manifest.stage)) == (12, "completed")


def test_the_cache_is_where_the_user_keeps_caches(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_directory() == tmp_path / "nel" / "viewer"
