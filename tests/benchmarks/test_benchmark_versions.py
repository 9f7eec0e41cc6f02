"""A built-in benchmark is known by its version, so its code may not change under one.

When a test here fails: if a verdict may change, raise the benchmark's `version=`; in either case pin the new code with
`UPDATE_PINS=1 pytest tests/benchmarks/test_benchmark_versions.py`.
"""

import json
import os
from importlib import import_module
from pathlib import Path

import pytest
from source_digest import source_digest

from nel.environments import get_environment
from nel.environments.catalog import BUILT_IN

PINS = Path(__file__).with_name("benchmark_pins.json")


def pins():
    return {
        name: {
            "version": get_environment(name).version,
            "code": source_digest(import_module(info.location.partition(":")[0])),
        }
        for name, info in BUILT_IN.items()
    }


if os.environ.get("UPDATE_PINS"):
    PINS.write_text(json.dumps(pins(), indent=2) + "\n")


def test_every_benchmark_has_a_pin():
    assert set(json.loads(PINS.read_text())) == set(BUILT_IN)


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_code_of_a_version_does_not_change(name):
    assert json.loads(PINS.read_text())[name] == pins()[name], __doc__
