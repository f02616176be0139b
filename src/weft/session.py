"""One command's worth of work: dataset loaded, endpoints found, journal open.

A run wires any number of endpoints, each under its role with a limiter, a price and a memo of its own: the model's parts, and the judge.
"""

import asyncio
import contextlib
import signal
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

from msgspec import Struct, structs

from weft import benchmarks, config
from weft.benchmarks.base import Benchmark
from weft.engine.call import Caller, Halt, Patience
from weft.engine.foresee import Others, Share, SourceOf, foresee
from weft.engine.generate import Generator as Generating
from weft.engine.generate import Live, Stored, dialogues_of
from weft.engine.judging import Judging, Progress
from weft.engine.limits import Limiter
from weft.engine.plan import Plan, narrowed
from weft.engine.prices import Budget, Price, price_of
from weft.errors import UserError, WeftError
from weft.judges.vlm import VlmJudge
from weft.models.baselines import Truth
from weft.models.compose import Wired, alone, manifest_of, wired
from weft.models.endpoint import Endpoint
from weft.models.registry import resolve
from weft.runs import Run, load_run, one_run, options_of
from weft.store.blobs import Blobs
from weft.store.journal import Journal
from weft.store.locks import only_one
from weft.types import Dataset

HOME = ".weft"
GRACE = 1.0  # seconds that calls in flight have to come back after Ctrl-C
R = TypeVar("R", bound=Run)


class Job(Struct, frozen=True, kw_only=True):
    """What to evaluate, and how. Everything has a default but benchmark, data, model and judge. `options` are the benchmark's own."""

    benchmark: Any
    data: str | Path
    model: Any
    judge: Any
    options: Mapping[str, Any] = {}
    home: str | Path = HOME
    prompts: str = "weft"
    limit: int | None = None
    where: Mapping[str, str] | tuple[tuple[str, str], ...] = ()
    concurrency: int | None = None
    judge_concurrency: int | None = None
    judge_repeats: int = 1
    budget: float | None = None
    strategy: str = "none"
    model_options: Mapping[str, Any] = {}
    judge_options: Mapping[str, Any] = {}
    patience: Patience = Patience()


class StoredJob(Struct, frozen=True, kw_only=True):
    """Judge a run that is in the journal: nobody is asked but the judge. `against` is a second run, for questions about two."""

    run: str
    judge: Any
    against: str = ""
    data: str | Path = ""  # where the dataset is, if not where it was
    benchmark: Any = None  # its code, if it is not found where it was
    home: str | Path = HOME
    prompts: str = "weft"
    concurrency: int | None = None
    judge_repeats: int = 1
    budget: float | None = None
    judge_options: Mapping[str, Any] = {}
    patience: Patience = Patience()


class Interrupted(WeftError):
    """Ctrl-C or SIGTERM."""


