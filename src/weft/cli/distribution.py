"""weft distribution"""

from pathlib import Path
from typing import Annotated

import typer

from weft.cli.options import DEFAULT_HOME, HomeOption, OwnBenchmarkOption, check_format, complete_run, split_names
from weft.cli.terminal import print_or_write, say

TABLE_FORMATS = ("md", "latex", "csv", "json")


def distribution(
    run: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN...", help="Runs of one benchmark, or the name of a sweep.", autocompletion=complete_run
        ),
    ],
    by: Annotated[
        str,
        typer.Option(
            metavar="NAMES", help="Axes of the benchmark: A,B. Default: its first two, or one of many groups."
        ),
    ] = "",
    metric: Annotated[str, typer.Option(metavar="NAMES", help="Only these metrics: A,B.")] = "",
    format: Annotated[
        str, typer.Option("--format", "-f", metavar="FORMAT", help=f"{', '.join(TABLE_FORMATS)}.")
    ] = "md",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="PATH", help="Where to write the tables. Default: terminal.")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Also draw them: path without .png, .svg and .pdf, which are added."),
    ] = None,
    benchmark: OwnBenchmarkOption = None,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Show how scores are distributed, by group and metric.

    Mean, standard deviation, quartiles, and the percentage of scores in seven bins: zero, five between, full marks.

    Examples:

      weft distribution last --plot paper/figure-6

      weft distribution ours bagel copy --by subtask,task --metric correctness --format latex
    """
    from weft.report import plots
    from weft.report.distributions import build_distributions
    from weft.report.render import render
    from weft.report.select import Choices
    from weft.results.run import load_run
    from weft.results.sweeps import expand_names
    from weft.workspace import open_journal

    check_format(format, TABLE_FORMATS)
    journal = open_journal(home)
    runs = [load_run(journal, name, benchmark) for name in expand_names(journal, run)]
    distributions = build_distributions(runs, split_names(by), split_names(metric))
    print_or_write(render(distributions.tables, [], format, Choices()), out)
    if plot is not None:
        for path in plots.save(distributions.plot.chart, plot):
            say(path)
