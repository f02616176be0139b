"""weft report"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.options import DEFAULT_HOME, HomeOption, OpenOption, OwnBenchmarkOption, check_format, complete_run
from weft.cli.terminal import open_in_browser, print_or_write, say

if TYPE_CHECKING:
    from weft.results.run import Run

REPORT_FORMATS = ("html", "md", "latex", "csv", "json", "parquet")
REPORTS = Path("reports")
MAX_NAME_CHARS = 200


def report(
    run: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN",
            help="Tags, ids, their beginnings, 'last', or the name of a sweep. Default: last.",
            autocompletion=complete_run,
        ),
    ] = None,
    format: Annotated[
        str, typer.Option("--format", "-f", metavar="FORMAT", help=f"{', '.join(REPORT_FORMATS)}.")
    ] = "html",
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
        str | None,
        typer.Option(
            metavar="NAME",
            help="No run: the published tables of this benchmark, as text; `arena`: win rates on OpenING.",
        ),
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
            help="seed: runs that differ only in their seed are one row, with mean and standard deviation. One of each "
            "group is enough to name all.",
        ),
    ] = "",
    by: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="One table and one plot by one to three settings: model, strategy, version, seed, images (the input "
            "format), any option of the benchmark or the model; an axis, such as class, becomes columns.",
        ),
    ] = "",
    metric: Annotated[
        str, typer.Option(metavar="NAME", help="by: the metric that is shown. Default: the headline score.")
    ] = "",
    baseline: Annotated[
        str,
        typer.Option(
            metavar="VALUE",
            help="by: what changes are from: a value, such as none, or NAME=VALUE,... Default: the first of the last "
            "setting.",
        ),
    ] = "",
    row_groups: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Rows in groups, each with its own best and second, by what weft.toml (about = {...}) and the paper "
            "say of the models: open, size, group, modality, in_context, format, type.",
        ),
    ] = "",
    with_published: Annotated[
        bool,
        typer.Option(
            "--with-published", help="html: also draw the paper's tables: our rows with the published ones, as plots."
        ),
    ] = False,
    correct: Annotated[
        bool,
        typer.Option(
            "--correct", help="Add the headline score corrected by annotations (`weft rate`), next to the plain one."
        ),
    ] = False,
    caption: Annotated[
        str, typer.Option(metavar="TEXT", help="latex: caption of the one table that is shown, written in LaTeX.")
    ] = "",
    label: Annotated[
        str,
        typer.Option(
            metavar="TEXT",
            help="latex: label of the one table that is shown; of several, how labels begin. Default: tab:weft, as in "
            "tab:weft-weave-1.",
        ),
    ] = "",
    cite: Annotated[
        str,
        typer.Option(
            metavar="KEY", help="latex: cite this key after the names of published rows, in place of a dagger."
        ),
    ] = "",
    rank: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT",
            help="latex: the rows that compete for bold and underlined, as in --rows, or 'none'. Default: all shown.",
        ),
    ] = None,
    top: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="latex: mark the best N of a column: bold, underlined, in italics. Default: 2; IMUG-Bench's paper has "
            "3.",
            show_default=False,
        ),
    ] = 0,
    benchmark: OwnBenchmarkOption = None,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Write the tables, the plots and every dialogue of a run.

    The paper's tables have our rows next to the published ones. Works while the run is in progress.

    Examples:

      weft report last --open

      weft report weave-bagel-1a2b3c4d weave-copy-5e6f --format latex --out table.tex

      weft report last --format latex --tables 1 --rows ours,bagel --columns Avg,Science --intervals

      weft report last --format latex --tables 1 --caption "Results" --label tab:main --cite weave

      weft report ours bagel --format latex --tables 1 --rank ours    # marks among our rows alone

      weft report ours bagel --format latex --tables "Table 2" --top 3    # the third in italics

      weft report last --over seed --format md         # all runs that differ only in their seed

      weft report ours-s0 bagel-s0 --over seed --format latex    # each with its other seeds

      weft report RUN RUN RUN --by model,history --baseline none --open

      weft report RUN RUN --by strategy,class --metric points --format latex    # classes as columns

      weft report my-sweep --by temperature --format md      # all runs of a sweep

      weft report last --format csv --tables "by class" --rows ours

      weft report last --single-file --out mail-me.html

      weft report last --correct --format md           # corrected by annotations

      weft report ours bagel --row-groups open --format md    # each group with a best row

      weft report ours bagel --with-published --open   # the paper's tables as plots

      weft report --published imug --format md

      weft report --published arena

      weft report last --benchmark garden.py:Garden
    """
    check_format(format, REPORT_FORMATS)
    by_settings = {"by": by, "metric": metric, "baseline": baseline}
    is_by_settings = any(by_settings.values())
    by_settings["row_groups"] = row_groups
    _check_combination(run, format, published, single_file=single_file, correct=correct, is_by_settings=is_by_settings)
    _check_with_published(with_published, format, published)
    selection: dict[str, Any] = {
        "columns": columns,
        "rows": rows,
        "tables": tables,
        "intervals": intervals,
        "label": label,
        "caption": caption,
        "cite": cite,
        "rank": rank,
        "top": top,
    }
    if published is not None:
        print_or_write(_render_published(published, format, selection, row_groups), out)
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
            runs,
            out or default_path,
            home=home,
            single_file=single_file,
            over=over,
            correct=correct,
            with_published=with_published,
            **by_settings,
        )
        say(page)
        if open:
            open_in_browser(page.absolute().as_uri())
    elif format == "parquet":
        path = out or default_path.with_name(default_path.name + ".parquet")
        write_parquet(runs, path)
        say(path)
    else:
        text = api.report(runs, format, over=over, correct=correct, home=home, **by_settings, **selection)
        print_or_write(text, out)


