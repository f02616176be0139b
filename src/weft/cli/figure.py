"""weft figure"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli.options import DEFAULT_HOME, HomeOption, OwnBenchmarkOption, complete_run, split_names
from weft.cli.terminal import say

if TYPE_CHECKING:
    from weft.results.run import Run


def figure(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN... SAMPLE",
            help="Runs or sweeps, and last a sample of theirs, or the beginning of its name; several with commas.",
            autocompletion=complete_run,
        ),
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
    titles: Annotated[str, typer.Option(metavar="NAMES", help="Names over the columns, one for each run: A,B,C.")] = "",
    metrics: Annotated[str, typer.Option(metavar="NAMES", help="Only these scores: A,B; or 'none'.")] = "",
    columns: Annotated[
        int, typer.Option(min=1, max=8, metavar="N", help="How many models are side by side; more follow below.")
    ] = 4,
    lines: Annotated[
        int, typer.Option(min=1, metavar="N", help="Lines of one text; a longer one ends in an ellipsis.")
    ] = 12,
    reference: Annotated[
        bool, typer.Option("--reference", help="A last column with the dataset's reference replies.")
    ] = False,
    thoughts: Annotated[bool, typer.Option("--thoughts", help="Also what models thought, in gray.")] = False,
    benchmark: OwnBenchmarkOption = None,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Draw a dialogue of several models side by side, for a paper.

    Each turn has its prompt, and below it every model's reply with its scores. Several samples stand one below another.
    Writes PDF, SVG and PNG, seven inches wide, with the images inside. `weft data figure` draws a dataset's dialogues.

    Examples:

      weft figure last garden-12

      weft figure ours bagel copy garden-12 --turns 1-3 --out paper/case.pdf

      weft figure ours bagel garden-12,kitchen-3 --out paper/gallery

      weft figure ours bagel garden-12 --titles "Ours,BAGEL" --reference --metrics key_point
    """
    from weft.errors import UserError
    from weft.report.case_drawing import write_case
    from weft.results.run import load_run
    from weft.results.sweeps import expand_names
    from weft.workspace import open_journal

    if len(names) < 2:
        raise UserError("name one run or several, and last a sample: `weft show RUN` names some")
    journal = open_journal(home)
    *run_names, sample = names
    has_scores = metrics != "none"
    runs = [load_run(journal, name, benchmark) for name in expand_names(journal, run_names)]
    paths = write_case(
        runs,
        _split_samples(runs, sample),
        out or "",
        max_lines=lines,
        columns=columns,
        turns=parse_turns(turns),
        titles=split_names(titles),
        metrics=split_names(metrics) if has_scores else (),
        scores=has_scores,
        reference=reference,
        thoughts=thoughts,
    )
    for path in paths:
        say(path)


def _split_samples(runs: "list[Run]", text: str) -> list[str]:
    """Return the samples that a text names, with commas between them; a sample may have a comma in its name."""
    if any(record.sample == text for run in runs for record in run.turns):
        return [text]
    return split_names(text) or [text]


def parse_turns(text: str) -> tuple[int, int] | None:
    """Return the first and the last turn of `3` or `1-3`; None for an empty text."""
    from weft.errors import UserError

    if not text:
        return None
    first, _, last = text.partition("-")
    if not first.isdecimal() or not (last or first).isdecimal() or int(first) < 1 or int(last or first) < int(first):
        raise UserError(f"--turns {text!r}: write a turn, such as 2, or the first and the last, such as 1-3")
    return int(first), int(last or first)
