"""A real browser, and a real viewer on a free port, for tests."""

import contextlib
import shutil
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import uvicorn
from playwright.sync_api import sync_playwright

from nel.reporting.viewer.app import make_app
from nel.reporting.viewer.library import Library

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@contextlib.contextmanager
def chromium():
    """Debian's Chromium; the test is skipped where it is not installed."""
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("Chromium is not installed: scripts/ci-packages installs it")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


@contextlib.contextmanager
def serving(*roots, cache, **guard):
    """The address of a viewer over `roots`."""
    config = uvicorn.Config(make_app(Library(roots, cache), **guard), log_level="warning", lifespan="off")
    server = uvicorn.Server(config)
    sock = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{sock.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


def elsewhere(function, *args, **kwargs):
    """The result of `function` in a thread: a coroutine can be run there although Playwright has a loop here."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function, *args, **kwargs).result()


def rows(page):
    """The ids of the samples in the list, from the top; waits until one is there."""
    page.wait_for_selector(".row .id")
    found = page.locator(".row", has=page.locator(".id")).all()
    return [
        row.locator(".id").inner_text().splitlines()[0]
        for row in sorted(found, key=lambda row: row.bounding_box()["y"])
    ]
