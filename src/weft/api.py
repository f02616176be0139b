"""weft from Python. The command line does nothing that this does not.

run = weft.evaluate("weave", data="DATA", model=my_model, judge="openai-chat/gpt-4o-2024-08-06", history="full")
run.table()                  # the paper's main table as a `Table`
run.report("md")             # all tables, as text
other = weft.judge(run.id, judge="openai-chat/gpt-4.1")      # the same replies, another judge
weft.battle([run, another], judge="judge").table()           # stored runs before a judge, in both orders
weft.write("A guide in 3 steps", model="weaver:planner=...,visualizer=...", out="guide.html")
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

from weft import runs
from weft.arena.fight import ArenaJob, open_arena
from weft.benchmarks.base import resolve
from weft.engine.call import EndpointDown
from weft.errors import BudgetReached, UserError, WeftError
from weft.models.config import usual_home
from weft.report import document, site
from weft.report.over import over_seeds, pooled, tables_over
from weft.report.render import render
from weft.report.select import choices
from weft.runs import load_run, named, tables_of
from weft.session import Interrupted, Job, Session, StoredJob, completed, in_loop
from weft.store.blobs import Blobs
from weft.store.journal import Journal
from weft.writing import WriteJob, open_writing, ordered, written

T = TypeVar("T")


class Run(runs.Run):
    """A run in the journal, finished or not: `turns`, `verdicts`, `table()`, `tables()`, `summary()`, `report()`."""

    def report(self, format: str = "md", **chosen: Any) -> str:
        """All tables as text, md, latex, csv or json, or those that are chosen: see `report`."""
        return report([self], format, **chosen)


def evaluate(benchmark: Any, *, on_start: Callable[[Session], None] | None = None, **options: Any) -> Run:
    """Generate, judge, aggregate. Works with or without a running event loop; options are the fields of `Job`, and those of the benchmark
    itself (`weft run NAME --help` lists them)."""
    return _done(evaluate_async(benchmark, on_start=on_start, **options))


async def evaluate_async(benchmark: Any, *, on_start: Callable[[Session], None] | None = None, **options: Any) -> Run:
    """Raises the reason if the run had to end early; what was done is in the journal."""
    known = resolve(benchmark).Options.__struct_fields__  # its own come first: a benchmark may have a `sample` of its own
    own = {name: options.pop(name) for name in list(options) if name in known or name not in Job.__struct_fields__}
    own = {**options.pop("options", {}), **own}
    return await completed(Session.open(Job(benchmark=benchmark, options=own, **options)), Run, on_start)


def judge(run: "str | runs.Run", *, on_start: Callable[[Session], None] | None = None, **options: Any) -> Run:
    """Judge the stored replies of a run again, by another judge, in other words, more often, or (`against`) beside those of a second run.
    No model is asked. Options are the fields of `StoredJob`."""
    return _done(judge_async(run, on_start=on_start, **options))


async def judge_async(run: "str | runs.Run", *, on_start: Callable[[Session], None] | None = None, **options: Any) -> Run:
    unknown = [name for name in options if name not in StoredJob.__struct_fields__]
    if unknown:
        raise UserError(f"judge() knows no {unknown[0]!r}; it knows {', '.join(StoredJob.__struct_fields__)}")
    against = options.pop("against", "")
    if isinstance(run, runs.Run):
        options.setdefault("benchmark", run.benchmark)
    names = [one.id if isinstance(one, runs.Run) else str(one) for one in (run, against)]
    job = StoredJob(run=names[0], against=names[1], **options)
    return await completed(Session.open_stored(job), Run, on_start)


def battle(some: "Sequence[str | runs.Run]", *, on_start: Callable[[Session], None] | None = None, **options: Any) -> Run:
    """Let stored runs of one benchmark fight before a judge, or (`single=True`) have their answers scored one by one. No model is asked.
    Options are the fields of `ArenaJob`, and those of the arena itself: both_orders, battles, seed, judge_pictures."""
    own = {**options.pop("options", {}), **{name: options.pop(name) for name in list(options) if name not in ArenaJob.__struct_fields__}}
    given = [one.benchmark for one in some if isinstance(one, runs.Run)]
    if given:
        options.setdefault("benchmark", given)
    names = tuple(one.id if isinstance(one, runs.Run) else str(one) for one in some)
    return _done(completed(open_arena(ArenaJob(runs=names, options=own, **options)), Run, on_start))


def write(text: str, *, out: str | Path | Sequence[str | Path] = (), **options: Any) -> Run:
    """One document of words and pictures: its reply is `run.turns[0].reply`. `out` are files to write, .html, .md or .pdf. Options are
    the fields of `WriteJob`: model, pictures, home, budget, ..."""
    outs = [Path(one) for one in ([out] if isinstance(out, (str, Path)) else out)]
    for one in outs:
        document.kind_of(one)  # before anything is paid for
    job = WriteJob(text=text, **options)
    run = _done(completed(open_writing(job), Run))
    if outs:
        home, reply = Path(job.home), written(run)
        if not reply.said:
            raise WeftError(f"nothing was written: {reply.outcome}: {reply.reason}")
        made = document_of(run, home, text)
        for one in outs:
            document.write(made, Blobs(home / "blobs"), one)
    return run


def document_of(run: runs.Run, home: Path, asked: str) -> document.Document:
    """What was written, with the orders for its pictures as their words, and what was asked for."""
    reply = written(run)
    said = " ".join(asked.split())
    made = (f"Written by {run.record.manifest['model']['name']}", f"Asked for: {said if len(said) <= 500 else said[:499] + '…'}")
    orders = ordered(run, home)
    words = orders if len(orders) == len(reply.images) else ()
    return document.Document(document.title_of(reply.said, asked), reply.said, words, made)


def _done(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine, inside a running loop (a notebook) as well as outside of one."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return in_loop(work)
    box: list[T | BaseException] = []

    def in_thread() -> None:
        try:
            box.append(in_loop(work))
        except BaseException as error:
            box.append(error)

    thread = threading.Thread(target=in_thread)
    thread.start()
    thread.join()
    if isinstance(box[0], BaseException):
        raise box[0]
    return box[0]


def validate(benchmark: Any, data: str | Path, judge: Any = "constant/max", **options: Any) -> Run:
    """Feed the ground truth through the whole path: histories, fits, questions, judge, tables. With the default judge, which gives
    full marks, anything but full marks and full coverage is a defect of the data or of weft."""
    return evaluate(benchmark, data=data, model="truth", judge=judge, **options)


def report(some: Sequence[runs.Run], format: str = "md", *, over: str = "", **chosen: Any) -> str:
    """Tables of one or more runs of one benchmark, with what a reader must know. `over="seed"`: runs that differ in their seed
    alone are one row. What is chosen are the fields of `Choices`: columns, rows, tables, and for LaTeX intervals and label."""
    wanted = choices(chosen, format)
    tables = tables_over(_over(some, over)) if over else list(tables_of(named(some)))
    return render(tables, [run.summary() for run in some], format, wanted, some[0].benchmark)


def _over(some: Sequence[runs.Run], over: str) -> dict[str, list[runs.Run]]:
    if over != "seed":
        raise UserError(f"over={over!r}: runs are taken together over their seed alone: over='seed'")
    named(some)  # of one benchmark, none twice
    return over_seeds(some)


def write_report(some: Sequence[runs.Run], out: str | Path, *, home: str | Path = "", single_file: bool = False, over: str = "") -> Path:
    """The report as HTML: a folder with its pictures, or one file. Gives the page to open. `over="seed"`: tables and plots have one row for
    runs that differ in their seed alone; their dialogues stand side by side."""
    home, by_name = home or usual_home(), named(some)
    groups = _over(some, over) if over else {}
    tables = tables_over(groups) if groups else list(tables_of(by_name))
    made = site.contents(by_name, tables, pooled(groups) if groups else None)
    journal = Journal(Path(home) / "journal.sqlite", readonly=True)
    try:
        write = site.write_single if single_file else site.write
        return write(made, journal, Path(home), Path(out))
    finally:
        journal.close()


__all__ = [
    "ArenaJob",
    "BudgetReached",
    "EndpointDown",
    "Interrupted",
    "Job",
    "Run",
    "Session",
    "StoredJob",
    "WriteJob",
    "battle",
    "evaluate",
    "evaluate_async",
    "judge",
    "judge_async",
    "load_run",
    "report",
    "validate",
    "write",
    "write_report",
]
