"""A format is known by name; one that this version cannot write is refused, never replaced."""

from typing import get_args

import pytest
from memory_run import MemoryRun, cell

from nel.config.output import Output
from nel.core.errors import UsageError
from nel.reporting.formats import FORMATS, SUFFIXES, render


def refusal(name):
    with pytest.raises(UsageError) as caught:
        render(MemoryRun(cell()), name)
    return str(caught.value)


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_renders(name):
    text = render(MemoryRun(cell()), name)
    assert "gsm8k" in text
    assert text.endswith("\n")


def test_an_unknown_format_names_the_nearest():
    assert refusal("markdwon").endswith("Did you mean 'markdown'? Formats: markdown, json, console, html, csv, latex.")


def test_what_a_config_may_ask_for_is_what_can_be_rendered():
    (names,) = get_args(Output.model_fields["report"].annotation)
    assert set(get_args(names)) == set(FORMATS)


def test_files_have_suffixes_of_their_own():
    assert len(set(SUFFIXES.values())) == len(SUFFIXES)
    assert SUFFIXES["markdown"] == ".md"
    assert "console" not in SUFFIXES
