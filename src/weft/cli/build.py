"""weft build"""

from pathlib import Path
from typing import Annotated, Any

import typer

from weft.cli.help import HelpGroup
from weft.cli.options import DEFAULT_HOME, HomeOption
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

  weft build card DIR
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
    accept: Annotated[
        bool, typer.Option("--accept-unknown-terms", help="Export what models made whose terms nobody stated.")
    ] = False,
) -> None:
    """Write a build's dialogues in another layout. The same data are the same bytes.

    `pairs` are preference pairs: what was chosen, and what was rejected before. README.md is the dataset card.

    The terms of every model must be known: state them with `--terms` of the build or of `weft build card`.

    Examples:

      weft build export DIR --to parquet

      weft build export DIR --to webdataset --out SHARDS
    """
    from weft.building.export import export as export_build

    target = folder or out.with_name(f"{out.absolute().name}-{to}")
    count = export_build(out, to, target, accept_unknown_terms=accept)
    say(f"{count:,} {'pairs' if to == 'pairs' else 'dialogues'} in {target}")


@app.command()
def card(
    out: OutArgument,
    terms: Annotated[
        list[str] | None,
        typer.Option(metavar="ROLE=TEXT", help="Licence or terms of what a role's model made. Repeatable."),
    ] = None,
    rated: Annotated[
        str, typer.Option(metavar="RUN", help="The run whose references people rated with `weft rate`.")
    ] = "",
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Write the dataset card, with what people found and with the terms of the models.

    A dialogue is right if people gave each of its references as much as the build's checker must give. The share of
    right dialogues is estimated for the whole dataset, with its 95% interval.

    Examples:

      weft build card DIR --terms painter="Apache-2.0" --terms files="CC BY 4.0"

      weft run weave --data DIR --model reference --judge constant/max --sample 200

      weft rate last --annotators ann,bob

      weft build card DIR --rated last
    """
    from weft.cli.build_card import rewrite_card
    from weft.cli.options import parse_pairs

    for line in rewrite_card(out, parse_pairs(terms or [], "--terms"), rated, home):
        say(line)


@app.command()
def merge(
    out: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of the whole build.")],
    shards: Annotated[list[Path], typer.Argument(metavar="SHARD", help="Folders that were built with --shard.")],
) -> None:
    """Join the shards of a build into one folder, with their calls and images.

    Examples:

      weft build weave-100k --seeds 1000 ... --shard 1/2 --out A    # one machine

      weft build weave-100k --seeds 1000 ... --shard 2/2 --out B    # another

      weft build merge WHOLE A B
    """
    from weft.building.export import write_merged
    from weft.building.merge import merge_builds
    from weft.cli.terminal import complain

    merged = merge_builds(out, shards, complain)
    done = merged.parts - merged.open_parts
    say(f"{merged.new_parts:,} parts are new; {done:,} of {merged.parts:,} are done")
    if merged.open_parts:
        missing = f" (of shard {', '.join(merged.missing_shards)})" if merged.missing_shards else ""
        say(f"{merged.open_parts:,} parts are missing{missing}: merge them too, or build them here without --shard")
        raise typer.Exit(1)
    count = write_merged(out)
    if count is None:
        say(f"run the command of the build again, without --shard and with --out {out}: it writes the dataset")
    else:
        say(f"dataset: {count:,} dialogues in {out}")


def _run(name: str, values: dict[str, Any]) -> None:
    """Build, or say what would be called."""
    import sys

    from weft.building.request import BuildRequest
    from weft.cli.build_command import read_values
    from weft.cli.build_run import print_forecast, run_and_report
    from weft.evaluation.config import default_preflight

    request = BuildRequest(**read_values(name, values), preflight=not values["preflight"] and default_preflight())
    sys.exit(print_forecast(request) if values["dry_run"] else run_and_report(request))
