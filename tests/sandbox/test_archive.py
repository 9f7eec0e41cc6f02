"""What comes out of a sandbox is not trusted: nothing is written outside the folder that was named."""

from __future__ import annotations

import io
import os
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nel.sandbox.archive import pack, unpack
from nel.sandbox.base import SandboxError


def archive(*entries):
    """An archive of (name, content) for files, (name, None) for folders, (name, kind, link) for the rest."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content, *link in entries:
            info = tarfile.TarInfo(name)
            if link:
                info.type, info.linkname = content, link[0]
                tar.addfile(info)
            elif content is None:
                info.type = tarfile.DIRTYPE
                tar.addfile(info)
            else:
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    buffer.seek(0)
    return buffer


def files(root):
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=20).filter(
    lambda name: name not in {".", ".."} and len(name.encode()) < 200
)


@given(tree=st.dictionaries(NAMES, st.binary(max_size=100) | st.dictionaries(NAMES, st.binary(max_size=100))))
def test_a_tree_comes_back_as_it_was_whatever_its_names(tree, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tree")
    source, target = folder / "source", folder / "target"
    source.mkdir()
    for name, content in tree.items():
        if isinstance(content, bytes):
            (source / name).write_bytes(content)
            continue
        (source / name).mkdir()
        for inner, data in content.items():
            (source / name / inner).write_bytes(data)
    buffer = io.BytesIO()
    pack(source, buffer, "x")
    buffer.seek(0)
    unpack(buffer, target, max_bytes=1 << 20)
    assert files(target) == files(source)


def test_the_execute_bit_and_links_within_the_tree_are_kept(tmp_path):
    source = tmp_path / "source"
    (source / "bin").mkdir(parents=True)
    (source / "bin" / "run").write_text("#!/bin/sh\n")
    (source / "bin" / "run").chmod(0o755)
    (source / "latest").symlink_to("bin/run")
    buffer = io.BytesIO()
    pack(source, buffer, "x")
    buffer.seek(0)
    unpack(buffer, tmp_path / "target", max_bytes=100)
    assert os.access(tmp_path / "target/bin/run", os.X_OK)
    assert os.readlink(tmp_path / "target/latest") == "bin/run"


def test_a_single_file_takes_the_name_that_was_asked_for(tmp_path):
    (tmp_path / "a.txt").write_text("hello")
    buffer = io.BytesIO()
    pack(tmp_path / "a.txt", buffer, "b.txt")
    buffer.seek(0)
    unpack(buffer, tmp_path / "c.txt", max_bytes=100)
    assert (tmp_path / "c.txt").read_text() == "hello"


SYM, LNK, CHR, FIFO = tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE


@pytest.mark.parametrize(
    "entries",
    [
        [("/etc/passwd", b"x")],
        [("../out", b"x")],
        [("x/../../out", b"x")],
        [("x", None), ("y", b"beside")],
        [("x", None), ("x/link", SYM, "/etc/passwd")],
        [("x", None), ("x/link", SYM, "../../out")],
        [("x", None), ("x/a/link", SYM, "../b/../../../out")],
        [("x", SYM, "out")],
        [("x", None), ("x/d", None), ("x/d/up", SYM, ".."), ("x/out", SYM, "d/up/..")],
        [("x", None), ("x/link", LNK, "/etc/passwd")],
        [("x", None), ("x/link", LNK, "x/../../out")],
        [("x", None), ("x/link", LNK, "x/absent")],
        [("x", None), ("x/null", CHR, "")],
        [("x", None), ("x/pipe", FIFO, "")],
        [("x", None), ("x/link", SYM, "folder"), ("x/link/file", b"through the link")],
        [("x", None), ("x/file", b"1"), ("x/file", b"2")],
        [("x", None), ("x/big", b"x" * 1001)],
        [("x", None), ("x/a", b"x" * 600), ("x/b", LNK, "x/a")],
    ],
)
def test_what_would_leave_the_folder_is_refused_and_nothing_stays(entries, tmp_path):
    folder = tmp_path / "inner"
    folder.mkdir()
    with pytest.raises(SandboxError):
        unpack(archive(*entries), folder / "target", max_bytes=1000)
    assert [path for path in tmp_path.rglob("*") if path != folder] == []


def test_set_id_bits_are_dropped(tmp_path):
    source = archive(("x", b"x"))
    with tarfile.open(fileobj=source) as tar:
        info = tar.getmembers()[0]
    info.mode = 0o6777
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        tar.addfile(info, io.BytesIO(b"x"))
    buffer.seek(0)
    unpack(buffer, tmp_path / "x", max_bytes=10)
    assert (tmp_path / "x").stat().st_mode & 0o7777 == 0o755


def test_what_is_no_archive_is_an_error_of_the_sandbox(tmp_path):
    with pytest.raises(SandboxError, match="no archive"):
        unpack(io.BytesIO(b"garbage" * 200), tmp_path / "x", max_bytes=10)


@pytest.mark.parametrize("leads_to", ["/etc/passwd", "../outside"])
def test_a_link_that_leads_out_is_not_sent_in(tmp_path, leads_to):
    source = tmp_path / "source"
    source.mkdir()
    (source / "link").symlink_to(leads_to)
    with pytest.raises(SandboxError, match="leads out"):
        pack(source, io.BytesIO(), "x")


def test_what_is_there_already_is_not_written_over(tmp_path):
    (tmp_path / "x").write_text("mine")
    with pytest.raises(SandboxError, match="there already"):
        unpack(archive(("x", b"theirs")), tmp_path / "x", max_bytes=10)
    assert (tmp_path / "x").read_text() == "mine"
