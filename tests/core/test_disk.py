import contextlib
import os
import stat

import pytest
from core_faults import every_failure

from nel.core.disk import make_directory
from nel.core.errors import RecordError
from nel.core.rundir import BlobStore, write_atomic


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_written_file_has_the_content_as_text_or_bytes(tmp_path):
    write_atomic(tmp_path / "a", "é\n")
    write_atomic(str(tmp_path / "b"), b"\xff")
    assert (tmp_path / "a").read_bytes() == "é\n".encode()
    assert (tmp_path / "b").read_bytes() == b"\xff"


def test_a_secret_file_never_has_wider_permissions(tmp_path, monkeypatch):
    modes = []
    real = os.write
    monkeypatch.setattr(
        os,
        "write",
        lambda descriptor, data: (modes.append(os.fstat(descriptor).st_mode & 0o777), real(descriptor, data))[1],
    )
    previous = os.umask(0)
    try:
        write_atomic(tmp_path / "secret", "k", mode=0o600)
    finally:
        os.umask(previous)
    assert modes == [0o600]
    assert mode(tmp_path / "secret") == 0o600


def test_replacing_keeps_the_permissions_and_mode_overrides_them_and_the_umask(tmp_path):
    path = tmp_path / "a"
    previous = os.umask(0o077)
    try:
        write_atomic(path, "1", mode=0o644)
        assert mode(path) == 0o644
        write_atomic(path, "2")
        assert mode(path) == 0o644
        write_atomic(tmp_path / "new", "1")
        assert mode(tmp_path / "new") == 0o600
    finally:
        os.umask(previous)


def test_a_symbolic_link_keeps_pointing_at_the_file_that_is_replaced(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    write_atomic(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


@pytest.mark.parametrize("calls", [("write",), ("fsync",), ("replace", "rename"), ("open",), ("close",)])
def test_whichever_call_fails_the_file_is_old_or_new_and_nothing_else_is_left(tmp_path, calls):
    path = tmp_path / "a"
    for faults in every_failure(*calls):
        path.write_text("old")
        failed = False
        try:
            with faults:
                write_atomic(path, "new")
        except OSError:
            failed = True
        assert failed == faults.happened
        assert path.read_text() in ({"old", "new"} if failed else {"new"})
        assert [entry.name for entry in tmp_path.iterdir()] == ["a"]


def test_a_directory_that_cannot_be_synced_is_no_error_where_the_file_system_has_no_such_thing(tmp_path, monkeypatch):
    real = os.fsync

    def fsync(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(22, "Invalid argument")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    write_atomic(tmp_path / "a", "x")
    assert (tmp_path / "a").read_text() == "x"


def test_directories_are_made_with_their_parents_and_may_exist(tmp_path):
    for _ in range(2):
        make_directory(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=r"exists|Not a directory"):
        make_directory(tmp_path / "file")


def test_a_payload_comes_back_and_is_stored_once(tmp_path):
    store = BlobStore(tmp_path / "blobs")
    assert not (tmp_path / "blobs").exists()
    data = b"image " * 10_000
    digests = {store.put(data) for _ in range(3)}
    assert len(digests) == 1
    assert store.get(digests.pop()) == data
    files = [path for path in (tmp_path / "blobs").rglob("*") if path.is_file()]
    assert len(files) == 1
    assert files[0].stat().st_size < len(data) / 10


def test_an_empty_payload_is_a_payload(tmp_path):
    store = BlobStore(tmp_path)
    digest = store.put(b"")
    assert digest == "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert store.get(digest) == b""


@pytest.mark.parametrize("digest", ["", "sha256:../../etc/passwd", "sha256:" + "G" * 64, "md5:" + "0" * 64])
def test_what_is_no_digest_reaches_no_file(tmp_path, digest):
    with pytest.raises(RecordError, match="no digest of a stored payload"):
        BlobStore(tmp_path).get(digest)


def test_a_missing_truncated_or_exchanged_payload_is_told(tmp_path):
    store = BlobStore(tmp_path)
    digest, other = store.put(b"one" * 100), store.put(b"two" * 100)
    path, other_path = (tmp_path / name[7:9] / f"{name[7:]}.zst" for name in (digest, other))
    with pytest.raises(RecordError, match="cannot read the payload: No such file"):
        store.get("sha256:" + "0" * 64)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(RecordError, match="damaged"):
        store.get(digest)
    path.write_bytes(other_path.read_bytes())
    with pytest.raises(RecordError, match="not what its name says"):
        store.get(digest)


def test_a_payload_that_could_not_be_written_is_written_by_the_next_try(tmp_path):
    for number, faults in enumerate(every_failure("write", "fsync", "replace", "rename")):
        store = BlobStore(tmp_path / str(number))
        with contextlib.suppress(OSError), faults:
            store.put(b"data")
        assert store.get(store.put(b"data")) == b"data"
