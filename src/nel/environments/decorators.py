"""`@benchmark` over `@scorer`: a benchmark in one file. `@register`: an environment class by name."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, overload

from nel.core.errors import UsageError
from nel.environments import registry
from nel.environments.base import EvalEnvironment
from nel.environments.data import DataSpec
from nel.environments.definition import FIELD_NAMES, BenchmarkDefinition, PrepareRow, Scorer, SeedFunction
from nel.environments.fewshot import FewShot
from nel.environments.self_test import SelfTest
from nel.sandbox.base import SandboxSpec

_MARK = "__nel_scorer__"


def scorer[S: Scorer](function: S) -> S:
    """Marks a function of one `ScorerInput` as a scorer; sync or async.

    It returns a bool, a number, a mapping (`correct`, else `reward`, else the first number is the reward; further
    numbers are metrics) or a `VerifyResult`.
    """
    try:
        inspect.signature(function).bind(None)
    except TypeError:
        raise UsageError(f"scorer {_name(function)}: takes exactly one argument, a ScorerInput") from None
    setattr(function, _MARK, True)
    return function


def benchmark[S: Scorer](
    name: str,
    dataset: DataSpec,
    prompt: str = "",
    target_field: str | None = "target",
    *,
    endpoint_type: str = "chat",
    system_prompt: str | None = None,
    field_mapping: Mapping[str, str] | None = None,
    extra: Mapping[str, Any] | None = None,
    requirements: Sequence[str] | str = (),
    prepare_row: PrepareRow | None = None,
    seed_fn: SeedFunction | None = None,
    category_field: str | None = None,
    cluster_field: str | None = None,
    id_field: str | None = None,
    generation: Mapping[str, Any] | None = None,
    version: str = "1",
    row_seed: int = 42,
    fewshot: FewShot | None = None,
    num_fewshot: int = 0,
    bad_rows: str = "error",
    aggregates: Mapping[str, Sequence[str]] | None = None,
    sandbox: SandboxSpec | None = None,
    self_test: SelfTest | None = None,
    **more: Any,
) -> Callable[[S], S]:
    """Registers a benchmark whose scorer is the decorated function; see `BenchmarkDefinition` for the arguments.

    Further keyword arguments join `extra`.
    """
    place = sys._getframe(1).f_globals  # noqa: SLF001 - the module that calls
    settings = BenchmarkDefinition(
        name=name,
        dataset=dataset,
        prompt=prompt,
        target_field=target_field,
        endpoint_type=endpoint_type,
        system_prompt=system_prompt,
        field_mapping=dict(field_mapping or {}),
        extra=_joined(name, extra or {}, more),
        requirements=requirements,
        prepare_row=prepare_row,
        seed_fn=seed_fn,
        category_field=category_field,
        cluster_field=cluster_field,
        id_field=id_field,
        generation=dict(generation or {}),
        version=version,
        row_seed=row_seed,
        fewshot=fewshot,
        num_fewshot=num_fewshot,
        bad_rows=bad_rows,
        aggregates=dict(aggregates or {}),
        sandbox=sandbox,
        self_test=self_test,
        defined_in=_file_of(place),
    )

    def decorate(function: S) -> S:
        if not getattr(function, _MARK, False):
            raise UsageError(
                f"benchmark {name}: {_name(function)} is no scorer",
                hint="Put @scorer between @benchmark(...) and the function.",
            )
        registry.add(replace(settings, scorer=function), place)
        return function

    return decorate


def _joined(name: str, extra: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    for key in more:
        near = get_close_matches(key, FIELD_NAMES, n=1, cutoff=0.8)
        if near:
            raise UsageError(
                f"benchmark {name}: unknown argument {key!r}",
                hint=f"Did you mean {near[0]!r}? A value for the scorer of that name goes into `extra`.",
            )
        if key in extra:
            raise UsageError(f"benchmark {name}: {key!r} stands in `extra` and among the arguments")
    return {**extra, **more}


@overload
def register[E: type[EvalEnvironment]](item: E) -> E: ...
@overload
def register(item: BenchmarkDefinition) -> BenchmarkDefinition: ...
def register(item: Any) -> Any:
    """Registers an `EvalEnvironment` class by its `name`, or a `BenchmarkDefinition`; returns it.

    The class is made with `params` as keyword arguments, and with `dataset` if its constructor takes it.
    """
    place = sys._getframe(1).f_globals  # noqa: SLF001 - the module that calls
    if isinstance(item, BenchmarkDefinition):
        item.defined_in = item.defined_in or _file_of(place)
        registry.add(item, place)
        return item
    if not (isinstance(item, type) and issubclass(item, EvalEnvironment)):
        raise UsageError(f"@register: {_name(item)} is neither an EvalEnvironment class nor a BenchmarkDefinition")
    if not item.name:
        raise UsageError(f"@register: {item.__name__} has no `name`")
    registry.add(item, place)
    return item


def _file_of(place: Mapping[str, Any]) -> Path | None:
    file = place.get("__file__")
    return Path(file).resolve() if file else None


def _name(value: Any) -> str:
    return getattr(value, "__qualname__", None) or repr(value)
