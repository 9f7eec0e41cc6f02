"""What must fit together across a config: names that refer to each other, and sizes that must not exceed others."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import PurePosixPath

from nel.config.benchmarks import Benchmark
from nel.config.clusters import SlurmCluster, walltime_seconds
from nel.config.eval_config import EvalConfig, services_of, services_of_metric
from nel.config.positions import ConfigPath
from nel.config.sandboxes import NoSandbox
from nel.config.scoring import JudgeBase
from nel.config.services import (
    ApiService,
    DynamoService,
    GpuServer,
    GymService,
    ManagedService,
    ModelService,
    NatService,
    protocol_of,
)
from nel.config.solvers import AgentSolver, CustomSolver, HarborSolver, NatSolver, OpenClawSolver, ToolCallingSolver
from nel.config.validate import Problem


def check_together(config: EvalConfig) -> list[Problem]:
    """All that does not fit together."""
    return [
        *_references(config),
        *_variants(config),
        *_benchmarks(config),
        *_dependencies(config),
        *_ports(config),
        *_pools(config),
        *_remote_output(config),
    ]


def _references(config: EvalConfig) -> Iterator[Problem]:
    for index, benchmark in enumerate(config.benchmarks):
        for inner, name in services_of(benchmark):
            path: ConfigPath = ("benchmarks", index, *inner)
            service = config.services.get(name)
            if service is None:
                near = get_close_matches(name, config.services, n=1)
                tail = f"; did you mean {near[0]!r}?" if near else ""
                names = f"Services: {', '.join(config.services)}." if config.services else "There are no services."
                yield Problem(path, f"no service {name!r} in `services`{tail}", names)
                continue
            wanted, words = _wanted_kind(benchmark, inner)
            if not isinstance(service, wanted):
                yield Problem(path, f"service {name!r} is of type {service.type}; {words} is needed here")


def _wanted_kind(benchmark: Benchmark, inner: ConfigPath) -> tuple[type | tuple[type, ...], str]:
    if inner[-1] in ("resource_service", "gym_service", "verifier"):
        return GymService, "a gym service"
    if inner[0] == "solver" and isinstance(benchmark.solver, NatSolver):
        return NatService, "a nat service"
    if inner[0] == "solver" and isinstance(benchmark.solver, CustomSolver):
        return object, ""
    return ModelService, "a model"


def _variants(config: EvalConfig) -> Iterator[Problem]:
    seen: dict[tuple[str, str | None, str], int] = {}
    for index, benchmark in enumerate(config.benchmarks):
        twin = next((i for i in range(index) if config.benchmarks[i] == benchmark), None)
        if twin is not None:
            yield Problem(("benchmarks", index), f"is the same as benchmarks[{twin}]")
        elif benchmark.id is not None:
            first = seen.setdefault((benchmark.name, benchmark.service, benchmark.id), index)
            if first != index:
                message = f"benchmarks[{first}] has this id already, with the same benchmark and service"
                yield Problem(("benchmarks", index, "id"), message)


def _benchmarks(config: EvalConfig) -> Iterator[Problem]:
    for index, benchmark in enumerate(config.benchmarks):
        path: ConfigPath = ("benchmarks", index)
        yield from _judges(benchmark, path)
        yield from _longest_answer(config, benchmark, path)
        solver = benchmark.solver
        agent = isinstance(solver, HarborSolver | AgentSolver | OpenClawSolver)
        tools = isinstance(solver, ToolCallingSolver) and solver.sandbox_tools
        if (agent or tools) and isinstance(benchmark.sandbox, NoSandbox):
            what = "`sandbox_tools`" if tools else f"a {solver.type} solver"
            yield Problem((*path, "sandbox"), f"{what} needs a sandbox")


def _judges(benchmark: Benchmark, path: ConfigPath) -> Iterator[Problem]:
    for index, metric in enumerate(benchmark.scoring.metrics):
        if isinstance(metric, JudgeBase) and metric.allow_self_judge:
            continue
        for inner, name in services_of_metric(metric):
            judges = metric.type.endswith("judge") and inner[0] != "baseline_service"
            if judges and name == benchmark.service:
                hint = "Name another service, or set `allow_self_judge: true`."
                yield Problem(
                    (*path, "scoring", "metrics", index, *inner), f"{name!r} would judge its own answers", hint
                )


def _longest_answer(config: EvalConfig, benchmark: Benchmark, path: ConfigPath) -> Iterator[Problem]:
    service = config.services.get(benchmark.service or "")
    generation = getattr(benchmark.solver, "generation", None)
    if not isinstance(service, ModelService) or generation is None or not generation.max_tokens:
        return
    if service.max_output_tokens is not None and generation.max_tokens > service.max_output_tokens:
        message = f"{generation.max_tokens} is more than the service's max_output_tokens, {service.max_output_tokens}"
        yield Problem((*path, "solver", "generation", "max_tokens"), message)


def _dependencies(config: EvalConfig) -> Iterator[Problem]:
    needs = {name: list(getattr(service, "depends_on", ())) for name, service in config.services.items()}
    for name, others in needs.items():
        for index, other in enumerate(others):
            path = ("services", name, "depends_on", index)
            if other not in needs:
                near = get_close_matches(other, needs, n=1)
                tail = f"; did you mean {near[0]!r}?" if near else ""
                yield Problem(path, f"no service {other!r} in `services`{tail}")
            elif chain := _way(needs, other, name):
                yield Problem(path, f"services that wait for each other: {' -> '.join([name, *chain])}")


def _way(needs: dict[str, list[str]], start: str, goal: str) -> list[str] | None:
    """The services from `start` to `goal` along dependencies, or None."""
    queue, seen = [[start]], {start}
    while queue:
        chain = queue.pop(0)
        if chain[-1] == goal:
            return chain
        for other in needs.get(chain[-1], ()):
            if other not in seen:
                seen.add(other)
                queue.append([*chain, other])
    return None


def _ports(config: EvalConfig) -> Iterator[Problem]:
    taken: dict[tuple[str | None, int], str] = {}
    for name in config.used_services():
        service = config.services[name]
        port = getattr(service, "port", 0)
        if not port or (isinstance(service, GymService) and service.url):
            continue
        first = taken.setdefault((getattr(service, "node_pool", None), port), name)
        if first != name:
            yield Problem(("services", name, "port"), f"{port} is also that of {first!r}; 0 takes a free one")


def _pools(config: EvalConfig) -> Iterator[Problem]:
    cluster = config.cluster
    if not isinstance(cluster, SlurmCluster):
        return
    pools = cluster.node_pools
    for path, name in _pool_names(config):
        if name not in pools:
            near = get_close_matches(name, pools, n=1)
            tail = f"; did you mean {near[0]!r}?" if near else ""
            yield Problem(path, f"no node pool {name!r} in cluster.node_pools{tail}", f"Pools: {', '.join(pools)}.")
    several: dict[str, str] = {}
    for name, service in config.services.items():
        if not isinstance(service, GpuServer):
            continue
        pool_name = service.node_pool or next(iter(pools))
        pool = pools.get(pool_name)
        if pool is None:
            continue
        wide = service.tensor_parallel_size
        if wide and pool.gpus is not None and wide > pool.gpus:
            message = f"{wide} GPUs, but a node of pool {pool_name!r} has {pool.gpus}"
            yield Problem(("services", name, "tensor_parallel_size"), message)
        if service.num_nodes > pool.nodes:
            message = f"{service.num_nodes} nodes, but pool {pool_name!r} has {pool.nodes}"
            yield Problem(("services", name, "num_nodes"), message)
        if service.num_nodes > 1:
            first = several.setdefault(pool_name, name)
            if first != name:
                message = f"pool {pool_name!r} runs {first!r} on several nodes already"
                yield Problem(("services", name, "num_nodes"), message)
    if cluster.shards and len(pools) > 1:
        yield Problem(("cluster", "shards"), f"shards need a single node pool; there are {len(pools)}")


def _pool_names(config: EvalConfig) -> Iterator[tuple[ConfigPath, str]]:
    for name, service in config.services.items():
        if pool := getattr(service, "node_pool", None):
            yield ("services", name, "node_pool"), pool
        if isinstance(service, DynamoService):
            for role, worker in (("prefill", service.prefill), ("decode", service.decode)):
                if worker is not None and worker.node_pool:
                    yield ("services", name, role, "node_pool"), worker.node_pool
    for name, sandbox in config.sandboxes.items():
        if pool := getattr(sandbox, "node_pool", None):
            yield ("sandboxes", name, "node_pool"), pool
    for index, benchmark in enumerate(config.benchmarks):
        if pool := getattr(benchmark.sandbox, "node_pool", None):
            yield ("benchmarks", index, "sandbox", "node_pool"), pool


def _remote_output(config: EvalConfig) -> Iterator[Problem]:
    remote = isinstance(config.cluster, SlurmCluster) and config.cluster.hostname is not None
    if remote and not PurePosixPath(config.output.directory).is_absolute():
        yield Problem(("output", "dir"), "is a path on the cluster, and must be absolute")


def warnings_of(config: EvalConfig) -> list[Problem]:
    """What is allowed but probably not meant."""
    return [*_urls(config), *_unused(config), *_times(config)]


def _urls(config: EvalConfig) -> Iterator[Problem]:
    for name in config.used_services():
        service = config.services[name]
        if not isinstance(service, ApiService):
            continue
        for index, url in enumerate(service.endpoints):
            path: ConfigPath = ("services", name, "url") if service.url else ("services", name, "urls", index)
            if protocol_of(url) is None:
                hint = "The whole URL is needed, as in https://host/v1/chat/completions."
                yield Problem(
                    path, f"ends in none of the paths of a protocol; requests go there as {service.protocol}", hint
                )


def _unused(config: EvalConfig) -> Iterator[Problem]:
    used = {*config.used_services()}
    for name in config.services:
        if name not in used:
            yield Problem(("services", name), "no benchmark uses this service")
    sandboxes = [benchmark.sandbox for benchmark in config.benchmarks]
    for name, sandbox in config.sandboxes.items():
        if sandbox not in sandboxes:
            yield Problem(("sandboxes", name), "no benchmark uses this sandbox")
    for index, benchmark in enumerate(config.benchmarks):
        sandbox = benchmark.sandbox
        if getattr(sandbox, "stateful", False) and (sandbox.capture_cmd or sandbox.scrub_git_history):  # type: ignore[union-attr]
            message = "a stateful sandbox uses neither capture_cmd nor scrub_git_history"
            yield Problem(("benchmarks", index, "sandbox"), message)


def _times(config: EvalConfig) -> Iterator[Problem]:
    cluster = config.cluster
    if not isinstance(cluster, SlurmCluster) or cluster.auto_resume:
        return
    start = sum(
        service.startup_timeout
        for name in config.used_services()
        if isinstance(service := config.services[name], ManagedService)
    )
    longest = max(benchmark.timeout for benchmark in config.benchmarks)
    if start + longest > walltime_seconds(cluster.walltime):
        message = f"shorter than starting the services and one attempt may take ({start + longest:.0f} s)"
        yield Problem(("cluster", "walltime"), message)
