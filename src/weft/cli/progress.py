"""A run while it goes on: bars with rate, time left, money and outcomes on a terminal, and a line for each endpoint; a
line now and then elsewhere."""

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

EVERY = 15.0  # seconds between lines where there is no terminal


@contextlib.contextmanager
def follow(session: Session, console: Console) -> Generator[None]:
    """Show progress until the block ends. It reads the session's counters from a thread and touches nothing."""
    done = threading.Event()
    if console.is_terminal:
        watch = _bars
    else:
        watch = _lines
    thread = threading.Thread(target=watch, args=(session, console, done), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(2)


def _bars(session: Session, console: Console, done: threading.Event) -> None:
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
        while not done.wait(0.25):
            progress = session.progress
            total = estimate_turns(session)
            # those of turns to come are foreseen
            due = progress.verdicts_expected * total / max(progress.turns_done, 1)
            bar.update(turns, completed=progress.turns_done, total=total)
            bar.update(verdicts, completed=progress.verdicts_done, total=max(round(due), 1))
            live.update(
                Group(
                    bar,
                    *(
                        Text(format_for_terminal(line), style="dim")
                        for line in (format_facts(session), *format_roles(session))
                    ),
                )
            )


def _lines(session: Session, console: Console, done: threading.Event) -> None:
    while not done.wait(EVERY):
        console.print(format_line(session))
