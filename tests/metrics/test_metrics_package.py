"""The package's public names."""

from __future__ import annotations

import subprocess
import sys

import pytest

import nel.metrics
import nel.observability


@pytest.mark.parametrize("package", [nel.metrics, nel.observability])
def test_every_public_name_can_be_had(package) -> None:
    names = [name for name in dir(package) if not name.startswith("_") and name[0] != name[0].lower()]
    assert names
    for name in names:
        assert getattr(package, name).__module__.startswith(package.__name__)


def test_statistics_and_progress_load_no_heavy_library_before_they_need_it() -> None:
    heavy = "{'numpy', 'scipy', 'rich'} & {name.partition('.')[0] for name in sys.modules}"
    script = (
        f"import sys, nel.metrics.estimate, nel.observability.progress, nel.observability.collector; print({heavy})"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"


def test_the_final_statistics_do_not_need_scipys_slow_half() -> None:
    script = (
        "import sys; from nel.metrics import estimate_mean; estimate_mean([0.1, 0.7, 0.4], [1, 2, 3]); "
        "print('scipy.stats' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
