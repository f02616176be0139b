"""weft suite"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.help import HelpGroup
from weft.cli.options import (
    DEFAULT_HOME,
    ConcurrencyOption,
    DryRunOption,
    HomeOption,
    JudgeConcurrencyOption,
    JudgeOption,
    LimitOption,
    NoProbeOption,
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

app = typer.Typer(cls=HelpGroup, no_args_is_help=True, rich_markup_mode=None)
FORMATS = ("text", "html", "md", "latex", "csv", "json")


@app.callback()
def suite() -> None:
    """Run several benchmarks with several models: one score card.

    The suite is in the [suite.BENCHMARK] sections of weft.toml, or of a file given by --config.

    Examples:

      weft suite run --models bagel,janus --judge judge

      weft suite report --format html --open
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
    dry_run: DryRunOption = False,
    no_probe: NoProbeOption = False,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Run every benchmark of the suite with every model.

    One after another; the same command again runs only what is missing. A model that cannot be reached does not stop
    the others. Exit code: 0 if everything is scored; 1 if something is missing; 130 if interrupted.

    Examples:

      weft suite run --models bagel,janus --judge judge

      weft suite run --models bagel --judge judge --config suite.toml --sample 50 --budget 20

      weft suite report
    """
    import sys
    from functools import partial

    from weft.cli.several import Job, run_jobs
    from weft.evaluation.config import default_probe
    from weft.evaluation.suite import build_jobs, check_names, read_entries, split_models
    from weft.models.config import read_config

    entries = read_entries(read_config(), only or ())
    fields: dict[str, Any] = {
        "limit": limit,
        "sample": sample,
        "seed": seed,
        "home": home,
        "probe": not no_probe and default_probe(),
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
    open: OpenOption = False,
    benchmark: OwnBenchmarkOption = None,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Show the score card: headline scores with intervals, and costs.

    The page (html) also has every benchmark's main table.

    Examples:

      weft suite report

      weft suite report --format html --open

      weft suite report --format latex --out card.tex
    """
    from weft.evaluation.suite import build_score_card
    from weft.report import score_card
    from weft.report.render import render
    from weft.report.select import parse_choices
    from weft.workspace import open_journal

    check_format(format, FORMATS)
    if format == "text":
        _print_score_card(home, benchmark, average=average)
        return
    journal = open_journal(home)
    card = build_score_card(journal, benchmark, average=average)
    if format != "html":
        choices = parse_choices({"tables": tables, "intervals": intervals, "label": label}, format)
        print_or_write(render([card.scores, card.costs], [], format, choices), out)
        return
    path = out or Path("reports") / "suite.html"
    score_card.write(card.scores, card.costs, card.runs, journal, path, benchmark)
    say(path)
    if open:
        open_in_browser(path.absolute().as_uri())


def _print_score_card(home: Path, benchmark: Any = None, *, average: bool = False) -> None:
    from weft.cli.screen import Screen
    from weft.cli.tables import print_table
    from weft.evaluation.suite import build_score_card
    from weft.workspace import open_journal

    card: ScoreCard = build_score_card(open_journal(home), benchmark, average=average)
    screen = Screen(soft_wrap=True)
    for table in (card.scores, card.costs):
        print_table(screen, table, intervals=True)
        screen.print(table.note)
    for model, run_ids in card.runs.items():
        sections = [f"{section} {run_id}" for section, run_id in run_ids.items()]
        screen.print(f"{model}: {', '.join(sections)}")
