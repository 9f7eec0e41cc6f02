"""`benchmarks`: what is evaluated, with which solver."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, field_validator, model_validator

from nel.config.base import Also, Count, Int, Model, Name, NotNegative, Positive, Share, Whole, key, refusal
from nel.config.sandboxes import NoSandbox, Sandbox
from nel.config.scoring import Scoring
from nel.config.solvers import Solver

ErrorPolicy = Literal["exclude", "zero", "abort"]
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class Dataset(Model):
    """Data that replaces a benchmark's own."""

    path: Name | None = key(
        None, "A file or folder, `hf://owner/name`, or `package://NAME/inner/path`; by default the benchmark's own."
    )
    revision: str | None = key(None, "Commit or tag of a hub dataset.")
    split: str | None = key(None, "Its split.")
    config: str | None = key(None, "Its configuration.")


def _path_of_dataset(value: Any) -> Any:
    return {"path": value} if isinstance(value, str) else value


def _as_text(value: Any) -> Any:
    if isinstance(value, list):
        return [str(item) if type(item) in (int, float) else item for item in value]
    return value


def _as_list(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: item if isinstance(item, list) else [item] for name, item in value.items()}
    return value


class Select(Model):
    """Which problems are attempted; both conditions must hold."""

    ids: Annotated[
        list[str],
        BeforeValidator(_as_text),
        Also({"type": "array", "items": {"type": ["string", "number"]}}),
    ] = key(list, "Problems with these ids.")
    where: Annotated[
        dict[str, list[Any]],
        BeforeValidator(_as_list),
        Also({"type": "object"}),
    ] = key(dict, "Problems whose field has this value, or one of these values.")


class Decides(Model):
    """A question about a drop that a benchmark may end with."""

    baseline: Name = key(..., "Run directory to compare with; it must hold this benchmark.")
    max_drop: NotNegative = key(0.05, "The drop that is acceptable, in score units.")


class StopWhen(Model):
    """What is known well enough for a benchmark to end; one of the two. The interval stays honest: it may be looked at
    after every problem."""

    half_width: Positive | None = key(None, "The mean's interval is this narrow on each side.")
    decides: Decides | None = key(None, "It is decided whether the mean fell by more than may be.")

    @model_validator(mode="after")
    def _one(self) -> StopWhen:
        if (self.half_width is None) == (self.decides is None):
            raise refusal("needs either `half_width` or `decides`")
        return self


class Benchmark(Model):
    """One benchmark, or one variant of it, with one solver."""

    name: Name = key(..., "A name of `nel list`, file.py[:name], or a URI.")
    id: str | None = key(None, "Tells variants of one benchmark apart; part of directory names.")
    solver: Solver = key(..., "How its problems are attempted.")
    dataset: Annotated[
        Dataset | None,
        BeforeValidator(_path_of_dataset),
        Also({"type": "string"}),
    ] = key(None, "Replaces its data: a path, or a map.")
    repeats: Count = key(1, "Attempts at each problem.")
    max_problems: Count | None = key(None, "Take only the first problems, after selection and shuffling.")
    problem_range: tuple[Whole, Whole] | None = key(None, "[start, end) among the selected problems.")
    select: Select = key(Select, "Which problems are attempted.")
    shuffle_seed: Int | None = key(42, "Order of the problems; null keeps the data's own.")
    max_concurrent: Count = key(32, "Problems attempted at once.")
    timeout: Positive = key(1800.0, "Seconds for one attempt, all its requests together.")
    max_system_retries: Whole = key(3, "Further tries after a crash of solver, sandbox or server.")
    error_policy: ErrorPolicy = key("exclude", "An error in the mean: left out, a zero, or the end of the benchmark.")
    max_error_rate: Share = key(0.05, "Errors over planned attempts above which the run ends as degraded.")
    skip_failed: bool = key(False, "true: as `error_policy: exclude` with `max_error_rate: 1.0`.", mapped=True)
    fewshot: Whole | None = key(None, "As `params.num_fewshot`; refused where the benchmark takes none.", mapped=True)
    context_window: Count | None = key(None, "Tokens of context.", later=True)
    instruction_template: str | None = key(None, "Text around each prompt, with {prompt} in it.")
    stop_when: StopWhen | None = key(None, "End early, when enough is known; refused with shards.")
    params: dict[str, Any] = key(dict, "The benchmark's own parameters.")
    scoring: Scoring = key(Scoring, "Measurements beside, or instead of, its own.")
    verifier: str | None = key(None, "Gym service that grades the answers.", later=True)
    sandbox: Annotated[Sandbox, Also({"type": "string"})] = key(
        NoSandbox(type="none"), "Where code runs: a map, or a name of `sandboxes`."
    )
    playbook: str | None = key(None, "A packaged entry that this one changes.", later=True)

    @field_validator("id")
    @classmethod
    def _id(cls, value: str | None) -> str | None:
        if value is not None and not _ID.fullmatch(value):
            raise refusal("is made of letters, digits, `.`, `_` and `-`")
        return value

    @field_validator("problem_range")
    @classmethod
    def _range(cls, value: tuple[int, int] | None) -> tuple[int, int] | None:
        if value is not None and value[0] >= value[1]:
            raise refusal(f"[{value[0]}, {value[1]}) holds no problem")
        return value

    @field_validator("instruction_template")
    @classmethod
    def _template(cls, value: str | None) -> str | None:
        if value is not None and "{prompt}" not in value:
            raise refusal("has no {prompt} in it")
        return value

    @model_validator(mode="before")
    @classmethod
    def _a_playbook(cls, value: Any) -> Any:
        if isinstance(value, dict) and value.get("playbook") and not (value.get("name") and value.get("solver")):
            raise refusal("playbooks are not available yet", "playbook")
        return value

    @model_validator(mode="after")
    def _mapped_keys_agree(self) -> Benchmark:
        if self.fewshot is not None and "num_fewshot" in self.params:
            raise refusal("the same as params.num_fewshot; write one of the two", "fewshot")
        if self.stop_when is not None and self.shuffle_seed is None:
            raise refusal("needs a random order: shuffle_seed is null", "stop_when")
        if self.skip_failed:
            for name, meant in (("error_policy", "exclude"), ("max_error_rate", 1.0)):
                if name in self.model_fields_set and getattr(self, name) != meant:
                    raise refusal(f"contradicts {name}: {getattr(self, name)}", "skip_failed")
        return self

    @property
    def errors(self) -> tuple[ErrorPolicy, float]:
        """Error policy and highest error rate, with `skip_failed` taken into account."""
        return ("exclude", 1.0) if self.skip_failed else (self.error_policy, self.max_error_rate)

    @property
    def parameters(self) -> dict[str, Any]:
        """`params`, with `fewshot` as `num_fewshot`."""
        return self.params if self.fewshot is None else {**self.params, "num_fewshot": self.fewshot}

    @property
    def service(self) -> str | None:
        """Name of the service that its solver talks to."""
        return getattr(self.solver, "service", None)
