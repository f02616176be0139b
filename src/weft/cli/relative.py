"""weft relative"""

from pathlib import Path
from typing import Annotated

import typer

from weft.cli.options import DEFAULT_HOME, HomeOption, OwnBenchmarkOption, check_format, complete_run
from weft.cli.terminal import print_or_write, say

TABLE_FORMATS = ("md", "latex", "csv", "json")


def relative(
    run: Annotated[
        list[str],
        typer.Argument(metavar="RUN...", help="Runs of one benchmark, or a sweep.", autocompletion=complete_run),
    ],
    baseline: Annotated[
        list[str] | None,
        typer.Option(
            metavar="BASE|RUN=BASE", help="The run that others are compared with. Repeatable. Default: the first run."
        ),
    ] = None,
    clip: Annotated[
        str,
        typer.Option(
            metavar="FOLDER", help="CLIP's weights, for CLIP-I and CLIP-T: a folder or a repository (extra local)."
        ),
    ] = "",
    text: Annotated[
        str, typer.Option(metavar="NAME", help="CLIP-T against what was asked (request), or the reference's text.")
    ] = "request",
    device: Annotated[str, typer.Option(metavar="NAME", help="Where CLIP runs: cpu, cuda, mps. Default: best.")] = "",
    charts: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Also draw bars with their percentages: PNG, SVG and PDF.")
    ] = None,
    format: Annotated[
        str, typer.Option("--format", "-f", metavar="FORMAT", help=f"{', '.join(TABLE_FORMATS)}.")
    ] = "md",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="PATH", help="Where to write. Default: the terminal.")
    ] = None,
    benchmark: OwnBenchmarkOption = None,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Compare every metric of runs with a baseline, in percent.

    As in ROVER's Figure 6: a model that thinks beside the same model without, a cascade beside the model that draws in
    it. CLIP-I is the similarity of the image before and after, CLIP-T that of the image and a text; both are computed
    here, from the stored images. Nothing is asked and nothing is stored.

    Examples:

      weft relative bagel bagel-think

      weft relative flux cascade bagel think --baseline cascade=flux --baseline think=bagel

      weft relative bagel bagel-think --clip openai/clip-vit-large-patch14 --charts figures

      weft relative bagel bagel-think --clip weights/clip --text reference --format latex
    """
    from weft.report import plots
    from weft.report.relative import compare_runs
    from weft.report.render import render
    from weft.report.select import Choices
    from weft.results.run import load_run
    from weft.results.sweeps import expand_names
    from weft.workspace import open_journal

    check_format(format, TABLE_FORMATS)
    journal = open_journal(home)
    runs = [load_run(journal, name, benchmark) for name in expand_names(journal, run)]
    relative_scores = compare_runs(runs, baseline or (), clip=clip, text=text, device=device)
    print_or_write(render([relative_scores.table], [], format, Choices(intervals=format == "latex")), out)
    if charts is not None and relative_scores.plot is not None:
        for path in plots.save(relative_scores.plot.chart, charts / relative_scores.plot.name):
            say(path)
