"""weft from Python. The command line does nothing that this does not.

run = weft.evaluate("weave", data="DATA", model=my_model, judge="openai-chat/gpt-4o-2024-08-06")
run.table()                  # the paper's main table as a `Table`
run.report("md")             # all tables, as text
"""

import asyncio
import contextlib
import signal
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast, get_args, get_type_hints

import msgspec
from msgspec import Struct, structs

from weft import benchmarks, config, strategies
from weft.benchmarks import Benchmark, Finished
from weft.engine.call import Caller, EndpointDown, Halt, Patience
from weft.engine.limits import Limiter
from weft.engine.prices import Budget, price_of
from weft.engine.run import Plan, Progress, Runner, narrowed
from weft.errors import BudgetReached, UserError, WeftError
from weft.judges.vlm import VlmJudge, plain
from weft.models.baselines import Truth
from weft.models.endpoint import Endpoint
from weft.models.registry import resolve
from weft.report.render import render
from weft.report.summary import Summary, summarise, title_of
from weft.store.blobs import Blobs
from weft.store.journal import Journal, RunRecord, TurnRecord
from weft.store.locks import alive, only_one
from weft.types import Dataset, Table, Verdict, View

HOME = ".weft"
GRACE = 1.0  # seconds that calls in flight have to come back after Ctrl-C


class Job(Struct, frozen=True, kw_only=True):
    """What to evaluate, and how. Everything has a default but benchmark, data, model and judge."""

    benchmark: Any
    data: str | Path
    model: Any
    judge: Any
    home: str | Path = HOME
    view: View | None = None
    prompts: str = "weft"
    limit: int | None = None
    where: Mapping[str, str] | tuple[tuple[str, str], ...] = ()
    concurrency: int | None = None
    judge_concurrency: int | None = None
    budget: float | None = None
    strategy: str = "none"
    model_options: Mapping[str, Any] = {}
    judge_options: Mapping[str, Any] = {}
    patience: Patience = Patience()


class Run:
    """A run in the journal, finished or not."""

    def __init__(self, benchmark: Benchmark, record: RunRecord, journal: Journal) -> None:
        self.id, self.record, self.benchmark = record.id, record, benchmark
        with journal.at_once():
            self.turns: list[TurnRecord] = journal.turns(record.id)
            self.verdicts: list[Verdict] = journal.verdicts(record.id)
            self.totals = journal.totals(record.id)

    @property
    def name(self) -> str:
        return title_of(self.record.manifest, self.record.state)

    @property
    def finished(self) -> Finished:
        data = str(self.record.manifest["dataset"]["name"])
        return Finished(self.name, {turn.sample: turn.groups for turn in self.turns}, self.verdicts, data)

    def summary(self) -> Summary:
        return summarise(self.record, self.turns, self.verdicts, self.totals)

    def tables(self) -> list[Table]:
        return self.benchmark.tables([self.finished])

    def table(self) -> Table:
        """The benchmark's main table."""
        made = self.tables()
        return made[0] if made else Table(f"{self.name} has no table", (), {})

    def report(self, format: str = "md") -> str:
        return report([self], format)


def report(runs: Sequence[Run], format: str = "md") -> str:
    """Tables of one or more runs of one benchmark, with what a reader must know to trust them."""
    return render(tables_of(named(runs)), [run.summary() for run in runs], format)


def named(runs: Sequence[Run]) -> dict[str, Run]:
    """Runs of one benchmark under names that tell them apart."""
    if len({run.benchmark.name for run in runs}) != 1:
        raise UserError("runs of different benchmarks do not share a table; report them one by one")
    if len({run.id for run in runs}) < len(runs):
        raise UserError("a run is given twice")
    names = [run.name for run in runs]
    return {run.name if names.count(run.name) == 1 else f"{run.name} {run.id}": run for run in runs}


def tables_of(runs: Mapping[str, Run]) -> list[Table]:
    benchmark = next(iter(runs.values())).benchmark
    return benchmark.tables([structs.replace(run.finished, name=name) for name, run in runs.items()])


def write_report(runs: Sequence[Run], out: str | Path, *, home: str | Path = HOME, single_file: bool = False) -> Path:
    """The report as HTML: a folder with its pictures, or one file. Gives the page to open."""
    from weft.report import site

    by_name = named(runs)
    made = site.contents(by_name, tables_of(by_name))
    journal = Journal(Path(home) / "journal.sqlite", readonly=True)
    try:
        write = site.write_single if single_file else site.write
        return write(made, journal, Path(home), Path(out))
    finally:
        journal.close()


