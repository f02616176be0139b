"""A run while it goes on: bars with rate, time left, money and outcomes on a terminal, and a line for each endpoint; a line now and then
elsewhere."""

import contextlib
import threading
import time
from collections.abc import Generator

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from weft.outside import told
from weft.session import Session

EVERY = 15.0  # seconds between lines where there is no terminal


@contextlib.contextmanager
def follow(session: Session, console: Console) -> Generator[None]:
    """Show progress until the block ends. It reads the session's counters from a thread and touches nothing."""
    done = threading.Event()
    watch = _bars if console.is_terminal else _lines
    thread = threading.Thread(target=watch, args=(session, console, done), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(2)


def facts(session: Session) -> str:
    """Rate, money, outcomes, in one line."""
    progress, tallies = session.progress, [caller.tally for caller in session.callers.values()]
    calls = sum(tally.calls for tally in tallies)
    rate = calls / max(time.monotonic() - progress.started, 0.001)
    words = [f"{calls} calls", f"{rate:.1f}/s"]
    remembered = sum(tally.remembered for tally in tallies)
    if remembered:
        words.append(f"{remembered} from the journal")
    words.append("cost unknown" if session.budget.unknown else f"${sum(tally.cost for tally in tallies):.4f}")
    words += [f"at most ${session.budget.spent:.2f} of ${session.budget.limit:g}"] if session.budget.limit is not None else []
    words += [f"{count} {name}" for name, count in sorted(progress.outcomes.items())]
    if progress.unscored:
        words.append(f"{sum(progress.unscored.values())} unscored")
    retries = sum(sum(tally.retries.values()) for tally in tallies)
    if retries:
        words.append(f"{retries} retries")
    return ", ".join(words)


def by_role(session: Session) -> list[str]:
    """A line for each endpoint that plays in the run."""
    made: list[str] = []
    for role, caller in session.callers.items():
        words = [f"{caller.tally.calls} calls", f"{caller.limiter.active} of {int(caller.limiter.limit)} in flight"]
        words += [f"{caller.tally.remembered} from the journal"] if caller.tally.remembered else []
        words += [f"{sum(caller.tally.retries.values())} retries"] if caller.tally.retries else []
        words += [caller.endpoint.standing] if caller.endpoint.standing else []
        made.append(f"{role} {caller.name}: {', '.join(words)}")
    return made


def _bars(session: Session, console: Console, done: threading.Event) -> None:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn(compact=True))
    bar = Progress(*columns, console=console, auto_refresh=False)
    turns = bar.add_task("turns", total=session.progress.turns)
    verdicts = bar.add_task("verdicts", total=None)
    with Live(console=console, refresh_per_second=4, transient=True) as live:
        while not done.wait(0.25):
            progress = session.progress
            due = progress.verdicts_due * progress.turns / max(progress.turns_done, 1)  # those of turns to come are foreseen
            bar.update(turns, completed=progress.turns_done)
            bar.update(verdicts, completed=progress.verdicts_done, total=max(round(due), 1))
            live.update(Group(bar, *(Text(told(line), style="dim") for line in (facts(session), *by_role(session)))))


def _lines(session: Session, console: Console, done: threading.Event) -> None:
    while not done.wait(EVERY):
        progress = session.progress
        share = progress.turns_done / max(progress.turns, 1)
        spent = time.monotonic() - progress.started
        left = f", about {spent / share - spent:.0f} s left" if 0 < share < 1 else ""
        console.print(
            f"turns {progress.turns_done}/{progress.turns}{left}: {facts(session)}; {'; '.join(by_role(session))}",
        )
