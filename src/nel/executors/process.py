"""`Process`: who runs a local run, as `nel.pid` in its directory tells."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Self

import msgspec

from nel.core.disk import write_atomic
from nel.core.lock import Owner, process_start

METADATA = "nel.pid"


class Process(Owner, kw_only=True):
    """The process that a run was last started in."""

    background: bool
    """Whether it writes to the run's log rather than to a terminal."""

    @classmethod
    def this(cls, *, background: bool) -> Self:
        """The process that asks."""
        return cls(**msgspec.structs.asdict(Owner.here()), background=background)

    @classmethod
    def read(cls, directory: Path) -> Self | None:
        """What `nel.pid` tells; None where there is none, or one that cannot be understood."""
        try:
            return msgspec.json.decode((directory / METADATA).read_bytes(), type=cls)
        except (OSError, msgspec.DecodeError):
            return None

    def write(self, directory: Path) -> None:
        """Leaves `nel.pid`."""
        write_atomic(directory / METADATA, msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n")

    def is_alive(self) -> bool:
        """Whether the very process is there: ids are used again, start times are not."""
        return not self.ended_with_the_machine() and process_start(self.pid) == self.started is not None

    def elsewhere(self) -> str | None:
        """Why nothing can be said of it from here; None where its id means something."""
        here = Owner.here()
        if self.host != here.host:
            return f"it was started on {self.host}, whose processes cannot be seen from {here.host}"
        if self.place != here.place and not self.ended_with_the_machine():
            return f"it was started in another container on {self.host}, whose processes cannot be seen from here"
        return None

    def ended_with_the_machine(self) -> bool:
        """Whether the machine has been started again since."""
        mine, here = self.place.split(" "), Owner.here().place.split(" ")
        return self.host == os.uname().nodename and len(mine) == len(here) == 3 and mine[1] != here[1]
