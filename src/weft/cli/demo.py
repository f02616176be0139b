"""weft demo"""

from typing import Annotated, Any

import typer

from weft.cli import options as o
from weft.cli.terminal import say


def demo(
    name: Annotated[str, typer.Argument(help="exposure-bias, memory, or test-time-scaling.")],
    samples: Annotated[
        int | None, typer.Option(min=2, help="How many dialogues. Default: 300, 150 for memory, 200 for scaling.")
    ] = None,
    out: Annotated[o.Path, typer.Option(help="Where table and plots go.")] = o.Path("reports"),
    home: o.Home = o.Path(".weft"),
) -> None:
    """Show a phenomenon of the papers with the tiny model: a table, and a plot as PNG and SVG.

    Examples:

      weft demo exposure-bias

      weft demo memory --samples 100

      weft demo test-time-scaling
    """
    import csv

    from rich.table import Table

    from weft.cli.screen import Screen
    from weft.cli.work import quietly
    from weft.errors import UserError
    from weft.evaluation.config import RunConfig
    from weft.evaluation.session import open_run
    from weft.report import plots
    from weft.results.run import Run
    from weft_tabletop.demos import DEMOS

    if name not in DEMOS:
        raise UserError(f"there is no demo {name!r}; there is {', '.join(DEMOS)}")
    console = Screen(stderr=True, soft_wrap=True)

    own = home / "demo"  # a journal of its own: a demo's runs are not the user's

    def evaluate(*, benchmark: str = "weave", **options: Any) -> Run:
        return quietly(open_run(RunConfig(benchmark=benchmark, judge="tabletop/exact", home=own, **options)), console)

    def shown(value: Any) -> str:
        if isinstance(value, float):
            if value <= 1:
                return f"{value:.3f}"
            return f"{value:.1f}"
        return str(value)

    show, usual = DEMOS[name]
    made = show(own, own, evaluate, samples or usual)
    table = Table(title=made.title, title_justify="left")
    for column in made.columns:
        table.add_column(
            column,
            no_wrap=column == made.columns[0],
            justify="left" if column in ("history", "setting", "strategy") else "right",
        )
    for row in made.rows:
        table.add_row(*(shown(value) for value in (row[column] for column in made.columns)))
    Screen().print(table)
    say(made.words)
    out.mkdir(parents=True, exist_ok=True)
    with (out / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, made.columns)
        writer.writeheader()
        writer.writerows({column: row[column] for column in made.columns} for row in made.rows)
    say(f"its runs: weft view --home {own} --open")
    for path in [out / f"{name}.csv", *plots.save(made.chart, out / name)]:
        say(path)
