"""weft build"""

from pathlib import Path
from typing import Annotated, Any

import typer

from weft.cli.help import HelpGroup
from weft.cli.terminal import say

HELP = """Build multi-turn datasets with recipes of your own or weft's.

A recipe is a list of steps that write, draw, check and mend; models play its roles. Every reply is cached before it is
used: after a crash, run the same command again to resume.

Examples:

  weft build list

  weft build show weave-recall

  weft build tabletop-recall --writer tabletop/oracle --painter tabletop/oracle --out DIR

  weft build mine.py:Postcards --seeds 100 --writer MODEL --painter MODEL --out DIR

  weft build status DIR
"""
OutArgument = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a build.")]
RecipeArgument = Annotated[str, typer.Argument(metavar="RECIPE", help="A recipe's name, or file.py:NAME.")]


class BuildGroup(HelpGroup):
    """`weft build RECIPE`: each recipe is a command, made from its roles and options when it is called."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in self.commands:
            return super().get_command(ctx, cmd_name)
        from weft.cli.build_command import make_recipe_command

        return make_recipe_command(cmd_name, _run)


app = typer.Typer(cls=BuildGroup, no_args_is_help=True, rich_markup_mode=None, help=HELP)


@app.command("list")
def list_all() -> None:
    """List the recipes with their roles.

    Examples:

      weft build list
    """
    from weft.building.recipe import list_recipes, load_recipe

    for name in sorted(list_recipes()):
        kind = load_recipe(name)
        roles = ", ".join(role.name for role in kind.roles)
        say(f"{name:<18}{kind.title}")
        say(f"{'':<18}roles: {roles}")
    say("and your own: file.py:NAME")


@app.command()
def show(recipe: RecipeArgument) -> None:
    """Show a recipe: its steps as a diagram, its roles and its options.

    Examples:

      weft build show weave-recall
    """
    from weft.building.recipe import load_recipe
    from weft.cli.build_texts import describe_recipe

    for line in describe_recipe(load_recipe(recipe), recipe):
        say(line)


@app.command()
def status(out: OutArgument) -> None:
    """Show what became of a build's seeds: yields by step, reasons, calls, cost of a kept dialogue.

    Examples:

      weft build status DIR
    """
    from weft.building.status import read_status
    from weft.cli.build_texts import describe_status

    for line in describe_status(read_status(out), out):
        say(line)


@app.command()
def export(
    out: OutArgument,
    to: Annotated[str, typer.Option("--to", metavar="NAME", help="weave, parquet, webdataset or pairs.")] = "parquet",
    folder: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="PATH", help="The folder to write. Default: DIR-NAME.")
    ] = None,
) -> None:
    """Write a build's dialogues in another layout. The same data are the same bytes.

    `pairs` are preference pairs: what was chosen, and what was rejected before.

    Examples:

      weft build export DIR --to parquet

      weft build export DIR --to webdataset --out SHARDS
    """
    from weft.building.export import export as export_build

    target = folder or out.with_name(f"{out.absolute().name}-{to}")
    count = export_build(out, to, target)
    say(f"{count:,} {'pairs' if to == 'pairs' else 'dialogues'} in {target}")


def _run(name: str, values: dict[str, Any]) -> None:
    """Build, or say what would be called."""
    import sys

    from weft.building.request import BuildRequest
    from weft.cli.build_command import read_values
    from weft.cli.build_run import print_forecast, run_and_report
    from weft.evaluation.config import default_preflight

    request = BuildRequest(**read_values(name, values), preflight=not values["preflight"] and default_preflight())
    sys.exit(print_forecast(request) if values["dry_run"] else run_and_report(request))
