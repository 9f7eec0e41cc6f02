"""`sandboxes`: where code and agents run in isolation."""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, model_validator

from nel.config.base import Also, Count, Int, Model, Name, Port, Positive, key, refusal

_MEMORY = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>[kmgtKMGT]?)(?:i?[bB])?")


def _bytes(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | str) or _MEMORY.fullmatch(str(value)) is None:
        raise refusal("is a number of bytes, or a number with k, m or g, such as 4g")
    return str(value)


Memory = Annotated[str, BeforeValidator(_bytes), Also({"type": "integer"})]


def memory_bytes(value: str) -> int:
    """The bytes of a memory limit."""
    found = _MEMORY.fullmatch(value)
    assert found is not None
    return int(float(found["number"]) * 1024 ** " kmgt".index(found["unit"].lower() or " "))


class SandboxBase(Model):
    """What every sandbox has."""

    capture_cmd: str | None = key(None, "Command that takes the work out of the sandbox.", later=True)
    verify_timeout: Positive = key(600.0, "Seconds for verification.", later=True)
    stateful: bool = key(
        False, "Verify in the sandbox that the work was done in; `capture_cmd` is then not used.", later=True
    )
    scrub_git_history: bool = key(False, "Remove everything but the present commit before an agent starts.", later=True)


class ImageSandbox(SandboxBase):
    """A sandbox made from an image."""

    image: str | None = key(None, "Image for problems that name none; for checks of Python code `python:3.12-slim`.")
    image_template: str | None = key(None, "Image by the problem's fields.", later=True)
    timeout: Positive = key(1800.0, "Deprecated; the benchmark's `timeout` holds.")
    concurrency: Count = key(4, "Sandboxes at once.")
    container_env: dict[str, str] = key(dict, "Environment variables inside.")


class HostSandbox(SandboxBase):
    """A sandbox made from what is on this machine."""

    memory: Memory = key("4g", "Memory limit: bytes, or a number with k, m or g.")
    cpus: Positive = key(2.0, "Processor limit.")
    concurrency: Count = key(4, "Sandboxes at once.")
    container_env: dict[str, str] = key(dict, "Environment variables inside.")


class AutoSandbox(HostSandbox):
    """The best of this machine: bubblewrap where no image is asked for, else Docker or podman."""

    type: Literal["auto"] = key(..., "The best that this machine offers; never one without isolation.")


class BwrapSandbox(HostSandbox):
    """Namespaces through bubblewrap: no daemon and no image."""

    type: Literal["bwrap"] = key(..., "Namespaces through bubblewrap: no daemon and no image.")
    root: str | None = key(None, "Folder of an unpacked root, instead of this machine's `/usr`.")
    network: Literal["none", "host"] = key("none", "Its network.")


class LocalSandbox(SandboxBase):
    """A folder on this machine, without isolation: for trusted code."""

    type: Literal["local"] = key(..., "A folder on this machine, without isolation.")
    isolation: Literal["none"] = key(..., "Must be said: what runs can read and change all that you can.")
    concurrency: Count = key(4, "Sandboxes at once.")
    container_env: dict[str, str] = key(dict, "Environment variables inside.")


class NoSandbox(SandboxBase):
    """None: answers are only texts."""

    type: Literal["none"] = key(..., "None: answers are only texts.")


class ContainerSandbox(ImageSandbox):
    """What containers on this machine share."""

    memory: Memory = key("4g", "Memory limit: bytes, or a number with k, m or g.")
    cpus: Positive = key(2.0, "Processor limit.")
    network: Literal["bridge", "host", "internal", "none"] = key(
        "bridge", "Its network; a check of code has none, whatever stands here."
    )


class DockerSandbox(ContainerSandbox):
    """A container on this machine."""

    type: Literal["docker"] = key(..., "A container on this machine.")


class PodmanSandbox(ContainerSandbox):
    """A container on this machine, through podman."""

    type: Literal["podman"] = key(..., "A container on this machine, through podman.")


class SlurmSandboxBase(ImageSandbox):
    """What sandboxes on a Slurm cluster share."""

    memory: str = key("4g", "Memory limit.")
    cpus: Positive = key(2.0, "Processor limit.")
    node_pool: str | None = key(None, "Node pool that they run on.")
    slots_per_node: Count = key(4, "Sandboxes on one node.")


