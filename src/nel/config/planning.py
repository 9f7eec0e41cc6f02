"""What a config may say but this version cannot do yet: refused before anything runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nel.config.base import Model
from nel.config.eval_config import EvalConfig
from nel.config.load import LoadedConfig
from nel.config.positions import ConfigPath
from nel.config.schema import rows
from nel.config.services import SUFFIXES, ApiService, protocol_of
from nel.config.validate import Problem, config_error


def plan_check(loaded: LoadedConfig) -> None:
    """Refuse what is not available yet: one `ConfigError` with the line of each key.

    Only what the run would use counts: a service or sandbox that no benchmark names is left alone.
    """
    problems = list(refusals(loaded.config))
    if problems:
        raise config_error(loaded.tree, problems)


def refusals(config: EvalConfig) -> Iterator[Problem]:
    """Each key or value that this version cannot do."""
    for name in config.used_services():
        yield from _later(config.services[name], ("services", name))
        yield from _protocols(config.services[name], ("services", name))
    for index, benchmark in enumerate(config.benchmarks):
        yield from _later(benchmark, ("benchmarks", index))
    yield from _later(config.cluster, ("cluster",))
    yield from _later(config.output, ("output",))


def _later(model: Model, path: ConfigPath) -> Iterator[Problem]:
    if model.later:
        yield Problem((*path, "type"), f"{model.later} are not available yet")
        return
    for row in rows(type(model)):
        value = getattr(model, row.name)
        here = (*path, row.name)
        if row.status != "later":
            yield from _inside(value, here)
        elif row.name in model.model_fields_set and value != row.field.get_default(call_default_factory=True):
            yield Problem(here, "not available yet")


def _inside(value: Any, path: ConfigPath) -> Iterator[Problem]:
    if isinstance(value, Model):
        yield from _later(value, path)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _inside(item, (*path, index))
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _inside(item, (*path, name))


def _protocols(service: Any, path: ConfigPath) -> Iterator[Problem]:
    if not isinstance(service, ApiService):
        return
    for index, url in enumerate(service.endpoints):
        found = protocol_of(url)
        if found is not None and found != service.protocol:
            suffix = next(end for end, protocol in SUFFIXES.items() if protocol == service.protocol)
            where = ("url",) if service.url else ("urls", index)
            yield Problem(
                (*path, *where),
                f"is a URL of the protocol {found}, but `protocol` is {service.protocol}",
                f"Set `protocol: {found}`, or write the URL that ends in {suffix}.",
            )