def evaluate(benchmark: Any, *, on_start: Callable[["Session"], None] | None = None, **options: Any) -> Run:
    """Generate, judge, aggregate. Works with or without a running event loop; options are the fields of `Job`, plus
    `history`, `placement`, `past`, `turns` and `official` for the view."""
    made = evaluate_async(benchmark, on_start=on_start, **options)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(made)
    box: list[Run | BaseException] = []

    def work() -> None:
        try:
            box.append(asyncio.run(made))
        except BaseException as error:
            box.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if isinstance(box[0], BaseException):
        raise box[0]
    return box[0]


async def evaluate_async(benchmark: Any, *, on_start: Callable[["Session"], None] | None = None, **options: Any) -> Run:
    """Raises the reason if the run had to end early; what was done is in the journal."""
    chosen = {name: options.pop(name) for name in View.__struct_fields__ if name in options}
    if chosen and options.get("view") is not None:
        raise UserError(f"give either view= or {', '.join(f'{name}=' for name in chosen)}, not both")
    unknown = [name for name in options if name not in Job.__struct_fields__]
    if unknown:
        raise UserError(f"evaluate() knows no {unknown[0]!r}; it knows {', '.join((*Job.__struct_fields__, *View.__struct_fields__))}")
    options["view"] = options.get("view") or chosen_view(benchmark, chosen)
    async with Session.open(Job(benchmark=benchmark, **options)) as session:
        if on_start:
            on_start(session)
        run = await session.go()
        if isinstance(session.halt.reason, Interrupted):
            raise KeyboardInterrupt
        if session.halt.reason is not None:
            raise session.halt.reason
        return run


def chosen_view(benchmark: Any, given: Mapping[str, Any]) -> View:
    """The benchmark's own history policy with what the user chose; a text-only run gets a true past unless told otherwise."""
    chosen = {name: value for name, value in given.items() if value is not None}
    if chosen.get("turns") == "text":
        chosen.setdefault("past", "truth")
    merged = {**msgspec.to_builtins(benchmarks.resolve(benchmark).default_view()), **chosen}
    try:
        view = msgspec.convert(merged, View)
    except msgspec.ValidationError as error:
        name = str(error).rpartition("$.")[2].rstrip("`")
        choices = get_args(get_type_hints(View)[name]) if name in merged else ()
        raise UserError(f"{name}: there is no {merged.get(name)!r}; there is {', '.join(map(str, choices))}") from None
    if view.official and view.past == "truth" and view.turns != "text":
        raise UserError(
            "official inputs have no true past: the released scripts show the model its own pictures; leave out past or official"
        )
    own_check = getattr(benchmarks.resolve(benchmark), "check_view", None)
    if own_check is not None:
        own_check(view)
    elif view.official and view.history == "dialogue":
        raise UserError("history dialogue is weft's own; with official choose none, partial or full")
    return view


