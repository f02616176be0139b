"""weft runs"""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli import options as o
from weft.cli.terminal import say

if TYPE_CHECKING:
    from weft.results.index import RunEntry

app = typer.Typer(help="List runs, give them names, remove them.", rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def runs(
    context: typer.Context,
    benchmark: Annotated[str | None, typer.Option(help="Only runs of this benchmark.")] = None,
    model: Annotated[str | None, typer.Option(help="Only runs whose model has this in its name.")] = None,
    find: Annotated[str | None, typer.Option(help="Only runs with these words in title, tag, judge or id.")] = None,
    sort: Annotated[
        str, typer.Option(help="age, score, cost, title or benchmark; the last is the latest, the best, the dearest.")
    ] = "age",
    format: Annotated[str, typer.Option("--format", "-f", help="text, or json.")] = "text",
    home: o.Home = o.Path(".weft"),
) -> None:
    """All runs in the journal: benchmark, title, main number with its 95% interval, how much is scored, cost, state,
    age.

    The first column is what a run can be called by in any command; so can its tag, which stands before its title.

    Examples:

      weft runs

      weft runs --benchmark weave --model bagel --sort score

      weft runs tag 1a2b3c4d ours-2k

      weft runs rm ours-2k
    """
    if context.invoked_subcommand is not None:
        context.obj = home
        return
    import msgspec

    from weft.errors import UserError
    from weft.results.index import filter_runs, list_runs
    from weft.workspace import open_journal

    if format not in ("text", "json"):
        raise UserError(f"unknown format {format!r}; there are text, json")
    every = list_runs(open_journal(home))
    found = filter_runs(every, benchmark=benchmark or "", model=model or "", find=find or "", sort=sort)
    if format == "json":
        say(msgspec.json.format(msgspec.json.encode([_plain(one) for one in found]), indent=2).decode())
        return
    if not found:
        say("no run is left by what was asked for")
        return
    _table(found)


def _plain(one: "RunEntry") -> dict[str, Any]:
    from msgspec.structs import asdict

    manifest = one.record.manifest
    numbers = asdict(one.gist)
    return {
        "id": one.record.id,
        "tag": one.record.names.get("tag", ""),
        "benchmark": manifest.benchmark.name,
        "title": one.title,
        "model": manifest.model.name,
        "judge": manifest.judge.name,
        **{name: numbers[name] for name in ("value", "low", "high", "scored", "due", "turns", "failed", "cost")},
        "turns_due": one.expected_turns,
        "state": one.state,
        "started": one.record.started,
    }


COLUMNS = ("run", "benchmark", "title", "main number", "scored", "cost", "state", "age")


def _table(found: "list[RunEntry]") -> None:
    """A line for each run; two where the screen is too narrow for one."""
    from weft.cli.fitting import lines
    from weft.cli.screen import Screen

    console = Screen(soft_wrap=True)
    judges = {one.judge for one in found}
    rows = [_row(one, several=len(judges) > 1) for one in found]
    for text in lines(COLUMNS, rows, console.width, name=2):
        console.print(text)
    if len(judges) == 1:
        console.print(f"all judged by {next(iter(judges))}")


def _row(one: "RunEntry", *, several: bool) -> tuple[str, ...]:
    import time

    from weft.results.index import format_age
    from weft.untrusted import format_for_terminal

    manifest = one.record.manifest
    if several:
        judge = f", judged by {one.judge}"
    else:
        judge = ""
    if one.gist.cost is None:
        cost = "?"
    else:
        cost = f"${one.gist.cost:.2f}"
    since = format_age(time.time() - one.record.started)
    words = (
        one.handle,
        manifest.benchmark.name,
        one.tagged_title + judge,
        one.gist.headline_text,
        one.coverage,
        cost,
        one.state,
        since,
    )
    return tuple(format_for_terminal(word) for word in words)


@app.command()
def tag(
    context: typer.Context,
    run: o.Run,
    name: Annotated[
        str, typer.Argument(help="What to call it, in commands, tables and plots; '' takes its name away.")
    ],
    home: o.HomeOf = None,
) -> None:
    """Give a run a name: it is then called so in every command, table, plot and page.

    Examples:

      weft runs tag last ours-2k

      weft report ours-2k --open
    """
    from weft.errors import UserError
    from weft.results.run import find_run
    from weft.workspace import open_journal

    journal = open_journal(home or context.obj, write=True)
    found = find_run(journal, run)
    name = " ".join(name.split())
    if name == "last" or len(name) > 60 or not name.isprintable():
        raise UserError(f"{name[:60]!r} cannot be a name: give up to 60 characters, and not 'last'")
    other = next(
        (one for one in journal.runs() if name and name in (one.id, one.names.get("tag")) and one.id != found.id), None
    )
    if other is not None:
        raise UserError(f"{name} is {other.id} already")
    journal.set_names(found.id, tag=name)
    journal.close()
    before = found.names.get("tag")
    if before and before != name:
        was = f" (it was {before})"
    else:
        was = ""
    say(f"{found.id} is now called {name}{was}" if name else f"{found.id} has no other name any more{was}")


@app.command()
def rm(
    context: typer.Context,
    run: Annotated[
        list[str], typer.Argument(help="Runs: tags, ids or their beginnings.", autocompletion=o.complete_run)
    ],
    yes: o.Yes = False,
    home: o.HomeOf = None,
) -> None:
    """Remove runs from the journal, after asking. Answers stay: the same command makes the run again at no cost, until
    `weft journal shrink` removes what no run needs. What people said of a run goes with it.

    Examples:

      weft runs rm 1a2b3c4d

      weft runs rm ours-2k ours-4k --yes
    """
    from weft.errors import UserError
    from weft.results.run import find_run
    from weft.store.locks import with_actual_state
    from weft.workspace import open_journal

    place: o.Path = home or context.obj
    journal = open_journal(place, write=True)
    found = [with_actual_state(find_run(journal, one), place) for one in run]
    busy = next((one.id for one in found if one.state == "running"), "")
    if busy:
        raise UserError(f"{busy} is going on: stop it first")
    for record in found:
        turns, verdicts = journal.count_done(record.id)
        rated, people = journal.count_annotations(record.id)
        if rated:
            told = f", {rated} ratings by {people} {'person' if people == 1 else 'people'}, which go with it for good"
        else:
            told = ""
        say(f"{record.id}: {turns} turns, {verdicts} verdicts, {record.state}{told}")
    o.sure(yes, f"remove {'this run' if len(found) == 1 else f'these {len(found)} runs'} from the list")
    for record in found:
        journal.remove_run(record.id)
    journal.close()
    say(f"removed: {', '.join(record.id for record in found)}; their answers stay until `weft journal shrink`")
