"""One cell: every problem of a benchmark is seeded, solved, verified and recorded, unless that is known already.

Two append-only logs are the truth. An attempt's line is committed before its score's, a slot is never held for the
acknowledgement, and what is derived (the bundle, statistics, failures) comes from the logs alone.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from nel.core.contract import encode_json
from nel.core.errors import AttemptError, NelError
from nel.core.log import LogWriter, RecordLog
from nel.core.pool import Pool, RetryPolicy
from nel.core.secrets import Redactor
from nel.engine.compact import step_id
from nel.engine.identity import Identities, Occurrences
from nel.engine.ledger import RESULTS, SUPERSEDED, TRAJECTORIES, Known, Ledger, Line
from nel.engine.measure import Gold, measure
from nel.engine.selection import Indexes
from nel.engine.settings import EvaluationSettings
from nel.engine.spill import Spill
from nel.engine.stopping import Stopper, bounds_of
from nel.engine.tally import Tally
from nel.environments.base import EvalEnvironment, SeedResult
from nel.observability.records import AttemptRecord, ModelErrorInfo, Outcome, ScoreRecord, Timing
from nel.solvers.base import Solver, SolveResult

_CRASHES = frozenset({"solver_error", "sandbox_error", "server_lost"})


class CellAbortedError(NelError):
    """The error policy is `abort`, and an attempt ended as an error."""


@dataclass(slots=True)
class _Prepared:
    """A problem in progress."""

    idx: int
    problem: SeedResult
    task: SeedResult
    gold: Gold
    content: bytes
    occurrence: int
    seed_ms: float
    left: int


@dataclass(slots=True, kw_only=True)
class CellRun:
    """One run over one cell; `run()` returns when every attempt of the plan has its lines."""

    env: EvalEnvironment
    solver: Solver
    settings: EvaluationSettings
    indexes: Indexes
    identities: Identities
    directory: Path
    writer: LogWriter
    run_id: str
    redactor: Redactor
    known: Known | None = None
    on_progress: Callable[[Tally], None] | None = None
    tally: Tally = field(default_factory=Tally)
    notes: list[str] = field(default_factory=list)
    """What a person should know of the logs."""
    ledger: Ledger = field(init=False)
    stopper: Stopper | None = field(init=False, default=None)
    """Where a rule may end the cell early."""
    _pool: Pool[int] = field(init=False)
    _attempts: RecordLog = field(init=False)
    _scores: RecordLog = field(init=False)
    _prepared: dict[int, _Prepared] = field(default_factory=dict)
    _seeding: dict[int, asyncio.Future[_Prepared]] = field(default_factory=dict)
    _occurrences: Occurrences = field(init=False)
    _choices: int = field(init=False)
    _groups: int = field(init=False)
    _spill: Spill = field(init=False)
    _reads: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.ledger = Ledger(len(self.indexes) * self.settings.repeats)
        if self.settings.stop_when is not None:
            self.stopper = Stopper(
                self.settings.stop_when,
                len(self.indexes),
                self.settings.repeats,
                bounds_of(self.env.reward_bounds),
                errors_as_zero=self.settings.error_policy == "zero",
            )
        self._choices = min(getattr(self.solver, "choices", 1), self.settings.repeats)
        self._groups = -(-self.settings.repeats // self._choices)
        self._occurrences = Occurrences(len(self.indexes))
        self._spill = Spill(self.directory)
        self._reads = tuple(getattr(self.solver, "reads_metadata", ()))

    @property
    def planned(self) -> int:
        """Attempts of the plan."""
        return len(self.indexes) * self.settings.repeats

    def open_attempts(self) -> int:
        """Attempts that a resume would make or measure again: errors that may get better, what could not be graded, and
        scores that lack one of their metrics."""
        return self.tally.unscored + self.tally.transient + self.tally.incomplete

    async def run(self) -> None:
        """Attempts and measures what is not known; cancelling it keeps all that was recorded."""
        self._attempts = self.writer.open(self.directory / TRAJECTORIES)
        self._scores = self.writer.open(self.directory / RESULTS)
        self.tally.plan(len(self.indexes), self.settings.repeats)
        for log in (self._attempts, self._scores):
            if log.torn_bytes:
                self.notes.append(f"{log.path}: a half-written last line ({log.torn_bytes} bytes) was cut")
        pool = self._pool = Pool(
            self.settings.max_concurrent,
            self._attempt,
            self._give_up,
            RetryPolicy(max_retries=self.settings.max_system_retries, retryable=_is_crash),
        )
        ticker = asyncio.create_task(self._tick(pool))
        try:
            await pool.run(range(len(self.indexes) * self._groups))
        except BaseExceptionGroup as group:
            raise _first(group) from None
        finally:
            ticker.cancel()
            self.tally.retries = pool.retries
            await self.writer.drain()
            self._attempts.close()
            self._scores.close()
            self.known = None

    async def _tick(self, pool: Pool[int]) -> None:
        while self.on_progress is not None:
            self.tally.in_flight = pool.in_flight
            await asyncio.to_thread(self.tally.refresh)
            self.on_progress(self.tally)
            await asyncio.sleep(0.25)

    # One unit of the pool is a problem's repeats that one request may carry: a single one, unless `n` says more.

    async def _attempt(self, unit: int, tries: int) -> None:
        position, group = divmod(unit, self._groups)
        prepared = self._prepared.get(position) or await self._prepare(position)
        first = group * self._choices
        missing = [
            repeat
            for repeat in range(first, min(first + self._choices, self.settings.repeats))
            if self.ledger.score_file[position * self.settings.repeats + repeat] < 0
            and not await self._reuse(prepared, position, repeat)
        ]
        for start, count in _runs(missing):
            await self._solve(prepared, position, start, count, tries)
        self._release(position, prepared)
        await self.writer.ready()

    async def _prepare(self, position: int) -> _Prepared:
        if position in self._seeding:
            return await asyncio.shield(self._seeding[position])
        if self._groups > 1:
            self._seeding[position] = asyncio.get_running_loop().create_future()
        idx = int(self.indexes[position])
        begin = time.perf_counter()
        try:
            problem = await self.env.seed(idx)
            template = self.settings.instruction_template
            if template is not None:
                problem = _instructed(problem, template)
            content = self.identities.content(problem)
            prepared = _Prepared(
                idx=idx,
                problem=problem,
                task=self._withhold(problem),
                gold=Gold(problem.expected_answer, problem.category, problem.cluster),
                content=content,
                occurrence=self._occurrences.number(content),
                seed_ms=round((time.perf_counter() - begin) * 1000, 3),
                left=self._groups,
            )
        except Exception as error:
            prepared = None
            failure = AttemptError(
                f"{self.env.name}: problem {idx} could not be made: {_said(error)}", category="seed_error"
            )
        waiting = self._seeding.pop(position, None)
        if prepared is None:
            if waiting is not None:
                waiting.set_exception(failure)
                waiting.exception()  # nobody may be waiting
            raise failure
        self._prepared[position] = prepared
        if waiting is not None:
            waiting.set_result(prepared)
        return prepared

    def _withhold(self, problem: SeedResult) -> SeedResult:
        """The problem as the solver sees it."""
        metadata = {name: problem.metadata[name] for name in self._reads if name in problem.metadata}
        return SeedResult(
            prompt=problem.prompt,
            metadata=metadata,
            messages=problem.messages,
            system=problem.system,
            images=problem.images,
            tools=problem.tools,
            problem_id=problem.problem_id,
            category=problem.category,
            cluster=problem.cluster,
        )

    def _release(self, position: int, prepared: _Prepared) -> None:
        prepared.left -= 1
        if prepared.left == 0:
            self._prepared.pop(position, None)

    async def _reuse(self, prepared: _Prepared, position: int, repeat: int) -> bool:
        """Whether the attempt is known; what is missing of its score is measured."""
        if self.known is None:
            return False
        key = self.identities.attempt(prepared.content, prepared.occurrence, repeat)
        line = self.known.attempts.find(key)
        if line is None:
            return False
        unit = position * self.settings.repeats + repeat
        score_key = self.identities.score(key, prepared.gold.expected)
        score_line = self.known.scores.find(score_key)
        self.ledger.attempt(unit, line.file, line.offset, line.length)
        if line.label != prepared.idx:
            self.ledger.moved[unit] = True
        if score_line is not None and (score_line.good or not line.good):
            self.ledger.score(unit, score_line.file, score_line.offset, score_line.length)
            if score_line.label != prepared.idx:
                self.ledger.moved[unit] = True
            known = self._stored(score_line, RESULTS, ScoreRecord)
            self.tally.add_known(position, known)
            self._consider(position, prepared.content.hex(), prepared.occurrence, known)
        else:
            attempt = self._spill.restore(self._stored(line, TRAJECTORIES, AttemptRecord))
            attempt.problem_idx = prepared.idx
            earlier = self._stored(score_line, RESULTS, ScoreRecord) if score_line is not None else None
            await self._measure(unit, attempt, prepared.gold, score_key, earlier)
        return True

    def _consider(self, position: int, content: str, occurrence: int, score: ScoreRecord) -> None:
        """Ends the cell where enough is known; attempts in progress are kept."""
        if self.stopper is not None:
            asked = f"{occurrence}:{content}" if occurrence else content
            if self.stopper.take(position, asked, score):
                self._pool.stop()

    def _stored(self, line: Line, log: str, record: Any) -> Any:
        with (self.directory / (SUPERSEDED if line.file else log)).open("rb") as file:
            file.seek(line.offset)
            return record.from_json(file.read(line.length))

    async def _solve(self, prepared: _Prepared, position: int, first: int, count: int, tries: int) -> None:
        task = replace(prepared.task, repeat=first) if first else prepared.task
        begin = time.time()
        clock = time.perf_counter()
        try:
            async with asyncio.timeout(self.settings.timeout) as limit:
                if count == 1:
                    results = [await self.solver.solve(task)]
                else:
                    results = await self.solver.solve_many(task, count)  # type: ignore[attr-defined]
        except TimeoutError:
            if not limit.expired():
                raise
            raise AttemptError(f"no answer within {self.settings.timeout:g} s", category="problem_timeout") from None
        model_ms = (time.perf_counter() - clock) * 1000
        if len(results) != count:
            raise AttemptError(f"asked for {count} answers, got {len(results)}", category="bad_response")
        for at, result in enumerate(results):
            await self._record(prepared, position, first + at, result, begin, model_ms, tries)

    async def _record(
        self,
        prepared: _Prepared,
        position: int,
        repeat: int,
        result: SolveResult,
        begin: float,
        model_ms: float,
        tries: int,
    ) -> None:
        model = result.model_response
        key = self.identities.attempt(prepared.content, prepared.occurrence, repeat)
        attempt = AttemptRecord(
            attempt=key.hex(),
            content=prepared.content.hex(),
            occurrence=prepared.occurrence,
            problem_idx=prepared.idx,
            repeat=repeat,
            step_id=step_id(prepared.idx, repeat),
            problem_id=prepared.problem.problem_id,
            timestamp=begin,
            prompt=result.prompt,
            messages=result.messages,
            response=None if model is not None and model.content == result.response else result.response,
            request=result.request,
            seed_metadata=prepared.problem.metadata,
            timing=_timing(prepared.seed_ms, model_ms),
            model=model,
            retries=tries - 1,
            trajectory=result.trajectory,
            solver_reward=result.reward,
            solver_details=result.scoring_details,
            run_id=self.run_id,
        )
        await self._keep(position * self.settings.repeats + repeat, attempt, prepared.gold, key)

    async def _give_up(self, unit: int, error: Exception, tries: int) -> None:
        if isinstance(error, NelError) and not isinstance(error, AttemptError):
            raise error
        position, group = divmod(unit, self._groups)
        first = group * self._choices
        info = _error_info(error, tries)
        prepared = self._prepared.get(position)
        for repeat in range(first, min(first + self._choices, self.settings.repeats)):
            place = position * self.settings.repeats + repeat
            if self.ledger.score_file[place] < 0:
                await self._keep_error(place, position, repeat, prepared, info, tries)
        if prepared is not None:
            self._release(position, prepared)
        if self.settings.error_policy == "abort":
            raise CellAbortedError(
                f"{self.env.name}: problem {int(self.indexes[position])} ended as {info.category}: {info.message}",
                hint="error_policy is `abort`; `exclude` goes on and leaves errors out of the mean.",
            )
        await self.writer.ready()

    async def _keep_error(
        self,
        place: int,
        position: int,
        repeat: int,
        prepared: _Prepared | None,
        info: ModelErrorInfo,
        tries: int,
    ) -> None:
        idx = int(self.indexes[position])
        content = prepared.content if prepared else b""
        key = self.identities.attempt(content or b"problem %d" % idx, prepared.occurrence if prepared else 0, repeat)
        attempt = AttemptRecord(
            attempt=key.hex(),
            content=content.hex(),
            occurrence=prepared.occurrence if prepared else 0,
            problem_idx=idx,
            repeat=repeat,
            step_id=step_id(idx, repeat),
            problem_id=prepared.problem.problem_id if prepared else None,
            timestamp=time.time(),
            prompt=prepared.problem.prompt if prepared else None,
            seed_metadata=prepared.problem.metadata if prepared else {},
            model_error=info,
            failure_category=info.category,
            retries=tries - 1,
            run_id=self.run_id,
        )
        await self._keep(place, attempt, prepared.gold if prepared else Gold(), key)

    async def _keep(self, unit: int, attempt: AttemptRecord, gold: Gold, key: bytes) -> None:
        line = encode_json(attempt)
        if self.redactor and self.redactor.text(text := line.decode()) != text:
            attempt = AttemptRecord.from_dict(self.redactor.value(attempt.to_dict()))
            line = encode_json(attempt)
        if self._spill.is_long(line):
            line = encode_json(self._spill.store(attempt))
        self.ledger.attempt(unit, 0, self._attempts.append(line), len(line))
        await self._measure(unit, attempt, gold, self.identities.score(key, gold.expected))

    async def _measure(
        self, unit: int, attempt: AttemptRecord, gold: Gold, score_key: bytes, earlier: ScoreRecord | None = None
    ) -> None:
        score = await measure(
            self.env,
            attempt,
            gold,
            score=score_key.hex(),
            basis=self.identities.basis,
            run_id=self.run_id,
            earlier=earlier,
        )
        line = encode_json(self.redactor.value(score))
        self.ledger.score(unit, 0, self._scores.append(line), len(line))
        self.tally.add(unit // self.settings.repeats, attempt, score)
        self._consider(unit // self.settings.repeats, attempt.content, attempt.occurrence, score)
        if score.outcome is Outcome.ERROR and attempt.model_error is None and self.settings.error_policy == "abort":
            raise CellAbortedError(
                f"{self.env.name}: problem {attempt.problem_idx} could not be scored: {score.error}",
                hint="error_policy is `abort`; `exclude` goes on and leaves errors out of the mean.",
            )


def _runs(repeats: list[int]) -> Iterator[tuple[int, int]]:
    """(first, count) of each run of consecutive numbers."""
    start = 0
    for at in range(1, len(repeats) + 1):
        if at == len(repeats) or repeats[at] != repeats[at - 1] + 1:
            yield repeats[start], at - start
            start = at


def _timing(seed_ms: float, model_ms: float) -> Timing:
    model_ms = round(model_ms, 3)
    return Timing(seed_ms=seed_ms, model_ms=model_ms, total_ms=round(seed_ms + model_ms, 3))


def _instructed(problem: SeedResult, template: str) -> SeedResult:
    """The problem with the template around its prompt, in the last user message too where there are messages."""

    def around(text: str) -> str:
        return (
            template.replace("{{", "\0")
            .replace("}}", "\1")
            .replace("{prompt}", text)
            .replace("\0", "{")
            .replace("\1", "}")
        )

    messages = problem.messages
    if messages is not None:
        messages = [dict(message) for message in messages]
        for message in reversed(messages):
            if message.get("role") == "user" and isinstance(message.get("content"), str):
                message["content"] = around(message["content"])
                break
    return replace(problem, prompt=around(problem.prompt), messages=messages)


def _is_crash(error: Exception) -> bool:
    if isinstance(error, AttemptError):
        return error.category in _CRASHES
    return not isinstance(error, NelError)


def _error_info(error: Exception, tries: int) -> ModelErrorInfo:
    if isinstance(error, AttemptError):
        return ModelErrorInfo(
            category=error.category,
            message=error.message,
            status=error.status,
            permanent=error.permanent,
            tries=error.tries,
        )
    return ModelErrorInfo(category="solver_error", message=_said(error), tries=tries)


def _said(error: Exception) -> str:
    return error.message if isinstance(error, NelError) else f"{type(error).__name__}: {error}"


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
