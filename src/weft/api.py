"""weft from Python. The command line can do nothing that these functions cannot.

run = weft.evaluate("weave", data="DATA", model=my_model, judge="openai-chat/gpt-4o-2024-08-06", history="full")
run.table()                  # the paper's main table as a `Table`
run.report("md")             # all tables, as text
run.frame()                  # every verdict, as a DataFrame
weft.runs(); weft.load("last")
other = weft.judge(run.id, judge="openai-chat/gpt-4.1")      # the same replies, another judge
run.agree(); run.agree("annotations.csv")                     # its judge against annotators
run.agree(other)                                              # its judge compared with another judge
run.corrected_score()        # the headline score, corrected by annotations of some of the verdicts
weft.battle([run, another], judge="judge").table()           # stored runs compared in pairs, in both orders
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
from weft.judge_eval.agreement import corrected as correction
from weft.judge_eval.agreement import study
from weft.judge_eval.agreement.by_card import bias_of
from weft.models.config import default_home
from weft.report import document, frame, site
from weft.report.render import render
from weft.report.seeds import build_seed_tables, group_by_seed, pool_runs
from weft.report.select import parse_choices
from weft.results import run as stored
from weft.results.index import describe_state
from weft.results.run import build_tables, find_run, load_run, name_runs, resolve_benchmark
from weft.store.locks import with_actual_state
from weft.types import Table
from weft.workspace import open_blobs, open_journal

T = TypeVar("T")
OnStart = Callable[[Session], None]

MAX_INTERRUPTS = 4  # after this many, stop waiting for the work to end
MAX_REQUEST_CHARS = 500  # of the request that is quoted in a document
REQUIRED_OPTIONS = ("data", "model", "judge")
JUDGE_OPTIONS = ("benchmark", "data", *fields_for("judge", "calls", "home"))
WRITE_OPTIONS = ("model", "model_options", *fields_for("calls", "home"))
FIND_JUDGE_BIAS: correction.Cards = bias_of


class Run(stored.Run):
    """A run in the journal, finished or not: `turns`, `verdicts`, `table()`, `tables()`, `frame()`, `summary()`,
    `report()`. In a notebook it shows as its main table."""

    def report(self, format: str = "md", **selection: Any) -> str:
        """Return the tables as text in md, latex, csv or json. `selection` is described at `report`."""
        return report([self], format, **selection)

    def frame(self) -> Any:
        """Return every verdict as a row of a DataFrame, of pandas or polars, whichever is installed.

        Columns: run, sample, turn (from 1), metric, value (a share of the maximum), points (on the paper's scale),
        reason, outcome, groups, cost."""
        return frame.build_frame([self])

    def agree(
        self, other: "str | Path | stored.Run | None" = None, *, by: str = "", home: str | Path = ""
    ) -> study.AgreementStudy:
        """Measure its judge's agreement with annotators, or compare it with the judge of another run: see `agree`."""
        return agree(self, other, by=by, home=home)

    def corrected_score(self, *, home: str | Path = "") -> correction.Corrected:
        """Return its headline score, corrected by annotations: `.people`, `.plain`, `.table()`."""
        return correct_scores([self], home=home)[0]

    def __repr__(self) -> str:
        gist = self.gist
        return f"<Run {self.id}: {self.name}, {gist.headline_text}, {describe_state(self.record, gist)}>"

    def _repr_html_(self) -> str:
        gist = self.gist
        state = describe_state(self.record, gist)
        caption = f"{self.id}: {state}, {gist.scored}/{gist.expected} verdicts scored"
        table = self.table()
        own_rows = structs.replace(table, rows=table.run_rows)
        return f"<div>{html.escape(caption)}</div>{own_rows._repr_html_()}"  # pyright: ignore[reportPrivateUsage]


class Runs(list[Run]):
    """Runs of a journal, oldest first. In a notebook they show as a list with their headline scores."""

    def frame(self) -> Any:
        """Return the verdicts of all runs as one DataFrame."""
        return frame.build_frame(self)

    def _repr_html_(self) -> str:
        rows = [_html_row("th", ("run", "benchmark", "title", "headline score", "state"))]
        for run in self:
            gist = run.gist
            state = describe_state(run.record, gist)
            rows.append(_html_row("td", (run.id, run.benchmark.name, run.name, gist.headline_text, state)))
        return f"<table>{''.join(rows)}</table>"


def _html_row(tag: str, cells: Sequence[str]) -> str:
    cells_html = "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells)
    return f"<tr>{cells_html}</tr>"


def load(run: str, *, home: str | Path = "", benchmark: Any = None) -> Run:
    """Return a run of the journal by its tag, its id, the beginning of its id, or `last`.

    `benchmark` is its class if the benchmark is your own: Python files that a journal names are never run."""
    journal = open_journal(Path(home or default_home()))
    try:
        record = with_actual_state(find_run(journal, run), journal.path.parent)
        return Run(resolve_benchmark(record, benchmark), record, journal)
    finally:
        journal.close()


def all_runs(*, home: str | Path = "", benchmark: Any = None) -> Runs:
    """Return all runs of the journal, oldest first. Runs of your own benchmarks are left out unless `benchmark` has
    their classes."""
    journal = open_journal(Path(home or default_home()))
    runs = Runs()
    try:
        for stored_record in journal.runs():
            with contextlib.suppress(UserError):  # its benchmark's code is not available
                record = with_actual_state(stored_record, journal.path.parent)
                runs.append(Run(resolve_benchmark(record, benchmark), record, journal))
    finally:
        journal.close()
    return runs


def evaluate(benchmark: Any, *, progress: bool | None = None, on_start: OnStart | None = None, **options: Any) -> Run:
    """Generate, judge, aggregate. Options are the fields of `RunConfig` and the benchmark's own (`weft run NAME --help`
    lists them all).

    `model` and `judge` are names as on the command line, or objects: a function of (messages, want), a class, an
    `Endpoint`. `sample` draws that many samples at random, by `seed`. `probe=False` skips the small request to each
    endpoint before the run. `progress=False` shows no progress in a notebook. Ctrl-C, or interrupting the cell, ends
    the run; finished calls stay cached, and the same call resumes."""
    return _wait_for(evaluate_async(benchmark, on_start=_with_notebook_progress(on_start, progress), **options))


async def evaluate_async(benchmark: Any, *, on_start: OnStart | None = None, **options: Any) -> Run:
    """Do what `evaluate` does, inside an event loop of your own. Raises the reason if the run had to end early; what
    was done is in the journal."""
    # The benchmark's own options take precedence: it may have a `sample` of its own.
    own_names = load_benchmark(benchmark).Options.__struct_fields__
    missing = [name for name in REQUIRED_OPTIONS if options.get(name) is None]
    if missing:
        raise TypeError(f"evaluate() lacks {', '.join(missing)}")
    own: dict[str, Any] = {}
    shared: dict[str, Any] = {}
    for name, value in options.items():
        if value is None:
            continue
        if name in own_names or name not in RunConfig.__struct_fields__:
            own[name] = value
        else:
            shared[name] = value
    config = RunConfig(benchmark=benchmark, options={**shared.pop("options", {}), **own}, **shared)
    return await complete_run(open_run(config), Run, on_start)


def _build_signature() -> inspect.Signature:
    """Build what an editor completes for `evaluate`: the fields of `RunConfig`, and the call's own parameters."""
    hints = get_type_hints(RunConfig)
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter("benchmark", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Any)]
    for field in structs.fields(RunConfig):
        if field.name == "benchmark":
            continue
        if field.name in REQUIRED_OPTIONS:
            default = inspect.Parameter.empty
        elif field.default is NODEFAULT:
            default = None
        else:
            default = field.default
        parameters.append(inspect.Parameter(field.name, keyword, default=default, annotation=hints[field.name]))
    parameters.append(inspect.Parameter("progress", keyword, default=None))
    parameters.append(inspect.Parameter("on_start", keyword, default=None))
    parameters.append(inspect.Parameter("own", inspect.Parameter.VAR_KEYWORD, annotation=Any))
    return inspect.Signature(parameters, return_annotation=Run)


