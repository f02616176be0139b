"""weft from Python. The command line does nothing that this does not.

run = weft.evaluate("weave", data="DATA", model=my_model, judge="openai-chat/gpt-4o-2024-08-06", history="full")
run.table()                  # the paper's main table as a `Table`
run.report("md")             # all tables, as text
run.frame()                  # every verdict, as a DataFrame
weft.runs(); weft.load("last")
other = weft.judge(run.id, judge="openai-chat/gpt-4.1")      # the same replies, another judge
run.agree(); run.agree("ratings.csv"); run.agree(other)        # its judge beside people, or another judge
run.corrected()              # the main number, corrected by people who rated some of it
weft.battle([run, another], judge="judge").table()           # stored runs before a judge, in both orders
weft.write("A guide in 3 steps", model="weaver:planner=...,visualizer=...", out="guide.html")
"""

import asyncio
import contextlib
import html
import inspect
import sys
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast, get_type_hints

from msgspec import NODEFAULT, structs

from weft.arena.stored_answers import StoredAnswers
from weft.benchmarks.base import load_benchmark
from weft.calls.caller import EndpointDown
from weft.calls.interrupts import interrupt_loop
from weft.errors import BudgetReached, UserError, WeftError
from weft.evaluation.config import RunConfig, fields_for
from weft.evaluation.progress import find_notebook_display, show_in_notebook
from weft.evaluation.session import Interrupted, Session, complete_run, open_run, run_in_loop
from weft.evaluation.sources import StoredRun
from weft.evaluation.writing import WritingRequest, find_document, find_image_prompts
from weft.judge_eval.agreement import corrected as correcting
from weft.judge_eval.agreement import study
from weft.judge_eval.agreement.by_card import bias_of
from weft.models.config import default_home
from weft.report import document, frame, site
from weft.report.render import render
from weft.report.seeds import build_seed_tables, group_by_seed, pool_runs
from weft.report.select import parse_choices
from weft.results import index as catalogue
from weft.results import run as stored
from weft.results.run import build_tables, find_run, load_run, name_runs, resolve_benchmark
from weft.store.locks import with_actual_state
from weft.types import Table
from weft.workspace import open_blobs, open_journal

T = TypeVar("T")
PATIENT = 4  # interrupts until nobody waits any longer for the work to end


class Run(stored.Run):
    """A run in the journal, finished or not: `turns`, `verdicts`, `table()`, `tables()`, `frame()`, `summary()`,
    `report()`. In a notebook it shows as its main table."""

    def report(self, format: str = "md", **chosen: Any) -> str:
        """All tables as text, md, latex, csv or json, or those that are chosen: see `report`."""
        return report([self], format, **chosen)

    def frame(self) -> Any:
        """Every verdict as a row of a DataFrame, of pandas or of polars, whichever is there: run, sample, turn (from
        1), metric, value (a share of full marks), points (on the paper's scale), reason, outcome, groups, cost."""
        return frame.build_frame([self])

    def agree(
        self, other: "str | Path | stored.Run | None" = None, *, by: str = "", home: str | Path = ""
    ) -> study.AgreementStudy:
        """How far its judge agrees with people, with a file of ratings, or with the judge of another run: see
        `agree`."""
        return agree(self, other, by=by, home=home)

    def corrected_score(self, *, home: str | Path = "") -> correcting.Corrected:
        """Its main number, corrected by people who rated some of it: `.people`, `.plain`, `.table()`."""
        return correct_scores([self], home=home)[0]

    def __repr__(self) -> str:
        gist = self.gist
        return f"<Run {self.id}: {self.name}, {gist.headline_text}, {catalogue.describe_state(self.record, gist)}>"

    def _repr_html_(self) -> str:
        gist = self.gist
        told = f"{self.id}: {catalogue.describe_state(self.record, gist)}, {gist.scored} of {gist.expected} verdicts scored"
        table = self.table()
        ours = structs.replace(table, rows=table.run_rows)
        return f"<div>{html.escape(told)}</div>{ours._repr_html_()}"  # pyright: ignore[reportPrivateUsage]


class Runs(list[Run]):
    """Runs of a journal, the latest last. In a notebook they show as a list with their main numbers."""

    def frame(self) -> Any:
        """The verdicts of all of them."""
        return frame.build_frame(self)

    def _repr_html_(self) -> str:
        rows: list[str] = []
        for run in self:
            gist = run.gist
            cells = (
                run.id,
                run.benchmark.name,
                run.name,
                gist.headline_text,
                catalogue.describe_state(run.record, gist),
            )
            rows.append(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in cells)}</tr>")
        head = "".join(f"<th>{one}</th>" for one in ("run", "benchmark", "title", "main number", "state"))
        return f"<table><tr>{head}</tr>{''.join(rows)}</table>"


