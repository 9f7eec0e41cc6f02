"""`package://NAME/inner/path`: rows inside an installed distribution."""

import gzip
import sys

import pytest

from nel.core.errors import DataError, MissingDependencyError
from nel.environments.data import open_source


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A distribution `toy-data` 1.2 with a JSON lines file, as pip would lay it out."""
    root = tmp_path / "site"
    (root / "toy_data" / "rows").mkdir(parents=True)
    (root / "toy_data" / "rows" / "test.jsonl.gz").write_bytes(gzip.compress(b'{"q": "one"}\n{"q": "two"}\n'))
    (root / "toy_data" / "rows" / "more.csv").write_text("q\nthree\n")
    info = root / "toy_data-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.4\nName: toy-data\nVersion: 1.2\nLicense-Expression: MIT\n")
    (info / "RECORD").write_text("toy_data/rows/test.jsonl.gz,,\ntoy_data/rows/more.csv,,\n")
    monkeypatch.setattr(sys, "path", [str(root), *sys.path])
    return root


def test_rows_come_with_version_digest_and_licence(installed):
    source = open_source("package://toy-data/toy_data/rows/test.jsonl.gz")
    source.prepare()
    assert [source.row(idx) for idx in range(2)] == [{"q": "one"}, {"q": "two"}]
    identity = source.identity()
    assert identity["source"] == "package://toy-data/toy_data/rows/test.jsonl.gz"
    assert identity["revision"] == "1.2"
    assert identity["license"] == "MIT"
    assert len(identity["sha256"]) == 64
    assert source.place(1) == "package://toy-data/toy_data/rows/test.jsonl.gz:2"


def test_a_distribution_that_is_not_installed_is_named_with_the_command(installed):
    with pytest.raises(MissingDependencyError) as caught:
        open_source("package://no-such-data/rows.jsonl")
    assert "pip install no-such-data" in str(caught.value)


def test_a_file_that_it_does_not_have_names_the_nearest(installed):
    with pytest.raises(DataError, match=r"toy-data 1\.2 has no") as caught:
        open_source("package://toy-data/toy_data/rows/test.jsonl")
    assert "toy_data/rows/test.jsonl.gz" in caught.value.hint


@pytest.mark.parametrize("spec", ["package://toy-data", "package:///x", "package://toy-data/../../etc/passwd"])
def test_an_address_that_leads_nowhere_or_outside_is_refused(installed, spec):
    with pytest.raises(DataError):
        open_source(spec)


def test_a_package_of_this_environment_can_be_read():
    source = open_source("package://pytest/_pytest")
    source.prepare()
    assert source.identity()["license"] == "MIT"
    assert len(source) > 10
