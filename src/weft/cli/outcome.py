"""What a command reports when a session is over: the table, the summary, what is missing, the exit code."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console

from weft import benchmarks
from weft.calls.caller import EndpointDown
from weft.cli.screen import Screen
from weft.cli.tables import print_table
from weft.errors import UserError, WeftError
from weft.evaluation.session import Interrupted, Session
from weft.models.endpoint import TaskEndpoint
from weft.results.index import describe_shards
from weft.results.run import Run, Summary

INTERRUPTED = 130
USER_MISTAKE = 2
INCOMPLETE = 1
COMPLETE = 0
MAX_PROBLEMS = 20  # of a dataset, that are printed one by one
MANIFEST_LINES = 3  # the first lines of a summary say what was run, which the user knows
RESUME = "stopped. Every reply that came is kept: run the same command again to go on; it repeats the calls in flight."


class SessionOutcome(msgspec.Struct, frozen=True):
    """What is needed of a session after it ended. It does not refer to the session, whose dataset may be large."""

    home: str | Path  # as the user gave it
    folder: Path  # the home, resolved
    run_id: str
    benchmark: Any
    reason: WeftError | None  # why the session ended early
    removed_as_empty: bool  # nothing was stored: there is no run
    dataset_notes: tuple[str, ...]  # records that are left out, warnings, turns that the model cannot answer
    missing_verdicts: int = 0  # expected when the session ended
    open_tasks: str = ""  # calls that were submitted and are not back
    endpoint_notes: tuple[str, ...] = ()
    calls: str = ""  # what this command itself called
    shard: str = ""

    @classmethod
    def from_session(cls, session: Session) -> "SessionOutcome":
        tasks: list[str] = []
        notes: list[str] = []
        for endpoint in session.endpoints.values():
            if endpoint.status_line and isinstance(endpoint, TaskEndpoint):
                tasks.append(endpoint.status_line)
            elif endpoint.status_line:
                notes.append(f"{endpoint.name}: {endpoint.status_line}")
        progress = session.progress
        return cls(
            home=session.config.home,
            folder=session.journal.path.parent,
            run_id=session.run_id,
            benchmark=session.plan.benchmark,
            reason=session.halt.reason,
            removed_as_empty=session.removed_as_empty,
            dataset_notes=tuple(_describe_dataset(session)),
            missing_verdicts=progress.verdicts_expected - progress.verdicts_done,
            open_tasks=", ".join(tasks),
            endpoint_notes=tuple(notes),
            calls=_describe_calls(session),
            shard=str(session.plan.shard or ""),
        )

    def load_run(self) -> Run:
        return Run.from_home(self.folder, self.run_id, self.benchmark)


def _describe_calls(session: Session) -> str:
    """Return, for each role, how many calls this command made and how many were cached, and what they cost."""
    roles: list[str] = []
    cost = 0.0
    for role, caller in session.callers.items():
        tally = caller.tally
        if tally.calls or tally.cached:
            roles.append(f"{role} {tally.calls} calls made, {tally.cached} calls cached")
            cost += tally.cost
    if not roles:
        return ""
    return f"this command: {'; '.join(roles)}; ${cost:.4f}"


def _describe_dataset(session: Session) -> Iterator[str]:
    """Yield what was noticed while the dataset was read: turns that the model cannot answer, warnings, records that are
    left out."""
    reasons = session.unsupported_reasons()
    for modality, count in session.unsupported_turns.items():
        yield (
            f"{count} of {session.progress.turns} turns want {modality}, and {reasons[modality]}: "
            "those are not asked, and count as no answer"
        )
    dataset = session.plan.dataset
    problems = [problem for problem in dataset.problems if problem not in session.new_problems]
    warnings = sum(problem.severity == "warning" and bool(problem.record) for problem in problems)
    if warnings:
        yield f"{format_count(warnings, 'warning')} about records; `weft data check` lists them"
    errors = [problem for problem in problems if problem.severity == "error"]
    for problem in errors[:MAX_PROBLEMS]:
        yield f"left out: {problem}"
    if errors:
        records = len({problem.record for problem in errors if problem.record})
        files = sum(not problem.record for problem in errors)
        unreadable = ""
        if files:
            unreadable = f"{format_count(files, 'file')} could not be read at all, and "
        yield (
            f"{unreadable}{records} of {dataset.records} records are left out; `weft data check` lists every problem"
        )


def format_count(count: int, noun: str) -> str:
    if count == 1:
        return f"1 {noun}"
    return f"{count} {noun}s"


def print_conclusion(console: Console, outcome: SessionOutcome, run: Run) -> None:
    """Print the main table to standard output, and everything else to `console`."""
    for line in outcome.dataset_notes:
        console.print(line)
    if run.verdicts:
        table = run.table()
        own_rows = msgspec.structs.replace(table, rows=table.run_rows)
        print_table(Screen(), own_rows, glossary=run.benchmark.presentation.glossary)
    summary = run.summary()
    _print_summary(console, summary)
    shards = describe_shards(run.record)
    if shards and outcome.shard:
        console.print(f"shard {outcome.shard} is done: {shards}; `weft journal merge` puts them together")
    elif shards:
        console.print(shards)
    for line in (outcome.calls, *outcome.endpoint_notes):
        if line:
            console.print(line)
    if outcome.open_tasks:
        console.print(f"submitted, and not finished: {outcome.open_tasks}; the same command collects it")
    _print_reason(console, outcome, summary)
    _print_next_commands(console, outcome, run)


def _print_summary(console: Console, summary: Summary) -> None:
    first = MANIFEST_LINES
    if summary.unfinished:
        first += 1  # the reason below says so
    for line in summary.lines[first:]:
        if not line.startswith("left out of the dataset: "):
            console.print(line)


def _print_reason(console: Console, outcome: SessionOutcome, summary: Summary) -> None:
    """Print why the run ended early, and what is left to do."""
    if outcome.reason is None:
        return
    if isinstance(outcome.reason, Interrupted):
        console.print(RESUME)
        return
    console.print(f"weft: {outcome.reason}")
    verdicts = outcome.missing_verdicts + summary.verdicts - summary.scored
    turns = "turns that were not read yet"
    if summary.expected:
        turns = f"{summary.expected.turns - summary.turns} of {summary.expected.turns} turns"
    console.print(f"left to do: {turns}, {verdicts} verdicts about those that are done.")
    console.print("What is done is cached: run the same command again to go on.")


def _print_next_commands(console: Console, outcome: SessionOutcome, run: Run) -> None:
    options = ""
    if not benchmarks.is_known(run.record.benchmark):
        options += f" --benchmark {run.record.benchmark}"
    options += format_home(outcome.home)
    if run.replies.outcomes["failed"] or _has_unscored(run):
        console.print(f"what went wrong, turn by turn: weft show {run.id}{options}")
    console.print(f"report: weft report {run.id}{options}")


def _has_unscored(run: Run) -> bool:
    return any(verdict.value is None for verdict in run.verdicts)


def exit_if_interrupted(outcome: SessionOutcome, console: Console) -> None:
    """End the program, with a line that says how to resume, if the user interrupted the session."""
    if isinstance(outcome.reason, Interrupted):
        console.print(RESUME)
        sys.exit(INTERRUPTED)


def exit_code_for(reason: WeftError | None) -> int:
    """Return the exit code for the reason that ended a session; COMPLETE if there is none."""
    if reason is None:
        return COMPLETE
    if isinstance(reason, Interrupted):
        return INTERRUPTED
    if isinstance(reason, UserError) or (isinstance(reason, EndpointDown) and reason.user_fault):
        return USER_MISTAKE
    return INCOMPLETE


def exit_code(outcome: SessionOutcome, run: Run) -> int:
    """Return 0: all scored. 1: ended early, or something is unscored. 2: a user's mistake. 130: interrupted."""
    if outcome.reason is None and _has_unscored(run):
        return INCOMPLETE
    return exit_code_for(outcome.reason)


def format_home(home: str | Path) -> str:
    """Return the `--home` that a suggested command needs; nothing for the default."""
    if str(home) == ".weft":
        return ""
    return f" --home {home}"
