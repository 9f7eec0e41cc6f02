import asyncio
import os
import subprocess
import sys
import threading
import time

import pytest

from nel.core.contract import Record
from nel.core.errors import LogWriteError
from nel.core.log import LogWriter, replace_log, scan_log


class Note(Record, tag="nel.note/1"):
    text: str


def texts(path):
    return [note.text for _, _, note in scan_log(path, Note)]


def test_acknowledged_records_are_in_the_file(tmp_path):
    with LogWriter(interval=60) as writer:
        log = writer.open(tmp_path / "a.jsonl")
        for text in ("one", "two"):
            log.append(Note(text=text).to_json())
        writer.sync()
        assert texts(log.path) == ["one", "two"]


def test_append_returns_the_offset_of_its_line(tmp_path):
    with LogWriter() as writer:
        log = writer.open(tmp_path / "a.jsonl")
        lines = [Note(text="x" * size).to_json() for size in (0, 7, 5000)]
        offsets = [log.append(line) for line in lines]
    with LogWriter() as writer:
        log = writer.open(tmp_path / "a.jsonl")
        lines.append(Note(text="later").to_json())
        offsets.append(log.append(lines[-1]))
    data = log.path.read_bytes()
    assert [data[offset : offset + len(line)] for offset, line in zip(offsets, lines, strict=True)] == lines
    assert [(offset, length) for offset, length, _ in scan_log(log.path, Note)] == list(
        zip(offsets, map(len, lines), strict=True)
    )


def test_records_become_durable_without_being_asked_for(tmp_path):
    synced = threading.Event()
    with pytest.MonkeyPatch.context() as monkeypatch, LogWriter(interval=0.01) as writer:
        log = writer.open(tmp_path / "a.jsonl")
        writer.sync()
        real = os.fsync
        monkeypatch.setattr(os, "fsync", lambda descriptor: (real(descriptor), synced.set()))
        log.append(Note(text="alone").to_json())
        assert synced.wait(10)
        assert texts(log.path) == ["alone"]


def test_append_never_syncs_on_the_callers_thread_and_groups_commits(tmp_path, monkeypatch):
    threads = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda descriptor: (threads.append(threading.get_ident()), real(descriptor)))
    with LogWriter(interval=60) as writer:
        log = writer.open(tmp_path / "a.jsonl")
        writer.sync()
        threads.clear()
        for number in range(1000):
            log.append(Note(text=str(number)).to_json())
        assert threads == []
        writer.sync()
    assert len(threads) == 1
    assert threading.get_ident() not in threads
    assert len(texts(log.path)) == 1000


def test_a_log_is_synced_at_most_once_per_interval(tmp_path, monkeypatch):
    commits = []
    real = os.fsync
    with LogWriter(interval=0.05) as writer:
        log = writer.open(tmp_path / "a.jsonl")
        writer.sync()
        monkeypatch.setattr(os, "fsync", lambda descriptor: (commits.append(time.monotonic()), real(descriptor)))
        end = time.monotonic() + 0.3
        while time.monotonic() < end:
            log.append(Note(text="x").to_json())
            threading.Event().wait(0.001)
        unasked = list(commits)
    assert 1 <= len(unasked) <= 0.3 / 0.05 + 2


def test_an_attempt_is_durable_before_its_score(tmp_path, monkeypatch):
    """At each sync of the second log, every record that preceded one of its own stands in the first."""
    real = os.fsync
    checked = []
    with LogWriter(interval=0.001) as writer:
        attempts, scores = writer.open(tmp_path / "attempts.jsonl"), writer.open(tmp_path / "scores.jsonl")
        writer.sync()
        durable = {}

        def fsync(descriptor):
            real(descriptor)
            durable[descriptor] = set(os.pread(descriptor, 1 << 20, 0).splitlines())
            if descriptor == scores.descriptor:
                checked.append(durable[scores.descriptor] <= durable[attempts.descriptor])

        monkeypatch.setattr(os, "fsync", fsync)
        for number in range(2000):
            line = Note(text=str(number)).to_json()
            attempts.append(line)
            scores.append(line)
        writer.sync()
        monkeypatch.undo()
    assert checked
    assert all(checked)


