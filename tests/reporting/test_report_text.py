"""Whatever a model or a data set puts into a name, an answer or a message, a report shows it and stays whole."""

import unicodedata

from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from nel.reporting.text import excerpt, markdown, one_line

NASTY = st.text(alphabet=st.sampled_from(list("|`*_[]()<>&;#~$\\!-+=:.1ax \n\t\r\x1b\u202e\u2028é漢")), max_size=30)
ANY = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def shown(source):
    """The text that a reader sees in each inline part of a Markdown page."""
    return [
        "".join(child.content for child in token.children if child.type == "text")
        for token in PARSER.parse(source)
        if token.type == "inline"
    ]


@settings(deadline=None, max_examples=300)
@given(st.one_of(NASTY, ANY))
@example("# C#")
@example("1. first")
@example("- [ ] task")
@example("[a](https://evil)")
@example("a&lt;b &#36; &amp")
@example("~~gone~~ $x$")
@example("__init__ snake_case _x_")
@example("trailing \\")
def test_any_text_is_shown_as_it_is_in_a_table_a_list_a_heading_and_a_paragraph(text):
    escaped, expected = markdown(text), one_line(text)
    page = f"# x {escaped}\n\n| a | b |\n|---|---|\n| {escaped} | end |\n\n- {escaped}\n\nx {escaped}\n"
    lines = [f"x {expected}".strip(), "a", "b", expected, "end", *([expected] if expected else []), f"x {expected}"]
    assert [line.strip() for line in shown(page)] == [line.strip() for line in lines]


@given(st.one_of(NASTY, ANY))
@settings(deadline=None, max_examples=200)
def test_one_line_is_one_line_without_control_characters(text):
    line = one_line(text)
    assert line.splitlines() in ([], [line])
    assert not [char for char in line if unicodedata.category(char) == "Cc"]
    assert "\u202e" not in line


def test_a_control_character_is_shown_rather_than_dropped():
    assert one_line("red\x1b[31m") == "red\\x1b[31m"
    assert one_line("a\n\tb\u2028c") == "a b c"


@given(ANY, st.integers(5, 40))
@settings(deadline=None, max_examples=200)
def test_an_excerpt_is_never_longer_than_asked_and_says_that_it_was_cut(text, limit):
    found = excerpt(text, limit)
    assert len(found) <= limit
    assert found == one_line(text) or found.endswith("…")


def test_an_excerpt_of_a_huge_text_is_quick_to_make():
    assert excerpt("word " * 20_000_000, 20) == "word word word word…"
