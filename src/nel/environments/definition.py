"""`BenchmarkDefinition`: a benchmark as data, a prompt and a scorer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from pathlib import Path
from random import Random
from typing import Any

from nel.core.contract import encode_json
from nel.core.errors import ConfigError, RecordError, UsageError
from nel.environments.base import SeedResult
from nel.environments.data import DataSpec, Row
from nel.environments.fewshot import FewShot
from nel.environments.self_test import SelfTest
from nel.sandbox.base import SandboxSpec
from nel.scoring.sample import ScorerInput

Scorer = Callable[[ScorerInput], Any]
PrepareRow = Callable[[Row, int, Random], Row]
SeedFunction = Callable[[Row, int], SeedResult]

ENDPOINT_TYPES = ("chat", "completions", "loglikelihood")
_SETTABLE = ("prompt", "system_prompt", "target_field", "category_field", "cluster_field", "id_field", "row_seed")
BAD_ROWS = ("error", "exclude")


@dataclass(kw_only=True, eq=False)
class BenchmarkDefinition:
    """All that `@benchmark` takes. Relative paths start from the folder of the defining file."""

    name: str
    dataset: DataSpec
    """A file, folder, `hf://` or `package://` address, function, or rows (`nel.environments.data.open_source`)."""
    prompt: str = ""
    """A template, or the path of one (`nel.environments.template`)."""
    target_field: str | None = "target"
    """The column with the expected answer; None where there is none."""
    endpoint_type: str = "chat"
    """What the prompt is written for: `chat`, `completions`, or `loglikelihood`, whose rows have `options` (see
    `nel.solvers.loglikelihood`)."""
    system_prompt: str | None = None
    field_mapping: Mapping[str, str] = field(default_factory=dict)
    """Columns under a second name: from the data's to the one that prompt and scorer use."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """JSON values for the scorer, its `config`; a config file can set them under `params`."""
    requirements: Sequence[str] | str = ()
    """Packages that must be installed: specifiers, or the path of a requirements file."""
    prepare_row: PrepareRow | None = None
    """`prepare_row(row, idx, rng)` returns the row that is used. `rng` depends on the row's content alone."""
    seed_fn: SeedFunction | None = None
    """`seed_fn(row, idx)` makes the whole problem instead of prompt and template."""
    scorer: Scorer | None = None
    """Without one, `exact_match`."""
    category_field: str | None = None
    cluster_field: str | None = None
    id_field: str | None = None
    generation: Mapping[str, Any] = field(default_factory=dict)
    """Generation parameters that the benchmark needs, under the user's own."""
    version: str = "1"
    """Raised when verdicts change for a reason that does not stand in the defining file."""
    row_seed: int = 42
    """Seeds `rng`, together with the row's content."""
    fewshot: FewShot | None = None
    """Where solved examples come from, and how they stand before the question."""
    num_fewshot: int = 0
    """How many each problem has; a config can set it, and `fewshot_dataset`, under `params`."""
    bad_rows: str = "error"
    """A row that cannot be asked: `error`, the end before the first request, or `exclude`: set aside and counted."""
    aggregates: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Scores that are no mean of the rewards, by their names in `nel.metrics.aggregates`, each with its metrics."""
    sandbox: SandboxSpec | None = None
    """What the scorer needs to run what a model wrote, as `sample.sandbox`."""
    self_test: SelfTest | None = None
    """Rows and right replies that `nel validate --self-test` grades."""
    defined_in: Path | None = None
    """The defining file, where there is one."""

    def __post_init__(self) -> None:
        if not self.name or not self.name.strip():
            raise UsageError("a benchmark needs a name")
        if self.endpoint_type not in ENDPOINT_TYPES:
            near = get_close_matches(self.endpoint_type, ENDPOINT_TYPES, n=1)
            raise UsageError(
                f"benchmark {self.name}: endpoint_type {self.endpoint_type!r} is none of {', '.join(ENDPOINT_TYPES)}",
                hint=f"Did you mean {near[0]!r}?" if near else None,
            )
        if not self.prompt and self.seed_fn is None:
            raise UsageError(f"benchmark {self.name} has no prompt", hint="Give it a `prompt`, or a `seed_fn`.")
        if self.prompt and self.seed_fn is not None:
            raise UsageError(
                f"benchmark {self.name} has a prompt and a seed_fn",
                hint="`seed_fn` makes the whole problem: leave `prompt` out.",
            )
        if self.bad_rows not in BAD_ROWS:
            raise UsageError(f"benchmark {self.name}: bad_rows is {self.bad_rows!r}; it is 'error' or 'exclude'")
        self._check_fewshot()
        self._check_aggregates()
        for what in ("extra", "generation"):
            self._check_json(what, getattr(self, what))

    def _check_aggregates(self) -> None:
        from nel.metrics.aggregates import AGGREGATES

        for name, metrics in self.aggregates.items():
            if name not in AGGREGATES:
                raise UsageError(
                    f"benchmark {self.name}: no aggregate {name!r}", hint=f"There are: {', '.join(sorted(AGGREGATES))}."
                )
            if len(metrics) != len(wanted := AGGREGATES[name].arguments):
                raise UsageError(f"benchmark {self.name}: {name} is made of {len(wanted)} metrics: {', '.join(wanted)}")

    def _check_fewshot(self) -> None:
        if self.num_fewshot < 0:
            raise UsageError(f"benchmark {self.name}: num_fewshot is {self.num_fewshot}; it must be 0 or more")
        if self.fewshot is None:
            if self.num_fewshot:
                raise UsageError(f"benchmark {self.name}: num_fewshot without examples", hint="Give it a `fewshot`.")
            return
        if self.seed_fn is not None:
            raise UsageError(f"benchmark {self.name}: a seed_fn makes the whole problem: it takes no `fewshot`")
        if not self.fewshot.answer and self.target_field is None:
            raise UsageError(f"benchmark {self.name}: without a target_field, `fewshot` needs an `answer`")
        if self.fewshot.style == "turns" and self.endpoint_type != "chat":
            raise UsageError(f"benchmark {self.name}: {self.endpoint_type} endpoints have no turns for `fewshot`")

    def _check_json(self, what: str, values: Mapping[str, Any]) -> None:
        for key, value in values.items():
            try:
                encode_json(value)
            except (TypeError, RecordError) as error:
                raise UsageError(
                    f"benchmark {self.name}: {what}[{key!r}] is no JSON value: {error}",
                    hint="Constants of other kinds stand in the defining file, where the scorer sees them.",
                ) from None

    @property
    def folder(self) -> Path | None:
        """Where relative paths start."""
        return self.defined_in.parent if self.defined_in else None

    def with_params(self, params: Mapping[str, Any]) -> BenchmarkDefinition:
        """The definition with a config's `params`: keys of `extra`, and the plain settings (prompt, columns).

        `ConfigError` names an unknown key and the nearest one.
        """
        changes: dict[str, Any] = {}
        extra = dict(self.extra)
        for key, value in params.items():
            if key in extra:
                extra[key] = value
            elif key in _SETTABLE:
                changes[key] = self._checked(key, value)
            elif key in {"num_fewshot", "fewshot_dataset"}:
                changes |= self._examples(key, value)
            elif key == "bad_rows" and value in BAD_ROWS:
                changes[key] = value
            else:
                raise self._unknown_param(key, value)
        return replace(self, extra=extra, **changes)

    def _checked(self, key: str, value: Any) -> Any:
        wanted: type = int if key == "row_seed" else str
        optional = key not in {"prompt", "row_seed"}
        if not (isinstance(value, wanted) and not isinstance(value, bool)) and not (optional and value is None):
            raise ConfigError(f"{value!r} is not a {wanted.__name__}", key=f"params.{key}")
        return value

    def _examples(self, key: str, value: Any) -> dict[str, Any]:
        if self.fewshot is None:
            if key == "num_fewshot" and value == 0:
                return {}
            raise ConfigError(f"{self.name} asks without examples (zero-shot)", key=f"params.{key}")
        if key == "fewshot_dataset":
            if not isinstance(value, str):
                raise ConfigError(f"{value!r} is no path or address", key=f"params.{key}")
            return {"fewshot": replace(self.fewshot, rows=value)}
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise ConfigError(f"{value!r} is no number of examples", key=f"params.{key}")
        return {key: value}

    def _unknown_param(self, key: str, value: Any) -> ConfigError:
        if key == "bad_rows":
            return ConfigError(f"{value!r} is neither 'error' nor 'exclude'", key="params.bad_rows")
        examples = ["num_fewshot", "fewshot_dataset"] if self.fewshot is not None else []
        known = [*self.extra, *_SETTABLE, *examples, "bad_rows"]
        near = get_close_matches(key, known, n=1)
        listed = f"{self.name} takes: {', '.join(known)}."
        return ConfigError(
            "unknown parameter", key=f"params.{key}", hint=f"Did you mean {near[0]!r}? {listed}" if near else listed
        )


FIELD_NAMES = tuple(item.name for item in fields(BenchmarkDefinition))
