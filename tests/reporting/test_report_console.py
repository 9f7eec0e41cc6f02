"""The table at the end of a run: aligned, in colour on a terminal, plain elsewhere, and never a number cut."""

import io
import os
import re
import subprocess
import sys

import pytest
from memory_run import MemoryRun, cell, estimate

from nel.core.rundir import Stage
from nel.reporting.console import print_console, render_console
from nel.reporting.run_view import Counts

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


class Terminal(io.StringIO):
    """A file that says it is a terminal."""

    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    def shown(run, width=120, encoding="utf-8"):
        for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("TERM", "xterm-256color")
        monkeypatch.setenv("COLUMNS", str(width))
        file = type("Named", (Terminal,), {"encoding": encoding})()
        print_console(run, file)
        return file.getvalue()

    return shown


def two_models():
    return MemoryRun(
        cell("gsm8k--a", model="a", counts=Counts(planned=100, scored=97, unscored=1, error=2), degraded=True),
        cell("gsm8k--b", model="b", stage=Stage.FAILED, error="no data", metrics={}, headline=None, counts=Counts()),
    )


def test_the_plain_table_is_aligned_and_has_everything():
    head, rule, first, second = render_console(two_models()).splitlines()[1:5]
    assert head.split("  ")[0] == "Cell"
    assert set(rule) == {"─"}
    for name, value in (
        ("Model", "a"),
        ("Metric", "pass@1"),
        ("Status", "degraded"),
    ):
        assert first[head.index(name) :].startswith(value)
    for name, value in (
        ("Value", "0.725"),
        ("95 % interval", "[0.630, 0.803]"),
        ("Problems", "100 × 1"),
        ("Scored", "97"),
        ("Unscored", "1"),
        ("Errors", "2"),
    ):
        assert first[: head.index(name) + len(name)].endswith(value)
    assert second[head.index("Status") :] == "failed"


def test_the_plain_form_has_no_colour_no_trailing_blanks_and_the_warnings():
    text = render_console(two_models())
    assert "\x1b" not in text
    assert all(line == line.rstrip() for line in text.splitlines())
    assert "! gsm8k--b: failed: no data" in text


def test_one_model_is_named_once_above_the_table():
    text = render_console(MemoryRun(cell("a"), cell("b")))
    assert text.count("qwen3-8b") == 1
    assert "Status" not in text


def test_a_terminal_gets_colours_for_what_needs_a_look(terminal):
    text = terminal(two_models())
    assert "\x1b[33mdegraded" in text
    assert "\x1b[1;31mfailed" in text
    assert "\x1b[31m" in text.split("pass@1")[1].split("degraded")[0]


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 200])
def test_no_width_costs_a_number_or_a_status(terminal, width):
    run = MemoryRun(
        cell("a-very-long-name-of-a-benchmark" * 2, model="organisation/model-name-with-many-parts"),
        cell("b", metrics={"pass@1": estimate(0.123456, ci_lower=0.1, ci_upper=0.2)}, degraded=True, model="m"),
    )
    text = ESCAPE.sub("", terminal(run, width))
    for part in ("0.725", "0.123", "degraded", "100 × 1"):
        assert part in re.sub(r"\s+", " ", text)
    for part in ("[0.630, 0.803]", "[0.100, 0.200]"):
        assert part in re.sub(r"\s+", " ", text)


def test_lines_fit_the_terminal(terminal):
    text = ESCAPE.sub("", terminal(two_models(), 80))
    assert max(len(line) for line in text.splitlines()) <= 80


def test_an_escape_sequence_in_a_name_is_shown_not_obeyed(terminal):
    run = MemoryRun(cell("\x1b[31mred\x1b]0;title\x07", model="[bold]m[/bold]"))
    for text in (render_console(run), terminal(run)):
        assert "\\x1b[31mred" in text
        assert "\x07" not in text
        assert "[bold]m[/bold]" in text
        assert "\x1b]" not in text


def test_a_file_that_knows_ascii_only_gets_ascii(terminal):
    text = terminal(two_models(), encoding="ascii")
    assert text.isascii()
    assert "100 x 1" in text


def test_a_run_without_cells_says_so():
    assert "The run has no cells." in render_console(MemoryRun())


def test_a_pipe_is_plain_and_wide_whatever_the_terminal_is():
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from memory_run import MemoryRun, cell;"
        "from nel.reporting.console import print_console; print_console(MemoryRun(cell(model='m' * 60)), sys.stdout)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, os.path.dirname(__file__)],
        capture_output=True,
        check=True,
        env={**os.environ, "COLUMNS": "30", "PYTHONIOENCODING": "ascii"},
    )
    assert b"m" * 60 in done.stdout
    assert b"100 x 1" in done.stdout
