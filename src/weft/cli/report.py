"""weft report"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.options import DEFAULT_HOME, HomeOption, OpenOption, OwnBenchmarkOption, check_format, complete_run
from weft.cli.terminal import open_in_browser, print_or_write, say

if TYPE_CHECKING:
    from weft.results.run import Run

FORMATS = ("html", "md", "latex", "csv", "json", "parquet")
REPORTS = Path("reports")
MAX_NAME_CHARS = 200


def report(
    run: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN", help="Tags, ids, their beginnings, or 'last'. Default: last.", autocompletion=complete_run
        ),
    ] = None,
    format: Annotated[str, typer.Option("--format", "-f", metavar="FORMAT", help=f"{', '.join(FORMATS)}.")] = "html",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="PATH", help="Where to write. Default: reports/RUN for html, else the terminal."
        ),
    ] = None,
    open: OpenOption = False,
    single_file: Annotated[
        bool, typer.Option("--single-file", help="html as one file with its images inside; for small runs.")
    ] = False,
    published: Annotated[
        str | None, typer.Option(metavar="NAME", help="No run: the published tables of this benchmark, as text.")
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(metavar="NAMES", help="Only these columns, in this order: A,B,C. Not for html and parquet."),
    ] = None,
    rows: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="Only rows with this text in their label, or 'ours', 'published'."),
    ] = None,
    tables: Annotated[
        list[str] | None,
        typer.Option(metavar="NAMES", help="Only these tables: numbers (1,3), or parts of their titles."),
    ] = None,
    intervals: Annotated[
        bool, typer.Option("--intervals", help="latex: 95% intervals under values; the other formats always have them.")
    ] = False,
    over: Annotated[
        str,
        typer.Option(
            metavar="seed",
            help="seed: runs that differ only in their seed are one row, with mean and standard deviation. One of them "
            "is enough to name all.",
        ),
    ] = "",
    correct: Annotated[
        bool,
        typer.Option(
            "--correct", help="Add the headline score corrected by annotations (`weft rate`), next to the plain one."
        ),
    ] = False,
    label: Annotated[
        str, typer.Option(metavar="TEXT", help="latex: prefix of labels. Default: tab:weft, as in tab:weft-weave-1.")
    ] = "",
    benchmark: OwnBenchmarkOption = None,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Write the tables, the plots and every dialogue of a run.

    The paper's tables have our rows next to the published ones. Works while the run is in progress.

    Examples:

      weft report last --open

      weft report weave-bagel-1a2b3c4d weave-copy-5e6f --format latex --out table.tex

      weft report last --format latex --tables 1 --rows ours,bagel --columns Avg,Science --intervals

      weft report last --over seed --format md         # all runs that differ only in their seed

      weft report last --format csv --tables "by class" --rows ours

      weft report last --single-file --out mail-me.html

      weft report last --correct --format md           # corrected by annotations

      weft report --published imug --format md

      weft report last --benchmark garden.py:Garden
    """
    check_format(format, FORMATS)
    _check_combination(run, format, published, single_file=single_file, correct=correct)
    selection = {"columns": columns, "rows": rows, "tables": tables, "intervals": intervals, "label": label}
    if published is not None:
        print_or_write(_render_published(published, format, selection), out)
        return
    from weft import api
    from weft.report.parquet import write as write_parquet
    from weft.report.select import parse_choices

    parse_choices(selection, format)  # refuses a selection that the format cannot show, before any run is read
    runs = _load_runs(run or ["last"], home, benchmark, over)
    default_path = _default_path(runs)
    if format == "html":
        if single_file:
            default_path = default_path.with_name(default_path.name + ".html")
        page = api.write_report(
            runs, out or default_path, home=home, single_file=single_file, over=over, correct=correct
        )
        say(page)
        if open:
            open_in_browser(page.absolute().as_uri())
    elif format == "parquet":
        path = out or default_path.with_name(default_path.name + ".parquet")
        write_parquet(runs, path)
        say(path)
    else:
        print_or_write(api.report(runs, format, over=over, correct=correct, home=home, **selection), out)


def _check_combination(
    run: list[str] | None, format: str, published: str | None, *, single_file: bool, correct: bool
) -> None:
    """Raise UserError for options that exclude each other."""
    from weft.errors import UserError

    if published is not None and run:
        raise UserError("--published takes no run: leave out the run, or leave out --published")
    if single_file and format != "html":
        raise UserError(f"--single-file is for html, not for {format}")
    if published is not None and format == "parquet":
        raise UserError("--published has only tables: choose md, latex, csv or json")
    if correct and published is not None:
        raise UserError("--correct is a table of a run's report: leave out --published")
    if correct and format == "parquet":
        raise UserError("--correct is a table of a run's report: leave out --format parquet")


def _render_published(name: str, format: str, selection: dict[str, Any]) -> str:
    """Return a benchmark's published tables as text; as Markdown unless another format was chosen."""
    from weft.benchmarks import load_benchmark
    from weft.report.render import render
    from weft.report.select import parse_choices

    if format == "html":
        format = "md"
    choices = parse_choices(selection, format)
    benchmark = load_benchmark(name)
    return render(list(benchmark.tables([])), [], format, choices, benchmark)


def _load_runs(names: list[str], home: Path, benchmark: Any, over: str) -> "list[Run]":
    from weft.results.run import find_seed_siblings, load_run
    from weft.workspace import open_journal

    journal = open_journal(home)
    runs = [load_run(journal, name, benchmark) for name in names]
    if over == "seed" and len(runs) == 1:
        siblings = find_seed_siblings(journal, runs[0].id)
        return [load_run(journal, sibling, benchmark) for sibling in siblings]
    return runs


def _default_path(runs: "list[Run]") -> Path:
    """Return reports/RUN; the ids of further runs are shortened to their last part."""
    others = [run.id.rpartition("-")[2] for run in runs[1:]]
    return REPORTS / "+".join([runs[0].id, *others])[:MAX_NAME_CHARS]
