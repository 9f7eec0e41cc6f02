"""The log on disks that fail, fill up, write little, or lose what was not synced."""

import asyncio
import errno
import os
import subprocess
import sys

import pytest
from core_faults import every_failure, mounted_tmpfs, read_only
from hypothesis import given, settings
from hypothesis import strategies as st

from nel.core.contract import Record
from nel.core.errors import LogWriteError
from nel.core.log import LogWriter, replace_log, scan_log


class Note(Record, tag="nel.note/1"):
    text: str


def line(text):
    return Note(text=text).to_json()


def texts(path):
    return [note.text for _, _, note in scan_log(path, Note)]


def error_of(call):
    try:
        call()
    except LogWriteError as error:
        return error
    return None


def test_killed_at_every_byte_of_a_flush_loses_no_whole_line_and_cuts_the_torn_one(tmp_path):
    written = [line(text) for text in ("one", "two ✓", "three" * 5)]
    data = b"".join(part + b"\n" for part in written)
    path = tmp_path / "a.jsonl"
    with LogWriter(interval=60) as writer:
        for size in range(len(data) + 1):
            path.write_bytes(data[:size])
            whole = data[:size].count(b"\n")
            log = writer.open(path)
            assert log.torn_bytes == size - sum(len(part) + 1 for part in written[:whole])
            assert texts(path) == [Note.from_json(part).text for part in written[:whole]]
            log.append(line("after"))
            log.close()
            assert texts(path)[whole:] == ["after"]


@pytest.mark.parametrize("torn", [1, 65_535, 65_536, 65_537, 200_000])
def test_a_torn_tail_of_any_length_is_found(tmp_path, torn):
    path = tmp_path / "a.jsonl"
    path.write_bytes(line("kept") + b"\n" + b"x" * torn)
    with LogWriter() as writer:
        assert writer.open(path).torn_bytes == torn
    assert path.read_bytes() == line("kept") + b"\n"


