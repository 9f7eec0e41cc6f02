"""The fake server as a process of its own, and in a thread."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import openai_server
import pytest
from openai_server import FakeOpenAI


@contextmanager
def process(*arguments: str) -> Iterator[str]:
    command = [sys.executable, openai_server.__file__, "--port", "0", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


def ask(url: str, text: str) -> str:
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": text}]}).encode()
    request = urllib.request.Request(f"{url}/v1/chat/completions", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as reply:
        return json.load(reply)["choices"][0]["message"]["content"]


def test_a_process_prints_its_address_and_answers_from_a_file(tmp_path: Path) -> None:
    answers = tmp_path / "answers.json"
    answers.write_text(json.dumps({"6 x 7?": "42", "capital of Norway": {"content": "Oslo"}}))
    with process("--answers", str(answers), "--default", "who knows") as url:
        assert url.startswith("http://127.0.0.1:")
        assert ask(url, "6 x 7?") == "42"
        assert ask(url, "Q: the capital of Norway?") == "Oslo"
        assert ask(url, "9 x 9?") == "who knows"


def test_a_process_can_echo_and_can_answer_instantly() -> None:
    with process("--echo") as url:
        assert ask(url, "hello") == "hello"
    with process("--instant", "1400") as url:
        assert ask(url, "hello").endswith("ok")
        assert ask(url, "again").endswith("ok")


def test_a_thread_serves_synchronous_code_and_records_what_arrives() -> None:
    with FakeOpenAI(lambda _: "hi") as server:
        assert ask(server.url, "hello") == "hi"
    assert server.bodies[0]["messages"][0]["content"] == "hello"
    assert server.requests[0].path == "/v1/chat/completions"
    assert (server.count, server.in_flight, server.max_in_flight) == (1, 0, 1)


def test_an_answer_function_that_fails_is_a_500() -> None:
    with FakeOpenAI(lambda body: body["missing"]) as server, pytest.raises(urllib.error.HTTPError, match="500"):
        ask(server.url, "hello")
