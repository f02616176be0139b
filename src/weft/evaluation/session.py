"""Open and run an evaluation: `open_run` builds a session from a configuration and a source of replies, and
`Session.run` does the work.

    async with open_run(RunConfig(benchmark="weave", data="DATA", model="MODEL", judge="JUDGE")) as session:
        await session.run()

A run has any number of endpoints, each under its role with its own limiter, price and cache: the model, or the models
that it is composed of, and the judge."""

import asyncio
import contextlib
import math
import threading
import warnings
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, TypeVar

from msgspec.structs import replace

from weft.benchmarks.prompts import Rubrics
from weft.calls.budget import Budget
from weft.calls.caller import Halt, RetryPolicy
from weft.calls.interrupts import INTERRUPT_GRACE_S, Interrupted, await_interruptible, find_root_error, on_interrupt
from weft.calls.roles import Limits, ModelsByRole
from weft.errors import MessagesError, ReuseWarning, UserError, format_trace
from weft.evaluation.config import RunConfig
from weft.evaluation.dry_run import RoleEstimate, estimate_run
from weft.evaluation.generate import LiveReplies, ReplyGenerator
from weft.evaluation.judging import RunProgress, TurnJudge
from weft.evaluation.plan import RunPlan, describe_endpoint
from weft.evaluation.prepare import PreparedDataset, Tell, prepare
from weft.evaluation.reuse import identify_endpoints
from weft.evaluation.reuse_notes import find_reuse_notes
from weft.evaluation.selection import ReadAhead, assign_samples, draw_samples, parse_shard, stop_reading
from weft.evaluation.sources import LiveModel, RunInputs, RunSource
from weft.judges.vlm import VlmJudge, max_unusable_replies
from weft.models.batch_api import build_batch_endpoint
from weft.models.endpoint import Endpoint
from weft.results.index import store_gist
from weft.results.run import Run
from weft.secrets import scrub
from weft.store.locks import lock_run
from weft.store.records import Shard
from weft.types import Dataset, Modality, Sample, TurnRef
from weft.workspace import Workspace, close_endpoints

R = TypeVar("R", bound=Run)
T = TypeVar("T")


@contextlib.asynccontextmanager
async def open_run(
    config: RunConfig,
    source: RunSource | None = None,
    workspace: Workspace | None = None,
    *,
    dry: bool = False,
    tell: Tell | None = None,
    budget: Budget | None = None,
) -> "AsyncGenerator[Session]":
    """Yield a session, with its journal open and the first sample read.

    `dry`: no call is made. `tell` receives messages about what is prepared before the run begins. `budget`: one that it
    shares with the command's other runs, instead of that in `config`.
    """
    config = validate_config(config)
    workspace = workspace or Workspace(config.home)
    shard = parse_shard(config.shard) if config.shard else None
    inputs = (source or LiveModel()).open(config, workspace)
    benchmark = inputs.benchmark
    rubrics = benchmark.preparation.rubrics(benchmark, config.prompts)
    official = rubrics.official_prompts
    auxiliary_names = benchmark.preparation.auxiliary_models(inputs.options)
    limits = _limits(config, official=official)
    judge = inputs.judge or _open_judge(config, workspace, rubrics, inputs)
    auxiliary = {role: workspace.endpoint(name, data=inputs.locations[1]) for role, name in auxiliary_names.items()}
    dataset, selection = await _read(inputs)
    model, endpoints = inputs.model(dataset)
    async with contextlib.AsyncExitStack() as closing:
        closing.push_async_callback(close_endpoints, auxiliary.values())
        composed = inputs.strategy != "none"
        opened = workspace.open(
            {**endpoints, "judge": judge}, limits, prices=inputs.prices, composed=composed, budget=budget
        )
        roles = await closing.enter_async_context(opened)
        roles.add_endpoints(auxiliary)
        prepared = await prepare(roles, benchmark, dataset, inputs.options, auxiliary, dry=dry, tell=tell)
        if inputs.digest and prepared.dataset.digest != inputs.digest:
            raise UserError(f"{inputs.locations[1]} is not the dataset that the run was made with: its digest differs")
        plan = RunPlan(
            benchmark,
            prepared.dataset,
            inputs.options,
            rubrics,
            model,
            describe_endpoint(judge),
            inputs.strategy,
            config.judge_repeats,
            selection,
        )
        counts: tuple[int, int] | None = None
        if shard is not None:
            plan, counts = await _take_shard(plan, shard, roles.halt)
        session = Session(config, plan, roles, inputs, prepared, counts)
        closing.push_async_callback(session.close)
        if not dry:
            reading = asyncio.ensure_future(session.samples.start())
            await await_interruptible(reading, roles.halt, "while the dataset was being read")
        yield session