def test_a_torn_tail_of_zero_bytes_as_file_systems_leave_after_a_power_cut_is_cut(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(line("kept") + b"\n" + b"\0" * 4096)
    with LogWriter() as writer:
        log = writer.open(path)
        log.append(line("next"))
    assert log.torn_bytes == 4096
    assert texts(path) == ["kept", "next"]


@given(content=st.binary(max_size=200).map(lambda data: data.replace(b"0", b"\n")))
@settings(deadline=None, max_examples=100)
def test_any_file_is_opened_to_its_last_newline(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    path.write_bytes(content)
    with LogWriter(interval=60) as writer:
        log = writer.open(path)
    kept = content[: content.rfind(b"\n") + 1]
    assert path.read_bytes() == kept
    assert log.torn_bytes == len(content) - len(kept)


def run_until_it_fails(folder):
    """Two logs and three commits; what was acknowledged, and whether an error was reported."""
    acknowledged, failed = [], False
    try:
        with LogWriter(interval=60) as writer:
            attempts, scores = writer.open(folder / "attempts.jsonl"), writer.open(folder / "scores.jsonl")
            for number in range(3):
                attempts.append(line(f"a{number}"))
                scores.append(line(f"s{number}"))
                try:
                    writer.sync()
                except LogWriteError:
                    failed = True
                    for call in (lambda: attempts.append(line("late")), writer.sync, scores.close):
                        with pytest.raises(LogWriteError):
                            call()
                    break
                acknowledged.append(number)
    except LogWriteError:
        failed = True
    return acknowledged, failed


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("calls", [("write",), ("fsync",), ("write", "fsync", "ftruncate"), ("open",), ("fstat",)])
def test_whichever_call_fails_nothing_acknowledged_is_lost_and_the_failure_is_told(tmp_path, calls, persistent):
    for number, faults in enumerate(every_failure(*calls, persistent=persistent)):
        folder = tmp_path / str(number)
        folder.mkdir()
        with faults:
            acknowledged, failed = run_until_it_fails(folder)
        assert failed == faults.happened
        assert texts(folder / "attempts.jsonl")[: len(acknowledged)] == [f"a{n}" for n in acknowledged]
        assert texts(folder / "scores.jsonl")[: len(acknowledged)] == [f"s{n}" for n in acknowledged]
        assert run_until_it_fails(folder) == ([0, 1, 2], False)


def test_after_a_failed_write_the_file_ends_at_its_last_durable_byte(tmp_path, monkeypatch):
    with LogWriter(interval=60) as writer:
        log = writer.open(tmp_path / "a.jsonl")
        log.append(line("safe"))
        writer.sync()
        real = os.write

        def half(descriptor, data):
            if len(data) < 10:
                raise OSError(errno.ENOSPC, "No space left on device")
            return real(descriptor, bytes(data)[: len(data) // 2])

        monkeypatch.setattr(os, "write", half)
        log.append(line("lost " * 10))
        with pytest.raises(LogWriteError, match=r"a\.jsonl: cannot write: No space left on device"):
            writer.sync()
        monkeypatch.undo()
        assert log.path.read_bytes() == line("safe") + b"\n"
        with pytest.raises(LogWriteError, match="--resume"):
            writer.close()


def test_a_power_cut_that_drops_whatever_was_not_synced_loses_nothing_acknowledged(tmp_path, monkeypatch):
    """After each acknowledgement, only what `fsync` has seen is left: contents of files, and names in the directory."""
    synced = {}
    names = set()
    real = os.fsync

    def fsync(descriptor):
        real(descriptor)
        file = os.readlink(f"/proc/self/fd/{descriptor}")
        if os.path.isdir(file):
            names.update(os.path.join(file, name) for name in os.listdir(file))
        else:
            synced[file] = os.pread(descriptor, 1 << 20, 0)

    monkeypatch.setattr(os, "fsync", fsync)
    after = tmp_path / "after"
    after.mkdir()
    with LogWriter(interval=60) as writer:
        for name in ("a", "b"):
            log = writer.open(tmp_path / name)
            for number in range(5):
                log.append(line(f"{name}{number}"))
                writer.sync()
                for file in names & set(synced):
                    (after / os.path.basename(file)).write_bytes(synced[file])
                assert texts(after / name) == [f"{name}{n}" for n in range(number + 1)]


def test_a_disk_that_takes_one_byte_at_a_time_is_written_to_the_end(tmp_path, monkeypatch):
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: real(descriptor, bytes(data)[:1]))
    with LogWriter() as writer:
        log = writer.open(tmp_path / "a.jsonl")
        log.append(line("patience"))
        writer.sync()
        assert texts(log.path) == ["patience"]


def test_a_failure_wakes_every_waiting_task(tmp_path, monkeypatch):
    async def main():
        writer = LogWriter(interval=60, max_pending=1)
        log = writer.open(tmp_path / "a.jsonl")
        await writer.drain()
        monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(errno.EIO, "Input/output error")))
        log.append(line("x"))
        waiting = [writer.ready(), writer.drain(), asyncio.to_thread(writer.sync)]
        outcomes = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 10)
        monkeypatch.undo()
        for call in (writer.ready, writer.drain):
            with pytest.raises(LogWriteError):
                await call()
        with pytest.raises(LogWriteError):
            writer.close()
        return outcomes

    outcomes = asyncio.run(main())
    assert [type(outcome) for outcome in outcomes] == [LogWriteError] * 3
    assert all("Input/output error" in outcome.message for outcome in outcomes)


def test_a_bug_in_the_writers_thread_is_an_error_and_no_hang(tmp_path, monkeypatch):
    writer = LogWriter(interval=60)
    log = writer.open(tmp_path / "a.jsonl")
    monkeypatch.setattr(os, "write", lambda *_: (_ for _ in ()).throw(MemoryError("no memory")))
    log.append(line("x"))
    for call in (writer.sync, writer.close):
        with pytest.raises(LogWriteError, match="MemoryError"):
            call()


