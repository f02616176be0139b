"""Formats a run in progress as text, for a terminal, a log or a notebook."""

import html
import sys
import threading
import time
from typing import Any

from weft.evaluation.session import Session
from weft.untrusted import format_for_terminal


def format_facts(session: Session) -> str:
    """Return rate, cost and outcomes in one line. Calls are those of all endpoints together."""
    progress = session.progress
    budget = session.budget
    tallies = [caller.tally for caller in session.callers.values()]
    calls = sum(tally.calls for tally in tallies)
    cached = sum(tally.cached for tally in tallies)
    retries = sum(tally.retries.total() for tally in tallies)
    rate = calls / max(time.monotonic() - progress.started, 0.001)
    words = [f"{calls} calls made", f"{rate:.1f}/s"]
    if cached:
        words.append(f"{cached} calls cached")
    if budget.unknown:
        words.append("cost unknown")
    else:
        words.append(f"${sum(tally.cost for tally in tallies):.4f}")
    if budget.limit is not None:
        words.append(f"at most ${budget.spent:.2f} of ${budget.limit:g}")
    words += [f"{count} {name}" for name, count in sorted(progress.outcomes.items())]
    if progress.unscored:
        words.append(f"{progress.unscored.total()} unscored")
    if retries:
        words.append(f"{retries} retries")
    return ", ".join(words)


def format_roles(session: Session) -> list[str]:
    """Return a line for each endpoint of the run."""
    lines: list[str] = []
    for role, caller in session.callers.items():
        words = [
            f"{caller.tally.calls} calls made",
            f"{caller.limiter.active} of {int(caller.limiter.limit)} in flight",
        ]
        if caller.tally.cached:
            words.append(f"{caller.tally.cached} calls cached")
        if caller.tally.retries:
            words.append(f"{caller.tally.retries.total()} retries")
        if caller.endpoint.status_line:
            words.append(caller.endpoint.status_line)
        lines.append(f"{role} {caller.name}: {', '.join(words)}")
    return lines


def format_line(session: Session) -> str:
    """Return the whole progress in one line."""
    progress = session.progress
    turns = estimate_turns(session)
    share = progress.turns_done / max(turns, 1)
    elapsed = time.monotonic() - progress.started
    remaining = ""
    if 0 < share < 1:
        remaining = f", about {elapsed / share - elapsed:.0f} s left"
    roles = "; ".join(format_roles(session))
    return f"turns {progress.turns_done}/{turns}{remaining}: {format_facts(session)}; {roles}"


def estimate_turns(session: Session) -> int:
    """Return the number of turns, extrapolated from the samples read so far."""
    progress = session.progress
    if not progress.samples or progress.samples >= progress.expected_samples or session.all_read:
        return progress.turns
    return round(progress.turns * progress.expected_samples / progress.samples)


def find_notebook_display() -> Any:
    """Return IPython's `display` if this runs in a notebook, else None."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython.display import display  # pyright: ignore[reportMissingImports, reportUnknownVariableType]

    return display  # pyright: ignore[reportUnknownVariableType]


class NotebookProgress:
    """What a notebook's cell shows while a run is in progress."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def __repr__(self) -> str:
        return format_line(self._session)

    def _repr_html_(self) -> str:
        progress = self._session.progress
        turns = estimate_turns(self._session)
        verdicts = max(progress.verdicts_expected, 1)
        rows = [
            f"<div>{_escape(self._session.run_id)}</div>",
            _format_bar("turns", progress.turns_done, turns),
            _format_bar("verdicts", progress.verdicts_done, verdicts),
        ]
        lines = (format_facts(self._session), *format_roles(self._session))
        rows += [f"<div style='opacity:.7;font-size:90%'>{_escape(line)}</div>" for line in lines]
        return "".join(rows)


def _format_bar(name: str, done: int, total: int) -> str:
    return f"<div>{name} <progress value='{done}' max='{total}'></progress> {done}/{total}</div>"


def _escape(text: str) -> str:
    return html.escape(format_for_terminal(text))


def show_in_notebook(session: Session, display: Any) -> None:
    """Show the progress in the current cell, until the run has ended."""
    progress = NotebookProgress(session)
    handle = display(progress, display_id=True)

    def update() -> None:
        while not session.done.wait(0.5):
            handle.update(progress)
        handle.update(progress)

    threading.Thread(target=update, name="progress", daemon=True).start()
