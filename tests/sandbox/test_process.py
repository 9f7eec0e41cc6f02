"""A command that is followed: its output is bounded, its time limit holds for all that came of it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nel.sandbox.base import SandboxError
from nel.sandbox.process import Output, end_session, follow


def run(*command: str, **more):
    return asyncio.run(follow(command, end=end_session, **more))


@given(st.lists(st.binary(max_size=50)), st.integers(0, 60))
def test_output_keeps_everything_or_the_first_and_the_last_half(pieces, keep):
    output, whole = Output(keep), b"".join(pieces)
    for piece in pieces:
        output.add(piece)
    if len(whole) <= keep:
        assert (output.value(), output.truncated) == (whole, False)
        return
    half = keep // 2
    assert output.truncated
    said = b"\n[... %d bytes left out ...]\n" % (len(whole) - 2 * half)
    assert output.value() == whole[:half] + said + whole[len(whole) - half :]


def test_both_streams_and_the_exit_code_come_back():
    found = run("sh", "-c", "echo out; echo err >&2; exit 3")
    assert (found.return_code, found.stdout, found.stderr, found.timed_out) == (3, b"out\n", b"err\n", False)


def test_a_signal_is_told_as_a_shell_tells_it():
    assert run("sh", "-c", "kill -9 $$").return_code == 128 + signal.SIGKILL


def test_bytes_that_are_no_text_are_data():
    found = run(sys.executable, "-c", "import sys; sys.stdout.buffer.write(bytes(range(256)))")
    assert found.stdout == bytes(range(256))
    assert "\\xff" in found.text


def test_endless_output_takes_bounded_memory_until_the_time_is_up():
    found = run("sh", "-c", "yes", time_limit=0.5, keep=1000)
    assert (found.return_code, found.timed_out, found.truncated) == (124, True, True)
    assert len(found.stdout) < 1100


def test_what_was_printed_before_the_time_was_up_is_kept():
    found = run("sh", "-c", "echo begun; sleep 60", time_limit=0.3)
    assert (found.stdout, found.timed_out) == (b"begun\n", True)


def test_a_process_left_in_the_background_does_not_hold_the_caller():
    found = run("sh", "-c", "sleep 60 & echo $!", time_limit=30)
    os.kill(int(found.stdout), signal.SIGKILL)
    assert found.return_code == 0


def test_standard_input_of_any_size_is_read():
    found = run("wc", "-c", stdin=b"x" * (1 << 20))
    assert int(found.stdout) == 1 << 20


def test_a_cancelled_caller_leaves_no_process(tmp_path):
    os.mkfifo(tmp_path / "pid")

    async def cancelled():
        task = asyncio.create_task(follow(["sh", "-c", f"echo $$ > {tmp_path}/pid; sleep 60"], end=end_session))
        pid = int(await asyncio.to_thread((tmp_path / "pid").read_text))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return pid

    with pytest.raises(ProcessLookupError):
        os.kill(asyncio.run(cancelled()), 0)


def test_a_command_that_is_not_there_is_an_error_of_the_sandbox():
    with pytest.raises(SandboxError, match="no-such-command cannot be run: No such file"):
        run("no-such-command")
