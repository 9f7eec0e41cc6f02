"""The live display and the plain lines."""

from __future__ import annotations

import io
import re
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from nel.observability.progress import ConsoleProgress, NullProgress, Progress, ProgressSnapshot
from nel.observability.progress_board import Board, Rate
from nel.observability.progress_rows import Row, Span, lay_out, plain_line

EVERY_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
COLOUR = re.compile(r"\x1b\[(?:[0-9]+;)*(?:3[0-7]|38|9[0-7])[;m]")


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    def __init__(self, encoding: str = "utf-8") -> None:
        super().__init__()
        self._encoding = encoding

    @property
    def encoding(self) -> str:
        return self._encoding

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        text.encode(self._encoding)  # as a real terminal's stream: what cannot be encoded raises
        return super().write(text)


class LogFile(io.StringIO):
    """Not a terminal; tells when it has so many lines."""

    def __init__(self) -> None:
        super().__init__()
        self._changed = threading.Condition()

    def write(self, text: str) -> int:
        with self._changed:
            count = super().write(text)
            self._changed.notify_all()
            return count

    def lines(self) -> list[str]:
        return self.getvalue().splitlines()

    def wait_for(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.lines()) >= count, timeout=20)


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("LINES", "30")


def snapshot(done: int, total: int = 100, **fields: object) -> ProgressSnapshot:
    return ProgressSnapshot(done=done, total=total, **fields)


def text(spans: list[Span]) -> str:
    return "".join(part for part, _ in spans)


def frame(stream: Terminal) -> str:
    """All that was ever shown, without control codes."""
    return EVERY_ESCAPE.sub("", stream.getvalue())


FULL = {
    "scored": 58, "unscored": 1, "errors": {"rate_limit": 2, "model_timeout": 1}, "mean": 0.412, "ci_lower": 0.288,
    "ci_upper": 0.536, "tokens": 61_000, "cost": 0.1234, "elapsed": 60.0, "in_flight": 8,
}  # fmt: skip


def test_a_line_says_everything_the_engine_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "180")
    clock, stream = Clock(), Terminal()
    progress = ConsoleProgress(stream, clock=clock)
    progress.begin("gsm8k", 100)
    clock.now += 60
    progress.update("gsm8k", snapshot(62, **FULL))
    progress._display._live.refresh()
    shown = frame(stream)
    for fact in (
        "gsm8k", "62/100", "62%", "0.412 ± 0.124", "3 errors", "(rate_limit 2, model_timeout 1)", "1 unscored",
        "1,017 tok/s", "$0.12", "8 in flight", "1m00s", "36s left", "━",
    ):  # fmt: skip
        assert fact in shown
    progress.close()


def test_a_slow_model_is_seen_to_be_alive() -> None:
    clock, stream = Clock(), Terminal()
    progress = ConsoleProgress(stream, clock=clock)
    progress.begin("essay", 10)
    progress.update("essay", snapshot(0, 10, in_flight=4))
    for passed in (5, 70):
        clock.now += passed
        progress._display._live.refresh()
    assert "5s" in frame(stream)
    assert "1m15s" in frame(stream)
    assert "4 in flight" in frame(stream)
    progress.close()


def test_finished_cells_leave_their_line_and_several_have_a_total() -> None:
    clock, stream = Clock(), Terminal()
    progress = ConsoleProgress(stream, clock=clock)
    progress.begin("facts", 10)
    progress.begin("sums", 20)
    clock.now += 4
    progress.end("facts", snapshot(10, 10, mean=1.0, ci_lower=0.722, ci_upper=1.0, elapsed=4, cost=0.5))
    progress.update("sums", snapshot(5, 20, mean=0.25, cost=0.25))
    progress.message("judge restarted")
    progress.close()
    shown = frame(stream)
    assert re.search(r"facts +━+ +10/10 .*1\.000 \[0\.722, 1\.000\] +4\.0s", shown)
    lines = [line for line in re.split(r"[\r\n]+", shown) if line.strip()]
    assert "judge restarted" in lines
    assert any(re.search(r"sums .* 5/20 .* 0\.250", line) for line in lines)
    assert re.search(r"total .* 15/30 .* \$0\.75", lines[-1])
    assert stream.getvalue().count("\x1b[?25h") >= 1  # the cursor is back


def test_one_cell_needs_no_total() -> None:
    stream = Terminal()
    progress = ConsoleProgress(stream, clock=Clock())
    progress.begin("facts", 10)
    progress.end("facts", snapshot(10, 10))
    progress.close()
    assert "total" not in frame(stream)