def validate_config(config: RunConfig) -> RunConfig:
    """Return the configuration. Raises UserError if a number or a folder in it makes no sense."""
    if config.budget is not None and not 0 <= config.budget < math.inf:
        raise UserError(f"budget must be a number of USD from 0 up, not {config.budget}")
    numbers = {"concurrency": config.concurrency, "judge_concurrency": config.judge_concurrency}
    numbers |= {"judge_repeats": config.judge_repeats, "sample": config.sample}
    for name, value in numbers.items():
        if value is not None and value < 1:
            raise UserError(f"{name} must be at least 1, not {value}")
    if config.limit is not None and config.limit < 0:
        raise UserError(f"limit must not be negative, not {config.limit}")
    if Path(config.home).exists() and not Path(config.home).is_dir():
        raise UserError(f"{config.home} is a file; --home must be a folder")
    return replace(config, where=tuple(dict(config.where).items()))


def _limits(config: RunConfig, *, official: bool) -> Limits:
    """Return the run's limits. With official prompts there is no preflight: only what the released scripts send is
    sent."""
    retry_policy = config.retry_policy or RetryPolicy()
    preflight = config.preflight and not official
    return Limits(config.budget, config.concurrency, config.judge_concurrency, retry_policy, preflight)


def _open_judge(config: RunConfig, workspace: Workspace, rubrics: Rubrics, inputs: RunInputs) -> Endpoint:
    """Return the judge's endpoint, as a batch endpoint if so configured. Raises UserError if it has no text output."""
    more = {"usual": rubrics.settings, "preset": inputs.judge_preset}
    judge = workspace.endpoint(config.judge, config.judge_options, inputs.locations[1], **more)
    if config.fresh or config.reuse:
        identify_endpoints(config, {"judge": judge})
    if lacks := judge.gives.unsupported_reason("text"):
        raise UserError(f"{judge.name} cannot judge: {lacks}")
    if config.judge_batch:
        return build_batch_endpoint(judge)
    return judge


async def _read(inputs: RunInputs) -> tuple[Dataset, dict[str, Any]]:
    """Return the dataset and the selection. A random sample as large as the dataset is not recorded."""
    dataset = await asyncio.to_thread(inputs.load)
    selection = dict(inputs.selection)
    if sample := selection.get("sample"):
        dataset, fewer = await _run_reader(
            dataset, Halt(), lambda: draw_samples(dataset, sample["count"], sample["seed"])
        )
        if not fewer and not inputs.digest:
            del selection["sample"]
    return dataset, selection


async def _run_reader(dataset: Dataset, halt: Halt, work: Callable[[], T]) -> T:
    """Run `work`, which reads the dataset, in a thread. At Ctrl-C the thread reads no further."""
    try:
        return await await_interruptible(
            asyncio.ensure_future(asyncio.to_thread(work)), halt, "while the dataset was being read"
        )
    except Interrupted:
        stop_reading(dataset)
        raise


async def _take_shard(plan: RunPlan, shard: Shard, halt: Halt) -> tuple[RunPlan, tuple[int, int]]:
    """Return the plan of one shard, and the samples and turns of the whole run."""
    ids, turns = await _run_reader(plan.dataset, halt, lambda: _ids_and_turns(plan))
    return replace(plan, shard=assign_samples(ids, shard)), (len(ids), turns)


def _ids_and_turns(plan: RunPlan) -> tuple[list[str], int]:
    """Return all sample ids of the run, and its number of turns."""
    ids = list[str]()
    turns = 0
    for sample in plan.dataset.samples:
        ids.append(sample.id)
        turns += plan.count_turns(sample)
    return ids, turns


