"""Results of other tools as runs, so that they can be reported, compared and viewed beside NEL's own."""

from __future__ import annotations

from pathlib import Path

from nel.core.loading import load_object
from nel.reporting.run_view import RunView

DETECTORS = ("nel.reporting.foreign.inspect:open_inspect", "nel.reporting.foreign.nemo:open_nemo")


def open_foreign(path: Path) -> RunView | None:
    """The run that another tool left at `path`; None where none of them did. `RunDirError` where it cannot be read."""
    for location in DETECTORS:
        found: RunView | None = load_object(location, what="reader")(path)
        if found is not None:
            return found
    return None
