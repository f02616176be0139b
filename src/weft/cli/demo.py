"""weft demo"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.options import DEFAULT_HOME, HomeOption
from weft.cli.terminal import say
from weft.rounding import format_number

if TYPE_CHECKING:
    from weft_tabletop.demos.demo import Demo

TEXT_COLUMNS = ("history", "setting", "strategy", "training", "asked")


def demo(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="exposure-bias, memory, test-time-scaling; from logs: memory-curve, decoupled."
        ),
    ],
    samples: Annotated[
        int | None,
        typer.Option(min=2, metavar="N", help="How many dialogues. Default: 300, 150 for memory, 200 for scaling."),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="PATH", help="The folder for the table and the plots.")] = Path(
        "reports"
    ),
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Show a phenomenon of the papers with the tiny model.

    Prints a table, and writes it as CSV with a plot as PNG and SVG. memory-curve and decoupled show training runs whose
    logs ship with weft; the others evaluate.

    Examples:

      weft demo exposure-bias

      weft demo memory --samples 100

      weft demo test-time-scaling

      weft demo decoupled
    """
    from weft.cli.execute import run_quietly
    from weft.cli.screen import Screen
    from weft.errors import UserError
    from weft.evaluation.config import RunConfig
    from weft.evaluation.session import open_run
    from weft.results.run import Run
    from weft_tabletop.demos import DEMOS, FROM_LOGS

    if name in FROM_LOGS:
        if samples is not None:
            raise UserError(f"--samples: {name} shows logs of training runs; nothing is evaluated")
        _show(FROM_LOGS[name](), out, name)
        return
    if name not in DEMOS:
        raise UserError(f"there is no demo {name!r}; there is {', '.join((*DEMOS, *FROM_LOGS))}")
    console = Screen(stderr=True, soft_wrap=True)
    demo_home = home / "demo"  # a journal of its own: a demo's runs are not the user's

    def evaluate(*, benchmark: str = "weave", **options: Any) -> Run:
        config = RunConfig(benchmark=benchmark, judge="tabletop/exact", home=demo_home, **options)
        return run_quietly(open_run(config), console)

    run_demo, default_samples = DEMOS[name]
    result = run_demo(demo_home, demo_home, evaluate, samples or default_samples)
    _show(result, out, name, f"its runs: weft view --home {demo_home} --open")


def _show(result: "Demo", out: Path, name: str, note: str = "") -> None:
    """Print the table and write it, with its plot."""
    from weft.report import plots

    _print_result(result)
    csv_file = out / f"{name}.csv"
    _write_csv(result, csv_file)
    if note:
        say(note)
    for path in [csv_file, *plots.save(result.chart, out / name)]:
        say(path)


def _print_result(result: "Demo") -> None:
    from weft.cli.wide_table import print_in_blocks

    rows = [[_format_value(row[column]) for column in result.columns] for row in result.rows]
    print_in_blocks(result.title, result.columns, rows, left=TEXT_COLUMNS)
    say(result.words)


def _format_value(value: Any) -> str:
    if value is None:
        return "–"
    if not isinstance(value, float):
        return str(value)
    if value <= 1:
        return format_number(value, 3)
    return format_number(value, 1)


def _write_csv(result: "Demo", path: Path) -> None:
    from weft.report.csv_table import format_csv

    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [[row.get(column) for column in result.columns] for row in result.rows]
    path.write_text(format_csv(result.columns, rows), encoding="utf-8", newline="")
