"""`cluster`: where a run happens."""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, field_validator

from nel.config.base import Count, Model, Name, Whole, key, refusal

_WALLTIME = re.compile(r"(?:(\d+)-)?(\d+):([0-5]\d):([0-5]\d)")
_FLAG = re.compile(r"[a-z][a-z0-9-]*")


def walltime_seconds(text: str) -> int:
    """Seconds of HH:MM:SS or D-HH:MM:SS; ValueError where it is neither."""
    match = _WALLTIME.fullmatch(text)
    if match is None:
        raise ValueError("a Slurm time is HH:MM:SS or D-HH:MM:SS")
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _walltime(text: str) -> str:
    try:
        walltime_seconds(text)
    except ValueError as error:
        raise refusal(str(error)) from None
    return text


Walltime = Annotated[str, AfterValidator(_walltime)]


def _flags(value: dict[str, Any]) -> dict[str, Any]:
    for name, item in value.items():
        if not _FLAG.fullmatch(name):
            raise refusal("is no sbatch option; write its long name without the dashes", name)
        if isinstance(item, dict | list) or (isinstance(item, str) and ("\n" in item or "\r" in item)):
            raise refusal("is one line of text, a number, or true", name)
    return value


SbatchFlags = Annotated[dict[str, Any], AfterValidator(_flags)]


class LocalCluster(Model):
    """This machine."""

    type: Literal["local"] = key(..., "This machine.")
    gpus: list[Whole] | None = key(None, "GPUs that the run may use.", later=True)
    max_memory: str | None = key(None, "Memory limit of the run.", later=True)
    container_env: dict[str, str] = key(dict, "Environment variables of the run and of the servers that it starts.")


class DockerCluster(Model):
    """A container on this machine."""

    later: ClassVar[str] = "clusters of type docker"
    type: Literal["docker"] = key(..., "A container on this machine.")
    image: str | None = key(None, "Its image.")
    container_mounts: list[str] = key(list, "Paths that it sees, as host:container.")
    container_env: dict[str, str] = key(dict, "Environment variables inside.")
    mount_home: bool = key(True, "Let it see the home directory.")
    shm_size: str | None = key(None, "Shared memory.")


class NodePool(Model):
    """Nodes of one kind."""

    partition: Name = key(..., "Partition.")
    nodes: Count = key(1, "How many.")
    ntasks_per_node: Count = key(1, "Tasks on each.")
    gres: str | None = key(None, "Generic resources, as in gpu:8.")
    gpus_per_node: Whole | None = key(None, "GPUs of each.")
    sbatch_extra_flags: SbatchFlags = key(dict, "Further sbatch options.")

    @property
    def gpus(self) -> int | None:
        """GPUs of one node, where `gpus_per_node` or `gres` says so."""
        if self.gpus_per_node is not None:
            return self.gpus_per_node
        match = re.search(r"(?:^|,)gpu(?::[\w.-]+?)?:(\d+)", self.gres or "")
        return int(match[1]) if match else None


class SlurmCluster(Model):
    """A Slurm cluster."""

    later: ClassVar[str] = "clusters of type slurm"
    type: Literal["slurm"] = key(..., "A Slurm cluster.")
    account: str | None = key(None, "Account.")
    walltime: Walltime = key("04:00:00", "Time limit of one job.")
    node_pools: Annotated[dict[str, NodePool], Field(min_length=1)] = key(..., "Nodes by kind; services name them.")
    conda_env: str | None = key(None, "Conda environment to activate.")
    eval_image: str | None = key(None, "Image that NEL runs in.")
    container_mounts: list[str] = key(list, "Paths that containers see, as host:container.")
    container_env: dict[str, str] = key(dict, "Environment variables inside.")
    shm_size: str | None = key(None, "Shared memory.")
    mount_home: bool = key(True, "Let containers see the home directory.")
    auto_resume: bool = key(True, "Submit a follow-up job that continues.")
    max_retries: Whole = key(3, "Follow-ups after failures.")
    max_walltime: Walltime | None = key(None, "Time limit over all follow-ups.")
    shards: Count | None = key(None, "Jobs that share the problems.")
    sbatch_comment: str | None = key(None, "Comment of the job.")
    sbatch_extra_flags: SbatchFlags = key(dict, "Further sbatch options.")
    hostname: str | None = key(None, "Login node; without it jobs are submitted from here.")
    username: str | None = key(None, "User there.")

    @field_validator("sbatch_comment")
    @classmethod
    def _one_line(cls, value: str | None) -> str | None:
        if value is not None and ("\n" in value or "\r" in value):
            raise refusal("is one line")
        return value


Cluster = Annotated[LocalCluster | DockerCluster | SlurmCluster, Field(discriminator="type")]
