"""Runs one command, and ends it with everything that it started once NEL ends, is killed, or asks for it.

A program of its own: `python -P guard.py --parent PID --grace SECONDS -- command...`. Its standard input is a pipe
whose other end NEL holds and never writes to; it closes with NEL, however NEL ends. It exits as the command did, by the
same signal where there was one.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable

import psutil

_SET_PDEATHSIG, _SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h
PATIENCE = 5.0
"""Seconds that a killed process is given to go; one that the kernel holds may never do."""
_POLL = 0.5
"""Seconds between two looks at what no signal and no pipe announces."""


def session_members(session: int) -> set[int]:
    """The living processes of a session."""
    found: set[int] = set()
    for pid in psutil.pids():
        with contextlib.suppress(OSError, psutil.Error):
            if os.getsid(pid) == session and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                found.add(pid)
    return found


def send(number: signal.Signals, pids: Iterable[int]) -> None:
    """Send a signal to those that still exist."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def kill_session(session: int) -> None:
    """Kill all processes of a session, and wait until they are gone."""
    deadline = time.monotonic() + PATIENCE
    while (living := session_members(session)) and time.monotonic() < deadline:
        send(signal.SIGKILL, living)
        time.sleep(0.01)


class Guard:
    """The command, its descendants, and the reasons to end them."""

    def __init__(self, command: list[str], parent: int, grace: float) -> None:
        self._parent = parent
        self._grace = grace
        self._asked = False
        self._status: int | None = None
        self._wake, write = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(write, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._ask)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # without a handler the wake-up pipe is not written
        prctl = _prctl()
        prctl(_SET_CHILD_SUBREAPER, 1)  # orphans of the command become children of this process
        me = os.getpid()

        def tie() -> None:
            prctl(_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != me:
                os._exit(1)

        self._command = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=tie)  # noqa: PLW1509 - one thread

    def run(self) -> int:
        """Waits for the end of the command or a reason to end it; its status as `Popen.returncode` has it."""
        while self._status is None and not self._asked and os.getppid() == self._parent:
            self._sleep(_POLL, watch_parent=True)
        self._end_all()
        self._command.returncode = self._status if self._status is not None else -signal.SIGKILL
        return self._command.returncode

    def _ask(self, *_: object) -> None:
        self._asked = True

    def _sleep(self, seconds: float, *, watch_parent: bool) -> None:
        """Until a signal arrives, the pipe to NEL closes, or the time is over; then collect the dead."""
        watched = [self._wake, 0] if watch_parent else [self._wake]
        ready, _, _ = select.select(watched, [], [], seconds)
        if self._wake in ready:
            os.read(self._wake, 4096)
        if 0 in ready and not os.read(0, 1):
            self._asked = True
        self._reap()

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                if found[0] == self._command.pid:
                    self._status = os.waitstatus_to_exitcode(found[1])

    def _end_all(self) -> None:
        deadline = time.monotonic() + self._grace
        told: set[int] = set()
        while (living := self._living()) and time.monotonic() < deadline + PATIENCE:
            if time.monotonic() >= deadline:
                send(signal.SIGKILL, living)
            else:
                send(signal.SIGTERM, living - told)
                told |= living
            self._sleep(0.05, watch_parent=False)
            self._reap()

    def _living(self) -> set[int]:
        found = session_members(os.getsid(0)) - {os.getpid()}
        for child in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if child.status() != psutil.STATUS_ZOMBIE:
                    found.add(child.pid)
        return found


def _prctl() -> Callable[[int, int], object]:
    """`prctl` where the kernel has it; elsewhere the pipe and the parent's id have to do."""
    if not sys.platform.startswith("linux"):
        return lambda _option, _value: None
    import ctypes

    call = ctypes.CDLL(None, use_errno=True).prctl
    return lambda option, value: call(option, ctypes.c_ulong(value), 0, 0, 0)


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(prog="guard")
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--grace", type=float, required=True)
    parser.add_argument("command", nargs="+")
    given = parser.parse_args()
    try:
        status = Guard(given.command, given.parent, given.grace).run()
    except OSError as error:
        sys.exit(f"{given.command[0]} cannot be started: {error}")
    if status < 0:
        _die_by(-status)
    sys.exit(status)


def _die_by(number: int) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


if __name__ == "__main__":
    main()