def test_more_cells_than_lines_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINES", "8")
    stream = Terminal()
    progress = ConsoleProgress(stream, clock=Clock())
    for at in range(40):
        progress.begin(f"cell-{at}", 10)
    progress._display._live.refresh()
    assert "and 35 more" in frame(stream)
    progress.close()


def test_no_color_leaves_no_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = []
    for no_color in (False, True):
        if no_color:
            monkeypatch.setenv("NO_COLOR", "1")
        stream = Terminal()
        progress = ConsoleProgress(stream, clock=Clock())
        progress.begin("gsm8k", 100)
        progress.end("gsm8k", snapshot(62, **FULL))
        progress.close()
        outputs.append(stream.getvalue())
    assert COLOUR.search(outputs[0])
    assert not COLOUR.search(outputs[1])


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "nonsense"])
def test_a_terminal_without_unicode_gets_ascii(encoding: str) -> None:
    class Plain(Terminal):
        def write(self, text: str) -> int:
            text.encode("ascii")
            return io.StringIO.write(self, text)

    stream = Plain(encoding)
    progress = ConsoleProgress(stream, clock=Clock())
    progress.begin("数学", 100)
    progress.message("naïve … 数")
    progress.end("数学", snapshot(62, **FULL))
    progress.close()
    assert "####" in frame(stream)
    assert "0.412 +/- 0.124" in frame(stream)
    assert "na?ve ... ?" in frame(stream)


def test_elsewhere_there_are_plain_dated_lines() -> None:
    clock, stream = Clock(), io.StringIO()
    progress = ConsoleProgress(stream, interval=3600, clock=clock)
    progress.begin("gsm8k", 100, 12)
    for _ in range(50):
        progress.update("gsm8k", snapshot(40, known=12))
    progress.message("service: 429,\nwaiting")
    clock.now += 60
    progress.end("gsm8k", snapshot(100, known=12, **FULL))
    progress.begin("sums", 5)
    progress.close()
    lines = [re.fullmatch(r"\d\d:\d\d:\d\d (.*)", line)[1] for line in stream.getvalue().splitlines()]
    common = "3 errors (rate_limit 2, model_timeout 1), 1 unscored, 1,017 tok/s, $0.12"
    assert lines == [
        "gsm8k: 100 attempts, 12 of them known from an earlier run",
        "service: 429,",
        "waiting",
        f"gsm8k: done, 100/100 (100%), score 0.412 ± 0.124, {common}, took 1m00s",
        "sums: 5 attempts",
        "sums: stopped, 0/5 (0%), took 0s",
        f"total: stopped, 100/105 (95%), {common}, took 1m00s",
    ]
    assert "\x1b" not in stream.getvalue()


def test_plain_lines_come_by_the_clock_even_when_nothing_happens() -> None:
    stream = LogFile()
    progress = ConsoleProgress(stream, interval=0.01)
    progress.begin("essay", 10)
    progress.update("essay", snapshot(0, 10, in_flight=4))
    stream.wait_for(4)
    progress.close()
    count = len(stream.lines())
    assert "essay: 0/10 (0%), 4 in flight, elapsed 0s" in stream.lines()[2]
    assert "stopped" in stream.lines()[-1]
    assert not [thread for thread in threading.enumerate() if thread.name == "nel-progress"]
    assert len(stream.lines()) == count


@pytest.mark.parametrize("kind", [Terminal, io.StringIO])
def test_a_closed_terminal_does_not_end_a_run(kind: type[io.StringIO]) -> None:
    class Broken(kind):
        def write(self, _text: str) -> int:
            raise BrokenPipeError

        def flush(self) -> None:
            raise BrokenPipeError

    progress = ConsoleProgress(Broken(), interval=3600, clock=Clock())
    progress.begin("gsm8k", 10)
    progress.update("gsm8k", snapshot(3, 10))
    progress.message("still here")
    progress.end("gsm8k", snapshot(10, 10))
    progress.close()
    assert progress._board.active() == []


def test_a_dumb_terminal_gets_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    stream = Terminal()
    progress = ConsoleProgress(stream, interval=3600, clock=Clock())
    progress.begin("gsm8k", 10)
    progress.close()
    assert "\x1b" not in stream.getvalue()
    assert "gsm8k: 10 attempts" in stream.getvalue()


def test_names_and_messages_cannot_move_the_cursor() -> None:
    stream = io.StringIO()
    progress = ConsoleProgress(stream, interval=3600, clock=Clock())
    progress.begin("evil\x1b[2J\r\nname", 10)
    progress.message("\x1b]0;title\x07 hello \ud800")
    progress.close()
    assert "\x1b" not in stream.getvalue()
    assert len(stream.getvalue().splitlines()) == 3


