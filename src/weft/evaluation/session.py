"""One command's worth of work: `open_run` makes a session of a configuration and a source of replies, and `Session.go` does the work.

    async with open_run(RunConfig(benchmark="weave", data="DATA", model="MODEL", judge="JUDGE")) as session:
        await session.go()

A run wires any number of endpoints, each under its role with a limiter, a price and a memo of its own: the model's parts, and the judge.
"""

import asyncio
import contextlib
import math
import threading
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, TypeVar

from msgspec.structs import replace

from weft.benchmarks.prompts import Rubrics
from weft.calls.caller import Halt, Patience
from weft.calls.interrupts import GRACE, Interrupted, first_of, interruptible, on_interrupt
from weft.calls.roles import Limits, ModelsByRole
from weft.errors import UserError, WeftError, trace_of
from weft.evaluation.config import RunConfig
from weft.evaluation.dry_run import Share, foresee
from weft.evaluation.generate import Generator as Generating
from weft.evaluation.generate import Live
from weft.evaluation.judging import Judging, Progress
from weft.evaluation.plan import Plan, told_endpoint
from weft.evaluation.prepare import Prepared, Tell, prepare
from weft.evaluation.reuse_notes import doubts
from weft.evaluation.selection import Stream, drawn, shard_of, sharded, stop_reading
from weft.evaluation.sources import LiveModel, Material, RunSource
from weft.judges.vlm import VlmJudge, most_useless
from weft.models.batch_api import batched
from weft.models.endpoint import Endpoint
from weft.results.index import keep_gist
from weft.results.run import Run
from weft.secrets import scrub
from weft.store.locks import only_one
from weft.types import Dataset, Kind, Place, Sample
from weft.workspace import Workspace, close_all

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
) -> "AsyncGenerator[Session]":
    """A session, with its journal open and the first sample read. `dry`: nobody is asked at all. `tell` is told what is done before there
    is a run."""
    config, workspace = checked(config), workspace or Workspace(config.home)
    shard = shard_of(config.shard) if config.shard else None
    found = (source or LiveModel()).open(config, workspace)
    benchmark, options = found.benchmark, found.options
    rubrics = benchmark.preparation.rubrics(benchmark, config.prompts)
    helpers = benchmark.preparation.auxiliary_models(options)
    limits, composed = _limits(config, rubrics), found.strategy != "none"
    judge = found.judge or _judge(config, workspace, rubrics, found)
    auxiliary = {role: workspace.endpoint(name, data=found.place[1]) for role, name in helpers.items()}
    dataset, chosen = await _read(found)
    model, endpoints = found.model(dataset)
    async with contextlib.AsyncExitStack() as closing:
        closing.push_async_callback(close_all, auxiliary.values())
        opened = workspace.open({**endpoints, "judge": judge}, limits, prices=found.prices, composed=composed)
        roles = await closing.enter_async_context(opened)
        roles.join(auxiliary)
        prepared = await prepare(roles, benchmark, dataset, options, auxiliary, dry=dry, tell=tell)
        if found.digest and prepared.dataset.digest != found.digest:
            raise UserError(f"{found.place[1]} is not the dataset that the run was made with: its digest differs")
        described = (model, told_endpoint(judge))
        plan = Plan(benchmark, prepared.dataset, options, rubrics, *described, found.strategy, config.judge_repeats, chosen)
        counts: tuple[int, int] | None = None
        if shard is not None:
            whole = plan
            ids, turns = await _while_read(plan.dataset, roles.halt, lambda: _ids_and_turns(whole))
            plan, counts = replace(plan, shard=sharded(ids, shard)), (len(ids), turns)
        session = Session(config, plan, roles, found, prepared, counts)
        closing.push_async_callback(session.close)
        if not dry:
            await interruptible(asyncio.ensure_future(session.samples.begin()), roles.halt, "while the dataset was being read")
        yield session


def checked(config: RunConfig) -> RunConfig:
    """The configuration, if its numbers and folders make sense."""
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


def _limits(config: RunConfig, rubrics: Rubrics) -> Limits:
    """With a paper's own prompts nothing is sent but what its released scripts send: no question comes before the run."""
    patience, probe = config.patience or Patience(), config.probe and not rubrics.official
    return Limits(config.budget, config.concurrency, config.judge_concurrency, patience, probe)