class Session:
    def __init__(
        self, job: Job | StoredJob, plan: Plan, journal: Journal, blobs: Blobs, own_prices: Mapping[str, Any], model: Wired, judge: Endpoint
    ) -> None:
        self.job, self.plan, self.journal, self.blobs, self.wired = job, plan, journal, blobs, model
        self.run_id = plan.run_id()
        self.budget, self.halt = Budget(job.budget), Halt()
        self.progress = Progress(plan.turns(), len(plan.dataset.samples))
        self.prices: dict[str, Price | None] = {}
        self.callers: dict[str, Caller] = {}
        alone_kept = isinstance(job, Job) and (job.strategy != "none" or len(model.endpoints) > 1)
        for role, endpoint in {**model.endpoints, "judge": judge}.items():
            self.prices[role] = price_of(endpoint, own_prices)
            if job.budget is not None and self.prices[role] is None:
                name = endpoint.identity["model"]
                raise UserError(f'--budget needs a price for {name}; add [prices."{name}"] with `in` and `out` to weft.toml')
            self.callers[role] = self._caller(endpoint, role, kept=alone_kept and role != "judge")

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls, job: Job) -> AsyncGenerator["Session"]:
        job = checked(job)
        blobs, settings = Blobs(Path(job.home) / "blobs"), config.read_config()
        benchmark = benchmarks.resolve(job.benchmark)
        options = benchmark.choose(job.options)
        rubrics = benchmark.rubrics(job.prompts)
        judge = resolve(job.judge, blobs, job.judge_options, settings, str(job.data))
        model = None if job.model == "truth" else model_of(job, benchmark, blobs, settings)
        where = dict(job.where)
        dataset = narrowed(await asyncio.to_thread(benchmark.load, Path(job.data), blobs), job.limit, where)
        check(dataset, job)
        model = model or alone(Truth(dataset, blobs))
        chosen: dict[str, Any] = {"limit": job.limit, "where": where}
        plan = Plan(benchmark, dataset, options, rubrics, model.told, manifest_of(judge), job.strategy, job.judge_repeats, chosen)
        async with cls._opened(job, plan, blobs, settings, model, judge) as session:
            session.source_of = lambda parts: Live(plan, model.model(parts, plan.strategy, blobs), blobs, sees=model.sees)
            session.where = (benchmarks.where(job.benchmark), absolute(job.data))
            yield session

    @classmethod
    @contextlib.asynccontextmanager
    async def open_stored(cls, job: StoredJob) -> AsyncGenerator["Session"]:
        """A session that judges stored replies. It is the run that its model would have made under this judge."""
        home = Path(job.home)
        blobs, settings = Blobs(home / "blobs"), config.read_config()
        journal = Journal(home / "journal.sqlite", readonly=True)
        try:
            first = load_run(journal, job.run, job.benchmark)
            other = load_run(journal, job.against, job.benchmark) if job.against else None
        finally:
            journal.close()
        manifest, benchmark = first.record.manifest, first.benchmark
        data = data_of(job, first)
        known = {name: value for name, value in options_of(manifest).items() if name in benchmark.Options.__struct_fields__}
        judge = resolve(job.judge, blobs, job.judge_options, settings, str(data))
        chosen = {"limit": manifest["limit"], "where": dict(manifest["where"])}
        dataset = narrowed(await asyncio.to_thread(benchmark.load, data, blobs), manifest["limit"], dict(manifest["where"]))
        if dataset.digest != manifest["dataset"]["digest"]:
            raise UserError(f"{data} is not the dataset that {first.id} was made with: its digest differs")
        if other is not None and (other.benchmark.name != benchmark.name or not benchmark.battle_metrics):
            raise UserError(f"{first.id} and {other.id} cannot be set against each other: {benchmark.name} has no battles between them")
        rubrics = benchmark.rubrics(job.prompts)
        options, told, against = benchmark.choose(known), manifest_of(judge), other.id if other else ""
        plan = Plan(
            benchmark, dataset, options, rubrics, manifest["model"], told, manifest["strategy"], job.judge_repeats, chosen, against
        )  # fmt: skip
        async with cls._opened(job, plan, blobs, settings, Wired(manifest["model"], {}, _nobody), judge) as session:
            session.source_of = lambda parts: Stored(first.turns)
            session.others = dialogues_of(other.turns) if other else None
            session.where = (first.record.benchmark, absolute(data))
            yield session

    @classmethod
    @contextlib.asynccontextmanager
    async def _opened(
        cls, job: Job | StoredJob, plan: Plan, blobs: Blobs, settings: Mapping[str, Any], model: Wired, judge: Endpoint
    ) -> AsyncGenerator["Session"]:
        home = Path(job.home)
        journal = Journal(home / "journal.sqlite")
        try:
            with only_one(home, plan.run_id()):
                yield cls(job, plan, journal, blobs, settings.get("prices", {}), model, judge)
        finally:
            for endpoint in (*model.endpoints.values(), judge):
                await endpoint.close()
            journal.close()

    source_of: SourceOf
    others: Others = None
    where: tuple[str, str] = ("", "")

    async def go(self, kind: type[R] = Run) -> R:
        """Do the work, or what is left of it. Ctrl-C gives calls in flight a second to come back, then ends."""
        left_out = [str(problem) for problem in self.plan.dataset.problems if problem.severity == "error"]
        begun = self.journal.begin(self.run_id, self.plan.manifest(), left_out, *self.where)
        for caller in self.callers.values():
            caller.round = begun
        work = asyncio.ensure_future(self._generating().run())
        with _on_interrupt(lambda: self._interrupt(work)):
            try:
                await work
            except asyncio.CancelledError:
                if self.halt.reason is None:
                    raise
            except BaseExceptionGroup as group:
                self.journal.end(self.run_id, "stopped")
                raise _first(group) from group
        self.journal.end(self.run_id, "stopped" if self.halt.reason else "finished")
        return kind(self.plan.benchmark, one_run(self.journal, self.run_id), self.journal)

    async def foresee(self) -> dict[str, Share]:
        """What it would cost, by role."""
        return await foresee(self.plan, self.source_of, self.others, self.callers, self.prices, self.blobs)

    def _generating(self) -> Generating:
        plan, journal, blobs = self.plan, self.journal, self.blobs
        judge = VlmJudge(self.callers["judge"], blobs, plan.benchmark.read)
        judging = Judging(plan, self.run_id, judge, blobs, journal, self.halt, self.progress, self.others)
        width = max([16, *(2 * self.callers[role].limiter.maximum for role in self.wired.endpoints)])
        return Generating(plan, self.run_id, self.source_of(self.callers), judging, journal, self.halt, width)

    def _interrupt(self, work: "asyncio.Future[None]") -> None:
        if self.halt.reason is None:
            self.halt.stop(Interrupted("interrupted"))
            asyncio.get_running_loop().call_later(GRACE, work.cancel)
        else:
            work.cancel()

    def _caller(self, endpoint: Endpoint, role: str, *, kept: bool) -> Caller:
        """`kept`: calls are journalled even where they cost nothing, since what stands behind a composed reply is worth a look."""
        concurrency = self.job.concurrency
        if role == "judge" and isinstance(self.job, Job):
            concurrency = self.job.judge_concurrency or concurrency
        most = min(endpoint.concurrency or concurrency or 64, concurrency or 64)
        return Caller(
            endpoint,
            role=role,
            journal=self.journal,
            limiter=Limiter(start=most if concurrency else min(8, most), maximum=most),
            budget=self.budget,
            price=self.prices[role],
            patience=self.job.patience,
            halt=self.halt,
            blobs=self.blobs,
            run=self.run_id,
            kept=kept,
        )


