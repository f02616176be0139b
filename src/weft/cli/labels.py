"""weft labels"""

from pathlib import Path
from typing import Annotated

import typer

from weft.cli.options import DEFAULT_HOME, HomeOption, OwnBenchmarkOption, check_format, complete_run
from weft.cli.terminal import print_or_write

TABLE_FORMATS = ("md", "latex", "csv", "json")


def labels(
    run: Annotated[
        list[str],
        typer.Argument(metavar="RUN...", help="Runs, or the name of a sweep.", autocompletion=complete_run),
    ],
    format: Annotated[
        str, typer.Option("--format", "-f", metavar="FORMAT", help=f"{', '.join(TABLE_FORMATS)}.")
    ] = "md",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="PATH", help="Where to write the tables. Default: terminal.")
    ] = None,
    benchmark: OwnBenchmarkOption = None,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Count labels in the words and in the images of documents, by OCR.

    A document may speak of triangle ABC and show A, B and D. Labels are points such as A or B', and quoted texts. These
    are counts for a reader, no score: OCR misses some labels. Needs the extra ocr; no model is called.

    Examples:

      weft labels last

      weft labels ours other --format csv --out labels.csv
    """
    from weft.report.labels import measure_labels
    from weft.report.render import render
    from weft.report.select import Choices
    from weft.results.run import load_run
    from weft.results.sweeps import expand_names
    from weft.workspace import open_blobs, open_journal

    check_format(format, TABLE_FORMATS)
    journal = open_journal(home)
    runs = [load_run(journal, name, benchmark) for name in expand_names(journal, run)]
    print_or_write(render(measure_labels(runs, open_blobs(home)), [], format, Choices()), out)