class SlurmSandbox(SlurmSandboxBase):
    """A container in a Slurm job."""

    later: ClassVar[str] = "sandboxes of type slurm"
    type: Literal["slurm"] = key(..., "A container in a Slurm job.")


class ApptainerSandbox(SlurmSandboxBase):
    """An Apptainer instance."""

    later: ClassVar[str] = "sandboxes of type apptainer"
    type: Literal["apptainer"] = key(..., "An Apptainer instance.")
    sif_cache_dir: str | None = key(None, "Where images are kept; needed with `node_pool`.")

    @model_validator(mode="after")
    def _cache_for_nodes(self) -> ApptainerSandbox:
        if self.node_pool is not None and not self.sif_cache_dir:
            raise refusal("is needed where node_pool is set", "sif_cache_dir")
        return self


class SshSidecar(Model):
    """The sidecar that a Fargate task is reached through."""

    sshd_port: Port = key(52222, "Port of its SSH server.")
    ssh_ready_timeout_sec: Positive = key(300.0, "Seconds until it must answer.")
    public_key_secret_arn: str = key(..., "Secret that holds the public key.")
    private_key_secret_arn: str = key(..., "Secret that holds the private key.")
    image: str | None = key(None, "Its image.")
    exec_server_port: Port | None = key(19542, "Port of the command server.")


class EcsFargateSandbox(ImageSandbox):
    """A task on AWS Fargate. What is left out with `region` given is looked up in AWS."""

    later: ClassVar[str] = "sandboxes of type ecs_fargate"
    type: Literal["ecs_fargate"] = key(..., "A task on AWS Fargate.")
    container_port: Port | None = key(None, "Port of the container.")
    region: str | None = key(None, "AWS region.")
    cluster: str | None = key(None, "ECS cluster; by default the one that the region's parameter names.")
    subnets: list[str] = key(list, "Subnets.")
    security_groups: list[str] = key(list, "Security groups.")
    assign_public_ip: bool | None = key(None, "Give tasks a public address.")
    cpu: str = key("4096", "CPU units.")
    memory: str = key("8192", "MiB of memory.")
    ephemeral_storage_gib: Count | None = key(None, "GiB of disk.")
    execution_role_arn: str | None = key(None, "Role that starts tasks.")
    task_role_arn: str | None = key(None, "Role that tasks have.")
    log_group: str | None = key(None, "CloudWatch log group.")
    log_stream_prefix: str | None = key(None, "Prefix of log streams.")
    max_task_lifetime_sec: Count | None = key(None, "Seconds after which a task ends by itself.")
    ssh_sidecar: SshSidecar | None = key(None, "How tasks are reached.")
    s3_bucket: str | None = key(None, "Bucket for files.")
    s3_prefix: str | None = key(None, "Prefix of those files.")
    ecr_repository: str | None = key(None, "Repository of images.")
    codebuild_project: str | None = key(None, "Project that builds images.")
    codebuild_service_role: str | None = key(None, "Role of that project.")
    codebuild_build_timeout: Int | None = key(None, "Minutes for one build.")
    codebuild_compute_type: str | None = key(None, "Machine of that project.")
    dockerhub_secret_arn: str | None = key(None, "Secret with a Docker Hub login.")
    efs_filesystem_id: str | None = key(None, "Shared file system.")
    efs_access_point_id: str | None = key(None, "Its access point.")
    ssm_project: str = key("harbor", "Name in the parameter /<name>/ecs-sandbox/config.")


class CustomSandbox(Model):
    """A sandbox backend of one's own class."""

    type: Literal["custom"] = key(..., "A sandbox backend of one's own class.")
    class_path: Name = key(..., "module:Class or file.py:Class of a SandboxBackend, or the name of an entry point.")
    config: dict[str, Any] = key(dict, "Its settings, given to the class by name.")
    concurrency: Count = key(4, "Sandboxes at once.")


Sandbox = Annotated[
    NoSandbox
    | AutoSandbox
    | BwrapSandbox
    | DockerSandbox
    | PodmanSandbox
    | LocalSandbox
    | SlurmSandbox
    | ApptainerSandbox
    | EcsFargateSandbox
    | CustomSandbox,
    Field(discriminator="type"),
]
