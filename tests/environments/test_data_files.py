"""Rows come out of files as they went in, one by one, and what is wrong with a file is said with its line."""

import csv
import gzip
import io
import json
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nel.core.errors import DataError
from nel.environments.data import open_source, replaced

ROWS = [{"question": f"What is {i}?", "answer": str(i)} for i in range(5)]


def opened(path, **options):
    source = open_source(path, **options)
    source.prepare()
    return source


def rows_of(source):
    return [source.row(idx) for idx in range(len(source))]


def write_jsonl(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def write_csv(path, rows, delimiter=","):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)


WRITERS = {
    "rows.jsonl": write_jsonl,
    "rows.ndjson": write_jsonl,
    "rows.json": lambda path, rows: path.write_text(json.dumps(rows, indent=2)),
    "data.json": lambda path, rows: path.write_text(json.dumps({"data": rows, "version": 1}, indent=1)),
    "rows.csv": write_csv,
    "rows.tsv": lambda path, rows: write_csv(path, rows, "\t"),
    "rows.parquet": lambda path, rows: pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=2),
    "rows.jsonl.gz": lambda path, rows: path.write_bytes(
        gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode())
    ),
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_kind_of_file_gives_the_same_rows(tmp_path, name):
    WRITERS[name](tmp_path / name, ROWS)
    source = opened(name, base=tmp_path)
    assert rows_of(source) == ROWS
    assert source.row(3) == ROWS[3]
    identity = source.identity()
    assert identity["source"] == name
    assert identity["rows"] == 5
    assert len(identity["sha256"]) == 64
    source.close()


@pytest.mark.parametrize("name", WRITERS)
def test_the_digest_is_that_of_the_content(tmp_path, name):
    WRITERS[name](tmp_path / name, ROWS)
    first = opened(tmp_path / name).identity()["sha256"]
    WRITERS[name](tmp_path / name, [*ROWS[:-1], {"question": "Why?", "answer": "?"}])
    assert opened(tmp_path / name).identity()["sha256"] != first


texts = st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), max_size=20)


@given(st.lists(st.fixed_dictionaries({"one": texts, "two words": texts}), min_size=1, max_size=8))
@settings(deadline=None, max_examples=40)
def test_a_table_holds_any_text(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("tables")
    for name, delimiter in (("t.csv", ","), ("t.tsv", "\t")):
        write_csv(folder / name, rows, delimiter)
        source = opened(folder / name)
        assert rows_of(source) == rows
        source.close()


def test_quoted_line_ends_and_separators_belong_to_the_field(tmp_path):
    (tmp_path / "t.csv").write_text('id,text\n1,"two\nlines, ""quoted"""\n\n2,plain\n')
    source = opened(tmp_path / "t.csv")
    assert rows_of(source) == [{"id": "1", "text": 'two\nlines, "quoted"'}, {"id": "2", "text": "plain"}]
    assert source.place(1).endswith("t.csv:5")


def test_a_byte_order_mark_is_no_part_of_the_first_column(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"\xef\xbb\xbfid,text\n1,x\n")
    (tmp_path / "t.jsonl").write_bytes(b'\xef\xbb\xbf{"id": 1}\n{"id": 2}\n')
    assert rows_of(opened(tmp_path / "t.csv")) == [{"id": "1", "text": "x"}]
    assert rows_of(opened(tmp_path / "t.jsonl")) == [{"id": 1}, {"id": 2}]


def test_blank_lines_do_not_count_and_lines_are_numbered_as_in_an_editor(tmp_path):
    (tmp_path / "t.jsonl").write_text('\n{"a": 1}\n\n   \n{"a": 2}')
    source = opened(tmp_path / "t.jsonl")
    assert rows_of(source) == [{"a": 1}, {"a": 2}]
    assert source.place(1).endswith("t.jsonl:5")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("t.jsonl", '{"a": 1}\n{"a": \n', r"t\.jsonl:2: not a JSON object"),
        ("t.jsonl", '{"a": 1}\n[1]\n', r"t\.jsonl:2: not a JSON object"),
        ("t.jsonl", '{"a": NaN}\n', r"t\.jsonl:1: not a JSON object"),
        ("t.json", '{"rows": []}', "an object without `data`; its keys are rows"),
        ("t.json", "[1]", "row 1: not a JSON object"),
        ("t.json", "nothing", "not a list of JSON objects"),
        ("t.csv", "a,b\n1,2\n1,2,3\n", r"t\.csv:3: 3 fields where the header has 2"),
        ("t.csv", 'a,b\n"x\ny",2\n1\n', r"t\.csv:4: 1 fields where the header has 2"),
        ("t.csv", "a,a\n1,2\n", "two columns are named 'a'"),
        ("t.csv", "a,\n1,2\n", "column 2 has no name"),
        ("t.csv", "", "empty"),
        ("t.csv", 'a\n"open\n', r"t\.csv"),
        ("t.parquet", "PAR1", "not a Parquet file"),
        ("t.jsonl.gz", "plain", "not a whole gzip file"),
        ("t.xml", "<a/>", "unknown kind of file .xml"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_with_line_and_reason(tmp_path, name, content, said):
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=said):
        opened(name, base=tmp_path)


def test_bad_utf8_is_named_with_its_line(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"a\nok\n\xff\n")
    with pytest.raises(DataError, match=r"t\.csv:3"):
        opened(tmp_path / "t.csv")


def test_a_missing_file_names_the_nearest_one(tmp_path):
    write_jsonl(tmp_path / "questions.jsonl", ROWS)
    with pytest.raises(DataError, match=r"question\.jsonl: no such file") as caught:
        open_source("question.jsonl", base=tmp_path)
    assert "'questions.jsonl'" in caught.value.hint


def test_a_file_that_changes_under_a_run_is_noticed(tmp_path):
    write_jsonl(tmp_path / "t.jsonl", ROWS)
    source = opened(tmp_path / "t.jsonl")
    (tmp_path / "t.jsonl").write_text("x")
    with pytest.raises(DataError, match="the file has changed"):
        source.row(4)


def test_parquet_values_become_plain_ones(tmp_path):
    import datetime as dt
    from decimal import Decimal

    png = b"\x89PNG\r\n\x1a\n"
    row = {
        "when": dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC),
        "money": Decimal("1.50"),
        "missing": float("nan"),
        "nested": {"list": [1, None], "text": "x"},
        "image": {"bytes": png, "path": "a.png"},
        "raw": b"\x00\x01",
    }
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "t.parquet")
    found = opened(tmp_path / "t.parquet").row(0)
    assert found["when"] == "2026-01-02T03:04:05+00:00"
    assert found["money"] == "1.50"
    assert found["missing"] is None
    assert found["nested"] == {"list": [1, None], "text": "x"}
    assert found["image"].startswith("data:image/png;base64,")
    assert found["raw"] == "AAE="