class Session:
    """An open run: `callers` are its endpoints by role, `progress` counts what is done, and `halt` has the reason if it
    ended early."""

    def __init__(
        self,
        config: RunConfig,
        plan: RunPlan,
        roles: ModelsByRole,
        inputs: RunInputs,
        prepared: PreparedDataset,
        counts: tuple[int, int] | None = None,
    ) -> None:
        """`counts` are the samples and turns of the whole run, where only a shard of it is done here."""
        self.config = config
        self.plan = plan
        self.blobs = roles.blobs
        self.journal = roles.journal
        self.endpoints = roles.endpoints
        self.halt = roles.halt
        self.budget = roles.budget
        self.prices = roles.prices
        self.callers = roles.callers
        self.new_problems = prepared.new_problems
        self.dry_run_note = inputs.dry_run_note
        self.run_id = plan.run_id()
        self.names = dict(inputs.names)  # what the user calls its model and its judge
        if code := self.endpoints["judge"].code_digest:
            self.names["judge_source"] = code
        self.unsupported_turns: Counter[Modality] = Counter()  # turns that the model cannot answer, by kind
        own_samples = plan.own_samples()
        expected_samples = plan.expected_samples()
        self.samples = ReadAhead(own_samples)
        self._inputs = inputs
        self._prepared = prepared
        self._counts = counts
        self._work: asyncio.Future[None] | None = None
        self.done = threading.Event()  # set when the run has ended, for any reason
        self.removed_as_empty = False  # the run ended before any endpoint was reached
        max_unusable = max_unusable_replies(official=plan.rubrics.official_prompts)
        judge = VlmJudge(
            self.callers["judge"],
            roles.blobs,
            plan.benchmark,
            on_reader_error=self._store_trace,
            max_unusable=max_unusable,
        )
        self.dry_run_progress = RunProgress(expected_samples)  # what a dry run has counted
        judging = TurnJudge(plan, self.run_id, judge, roles.blobs, self.journal, self.halt)
        source = inputs.replies(plan, self.callers)
        if isinstance(source, LiveReplies):
            source.on_error = self._store_trace
        self._generating = ReplyGenerator(
            plan, self.run_id, source, judging, self.journal, self.halt, roles.samples_in_flight
        )
        self.progress = judging.progress

    @property
    def reuse_notes(self) -> list[str]:
        """Notes on why cached answers are, or are not, reused, and on what that assumes."""
        journal = self.journal
        return find_reuse_notes(
            journal.runs(),
            self.run_id,
            self.plan.manifest(),
            self._inputs.code,
            lambda run: journal.count_done(run)[0] > 0,
            self.endpoints,
            fresh=self.config.fresh,
            version_note=self._inputs.version_note,
            benchmark_digest=self._inputs.benchmark_code,
            judge_digest=self.endpoints["judge"].code_digest,
        )

    @property
    def all_read(self) -> bool:
        """Whether all of its samples have been read."""
        return self._generating.all_read

    def unsupported_reasons(self) -> dict[Modality, str]:
        """Why the model cannot answer the kinds of turns that it was not asked."""
        return {kind: self._inputs.unsupported_reason(kind) for kind in self.unsupported_turns}

    async def run(self) -> None:
        """Do the work, or what is left of it. Ctrl-C gives calls in flight a second to come back, then ends."""
        try:
            await self._go()
        finally:
            self.done.set()

    async def close(self) -> None:
        stop_reading(self.plan.dataset)
        await self.samples.close()

    async def _go(self) -> None:
        shard = self.plan.shard
        run = self.run_id
        with on_interrupt(self._interrupt), lock_run(self.journal.path.parent, run, str(shard or "")):
            is_new = not any(record.id == run for record in self.journal.runs())
            round = self.journal.begin_run(run, self.plan.manifest(), [], *self._inputs.locations, self.names, shard)
            if self._prepared.booking_name:
                self.journal.adopt_calls(self._prepared.booking_name, run)
            for caller in self.callers.values():
                caller.book_under(run, round)
            await self._generate_and_judge()
            self._check_answerable(is_new)
            self.removed_as_empty = self.halt.reason is not None and is_new and not self.journal.has_records(run)
            if self.removed_as_empty:  # no endpoint was reached: the user's mistake, and no run
                self.journal.remove_run(run)
                return
            if isinstance(self.halt.reason, MessagesError):  # a mistake in the benchmark's code: no table of half a run
                self.journal.end_run(run, "stopped")
                raise self.halt.reason
            self._store_expected_counts()
            expected = (self.progress.turns, self.progress.verdicts_expected)
            self.journal.end_run(run, "stopped" if self.halt.reason else "finished", expected=expected, shard=shard)

    async def _generate_and_judge(self) -> None:
        """Do the work until it is done or halted. Raises the first error that no caller has dealt with."""
        self._work = asyncio.ensure_future(self._generating.run(self._counted(), self.callers["judge"].flush_batches))
        try:
            await self._work
        except asyncio.CancelledError:
            if self.halt.reason is None:
                raise
        except BaseExceptionGroup as group:
            self.journal.end_run(self.run_id, "stopped")
            raise find_root_error(group) from group

    async def _counted(self) -> AsyncGenerator[tuple[int, Sample]]:
        """Yield the samples, and count the turns that the model cannot answer."""
        async for position, sample in self.samples:
            for turn in sample.turns:
                if self.plan.includes(turn) and self._inputs.unsupported_reason(turn.modality):
                    self.unsupported_turns[turn.modality] += 1
            yield position, sample

    def _check_answerable(self, is_new: bool) -> None:
        """Raise UserError, and remove the run, if the model can answer nothing at all.

        A shard is not checked: the others may have turns that it can answer.
        """
        is_whole = self.plan.shard is None and self._generating.all_read
        turns = self.progress.turns
        if is_new and is_whole and turns and self.unsupported_turns.total() == turns:
            reason = self._inputs.unsupported_reason(next(iter(self.unsupported_turns)))
            self.journal.remove_run(self.run_id)
            raise UserError(f"{self.plan.model['name']} can answer none of the {turns} turns: {reason}")

    def _store_expected_counts(self) -> None:
        """Store how many samples and turns the run has, and which are left out, once all of it has been read."""
        if not self._generating.all_read:
            return
        left_out = [str(problem) for problem in self.plan.dataset.problems if problem.severity == "error"]
        counts = self._counts or (self.progress.samples, self.progress.turns)
        self.journal.set_expected(self.run_id, *counts)
        self.journal.set_left_out(self.run_id, left_out)

    def _store_trace(self, turn_ref: TurnRef, error: Exception) -> None:
        """Store the traceback of an error in user code."""
        self.journal.put_trace(self.run_id, turn_ref.sample, turn_ref.turn, scrub(format_trace(error)))

    async def dry_run(self) -> dict[str, RoleEstimate]:
        """Estimate calls, tokens and cost by role."""
        counted = self._prepared.counting_models
        return await estimate_run(
            self.plan, self._inputs.replies, self.callers, self.prices, self.blobs, counted, self.dry_run_progress
        )

    def _interrupt(self) -> None:
        first = self.halt.reason is None
        self.halt.stop(Interrupted("interrupted"))
        if self._work is not None:
            asyncio.get_running_loop().call_later(INTERRUPT_GRACE_S if first else 0, self._work.cancel)


async def complete_run(
    opened: AbstractAsyncContextManager[Session], kind: type[R], on_start: Callable[[Session], None] | None = None
) -> R:
    """Run a session and return the run. Raises the reason if it ended early; what was done is in the journal."""
    try:
        async with opened as session:
            for note in session.reuse_notes:
                warnings.warn(note, ReuseWarning, stacklevel=2)
            if on_start:
                on_start(session)
            await session.run()
    except Interrupted:  # while the dataset was being read
        raise KeyboardInterrupt from None
    reason = session.halt.reason
    home = session.journal.path.parent
    run_id = session.run_id
    benchmark = session.plan.benchmark
    del session  # with its dataset: what is read now may be as large
    if isinstance(reason, Interrupted):
        raise KeyboardInterrupt
    if reason is not None:
        raise reason
    run = kind.from_home(home, run_id, benchmark)
    store_gist(home, run)
    return run