def _check_combination(
    run: list[str] | None,
    format: str,
    published: str | None,
    *,
    single_file: bool,
    correct: bool,
    is_by_settings: bool,
) -> None:
    """Raise UserError for options that exclude each other."""
    from weft.errors import UserError

    if published is not None and run:
        raise UserError("--published takes no run: leave out the run, or leave out --published")
    if single_file and format != "html":
        raise UserError(f"--single-file is for html, not for {format}")
    if published is not None and format == "parquet":
        raise UserError("--published has only tables: choose md, latex, csv or json")
    if is_by_settings and published is not None:
        raise UserError("--by is a table of runs: leave out --published")
    if is_by_settings and format == "parquet":
        raise UserError("--by is a table of runs' numbers: leave out --format parquet")
    if correct and published is not None:
        raise UserError("--correct is a table of a run's report: leave out --published")
    if correct and format == "parquet":
        raise UserError("--correct is a table of a run's report: leave out --format parquet")


def _check_with_published(with_published: bool, format: str, published: str | None) -> None:
    """Raise UserError where there is nothing to draw: text has no plots."""
    from weft.errors import UserError

    if with_published and (format != "html" or published is not None):
        raise UserError("--with-published draws plots of a run's html report; tables always have the published rows")


def _render_published(name: str, format: str, selection: dict[str, Any], row_groups: str) -> str:
    """Return a benchmark's published tables as text; as Markdown unless another format was chosen."""
    from weft.benchmarks import load_benchmark
    from weft.report.published import build_published_tables
    from weft.report.render import render
    from weft.report.row_groups import arrange_rows
    from weft.report.select import parse_choices

    if format == "html":
        format = "md"
    choices = parse_choices(selection, format)
    benchmark = load_benchmark(name)
    return render(arrange_rows(build_published_tables(benchmark), [], row_groups), [], format, choices, benchmark)


def _load_runs(names: list[str], home: Path, benchmark: Any, over: str) -> "list[Run]":
    from weft.results.run import find_seed_siblings, load_run
    from weft.results.sweeps import expand_names
    from weft.workspace import open_journal

    journal = open_journal(home)
    runs = [load_run(journal, name, benchmark) for name in expand_names(journal, names)]
    if over != "seed":
        return runs
    named = {run.id: run for run in runs}
    for run in runs:
        siblings = find_seed_siblings(journal, run.id)
        if len(named.keys() & set(siblings)) == 1:  # named for all of its group
            named |= {sibling: load_run(journal, sibling, benchmark) for sibling in siblings if sibling != run.id}
    return list(named.values())


def _default_path(runs: "list[Run]") -> Path:
    """Return reports/RUN; the ids of further runs are shortened to their last part."""
    others = [run.id.rpartition("-")[2] for run in runs[1:]]
    return REPORTS / "+".join([runs[0].id, *others])[:MAX_NAME_CHARS]
