"""`ModelServer`: what a service needs before it can be asked, and what of it decides the answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, Protocol

from nel.config.services import LlamaCppService, ManagedService
from nel.core.digest import digest_value
from nel.core.errors import ServiceError
from nel.orchestration.llama_server import chat_template
from nel.orchestration.model_files import PACKAGE, find_model_file, model_digest
from nel.orchestration.server_commands import deploy_config, served_name
from nel.orchestration.server_process import DeployConfig, ProcessModelDeployment, probe

__all__ = [
    "APIDeployment",
    "DeployConfig",
    "ModelServer",
    "ProcessModelDeployment",
    "managed_identity",
    "model_server",
    "served_name",
]

_NO_ANSWER_DEPENDS_ON: Final = {
    "--api-key",
    "--api-server-count",
    "--cuda-graph-max-bs",
    "--disable-log-requests",
    "--disable-log-stats",
    "--download-dir",
    "--enable-metrics",
    "--gpu-memory-utilization",
    "--free-gpu-memory-fraction",
    "--kv-cache-free-gpu-memory-fraction",
    "--log-level",
    "--max-batch-size",
    "--max-num-batched-tokens",
    "--max-num-seqs",
    "--max-num-tokens",
    "--max-running-requests",
    "--mem-fraction-static",
    "--swap-space",
    "--uvicorn-log-level",
}
"""Flags of the servers that say where, how fast or how loudly they run."""


class ModelServer(Protocol):
    """A model server, wherever it comes from."""

    async def start(self) -> str:
        """Its base URL, as in http://127.0.0.1:8000; it may not answer yet."""
        ...

    async def health_wait(self) -> None:
        """Returns once it answers; `ServiceError` says why it does not."""
        ...

    async def stop(self) -> None:
        """Ends what `start` began; a second call does nothing."""
        ...


class APIDeployment:
    """An endpoint that somebody else runs: there is nothing to start or to stop."""

    def __init__(self, name: str, url: str, health_path: str | None = None, timeout: float = 10.0) -> None:
        self._name = name
        self._url = url
        self._health_path = health_path
        self._timeout = timeout

    async def start(self) -> str:
        """The URL."""
        return self._url

    async def health_wait(self) -> None:
        """Returns once the health path answers, at once where there is none; it is asked one time."""
        if self._health_path is None:
            return
        import aiohttp

        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=self._timeout)) as session:
            found = await probe(session, self._url, self._health_path)
        if found is not None:
            raise ServiceError(
                f"service {self._name}: its health path {found}", hint="Start the service, or check `health_path`."
            )

    async def stop(self) -> None:
        """Does nothing: the endpoint is not NEL's."""


def model_server(name: str, service: ManagedService, log_dir: Path) -> ModelServer:
    """The server of a managed service, not started yet; it will write `server-<name>.log` into `log_dir`.

    Raises:
        UsageError: a key that the server cannot take, or a model file that is not there.
        MissingDependencyError: a program or package that must be installed first.
    """
    return ProcessModelDeployment(deploy_config(name, service, log_dir))


def managed_identity(service: ManagedService) -> str:
    """`sha256:<hex>` of everything about the service that can change an answer.

    A local model counts by its content, a hub model by its name. The kind of server, the chat template and the extra
    arguments count; where it listens, GPUs, parallel sizes, threads and environment do not. Reads the model's files.
    """
    described: dict[str, Any] = {"type": getattr(service, "type", None)}
    if isinstance(service, LlamaCppService):
        described["model"] = model_digest(find_model_file(service.model, "model"))
        # A longer prompt or answer than this is cut, so it counts; how many slots there are does not.
        described["context"] = service.context // service.parallel
        if service.chat_template is not None:
            described["chat_template"] = chat_template(service.chat_template)
    else:
        described["model"] = _content(service.model)
    described["arguments"] = _deciding_arguments(service.extra_args)
    return digest_value(described)


def _deciding_arguments(arguments: list[str]) -> list[list[str]]:
    """Each flag with its values, in the order of their names; a value that is a path counts by its content."""
    groups: list[list[str]] = []
    for argument in arguments:
        if argument.startswith("--"):
            flag, sign, value = argument.partition("=")
            groups.append([flag.replace("_", "-"), *([_content(value)] if sign else [])])
        elif groups:
            groups[-1].append(_content(argument))
        else:
            groups.append(["", _content(argument)])
    return sorted((group for group in groups if group[0] not in _NO_ANSWER_DEPENDS_ON), key=lambda group: group[0])


def _content(value: str) -> str:
    if value.startswith(PACKAGE):
        return model_digest(find_model_file(value, "model"))
    try:
        path = Path(value).expanduser()
        return model_digest(path) if path.exists() else value
    except (OSError, ValueError):  # a text that cannot be a path
        return value