def _judge(config: RunConfig, workspace: Workspace, rubrics: Rubrics, found: Material) -> Endpoint:
    """The judge, as it is asked. Raises UserError for one that could not answer."""
    more = {"usual": rubrics.settings, "preset": found.judge_preset}
    judge = workspace.endpoint(config.judge, config.judge_options, found.place[1], **more)
    if lacks := judge.gives.lacks("text"):
        raise UserError(f"{judge.name} cannot judge: {lacks}")
    return batched(judge) if config.judge_batch else judge


async def _read(found: Material) -> tuple[Dataset, dict[str, Any]]:
    """The dataset, and which samples of it: a random sample is none where it is all there is."""
    dataset, chosen = await asyncio.to_thread(found.load), dict(found.chosen)
    if sample := chosen.get("sample"):
        dataset, fewer = await _while_read(dataset, Halt(), lambda: drawn(dataset, sample["count"], sample["seed"]))
        if not fewer and not found.digest:
            del chosen["sample"]
    return dataset, chosen


async def _while_read(dataset: Dataset, halt: Halt, work: Callable[[], T]) -> T:
    """Work that reads the dataset, in a thread. At Ctrl-C the thread reads no further."""
    try:
        return await interruptible(asyncio.ensure_future(asyncio.to_thread(work)), halt, "while the dataset was being read")
    except Interrupted:
        stop_reading(dataset)
        raise


def _ids_and_turns(plan: Plan) -> tuple[list[str], int]:
    """Of the whole run."""
    ids, turns = list[str](), 0
    for sample in plan.dataset.samples:
        ids.append(sample.id)
        turns += plan.turns_of(sample)
    return ids, turns


