"""Isolated execution: a protocol, backends, strategies and the manager that hands sandboxes out."""

from typing import TYPE_CHECKING

from nel.core.loading import lazy_export

if TYPE_CHECKING:
    from nel.sandbox.base import ExecResult as ExecResult
    from nel.sandbox.base import Limits as Limits
    from nel.sandbox.base import OutsideEndpoint as OutsideEndpoint
    from nel.sandbox.base import Sandbox as Sandbox
    from nel.sandbox.base import SandboxBackend as SandboxBackend
    from nel.sandbox.base import SandboxError as SandboxError
    from nel.sandbox.base import SandboxSpec as SandboxSpec
    from nel.sandbox.base import VolumeMount as VolumeMount
    from nel.sandbox.manager import SandboxManager as SandboxManager

_NAMES = {
    **dict.fromkeys(
        (
            "ExecResult",
            "Limits",
            "OutsideEndpoint",
            "Sandbox",
            "SandboxBackend",
            "SandboxError",
            "SandboxSpec",
            "VolumeMount",
        ),
        "nel.sandbox.base",
    ),
    "SandboxManager": "nel.sandbox.manager",
}
__getattr__, __dir__ = lazy_export(__name__, _NAMES)
