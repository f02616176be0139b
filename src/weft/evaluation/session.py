"""One command's worth of work: dataset loaded, endpoints found, journal open.

A run wires any number of endpoints, each under its role with a limiter, a price and a memo of its own: the model's parts, and the judge.
"""

import asyncio
import contextlib
import functools
import math
import os
import threading
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

from msgspec import Struct, field, structs

from weft.benchmarks.base import resolve, where
from weft.benchmarks.prompts import Rubrics
from weft.calls.caller import Patience
from weft.calls.interrupts import GRACE, Interrupted, first_of, on_interrupt
from weft.calls.roles import Limits, ModelsByRole
from weft.errors import UserError, WeftError, trace_of
from weft.evaluation.dry_run import Share, SourceOf, foresee
from weft.evaluation.generate import Generator as Generating
from weft.evaluation.generate import Live, Stored
from weft.evaluation.judging import Judging
from weft.evaluation.plan import Plan, loaded, shard_in, shard_of, told_endpoint, told_model
from weft.evaluation.prepare import Prepared, Tell, prepare
from weft.evaluation.reuse_notes import doubts
from weft.judges.vlm import VlmJudge, most_useless
from weft.models.baselines import Truth
from weft.models.batch_api import batched
from weft.models.config import usual_home
from weft.models.endpoint import Endpoint
from weft.models.presets import is_judges, preset
from weft.models.registry import Wired, wired
from weft.results.index import keep_gist
from weft.results.run import Run, load_run
from weft.secrets import scrub
from weft.store.journal import Journal
from weft.store.locks import only_one
from weft.types import Kind, Place
from weft.workspace import Workspace, close_all, reading

COME_BACK = 20.0  # and after trouble of ours
R = TypeVar("R", bound=Run)
T = TypeVar("T")


def usually_probed() -> bool:
    return os.environ.get("WEFT_PROBE", "1") not in ("0", "no", "false")


class Job(Struct, frozen=True, kw_only=True):
    """What to evaluate, and how. Everything has a default but benchmark, data, model and judge. `options` are the benchmark's own."""

    benchmark: Any
    data: str | Path
    model: Any
    judge: Any
    options: Mapping[str, Any] = {}
    home: str | Path = field(default_factory=usual_home)
    prompts: str = "weft"
    limit: int | None = None
    sample: int | None = None  # so many at random, by `seed`: the same on every machine
    seed: int = 0
    shard: str = ""  # `2/8`: the second of eight parts of the run, each of which can be done elsewhere
    where: Mapping[str, str] | tuple[tuple[str, str], ...] = ()
    concurrency: int | None = None
    judge_concurrency: int | None = None
    judge_repeats: int = 1
    judge_batch: bool = False  # questions go as batches, for half the price, within a day
    budget: float | None = None
    strategy: str = "none"
    model_options: Mapping[str, Any] = {}
    judge_options: Mapping[str, Any] = {}
    preset: str | tuple[str, ...] = ()  # published settings: PAPER/MODEL for the model, PAPER/judge for the judge
    patience: Patience = Patience()
    probe: bool = field(default_factory=usually_probed)  # one small question to each endpoint, before the first picture is paid for


class StoredJob(Struct, frozen=True, kw_only=True):
    """Judge a run that is in the journal: nobody is asked but the judge."""

    run: str
    judge: Any
    data: str | Path = ""  # where the dataset is, if not where it was
    benchmark: Any = None  # its code, if it is not found where it was
    home: str | Path = field(default_factory=usual_home)
    prompts: str = "weft"
    concurrency: int | None = None
    judge_repeats: int = 1
    judge_batch: bool = False
    budget: float | None = None
    judge_options: Mapping[str, Any] = {}
    patience: Patience = Patience()
    probe: bool = field(default_factory=usually_probed)