class Session:
    """`callers` are the endpoints that play in the run, by role; `progress` tells where it stands; `halt` why it ended early, if it did."""

    def __init__(
        self,
        config: RunConfig,
        plan: Plan,
        roles: ModelsByRole,
        found: Material,
        prepared: Prepared,
        counts: tuple[int, int] | None = None,
    ) -> None:
        """`counts` are the samples and turns of the whole run, where only a shard of it is done here."""
        self.config, self.plan, self.blobs, self.journal, self.endpoints = config, plan, roles.blobs, roles.journal, roles.endpoints
        self.halt, self.budget, self.prices, self.callers = roles.halt, roles.budget, roles.prices, roles.callers
        self.noted, self.note = prepared.noted, found.note
        self.run_id = plan.run_id()
        self.names = dict(found.names)  # what the user calls its model and its judge
        self.lacking: Counter[Kind] = Counter()  # turns that the model cannot answer, by kind
        self.samples = Stream(plan.mine())
        self._found, self._prepared, self._counts = found, prepared, counts
        self.foreseen = Progress(plan.expected())  # what a dry run has counted
        self._work: asyncio.Future[None] | None = None
        self.over = threading.Event()  # that it is, however it ended
        self.nothing = False  # whether it ended before anyone was reached, and left nothing
        most = most_useless(official=plan.rubrics.official)
        judge = VlmJudge(self.callers["judge"], roles.blobs, plan.benchmark, raised=self._raised, most_useless=most)
        judging = Judging(plan, self.run_id, judge, roles.blobs, self.journal, self.halt)
        source = found.replies(plan, self.callers)
        if isinstance(source, Live):
            source.raised = self._raised
        self._generating = Generating(plan, self.run_id, source, judging, self.journal, self.halt, roles.width)
        self.progress = judging.progress

    @property
    def reuse_notes(self) -> list[str]:
        """Why it asks for what seems to be answered, or does not."""
        journal = self.journal
        return doubts(journal.runs(), self.run_id, self.plan.manifest(), self._found.code, lambda run: journal.progress(run)[0] > 0)

    @property
    def whole(self) -> bool:
        """Whether all of its samples have been read."""
        return self._generating.whole

    def lacks(self) -> dict[Kind, str]:
        """Why the model cannot answer the kinds of turns that it was not asked."""
        return {kind: self._found.lacks(kind) for kind in self.lacking}

    async def go(self) -> None:
        """Do the work, or what is left of it. Ctrl-C gives calls in flight a second to come back, then ends."""
        try:
            await self._go()
        finally:
            self.over.set()

    async def close(self) -> None:
        stop_reading(self.plan.dataset)
        await self.samples.close()

    async def _go(self) -> None:
        shard, run = self.plan.shard, self.run_id
        with on_interrupt(self._interrupt), only_one(self.journal.path.parent, run, str(shard or "")):
            new = not any(record.id == run for record in self.journal.runs())
            begun = self.journal.begin(run, self.plan.manifest(), [], *self._found.place, self.names, shard)
            if self._prepared.booked:
                self.journal.adopt(self._prepared.booked, run)
            for caller in self.callers.values():
                caller.belongs_to(run, begun)
            self._work = asyncio.ensure_future(self._generating.run(self._counted(), self.callers["judge"].soon))
            try:
                await self._work
            except asyncio.CancelledError:
                if self.halt.reason is None:
                    raise
            except BaseExceptionGroup as group:
                self.journal.end(run, "stopped")
                raise first_of(group) from group
            self._check_answerable(new)
            self.nothing = self.halt.reason is not None and new and not self.journal.has_any(run)
            if self.nothing:  # nobody was ever reached: that is a mistake to tell, and no run
                self.journal.remove(run)
                return
            self._note_what_was_read()
            due = (self.progress.turns, self.progress.verdicts_due)
            self.journal.end(run, "stopped" if self.halt.reason else "finished", due=due, shard=shard)

    async def _counted(self) -> AsyncGenerator[tuple[int, Sample]]:
        async for position, sample in self.samples:
            self.lacking.update(turn.want for turn in sample.turns if self.plan.asks(turn) and self._found.lacks(turn.want))
            yield position, sample

    def _check_answerable(self, new: bool) -> None:
        """A model that can answer nothing at all is a mistake to tell, and no run. Of a shard nobody knows what the others want."""
        alone = new and self.plan.shard is None and self._generating.whole
        if alone and self.progress.turns and self.lacking.total() == self.progress.turns:
            why = self._found.lacks(next(iter(self.lacking)))
            self.journal.remove(self.run_id)
            raise UserError(f"{self.plan.model['name']} can answer none of the {self.progress.turns} turns: {why}")

    def _note_what_was_read(self) -> None:
        """How much there is of the run, where all of it was read, and what is left out of it."""
        if self._generating.whole:
            left_out = [str(problem) for problem in self.plan.dataset.problems if problem.severity == "error"]
            counted = self._counts or (self.progress.samples, self.progress.turns)
            self.journal.set_expected(self.run_id, *counted)
            self.journal.set_left_out(self.run_id, left_out)

    def _raised(self, place: Place, error: Exception) -> None:
        """What a benchmark, or whatever else of the user's, raised about a turn: its traceback is kept."""
        self.journal.put_trace(self.run_id, place.sample, place.turn, scrub(trace_of(error)))

    async def foresee(self) -> dict[str, Share]:
        """What it would cost, by role."""
        counted = self._prepared.counted
        return await foresee(self.plan, self._found.replies, self.callers, self.prices, self.blobs, counted, self.foreseen)

    def _interrupt(self) -> None:
        first = self.halt.reason is None
        self.halt.stop(Interrupted("interrupted"))
        if self._work is not None:
            asyncio.get_running_loop().call_later(GRACE if first else 0, self._work.cancel)


async def completed(opened: AbstractAsyncContextManager[Session], kind: type[R], on_start: Callable[[Session], None] | None = None) -> R:
    """The run of a session, done. Raises the reason if it had to end early; what was done is in the journal."""
    try:
        async with opened as session:
            if on_start:
                on_start(session)
            await session.go()
    except Interrupted:  # while the dataset was being read
        raise KeyboardInterrupt from None
    reason, where = session.halt.reason, (session.journal.path.parent, session.run_id, session.plan.benchmark)
    del session  # with its dataset: what is read now may be as large
    if isinstance(reason, Interrupted):
        raise KeyboardInterrupt
    if reason is not None:
        raise reason
    run = kind.stored(*where)
    keep_gist(where[0], run)
    return run


def in_loop(work: Coroutine[Any, Any, T]) -> T:
    """A coroutine's result, in a loop of its own. If a model of the user's ends that loop, that is an error, and never a success."""
    try:
        return asyncio.run(work)
    except (SystemExit, asyncio.CancelledError) as error:
        raise WeftError(f"a model of yours ended weft's event loop ({type(error).__name__}): run the same command again to go on") from None
    except RuntimeError as error:
        if "Event loop" not in str(error):
            raise
        raise WeftError(f"a model of yours stopped weft's event loop ({error}): run the same command again to go on") from None
