"""weft data figure"""

from pathlib import Path
from typing import Annotated

import typer

from weft.cli.figure import parse_turns
from weft.cli.terminal import say


def data_figure(
    benchmark: Annotated[
        str, typer.Argument(metavar="BENCHMARK", help="Which benchmark's format it is in, or weave-100k.")
    ],
    folder: Annotated[Path, typer.Argument(metavar="DATA", help="The dataset's folder.")],
    samples: Annotated[
        list[str], typer.Argument(metavar="SAMPLE...", help="Samples of it, or the beginnings of their names.")
    ],
    turns: Annotated[str, typer.Option(metavar="N[-M]", help="Only these turns, counted from 1. Default: all.")] = "",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="PATH",
            help="Path of the files without .pdf, .svg and .png; with one of them, only that file. Default: "
            "figures/SAMPLE.",
        ),
    ] = None,
    references: Annotated[
        bool,
        typer.Option("--references/--no-references", help="Below each prompt its reference reply, if any."),
    ] = True,
    lines: Annotated[
        int, typer.Option(min=1, metavar="N", help="Lines of one text; a longer one ends in an ellipsis.")
    ] = 12,
) -> None:
    """Draw dialogues of a dataset for a paper: prompts and references.

    Several samples stand one below another. No run is needed: `weft figure` draws what models replied. Writes PDF, SVG
    and PNG, seven inches wide, with the images inside.

    Examples:

      weft data figure weave data/weave 12

      weft data figure weave-100k data/weave-100k fusion-7 edit-3 --turns 1-3 --out paper/training

      weft data figure weaverbench data/weaverbench art-1 art-2 --no-references
    """
    import tempfile

    from weft.benchmarks.data_format import load_format
    from weft.datasets.browsed_images import BrowsedImages
    from weft.report.case_drawing import save_cases
    from weft.report.case_figure import build_dataset_case
    from weft.results.samples import find_samples
    from weft.workspace import open_blobs

    data_format = load_format(benchmark)
    selected = parse_turns(turns)
    with tempfile.TemporaryDirectory(prefix="weft-") as scratch:
        images = BrowsedImages(open_blobs(scratch).root)
        cases = [
            build_dataset_case(
                sample, turns=selected, references=references, turn_names=data_format.presentation.turn_names
            )
            for sample in find_samples(data_format.load(folder, images), samples, str(folder))
        ]
        for path in save_cases(cases, [images], out or "", max_lines=lines):
            say(path)
