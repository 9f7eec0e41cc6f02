"""The backends that work on this machine, each with a sandbox of small limits."""

from __future__ import annotations

import asyncio
import subprocess
from contextlib import asynccontextmanager

import pytest
from sandboxes import IMAGE, LIMITS, REQUIRED, SCRIPTS, ensure_image

from nel.sandbox.backends import get_backend
from nel.sandbox.base import SandboxError, SandboxSpec


@pytest.fixture(scope="session")
def image():
    """The image of the tests."""
    return ensure_image()


@pytest.fixture(scope="session")
def working(request):
    """From a backend to why it cannot be used here, or None; asked once for each."""
    found = {}

    def ask(name):
        if name not in found:
            if name == "docker":
                subprocess.run([SCRIPTS / "docker-daemon", "start"], check=False)
            try:
                asyncio.run(get_backend(name).check())
                found[name] = None
            except SandboxError as error:
                found[name] = error.message
        return found[name]

    return ask


@pytest.fixture
def backend(request, working):
    """A backend by the name in the test's parameters; the test is skipped where it does not work."""
    name = request.param
    reason = working(name)
    if reason is not None:
        if name in REQUIRED:
            pytest.fail(f"{name} must work here: {reason}")
        pytest.skip(f"{name}: {reason}")
    if name == "docker":
        request.getfixturevalue("image")
    return name


@pytest.fixture
def opened(backend):
    """`async with opened(**spec) as sandbox`: a started sandbox of the backend."""

    @asynccontextmanager
    async def open_sandbox(*, endpoints=(), **spec):
        made = get_backend(backend)
        if backend in {"docker", "podman"}:
            spec.setdefault("image", IMAGE)
        sandbox = made.sandbox(SandboxSpec(**{"limits": LIMITS, **spec}))
        await sandbox.start(endpoints)
        try:
            yield sandbox
        finally:
            await sandbox.stop()
            await made.close()

    return open_sandbox
