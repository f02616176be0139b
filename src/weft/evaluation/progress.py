"""A run while it goes on, in words, for whoever shows it: a terminal, a log, a notebook's cell."""

import html
import sys
import threading
import time
from typing import Any

from weft.evaluation.session import Session
from weft.untrusted import format_for_terminal


def format_facts(session: Session) -> str:
    """Rate, money, outcomes, in one line."""
    progress = session.progress
    tallies = [caller.tally for caller in session.callers.values()]
    calls = sum(tally.calls for tally in tallies)
    rate = calls / max(time.monotonic() - progress.started, 0.001)
    words = [f"{calls} calls", f"{rate:.1f}/s"]
    remembered = sum(tally.cached for tally in tallies)
    if remembered:
        words.append(f"{remembered} from the journal")
    words.append("cost unknown" if session.budget.unknown else f"${sum(tally.cost for tally in tallies):.4f}")
    words += (
        [f"at most ${session.budget.spent:.2f} of ${session.budget.limit:g}"]
        if session.budget.limit is not None
        else []
    )
    words += [f"{count} {name}" for name, count in sorted(progress.outcomes.items())]
    if progress.unscored:
        words.append(f"{sum(progress.unscored.values())} unscored")
    retries = sum(sum(tally.retries.values()) for tally in tallies)
    if retries:
        words.append(f"{retries} retries")
    return ", ".join(words)


def format_roles(session: Session) -> list[str]:
    """A line for each endpoint that plays in the run."""
    made: list[str] = []
    for role, caller in session.callers.items():
        words = [f"{caller.tally.calls} calls", f"{caller.limiter.active} of {int(caller.limiter.limit)} in flight"]
        words += [f"{caller.tally.cached} from the journal"] if caller.tally.cached else []
        words += [f"{sum(caller.tally.retries.values())} retries"] if caller.tally.retries else []
        words += [caller.endpoint.status_line] if caller.endpoint.status_line else []
        made.append(f"{role} {caller.name}: {', '.join(words)}")
    return made


def format_line(session: Session) -> str:
    """All of it in one line."""
    progress = session.progress
    turns = estimate_turns(session)
    share = progress.turns_done / max(turns, 1)
    spent = time.monotonic() - progress.started
    if 0 < share < 1:
        left = f", about {spent / share - spent:.0f} s left"
    else:
        left = ""
    return f"turns {progress.turns_done}/{turns}{left}: {format_facts(session)}; {'; '.join(format_roles(session))}"


def estimate_turns(session: Session) -> int:
    """Those read so far, and about as many for each sample that is not."""
    progress = session.progress
    if not progress.samples or progress.samples >= progress.expected_samples or session.all_read:
        return progress.turns
    return round(progress.turns * progress.expected_samples / progress.samples)


def find_notebook_display() -> Any:
    """The display of the notebook that this runs in; None elsewhere."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython.display import display  # pyright: ignore[reportMissingImports, reportUnknownVariableType]

    return display  # pyright: ignore[reportUnknownVariableType]


class NotebookProgress:
    """What a notebook's cell shows while a run goes on."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def __repr__(self) -> str:
        return format_line(self._session)

    def _repr_html_(self) -> str:
        progress = self._session.progress
        words = (format_facts(self._session), *format_roles(self._session))
        rows = "".join(
            f"<div style='opacity:.7;font-size:90%'>{html.escape(format_for_terminal(one))}</div>" for one in words
        )
        bars = (
            ("turns", progress.turns_done, estimate_turns(self._session)),
            ("verdicts", progress.verdicts_done, max(progress.verdicts_expected, 1)),
        )
        shown = "".join(
            f"<div>{what} <progress value='{done}' max='{due}'></progress> {done}/{due}</div>"
            for what, done, due in bars
        )
        return f"<div>{html.escape(format_for_terminal(self._session.run_id))}</div>{shown}{rows}"


def show_in_notebook(session: Session, display: Any) -> None:
    """A bar in the cell, until the run is over."""
    bar = NotebookProgress(session)
    handle = display(bar, display_id=True)

    def watch() -> None:
        while not session.done.wait(0.5):
            handle.update(bar)
        handle.update(bar)

    threading.Thread(target=watch, name="progress", daemon=True).start()