def load(run: str, *, home: str | Path = "", benchmark: Any = None) -> Run:
    """A run of the journal: by its tag, its id, the beginning of it, or `last`. `benchmark` is its class, where that is
    your own."""
    journal = open_journal(Path(home or default_home()))
    try:
        record = with_actual_state(find_run(journal, run), journal.path.parent)
        return Run(resolve_benchmark(record, benchmark), record, journal)
    finally:
        journal.close()


def all_runs(*, home: str | Path = "", benchmark: Any = None) -> Runs:
    """All runs of the journal, the latest last; those of benchmarks of your own only if their classes are given."""
    journal = open_journal(Path(home or default_home()))
    made = Runs()
    try:
        for record in journal.runs():
            with contextlib.suppress(UserError):  # one whose code is not at hand
                found = with_actual_state(record, journal.path.parent)
                made.append(Run(resolve_benchmark(found, benchmark), found, journal))
    finally:
        journal.close()
    return made


def evaluate(
    benchmark: Any, *, progress: bool | None = None, on_start: Callable[[Session], None] | None = None, **options: Any
) -> Run:
    """Generate, judge, aggregate. Options are the fields of `RunConfig`, and the benchmark's own (`weft run NAME
    --help` lists them all).

    `model` and `judge` are names as on the command line, or objects: a function of (messages, want), a class, an
    `Endpoint`. `sample` are so many samples at random, by `seed`. `probe=False` leaves out the small question to each
    endpoint. `progress` is shown in a notebook, unless it is False. Ctrl-C, or interrupting the cell, ends the run;
    what is done is kept, and the same call goes on."""
    return _done(evaluate_async(benchmark, on_start=_watched(on_start, progress), **options))


async def evaluate_async(benchmark: Any, *, on_start: Callable[[Session], None] | None = None, **options: Any) -> Run:
    """The same, for those who have a loop of their own. Raises the reason if the run had to end early; what was done is
    in the journal."""
    # its own come first: a benchmark may have a `sample` of its own
    known = load_benchmark(benchmark).Options.__struct_fields__
    missing = [name for name in REQUIRED if options.get(name) is None]
    if missing:
        raise TypeError(f"evaluate() lacks {', '.join(missing)}")
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    own: dict[str, Any] = {
        name: given.pop(name) for name in list(given) if name in known or name not in RunConfig.__struct_fields__
    }
    config = RunConfig(benchmark=benchmark, options={**given.pop("options", {}), **own}, **given)
    return await complete_run(open_run(config), Run, on_start)


REQUIRED = ("data", "model", "judge")


def _signature() -> inspect.Signature:
    """What an editor completes: the fields of `RunConfig`, and what is of this call alone."""
    hints = get_type_hints(RunConfig)
    kind = inspect.Parameter.KEYWORD_ONLY
    made = [inspect.Parameter("benchmark", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Any)]
    for one in structs.fields(RunConfig):
        if one.name != "benchmark":
            if one.name in REQUIRED:
                usual = inspect.Parameter.empty
            else:
                if one.default is NODEFAULT:
                    usual = None
                else:
                    usual = one.default
            made.append(inspect.Parameter(one.name, kind, default=usual, annotation=hints[one.name]))
    made += [inspect.Parameter(name, kind, default=None) for name in ("progress", "on_start")]
    made.append(inspect.Parameter("own", inspect.Parameter.VAR_KEYWORD, annotation=Any))
    return inspect.Signature(made, return_annotation=Run)


cast(Any, evaluate).__signature__ = _signature()


def _watched(on_start: Callable[[Session], None] | None, progress: bool | None) -> Callable[[Session], None] | None:
    if progress is not False and "IPython" in sys.modules:
        display = find_notebook_display()
    else:
        display = None

    def begin(session: Session) -> None:
        if display is not None:
            show_in_notebook(session, display)
        if on_start is not None:
            on_start(session)

    if display is not None:
        return begin
    return on_start


def judge(run: "str | stored.Run", *, on_start: Callable[[Session], None] | None = None, **options: Any) -> Run:
    """Judge the stored replies of a run again, by another judge, in other words, or more often. No model is asked.
    Options are those fields of `RunConfig` that are not about a model."""
    return _done(judge_async(run, on_start=on_start, **options))


