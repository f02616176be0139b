"""weft suite"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.help import HelpGroup
from weft.cli.options import (
    DEFAULT_HOME,
    ConcurrencyOption,
    DryRunOption,
    FreshOption,
    HomeOption,
    JudgeConcurrencyOption,
    JudgeOption,
    LimitOption,
    NoPreflightOption,
    OpenOption,
    OwnBenchmarkOption,
    SampleOption,
    TotalBudgetOption,
    check_format,
)
from weft.cli.terminal import open_in_browser, print_or_write, say

if TYPE_CHECKING:
    from weft.evaluation.session import Session
    from weft.evaluation.suite import ScoreCard
    from weft.report.select import Choices
    from weft.store.journal import Journal

app = typer.Typer(cls=HelpGroup, no_args_is_help=True, rich_markup_mode=None)
FORMATS = ("text", "html", "md", "latex", "csv", "json")


@app.callback()
def suite() -> None:
    """Run several benchmarks with several models: one score card, with what other tools measured.

    The suite is in the [suite.BENCHMARK] sections of weft.toml, or of a file given by --config.

    Examples:

      weft suite run --models bagel,janus --judge JUDGE

      weft suite report --format html --open

      weft suite import outputs/20261119_135539 --model bagel
    """


@app.command()
def run(
    models: Annotated[
        list[str], typer.Option(metavar="NAMES", help="Models as for `weft run`, with commas. Repeatable.")
    ],
    judge: JudgeOption = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="SECTION", help="Only this section of the suite. Repeatable.")
    ] = None,
    limit: LimitOption = None,
    sample: SampleOption = None,
    seed: Annotated[
        int | None,
        typer.Option(metavar="N", help="Which samples --sample draws. (A model's seed is set in weft.toml.)"),
    ] = None,
    concurrency: ConcurrencyOption = None,
    judge_concurrency: JudgeConcurrencyOption = None,
    budget: TotalBudgetOption = None,
    fresh: FreshOption = False,
    dry_run: DryRunOption = False,
    no_preflight: NoPreflightOption = False,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Run every benchmark of the suite with every model.

    One after another; the same command again runs only what is missing. A model that cannot be reached does not stop
    the others. Exit code: 0 if everything is scored; 1 if something is missing; 130 if interrupted.

    Examples:

      weft suite run --models bagel,janus --judge JUDGE

      weft suite run --models bagel --judge JUDGE --config suite.toml --sample 50 --budget 20

      weft suite report
    """
    import sys
    from functools import partial

    from weft.cli.several import Job, run_jobs
    from weft.evaluation.config import default_preflight
    from weft.evaluation.suite import build_jobs, check_names, read_entries, split_models
    from weft.models.config import read_config

    entries = read_entries(read_config(), only or ())
    fields: dict[str, Any] = {
        "limit": limit,
        "sample": sample,
        "seed": seed,
        "home": home,
        "fresh": fresh,
        "preflight": not no_preflight and default_preflight(),
        "concurrency": concurrency,
        "judge_concurrency": judge_concurrency,
    }
    jobs = list(build_jobs(entries, split_models(models), judge, **fields))
    for _, _, job in jobs:
        check_names(job)  # before the first call is paid for
    named = [Job(f"{entry.section}, {model}", job, partial(_name_section, entry.section)) for entry, model, job in jobs]
    complete, _ = run_jobs(named, budget, dry_run=dry_run)
    if not dry_run:
        _print_score_card(home)
    if not complete:
        sys.exit(1)
    sys.exit(0)


def _name_section(section: str, session: "Session") -> None:
    session.names["suite"] = section