def fill(folder):
    """Appends and syncs until the disk is full; the acknowledged texts and the error."""
    acknowledged = []
    try:
        with LogWriter(interval=60) as writer:
            log = writer.open(folder / "a.jsonl")
            for number in range(10_000):
                text = f"{number} " + "x" * 700
                log.append(line(text))
                writer.sync()
                acknowledged.append(text)
    except LogWriteError as error:
        return acknowledged, error
    pytest.fail("the disk was never full")


def test_a_full_disk_loses_no_acknowledged_record_and_the_log_goes_on_once_there_is_room(tmp_path):
    with mounted_tmpfs(tmp_path / "small", "64k") as remount:
        folder = tmp_path / "small"
        acknowledged, error = fill(folder)
        assert "No space left on device" in error.message
        assert acknowledged
        assert texts(folder / "a.jsonl") == acknowledged
        remount("size=1m")
        with LogWriter() as writer:
            log = writer.open(folder / "a.jsonl")
            assert log.torn_bytes == 0
            log.append(line("room"))
        assert texts(folder / "a.jsonl") == [*acknowledged, "room"]


LIMITED = """
import resource, sys
from pathlib import Path
from nel.core.errors import LogWriteError
from nel.core.log import LogWriter
resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))
writer = LogWriter(interval=60)
log = writer.open(Path(sys.argv[1]))
try:
    for number in range(100):
        log.append(b'{"schema":"nel.note/1","text":"%d"}' % number)
        writer.sync()
        print(number, flush=True)
except LogWriteError as error:
    print(error.message, file=sys.stderr)
    sys.exit(3)
"""


def test_a_file_size_limit_is_reported_and_leaves_whole_lines(tmp_path):
    path = tmp_path / "a.jsonl"
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, path], check=False, capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 3
    assert "File too large" in done.stderr
    assert texts(path) == done.stdout.split()


def test_a_read_only_directory_is_named_when_a_log_is_opened(tmp_path):
    (tmp_path / "cell").mkdir()
    with (
        read_only(tmp_path / "cell"),
        LogWriter() as writer,
        pytest.raises(LogWriteError, match=r"a\.jsonl: cannot open the log: (Read-only|Permission denied)"),
    ):
        writer.open(tmp_path / "cell" / "a.jsonl")


@pytest.mark.parametrize("calls", [("write",), ("fsync",), ("fchmod",), ("rename", "replace"), ("open",)])
def test_a_failed_replacement_leaves_old_or_new_and_no_temporary_file(tmp_path, calls):
    path = tmp_path / "a.jsonl"
    old, new = [line("old")], [line(f"new {number}" + "x" * 1000) for number in range(3000)]
    for faults in every_failure(*calls, error=errno.ENOSPC):
        path.write_bytes(b"".join(part + b"\n" for part in old))
        with faults:
            error = error_of(lambda: replace_log(path, iter(new)))
        assert (error is not None) == faults.happened
        assert error is None or "a.jsonl: cannot replace the log: No space left on device" in error.message
        assert len(texts(path)) in {1, len(new)}
        assert [entry.name for entry in tmp_path.iterdir()] == ["a.jsonl"]


def test_a_replacement_whose_lines_fail_half_way_changes_nothing(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(line("old") + b"\n")

    def lines():
        yield line("new" * 1_000_000)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replace_log(path, lines())
    assert texts(path) == ["old"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.jsonl"]


def test_a_replacement_is_synced_before_it_takes_the_name_and_the_name_after(tmp_path, monkeypatch):
    events = []
    real_sync, real_rename = os.fsync, os.replace

    def fsync(descriptor):
        name = os.readlink(f"/proc/self/fd/{descriptor}")
        events.append("sync directory" if name == str(tmp_path) else "sync file")
        real_sync(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", lambda *args: (events.append("rename"), real_rename(*args)))
    replace_log(tmp_path / "a.jsonl", [line("new")])
    assert events == ["sync file", "rename", "sync directory"]


def test_replacing_by_nothing_empties_the_log(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(line("old") + b"\n")
    replace_log(path, [])
    assert path.read_bytes() == b""
