"""What the tests of sandboxes share."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from nel.sandbox.base import Leftover, Limits
from nel.sandbox.owner import label

SCRIPTS = Path(__file__).parents[2] / "scripts"
IMAGE = "nel-test/base:1"
LIMITS = Limits(memory=256 << 20, cpus=1.0, pids=64, disk=64 << 20)
BACKENDS = ("docker", "podman", "bwrap", "local")
ISOLATED = ("docker", "podman", "bwrap")
REQUIRED = ("docker", "bwrap") if os.environ.get("CI") else ()
"""What may not be skipped."""


def ensure_image() -> str:
    """The image of the tests, made of this machine's files where it is not there."""
    subprocess.run([SCRIPTS / "docker-daemon", "start"], check=True)
    if subprocess.run(["docker", "image", "inspect", IMAGE], capture_output=True, check=False).returncode:
        subprocess.run([SCRIPTS / "base-image", IMAGE], check=True)
    return IMAGE


def mine(leftovers: list[Leftover]) -> list[Leftover]:
    """Those of this process: others may be testing on the same machine."""
    return [item for item in leftovers if item.owner == label()]


on = pytest.mark.parametrize("backend", BACKENDS, indirect=True)
on_isolated = pytest.mark.parametrize("backend", ISOLATED, indirect=True)
