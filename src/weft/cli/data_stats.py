"""weft data stats"""

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli.options import check_format
from weft.cli.terminal import print_or_write, say

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from weft.datasets.measure import DatasetReport
    from weft.types import Table

STATS_FORMATS = ("table", "md", "latex", "csv", "json")


def stats(
    benchmark: Annotated[
        str, typer.Argument(metavar="BENCHMARK", help="Which benchmark's format it is in, or weave-100k.")
    ],
    folder: Annotated[Path, typer.Argument(metavar="DATA", help="The dataset's folder.")],
    format: Annotated[
        str, typer.Option("--format", "-f", metavar="FORMAT", help=f"{', '.join(STATS_FORMATS)}.")
    ] = "table",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="PATH", help="Where to write the tables. Default: terminal.")
    ] = None,
    tables: Annotated[
        list[str] | None,
        typer.Option(metavar="NAMES", help="Only these tables: numbers (1,3), or parts of their titles."),
    ] = None,
    plots: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Also draw plots into this folder, as PNG, SVG and PDF.")
    ] = None,
    no_repeats: Annotated[
        bool,
        typer.Option("--no-repeats", help="Do not look for repeated tasks and images: images are only measured."),
    ] = False,
) -> None:
    """Count a dataset: dialogues, turns, images, words, by group, and what it has more than once.

    The tables have the columns that the benchmark's paper prints, beside the paper's own numbers. The dataset is
    streamed; 100,000 dialogues need about half a gigabyte.

    Examples:

      weft data stats weave data/weave

      weft data stats weave-100k data/weave-100k --plots figures

      weft data stats imug chats --format latex --tables sequences --out sequences.tex

      weft data stats planviz mytasks --format json --no-repeats
    """
    from weft.datasets.measure import measure_dataset
    from weft.report.select import parse_choices, select_tables

    check_format(format, STATS_FORMATS)
    text_format = "md" if format == "table" else format
    choices = parse_choices({"tables": tables}, text_format)
    with _show_progress() as on_progress:
        report = measure_dataset(benchmark, folder, repeats=not no_repeats, on_progress=on_progress)
    if format == "table" and out is None:
        _print_tables(list(select_tables(report.tables, choices).values()))
    else:
        from weft.report.render import render

        print_or_write(render(report.tables, [], text_format, choices), out)
    if format == "table" or out is not None:
        _print_problems(report)
    if plots is not None:
        _write_plots(report, plots)


@contextmanager
def _show_progress() -> "Generator[Callable[[int, int], None]]":
    """Show a bar where standard error is a terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from weft.cli.screen import Screen

    columns = (TextColumn("records"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(compact=True))
    screen = Screen(stderr=True)
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as bar:
        task = bar.add_task("records", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _print_tables(tables: "Sequence[Table]") -> None:
    from weft.cli.screen import Screen
    from weft.cli.tables import print_table

    screen = Screen()
    for table in tables:
        print_table(screen, table)


def _print_problems(report: "DatasetReport") -> None:
    if report.left_out:
        say(f"{report.left_out} of {report.records} records cannot be used: `weft data check` names them")


def _write_plots(report: "DatasetReport", folder: Path) -> None:
    from weft.report import plots
    from weft.report.dataset_plots import build_dataset_plots

    for plot in build_dataset_plots(report.counts):
        plots.save(plot.chart, folder / plot.name)
        say(folder / f"{plot.name}.svg")
