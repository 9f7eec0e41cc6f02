"""What is run for each kind of managed service: the command line, and what must be installed for it."""

from __future__ import annotations

import os
import re
import shutil
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Final

from nel.config.services import GpuServer, LlamaCppService, ManagedService, SglangService, TrtLlmService, VllmService
from nel.core.errors import MissingDependencyError, UsageError
from nel.core.loading import require
from nel.orchestration import llama_server
from nel.orchestration.model_files import find_model_file
from nel.orchestration.server_process import HOST, DeployConfig, free_port

_OWN_FLAGS: Final[dict[str, str | None]] = {
    "--model": "model",
    "--model-path": "model",
    "--served-model-name": "served_model_name",
    "--alias": "served_model_name",
    "--host": None,
    "--port": "port",
    "--tensor-parallel-size": "tensor_parallel_size",
    "--tp-size": "tensor_parallel_size",
    "--pipeline-parallel-size": "pipeline_parallel_size",
    "--pp-size": "pipeline_parallel_size",
    "--data-parallel-size": "data_parallel_size",
    "--dp-size": "data_parallel_size",
}
"""Flags that NEL sets itself, by the key that says their value."""
_LLAMA_FLAGS: Final = _OWN_FLAGS | {
    "--threads": "threads",
    "--parallel": "parallel",
    "--context": "context",
    "--chat-template": "chat_template",
}


def served_name(service: ManagedService) -> str:
    """The name of the model in requests."""
    if service.served_model_name:
        return service.served_model_name
    return Path(service.model).stem if isinstance(service, LlamaCppService) else service.model


def deploy_config(name: str, service: ManagedService, log_dir: Path) -> DeployConfig:
    """How the service runs as a process; a port of 0 has become a free one.

    Raises:
        UsageError: the server cannot take a key; the service and the key are named.
        MissingDependencyError: its program is not installed.
    """
    where = f"service {name}"
    if not isinstance(service, VllmService | SglangService | TrtLlmService | LlamaCppService):
        raise UsageError(f"{where}: {type(service).__name__} cannot run as a local process")
    port = service.port or free_port()
    env = dict(service.extra_env)
    setup_commands: list[str] = []
    pre_cmd: str | None = None
    if isinstance(service, LlamaCppService):
        command = _llama_cpp(where, service, port)
    else:
        env |= _gpu_env(where, service)
        command = _gpu_command(where, service, port)
        setup_commands, pre_cmd = list(service.setup_commands), service.pre_cmd
    return DeployConfig(
        name=name,
        command=[*command, *service.extra_args],
        port=port,
        log_path=log_dir / f"server-{re.sub(r'[^\w.-]+', '-', name)}.log",
        health_path=service.health_path,
        startup_timeout=service.startup_timeout,
        env=env,
        setup_commands=setup_commands,
        pre_cmd=pre_cmd,
    )


def _llama_cpp(where: str, service: LlamaCppService, port: int) -> list[str]:
    _refuse_own_flags(where, service, _LLAMA_FLAGS)
    for module in ("xllamacpp", "gguf"):
        require(module, what=where, extra="local")
    command = ["--model", str(find_model_file(service.model, where)), "--alias", served_name(service)]
    command += ["--host", HOST, "--port", str(port), "--threads", str(service.threads)]
    command += ["--parallel", str(service.parallel), "--context", str(service.context)]
    if service.chat_template is not None:
        command += [f"--chat-template={service.chat_template}"]
    _, unknown = llama_server.parser().parse_known_args([*command, *service.extra_args])
    if unknown:
        raise UsageError(
            f"{where}: extra_args: the llama_cpp server has no {unknown[0]!r}",
            hint="What it takes: python -m nel.orchestration.llama_server --help",
        )
    return [sys.executable, "-P", "-m", "nel.orchestration.llama_server", *command]


def _gpu_command(where: str, service: VllmService | SglangService | TrtLlmService, port: int) -> list[str]:
    _refuse_own_flags(where, service, _OWN_FLAGS)
    path = Path(service.model).expanduser()
    if not path.exists() and service.model.startswith(("/", "./", "../", "~")):
        raise UsageError(f"{where}: model: there is no {service.model}", hint="Give an existing path, or a hub name.")
    model = str(path) if path.exists() else service.model
    place = ["--host", HOST, "--port", str(port)]
    name = served_name(service)
    match service:
        case VllmService():
            python = _python(where, service, "vllm", "pip install vllm")
            command = [python, "-m", "vllm.entrypoints.openai.api_server"]
            command += ["--model", model, "--served-model-name", name, *place]
            flags = ("--tensor-parallel-size", "--pipeline-parallel-size", "--data-parallel-size")
        case SglangService():
            python = _python(where, service, "sglang", "pip install 'sglang[all]'")
            command = [python, "-m", "sglang.launch_server"]
            command += ["--model-path", model, "--served-model-name", name, *place]
            flags = ("--tp-size", "--pp-size", "--dp-size")
        case TrtLlmService():
            if (service.data_parallel_size or 1) > 1:
                raise UsageError(
                    f"{where}: data_parallel_size: trtllm-serve runs one copy of a model",
                    hint="Start several services, or raise tensor_parallel_size.",
                )
            _require_program(where, service, "trtllm-serve", "pip install tensorrt_llm")
            command = ["trtllm-serve", model, "--served_model_name", name, *place]
            flags = ("--tp_size", "--pp_size", "")
    sizes = (service.tensor_parallel_size, service.pipeline_parallel_size, service.data_parallel_size)
    for flag, size in zip(flags, sizes, strict=True):
        if flag and size is not None:
            command += [flag, str(size)]
    return command


def _gpu_env(where: str, service: GpuServer) -> dict[str, str]:
    env: dict[str, str] = {}
    if service.pre_cmd is not None and "PATH" not in service.extra_env:
        env["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    if service.gpus is None:
        return env
    if "CUDA_VISIBLE_DEVICES" in service.extra_env:
        raise UsageError(f"{where}: gpus and extra_env.CUDA_VISIBLE_DEVICES say the same thing; keep one of them")
    return env | {"CUDA_VISIBLE_DEVICES": ",".join(str(number) for number in service.gpus)}


def _refuse_own_flags(where: str, service: ManagedService, flags: dict[str, str | None]) -> None:
    for argument in service.extra_args:
        flag = argument.partition("=")[0].replace("_", "-")
        if flag in flags:
            key = flags[flag]
            raise UsageError(
                f"{where}: extra_args: NEL sets {flag} itself",
                hint=f"Set the key `{key}` of the service instead." if key else "The server listens on this machine.",
            )


def _brings_its_own(service: GpuServer) -> bool:
    """Whether shell commands may install or activate the program first."""
    return bool(service.setup_commands or service.pre_cmd)


def _python(where: str, service: GpuServer, module: str, command: str) -> str:
    if service.pre_cmd is not None:
        return "python"  # NEL's own, unless it activates another environment
    if not _brings_its_own(service):
        added = service.extra_env.get("PYTHONPATH", "").split(os.pathsep)
        if PathFinder.find_spec(module, [*filter(None, added), *sys.path]) is None:
            raise MissingDependencyError(where, needs=module, command=command)
    return sys.executable


def _require_program(where: str, service: GpuServer, program: str, command: str) -> None:
    path = service.extra_env.get("PATH", os.environ.get("PATH"))
    if not _brings_its_own(service) and shutil.which(program, path=path) is None:
        raise MissingDependencyError(where, needs=program, command=command)
