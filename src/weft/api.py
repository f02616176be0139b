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

import contextlib
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast, get_type_hints

from msgspec import NODEFAULT, structs

from weft.arena.stored_answers import StoredAnswers
from weft.benchmarks.base import load_benchmark
from weft.calls.budget import Budget
from weft.calls.caller import EndpointDown
from weft.errors import BudgetReached, UserError, WeftError
from weft.evaluation.config import RunConfig, fields_for
from weft.evaluation.event_loop import wait_for
from weft.evaluation.progress import find_notebook_display, show_in_notebook
from weft.evaluation.session import Interrupted, Session, complete_run, open_run
from weft.evaluation.sources import StoredRun, find_usual_judge
from weft.evaluation.writing import WritingRequest, find_document
from weft.judge_eval.agreement import corrected as correction
from weft.judge_eval.agreement import several, study
from weft.judge_eval.agreement.by_card import bias_of
from weft.judge_eval.agreement.second_judge import find_second_judge, is_judge
from weft.models.baselines import ReferenceModel
from weft.models.config import default_home
from weft.plain_tables import escape_text
from weft.report import document, frame, site
from weft.report.charts import Plot
from weft.report.grid import build_grid, check_grid_choice, label_grid
from weft.report.published_plots import build_published_plots
from weft.report.render import render
from weft.report.row_groups import arrange_rows
from weft.report.seeds import build_seed_tables, group_runs, pool_runs
from weft.report.select import parse_choices
from weft.results import run as stored
from weft.results.index import describe_state
from weft.results.run import build_tables, find_run, load_run, name_runs, resolve_benchmark
from weft.store.locks import with_actual_state
from weft.types import Table
from weft.untrusted import escape_control_characters
from weft.workspace import open_blobs, open_journal

OnStart = Callable[[Session], None]

REQUIRED_OPTIONS = ("data", "model", "judge")
JUDGE_OPTIONS = ("benchmark", "data", "sample", "seed", *fields_for("judge", "calls", "home"))
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
        name = escape_control_characters(self.name)
        return f"<Run {self.id}: {name}, {gist.headline_text}, {describe_state(self.record, gist)}>"

    def _repr_html_(self) -> str:
        gist = self.gist
        caption = f"{self.id}: {describe_state(self.record, gist)}, {gist.scored}/{gist.expected} verdicts scored"
        table = self.table()
        own_rows = structs.replace(table, rows=table.run_rows)
        return f"<div>{escape_text(caption)}</div>{own_rows._repr_html_()}"  # pyright: ignore[reportPrivateUsage]


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
    cells_html = "".join(f"<{tag}>{escape_text(cell)}</{tag}>" for cell in cells)
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
    `Endpoint`. `sample` draws that many samples at random, by `seed`. `preflight=False` skips the small request to each
    endpoint before the run. `progress=False` shows no progress in a notebook. Ctrl-C, or interrupting the cell, ends
    the run; finished calls stay cached, and the same call resumes."""
    return wait_for(evaluate_async(benchmark, on_start=_with_notebook_progress(on_start, progress), **options))


async def evaluate_async(benchmark: Any, *, on_start: OnStart | None = None, **options: Any) -> Run:
    """Do what `evaluate` does, inside an event loop of your own. Raises the reason if the run had to end early; what
    was done is in the journal."""
    return await complete_run(open_run(_build_evaluation(benchmark, options)), Run, on_start)


def evaluate_sharing(
    shared: Budget,
    benchmark: Any,
    *,
    progress: bool | None = None,
    on_start: OnStart | None = None,
    **options: Any,
) -> Run:
    """Do what `evaluate` does, with a budget that it shares with other runs."""
    opened = open_run(_build_evaluation(benchmark, options), budget=shared)
    return wait_for(complete_run(opened, Run, _with_notebook_progress(on_start, progress)))


def _build_evaluation(benchmark: Any, options: Mapping[str, Any]) -> RunConfig:
    """Build a run's configuration from the keywords of `evaluate`. Raises TypeError if one is missing."""
    # The benchmark's own options take precedence: it may have a `sample` of its own.
    own_names = load_benchmark(benchmark).Options.__struct_fields__
    own: dict[str, Any] = {}
    shared: dict[str, Any] = {}
    for name, value in options.items():
        if value is None:
            continue
        if name in own_names or name not in RunConfig.__struct_fields__:
            own[name] = value
        else:
            shared[name] = value
    own = {**shared.pop("options", {}), **own}
    if "judge" not in shared:
        shared["judge"] = find_usual_judge(benchmark, own)
    missing = [name for name in REQUIRED_OPTIONS if shared.get(name) is None]
    if missing:
        raise TypeError(f"evaluate() lacks {', '.join(missing)}")
    return RunConfig(benchmark=benchmark, options=own, **shared)


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
    called. Options are the fields of `RunConfig` that do not concern a model. `sample`: only so many samples."""
    return wait_for(judge_async(run, on_start=on_start, **options))


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
    return wait_for(complete_run(open_run(config, StoredAnswers(names, single)), Run, on_start))


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
    run = wait_for(complete_run(open_run(config, request), Run))
    if not paths:
        return run
    reply = find_document(run)
    if not reply.output:
        raise WeftError(f"nothing was written: {reply.outcome}: {reply.reason}")
    home = Path(config.home)
    readable = document.build_document(run, home, text)
    for path in paths:
        document.write(readable, open_blobs(home), path)
    return run


def _as_paths(out: str | Path | Sequence[str | Path]) -> list[Path]:
    if isinstance(out, (str, Path)):
        return [Path(out)]
    return [Path(path) for path in out]


def validate(benchmark: Any, data: str | Path, judge: Any = "constant/max", **options: Any) -> Run:
    """Check a dataset end to end with its reference answers: histories, image adaption, questions, judge, tables.

    Turns without a reference get a stand-in. The default judge gives every reply the maximum. Anything but full scores
    and full coverage is a defect of the data or of weft."""
    blobs = open_blobs(Path(options.get("home") or default_home()))
    return evaluate(benchmark, data=data, model=ReferenceModel("", blobs, stand_ins=True), judge=judge, **options)


def agree(
    run: "str | stored.Run | Sequence[str | stored.Run]",
    other: "str | Path | stored.Run | None" = None,
    *,
    by: str = "",
    home: str | Path = "",
    benchmark: Any = None,
) -> study.AgreementStudy:
    """Measure a judge's agreement with annotators: with those of the run (`weft rate`), or of a file (`other` ends in
    .csv). If `other` is another run of the same replies, compare the two judges; if it is a judge's name, compare
    its verdicts on the same replies with the judge and with annotators. Several runs get a row each, and one for all.

    `by` is an axis of the benchmark. The result's `tables` have the numbers, `notes` what was left out."""
    folder = Path(home or default_home())
    names = [run] if isinstance(run, (str, stored.Run)) else list(run)
    runs = [one if isinstance(one, stored.Run) else load(one, home=folder, benchmark=benchmark) for one in names]
    if not runs:
        raise UserError("agree() needs a run")
    file = None
    if isinstance(other, Path) or (isinstance(other, str) and _is_file(other)):
        file = Path(other)
    if len(runs) > 1:
        second: Sequence[stored.Run] = ()
        if isinstance(other, stored.Run):
            second = find_second_judge(runs, other.id, folder)
        elif file is None and other is not None:
            second = find_second_judge(runs, str(other), folder)
        return several.compare_models(runs, folder, file=file, second=second, by=by)
    first = runs[0]
    if other is None:
        return study.compare_with_people(first, folder, by)
    if file is not None:
        return study.compare_with_file(first, file, by)
    if isinstance(other, stored.Run):
        return study.compare_with_run(first, other, by)
    assert isinstance(other, str)
    if is_judge(first, other, folder):
        return several.compare_models(runs, folder, second=find_second_judge(runs, other, folder), by=by)
    return study.compare_with_run(first, load(other, home=folder, benchmark=benchmark or first.benchmark), by)


