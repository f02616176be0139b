"""weft show --cell: the verdicts behind a number, with the judge's calls."""

import msgspec

from weft.cli.terminal import say
from weft.report.cells import NamedCell, find_cell
from weft.report.scale import format_share
from weft.report.select import format_with_interval
from weft.results.run import Run
from weft.store.journal import CallRecord, Journal
from weft.types import Reply, Verdict

MAX_KEY = 12  # characters of a cache key


def print_cell(run: Run, journal: Journal, words: str, limit: int) -> None:
    """Print a number of the run's tables and the verdicts that it was computed from: unscored ones first, then sorted
    ascending. Raises UserError if the words name no cell, or several."""
    named = find_cell(run.tables(), words)
    verdicts = sorted(named.cell.verdicts, key=_by_value)
    _print_head(named)
    for verdict in verdicts[:limit]:
        say()
        say(f"{verdict.sample}, turn {verdict.turn + 1}: weft show {run.id} {verdict.sample} --turn {verdict.turn + 1}")
        _print_verdict(run, verdict, journal)
    hidden = len(verdicts) - limit
    if hidden > 0:
        say()
        say(f"and {hidden} more verdicts; --limit {len(verdicts)} shows all of them")


def _print_head(named: NamedCell) -> None:
    cell = named.cell
    dialogues = len({verdict.sample for verdict in cell.verdicts})
    say(f"{named.table.title}")
    say(f"{named.row.label}, {named.column}: {format_with_interval(cell, named.table.digits)}")
    say(f"{len(cell.verdicts)} verdicts in {dialogues} dialogues, sorted ascending")


def _by_value(verdict: Verdict) -> tuple[float, str, int]:
    value = -1.0
    if verdict.value is not None:
        value = verdict.value
    return value, verdict.sample, verdict.turn


def _print_verdict(run: Run, verdict: Verdict, journal: Journal) -> None:
    score = "unscored"
    if verdict.value is not None:
        score = format_share(run.benchmark, verdict.value)
    name = f"{verdict.metric} ({verdict.variant})" if verdict.variant else verdict.metric
    say(f"  {name}: {score} by {verdict.by}: {' '.join(verdict.reason.split())}")
    if verdict.merged_from:
        for variant in verdict.merged_from:
            _print_verdict(run, variant, journal)
        return
    for call in journal.calls(verdict.keys).values():
        _print_call(call)


def _print_call(call: CallRecord) -> None:
    say(f"  call {call.key[:MAX_KEY]} of the {call.role} {call.model} ({call.outcome}), raw output:")
    output = call.raw or msgspec.json.decode(call.reply, type=Reply).text
    for line in output.splitlines():
        say(f"    {line}")