class Session:
    """`callers` are the endpoints that play in the run, by role; `progress` tells where it stands; `halt` why it ended early, if it did."""

    def __init__(
        self,
        job: "Asked",
        plan: Plan,
        roles: ModelsByRole,
        source_of: SourceOf,
        place: tuple[str, str],
        prepared: Prepared | None = None,
    ) -> None:
        """`place` is where benchmark and dataset can be found again."""
        self.job, self.plan, self.blobs, self.journal, self.endpoints = job, plan, roles.blobs, roles.journal, roles.endpoints
        self.halt, self.budget, self.prices, self.callers = roles.halt, roles.budget, roles.prices, roles.callers
        self.noted = prepared.noted if prepared is not None else ()
        self._booked = prepared.booked if prepared is not None else ""
        self.run_id = plan.run_id()
        self.names: dict[str, str] = {}  # what the user calls its model and its judge
        self.doubts: list[str] = []  # why it asks for what seems to be answered, or does not
        self.lacking: dict[Kind, tuple[int, str]] = {}  # kinds of turns that the model cannot answer: how many, and why
        self._source_of, self._place = source_of, place
        self._counted = prepared.counted if prepared is not None else None
        self.foreseen: list[str] = []  # what a dry run must say of how calls are counted
        self._work: asyncio.Future[None] | None = None
        self.over = threading.Event()  # that it is, however it ended
        self.nothing = False  # whether it ended before anyone was reached, and left nothing
        most = most_useless(official=plan.rubrics.official)
        judge = VlmJudge(self.callers["judge"], roles.blobs, plan.benchmark, raised=self._raised, most_useless=most)
        judging = Judging(plan, self.run_id, judge, roles.blobs, self.journal, self.halt)
        source, soon = source_of(self.callers), self.callers["judge"].soon
        if isinstance(source, Live):
            source.raised = self._raised
        self._generating = Generating(plan, self.run_id, source, judging, self.journal, self.halt, roles.width, soon)
        self.progress = judging.progress

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls, job: Job, *, dry: bool = False, tell: Tell | None = None) -> AsyncGenerator["Session"]:
        """`dry`: nobody is asked at all. `tell` is told what is done before there is a run."""
        job = checked(job)
        place, data = (where(job.benchmark), absolute(job.data)), str(job.data)
        workspace, benchmark = Workspace(job.home), resolve(job.benchmark)
        blobs, settings = workspace.blobs, workspace.settings
        presets = chosen_presets(job.preset)
        fixed = presets.get("model", "")
        if fixed and isinstance(job.model, str) and (job.model == "truth" or job.model.startswith("folder/")):
            raise UserError(f"{job.model} is not asked, so the preset {fixed} sets nothing")
        model = None if job.model == "truth" else wired(job.model, blobs, job.model_options, settings, data, benchmark.outputs, fixed)
        options, rubrics = benchmark.choose(job.options), benchmark.rubrics(job.prompts)
        judge = workspace.endpoint(job.judge, job.judge_options, data, usual=rubrics.settings, preset=presets.get("judge", ""))
        judge = can_judge(judge, job.judge_batch)
        kept = {axis: benchmark.group(axis, name) for axis, name in dict(job.where).items()}
        chosen: dict[str, Any] = {"limit": job.limit, "where": kept, **_sampled(job)}
        recorded = {**chosen, **({"presets": presets} if presets else {})}
        dataset = await asyncio.to_thread(loaded, benchmark, Path(job.data), blobs, **chosen)
        chance = (job.strategy, job.judge_repeats, recorded)
        helpers = {role: workspace.endpoint(name, data=data) for role, name in benchmark.helpers(options).items()}
        async with contextlib.AsyncExitStack() as closing:
            endpoints = {**(model.endpoints if model is not None else {}), "judge": judge}
            closing.push_async_callback(close_all, helpers.values())
            roles = await closing.enter_async_context(workspace.open(endpoints, _limits(job, rubrics), composed=job.strategy != "none"))
            roles.join(helpers)
            prepared = await prepare(roles, benchmark, dataset, options, helpers, dry=dry, tell=tell)
            dataset = prepared.dataset
            if model is None:
                model = Wired("truth", {"model": Truth(dataset, blobs)})
                roles.join(model.endpoints)
            if job.sample is not None and len(dataset.samples) < job.sample:  # it is all there is
                recorded = {key: value for key, value in recorded.items() if key != "sample"}
                chance = (job.strategy, job.judge_repeats, recorded)
            told = (told_model(model), told_endpoint(judge))
            plan = Plan(benchmark, dataset, options, rubrics, *told, *chance, shard=shard_in(job.shard, dataset.samples))
            session = cls(job, plan, roles, functools.partial(Live, plan, model, blobs), place, prepared)
            source = next((one.source for one in model.endpoints.values() if one.source), "")
            session.names = {**names_of(settings, model=job.model, judge=job.judge), **({"source": source} if source else {})}
            has = functools.partial(_has_answers, roles.journal)
            session.doubts = doubts(roles.journal.runs(), session.run_id, plan.manifest(), source, has)
            session.lacking = _lacking(plan, model)
            session.foreseen += [model.composition.foreseen] if model.composition is not None and model.composition.foreseen else []
            yield session

    @classmethod
    @contextlib.asynccontextmanager
    async def open_stored(cls, job: StoredJob) -> AsyncGenerator["Session"]:
        """A session that judges stored replies. It is the run that its model would have made under this judge."""
        check_numbers(job)
        workspace = Workspace(job.home)
        first = stored_run(job)
        manifest, benchmark, data = first.record.manifest, first.benchmark, data_of(job, first)
        known = {name: value for name, value in manifest.options.items() if name in benchmark.Options.__struct_fields__}
        options, rubrics = benchmark.choose(known), benchmark.rubrics(job.prompts)
        judge = can_judge(workspace.endpoint(job.judge, job.judge_options, str(data), usual=rubrics.settings), job.judge_batch)
        kept_sample = {"sample": structs.asdict(manifest.sample)} if manifest.sample else {}
        chosen: dict[str, Any] = {"limit": manifest.limit, "where": manifest.where, **kept_sample}
        kept = {role: name for role, name in manifest.presets.items() if role == "model"}
        recorded = {**chosen, **({"presets": kept} if kept else {})}
        dataset = await asyncio.to_thread(loaded, benchmark, data, workspace.blobs, **chosen)
        helpers = {role: workspace.endpoint(name, data=str(data)) for role, name in benchmark.helpers(options).items()}
        told = (manifest.model, told_endpoint(judge))
        strategy, place = manifest.strategy, (first.record.benchmark, str(data))
        async with contextlib.AsyncExitStack() as closing:
            closing.push_async_callback(close_all, helpers.values())
            roles = await closing.enter_async_context(workspace.open({"judge": judge}, _limits(job, rubrics), composed=strategy != "none"))
            roles.join(helpers)
            prepared = await prepare(roles, benchmark, dataset, options, helpers)
            if prepared.dataset.digest != manifest.dataset.digest:
                raise UserError(f"{data} is not the dataset that {first.id} was made with: its digest differs")
            plan = Plan(benchmark, prepared.dataset, options, rubrics, *told, strategy, job.judge_repeats, recorded)
            session = cls(job, plan, roles, lambda _: Stored(first.turns), place, prepared)
            before = {role: name for role, name in first.record.names.items() if role == "model"}
            session.names = {**before, **names_of(workspace.settings, judge=job.judge)}
            yield session

    async def go(self) -> None:
        """Do the work, or what is left of it. Ctrl-C gives calls in flight a second to come back, then ends."""
        try:
            await self._go()
        finally:
            self.over.set()

    async def _go(self) -> None:
        left_out = [str(problem) for problem in self.plan.dataset.problems if problem.severity == "error"]
        shard = self.plan.shard
        with on_interrupt(self._interrupt), only_one(self.journal.path.parent, self.run_id, str(shard or "")):
            new = not any(record.id == self.run_id for record in self.journal.runs())
            begun = self.journal.begin(self.run_id, self.plan.manifest(), left_out, *self._place, self.names, shard)
            self.journal.set_expected(self.run_id, len(self.plan.dataset.samples), self.plan.turns())
            if self._booked:
                self.journal.adopt(self._booked, self.run_id)
            for caller in self.callers.values():
                caller.belongs_to(self.run_id, begun)
            self._work = asyncio.ensure_future(self._generating.run())
            try:
                await self._work
            except asyncio.CancelledError:
                if self.halt.reason is None:
                    raise
            except BaseExceptionGroup as group:
                self.journal.end(self.run_id, "stopped")
                raise first_of(group) from group
            state = "stopped" if self.halt.reason else "finished"
            self.nothing = bool(self.halt.reason) and new and not self.journal.has_any(self.run_id)
            if self.nothing:  # nobody was ever reached: that is a mistake to tell, and no run
                self.journal.remove(self.run_id)
                return
            self.journal.end(self.run_id, state, due=(self.plan.my_turns(), self.progress.verdicts_due), shard=shard)

    def _raised(self, place: Place, error: Exception) -> None:
        """What a benchmark, or whatever else of the user's, raised about a turn: its traceback is kept."""
        self.journal.put_trace(self.run_id, place.sample, place.turn, scrub(trace_of(error)))

    async def foresee(self) -> dict[str, Share]:
        """What it would cost, by role."""
        return await foresee(self.plan, self._source_of, self.callers, self.prices, self.blobs, self._counted)

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


