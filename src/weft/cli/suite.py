"""weft suite"""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli import options as o
from weft.cli.terminal import say

if TYPE_CHECKING:
    from weft.evaluation.session import Session
    from weft.evaluation.suite import ScoreCard

app = typer.Typer(no_args_is_help=True, help="Several benchmarks, some models, one score card.", rich_markup_mode=None)


@app.callback()
def suite() -> None:
    """Several benchmarks, some models, one score card: [suite.BENCHMARK] sections of weft.toml, or of a file given by
    --config."""


@app.command()
def run(
    models: Annotated[list[str], typer.Option(help="Models as for `weft run`, with commas between them. Repeatable.")],
    judge: o.Judge = None,
    only: Annotated[list[str] | None, typer.Option(help="Only this section of the suite. Repeatable.")] = None,
    limit: o.Limit = None,
    sample: o.Sampled = None,
    seed: Annotated[
        int | None, typer.Option(help="Which samples --sample draws. (A model's seed stands in weft.toml.)")
    ] = None,
    concurrency: o.Concurrency = None,
    judge_concurrency: o.JudgeConcurrency = None,
    budget: Annotated[
        float | None, typer.Option(min=0, help="Stop before more than this many USD are spent by all of it.")
    ] = None,
    dry_run: o.DryRun = False,
    no_probe: o.NoProbe = False,
    home: o.Home = o.Path(".weft"),
) -> None:
    """Run every benchmark of the suite with every model, one after another. The same command again does what is
    missing, and only that.

    A model that cannot be reached costs its own runs alone. Exit code: 0 all scored; 1 something is missing; 130
    interrupted.

    Examples:

      weft suite run --models bagel,janus --judge judge

      weft suite run --models bagel --judge judge --config suite.toml --sample 50 --budget 20

      weft suite report
    """
    import sys

    from weft.evaluation.config import default_probe
    from weft.evaluation.suite import build_jobs, check_names, read_entries, split_models
    from weft.models.config import read_config

    some = read_entries(read_config(), only or ())
    common: dict[str, Any] = {
        "limit": limit,
        "sample": sample,
        "seed": seed,
        "home": home,
        "probe": not no_probe and default_probe(),
    }
    common |= {"concurrency": concurrency, "judge_concurrency": judge_concurrency}
    due = list(build_jobs(some, split_models(models), judge, **common))
    for _, _, job in due:
        check_names(job)  # before the first of them is paid for
    whole = _all(due, budget, dry_run)
    if not dry_run:
        _show(home)
    sys.exit(0 if whole else 1)


def _all(due: Any, budget: float | None, dry_run: bool) -> bool:
    """Whether all of it is done and scored."""
    from msgspec.structs import replace

    from weft.cli.screen import Screen
    from weft.cli.work import foreseen, one_of_several
    from weft.errors import WeftError

    console = Screen(stderr=True, soft_wrap=True)
    whole = True
    left = budget
    for number, (entry, model, job) in enumerate(due, start=1):
        console.print(f"{number} of {len(due)}: {entry.section}, {model}")

        def mark(session: "Session", section: str = entry.section) -> None:
            session.names["suite"] = section

        try:
            if dry_run:
                foreseen(replace(job, budget=left))
                continue
            done, spent = one_of_several(replace(job, budget=left), console, mark)
            if left is None:
                left = None
            else:
                left = max(0.0, left - spent)
            whole = whole and done
        except WeftError as error:  # another may still be reached
            console.print(f"weft: {error}")
            whole = False
    return whole


@app.command()
def report(
    format: Annotated[str, typer.Option("--format", "-f", help="text, html, md, latex, csv or json.")] = "text",
    out: Annotated[
        o.Path | None,
        typer.Option("--out", "-o", help="Where to write. Default: reports/suite for html, else the terminal."),
    ] = None,
    intervals: Annotated[
        bool, typer.Option("--intervals", help="latex: 95% intervals under values; elsewhere they always are.")
    ] = False,
    label: Annotated[str, typer.Option(help="latex: what labels begin with.")] = "",
    tables: Annotated[list[str] | None, typer.Option(help="1: the scores, 2: the costs. Default: both.")] = None,
    average: Annotated[
        bool, typer.Option("--average", help="A mean over benchmarks too, which measure different things.")
    ] = False,
    open: Annotated[bool, typer.Option("--open", help="Show the page in the browser.")] = False,
    benchmark: o.OwnBenchmark = None,
    home: o.Home = o.Path(".weft"),
) -> None:
    """The score card: each benchmark's main number with its interval, and what it cost; as a page with every
    benchmark's main table below.

    Examples:

      weft suite report

      weft suite report --format html --open

      weft suite report --format latex --out card.tex
    """
    from weft.errors import UserError
    from weft.evaluation.suite import build_score_card
    from weft.report import score_card as cards
    from weft.report.render import render
    from weft.report.select import parse_choices
    from weft.workspace import open_journal

    if format not in ("text", "html", "md", "latex", "csv", "json"):
        raise UserError(f"unknown format {format!r}; there are text, html, md, latex, csv, json")
    if format == "text":
        return _show(home, benchmark, average=average)
    journal = open_journal(home)
    made = build_score_card(journal, benchmark, average=average)
    if format != "html":
        chosen = parse_choices({"tables": tables, "intervals": intervals, "label": label}, format)
        text = render([made.scores, made.costs], [], format, chosen)
        if out is None:
            return say(text.rstrip("\n"))
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text, encoding="utf-8")
        return say(out)
    place = out or o.Path("reports") / "suite.html"
    cards.write(made.scores, made.costs, made.runs, journal, place, benchmark)
    say(place)
    if open:
        import webbrowser

        webbrowser.open(place.absolute().as_uri())


def _show(home: o.Path, benchmark: Any = None, *, average: bool = False) -> None:
    from weft.cli.screen import Screen
    from weft.cli.show import show_table
    from weft.evaluation.suite import build_score_card
    from weft.workspace import open_journal

    journal = open_journal(home)
    made: ScoreCard = build_score_card(journal, benchmark, average=average)
    screen = Screen(soft_wrap=True)
    for table in (made.scores, made.costs):
        show_table(screen, table, ranges=True)
        screen.print(table.note)
    for model, some in made.runs.items():
        screen.print(f"{model}: {', '.join(f'{section} {run}' for section, run in some.items())}")
