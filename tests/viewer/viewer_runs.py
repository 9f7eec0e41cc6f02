"""Runs for the viewer's tests, and one that can be held while it is in progress."""

import asyncio
import contextlib
import json
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "reporting"))

from real_run import Adder, Sums, evaluate

__all__ = ["Adder", "Sums", "evaluate", "get", "held", "two_runs"]


def two_runs(folder, count=60):
    """`first` is wrong at 3 and 5, unreadable at 8; `second` wrong at 5 and 10."""
    evaluate(folder / "first", Sums(count), Adder(wrong=(3, 5), unreadable=(8,)))
    evaluate(folder / "second", Sums(count), Adder(wrong=(5, 10)))
    return folder


def get(address, **headers):
    """Status, headers and body of one request; redirects are not followed."""

    class Stay(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *args):
            return None

    request = urllib.request.Request(
        address, headers={name.replace("_", "-"): value for name, value in headers.items()}
    )
    try:
        with urllib.request.build_opener(Stay).open(request) as answer:
            body = answer.read().decode()
            return answer.status, answer.headers, json.loads(body) if "json" in answer.headers["content-type"] else body
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, error.read().decode()


class Gate(Adder):
    """Answers the first `free` problems; the others when `opened` is set."""

    def __init__(self, free):
        super().__init__()
        self.free, self.opened = free, threading.Event()

    async def solve(self, task):
        if int(task.prompt.partition("+")[0]) >= self.free:
            await asyncio.to_thread(self.opened.wait)
        return await super().solve(task)


@contextlib.contextmanager
def held(directory, free=5, count=12):
    """A run in progress with `free` of `count` attempts made; the value lets it end, and waits for that."""
    gate = Gate(free)
    thread = threading.Thread(target=evaluate, args=(directory, Sums(count), gate))
    thread.start()

    def finish():
        gate.opened.set()
        thread.join()

    try:
        log = directory / "sums" / "results.jsonl"
        while not (log.is_file() and log.read_bytes().count(b"\n") >= free):
            threading.Event().wait(0.01)
        yield finish
    finally:
        finish()
