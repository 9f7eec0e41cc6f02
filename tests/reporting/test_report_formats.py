"""A format is known by name; one that this version cannot write is refused, never replaced."""

import pytest
from memory_run import MemoryRun, cell

from nel.config.output import REPORTS_NOW
from nel.core.errors import UsageError
from nel.reporting.formats import FORMATS, SUFFIXES, render


def refusal(name):
    with pytest.raises(UsageError) as caught:
        render(MemoryRun(cell()), name)
    return str(caught.value)


@pytest.mark.parametrize("name", [name for name, item in FORMATS.items() if item.renderer])
def test_every_format_that_has_a_renderer_renders(name):
    text = render(MemoryRun(cell()), name)
    assert "gsm8k" in text
    assert text.endswith("\n")


@pytest.mark.parametrize("name", [name for name, item in FORMATS.items() if not item.renderer])
def test_a_format_that_is_still_missing_is_refused_with_the_list(name):
    assert refusal(name) == (
        f"This version of nel cannot write a {name} report yet.\nFormats: markdown, json, console."
    )


def test_an_unknown_format_names_the_nearest():
    assert refusal("markdwon").endswith("Did you mean 'markdown'? Formats: markdown, json, console.")


def test_what_a_config_may_ask_for_is_what_can_be_rendered():
    assert set(REPORTS_NOW) == {name for name, item in FORMATS.items() if item.renderer}


def test_files_have_suffixes_of_their_own():
    assert len(set(SUFFIXES.values())) == len(SUFFIXES)
    assert SUFFIXES["markdown"] == ".md"
    assert "console" not in SUFFIXES