async def judge_async(
    run: "str | stored.Run", *, on_start: Callable[[Session], None] | None = None, **options: Any
) -> Run:
    if isinstance(run, stored.Run):
        options.setdefault("benchmark", run.benchmark)
    config = _config("judge", JUDGES, options)
    return await complete_run(
        open_run(config, StoredRun(run.id if isinstance(run, stored.Run) else run)), Run, on_start
    )


# what can be said where stored replies are judged
JUDGES = ("benchmark", "data", *fields_for("judge", "calls", "home"))
WRITES = ("model", "model_options", *fields_for("calls", "home"))  # where a document is written


def _config(what: str, known: Sequence[str], options: Mapping[str, Any]) -> RunConfig:
    unknown = [name for name in options if name not in known]
    if unknown:
        raise UserError(f"{what}() knows no {unknown[0]!r}; it knows {', '.join(known)}")
    return RunConfig(**{name: value for name, value in options.items() if value is not None})


def battle(
    some: "Sequence[str | stored.Run]",
    *,
    single: bool = False,
    on_start: Callable[[Session], None] | None = None,
    **options: Any,
) -> Run:
    """Let stored runs of one benchmark fight before a judge, or (`single=True`) have their answers scored one by one.
    No model is asked. Options are those of `judge`, and those of the arena itself: both_orders, battles, seed,
    judge_images."""
    own = {**options.pop("options", {}), **{name: options.pop(name) for name in list(options) if name not in JUDGES}}
    given = [one.benchmark for one in some if isinstance(one, stored.Run)]
    if given:
        options.setdefault("benchmark", given)
    names = tuple(one.id if isinstance(one, stored.Run) else str(one) for one in some)
    config = structs.replace(_config("battle", JUDGES, options), options=own)
    return _done(complete_run(open_run(config, StoredAnswers(names, single)), Run, on_start))


def write(
    text: str, *, out: str | Path | Sequence[str | Path] = (), pictures: Sequence[str | Path] = (), **options: Any
) -> Run:
    """One document of words and pictures: its reply is `run.turns[0].reply`. `out` are files to write, .html, .md or
    .pdf; `pictures` are files to show to the model. Options: model, model_options, home, budget, concurrency, ..."""
    outs = [Path(one) for one in ([out] if isinstance(out, (str, Path)) else out)]
    for one in outs:
        document.format_of(one)  # before anything is paid for
    config = _config("write", WRITES, options)
    run = _done(complete_run(open_run(config, WritingRequest(text, tuple(map(Path, pictures)))), Run))
    if outs:
        home = Path(config.home)
        reply = find_document(run)
        if not reply.output:
            raise WeftError(f"nothing was written: {reply.outcome}: {reply.reason}")
        made = build_document(run, home, text)
        for one in outs:
            document.write(made, open_blobs(home), one)
    return run


def build_document(run: stored.Run, home: Path, asked: str) -> document.ReadableDocument:
    """What was written, with the orders for its pictures as their words, and what was asked for."""
    reply = find_document(run)
    said = " ".join(asked.split())
    made = (
        f"Written by {run.record.manifest.model.name}",
        f"Asked for: {said if len(said) <= 500 else said[:499] + '…'}",
    )
    orders = find_image_prompts(run, home)
    if len(orders) == len(reply.images):
        words = orders
    else:
        words = ()
    return document.ReadableDocument(document.document_title(reply.output, asked), reply.output, words, made)