def test_what_an_earlier_run_did_does_not_speed_up_this_one() -> None:
    clock = Clock()
    board = Board(clock)
    board.begin("gsm8k", 1000, 900)
    for done in range(901, 911):
        clock.now += 2
        board.update("gsm8k", snapshot(done, 1000, known=900))
    row = board.active()[0]
    assert row.remaining == pytest.approx(90 * 2, rel=0.01)


def test_an_estimate_that_was_never_begun_or_ended_is_shown_all_the_same() -> None:
    clock = Clock()
    board = Board(clock)
    board.update("late", snapshot(5, 10, known=4))
    assert [row.name for row in board.active()] == ["late"]
    clock.now += 10
    stopped = board.end_all()[0]
    assert (stopped.ended, stopped.elapsed) == (True, 10)
    assert board.active() == []


def test_time_left_for_all_cells_is_their_work_at_their_speed() -> None:
    clock = Clock()
    board = Board(clock)
    board.begin("a", 100, 0)
    board.begin("b", 100, 0)
    for step in range(1, 11):
        clock.now += 1
        board.update("a", snapshot(step, 100))
        board.update("b", snapshot(3 * step, 100))
    assert board.total().remaining == pytest.approx((90 + 70) / 4, rel=0.01)
    assert (board.total().done, board.total().total, board.total().mean) == (40, 200, None)


@pytest.mark.parametrize("step", [0.1, 1, 45])
def test_a_steady_rate_is_found_at_once_and_whatever_the_pace(step: float) -> None:
    rate = Rate(0)
    assert rate.per_second(5) is None
    for at in range(1, 40):
        rate.update(7 * step * at, step * at)
        assert rate.per_second(step * at) == pytest.approx(7)


def test_a_rate_forgets_a_fast_start_and_falls_while_nothing_happens() -> None:
    rate = Rate(0)
    rate.update(1000, 1)
    for second in range(2, 240):
        rate.update(1000 + second, second)
    assert 1 <= rate.per_second(239) < 2
    assert rate.per_second(300) < rate.per_second(239) / 1.5


def test_many_updates_at_one_moment_count_once() -> None:
    rate = Rate(0)
    rate.update(10, 10)
    rate.update(15, 10)
    rate.update(20, 10)
    assert rate.per_second(20) == pytest.approx(1, rel=0.1)


rows = st.builds(
    Row,
    name=st.text(max_size=40),
    done=st.integers(0, 20_000),
    total=st.integers(0, 20_000),
    mean=st.one_of(st.none(), st.floats(-10, 10_000)),
    ci_lower=st.none(),
    ci_upper=st.none(),
    unscored=st.integers(0, 500),
    errors=st.dictionaries(st.sampled_from(["rate_limit", "server_error", "x\ny"]), st.integers(1, 999)),
    tokens_per_second=st.one_of(st.none(), st.floats(0, 1e9)),
    cost=st.one_of(st.none(), st.floats(0, 1e5)),
    in_flight=st.integers(0, 512),
    elapsed=st.floats(0, 1e6),
    remaining=st.one_of(st.none(), st.floats(0, 1e6)),
    ended=st.booleans(),
)


@settings(deadline=None, max_examples=80)
@given(cells=st.lists(rows, min_size=1, max_size=5), width=st.integers(1, 220), ascii_only=st.booleans())
def test_lines_are_aligned_and_never_wider_than_the_terminal(cells: list[Row], width: int, ascii_only: bool) -> None:
    lines = [text(spans) for spans in lay_out(cells, width, {}, ascii_only=ascii_only)]
    assert len({cell_len(line) for line in lines}) == 1
    assert cell_len(lines[0]) <= width
    assert not any("\n" in line for line in lines)
    if ascii_only:
        assert all(line.isascii() for line in lines)


@settings(deadline=None, max_examples=40)
@given(row=rows)
def test_a_plain_line_is_one_line(row: Row) -> None:
    assert len(plain_line(row).splitlines()) == 1


def test_columns_do_not_jump_when_a_text_gets_shorter() -> None:
    widths: dict[str, int] = {}
    wide = lay_out([Row(name="a-long-name", done=1, total=10, in_flight=128)], 100, widths, ascii_only=True)
    narrow = lay_out([Row(name="b", done=2, total=10, in_flight=9)], 100, widths, ascii_only=True)
    assert text(wide[0]).index("1/10") == text(narrow[0]).index("2/10")


def test_a_program_may_show_nothing() -> None:
    progress: Progress = NullProgress()
    progress.begin("a", 1)
    progress.update("a", snapshot(1, 1))
    progress.message("x")
    progress.end("a", snapshot(1, 1))
    assert progress.close() is None
