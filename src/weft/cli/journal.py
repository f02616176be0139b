"""weft journal"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli.help import HelpGroup
from weft.cli.options import DEFAULT_HOME, HomeOption, OwnBenchmarkOption, RunArgument, YesOption, confirm
from weft.cli.terminal import complain, say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from weft.store.merge import MergeResult
    from weft.types import Reply

app = typer.Typer(cls=HelpGroup, no_args_is_help=True, rich_markup_mode=None)
MAX_PROBLEMS = 10  # of one kind, that are printed


@app.callback()
def journal() -> None:
    """Check, merge, export and prune the journal of cached calls.

    Examples:

      weft journal check

      weft journal merge shard1 shard2
    """


@app.command()
def check(
    home: HomeOption = DEFAULT_HOME,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only report what is damaged, and what could be recovered.")
    ] = False,
    images: Annotated[
        bool, typer.Option("--images/--no-images", help="Also compare every image with its digest.")
    ] = True,
) -> None:
    """Read the whole journal and every image, and recover what can be.

    If the journal is damaged, everything that can be read is written into a new one, and the damaged file is kept next
    to it. Damaged images are moved away: the commands that need them generate them again.

    Exit code: 0 if nothing is wrong, 1 if something was.

    Examples:

      weft journal check

      weft journal check --home received/.weft --dry-run
    """
    import contextlib

    from weft.store.locks import maintain_home
    from weft.store.recover import check_journal
    from weft.store.schema import journal_file

    journal = journal_file(home)
    with contextlib.ExitStack() as closing:
        if not dry_run and journal.is_file():
            closing.enter_context(maintain_home(home))
        health = check_journal(journal, save=not dry_run)
        images_fine = True
        if images:
            # A damaged journal cannot be read for its replies until it is recovered.
            readable = not dry_run or not health.problems
            images_fine = _check_images(home, dry_run=dry_run, find_missing=readable)
    rows = _format_counts(health.recovered) or "nothing"
    if not health.problems:
        if images_fine:
            say(f"nothing is wrong: {rows}")
            return
        say(f"nothing is wrong with the journal itself: {rows}")
        raise typer.Exit(1)
    for problem in health.problems[:MAX_PROBLEMS]:
        say(f"wrong: {problem}")
    recovered = f"recovered: {rows}"
    if dry_run:
        recovered = f"can be recovered: {rows}"
    lost = _format_counts(health.lost)
    if lost:
        recovered += f"; not readable: {lost}"
    say(recovered)
    if health.damaged_path:
        say(f"the damaged journal is kept as {health.damaged_path}")
    say("run the same commands again: recovered replies are cached, only those that are missing are requested")
    raise typer.Exit(1)


def _check_images(home: Path, *, dry_run: bool, find_missing: bool) -> bool:
    """Report damaged and missing images; move the damaged ones away unless `dry_run`. Returns whether all are fine."""
    from weft.store.blobs import find_damaged_images, find_missing_images

    damaged = find_damaged_images(home, quarantine=not dry_run)
    for name in damaged[:MAX_PROBLEMS]:
        line = f"wrong: image {name[:12]} is damaged"
        if not dry_run:
            line += ": it was moved away"
        say(line)
    missing: list[str] = []
    if find_missing:
        missing = list(find_missing_images(home, _read_replies(home)))
    if missing:
        say(
            f"wrong: {len(missing)} images of replies are not in the store; the commands that made them generate "
            "them again"
        )
    return not damaged and not missing


def _read_replies(home: Path) -> "Iterator[Reply]":
    from weft.workspace import open_journal

    journal = open_journal(home)
    for record in journal.runs():
        for turn in journal.turns(record.id):
            yield turn.reply
    journal.close()


def _format_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count)


@app.command()
def merge(
    other: Annotated[
        list[Path],
        typer.Argument(metavar="HOME", help="Homes of other journals, such as runs from another machine, or shards."),
    ],
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Copy calls, runs, annotations and images from other journals.

    Shards of a run become that run. Merging twice changes nothing.

    Examples:

      weft journal merge shard1 shard2 shard3

      rsync -a gpu7:project/.weft/ from-gpu7 && weft journal merge from-gpu7
    """
    from weft.results.index import describe_shards
    from weft.results.run import find_run
    from weft.store.merge import merge_journal
    from weft.workspace import open_journal

    run_ids: dict[str, None] = {}  # each once, in order
    for source in other:
        result = merge_journal(home, source, complain)
        run_ids |= dict.fromkeys(result.runs)
        say(f"{source}: {_describe_merge(result)}")
    journal = open_journal(home)
    for run_id in run_ids:
        record = find_run(journal, run_id)
        state = describe_shards(record) or record.state
        if record.state != "finished":
            turns = record.format_turn_count(journal.count_done(run_id)[0])
            state += f", {turns}: the same command does the rest, and makes only the missing calls"
        say(f"  {run_id}: {state}")


def _describe_merge(result: "MergeResult") -> str:
    annotations = ""
    if result.annotations:
        annotations = f", {result.new_annotations} of {result.annotations} annotations"
    text = (
        f"{result.new_calls} of {result.calls} calls{annotations} and {result.new_images} of {result.images} images "
        "are new here"
    )
    if result.damaged:
        text += f"; {result.damaged} damaged rows or images are left out"
    return text


@app.command()
def export(
    run: RunArgument,
    out: Annotated[Path, typer.Option(metavar="PATH", help="The folder to write.")],
    benchmark: OwnBenchmarkOption = None,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Write a run as plain files.

    Replies and images by dialogue, verdicts as CSV and Parquet, a manifest with the digest of every file.

    Examples:

      weft journal export last --out released/bagel
    """
    from weft.errors import UserError
    from weft.report.export import export_run
    from weft.results.run import load_run
    from weft.workspace import open_journal

    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UserError(f"{out} exists already and is not empty; name another folder")
    counts = export_run(load_run(open_journal(home), run, benchmark), home, out)
    parts: list[str] = []
    for name, count in counts.items():
        if count or not name.startswith("missing"):
            parts.append(f"{count} {name}")
    say(f"{out}: {', '.join(parts)}")


@app.command()
def prune(
    yes: YesOption = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only report what could be removed.")] = False,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Remove calls and images that no run needs, after asking.

    Those are the calls of runs that were removed or never completed, and images that nothing refers to. Removed replies
    would have to be paid for again.

    Examples:

      weft journal prune --dry-run

      weft runs rm OLD && weft journal prune
    """
    from weft.store.prune import find_unused, remove_unused
    from weft.workspace import open_journal

    open_journal(home).close()  # raises if it is not a journal
    unused = find_unused(home)
    if not unused:
        say(f"all of it is needed: {unused.all_calls} calls, {unused.all_images} images")
        return
    megabytes = unused.size / 1e6
    say(
        f"no run needs {len(unused.calls)} of {unused.all_calls} calls, and {len(unused.images)} of "
        f"{unused.all_images} images ({megabytes:.1f} MB)"
    )
    if dry_run:
        return
    confirm(yes, "remove them for good")
    freed = remove_unused(home, unused)
    say(f"removed; the journal is {freed / 1e6:.1f} MB smaller, the images {megabytes:.1f} MB")