class Session:
    """One command's worth of work: dataset loaded, endpoints found, journal open."""

    def __init__(self, job: Job, plan: Plan, journal: Journal, blobs: Blobs, own_prices: Mapping[str, Any]) -> None:
        self.job, self.plan, self.journal, self.blobs = job, plan, journal, blobs
        self.run_id = plan.run_id()
        self.budget = Budget(job.budget)
        self.halt = Halt()
        self.model_price, self.judge_price = (price_of(endpoint, own_prices) for endpoint in (plan.model, plan.judge))
        if job.budget is not None:
            for endpoint, price in ((plan.model, self.model_price), (plan.judge, self.judge_price)):
                if price is None:
                    model = endpoint.identity["model"]
                    raise UserError(f'--budget needs a price for {model}; add [prices."{model}"] with `in` and `out` to weft.toml')
        self.round = 1
        self.model = self._caller(plan.model, "model", self.model_price, job.concurrency, kept=job.strategy != "none")
        self.judge = self._caller(plan.judge, "judge", self.judge_price, job.judge_concurrency or job.concurrency)
        width = max(16, 2 * self.model.limiter.maximum)
        reader = getattr(plan.benchmark, "read", plain)
        model = strategies.apply(job.strategy, self.model, blobs, getattr(plan.model, "words", None))
        self._runner = Runner(plan, self.run_id, model, VlmJudge(self.judge, blobs, reader), blobs, journal, self.halt, width)

    @property
    def progress(self) -> Progress:
        return self._runner.progress

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls, job: Job) -> AsyncGenerator["Session"]:
        job = checked(job)
        home = Path(job.home)
        blobs = Blobs(home / "blobs")
        settings = config.read()
        benchmark: Benchmark = benchmarks.resolve(job.benchmark)
        rubrics = benchmark.rubrics(job.prompts)
        judge = resolve(job.judge, blobs, job.judge_options, settings, str(job.data))
        model = None if job.model == "truth" else model_of(job, benchmark, blobs, settings)
        dataset = narrowed(await asyncio.to_thread(benchmark.load, Path(job.data), blobs), job.limit, dict(job.where))
        check(dataset, job)
        chosen: dict[str, Any] = {"limit": job.limit, "where": dict(job.where)}
        view = job.view or benchmark.default_view()
        plan = Plan(benchmark, dataset, view, rubrics, model or Truth(dataset, blobs), judge, job.strategy, chosen)
        journal = Journal(home / "journal.sqlite")
        try:
            with only_one(home, plan.run_id()):
                yield cls(job, plan, journal, blobs, settings.get("prices", {}))
        finally:
            for endpoint in (plan.model, plan.judge):
                await endpoint.close()
            journal.close()

    async def go(self) -> Run:
        """Do the work, or what is left of it. Ctrl-C gives calls in flight a second to come back, then ends."""
        left_out = [str(problem) for problem in self.plan.dataset.problems if problem.severity == "error"]
        self.round = self.journal.begin(self.run_id, self.plan.manifest(), left_out, benchmarks.where(self.job.benchmark))
        self.model.round = self.judge.round = self.round
        work = asyncio.ensure_future(self._runner.run())
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
        return Run(self.plan.benchmark, one_run(self.journal, self.run_id), self.journal)

    def _interrupt(self, work: "asyncio.Future[None]") -> None:
        if self.halt.reason is None:
            self.halt.stop(Interrupted("interrupted"))
            asyncio.get_running_loop().call_later(GRACE, work.cancel)
        else:
            work.cancel()

    def _caller(self, endpoint: Endpoint, role: str, price: Any, concurrency: int | None, *, kept: bool = False) -> Caller:
        """`kept`: calls are journalled even where they cost nothing, since a strategy's plans and candidates are worth a look."""
        most = min(endpoint.concurrency or concurrency or 64, concurrency or 64)
        limiter = Limiter(start=most if concurrency else min(8, most), maximum=most)
        return Caller(
            endpoint,
            role=role,
            journal=self.journal,
            limiter=limiter,
            budget=self.budget,
            price=price,
            patience=self.job.patience,
            halt=self.halt,
            blobs=self.blobs,
            run=self.run_id,
            kept=kept,
        )


class Interrupted(WeftError):
    """Ctrl-C or SIGTERM."""


def model_of(job: Job, benchmark: Benchmark, blobs: Blobs, settings: Mapping[str, Any]) -> Endpoint:
    """The model; a folder of outputs is read in the benchmark's own layout, where it has one that plain names do not tell."""
    outputs = getattr(benchmark, "outputs", None)
    if isinstance(job.model, str) and job.model.startswith("folder/") and outputs is not None:
        folder = Path(job.model.removeprefix("folder/"))
        if not folder.is_dir():
            raise UserError(f"{job.model}: there is no folder {folder}")
        return outputs(folder, blobs)
    return resolve(job.model, blobs, job.model_options, settings, str(job.data))


def checked(job: Job) -> Job:
    """The job, if its numbers and folders make sense."""
    for name in ("concurrency", "judge_concurrency"):
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


def one_run(journal: Journal, name: str) -> RunRecord:
    """A run by its id, the beginning of it, or `last`."""
    records = journal.runs()
    if not records:
        raise UserError(f"there is no run in {journal.path} yet")
    found = records[-1:] if name == "last" else [record for record in records if record.id == name]
    found = found or [record for record in records if record.id.startswith(name)]
    if len(found) != 1:
        known = ", ".join(record.id for record in (found or records)[-8:])
        more = f" and {len(found or records) - 8} more (`weft runs` lists all)" if len(found or records) > 8 else ""
        raise UserError(f"{'no' if not found else 'more than one'} run is called {name!r}; there is {known}{more}")
    return found[0]


def load_run(journal: Journal, name: str, benchmark: Any = None) -> Run:
    """A run of the journal; its benchmark is found by name unless given."""
    record = alive(one_run(journal, name), journal.path.parent)
    return Run(benchmarks.resolve(benchmark or record.benchmark), record, journal)


def validate(benchmark: Any, data: str | Path, judge: Any = "constant/max", **options: Any) -> Run:
    """Feed the ground truth through the whole path: histories, fits, questions, judge, tables. With the default judge, which gives
    full marks, anything but full marks and full coverage is a defect of the data or of weft."""
    return evaluate(benchmark, data=data, model="truth", judge=judge, **options)


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


__all__ = [
    "BudgetReached",
    "EndpointDown",
    "Interrupted",
    "Job",
    "Run",
    "Session",
    "evaluate",
    "evaluate_async",
    "load_run",
    "report",
    "validate",
    "write_report",
]