async def drained(writer, log, text):
    log.append(Note(text=text).to_json())
    await writer.drain()
    return text in texts(log.path)


def test_drain_waits_for_the_disk_and_serves_many_tasks(tmp_path):
    async def main():
        with LogWriter(interval=60) as writer:
            log = writer.open(tmp_path / "a.jsonl")
            return await asyncio.gather(*(drained(writer, log, f"<{number}>") for number in range(50)))

    assert asyncio.run(main()) == [True] * 50


def test_drain_returns_at_once_when_nothing_is_pending(tmp_path):
    async def main():
        with LogWriter(interval=60) as writer:
            writer.open(tmp_path / "a.jsonl")
            await writer.drain()
            drain = writer.drain()
            with pytest.raises(StopIteration):  # it never yields to the loop
                drain.send(None)

    asyncio.run(main())


def test_a_cancelled_drain_harms_nobody(tmp_path):
    async def main():
        with LogWriter(interval=60) as writer:
            log = writer.open(tmp_path / "a.jsonl")
            log.append(Note(text="x").to_json())
            task = asyncio.create_task(writer.drain())
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await drained(writer, log, "y")

    asyncio.run(main())


def test_a_loop_that_ended_while_it_waited_harms_nobody(tmp_path, monkeypatch):
    release = threading.Event()
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda descriptor: (release.wait(10), real(descriptor)))
    with LogWriter(interval=60) as writer:
        log = writer.open(tmp_path / "a.jsonl")
        log.append(Note(text="x").to_json())
        loop = asyncio.new_event_loop()
        task = loop.create_task(writer.drain())
        loop.run_until_complete(asyncio.sleep(0))
        task.cancel()
        loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
        loop.close()
        release.set()
        writer.sync()
        assert texts(log.path) == ["x"]


def test_ready_holds_producers_back_until_a_commit_makes_room(tmp_path, monkeypatch):
    gate = threading.Event()
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda descriptor: (gate.wait(10), real(descriptor)))

    async def main():
        with LogWriter(interval=0.001, max_pending=10) as writer:
            log = writer.open(tmp_path / "a.jsonl")
            appended = 0
            blocked = asyncio.Event()

            async def produce():
                nonlocal appended
                for _ in range(50):
                    ready = asyncio.ensure_future(writer.ready())
                    await asyncio.sleep(0)
                    if not ready.done():
                        blocked.set()
                    await ready
                    log.append(Note(text="x").to_json())
                    appended += 1

            producer = asyncio.create_task(produce())
            await blocked.wait()
            held_back_at = appended
            gate.set()
            await producer
            return held_back_at, appended

    held_back_at, appended = asyncio.run(main())
    assert held_back_at < 10
    assert appended == 50
    assert len(texts(tmp_path / "a.jsonl")) == 50


def test_ready_also_counts_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr("nel.core.log._MAX_PENDING_BYTES", 1000)

    async def main():
        with LogWriter(interval=0.001) as writer:
            log = writer.open(tmp_path / "a.jsonl")
            await writer.drain()
            log.append(Note(text="x" * 2000).to_json())
            await writer.ready()
            return texts(log.path)

    assert len(asyncio.run(main())) == 1


def test_many_threads_may_append(tmp_path):
    with LogWriter(interval=0.001) as writer:
        log = writer.open(tmp_path / "a.jsonl")
        offsets = {}

        def work(name):
            for number in range(200):
                line = Note(text=f"{name}-{number}").to_json()
                offsets[log.append(line)] = line

        threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert {offset: note.to_json() for offset, _, note in scan_log(log.path, Note)} == offsets


