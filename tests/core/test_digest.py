import hashlib
import os
import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nel.core.contract import Record
from nel.core.digest import digest_file, digest_parts, digest_tree, digest_value
from nel.core.errors import RecordError


class Pair(Record, tag="test.pair/1"):
    left: int
    right: int


def test_the_digest_of_a_value_is_sha256_of_its_sorted_compact_json():
    expected = hashlib.sha256('{"a":[1,2.5,null],"b":"é"}'.encode()).hexdigest()
    assert digest_value({"b": "é", "a": [1, 2.5, None]}) == f"sha256:{expected}"


@pytest.mark.parametrize(
    ("one", "other"),
    [([], {}), (1, "1"), (1, 1.5), (None, ""), ([1, 2], [2, 1]), ({"a": None}, {}), (True, 1), ("é", "e\u0301")],
)
def test_different_values_have_different_digests(one, other):
    assert digest_value(one) != digest_value(other)


def test_a_record_is_digested_with_its_schema():
    assert digest_value(Pair(left=1, right=2)) == digest_value({"schema": "test.pair/1", "left": 1, "right": 2})


def test_a_value_that_json_cannot_hold_has_no_digest():
    with pytest.raises(RecordError, match="nan"):
        digest_value({"a": float("nan")})


@given(st.lists(st.binary(max_size=6), max_size=5), st.lists(st.binary(max_size=6), max_size=5))
@settings(deadline=None, max_examples=200)
def test_parts_are_told_apart_even_where_their_concatenation_is_equal(one, other):
    assert (digest_parts(one) == digest_parts(other)) == (one == other)
    assert len(digest_parts(one)) == 16


def test_parts_do_not_run_into_each_other():
    assert len({digest_parts(parts) for parts in ([b"ab", b"c"], [b"a", b"bc"], [b"abc"], [b"abc", b""], [])}) == 5
    assert digest_parts(iter([b"ab", b"c"])) == digest_parts([b"ab", b"c"])


@pytest.mark.parametrize("size", [0, 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1])
def test_a_file_is_digested_whole(tmp_path, size):
    data = os.urandom(size)
    (tmp_path / "file").write_bytes(data)
    assert digest_file(tmp_path / "file") == f"sha256:{hashlib.sha256(data).hexdigest()}"
    assert digest_file(str(tmp_path / "file")) == digest_file(tmp_path / "file")


@pytest.fixture
def tree(tmp_path):
    root = tmp_path / "tree"
    (root / "sub" / "empty").mkdir(parents=True)
    (root / "a.txt").write_text("a")
    (root / "sub" / "run.sh").write_text("run")
    (root / "sub" / "run.sh").chmod(0o755)
    (root / "link").symlink_to("a.txt")
    return root


def test_a_tree_is_the_same_wherever_and_whenever_it_lies(tree, tmp_path):
    copy = shutil.copytree(tree, tmp_path / "elsewhere" / "copy", symlinks=True)
    os.utime(copy / "a.txt", (1, 1))
    (copy / "a.txt").chmod(0o600)
    assert digest_tree(copy) == digest_tree(tree) == digest_tree(str(tree))


def touch_content(root):
    (root / "a.txt").write_text("b")


def rename(root):
    (root / "a.txt").rename(root / "b.txt")


def add_empty_folder(root):
    (root / "new").mkdir()


def add_empty_file(root):
    (root / "new").touch()


def drop_execute_bit(root):
    (root / "sub" / "run.sh").chmod(0o644)


def turn_link(root):
    (root / "link").unlink()
    (root / "link").symlink_to("sub/run.sh")


def link_becomes_file(root):
    (root / "link").unlink()
    (root / "link").write_text("a.txt")


def file_moves_into_folder(root):
    (root / "a.txt").rename(root / "sub" / "a.txt")


@pytest.mark.parametrize(
    "change",
    [
        touch_content, rename, add_empty_folder, add_empty_file, drop_execute_bit, turn_link, link_becomes_file,
        file_moves_into_folder,
    ],
)  # fmt: skip
def test_what_matters_changes_the_digest_of_a_tree(tree, change):
    before = digest_tree(tree)
    change(tree)
    assert digest_tree(tree) != before


def test_links_are_never_followed(tree, tmp_path):
    (tmp_path / "outside").mkdir()
    (tree / "out").symlink_to(tmp_path / "outside")
    (tree / "loop").symlink_to(".")
    (tree / "dangling").symlink_to("nowhere")
    before = digest_tree(tree)
    (tmp_path / "outside" / "file").write_text("not part of the tree")
    assert digest_tree(tree) == before


def test_what_is_neither_file_folder_nor_link_does_not_count(tree):
    before = digest_tree(tree)
    os.mkfifo(tree / "pipe")
    assert digest_tree(tree) == before


def test_names_of_any_bytes_are_digested(tree):
    before = digest_tree(tree)
    (tree / os.fsdecode(b"\xff\xfe")).touch()
    assert digest_tree(tree) != before


def test_a_folder_that_is_missing_has_no_digest(tmp_path):
    with pytest.raises(FileNotFoundError):
        digest_tree(tmp_path / "absent")
