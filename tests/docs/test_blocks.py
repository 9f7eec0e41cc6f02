"""Every code block of the README and the docs does what the page says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from markdown_blocks import ENDPOINT, PAGES, ROOT, Block, blocks_of, commands_of, missing_line
from openai_server import FakeOpenAI, prompt_text

SHOWN = {"text", "mermaid", "csv", "tsv", "toml", "jinja", "markdown", "dockerfile", "latex", "ini"}
EXCUSED = 7
"""How many blocks are not executed. Each says why on its page; raise the number only together with a good reason."""


def answer(body: dict) -> str:
    """Right on sums (the model `candidate` only on even ones), and always in the form that the built-in benchmarks ask for; as a judge, right on everything."""
    if "\n--- END OF ANSWER " in prompt_text(body):
        return verdict(prompt_text(body))
    numbers = re.search(r"(\d+)\s*\+\s*(\d+)", prompt_text(body))
    value = int(numbers[1]) + int(numbers[2]) if numbers else "A"
    if body["model"] == "candidate" and numbers and value % 2:
        value -= 1  # a model that is worse
    return f"Let me think.\nAnswer: {value}"


def verdict(prompt: str) -> str:
    """The best verdict for an answer that ends in the expected one, else the worst."""
    parts = dict(re.findall(r"--- (ANSWER|EXPECTED ANSWER) \w+ ---\n(.*?)\n--- END OF", prompt, re.DOTALL))
    right = parts["ANSWER"].endswith(parts.get("EXPECTED ANSWER", ""))
    labels = re.search(r'"verdict" is exactly one of (.*)\.', prompt)
    if labels:
        names = json.loads(f"[{labels[1]}]")
        return json.dumps({"reasoning": "compared", "verdict": names[0] if right else names[-1]})
    worst, best = re.search(r"a number from (\S+) \(worst\) to (\S+) \(best\)", prompt).groups()
    return json.dumps({"reasoning": "compared", "score": float(best if right else worst)})


@pytest.fixture(scope="module")
def server():
    with FakeOpenAI(answer, record=False) as running:
        yield running


@pytest.fixture
def reader(server, tmp_path, monkeypatch):
    """A reader at work: a directory of their own, `nel` on PATH, an endpoint."""
    home = tmp_path / "home"
    work = tmp_path / "work"
    home.mkdir()
    work.mkdir()
    kept = {name: value for name, value in os.environ.items() if not re.match(r"(NEL|NEMO|NVIDIA|OPENAI|HF)_", name)}
    env = kept | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "HF_HUB_OFFLINE": "1",
        "COLUMNS": "120",
        "NEL_API_KEY": "key-of-the-reader",
    }
    return Reader(work, env, f"{server.url}/v1")


class Reader:
    def __init__(self, work: Path, env: dict[str, str], endpoint: str) -> None:
        self.work, self.env, self.endpoint = work, env, endpoint

    def follow(self, block: Block) -> None:
        text = block.text.replace(ENDPOINT, self.endpoint)
        self.env |= dict.fromkeys(re.findall(r"\$\{(\w+_(?:KEY|TOKEN))\}", text), "key-of-the-reader")
        if block.title:
            path = self.work / block.title
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        if block.excuse:
            return
        runner = getattr(self, f"_{block.language}", None)
        if runner is not None:
            runner(block, text)
        else:
            assert block.language in SHOWN, f"{block.place}: say which language the block is in, not {block.language!r}"

    def _run(self, block: Block, *command: str) -> str:
        done = subprocess.run(
            command, cwd=self.work, env=self.env, capture_output=True, text=True, timeout=100, check=False
        )
        printed = f"{done.stdout}{done.stderr}"
        assert done.returncode == block.exits, f"{block.place}: exit {done.returncode}\n{printed}"
        return printed

    def _console(self, block: Block, text: str) -> None:
        found = list(commands_of(text))
        assert found, f"{block.place}: a console block needs a line that starts with '$ '"
        for command, expected in found:
            printed = self._run(block, "bash", "-c", command)
            absent = missing_line(expected, printed)
            assert absent is None, f"{block.place}: `{command}` does not print {absent!r}, but:\n{printed}"

    def _bash(self, block: Block, text: str) -> None:
        self._run(block, "bash", "-euo", "pipefail", "-c", text)

    def _python(self, block: Block, text: str) -> None:
        if block.title:
            self._run(block, sys.executable, block.title)
        else:
            self._run(block, sys.executable, "-c", text)

    def _json(self, block: Block, text: str) -> None:
        json.loads(text)

    def _jsonl(self, block: Block, text: str) -> None:
        for line in text.splitlines():
            json.loads(line)

    def _yaml(self, block: Block, text: str) -> None:
        from config_fragments import check_config

        if block.title == "policy.yaml":  # a gate's policy is no configuration; the command after it reads it
            return
        check_config(self.work, block.title, text, self.env)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_code_block_does_what_the_page_says(page, reader):
    for block in blocks_of(page):
        reader.follow(block)


def test_blocks_that_are_not_executed_are_few_and_say_why():
    excused = [block for page in PAGES for block in blocks_of(page) if block.excuse is not None]
    assert [block.place for block in excused if not block.excuse] == []
    assert len(excused) == EXCUSED, [f"{block.place}: {block.excuse}" for block in excused]


def test_a_marker_is_not_overlooked():
    """A marker that is misspelt, or not on the line before its block, would do nothing."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        marked = len(re.findall(r"<!--\s*(?:not[ -]?exec|exit)", text))
        used = sum((block.excuse is not None) + bool(block.exits) for block in blocks_of(page))
        assert marked == used, page
