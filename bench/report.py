"""The HTML report of a run of 14,000 samples, and a page of the viewer over a run of many rows."""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import million


@contextlib.contextmanager
def served(runs: Path, cache: Path) -> Iterator[tuple[str, str]]:
    """Address of a viewer over `runs`, and the name of its one run."""
    import uvicorn

    from nel.reporting.viewer.app import make_app
    from nel.reporting.viewer.library import Library

    library = Library([runs], cache)
    (entry,) = library.entries()
    server = uvicorn.Server(uvicorn.Config(make_app(library), port=0, log_level="warning", lifespan="off"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}", entry.ident
    finally:
        server.should_exit = True
        thread.join()


def main(count: int) -> None:
    from nel.reporting.formats import render
    from nel.reporting.run_view import open_run

    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        one = million.real_run(here)
        middle = million.repeated(one, here / "middle" / "run", 14_000, 0.7, 1)
        begin = time.perf_counter()
        page = render(open_run(middle), "html")
        report_s, report_mb = time.perf_counter() - begin, len(page) / 2**20
        million.repeated(one, here / "large" / "run", count, 0.7, 1)
        with served(here / "large", here / "cache") as (url, run):
            rows = f"{url}/api/run/{run}/samples"
            begin = time.perf_counter()
            with urllib.request.urlopen(f"{rows}?start=0&end=100") as reply:
                assert json.load(reply)["count"] == count
            index_s = time.perf_counter() - begin
            times = []
            for start in (0, count // 2, count - 100, count // 3, 5):
                begin = time.perf_counter()
                with urllib.request.urlopen(f"{rows}?start={start}&end={start + 100}") as reply:
                    reply.read()
                times.append((time.perf_counter() - begin) * 1000)
        print(
            json.dumps(
                {
                    "report_s": round(report_s, 2),
                    "report_mb": round(report_mb, 1),
                    "index_s": round(index_s, 1),
                    "page_ms": round(max(times), 1),
                }
            )
        )


if __name__ == "__main__":
    main(int(sys.argv[1]))