cast(Any, evaluate).__signature__ = _build_signature()


def _with_notebook_progress(on_start: OnStart | None, progress: bool | None) -> OnStart | None:
    """Return `on_start`, extended by a progress display if this is a notebook and `progress` is not False."""
    if progress is False or "IPython" not in sys.modules:
        return on_start
    display = find_notebook_display()
    if display is None:
        return on_start

    def start(session: Session) -> None:
        show_in_notebook(session, display)
        if on_start is not None:
            on_start(session)

    return start


def judge(run: "str | stored.Run", *, on_start: OnStart | None = None, **options: Any) -> Run:
    """Judge the stored replies of a run again: by another judge, with other prompts, or more often. The model is never
    called. Options are the fields of `RunConfig` that do not concern a model."""
    return _wait_for(judge_async(run, on_start=on_start, **options))


async def judge_async(run: "str | stored.Run", *, on_start: OnStart | None = None, **options: Any) -> Run:
    """Do what `judge` does, inside an event loop of your own."""
    if isinstance(run, stored.Run):
        options.setdefault("benchmark", run.benchmark)
    config = _build_config("judge", JUDGE_OPTIONS, options)
    return await complete_run(open_run(config, StoredRun(_run_name(run))), Run, on_start)


def _run_name(run: "str | stored.Run") -> str:
    if isinstance(run, stored.Run):
        return run.id
    return run