def absolute(path: str | Path) -> str:
    return str(Path(path).absolute())


def data_of(job: StoredJob, run: Run) -> Path:
    """Where the dataset of a stored run is."""
    data = Path(job.data or run.record.data or "?")
    if not data.exists():
        raise UserError(f"the dataset of {run.id} is not at {str(data)!r}: say where it is with --data")
    return data


def _nobody(_: Mapping[str, Any]) -> Any:
    raise WeftError("a stored run asks no model")


def model_of(job: Job, benchmark: Benchmark, blobs: Blobs, settings: Mapping[str, Any]) -> Wired:
    """The model; a folder of outputs is read in the benchmark's own layout."""
    if isinstance(job.model, str) and job.model.startswith("folder/"):
        return alone(benchmark.outputs(Path(job.model.removeprefix("folder/")), blobs))
    return wired(job.model, blobs, job.model_options, settings, str(job.data))


def checked(job: Job) -> Job:
    """The job, if its numbers and folders make sense."""
    for name in ("concurrency", "judge_concurrency", "judge_repeats"):
        if (value := getattr(job, name)) is not None and value < 1:
            raise UserError(f"{name} must be at least 1, not {value}")
    if job.limit is not None and job.limit < 0:
        raise UserError(f"limit must not be negative, not {job.limit}")
    if Path(job.home).exists() and not Path(job.home).is_dir():
        raise UserError(f"{job.home} is a file; --home must be a folder")
    where: Any = dict(cast(Any, job.where))
    return structs.replace(job, where=tuple(where.items()))


def check(dataset: Dataset, job: Job) -> None:
    ids = [sample.id for sample in dataset.samples]
    if len(set(ids)) < len(ids):
        raise UserError(f"{job.data}: two samples are called {next(one for one in ids if ids.count(one) > 1)!r}; every id must be its own")
    if dataset.samples:
        return
    errors = [problem for problem in dataset.problems if problem.severity == "error"]
    if job.where or job.limit == 0:
        raise UserError(f"{job.data}: no sample is left by --where and --limit ({dataset.records} records)")
    raise UserError(
        f"{job.data}: none of its {dataset.records} records can be used" + (f"; the first problem: {errors[0]}" if errors else "")
    )


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The error that a person can act on, out of those that came together."""
    leaves = [_first(cast(BaseExceptionGroup[BaseException], e)) if isinstance(e, BaseExceptionGroup) else e for e in group.exceptions]
    return next((error for error in leaves if isinstance(error, WeftError)), leaves[0])


@contextlib.contextmanager
def _on_interrupt(act: Callable[[], None]) -> Generator[None]:
    loop = asyncio.get_running_loop()
    signals = (signal.SIGINT, signal.SIGTERM) if threading.current_thread() is threading.main_thread() else ()
    for number in signals:
        loop.add_signal_handler(number, act)
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
