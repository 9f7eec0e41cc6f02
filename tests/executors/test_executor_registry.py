"""Executors are found by `cluster.type` and by the metadata file that they leave; a new one needs no change here."""

import subprocess
import sys

import pytest

from nel.core.errors import UsageError
from nel.executors import detect_executor, get_executor

TOY = """
class Toy:
    name = "toy"

    def run(self, config, **options):
        return config

    @staticmethod
    def detect(output_dir):
        return (output_dir / "toy.json").exists()
"""


def test_an_executor_is_found_by_type_and_by_its_metadata_file(tmp_path):
    assert get_executor("local").name == "local"
    assert detect_executor(tmp_path) is None
    (tmp_path / "nel.pid").write_text("{}")
    assert detect_executor(tmp_path).name == "local"
    assert detect_executor(tmp_path).status(tmp_path).running is False


def test_an_unknown_type_is_refused_with_the_near_one_and_those_that_are_there():
    with pytest.raises(UsageError, match=r"(?s)no executor 'lokal'.*Did you mean 'local'\? Installed: local"):
        get_executor("lokal")


@pytest.mark.parametrize("type_", ["docker", "slurm"])
def test_a_type_that_is_planned_says_so(type_):
    with pytest.raises(UsageError, match=f"'{type_}' is not available yet"):
        get_executor(type_)


def test_a_new_executor_is_a_class_a_metadata_file_and_an_entry_point(tmp_path, monkeypatch):
    (tmp_path / "toy_executor.py").write_text(TOY)
    info = tmp_path / "toy-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[nel.executors]\ntoy = toy_executor:Toy\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert get_executor("toy").run("config") == "config"
    (tmp_path / "toy.json").touch()
    assert detect_executor(tmp_path).name == "toy"


def test_looking_for_an_executor_loads_nothing_that_runs_one():
    ask = "import sys, nel.executors; print(*sorted(name for name in sys.modules if name.startswith('nel.')))"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["nel.core", "nel.core.errors", "nel.core.loading", "nel.executors"]
