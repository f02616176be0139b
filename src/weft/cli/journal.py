"""weft journal"""

from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli import options as o
from weft.cli.terminal import say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from weft.types import Reply

app = typer.Typer(no_args_is_help=True, help="Look after the journal.", rich_markup_mode=None)


@app.callback()
def journal() -> None:
    """Look after the journal."""


@app.command()
def check(
    home: o.Home = o.Path(".weft"),
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what is wrong, and what could be saved.")
    ] = False,
    pictures: Annotated[
        bool, typer.Option("--pictures/--no-pictures", help="Also hold every picture against its name.")
    ] = True,
) -> None:
    """Read every row of the journal and every picture. If the journal is damaged, write what can be read into a new
    one; the damaged one is kept beside it. Pictures that are damaged are put aside, and made anew by the commands that
    need them.

    Exits with 0 if nothing is wrong, with 1 if something was.

    Examples:

      weft journal check

      weft journal check --home received/.weft --dry-run
    """
    from weft.errors import UserError
    from weft.store.blobs import find_damaged_images, find_missing_images
    from weft.store.locks import find_active_run
    from weft.store.recover import check_journal as checked
    from weft.store.schema import journal_file

    at_work = find_active_run(home)
    if at_work and not dry_run:
        raise UserError(f"run {at_work} is going on in another process: wait for it")
    health = checked(journal_file(home), save=not dry_run)
    rows = ", ".join(f"{count} {table}" for table, count in health.recovered.items() if count) or "nothing"
    bad = find_damaged_images(home, quarantine=not dry_run) if pictures else []
    for name in bad[:10]:
        say(f"wrong: picture {name[:12]} is damaged" + ("" if dry_run else ": it was put aside"))
    gone = find_missing_images(home, _replies(home)) if pictures and (dry_run is False or not health.problems) else []
    if gone:
        say(f"wrong: {len(gone)} pictures of replies are not in the store; the commands that made them make them again")
    if not health.problems:
        say(f"nothing is wrong{' with the journal itself' if bad or gone else ''}: {rows}")
        if bad or gone:
            raise typer.Exit(1)
        return
    for problem in health.problems[:10]:
        say(f"wrong: {problem}")
    gone = ", ".join(f"{count} {table}" for table, count in health.lost.items() if count)
    say(f"{'could be' if dry_run else 'was'} saved: {rows}" + (f"; found and not readable: {gone}" if gone else ""))
    if health.damaged_path:
        say(f"the damaged journal is kept as {health.damaged_path}")
    say("run the same commands again: answers that were saved are not asked for again, and what is missing is")
    raise typer.Exit(1)


def _replies(home: o.Path) -> "Iterator[Reply]":
    from weft.workspace import open_journal

    journal = open_journal(home)
    for record in journal.runs():
        yield from (turn.reply for turn in journal.turns(record.id))
    journal.close()


@app.command()
def merge(
    other: Annotated[
        list[o.Path], typer.Argument(help="Homes of other journals, such as runs from another machine, or shards.")
    ],
    home: o.Home = o.Path(".weft"),
) -> None:
    """Take over the calls, runs, ratings and pictures of other journals. Shards of a run become that run. Doing it
    twice changes nothing.

    Examples:

      weft journal merge shard1 shard2 shard3

      rsync -a gpu7:project/.weft/ from-gpu7 && weft journal merge from-gpu7
    """
    from weft.cli.terminal import complain
    from weft.results.index import describe_shards
    from weft.results.run import find_run
    from weft.store.merge import merge_journal as merged
    from weft.workspace import open_journal

    touched: dict[str, None] = {}
    for one in other:
        made = merged(home, one, complain)
        touched |= dict.fromkeys(made.runs)
        if made.damaged:
            bad = f"; {made.damaged} rows or pictures were damaged and are left out"
        else:
            bad = ""
        if made.annotations:
            people = f", {made.new_annotations} of {made.annotations} ratings by people"
        else:
            people = ""
        say(
            f"{one}: {made.new_calls} of {made.calls} calls{people} and {made.new_images} of {made.images} pictures are new here{bad}"
        )
    journal = open_journal(home)
    for run in touched:
        record = find_run(journal, run)
        turns = record.format_turn_count(journal.count_done(run)[0])
        if record.state == "finished":
            rest = ""
        else:
            rest = f", {turns}: the same command does the rest, and asks only for that"
        say(f"  {run}: {describe_shards(record) or record.state}{rest}")


@app.command()
def export(
    run: o.Run,
    out: Annotated[o.Path, typer.Option(help="The folder to write.")],
    benchmark: o.OwnBenchmark = None,
    home: o.Home = o.Path(".weft"),
) -> None:
    """Write a run as plain files: replies and pictures by dialogue, verdicts as CSV and Parquet, a manifest with the
    digest of every file.

    Examples:

      weft journal export last --out released/bagel
    """
    from weft.errors import UserError
    from weft.report.export import export_run as exported
    from weft.results.run import load_run
    from weft.workspace import open_journal

    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UserError(f"{out} is there already and not empty; name another folder")
    found = load_run(open_journal(home), run, benchmark)
    counts = exported(found, home, out)
    told = ", ".join(f"{count} {what}" for what, count in counts.items() if count or what != "missing pictures")
    say(f"{out}: {told}")


@app.command()
def shrink(
    yes: o.Yes = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what could go.")] = False,
    home: o.Home = o.Path(".weft"),
) -> None:
    """Remove what no run needs any more, after asking: calls of runs that were removed or never came to be, pictures
    that nothing shows.

    Answers that are removed would have to be paid for again.

    Examples:

      weft journal shrink --dry-run

      weft runs rm OLD && weft journal shrink
    """
    from weft.store.prune import find_unused
    from weft.store.prune import remove_unused as shrunk
    from weft.workspace import open_journal

    open_journal(home).close()  # whether it is one at all
    found = find_unused(home)
    if not found:
        say(f"all of it is needed: {found.all_calls} calls, {found.all_images} pictures")
        return
    pictures = f"{len(found.images)} of {found.all_images} pictures ({found.size / 1e6:.1f} MB)"
    say(f"no run needs {len(found.calls)} of {found.all_calls} calls, and {pictures}")
    if dry_run:
        return
    o.sure(yes, "remove them for good")
    smaller = shrunk(home, found)
    say(f"removed; the journal is {smaller / 1e6:.1f} MB smaller, the pictures {found.size / 1e6:.1f} MB")
