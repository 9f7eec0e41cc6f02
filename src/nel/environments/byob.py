"""`ByobEnvironment`: runs a `BenchmarkDefinition`. Bring your own benchmark."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

from nel.core.contract import canonical_json
from nel.core.errors import DataError, NelError
from nel.environments.base import EvalEnvironment, SeedResult, VerifyResult
from nel.environments.data import DataSource, Row, open_source, replaced
from nel.environments.definition import BenchmarkDefinition
from nel.environments.grading import ScorerCall, ScorerCode
from nel.environments.requirements import check_requirements
from nel.environments.template import (
    FieldError,
    FormatTemplate,
    Template,
    compile_template,
    near_columns,
    read_template,
)
from nel.environments.verdict import verdict_of
from nel.observability.records import ModelResponse
from nel.scoring.sample import ScorerInput
from nel.scoring.scorers import exact_match


class ByobEnvironment(EvalEnvironment):
    """The problems of a definition's data, with its prompt, graded by its scorer.

    Args:
        definition: the benchmark.
        dataset: replaces its data: a path or address, or a map of `path`, `revision`, `split` and `config`. A relative
            path starts from the working directory.

    Raises:
        MissingDependencyError: one of the definition's `requirements` is not installed.
    """

    def __init__(
        self,
        definition: BenchmarkDefinition,
        *,
        dataset: str | Path | Mapping[str, Any] | None = None,
    ) -> None:
        check_requirements(definition.name, definition.requirements, definition.folder)
        self.definition = definition
        self.name = definition.name
        self.version = definition.version
        self.endpoint_type = definition.endpoint_type
        self.generation = dict(definition.generation)
        self._scorer = definition.scorer or exact_match
        self._score = ScorerCall(self._scorer)
        self._code = ScorerCode(self._scorer)
        self.may_need_judge = self._code.uses("needs_judge")
        self._dataset = dataset
        self._source: DataSource | None = None
        self._data_identity: dict[str, Any] = {}
        self._template: Template = FormatTemplate("")

    async def prepare(self) -> None:
        """Index the data, compile the prompt, and check that both fit.

        `DataError` names the first row that lacks a column which prompt, target or mapping need.
        """
        if self._source is not None:
            return
        definition = self.definition
        if self._dataset is None:
            source = open_source(definition.dataset, base=definition.folder)
        else:
            source = open_source(replaced(self._dataset, definition.dataset))
        await asyncio.to_thread(source.prepare)
        if not len(source):
            source.close()
            raise DataError(f"benchmark {self.name}: {source.name} has no rows")
        self._source = source
        self._data_identity = source.identity()
        try:
            if definition.seed_fn is None:
                self._prepare_template(source)
            await self.seed(0)
        except BaseException:
            await self.close()
            raise

    def _prepare_template(self, source: DataSource) -> None:
        text, suffix, _ = read_template(self.definition.prompt, self.definition.folder)
        self._template = compile_template(text, suffix=suffix, columns=self._row(0))
        if self._template.fixed and len(source) > 1:
            raise DataError(
                f"benchmark {self.name}: the prompt has no field, so all {len(source)} problems would be the same",
                hint=near_columns("", self._row(0)),
            )
        if (
            self.definition.prepare_row is None
        ):  # which may add columns, so only rows that have been through it can tell
            for columns, first in source.shapes.items():
                self._check_columns(columns, source.place(first))

    def _check_columns(self, columns: tuple[str, ...], place: str) -> None:
        definition = self.definition
        mapping = definition.field_mapping
        has = {*columns, *mapping.values()}
        wanted = [(column, "field_mapping") for column in mapping]
        named = ("target_field", "category_field", "cluster_field", "id_field")
        wanted += [(column, what) for what in named if (column := getattr(definition, what))]
        for column, what in wanted:
            if column not in (columns if what == "field_mapping" else has):
                raise self._no_column(what, column, columns, place)
        for root in sorted(self._template.roots):
            if root not in has:
                raise DataError(
                    f"benchmark {self.name}: {place}: no column for the prompt's field {{{root}}}",
                    hint=f"{near_columns(root, columns)} Text that is no field is written {{{{{root}}}}}.",
                )

    def _no_column(self, what: str, column: str, columns: Any, place: str) -> DataError:
        return DataError(
            f"benchmark {self.name}: {place}: no column {column!r} ({what})", hint=near_columns(column, list(columns))
        )

    async def dataset_size(self) -> int:
        """How many rows the data have; only after `prepare`."""
        return len(self._data())

    def _data(self) -> DataSource:
        if self._source is None:
            raise RuntimeError(f"benchmark {self.name}: prepare() was not called")
        return self._source

    async def seed(self, idx: int) -> SeedResult:
        """The problem of row `idx`; its metadata are the row."""
        row = self._row(idx)
        definition = self.definition
        if definition.seed_fn is not None:
            return self._seeded(row, idx)
        try:
            prompt = self._template.render(row)
        except FieldError as error:
            raise DataError(
                f"benchmark {self.name}: {self._data().place(idx)}: {error.message}", hint=error.hint
            ) from None
        return SeedResult(
            prompt=prompt,
            expected_answer=self._column("target_field", row, idx) if definition.target_field else None,
            metadata=row,
            system=definition.system_prompt,
            problem_id=self._label("id_field", row, idx),
            category=self._label("category_field", row, idx),
            cluster=self._label("cluster_field", row, idx),
        )

    def _seeded(self, row: Row, idx: int) -> SeedResult:
        """What `seed_fn` makes of the row; what it leaves open is filled from the definition."""
        definition = self.definition
        assert definition.seed_fn is not None
        try:
            problem = definition.seed_fn(row, idx)
        except Exception as error:
            raise self._failed("seed_fn", error, idx) from error
        if not isinstance(problem, SeedResult):
            raise DataError(f"benchmark {self.name}: seed_fn returned {type(problem).__name__}, not a SeedResult")
        if problem.expected_answer is None and definition.target_field in row:
            problem.expected_answer = row[definition.target_field]
        problem.metadata = problem.metadata or row
        problem.system = definition.system_prompt if problem.system is None else problem.system
        problem.problem_id = problem.problem_id or self._label("id_field", row, idx)
        problem.category = problem.category or self._label("category_field", row, idx)
        problem.cluster = problem.cluster or self._label("cluster_field", row, idx)
        return problem

    def _row(self, idx: int) -> Row:
        source = self._data()
        if not 0 <= idx < len(source):
            raise DataError(f"benchmark {self.name}: no problem {idx}; problems are 0 to {len(source) - 1}")
        row = source.row(idx)
        definition = self.definition
        content = canonical_json(row) if definition.prepare_row is not None else b""
        for column, other in definition.field_mapping.items():
            if column not in row:
                raise self._no_column("field_mapping", column, row, source.place(idx))
            row[other] = row[column]
        return row if definition.prepare_row is None else self._prepared(row, idx, content)

    def _prepared(self, row: Row, idx: int, content: bytes) -> Row:
        assert self.definition.prepare_row is not None
        digest = sha256(b"%d/%b" % (self.definition.row_seed, content)).digest()
        try:
            prepared = self.definition.prepare_row(row, idx, Random(int.from_bytes(digest[:16], "big")))
        except Exception as error:
            raise self._failed("prepare_row", error, idx) from error
        if not isinstance(prepared, dict):
            raise DataError(f"benchmark {self.name}: prepare_row returned {type(prepared).__name__}, not the row")
        return prepared

    def _failed(self, what: str, error: Exception, idx: int) -> NelError:
        if isinstance(error, NelError):
            return error
        said = f"no column {error}" if isinstance(error, KeyError) else f"{type(error).__name__}: {error}"
        return DataError(f"benchmark {self.name}: {self._data().place(idx)}: {what}: {said}")

    def _column(self, what: str, row: Row, idx: int) -> Any:
        column = getattr(self.definition, what)
        if column not in row:
            raise self._no_column(what, column, row, self._data().place(idx))
        return row[column]

    def _label(self, what: str, row: Row, idx: int) -> str | None:
        if getattr(self.definition, what) is None:
            return None
        value = self._column(what, row, idx)
        return None if value is None else str(value)

    async def verify(
        self,
        response: str,
        expected: Any,
        sandbox: Any = None,
        *,
        metadata: Mapping[str, Any],
        model_response: ModelResponse | None = None,
    ) -> VerifyResult:
        """What the scorer makes of one answer; needs no data, so that stored answers can be graded anywhere."""
        sample = ScorerInput(response, expected, metadata, self.definition.extra, sandbox, model_response)
        return verdict_of(await self._score(sample), self._code.name, self.version)

    def scoring_identity(self) -> dict[str, Any]:
        """The scorer's code or versions, the benchmark's version, and the scorer's config."""
        return {
            "benchmark": self.name,
            "version": self.version,
            "config": dict(self.definition.extra),
            **self._code.identity(),
        }

    def data_identity(self) -> dict[str, Any]:
        """Source, digest, rows, revision and licence of the data; empty before `prepare`."""
        return dict(self._data_identity)

    def kept_files(self) -> dict[str, bytes]:
        """A user's own files: the one with the scorer, and the one with the definition."""
        files = {}
        if not self._code.is_own and self._code.file is not None:
            files[self._code.file.name] = self._code.content
        defined = self.definition.defined_in
        if defined is not None and defined.is_file() and not self._is_own(defined):
            files[defined.name] = defined.read_bytes()
        return files

    @staticmethod
    def _is_own(file: Path) -> bool:
        return file.is_relative_to(Path(__file__).parents[1])

    async def close(self) -> None:
        """Close the data's files."""
        if self._source is not None:
            self._source.close()
            self._source = None