def _build_config(function: str, accepted: Sequence[str], options: Mapping[str, Any]) -> RunConfig:
    unknown = [name for name in options if name not in accepted]
    if unknown:
        raise UserError(f"{function}() has no option {unknown[0]!r}; it has {', '.join(accepted)}")
    return RunConfig(**{name: value for name, value in options.items() if value is not None})


def battle(
    runs: "Sequence[str | stored.Run]", *, single: bool = False, on_start: OnStart | None = None, **options: Any
) -> Run:
    """Let a judge compare stored runs of one benchmark in pairs or, with `single=True`, score their answers one by one.

    The models are never called. Options are those of `judge`, and the arena's own: both_orders, battles, seed,
    judge_images."""
    own = dict(options.pop("options", {}))
    for name in list(options):
        if name not in JUDGE_OPTIONS:
            own[name] = options.pop(name)
    benchmarks = [run.benchmark for run in runs if isinstance(run, stored.Run)]
    if benchmarks:
        options.setdefault("benchmark", benchmarks)
    config = structs.replace(_build_config("battle", JUDGE_OPTIONS, options), options=own)
    names = tuple(_run_name(run) for run in runs)
    return _wait_for(complete_run(open_run(config, StoredAnswers(names, single)), Run, on_start))


def write(
    text: str, *, out: str | Path | Sequence[str | Path] = (), images: Sequence[str | Path] = (), **options: Any
) -> Run:
    """Write one document of text and images; its reply is `run.turns[0].reply`.

    `out` are the files to write, .html, .md or .pdf; `images` are files that the model is given. Options: model,
    model_options, home, budget, concurrency, ..."""
    paths = _as_paths(out)
    for path in paths:
        document.format_of(path)  # refuses an unknown suffix before any call is paid for
    config = _build_config("write", WRITE_OPTIONS, options)
    request = WritingRequest(text, tuple(map(Path, images)))
    run = _wait_for(complete_run(open_run(config, request), Run))
    if not paths:
        return run
    reply = find_document(run)
    if not reply.output:
        raise WeftError(f"nothing was written: {reply.outcome}: {reply.reason}")
    home = Path(config.home)
    readable = build_document(run, home, text)
    for path in paths:
        document.write(readable, open_blobs(home), path)
    return run


def _as_paths(out: str | Path | Sequence[str | Path]) -> list[Path]:
    if isinstance(out, (str, Path)):
        return [Path(out)]
    return [Path(path) for path in out]


def build_document(run: stored.Run, home: Path, request: str) -> document.ReadableDocument:
    """Return the document that a run wrote, with its provenance. The prompts of its images become their alternative
    texts, if every image has one."""
    reply = find_document(run)
    quoted = " ".join(request.split())
    if len(quoted) > MAX_REQUEST_CHARS:
        quoted = quoted[: MAX_REQUEST_CHARS - 1] + "…"
    provenance = (f"Written by {run.record.manifest.model.name}", f"Asked for: {quoted}")
    alt_texts = find_image_prompts(run, home)
    if len(alt_texts) != len(reply.images):
        alt_texts = ()
    title = document.document_title(reply.output, request)
    return document.ReadableDocument(title, reply.output, alt_texts, provenance)


