"""weft show"""

from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli.options import DEFAULT_HOME, HomeOption, OwnBenchmarkOption, RunArgument
from weft.cli.terminal import say

if TYPE_CHECKING:
    from weft.results.run import Run
    from weft.store.journal import Journal, TurnRecord
    from weft.types import Part, Verdict

MAX_REASONS = 8


def show(
    run: RunArgument,
    sample: Annotated[
        str | None,
        typer.Argument(
            metavar="SAMPLE", help="A sample of it, or the beginning of its name. Default: those with problems."
        ),
    ] = None,
    turn: Annotated[int | None, typer.Option(min=1, metavar="N", help="Only this turn, counted from 1.")] = None,
    cell: Annotated[
        str | None,
        typer.Option(
            metavar="WORDS",
            help="The dialogues behind a number of the report's tables: a column, and parts of its table's title or of "
            "its row, with slashes between them.",
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="With --cell: how many verdicts are shown.")] = 20,
    benchmark: OwnBenchmarkOption = None,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Show a dialogue, or the samples of a run that have problems.

    Prompts, replies, every verdict with its reason, and the traceback of whatever a model or a benchmark of yours
    raised. Without a sample: what failed, is unscored, or counts 0 because the model failed, and why.

    Examples:

      weft show last

      weft show last garden-12 --turn 2

      weft show last --cell "Avg/Science"              # the worst first, with the judge's calls

      weft show last --cell "by domain/maze/Avg" --limit 5
    """
    from weft.errors import UserError
    from weft.results.run import load_run
    from weft.results.samples import find_sample
    from weft.workspace import open_journal

    journal = open_journal(home)
    loaded = load_run(journal, run, benchmark)
    if cell is not None:
        from weft.cli.show_cell import print_cell

        if sample is not None or turn is not None:
            raise UserError("--cell is about a whole run: leave the sample and --turn out")
        print_cell(loaded, journal, cell, limit)
        return
    if sample is None:
        _print_problems(loaded)
        return
    name = find_sample([record.sample for record in loaded.turns], sample, loaded.id)
    turns = [record for record in loaded.turns if record.sample == name and turn in (None, record.turn + 1)]
    if not turns:
        raise UserError(f"{name} has no turn {turn}")
    traces = journal.traces(loaded.id, name)
    for record in turns:
        all_traces = _find_call_traces(journal, record) + list(traces.get(record.turn, []))
        _print_turn(loaded, record, all_traces)


def _print_problems(run: "Run") -> None:
    """Print which turns failed, are unscored or count 0 because the model failed, by reason, each with the command that
    shows one."""
    failed = [record for record in run.turns if record.reply.outcome == "failed"]
    unscored = [verdict for verdict in run.verdicts if verdict.value is None]
    zeroed = [verdict for verdict in run.verdicts if verdict.by == "failure"]
    complete = run.record.is_complete(len(run.turns))
    if not complete:
        count = run.record.format_turn_count(len(run.turns))
        say(f"{run.id} is {run.record.state}: {count} are there; the same command does the rest")
    if not run.turns:
        return
    if not failed and not unscored and not zeroed:
        finding = "nothing of that failed, and all of it is scored"
        if complete:
            finding = "nothing failed, and everything is scored"
        say(f"{run.id}: {finding}; weft show {run.id} {run.turns[0].sample} shows a dialogue")
        return
    _print_reasons(run, "failed", [(record.reply.reason, record.sample, record.turn) for record in failed])
    _print_reasons(run, "unscored", [(verdict.reason, verdict.sample, verdict.turn) for verdict in unscored])
    zeroed_turns = dict.fromkeys((verdict.reason, verdict.sample, verdict.turn) for verdict in zeroed)
    _print_reasons(run, "zeroed for model failure", list(zeroed_turns))


def _print_reasons(run: "Run", state: str, occurrences: list[tuple[str, str, int]]) -> None:
    """Print the most frequent reasons, each with the command that shows its first turn."""
    from collections import Counter

    counts: Counter[str] = Counter()
    first_turns: dict[str, tuple[str, int]] = {}
    for reason, sample, turn in occurrences:
        counts[reason] += 1
        first_turns.setdefault(reason, (sample, turn))
    for reason, count in counts.most_common(MAX_REASONS):
        sample, turn = first_turns[reason]
        say(f"{count} {state}: {reason}")
        say(f"    weft show {run.id} {sample} --turn {turn + 1}")


def _find_call_traces(journal: "Journal", record: "TurnRecord") -> list[str]:
    """Return the tracebacks of the calls behind a turn's reply."""
    if not record.reply.keys:
        return []
    calls = journal.calls(record.reply.keys).values()
    return [call.raw for call in calls if call.outcome == "failed" and "Traceback" in call.raw]


def _print_turn(run: "Run", record: "TurnRecord", traces: list[str]) -> None:
    from weft.results.run import read_dataset_turn

    say(f"{record.sample}, turn {record.turn + 1} ({record.modality})")
    _print_parts("prompt", read_dataset_turn(record).prompt)
    outcome: str = record.reply.outcome
    if record.reply.reason:
        outcome += f": {record.reply.reason}"
    _print_parts(f"reply ({outcome})", record.reply.parts)
    for verdict in run.verdicts:
        if (verdict.sample, verdict.turn) == (record.sample, record.turn):
            _print_verdict(run, verdict)
    for trace in traces:
        say()
        for line in trace.rstrip().splitlines():
            say(f"    {line}")
    say()


def _print_verdict(run: "Run", verdict: "Verdict") -> None:
    from weft.report.scale import format_share

    score = "unscored"
    if verdict.value is not None:
        score = format_share(run.benchmark, verdict.value)
    say(f"  {verdict.metric}: {score} by {verdict.by}: {' '.join(verdict.reason.split())}")


def _print_parts(title: str, parts: "tuple[Part, ...]") -> None:
    from weft.types import Image

    say(f"  {title}:")
    for part in parts:
        if isinstance(part, Image):
            text = f"[image {part.width} x {part.height}, {part.digest[:12]}]"
        else:
            text = part.text.strip()
        for line in text.splitlines():
            say(f"    {line}")
