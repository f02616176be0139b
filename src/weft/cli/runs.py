"""weft runs"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.help import HelpGroup
from weft.cli.options import (
    DEFAULT_HOME,
    HomeOption,
    RunArgument,
    SubcommandHomeOption,
    YesOption,
    check_format,
    complete_run,
    confirm,
)
from weft.cli.terminal import say

if TYPE_CHECKING:
    from weft.results.index import RunEntry
    from weft.store.journal import Journal
    from weft.store.records import RunRecord

app = typer.Typer(cls=HelpGroup, rich_markup_mode=None)
COLUMNS = ("run", "benchmark", "title", "headline score", "scored", "cost", "state", "age")
TITLE_COLUMN = 2
GIST_FIELDS = ("value", "low", "high", "scored", "expected", "turns", "failed", "cost")
MAX_TAG_CHARS = 60


@app.callback(invoke_without_command=True)
def runs(
    context: typer.Context,
    benchmark: Annotated[str | None, typer.Option(metavar="NAME", help="Only runs of this benchmark.")] = None,
    model: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Only runs whose model has this in its name.")
    ] = None,
    find: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Only runs with this text in title, tag, judge, sweep or id.")
    ] = None,
    sort: Annotated[
        str, typer.Option(metavar="KEY", help="age, score, cost, title or benchmark; sorted ascending.")
    ] = "age",
    format: Annotated[str, typer.Option("--format", "-f", metavar="FORMAT", help="text, json, or ids.")] = "text",
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """List runs, give them tags, remove them.

    For each run: benchmark, title, headline score with its 95% interval, how much is scored, cost, state, age. Any
    command accepts a run by the first column, or by its tag, which is shown before its title. Sweeps are listed below;
    a report takes the name of one in place of its runs.

    Examples:

      weft runs

      weft runs --benchmark weave --model bagel --sort score

      weft report $(weft runs --find ours -f ids) --over seed

      weft runs tag 1a2b3c4d ours-2k

      weft runs rm ours-2k
    """
    if context.invoked_subcommand is not None:
        context.obj = home
        return
    import msgspec

    from weft.results.index import filter_runs, list_runs
    from weft.workspace import open_journal

    check_format(format, ("text", "json", "ids"))
    entries = filter_runs(
        list_runs(open_journal(home)), benchmark=benchmark or "", model=model or "", find=find or "", sort=sort
    )
    if format == "json":
        records = [_build_record(entry) for entry in entries]
        say(msgspec.json.format(msgspec.json.encode(records), indent=2).decode())
    elif format == "ids":
        for entry in entries:
            say(entry.record.id)
    elif entries:
        _print_entries(entries)
    else:
        say("no run matches")


def _build_record(entry: "RunEntry") -> dict[str, Any]:
    """Return a run as JSON has it. `expected` are verdicts, `expected_turns` turns."""
    from msgspec.structs import asdict

    from weft.results.sweeps import sweeps_of

    manifest = entry.record.manifest
    record: dict[str, Any] = {
        "id": entry.record.id,
        "tag": entry.record.names.get("tag", ""),
        "benchmark": manifest.benchmark.name,
        "title": entry.title,
        "model": manifest.model.name,
        "judge": manifest.judge.name,
        "sweeps": sweeps_of(entry.record),
    }
    gist = asdict(entry.gist)
    for name in GIST_FIELDS:
        record[name] = gist[name]
    record["expected_turns"] = entry.expected_turns
    record["state"] = entry.state
    record["started"] = entry.record.started
    return record


def _print_entries(entries: "list[RunEntry]") -> None:
    """Print a line for each run; two where the terminal is too narrow for one."""
    from weft.cli.columns import align_rows
    from weft.cli.screen import Screen

    screen = Screen(soft_wrap=True)
    judges = {entry.judge for entry in entries}
    rows = [_build_row(entry, with_judge=len(judges) > 1) for entry in entries]
    for line in align_rows(COLUMNS, rows, screen.width, label=TITLE_COLUMN):
        screen.print(line)
    if len(judges) == 1:
        screen.print(f"all judged by {judges.pop()}")
    for line in _describe_sweeps(entries):
        screen.print(line)


def _describe_sweeps(entries: "list[RunEntry]") -> list[str]:
    """Return a line for each sweep that listed runs are of."""
    from weft.cli.outcome import format_count
    from weft.results.sweeps import sweeps_of
    from weft.untrusted import format_for_terminal

    counts: dict[str, int] = {}
    for entry in entries:
        for name in sweeps_of(entry.record):
            counts[name] = counts.get(name, 0) + 1
    return [f"sweep {format_for_terminal(name)}: {format_count(count, 'run')}" for name, count in counts.items()]


def _build_row(entry: "RunEntry", *, with_judge: bool) -> tuple[str, ...]:
    import time

    from weft.results.index import format_age
    from weft.untrusted import format_for_terminal

    title = entry.tagged_title
    if with_judge:
        title += f", judged by {entry.judge}"
    cost = "?"
    if entry.gist.cost is not None:
        cost = f"${entry.gist.cost:.2f}"
    cells = (
        entry.handle,
        entry.record.manifest.benchmark.name,
        title,
        entry.gist.headline_text,
        entry.coverage,
        cost,
        entry.state,
        format_age(time.time() - entry.record.started),
    )
    return tuple(map(format_for_terminal, cells))


@app.command()
def tag(
    context: typer.Context,
    run: RunArgument,
    name: Annotated[
        str, typer.Argument(help="Its name in commands, tables and plots; '' removes the tag.", metavar="NAME")
    ],
    home: SubcommandHomeOption = None,
) -> None:
    """Give a run a name for every command, table, plot and page.

    Examples:

      weft runs tag last ours-2k

      weft report ours-2k --open
    """
    from weft.errors import UserError
    from weft.results.run import find_run
    from weft.workspace import open_journal

    journal = open_journal(home or context.obj, write=True)
    record = find_run(journal, run)
    name = " ".join(name.split())
    if name == "last" or len(name) > MAX_TAG_CHARS or not name.isprintable():
        raise UserError(
            f"{name[:MAX_TAG_CHARS]!r} cannot be a tag: give up to {MAX_TAG_CHARS} characters, and not 'last'"
        )
    if name:
        _check_unused(name, record.id, journal)
    journal.set_names(record.id, tag=name)
    journal.close()
    previous = record.names.get("tag")
    line = f"{record.id} is now called {name}"
    if not name:
        line = f"{record.id} has no tag any more"
    if previous and previous != name:
        line += f" (it was {previous})"
    say(line)


def _check_unused(name: str, run_id: str, journal: "Journal") -> None:
    """Raise UserError if another run has this id or tag."""
    from weft.errors import UserError

    for record in journal.runs():
        if name in (record.id, record.names.get("tag")) and record.id != run_id:
            raise UserError(f"{name} is {record.id} already")


@app.command()
def rm(
    context: typer.Context,
    run: Annotated[
        list[str],
        typer.Argument(metavar="RUN", help="Runs: tags, ids or their beginnings.", autocompletion=complete_run),
    ],
    yes: YesOption = False,
    home: SubcommandHomeOption = None,
) -> None:
    """Remove runs from the journal, after asking.

    Their calls stay cached: the same command makes the run again at no cost, until `weft journal prune` removes what
    no run needs. The annotations of a run are removed with it.

    Examples:

      weft runs rm 1a2b3c4d

      weft runs rm ours-2k ours-4k --yes
    """
    from weft.errors import UserError
    from weft.results.run import find_run
    from weft.store.locks import with_actual_state
    from weft.workspace import open_journal

    folder: Path = home or context.obj
    journal = open_journal(folder, write=True)
    records = [with_actual_state(find_run(journal, name), folder) for name in run]
    for record in records:
        if record.state == "running":
            raise UserError(f"{record.id} is in progress: stop it first")
    for record in records:
        say(_describe_record(journal, record))
    what = "this run"
    if len(records) > 1:
        what = f"these {len(records)} runs"
    confirm(yes, f"remove {what} from the list")
    for record in records:
        journal.remove_run(record.id)
    journal.close()
    removed = ", ".join(record.id for record in records)
    say(f"removed: {removed}; their calls stay cached until `weft journal prune`")


def _describe_record(journal: "Journal", record: "RunRecord") -> str:
    from weft.cli.outcome import format_count

    turns, verdicts = journal.count_done(record.id)
    annotations, annotators = journal.count_annotations(record.id)
    line = f"{record.id}: {turns} turns, {verdicts} verdicts, {record.state}"
    if annotations:
        line += (
            f", {format_count(annotations, 'annotation')} by {format_count(annotators, 'annotator')}, "
            "which are removed for good"
        )
    return line
