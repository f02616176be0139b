"""weft arena"""

from collections.abc import Iterable
from typing import Annotated

import typer

from weft.cli import options as o
from weft.types import Table

app = typer.Typer(no_args_is_help=True, help="Battles between models: win rates, ratings, agreement with people.", rich_markup_mode=None)
Format = Annotated[str, typer.Option("--format", help="screen, md, latex, csv or json.")]


@app.callback()
def arena() -> None:
    """Battles between models: win rates, ratings, agreement with people."""


@app.command()
def table(
    verdicts: Annotated[list[o.Path], typer.Argument(help="Files of verdicts, as OpenING has them; several are taken together.")],
    format: Format = "screen",
) -> None:
    """Win rates of every model (FDT, without ties, with ties as 0 and as .5) and ratings, all with intervals; and whether the judge favours
    a place. Battles that were fought in both orders count once: two verdicts that contradict each other are a tie.

    Examples:

      weft arena table judge_modelAB_results.json

      weft arena table ab.json ba.json --format md
    """
    from weft.arena.files import read_verdicts, together
    from weft.arena.tables import win_rates

    found = together({str(at): read_verdicts(path) for at, path in enumerate(verdicts)})
    _note(found.problems)
    _show(win_rates(found.battles, f"Win rates, {', '.join(path.stem for path in verdicts)}"), format)


@app.command()
def agree(
    verdicts: Annotated[list[o.Path], typer.Argument(help="Files of verdicts of judges, then that of people, which is the last.")],
    unseen: Annotated[str, typer.Option(help="Models that a judge was not trained on, with commas: their battles are shown apart.")] = "",
    format: Format = "screen",
) -> None:
    """How far judges agree with people, in all three ways: ties given to whom they lean, ties as a verdict of their own, without ties.

    Examples:

      weft arena agree gpt-judge_modelAB_results.json judge_modelAB_results.json

      weft arena agree gpt.json int.json human.json --unseen "Gemini1.5+Flux,anole"
    """
    from weft.arena.files import read_verdicts
    from weft.arena.tables import agreements
    from weft.errors import UserError
    from weft.stats.battles import models_in

    if len(verdicts) < 2:
        raise UserError("give at least two files: verdicts of a judge, and those of people")
    found = [read_verdicts(path) for path in verdicts]
    _note(problem for one in found for problem in one.problems)
    names = [name.strip() for name in unseen.split(",") if name.strip()]
    there = models_in(battle for one in found for battle in one.battles)
    strange = [name for name in names if name not in there]
    if strange:
        raise UserError(f"--unseen: no battle has a model {strange[0]!r}; there is {', '.join(there)}")
    judges = {path.stem: one.battles for path, one in zip(verdicts[:-1], found[:-1], strict=True)}
    _show([agreements(judges, found[-1].battles, names, f"Agreement with {verdicts[-1].stem}")], format)


@app.command()
def scores(
    file: Annotated[o.Path, typer.Argument(help="A file of scores of single answers, as OpenING has it.")],
    format: Format = "screen",
) -> None:
    """Scores of single answers by model: seven criteria and their mean.

    Examples:

      weft arena scores gpt-score_results.json
    """
    from weft.arena.files import read_scores
    from weft.arena.tables import score_summary

    found = read_scores(file)
    _note(found.problems)
    _show([score_summary(found.entries, f"Scores, {file.stem}")], format)


def _note(problems: Iterable[str]) -> None:
    from weft.arena.files import SHOWN
    from weft.cli.terminal import complain

    told = list(problems)
    for problem in told[:SHOWN]:
        complain(problem)
    if len(told) > SHOWN:
        complain(f"and {len(told) - SHOWN} more of this kind")


def _show(tables: list[Table], format: str) -> None:
    from weft.cli.screen import Screen
    from weft.cli.show import show_table
    from weft.cli.terminal import say
    from weft.errors import UserError
    from weft.report.render import render

    if format == "screen":
        for one in tables:
            show_table(Screen(), one)
    elif format in ("md", "latex", "csv", "json"):
        text = render(tables, [], format)
        say(text.partition("\n\n")[2] if format == "md" else text)  # without the title of what is published
    else:
        raise UserError(f"--format {format}: there is screen, md, latex, csv and json")
