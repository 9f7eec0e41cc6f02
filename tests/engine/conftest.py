"""The lab fixture, for every test of the engine."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from conftest_engine import lab  # noqa: F401
