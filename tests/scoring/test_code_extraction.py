"""The program in a reply: the last block that defines the entry point, else the last with code, else the raw text."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nel.scoring import extract_code

ADD = "def add(a, b):\n    return a + b\n"
OTHER = "def sub(a, b):\n    return a - b\n"


@pytest.mark.parametrize(
    ("reply", "code", "rule"),
    [
        (f"```python\n{ADD}```", ADD, "entry point"),
        (f"Sure:\n\n```python\n{ADD}```\nDone.", ADD, "entry point"),
        (f"```python\n{OTHER}```\n```python\n{ADD}```\n```python\n{OTHER}```", ADD, "entry point"),
        (f"```python\ndef add(a, b): return 0\n```\nBetter:\n```python\n{ADD}```", ADD, "entry point"),
        (f"```python\n{ADD}```\nUse it:\n```python\nprint(add(1, 2))\n```", ADD, "entry point"),
        (f"```python\n{ADD}```\nOutput:\n```\n3\n```", ADD, "entry point"),
        (f"~~~py\n{ADD}~~~", ADD, "entry point"),
        (f"````python\n{ADD}````", ADD, "entry point"),
        (f"```python\n{ADD}", ADD, "entry point"),
        (f"{ADD}```", ADD, "entry point"),
        ("```python\nadd = lambda a, b: a + b\n```", "add = lambda a, b: a + b\n", "entry point"),
        (
            "```python\nclass S:\n    def add(self):\n        pass\n```",
            "class S:\n    def add(self):\n        pass\n",
            "entry point",
        ),
        (f"```python\n{OTHER}```", OTHER, "block"),
        (f"```python\n{OTHER}```\n```bash\npip install x\n```", OTHER, "block"),
        (ADD, ADD.rstrip("\n"), "raw code"),
        (f"Here is it:\n{ADD}\nThis adds two numbers.", ADD.rstrip("\n"), "raw code"),
        ("    return a + b", "    return a + b", "raw text"),
        ("I cannot do that.", "I cannot do that.", "raw text"),
    ],
)
def test_the_program_of_a_reply(reply, code, rule):
    found = extract_code(reply, "add", "python")
    assert (found.text, found.rule) == (code, rule)


def test_a_fence_in_a_docstring_closes_nothing():
    code = 'def add(a, b):\n    """Add.\n\n    ```\n    add(1, 2)\n    ```\n    """\n    return a + b\n'
    assert extract_code(f"```python\n{code}```\nend", "add").text == code


def test_a_docstring_that_never_ends_swallows_no_later_block():
    assert extract_code(f'```python\nx = """\n```\n\n```python\n{ADD}```', "add").text == ADD


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("javascript", "function add(a, b) {\n  return a + b;\n}\n"),
        ("cpp", "int add(int a, int b) {\n  return a + b;\n}\n"),
        ("go", "func add(a int, b int) int {\n\treturn a + b\n}\n"),
        ("rust", "fn add(a: i32, b: i32) -> i32 {\n    a + b\n}\n"),
        ("java", "public static int add(int a, int b) {\n  return a + b;\n}\n"),
    ],
)
def test_other_languages_define_the_entry_point_too(language, code):
    found = extract_code(f"```text\nplan\n```\n```{language}\n{code}```\n```python\n{ADD}```", "add", language)
    assert (found.text, found.rule) == (code, "entry point")


@pytest.mark.parametrize("reply", ["", " \n\t"])
def test_a_blank_reply_holds_no_program(reply):
    assert extract_code(reply, "add") is None


@settings(deadline=None, max_examples=60)
@given(
    st.text(max_size=80).filter(lambda text: "`" not in text and "~" not in text and "\r" not in text),
    st.sampled_from(["", "python", "py"]),
)
def test_words_around_the_block_do_not_matter(words, tag):
    assert extract_code(f"{words}\n```{tag}\n{ADD}```\n{words}", "add").text == ADD


@settings(deadline=None, max_examples=80)
@given(st.text(st.sampled_from("`~\n def add(:=\"'x#")) | st.text())
def test_every_reply_gets_an_answer_in_place(reply):
    found = extract_code(reply, "add")
    assert (found is None) is (not reply.strip())
    if found:
        assert 0 <= found.start <= found.end <= len(reply)


@pytest.mark.parametrize(
    "piece",
    ["```\n", "```python\n", '```\n"""\n', "def add(", "x = ", "a" * 50, "`", " ", "~~~", "\n", "int add(", "if x"],
)
def test_a_megabyte_is_read_in_bounded_time(piece):
    begin = time.process_time()
    extract_code(piece * (1_000_000 // len(piece)), "add")
    assert time.process_time() - begin < 3
