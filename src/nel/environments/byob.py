"""`ByobEnvironment`: runs a `BenchmarkDefinition`. Bring your own benchmark."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nel.core.contract import canonical_json
from nel.core.errors import DataError
from nel.environments.base import EvalEnvironment, SeedResult, VerifyResult
from nel.environments.data import DataSpec, Row, is_on_hub, open_source, replaced
from nel.environments.definition import BenchmarkDefinition
from nel.environments.fewshot import Example, Examples, FewShot
from nel.environments.grading import ScorerCall, ScorerCode
from nel.environments.requirements import check_requirements
from nel.environments.row_check import KeptRows, check_rows
from nel.environments.rows import PreparedRows, SkipRow
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
        self.verify_sandbox = definition.sandbox
        self.aggregates = definition.aggregates
        self.generation = dict(definition.generation)
        self._scorer = definition.scorer or exact_match
        self._score = ScorerCall(self._scorer)
        self._code = ScorerCode(self._scorer)
        self.may_need_judge = self._code.uses("needs_judge")
        self._dataset = dataset
        self._rows: PreparedRows | None = None
        self._kept: KeptRows | None = None
        self._examples: Examples | None = None
        self._data_identity: dict[str, Any] = {}
        self._template: Template = FormatTemplate("")

    async def prepare(self) -> None:
        """Index the data, compile the prompt, and put every row as a problem once.

        `DataError` names the first row that cannot be asked: that lacks a column which prompt, target or mapping need,
        whose values are null or of another kind than in the rows before, whose id an earlier row has. With
        `bad_rows="exclude"` such rows are set aside and counted instead.
        """
        if self._rows is not None:
            return
        definition = self.definition
        spec, base = self._data()
        source = open_source(spec, base=base)
        await asyncio.to_thread(source.prepare)
        if not len(source):
            source.close()
            raise DataError(f"benchmark {self.name}: {source.name} has no rows")
        self._rows = PreparedRows(definition, source)
        try:
            await asyncio.to_thread(self._check, self._rows)
        except BaseException:
            await self.close()
            raise

    def _data(self) -> tuple[DataSpec, Path | None]:
        """The data set, and the folder that a relative path starts from."""
        own = self.definition.dataset
        return (own, self.definition.folder) if self._dataset is None else (replaced(self._dataset, own), None)

    def _check(self, rows: PreparedRows) -> None:
        """All that can be wrong with the data."""
        definition = self.definition
        exclude = definition.bad_rows == "exclude"
        columns: set[str] = set()
        if definition.seed_fn is None:
            self._prepare_template(rows, exclude=exclude)
            columns |= self._template.roots
        if definition.fewshot is not None and definition.num_fewshot:
            self._prepare_examples(definition.fewshot)
        kept = check_rows(rows, self._problem, columns, exclude=exclude)
        if not len(kept):
            raise DataError(
                f"benchmark {self.name}: none of the {len(rows)} rows of {rows.source.name} can be asked; "
                f"{kept.excluded.first}: {next(iter(kept.excluded.reasons))}"
            )
        self._kept = kept
        self._data_identity = rows.source.identity() | kept.excluded.identity()
        if self._examples is not None:
            self._data_identity["fewshot"] = self._examples.identity()

    def _prepare_template(self, rows: PreparedRows, *, exclude: bool) -> None:
        first = self._first_row(rows, exclude=exclude)
        text, suffix, _ = read_template(self.definition.prompt, self.definition.folder)
        self._template = compile_template(text, suffix=suffix, columns=first)
        if self._template.fixed and len(rows) > 1:
            raise DataError(
                f"benchmark {self.name}: the prompt has no field, so all {len(rows)} problems would be the same",
                hint=near_columns("", first),
            )
        if self.definition.prepare_row is None and not exclude:
            # Quick to tell; rows that go through `prepare_row` may get more columns there.
            for columns, number in rows.source.shapes.items():
                self._check_columns(columns, rows, number)

    @staticmethod
    def _first_row(rows: PreparedRows, *, exclude: bool) -> Row:
        """The first row that is not set aside, for the columns that rows have."""
        passed: tuple[type[Exception], ...] = (SkipRow, DataError) if exclude else (SkipRow,)
        for number in range(len(rows)):
            try:
                return rows.row(number)
            except passed:
                continue
        return {}

    def _check_columns(self, columns: tuple[str, ...], rows: PreparedRows, number: int) -> None:
        definition = self.definition
        mapping = definition.field_mapping
        has = {*columns, *mapping.values()}
        wanted = [(column, "field_mapping") for column in mapping]
        named = ("target_field", "category_field", "cluster_field", "id_field")
        wanted += [(column, what) for what in named if (column := getattr(definition, what))]
        for column, what in wanted:
            if column not in (columns if what == "field_mapping" else has):
                raise rows.no_column(what, column, columns, number)
        for root in sorted(self._template.roots):
            if root not in has:
                raise rows.error(
                    number,
                    f"no column for the prompt's field {{{root}}}",
                    f"{near_columns(root, columns)} Text that is no field is written {{{{{root}}}}}.",
                )

    def _prepare_examples(self, spec: FewShot) -> None:
        definition = self.definition
        source = open_source(self._example_data(spec), base=definition.folder)
        source.prepare()
        rows = PreparedRows(definition, source)
        answer = compile_template(spec.answer) if spec.answer else None

        def solved(row: Row, number: int) -> Example:
            prompt = self._rendered(self._template, rows, row, number)
            if answer is None:
                return Example(prompt, _answer_text(rows.column("target_field", row, number)))
            return Example(prompt, self._rendered(answer, rows, row, number))

        self._examples = Examples(spec, definition.num_fewshot, rows, solved)
        self._examples.prepare()

    def _example_data(self, spec: FewShot) -> DataSpec:
        if not isinstance(spec.rows, Mapping):
            return spec.rows
        data, _ = self._data()  # of a hub's data set that replaces the benchmark's own, the same split is taken
        return replaced(spec.rows, data if is_on_hub(data) else self.definition.dataset)

    async def dataset_size(self) -> int:
        """How many problems there are: the rows that are not set aside; only after `prepare`."""
        return len(self._prepared()[1])

    def _prepared(self) -> tuple[PreparedRows, KeptRows]:
        if self._rows is None or self._kept is None:
            raise RuntimeError(f"benchmark {self.name}: prepare() was not called")
        return self._rows, self._kept

    async def seed(self, idx: int) -> SeedResult:
        """Problem `idx`; its metadata are the row."""
        _, kept = self._prepared()
        if not 0 <= idx < len(kept):
            raise DataError(f"benchmark {self.name}: no problem {idx}; problems are 0 to {len(kept) - 1}")
        try:
            return self._problem(kept.number(idx))
        except SkipRow as skipped:
            raise DataError(f"benchmark {self.name}: problem {idx} was not set aside before: {skipped}") from None

    def _problem(self, number: int) -> SeedResult:
        """The problem of row `number` of the data."""
        rows = self._rows
        assert rows is not None
        row = rows.row(number)
        definition = self.definition
        if definition.seed_fn is not None:
            return self._seeded(rows, row, number)
        problem = SeedResult(
            prompt=self._rendered(self._template, rows, row, number),
            expected_answer=rows.column("target_field", row, number) if definition.target_field else None,
            metadata=row,
            system=definition.system_prompt,
            problem_id=rows.label("id_field", row, number),
            category=rows.label("category_field", row, number),
            cluster=rows.label("cluster_field", row, number),
        )
        if definition.target_field and problem.expected_answer is None:
            raise rows.error(
                number,
                f"column {definition.target_field!r} (target_field) is null",
                "A row without an expected answer can be set aside: params.bad_rows=exclude.",
            )
        if self._examples is not None:
            self._examples.before(problem, row, f"benchmark {self.name}: {rows.source.place(number)}")
        return problem

    def _rendered(self, template: Template, rows: PreparedRows, row: Row, number: int) -> str:
        try:
            return template.render(row)
        except FieldError as error:
            raise rows.error(number, error.message, error.hint) from None

    def _seeded(self, rows: PreparedRows, row: Row, number: int) -> SeedResult:
        """What `seed_fn` makes of the row; what it leaves open is filled from the definition."""
        definition = self.definition
        assert definition.seed_fn is not None
        try:
            problem = definition.seed_fn(row, number)
        except Exception as error:
            raise rows.failed("seed_fn", error, number) from error
        if not isinstance(problem, SeedResult):
            raise DataError(f"benchmark {self.name}: seed_fn returned {type(problem).__name__}, not a SeedResult")
        if problem.expected_answer is None and definition.target_field in row:
            problem.expected_answer = row[definition.target_field]
        problem.metadata = problem.metadata or row
        problem.system = definition.system_prompt if problem.system is None else problem.system
        problem.problem_id = problem.problem_id or rows.label("id_field", row, number)
        problem.category = problem.category or rows.label("category_field", row, number)
        problem.cluster = problem.cluster or rows.label("cluster_field", row, number)
        return problem

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
        if self._rows is not None:
            self._rows.source.close()
            self._rows = None
        if self._examples is not None:
            self._examples.close()
            self._examples = None


def _answer_text(expected: Any) -> str:
    """The expected answer as an example shows it: of several the first."""
    if isinstance(expected, list) and expected:
        expected = expected[0]
    return expected if isinstance(expected, str) else canonical_json(expected).decode()
