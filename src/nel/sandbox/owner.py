"""Who made a sandbox: told by a label on everything that it leaves, so that what a killed run left is found."""

from __future__ import annotations

import os
import re
import socket

from nel.core.lock import process_start

_LABEL = re.compile(r"(?P<host>[\w.-]+)_(?P<pid>\d+)_(?P<started>[\d.]+)")


def label() -> str:
    """This process: host, process id and when it was started, in letters that names of files and containers allow."""
    host = re.sub(r"[^a-zA-Z0-9.-]", "-", socket.gethostname())
    return f"{host}_{os.getpid()}_{process_start(os.getpid()) or 0}"


def is_gone(owner: str) -> bool:
    """Whether the process that a label names has ended; False where that cannot be known from here."""
    found = _LABEL.fullmatch(owner)
    if found is None or found["host"] != re.sub(r"[^a-zA-Z0-9.-]", "-", socket.gethostname()):
        return False
    return str(process_start(int(found["pid"])) or "") != found["started"]
