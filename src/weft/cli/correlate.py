"""weft correlate"""

from pathlib import Path
from typing import Annotated, Any

import typer

from weft.cli.options import DEFAULT_HOME, HomeOption, OwnBenchmarkOption, check_format, complete_run, split_names
from weft.cli.terminal import print_or_write, say

TABLE_FORMATS = ("md", "latex", "csv", "json")


def correlate(
    run: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN", help="Runs of one benchmark, or the name of a sweep.", autocompletion=complete_run
        ),
    ] = None,
    published: Annotated[
        str, typer.Option(metavar="NAME", help="The published rows of this benchmark, alone or with the runs.")
    ] = "",
    over: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="metrics, groups, or an axis of the benchmark, such as type, for runs alone."
        ),
    ] = "metrics",
    metric: Annotated[
        str,
        typer.Option(metavar="NAME", help="groups: the metric. Default: the headline score, or the average column."),
    ] = "",
    table: Annotated[
        str,
        typer.Option(metavar="NAME", help="From the columns of this table: its number, or a part of its title."),
    ] = "",
    columns: Annotated[str, typer.Option(metavar="NAMES", help="Only these, in this order: A,B,C.")] = "",
    without: Annotated[
        str, typer.Option(metavar="NAMES", help="Leave out rows with these in their names, such as Human.")
    ] = "",
    method: Annotated[str, typer.Option(metavar="NAME", help="pearson or spearman.")] = "pearson",
    split: Annotated[
        str,
        typer.Option(metavar="NAME", help="Also the gap between two kinds of models, such as open, or group."),
    ] = "",
    format: Annotated[
        str, typer.Option("--format", "-f", metavar="FORMAT", help=f"{', '.join(TABLE_FORMATS)}.")
    ] = "md",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="PATH", help="Where to write the tables. Default: terminal.")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Also draw a heat map: path without .png, .svg and .pdf, which are added."),
    ] = None,
    benchmark: OwnBenchmarkOption = None,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Correlate metrics, or groups, over models.

    A point is a model: a run of yours, or a row of the paper. Correlations have 95% intervals, which are wide for few
    models.

    Examples:

      weft correlate --published rover-ig

      weft correlate --published rover-ig --over groups --metric RV --split group

      weft correlate --published planviz --table editing --without Human

      weft correlate ours bagel copy janus --over type --plot paper/types

      weft correlate ours bagel --published weave --table 2 --columns KP,VC --format latex
    """
    from weft.errors import UserError
    from weft.report import plots
    from weft.report.correlate import correlate_models
    from weft.report.render import render
    from weft.report.select import Choices
    from weft.results.run import load_run
    from weft.results.sweeps import expand_names
    from weft.workspace import open_journal

    check_format(format, TABLE_FORMATS)
    runs: list[Any] = []
    if run:
        journal = open_journal(home)
        runs = [load_run(journal, name, benchmark) for name in expand_names(journal, run)]
    correlation = correlate_models(
        runs,
        published,
        over=over,
        metric=metric,
        table=table,
        columns=split_names(columns),
        without=split_names(without),
        method=method,  # pyright: ignore[reportArgumentType]: it is checked there
        split=split,
    )
    print_or_write(render(correlation.tables, [], format, Choices(intervals=format == "latex")), out)
    if plot is None:
        return
    if correlation.plot is None:
        raise UserError("--plot: no correlation is defined")
    for path in plots.save(correlation.plot.chart, plot):
        say(path)
