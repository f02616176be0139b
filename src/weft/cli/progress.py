"""The progress of a run: bars with rate, time left, cost and outcomes on a terminal, and a line for each endpoint;
elsewhere a line from time to time."""

import contextlib
import threading
from collections.abc import Generator

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from weft.evaluation.progress import estimate_turns, format_facts, format_line, format_roles
from weft.evaluation.session import Session
from weft.untrusted import format_for_terminal

LINE_INTERVAL_S = 15.0  # between lines where there is no terminal
BAR_INTERVAL_S = 0.25
JOIN_TIMEOUT_S = 2.0


@contextlib.contextmanager
def show_progress(session: Session, console: Console) -> Generator[None]:
    """Show progress until the block ends. A thread reads the session's counters; it never changes anything."""
    done = threading.Event()
    if console.is_terminal:
        target = _show_bars
    else:
        target = _print_lines
    thread = threading.Thread(target=target, args=(session, console, done), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(JOIN_TIMEOUT_S)


def _show_bars(session: Session, console: Console, done: threading.Event) -> None:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(compact=True),
    )
    bar = Progress(*columns, console=console, auto_refresh=False)
    turns = bar.add_task("turns", total=estimate_turns(session))
    verdicts = bar.add_task("verdicts", total=None)
    with Live(console=console, refresh_per_second=4, transient=True) as live:
        while not done.wait(BAR_INTERVAL_S):
            progress = session.progress
            total = estimate_turns(session)
            # Turns to come are assumed to need as many verdicts as those that are done.
            expected = progress.verdicts_expected * total / max(progress.turns_done, 1)
            bar.update(turns, completed=progress.turns_done, total=total)
            bar.update(verdicts, completed=progress.verdicts_done, total=max(round(expected), 1))
            lines = [format_facts(session), *format_roles(session)]
            live.update(Group(bar, *(Text(format_for_terminal(line), style="dim") for line in lines)))


def _print_lines(session: Session, console: Console, done: threading.Event) -> None:
    while not done.wait(LINE_INTERVAL_S):
        console.print(format_line(session))
