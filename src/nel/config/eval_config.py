"""`EvalConfig`: a whole evaluation, as its author writes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import Field, field_validator, model_validator

from nel.config.base import Count, Model, key, refusal
from nel.config.benchmarks import Benchmark
from nel.config.clusters import Cluster, LocalCluster
from nel.config.output import Output
from nel.config.sandboxes import Sandbox
from nel.config.scoring import EnsembleJudgeMetric, JudgeMetric, Metric, PairwiseJudgeMetric, RewardModelMetric
from nel.config.services import Service

RESERVED_SERVICES = frozenset({"", "default", "none"})


class EvalConfig(Model):
    """A whole evaluation: the models, the benchmarks, where it runs and where results go."""

    services: dict[str, Service] = key(dict, "Models and other servers, by name.")
    sandboxes: dict[str, Sandbox] = key(dict, "Sandboxes that benchmarks name.")
    benchmarks: Annotated[list[Benchmark], Field(min_length=1)] = key(..., "What is evaluated.")
    max_concurrent_benchmarks: Count = key(4, "Benchmarks that run at once.")
    cluster: Cluster = key(LocalCluster(type="local"), "Where it runs.")
    output: Output = key(Output, "Where results go.")

    @field_validator("services", mode="after")
    @classmethod
    def _service_names(cls, value: dict[str, Any]) -> dict[str, Any]:
        for name in value:
            if name in RESERVED_SERVICES:
                raise refusal("is a reserved name; call the service something else", name)
        return value

    @field_validator("sandboxes", mode="after")
    @classmethod
    def _sandbox_names(cls, value: dict[str, Any]) -> dict[str, Any]:
        for name in value:
            if name in ("", "none"):
                raise refusal("is a reserved name; call the sandbox something else", name)
        return value

    @model_validator(mode="before")
    @classmethod
    def _named_sandboxes(cls, value: Any) -> Any:
        """A benchmark's sandbox by name becomes the sandbox itself."""
        if not isinstance(value, dict) or not isinstance(value.get("benchmarks"), list):
            return value
        named = value.get("sandboxes")
        known = named if isinstance(named, dict) else {}
        benchmarks = []
        for index, entry in enumerate(value["benchmarks"]):
            name = entry.get("sandbox") if isinstance(entry, dict) else None
            if isinstance(name, str):
                if name == "none":
                    entry = {**entry, "sandbox": {"type": "none"}}
                elif name in known:
                    entry = {**entry, "sandbox": known[name]}
                else:
                    raise refusal(_unknown_sandbox(name, known), "benchmarks", index, "sandbox")
            benchmarks.append(entry)
        return {**value, "benchmarks": benchmarks}

    def used_services(self) -> list[str]:
        """Names of the services that benchmarks need, those that a service depends on before it, else in config order.

        Services that no benchmark names are not used, and need not be started.
        """
        wanted = {name for benchmark in self.benchmarks for _path, name in services_of(benchmark)}
        ordered: list[str] = []

        def add(name: str, chain: tuple[str, ...] = ()) -> None:
            if name in ordered or name in chain or name not in self.services:
                return
            for other in getattr(self.services[name], "depends_on", ()):
                add(other, (*chain, name))
            ordered.append(name)

        for name in self.services:
            if name in wanted:
                add(name)
        return ordered


def _unknown_sandbox(name: str, known: Mapping[str, Any]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, known, n=1)
    return f"no sandbox {name!r} in `sandboxes`" + (f"; did you mean {near[0]!r}?" if near else "")


def services_of(benchmark: Benchmark) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Each service that a benchmark names, with the path to that name inside the entry."""
    for name in ("service", "resource_service", "gym_service"):
        service = getattr(benchmark.solver, name, None)
        if service:
            yield ("solver", name), service
    if benchmark.verifier:
        yield ("verifier",), benchmark.verifier
    for index, metric in enumerate(benchmark.scoring.metrics):
        for path, service in services_of_metric(metric):
            yield ("scoring", "metrics", index, *path), service


def services_of_metric(metric: Metric) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Each service that a metric names, with the path to that name inside the metric."""
    if isinstance(metric, JudgeMetric | RewardModelMetric):
        yield ("service",), metric.service
    elif isinstance(metric, PairwiseJudgeMetric):
        yield ("judge_service",), metric.judge_service
        if metric.baseline_service is not None:
            yield ("baseline_service",), metric.baseline_service
    elif isinstance(metric, EnsembleJudgeMetric):
        for index, service in enumerate(metric.services):
            yield ("services", index), service


def parse_eval_config(raw: Mapping[str, Any], *, env: Mapping[str, str] | None = None) -> EvalConfig:
    """The checked config that a plain map holds, with `${VAR}` taken from `env` (by default the process's).

    `ConfigError` lists what is wrong by key; `load_config` also knows files and lines.
    """
    from nel.config.load import load_tree
    from nel.config.positions import Place, node_of

    return load_tree(node_of(dict(raw), Place("config")), env=env).config
