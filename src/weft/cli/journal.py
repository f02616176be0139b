"""weft journal"""

from typing import Annotated

import typer

from weft.cli import options as o
from weft.cli.terminal import say

app = typer.Typer(no_args_is_help=True, help="Look after the journal.", rich_markup_mode=None)


@app.callback()
def journal() -> None:
    """Look after the journal."""


@app.command()
def check(
    home: o.Home = o.Path(".weft"),
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what is wrong, and what could be saved.")] = False,
) -> None:
    """Read every row of the journal. If it is damaged, write what can be read into a new one; the damaged one is kept beside it.

    Exits with 0 if nothing is wrong, with 1 if something was.

    Examples:

      weft journal check

      weft journal check --home received/.weft --dry-run
    """
    from weft.errors import UserError
    from weft.store.locks import anyone
    from weft.store.salvage import check as checked

    at_work = anyone(home)
    if at_work and not dry_run:
        raise UserError(f"run {at_work} is going on in another process: wait for it")
    health = checked(home / "journal.sqlite", save=not dry_run)
    rows = ", ".join(f"{count} {table}" for table, count in health.saved.items() if count) or "nothing"
    if not health.problems:
        say(f"nothing is wrong: {rows}")
        return
    for problem in health.problems[:10]:
        say(f"wrong: {problem}")
    gone = ", ".join(f"{count} {table}" for table, count in health.lost.items() if count)
    say(f"{'could be' if dry_run else 'was'} saved: {rows}" + (f"; found and not readable: {gone}" if gone else ""))
    if health.kept:
        say(f"the damaged journal is kept as {health.kept}")
    say("run the same commands again: answers that were saved are not asked for again, and what is missing is")
    raise typer.Exit(1)