def stored_run(job: StoredJob) -> Run:
    """The run to judge, if all its turns are there."""
    with reading(job.home) as journal:
        run = load_run(journal, job.run, job.benchmark)
    if not run.record.has_all(len(run.turns)):
        raise UserError(f"{run.id} has {run.record.count(len(run.turns), 'of its')}: finish it first, or name another run (`weft runs`)")
    return run


def absolute(path: str | Path) -> str:
    return str(Path(path).absolute())


def data_of(job: StoredJob, run: Run) -> Path:
    """Where the dataset of a stored run is."""
    if not job.data and not run.record.data:
        raise UserError(f"where the dataset of {run.id} was is not in the journal: say where it is with --data")
    data = Path(job.data or run.record.data).absolute()
    if not data.exists():
        raise UserError(f"the dataset of {run.id} is not at {data}: say where it is with --data")
    return data


def chosen_presets(names: str | tuple[str, ...]) -> dict[str, str]:
    """By role."""
    made: dict[str, str] = {}
    for name in (names,) if isinstance(names, str) else names:
        role = "judge" if is_judges(name) else "model"
        if role in made:
            raise UserError(f"two presets for the {role}: {made[role]} and {name}")
        preset(name)
        made[role] = name
    return made


def can_judge(judge: Endpoint, in_batches: bool) -> Endpoint:
    """The judge, as it is asked. Raises UserError for one that could not answer."""
    if lacks := judge.gives.lacks("text"):
        raise UserError(f"{judge.name} cannot judge: {lacks}")
    return batched(judge) if in_batches else judge


