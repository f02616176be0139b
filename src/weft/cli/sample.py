"""weft show"""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli import options as o
from weft.cli.terminal import say

if TYPE_CHECKING:
    from weft.store.journal import CallRecord, TurnRecord
    from weft.types import Part, Verdict


def show(
    run: o.Run,
    sample: Annotated[
        str | None, typer.Argument(help="A sample of it, or the beginning of its name. Default: those with trouble.")
    ] = None,
    turn: Annotated[int | None, typer.Option(min=1, help="Only this turn, counted from 1.")] = None,
    benchmark: o.OwnBenchmark = None,
    home: o.Home = o.Path(".weft"),
) -> None:
    """One dialogue on the terminal: what was asked and answered, every verdict with its reason, and the traceback of
    whatever a model or a benchmark of yours raised. Without a sample: which have trouble, and what.

    Examples:

      weft show last

      weft show last garden-12 --turn 2
    """
    from weft.errors import UserError
    from weft.results.run import load_run
    from weft.workspace import open_journal

    journal = open_journal(home)
    found = load_run(journal, run, benchmark)
    if sample is None:
        return _trouble(found)
    names = list(dict.fromkeys(one.sample for one in found.turns))
    fits = [name for name in names if name == sample] or [name for name in names if name.startswith(sample)]
    if len(fits) != 1:
        there = ", ".join((fits or names)[:8]) + (
            f" and {len(fits or names) - 8} more" if len(fits or names) > 8 else ""
        )
        raise UserError(
            f"{'no' if not fits else 'more than one'} sample of {found.id} is called {sample!r}; there is {there}"
        )
    turns = [one for one in found.turns if one.sample == fits[0] and turn in (None, one.turn + 1)]
    if not turns:
        raise UserError(f"{fits[0]} has no turn {turn}")
    traces = journal.traces(found.id, fits[0])
    for one in turns:
        given = [verdict for verdict in found.verdicts if (verdict.sample, verdict.turn) == (one.sample, one.turn)]
        calls = journal.calls(one.reply.keys) if one.reply.keys else {}
        _turn(one, given, calls, traces.get(one.turn, []), found.benchmark)


def _trouble(run: Any) -> None:
    """Turns that failed or are unscored, by what happened."""
    from collections import Counter

    failed = [one for one in run.turns if one.reply.outcome == "failed"]
    unscored = [one for one in run.verdicts if one.value is None]
    whole = run.record.is_complete(len(run.turns))
    if not whole:
        say(
            f"{run.id} is {run.record.state}: {run.record.count(len(run.turns))} are there; the same command does the rest"
        )
    if not run.turns:
        return
    if not failed and not unscored:
        if whole:
            told = "nothing failed, and everything is scored"
        else:
            told = "nothing of that failed, and all of it is scored"
        return say(f"{run.id}: {told}; weft show {run.id} {run.turns[0].sample} shows a dialogue")
    for reason, count in Counter(one.reply.reason for one in failed).most_common(8):
        where = next(one for one in failed if one.reply.reason == reason)
        say(f"{count} failed: {reason}")
        say(f"    weft show {run.id} {where.sample} --turn {where.turn + 1}")
    for reason, count in Counter(one.reason for one in unscored).most_common(8):
        verdict = next(one for one in unscored if one.reason == reason)
        say(f"{count} unscored: {reason}")
        say(f"    weft show {run.id} {verdict.sample} --turn {verdict.turn + 1}")


def _turn(
    one: "TurnRecord", given: "list[Verdict]", calls: "dict[str, CallRecord]", traces: list[str], benchmark: Any
) -> None:
    from weft.report.scale import format_share
    from weft.results.run import read_dataset_turn

    say(f"{one.sample}, turn {one.turn + 1} ({one.modality})")
    _parts("asked", read_dataset_turn(one).prompt)
    if one.reply.reason:
        how = f"{one.reply.outcome}: {one.reply.reason}"
    else:
        how = one.reply.outcome
    _parts(f"answered ({how})", one.reply.parts)
    for verdict in given:
        if verdict.value is None:
            value = "unscored"
        else:
            value = format_share(benchmark, verdict.value)
        say(f"  {verdict.metric}: {value} by {verdict.by}: {' '.join(verdict.reason.split())}")
    for trace in [
        *(call.raw for call in calls.values() if call.outcome == "failed" and "Traceback" in call.raw),
        *traces,
    ]:
        say()
        for text in trace.rstrip().splitlines():
            say(f"    {text}")
    say()


def _parts(what: str, parts: "tuple[Part, ...]") -> None:
    from weft.types import Image

    say(f"  {what}:")
    for part in parts:
        if isinstance(part, Image):
            told = f"[picture {part.width} x {part.height}, {part.digest[:12]}]"
        else:
            told = part.text.strip()
        for text in told.splitlines():
            say(f"    {text}")
