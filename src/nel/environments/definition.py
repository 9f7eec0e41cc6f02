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
from nel.scoring.sample import ScorerInput

Scorer = Callable[[ScorerInput], Any]
PrepareRow = Callable[[Row, int, Random], Row]
SeedFunction = Callable[[Row, int], SeedResult]

ENDPOINT_TYPES = ("chat", "completions")
_SETTABLE = ("prompt", "system_prompt", "target_field", "category_field", "cluster_field", "id_field", "row_seed")


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
    """`chat` or `completions`: what the prompt is written for."""
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
    defined_in: Path | None = None
    """The defining file, where there is one."""

    def __post_init__(self) -> None:
        if not self.name or not self.name.strip():
            raise UsageError("a benchmark needs a name")
        if self.endpoint_type not in ENDPOINT_TYPES:
            near = get_close_matches(self.endpoint_type, ENDPOINT_TYPES, n=1)
            raise UsageError(
                f"benchmark {self.name}: endpoint_type {self.endpoint_type!r} is neither 'chat' nor 'completions'",
                hint=f"Did you mean {near[0]!r}?" if near else None,
            )
        if not self.prompt and self.seed_fn is None:
            raise UsageError(f"benchmark {self.name} has no prompt", hint="Give it a `prompt`, or a `seed_fn`.")
        if self.prompt and self.seed_fn is not None:
            raise UsageError(
                f"benchmark {self.name} has a prompt and a seed_fn",
                hint="`seed_fn` makes the whole problem: leave `prompt` out.",
            )
        for what in ("extra", "generation"):
            self._check_json(what, getattr(self, what))

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
            elif key != "num_fewshot" or value != 0:
                raise self._unknown_param(key)
        return replace(self, extra=extra, **changes)

    def _checked(self, key: str, value: Any) -> Any:
        wanted: type = int if key == "row_seed" else str
        optional = key not in {"prompt", "row_seed"}
        if not (isinstance(value, wanted) and not isinstance(value, bool)) and not (optional and value is None):
            raise ConfigError(f"{value!r} is not a {wanted.__name__}", key=f"params.{key}")
        return value

    def _unknown_param(self, key: str) -> ConfigError:
        if key == "num_fewshot":
            return ConfigError(f"{self.name} asks without examples (zero-shot)", key="params.num_fewshot")
        known = [*self.extra, *_SETTABLE]
        near = get_close_matches(key, known, n=1)
        listed = f"{self.name} takes: {', '.join(known)}."
        return ConfigError(
            "unknown parameter", key=f"params.{key}", hint=f"Did you mean {near[0]!r}? {listed}" if near else listed
        )


FIELD_NAMES = tuple(item.name for item in fields(BenchmarkDefinition))
