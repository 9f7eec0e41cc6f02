import tracemalloc

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nel.core.contract import Record
from nel.core.errors import RecordError
from nel.core.log import scan_log
from nel.core.scan import _READ_CHUNK


class Attempt(Record, tag="nel.try/2"):
    number: int
    answer: str = ""

    migrations = {1: lambda old: {"number": old["index"]}}


class Key(msgspec.Struct, tag_field="schema", tag="nel.try/2"):
    """Only one of an attempt's fields."""

    number: int


def write(tmp_path, *lines):
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


def test_only_the_fields_asked_for_are_decoded(tmp_path):
    path = write(tmp_path, *(Attempt(number=number, answer="x" * 50).to_json() for number in range(3)))
    assert [record for _, _, record in scan_log(path, Key)] == [Key(number=number) for number in range(3)]


def test_offsets_and_lengths_find_each_line_again(tmp_path):
    lines = [Attempt(number=number, answer="é" * number).to_json() for number in range(10)]
    data = write(tmp_path, *lines).read_bytes()
    found = [data[offset : offset + length] for offset, length, _ in scan_log(tmp_path / "log.jsonl", Key)]
    assert found == lines


def test_a_missing_file_has_no_lines(tmp_path):
    assert list(scan_log(tmp_path / "none.jsonl", Key)) == []


def test_a_torn_tail_is_not_yielded_and_no_problem(tmp_path):
    path = write(tmp_path, Attempt(number=1).to_json())
    path.write_bytes(path.read_bytes() + Attempt(number=2).to_json())
    problems = []
    assert [record.number for _, _, record in scan_log(path, Key, problems=problems)] == [1]
    assert problems == []


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"\0\0\0\0",
        b"{",
        b"[1]",
        b"3",
        b'{"schema":"nel.try/2"}',
        b'{"schema":"nel.try/2","number":"one"}',
        b'{"schema":"nel.try/2","number":1,"x":' + b"[" * 50_000 + b"]" * 50_000 + b"}",
        b'{"schema":"nel.try/2","number":1',
        b'{"schema":"nel.try/2","number":NaN}',
    ],
    ids=range(10),
)
@pytest.mark.parametrize("type_", [Key, Attempt])
def test_a_damaged_line_is_skipped_and_described_with_file_and_line(tmp_path, damage, type_):
    good = Attempt(number=7).to_json()
    path = write(tmp_path, good, damage, good)
    problems = []
    assert [record.number for _, _, record in scan_log(path, type_, problems=problems)] == [7, 7]
    assert len(problems) == 1
    assert problems[0].startswith(f"{path}:2: ")
    assert len(list(scan_log(path, type_))) == 2


@pytest.mark.parametrize("type_", [Key, Attempt])
@pytest.mark.parametrize(
    "line",
    [
        b'{"schema":"nel.try/3","number":1}',
        b'{"number":1,"schema":"nel.try/3"}',
        b'{"schema":"nel.other/2","number":1}',
        b'{"number":1}',
        b'{"schema":2,"number":1}',
        b'{"schema":"nel.try/0","number":1}',
    ],
)
def test_a_foreign_or_newer_schema_is_refused_with_file_and_line(tmp_path, line, type_):
    path = write(tmp_path, Attempt(number=0).to_json(), line)
    records = scan_log(path, type_)
    assert next(records)[2].number == 0
    with pytest.raises(RecordError, match=r"log\.jsonl:2: "):
        next(records)


def test_a_newer_schema_says_which_version_wrote_it(tmp_path):
    path = write(tmp_path, b'{"schema":"nel.try/3"}')
    with pytest.raises(RecordError, match=r"(?s)nel\.try/3.*newer"):
        list(scan_log(path, Attempt))


def test_an_older_line_is_lifted(tmp_path):
    path = write(tmp_path, b'{"schema":"nel.try/1","index":4}', Attempt(number=5).to_json())
    assert [record.number for _, _, record in scan_log(path, Attempt)] == [4, 5]


def test_the_tag_may_stand_anywhere_and_the_line_be_spaced(tmp_path):
    path = write(tmp_path, b'{ "number": 4, "schema": "nel.try/2" }')
    assert [record.number for _, _, record in scan_log(path, Key)] == [4]


def test_a_type_without_a_tag_is_a_mistake_of_the_caller(tmp_path):
    class Untagged(msgspec.Struct):
        number: int

    with pytest.raises(TypeError, match="Untagged has no tag"):
        list(scan_log(tmp_path / "log.jsonl", Untagged))


def test_a_disk_error_while_reading_names_the_file(tmp_path):
    with pytest.raises(RecordError, match="cannot read the log: Is a directory"):
        list(scan_log(tmp_path, Key))


@given(
    sizes=st.lists(st.integers(0, 40) | st.integers(_READ_CHUNK - 60, _READ_CHUNK + 20), max_size=4),
    torn=st.booleans(),
)
@settings(deadline=None, max_examples=25)
def test_lines_are_found_wherever_the_chunks_end(tmp_path_factory, sizes, torn):
    path = tmp_path_factory.getbasetemp() / "chunks.jsonl"
    lines = [Attempt(number=number, answer="x" * size).to_json() for number, size in enumerate(sizes)]
    path.write_bytes(b"".join(line + b"\n" for line in lines) + b'{"schema"' * torn)
    expected, offset = [], 0
    for number, line in enumerate(lines):
        expected.append((offset, len(line), number))
        offset += len(line) + 1
    assert [(offset, length, record.number) for offset, length, record in scan_log(path, Key)] == expected


@given(st.lists(st.binary(max_size=30).filter(lambda data: b"\n" not in data)))
@settings(deadline=None, max_examples=100)
def test_no_bytes_make_a_scan_raise_anything_but_a_record_error(tmp_path_factory, junk):
    path = tmp_path_factory.getbasetemp() / "junk.jsonl"
    path.write_bytes(b"".join(line + b"\n" for line in junk))
    problems = []
    try:
        read = len(list(scan_log(path, Attempt, problems=problems)))
    except RecordError:
        return
    assert read + len(problems) == len(junk)


def test_memory_grows_with_the_chunk_and_not_with_the_log(tmp_path):
    line = Attempt(number=1, answer="x" * 1500).to_json() + b"\n"
    path = tmp_path / "log.jsonl"
    path.write_bytes(line * 20_000)
    tracemalloc.start()
    try:
        count = sum(1 for _ in scan_log(path, Key))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 20_000
    assert peak < 5 * _READ_CHUNK < path.stat().st_size