def _lacking(plan: Plan, model: Wired) -> dict[Kind, tuple[int, str]]:
    """What a model is not asked for. Raises UserError if it could answer nothing at all: before anything is spent."""
    if model.composition is not None:  # its parts do what they can
        return {}
    gives = model.endpoints["model"].gives
    due: Counter[Kind] = Counter(turn.want for sample in plan.dataset.samples for turn in sample.turns if plan.asks(turn))
    found: dict[Kind, tuple[int, str]] = {kind: (count, lacks) for kind, count in due.items() if (lacks := gives.lacks(kind))}
    if found and len(found) == len(due):
        raise UserError(f"{model.name} can answer none of the {sum(due.values())} turns: {next(iter(found.values()))[1]}")
    return found


class Asked(Protocol):
    """A job, as far as all have it."""

    @property
    def home(self) -> str | Path: ...
    @property
    def budget(self) -> float | None: ...
    @property
    def concurrency(self) -> int | None: ...
    @property
    def judge_repeats(self) -> int: ...


def check_numbers(job: Asked) -> None:
    judges = job.judge_concurrency if isinstance(job, Job) else None
    if job.budget is not None and not 0 <= job.budget < math.inf:
        raise UserError(f"budget must be a number of USD from 0 up, not {job.budget}")
    for name, value in (("concurrency", job.concurrency), ("judge_concurrency", judges), ("judge_repeats", job.judge_repeats)):
        if value is not None and value < 1:
            raise UserError(f"{name} must be at least 1, not {value}")


def _limits(job: Job | StoredJob, rubrics: Rubrics) -> Limits:
    """With a paper's own prompts nothing is sent but what its released scripts send: no question comes before the run."""
    judges = job.judge_concurrency if isinstance(job, Job) else None
    return Limits(job.budget, job.concurrency, judges, job.patience, job.probe and not rubrics.official)


def checked(job: Job) -> Job:
    """The job, if its numbers and folders make sense."""
    check_numbers(job)
    if job.shard:
        shard_of(job.shard)
    if not Path(job.data).exists() and str(job.data).count("/") != 1:  # OWNER/NAME may be on the hub
        raise UserError(f"{job.data}: there is no such folder or file (--data)")
    if job.sample is not None and job.sample < 1:
        raise UserError(f"sample must be at least 1, not {job.sample}")
    if job.limit is not None and job.limit < 0:
        raise UserError(f"limit must not be negative, not {job.limit}")
    if Path(job.home).exists() and not Path(job.home).is_dir():
        raise UserError(f"{job.home} is a file; --home must be a folder")
    where: Any = dict(cast(Any, job.where))
    return structs.replace(job, where=tuple(where.items()))


def _has_answers(journal: Journal, run: str) -> bool:
    return journal.progress(run)[0] > 0


def names_of(settings: Mapping[str, Any], **given: Any) -> dict[str, str]:
    """What weft.toml calls those who play, by role."""
    known: Mapping[str, Any] = settings.get("models", {})
    return {role: one for role, one in given.items() if isinstance(one, str) and one in known}


def _sampled(job: Job) -> dict[str, Any]:
    return {} if job.sample is None else {"sample": {"count": job.sample, "seed": job.seed}}