def _done(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine, inside a running loop (a notebook) as well as outside of one. An interrupt while it is
    waited for ends the work, with a moment for calls in flight, and is then raised here."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run_in_loop(work)
    box: list[T | BaseException] = []
    loops: list[asyncio.AbstractEventLoop] = []
    over = threading.Event()

    async def noted() -> T:
        loops.append(asyncio.get_running_loop())
        return await work

    def in_thread() -> None:
        try:
            box.append(run_in_loop(noted()))
        except BaseException as error:
            box.append(error)
        finally:
            over.set()

    threading.Thread(target=in_thread, name="weft", daemon=True).start()
    for _ in range(PATIENT):
        try:
            over.wait()  # and no join: a thread whose join was interrupted counts as ended
            break
        except KeyboardInterrupt:
            for loop in loops:
                interrupt_loop(loop)
    else:
        raise KeyboardInterrupt
    if isinstance(box[0], BaseException):
        raise box[0]
    return box[0]


def validate(benchmark: Any, data: str | Path, judge: Any = "constant/max", **options: Any) -> Run:
    """Feed the ground truth through the whole path: histories, fits, questions, judge, tables. With the default judge,
    which gives full marks, anything but full marks and full coverage is a defect of the data or of weft."""
    return evaluate(benchmark, data=data, model="reference", judge=judge, **options)


def agree(
    run: "str | stored.Run",
    other: "str | Path | stored.Run | None" = None,
    *,
    by: str = "",
    home: str | Path = "",
    benchmark: Any = None,
) -> study.AgreementStudy:
    """How far the judge of a run agrees with people who rated it (`weft rate`), with a file of ratings (`other` ends in
    .csv), or with the judge of another run of the same replies. `by` is an axis of the benchmark: `tables` has what was
    found, `notes` what was left out."""
    place = Path(home or default_home())
    if isinstance(run, stored.Run):
        mine = run
    else:
        mine = load(run, home=place, benchmark=benchmark)
    if other is None:
        return study.compare_with_people(mine, place, by)
    if isinstance(other, stored.Run):
        return study.compare_with_run(mine, other, by)
    if isinstance(other, Path) or other.lower().endswith(".csv") or Path(other).is_file():
        return study.compare_with_file(mine, Path(other), by)
    return study.compare_with_run(mine, load(other, home=place, benchmark=benchmark or mine.benchmark), by)


def correct_scores(some: Sequence[stored.Run], *, home: str | Path = "") -> list[correcting.Corrected]:
    """The main numbers of runs, corrected by people, or by the card of their judge."""
    place = Path(home or default_home())
    names = name_runs(some)
    return [
        correcting.corrected(run, study.annotations_of(run, place).said, CARDS, name) for name, run in names.items()
    ]


CARDS: correcting.Cards = bias_of  # the one place where what is known of judges comes in


def report(
    some: Sequence[stored.Run],
    format: str = "md",
    *,
    over: str = "",
    correct: bool = False,
    home: str | Path = "",
    **chosen: Any,
) -> str:
    """Tables of one or more runs of one benchmark, with what a reader must know. `over="seed"`: runs that differ in
    their seed alone are one row. `correct`: the main numbers corrected, too, in a table of their own; ratings are those
    of `home`. What is chosen are the fields of `Choices`: columns, rows, tables, and for LaTeX intervals and label."""
    _alone(over, correct)
    wanted = parse_choices(chosen, format)
    tables = [
        *(build_seed_tables(_over(some, over)) if over else build_tables(name_runs(some))),
        *_corrected(some, correct, home),
    ]
    return render(tables, [run.summary() for run in some], format, wanted, some[0].benchmark)


def _corrected(some: Sequence[stored.Run], correct: bool, home: str | Path) -> list[Table]:
    if correct:
        return correcting.tables(correct_scores(some, home=home))
    return []


def _alone(over: str, correct: bool) -> None:
    if correct and over:
        raise UserError("--correct is for runs one by one, not for those that are taken together with --over")


def _over(some: Sequence[stored.Run], over: str) -> dict[str, list[stored.Run]]:
    if over != "seed":
        raise UserError(f"over={over!r}: runs are taken together over their seed alone: over='seed'")
    name_runs(some)  # of one benchmark, none twice
    return group_by_seed(some)


def write_report(
    some: Sequence[stored.Run],
    out: str | Path,
    *,
    home: str | Path = "",
    single_file: bool = False,
    over: str = "",
    correct: bool = False,
) -> Path:
    """The report as HTML: a folder with its pictures, or one file. Gives the page to open. `over="seed"`: tables and
    plots have one row for runs that differ in their seed alone; their dialogues stand side by side. `correct`: the main
    numbers corrected, too."""
    _alone(over, correct)
    home, by_name = home or default_home(), name_runs(some)
    groups = _over(some, over) if over else {}
    tables = [*(build_seed_tables(groups) if groups else build_tables(by_name)), *_corrected(some, correct, home)]
    made = site.build_contents(by_name, tables, pool_runs(groups) if groups else None)
    journal = open_journal(Path(home))
    try:
        if single_file:
            write = site.write_single
        else:
            write = site.write
        return write(made, journal, Path(home), Path(out))
    finally:
        journal.close()


__all__ = [
    "BudgetReached",
    "EndpointDown",
    "Interrupted",
    "Run",
    "RunConfig",
    "Runs",
    "Session",
    "agree",
    "all_runs",
    "battle",
    "correct_scores",
    "evaluate",
    "evaluate_async",
    "judge",
    "judge_async",
    "load",
    "load_run",
    "open_run",
    "report",
    "validate",
    "write",
    "write_report",
]
