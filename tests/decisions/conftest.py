"""Runs that several files of tests read; none writes to them."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from decision_runs import balanced_flips, judge_scores, make_run


@pytest.fixture(scope="session")
def judged(tmp_path_factory):
    """200 judge scores around 0.85, then around 0.45."""
    path = tmp_path_factory.mktemp("judged")
    return make_run(path / "base", judge_scores(200, 0.85, 1)), make_run(path / "cand", judge_scores(200, 0.45, 2))


@pytest.fixture(scope="session")
def balanced(tmp_path_factory):
    """500 binary pairs with 20 flips that balance."""
    path = tmp_path_factory.mktemp("balanced")
    baseline, candidate = balanced_flips()
    return make_run(path / "base", baseline), make_run(path / "cand", candidate, latency_ms=200.0)


@pytest.fixture
def nel(capsys):
    """Runs a command; its exit code, stdout and stderr."""
    from nel.cli.main import main

    def run(*arguments):
        code = main([str(argument) for argument in arguments])
        done = capsys.readouterr()
        return code, done.out, done.err

    return run
