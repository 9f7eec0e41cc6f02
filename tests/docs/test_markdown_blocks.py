"""How the pages are read: the tests of the docs are only as good as this."""

from markdown_blocks import ROOT, blocks_of, commands_of, missing_line

PAGE = """\
# A page

```yaml title="suite.yaml"
services: {}
```

<!-- not executed: needs a cluster -->

```bash
sbatch job.sh
```

- in a list:

    <!-- exits: 64 -->
    ```console
    $ nel frobnicate
    error: No such command ...
    ```
"""


def read(tmp_path, text=PAGE):
    page = tmp_path / "page.md"
    page.write_text(text)
    return list(blocks_of(page))


def test_a_block_knows_its_language_title_and_line(tmp_path):
    first = read(tmp_path)[0]
    assert (first.language, first.title, first.line, first.text) == ("yaml", "suite.yaml", 3, "services: {}\n")


def test_a_block_is_excused_only_by_a_comment_with_a_reason(tmp_path):
    assert [block.excuse for block in read(tmp_path)] == [None, "needs a cluster", None]


def test_a_block_in_a_list_loses_its_indentation(tmp_path):
    last = read(tmp_path)[2]
    assert last.text == "$ nel frobnicate\nerror: No such command ...\n"
    assert last.exits == 64


def test_a_console_block_is_commands_and_their_output():
    text = "$ nel list \\\n    --json\n[\n$ nel doctor\n"
    assert list(commands_of(text)) == [("nel list --json", ["["]), ("nel doctor", [])]


def test_output_is_found_in_order_with_gaps():
    printed = "one 1\ntwo   2\nthree 3\n"
    assert missing_line(["one ...", "three 3"], printed) is None
    assert missing_line(["two 2"], printed) is None
    assert missing_line(["three 3", "one 1"], printed) == "one 1"
    assert missing_line(["four"], printed) == "four"
    assert missing_line(["...", "three 3"], printed) is None


def test_the_pages_are_those_of_this_repository():
    assert (ROOT / "pyproject.toml").is_file()