def _wait_for(work: Coroutine[Any, Any, T]) -> T:
    """Return a coroutine's result, inside a running event loop (a notebook) as well as outside of one.

    An interrupt ends the work, with a moment for calls in flight, and is then raised here."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run_in_loop(work)
    results: list[T | BaseException] = []
    loops: list[asyncio.AbstractEventLoop] = []
    done = threading.Event()

    async def register_loop_and_work() -> T:
        loops.append(asyncio.get_running_loop())
        return await work

    def run_in_thread() -> None:
        try:
            results.append(run_in_loop(register_loop_and_work()))
        except BaseException as error:
            results.append(error)
        finally:
            done.set()

    threading.Thread(target=run_in_thread, name="weft", daemon=True).start()
    for _ in range(MAX_INTERRUPTS):
        try:
            done.wait()  # not join(): a thread whose join was interrupted counts as ended
            break
        except KeyboardInterrupt:
            for loop in loops:
                interrupt_loop(loop)
    else:
        raise KeyboardInterrupt
    result = results[0]
    if isinstance(result, BaseException):
        raise result
    return result


def validate(benchmark: Any, data: str | Path, judge: Any = "constant/max", **options: Any) -> Run:
    """Check a dataset end to end with its reference answers: histories, image adaption, questions, judge, tables.

    The default judge gives every reply the maximum. Anything but full scores and full coverage is a defect of the data
    or of weft."""
    return evaluate(benchmark, data=data, model="reference", judge=judge, **options)


def agree(
    run: "str | stored.Run",
    other: "str | Path | stored.Run | None" = None,
    *,
    by: str = "",
    home: str | Path = "",
    benchmark: Any = None,
) -> study.AgreementStudy:
    """Measure a judge's agreement with annotators: with those of the run (`weft rate`), or of a file (`other` ends in
    .csv). If `other` is another run of the same replies, compare the two judges.

    `by` is an axis of the benchmark. The result's `tables` have the numbers, `notes` what was left out."""
    folder = Path(home or default_home())
    if isinstance(run, stored.Run):
        first = run
    else:
        first = load(run, home=folder, benchmark=benchmark)
    if other is None:
        return study.compare_with_people(first, folder, by)
    if isinstance(other, stored.Run):
        return study.compare_with_run(first, other, by)
    if isinstance(other, Path) or other.lower().endswith(".csv") or Path(other).is_file():
        return study.compare_with_file(first, Path(other), by)
    second = load(other, home=folder, benchmark=benchmark or first.benchmark)
    return study.compare_with_run(first, second, by)


def correct_scores(runs: Sequence[stored.Run], *, home: str | Path = "") -> list[correction.Corrected]:
    """Correct the headline scores of runs by annotations or, without any, by their judges' calibration cards."""
    folder = Path(home or default_home())
    corrected: list[correction.Corrected] = []
    for name, run in name_runs(runs).items():
        annotations = study.annotations_of(run, folder)
        corrected.append(correction.corrected(run, annotations.said, FIND_JUDGE_BIAS, name))
    return corrected


def report(
    runs: Sequence[stored.Run],
    format: str = "md",
    *,
    over: str = "",
    correct: bool = False,
    home: str | Path = "",
    **selection: Any,
) -> str:
    """Return tables of one or more runs of one benchmark as text, with their caveats.

    `over="seed"`: runs that differ only in their seed are one row. `correct`: add a table of the corrected headline
    scores, by the annotations in `home`. `selection` are the fields of `Choices`: columns, rows, tables, and for LaTeX
    intervals and label."""
    _check_correct_alone(over, correct)
    choices = parse_choices(selection, format)
    if over:
        tables = list(build_seed_tables(_group_runs(runs, over)))
    else:
        tables = list(build_tables(name_runs(runs)))
    if correct:
        tables += _corrected_tables(runs, home)
    return render(tables, [run.summary() for run in runs], format, choices, runs[0].benchmark)


def write_report(
    runs: Sequence[stored.Run],
    out: str | Path,
    *,
    home: str | Path = "",
    single_file: bool = False,
    over: str = "",
    correct: bool = False,
) -> Path:
    """Write the report as HTML, a folder with its images or one file, and return the page to open.

    `over="seed"`: tables and plots have one row for runs that differ only in their seed; their dialogues are shown side
    by side. `correct`: add the corrected headline scores."""
    _check_correct_alone(over, correct)
    folder = Path(home or default_home())
    by_name = name_runs(runs)
    if over:
        groups = _group_runs(runs, over)
        tables = list(build_seed_tables(groups))
        pooled = pool_runs(groups)
    else:
        tables = list(build_tables(by_name))
        pooled = None
    if correct:
        tables += _corrected_tables(runs, folder)
    contents = site.build_contents(by_name, tables, pooled)
    journal = open_journal(folder)
    try:
        if single_file:
            return site.write_single(contents, journal, folder, Path(out))
        return site.write(contents, journal, folder, Path(out))
    finally:
        journal.close()


def _corrected_tables(runs: Sequence[stored.Run], home: str | Path) -> list[Table]:
    return correction.tables(correct_scores(runs, home=home))


def _check_correct_alone(over: str, correct: bool) -> None:
    if correct and over:
        raise UserError("--correct applies to single runs: leave out --over, or leave out --correct")


def _group_runs(runs: Sequence[stored.Run], over: str) -> dict[str, list[stored.Run]]:
    if over != "seed":
        raise UserError(f"over={over!r}: runs can be pooled over their seed only: over='seed'")
    name_runs(runs)  # refuses runs of several benchmarks, and a run given twice
    return group_by_seed(runs)


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
    "build_document",
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