def _is_file(name: str) -> bool:
    return name.lower().endswith(".csv") or Path(name).is_file()


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
    by: str | Sequence[str] = (),
    metric: str = "",
    baseline: str = "",
    row_groups: str = "",
    home: str | Path = "",
    **selection: Any,
) -> str:
    """Return tables of one or more runs of one benchmark as text, with their caveats.

    `over="seed"`: runs that differ only in their seed are one row. `correct`: add a table of the corrected headline
    scores, by the annotations in `home`. `by`: only the table of one number by these settings; `metric` and `baseline`
    are those of `weft.grid`. `row_groups`: rows in groups by what is known of their models. `selection`
    are the fields of `Choices`: columns, rows, tables, and for LaTeX intervals, label, caption, cite and rank."""
    _check_choices(over, correct, by, metric, baseline)
    choices = parse_choices(selection, format)
    if by:
        tables = [build_grid(runs, by, metric, baseline).table]
        choices = label_grid(choices, runs, by, metric)
    elif over:
        tables = list(build_seed_tables(group_runs(runs, over)))
    else:
        tables = list(build_tables(name_runs(runs)))
    if correct:
        tables += _corrected_tables(runs, home)
    tables = arrange_rows(tables, runs, row_groups)
    return render(tables, [run.summary() for run in runs], format, choices, runs[0].benchmark)


def write_report(
    runs: Sequence[stored.Run],
    out: str | Path,
    *,
    home: str | Path = "",
    single_file: bool = False,
    over: str = "",
    correct: bool = False,
    by: str | Sequence[str] = (),
    metric: str = "",
    baseline: str = "",
    row_groups: str = "",
    with_published: bool = False,
) -> Path:
    """Write the report as HTML, a folder with its images or one file, and return the page to open.

    `over="seed"`: tables and plots have one row for runs that differ only in their seed; their dialogues are shown side
    by side. `correct`: add the corrected headline scores. `by`: begin with the table and the plot of one number by
    these settings; `metric` and `baseline` are those of `weft.grid`. `row_groups`: as for `report`.
    `with_published`: draw the tables that have published rows."""
    _check_choices(over, correct, by, metric, baseline)
    folder = Path(home or default_home())
    by_name = name_runs(runs)
    if over:
        groups = group_runs(runs, over)
        tables = list(build_seed_tables(groups))
        pooled = pool_runs(groups)
    else:
        tables = list(build_tables(by_name))
        pooled = None
    if correct:
        tables += _corrected_tables(runs, folder)
    first_plots: list[Plot] = []
    if by:
        by_settings = build_grid(runs, by, metric, baseline)
        tables.insert(0, by_settings.table)
        first_plots += filter(None, [by_settings.plot])
    if with_published:
        first_plots += build_published_plots(tables)
    contents = site.build_contents(by_name, arrange_rows(tables, runs, row_groups), pooled, first_plots)
    with contextlib.closing(open_journal(folder)) as journal:
        if single_file:
            return site.write_single(contents, journal, folder, Path(out))
        return site.write(contents, journal, folder, Path(out))


def _corrected_tables(runs: Sequence[stored.Run], home: str | Path) -> list[Table]:
    return correction.tables(correct_scores(runs, home=home))


def _check_choices(over: str, correct: bool, by: str | Sequence[str], metric: str, baseline: str) -> None:
    check_grid_choice(by, metric, baseline, over)
    if correct and over:
        raise UserError("--correct applies to single runs: leave out --over, or leave out --correct")


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
