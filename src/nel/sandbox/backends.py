"""The backends by name; others come by import path or by entry point in the group `nel.sandboxes`."""

from __future__ import annotations

from difflib import get_close_matches

from nel.core.errors import UsageError
from nel.core.loading import entry_points, load_object
from nel.sandbox.base import SandboxBackend, SandboxError

ENTRY_POINTS = "nel.sandboxes"
BUILT_IN = {
    "docker": "nel.sandbox.docker_backend:DockerBackend",
    "podman": "nel.sandbox.docker_backend:PodmanBackend",
    "bwrap": "nel.sandbox.host_backends:BwrapBackend",
    "local": "nel.sandbox.host_backends:LocalBackend",
}
ISOLATING = ("bwrap", "docker", "podman")
"""Those that `auto` chooses from, best first: none isolates more than another, and the first costs least."""


def get_backend(name: str) -> SandboxBackend:
    """The backend of a name, or of a `module:Class`; `UsageError` lists those that there are."""
    known = {**BUILT_IN, **entry_points(ENTRY_POINTS)}
    location = known.get(name, name)
    if ":" not in location:
        near = get_close_matches(name, known, n=1)
        meant = f"Did you mean {near[0]!r}? " if near else ""
        raise UsageError(
            f"There is no sandbox backend {name!r}.", hint=f"{meant}There are: {', '.join(sorted(known))}."
        )
    backend: SandboxBackend = load_object(location, what="sandbox backend")()
    return backend


async def best_backend(*, needs_image: bool = False) -> SandboxBackend:
    """The best backend that works on this machine; `SandboxError` says why none does. Never one without isolation."""
    reasons = []
    for name in ISOLATING:
        if needs_image and name == "bwrap":
            continue
        backend = get_backend(name)
        try:
            await backend.check()
        except SandboxError as error:
            reasons.append(f"{name}: {error.message}")
        else:
            return backend
    raise SandboxError(
        "no sandbox works on this machine:\n  " + "\n  ".join(reasons),
        hint="Install Docker or bubblewrap; `isolation: none` runs trusted code without one.",
        permanent=True,
    )