def test_close_makes_everything_durable_and_is_idempotent(tmp_path):
    writer = LogWriter(interval=60)
    log = writer.open(tmp_path / "a.jsonl")
    log.append(Note(text="last").to_json())
    writer.close()
    writer.close()
    assert texts(log.path) == ["last"]
    with pytest.raises(LogWriteError, match="closed"):
        log.append(b"{}")
    with pytest.raises(LogWriteError, match="closed"):
        writer.open(tmp_path / "b.jsonl")
    with pytest.raises(LogWriteError, match="closed"):
        writer.sync()


def test_writers_leave_no_thread_and_no_open_file(tmp_path):
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        with LogWriter() as writer:
            for name in "abc":
                writer.open(tmp_path / name)
    assert len(os.listdir("/proc/self/fd")) == before
    assert not [thread for thread in threading.enumerate() if thread.name == "nel-log-writer"]


def test_a_log_can_be_closed_replaced_and_opened_again_while_the_writer_lives(tmp_path):
    with LogWriter(interval=60) as writer:
        log, other = writer.open(tmp_path / "a.jsonl"), writer.open(tmp_path / "b.jsonl")
        for text in "cab":
            log.append(Note(text=text).to_json())
        log.close()
        log.close()
        with pytest.raises(LogWriteError, match=r"a\.jsonl: the log is closed"):
            log.append(b"{}")
        replace_log(log.path, (Note(text=text).to_json() for text in sorted(texts(log.path))))
        again = writer.open(log.path)
        again.append(Note(text="d").to_json())
        other.append(Note(text="other").to_json())
        writer.sync()
        assert texts(log.path) == ["a", "b", "c", "d"]
        assert texts(other.path) == ["other"]


def test_lines_left_by_a_killed_process_are_made_durable_by_the_next(tmp_path, monkeypatch):
    path = tmp_path / "a.jsonl"
    path.write_bytes(Note(text="unsynced").to_json() + b"\n")
    synced = []
    real = os.fsync
    monkeypatch.setattr(
        os, "fsync", lambda descriptor: (synced.append(os.readlink(f"/proc/self/fd/{descriptor}")), real(descriptor))
    )
    with LogWriter(interval=60) as writer:
        writer.open(path)
        writer.sync()
        assert str(path) in synced
        assert str(tmp_path) in synced  # the name of a new file must survive a power cut as well


@pytest.mark.parametrize("line", [b"", b"a\nb", b"a\n"])
def test_a_line_that_would_break_the_file_is_refused(tmp_path, line):
    with LogWriter() as writer:
        log = writer.open(tmp_path / "a.jsonl")
        with pytest.raises(ValueError, match="newline"):
            log.append(line)
    assert log.path.read_bytes() == b""


@pytest.mark.parametrize("place", ["missing/a.jsonl", "."])
def test_a_log_that_cannot_be_opened_names_file_and_reason(tmp_path, place):
    with LogWriter() as writer, pytest.raises(LogWriteError, match=r"No such file|Is a directory") as caught:
        writer.open(tmp_path / place)
    assert str(tmp_path) in caught.value.message


FORKED = """
import os, sys
from pathlib import Path
from nel.core.errors import LogWriteError
from nel.core.log import LogWriter
writer = LogWriter(interval=60)
log = writer.open(Path(sys.argv[1]))
log.append(b'"parent"')
child = os.fork()
if child == 0:
    refused = 0
    for call in (lambda: log.append(b'"child"'), writer.sync, writer.close):
        try:
            call()
        except LogWriteError:
            refused += 1
    os._exit(refused)
status = os.waitpid(child, 0)[1]
writer.close()
sys.exit(os.waitstatus_to_exitcode(status))
"""


def test_a_forked_child_cannot_write_the_parents_log_and_does_not_hang(tmp_path):
    path = tmp_path / "a.jsonl"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FORKED, path], check=False, timeout=30)
    assert done.returncode == 3
    assert path.read_bytes() == b'"parent"\n'
