"""weft train curve"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.terminal import say
from weft.rounding import format_number

if TYPE_CHECKING:
    from weft.training.curves import Curve

USUAL = (  # measures that are shown unless others are named
    *("loss", "understanding", "draw count", "edit count", "build count", "visual loss", "images"),
    *("edit", "copy", "recall", "back"),
)


NO_NAME = r"[^\w.-]+"  # what a name of a file does not have


def curve(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN...", help="Folders of training runs, folders of such, or files of packed runs."),
    ],
    measures: Annotated[
        list[str] | None,
        typer.Option("--measure", "-m", metavar="NAME", help="What to show. Default: losses and the usual scores."),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="PATH", help="The folder for the table and the plots.")] = Path(
        "reports"
    ),
) -> None:
    """Show losses and scores of training runs by checkpoint, as a table and plots.

    Examples:

      weft train curve W

      weft train curve V APV -m "visual loss"
    """
    from weft.errors import UserError
    from weft.training.curves import list_measures, read_curves

    curves = [one for path in runs for one in read_curves(path)]
    known = list_measures(curves)
    for name in measures or ():
        if name not in known:
            raise UserError(f"--measure {name!r}: these runs have {', '.join(known) or 'no measurements yet'}")
    shown = list(measures or [name for name in USUAL if name in known])
    if not shown:
        raise UserError(f"{runs[0]}: nothing was measured yet; it has {', '.join(known) or 'no lines'}")
    names = name_curves(curves, runs)
    _print_table(curves, names, shown)
    for path in _write(curves, names, shown, out):
        say(path)


def name_curves(curves: "Sequence[Curve]", runs: Sequence[Path]) -> list[str]:
    """The names of runs, each once."""
    names: list[str] = []
    for one in curves:
        name = one.name
        number = 2
        while name in names:
            name = f"{one.name} ({number})"
            number += 1
        names.append(name)
    return names


def _print_table(curves: "Sequence[Curve]", names: Sequence[str], shown: Sequence[str]) -> None:
    from weft.cli.wide_table import print_in_blocks

    rows = [
        [name, f"{line['step']:,}", *(_format(line.get(measure)) for measure in shown)]
        for one, name in zip(curves, names, strict=True)
        for line in one.lines
    ]
    print_in_blocks("Training runs by checkpoint", ("run", "step", *shown), rows, labels=2, left=("run",))


def _format(value: Any) -> str:
    return format_number(value, 3) if isinstance(value, int | float) else "–"


def _write(curves: "Sequence[Curve]", names: Sequence[str], shown: Sequence[str], out: Path) -> list[Path]:
    """Write the table, and a plot of each measure that has more than one point."""
    from weft.report import plots
    from weft.report.csv_table import format_csv

    columns = ("run", "step", *shown)
    rows: list[list[Any]] = []
    for one, name in zip(curves, names, strict=True):
        rows += [[name, line["step"], *(line.get(measure) for measure in shown)] for line in one.lines]
    out.mkdir(parents=True, exist_ok=True)
    file = out / "training.csv"
    file.write_text(format_csv(columns, rows), encoding="utf-8", newline="")
    written = [file]
    for measure in shown:
        points: list[dict[str, Any]] = []
        for one, name in zip(curves, names, strict=True):
            points += [
                {"run": name, "step": line["step"], "value": line[measure]}
                for line in one.lines
                if isinstance(line.get(measure), int | float)
            ]
        points.sort(key=lambda point: point["step"])
        if len({point["step"] for point in points}) > 1:
            chart = plots.curve_chart(points, x="step", y="value", series="run", title=measure.capitalize())
            written += plots.save(chart, out / f"training-{re.sub(NO_NAME, '-', measure)[:100]}")
    return written
