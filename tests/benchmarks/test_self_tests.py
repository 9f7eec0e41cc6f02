"""Every built-in benchmark grades right, empty and shuffled replies to its own example rows as they deserve."""

import socket

import pytest

from nel.environments.catalog import BUILT_IN
from nel.environments.self_test_run import run_self_test
from nel.sandbox.backends import best_backend
from nel.sandbox.base import SandboxError


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def refuse(*_args, **_options):
        raise AssertionError("a self-test opened a connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.mark.parametrize("name", BUILT_IN)
async def test_the_self_test_passes(name):
    if "sandbox" in BUILT_IN[name].needs:
        try:
            await best_backend()
        except SandboxError as error:
            pytest.skip(error.message)
    for result in await run_self_test(name):
        assert result.passed, (result.params, result.faults)
        assert result.gold == 1.0
        assert result.rows >= 4