@app.command()
def report(
    format: Annotated[str, typer.Option("--format", "-f", metavar="FORMAT", help=f"{', '.join(FORMATS)}.")] = "text",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="PATH", help="Where to write. Default: reports/suite.html, or the terminal."
        ),
    ] = None,
    intervals: Annotated[
        bool, typer.Option("--intervals", help="latex: 95% intervals under values; the other formats always have them.")
    ] = False,
    label: Annotated[str, typer.Option(metavar="TEXT", help="latex: prefix of labels.")] = "",
    tables: Annotated[
        list[str] | None, typer.Option(metavar="N", help="1: the scores, 2: the costs. Default: both.")
    ] = None,
    average: Annotated[
        bool, typer.Option("--average", help="Add a mean over benchmarks, although they measure different things.")
    ] = False,
    published: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="The papers' tables over several benchmarks with our rows below theirs, in place of the card: "
            "weave-3, weave-4, weaver-3, with commas.",
        ),
    ] = None,
    open: OpenOption = False,
    benchmark: OwnBenchmarkOption = None,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Show the score card: headline scores with intervals, and costs.

    The page (html) also has every benchmark's main table. With --published: the tables in which papers compare models
    over several benchmarks, with our rows.

    Examples:

      weft suite report

      weft suite report --format html --open

      weft suite report --format latex --out card.tex

      weft suite report --published weave-3,weave-4,weaver-3
    """
    from weft.errors import UserError
    from weft.evaluation.imports.store import load
    from weft.evaluation.suite import build_score_card
    from weft.report import score_card
    from weft.report.render import render
    from weft.report.select import parse_choices

    check_format(format, FORMATS)
    if published is not None:
        if average:
            raise UserError("--average is of the score card: leave it out, or leave out --published")
        choices = parse_choices({"tables": tables, "intervals": intervals, "label": label}, format)
        _report_papers(published, format, out, choices, benchmark, home, open=open)
        return
    if format == "text":
        _print_score_card(home, benchmark, average=average)
        return
    imported = load(home)
    journal = _open_journal(home, needed=not imported)
    card = build_score_card(journal, benchmark, average=average, imported=imported)
    if format != "html":
        choices = parse_choices({"tables": tables, "intervals": intervals, "label": label}, format)
        tables_with_rows = [table for table in (card.scores, card.costs) if table.rows]
        print_or_write(render(tables_with_rows, [], format, choices), out)
        return
    path = out or Path("reports") / "suite.html"
    score_card.write(card.scores, card.costs, card.runs, journal, path, benchmark)
    say(path)
    if open:
        open_in_browser(path.absolute().as_uri())


@app.command("import")
def import_results(
    results: Annotated[
        Path,
        typer.Argument(
            metavar="PATH",
            help="The folder of one run of evalscope, lmms-eval or VLMEvalKit, or its results; or the results of "
            "DPG-Bench's script.",
        ),
    ],
    model: Annotated[str, typer.Option(metavar="NAME", help="The model, as the score card names it.")],
    metric: Annotated[str, typer.Option(metavar="NAME", help="Which metric, if a task has several.")] = "",
    full: Annotated[
        float | None,
        typer.Option(metavar="1|100", help="Full marks on the tool's scale, if its files do not say."),
    ] = None,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Put the results of another tool on the score card: MMMU, MathVista, MMBench, DPG-Bench and others.

    The card names tool, version, task and judge. A request that failed is unscored, whatever the tool made of it; the
    interval comes from the tool's samples. A run on a part of a task (--limit) is refused. The scores are kept in
    HOME/imported, one file each; remove a file to take its score off the card.

    Examples:

      weft suite import outputs/20261119_135539 --model bagel

      weft suite import logs/bagel/20261119_135539_results.json --model bagel --metric mmmu_acc

      weft suite import outputs/bagel/T20261119 --model bagel --full 1

      weft suite import images/dpg-bench_20261119-135539_results.txt --model bagel
    """
    import time

    from weft.errors import UserError
    from weft.evaluation.imports.score import FULL_MARKS
    from weft.evaluation.imports.store import read_results, save
    from weft.report.select import format_with_interval
    from weft.types import Cell

    if full is not None and full not in FULL_MARKS:
        raise UserError("--full: give 1 or 100")
    for score in read_results(results, model, metric, full):
        save(score, home, time.time())
        cell = Cell(score.value, score.scored, score.expected, score.low, score.high, digits=1)
        say(f"{score.model}, {score.column}: {format_with_interval(cell, 1)}")
        say(f"  {score.describe()}")
    say("the score card: weft suite report")


def _open_journal(home: Path, *, needed: bool) -> "Journal | None":
    """Open a home's journal; None where there is none and none is needed."""
    from weft.store.schema import journal_file
    from weft.workspace import open_journal

    if not needed and not journal_file(home).exists():
        return None
    return open_journal(home)


def _report_papers(
    names: str, format: str, out: Path | None, choices: "Choices", benchmark: Any, home: Path, *, open: bool
) -> None:
    """Print or write the papers' tables with our rows, of which there may be none yet."""
    from weft.cli.screen import Screen
    from weft.cli.tables import print_table
    from weft.evaluation.imports.store import load
    from weft.evaluation.suite import find_suite_runs
    from weft.report import score_card
    from weft.report.paper_cards import build_paper_tables, parse_papers
    from weft.report.render import render

    cards = parse_papers(names)
    journal = _open_journal(home, needed=False)
    runs = {} if journal is None else find_suite_runs(journal, benchmark)
    tables = build_paper_tables(cards, runs, journal, load(home), benchmark)
    if format == "text":
        screen = Screen(soft_wrap=True)
        for table in tables:
            print_table(screen, table)
            screen.print(table.note)
        return
    if format != "html":
        print_or_write(render(tables, [], format, choices), out)
        return
    path = out or Path("reports") / "papers.html"
    score_card.write_papers(tables, path)
    say(path)
    if open:
        open_in_browser(path.absolute().as_uri())


def _print_score_card(home: Path, benchmark: Any = None, *, average: bool = False) -> None:
    from weft.cli.screen import Screen
    from weft.cli.tables import print_table
    from weft.evaluation.imports.store import load
    from weft.evaluation.suite import build_score_card

    imported = load(home)
    journal = _open_journal(home, needed=not imported)
    card: ScoreCard = build_score_card(journal, benchmark, average=average, imported=imported)
    screen = Screen(soft_wrap=True)
    for table in (card.scores, card.costs):
        if not table.rows:
            continue
        print_table(screen, table, intervals=True)
        screen.print(table.note)
    for model, run_ids in card.runs.items():
        sections = [f"{section} {run_id}" for section, run_id in run_ids.items()]
        screen.print(f"{model}: {', '.join(sections)}")
