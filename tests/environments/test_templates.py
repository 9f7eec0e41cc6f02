"""Prompt templates: fields are filled, other braces stay, and nothing unknown is sent."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nel.core.errors import DataError
from nel.environments.template import FieldError, compile_template, read_template


def render(template, row, suffix=""):
    return compile_template(template, suffix=suffix, columns=row).render(row)


@pytest.mark.parametrize(
    ("template", "prompt"),
    [
        ("What is {a} + {b}?", "What is 1 + 2?"),
        ("{text}", "hello"),
        ("{options[1]} {nested.key} {nested[key]}", "y v v"),
        ("{price:.2f} {text!r} {a:03d} {text:>7}", "3.50 'hello' 001   hello"),
        ("{my column} {a.b}", "spaced dotted"),
        ('Reply as {"answer": 1}', 'Reply as {"answer": 1}'),
        ('Reply as {"answer": {"value": {a}}}', 'Reply as {"answer": {"value": 1}}'),
        ('Reply as {{"answer": {a}}}', 'Reply as {"answer": 1}'),
        ("Put it in \\boxed{}", "Put it in \\boxed{}"),
        ("{{a}} and {a}", "{a} and 1"),
        ("{ a } {0} {} {1, 2}", "{ a } {0} {} {1, 2}"),
        ("{{{a}}}", "{1}"),
        ("a } b { c", "a } b { c"),
        ("", ""),
    ],
)
def test_fields_are_filled_and_other_braces_stay(template, prompt):
    row = {
        "a": 1,
        "b": 2,
        "text": "hello",
        "options": ["x", "y"],
        "nested": {"key": "v"},
        "price": 3.5,
        "my column": "spaced",
        "a.b": "dotted",
    }
    assert render(template, row) == prompt


@pytest.mark.parametrize("name", ["response", "expected", "sandbox", "self", "prompt", "row", "format", "class"])
def test_a_column_may_have_any_name(name):
    assert render(f"<{{{name}}}>", {name: "value"}) == "<value>"
    assert render(f"<{{{{ row['{name}'] }}}}>" if name != "row" else "<{{ row }}>", {name: "value"}) == "<value>"


def test_the_one_name_that_jinja_keeps_for_itself_is_refused():
    with pytest.raises(DataError, match="`self` is the template"):
        render("{{ self }}", {"self": "value"})


@given(st.text(max_size=200))
@settings(deadline=None, max_examples=80)
def test_text_without_fields_is_sent_as_it_is(text):
    template = text.replace("{", "").replace("}", "")
    assert render(template, {"a": 1}) == template


@given(st.text(max_size=100))
@settings(deadline=None, max_examples=80)
def test_doubled_braces_always_mean_the_text_itself(text):
    escaped = text.replace("{", "{{").replace("}", "}}")
    if (
        "{% " not in escaped
        and text.count("{") == text.count("}")
        and all(text[:end].count("{") >= text[:end].count("}") for end in range(len(text)))
    ):
        assert compile_template(f"{{a}}{escaped}", columns={"a"}).render({"a": ""}) == text


def test_a_value_is_never_read_as_a_template():
    assert render("{a}", {"a": "{b} {{ b }} %s"}) == "{b} {{ b }} %s"
    assert render("{{ a }}", {"a": "{{ b }} {% if %}"}) == "{{ b }} {% if %}"


def test_an_unknown_field_names_the_nearest_column():
    with pytest.raises(FieldError) as caught:
        render("{qestion}", {"question": "?", "answer": 1})
    assert "{qestion}" in caught.value.message
    assert "'question'" in caught.value.hint
    assert "answer" in caught.value.hint


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{a[3]}", "no '3'"),
        ("{a.key}", "no 'key'"),
        ("{none}", "null"),
        ("{text:.2f}", "cannot be written"),
    ],
)
def test_a_field_that_cannot_be_filled_is_an_error(template, said):
    with pytest.raises(FieldError, match=said):
        render(template, {"a": [1, 2], "none": None, "text": "x"})


@pytest.mark.parametrize(
    ("template", "suffix"),
    [
        ("{{ question }}?", ""),
        ("{% for c in choices %}{{ c }}{% endfor %}", ""),
        ("{{question}}?", ".jinja"),
        ("{{ question | upper }}", ".txt"),
    ],
)
def test_jinja_is_told_by_suffix_or_by_its_marks(template, suffix):
    text = render(template, {"question": "why", "choices": ["a", "b"]}, suffix)
    assert text in {"why?", "ab", "WHY"}


def test_an_undefined_name_in_jinja_is_an_error_and_an_optional_one_may_be_asked_for():
    with pytest.raises(FieldError, match="'qestion' is undefined") as caught:
        render("{{ qestion }}", {"question": "?"})
    assert "'question'" in caught.value.hint
    assert render("{% if hint is defined %}{{ hint }}{% else %}-{% endif %}", {"question": "?"}) == "-"


def test_a_jinja_template_reaches_no_internals():
    with pytest.raises(FieldError, match="unsafe"):
        render("{{ a.__class__.__mro__ }}", {"a": "x"})


def test_single_braces_in_a_jinja_template_are_no_oversight_that_passes():
    with pytest.raises(DataError, match="plain text"):
        render("{{ question }} {answer}", {"question": "?", "answer": 1})


def test_a_broken_jinja_template_names_its_line():
    with pytest.raises(DataError, match="line 2"):
        render("x\n{% if %}", {})


def test_a_prompt_may_be_a_file(tmp_path):
    (tmp_path / "ask.md").write_text("# {question}\n")
    assert read_template("ask.md", tmp_path) == ("# {question}\n", ".md", tmp_path / "ask.md")
    assert read_template("Summarise what stands in README.md", tmp_path)[2] is None
    assert read_template("{question}.md", tmp_path)[2] is None
    with pytest.raises(DataError, match=r"ask\.txt") as caught:
        read_template("ask.txt", tmp_path)
    assert "'ask.md'" in str(caught.value)