def test_a_folder_is_a_row_for_each_file(tmp_path):
    (tmp_path / "cats").mkdir()
    (tmp_path / "cats" / "tom.png").write_bytes(b"\x89PNG")
    (tmp_path / "b.txt").write_text("bee")
    (tmp_path / ".hidden").write_text("no")
    source = opened(tmp_path)
    assert rows_of(source) == [
        {"file": "b.txt", "folder": "", "text": "bee"},
        {"file": "cats/tom.png", "folder": "cats", "image": str(tmp_path / "cats" / "tom.png")},
    ]
    (tmp_path / "c.bin").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match=r"c\.bin: neither an image nor UTF-8"):
        rows_of(opened(tmp_path))


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(DataError, match="no files"):
        opened(tmp_path)


def test_a_function_is_called_once_and_its_rows_are_known_by_their_content():
    calls = []

    def made():
        calls.append(1)
        for idx in range(3):
            yield {"n": idx, "text": "é"}

    source = opened(made)
    assert rows_of(source) == [{"n": idx, "text": "é"} for idx in range(3)]
    assert calls == [1]
    assert source.identity()["sha256"] == opened([{"n": idx, "text": "é"} for idx in range(3)]).identity()["sha256"]
    assert source.identity()["source"].endswith("made")


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (lambda: [{"x": 1}, {"x": object()}], "row 2: column 'x' holds no JSON value"),
        (lambda: [{"x": float("nan")}], "row 1: column 'x' holds no JSON value"),
        (lambda: ["text"], "row 1: a row is a mapping"),
        (lambda: 5, "returned int, not rows"),
        (lambda: [1 / 0], "could not be made: ZeroDivisionError"),
    ],
)
def test_rows_that_are_none_are_refused(rows, said):
    with pytest.raises(DataError, match=said):
        opened(rows)


def test_a_coroutine_function_is_no_source_of_rows():
    async def later():
        return []

    with pytest.raises(DataError, match="returned coroutine"):
        opened(later)


def test_a_full_disk_is_told_with_the_way_out(monkeypatch):
    class Full(io.BytesIO):
        def write(self, data):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("nel.environments.data.source.open", lambda *a, **k: Full(), raising=False)
    with pytest.raises(DataError, match="No space left") as caught:
        opened([{"a": 1}])
    assert "TMPDIR" in caught.value.hint


def test_an_index_costs_at_most_sixteen_bytes_a_row(tmp_path):
    write_jsonl(tmp_path / "t.jsonl", [{"text": "x" * 100}] * 20_000)
    source = opened(tmp_path / "t.jsonl")
    assert sys.getsizeof(source.rows._offsets) <= 16 * 20_000
    write_csv(tmp_path / "t.csv", [{"text": "x" * 100}] * 20_000)
    assert sys.getsizeof(opened(tmp_path / "t.csv").rows._offsets) <= 16 * 20_000


def test_what_replaces_a_benchmarks_data():
    own = "hf://openai/gsm8k?config=main&split=test"
    assert replaced("other.jsonl", own) == "other.jsonl"
    assert replaced({"path": "other.jsonl"}, own) == "other.jsonl"
    assert replaced({"revision": "abc"}, own) == "hf://openai/gsm8k?config=main&split=test&revision=abc"
    assert replaced({"path": "hf://a/b", "split": "train"}, own) == "hf://a/b?split=train"
    assert replaced({"path": "a/b", "config": "x"}, own) == "hf://a/b?config=x&split=test"
    with pytest.raises(DataError, match=r"dataset\.revision applies to a data set of the hub"):
        replaced({"path": "other.jsonl", "revision": "abc"}, own)
    with pytest.raises(DataError, match=r"dataset\.split applies"):
        replaced({"split": "train"}, "own.jsonl")
    with pytest.raises(DataError, match=r"dataset\.revison: unknown key") as caught:
        replaced({"revison": "abc"}, own)
    assert "'revision'" in caught.value.hint


def test_an_unknown_scheme_is_refused():
    with pytest.raises(DataError, match="unknown scheme"):
        open_source("s3://bucket/rows.jsonl")
