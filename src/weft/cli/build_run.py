"""Runs a build with its progress on the terminal, and says how it ended."""

import contextlib
import threading
from collections.abc import Generator

from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from weft.building.build import BuildOutcome, OpenBuild, forecast_build, run_build
from weft.building.progress import BuildProgress
from weft.building.request import BuildRequest
from weft.building.selection import count_kinds, read_left_out
from weft.cli.outcome import COMPLETE, INCOMPLETE, RESUME, exit_code_for
from weft.cli.progress import BAR_INTERVAL_S, JOIN_TIMEOUT_S, LINE_INTERVAL_S
from weft.cli.screen import Screen
from weft.cli.terminal import complain, say
from weft.evaluation.event_loop import run_in_loop
from weft.untrusted import format_for_terminal

TOP_REASONS = 3  # that a line of progress shows


def run_and_report(request: BuildRequest) -> int:
    """Build, print the conclusion, and return the exit code: 0 whole, 1 not whole, 2 a user's mistake, 130 stopped."""
    console = Screen(stderr=True, soft_wrap=True)
    with contextlib.ExitStack() as showing:

        def start(opened: OpenBuild) -> None:
            console.print(f"build {opened.manifest.run}: {opened.manifest.recipe}, {opened.request.seeds:,} seeds")
            for note in opened.notes:
                console.print(f"note: {note}")
            showing.enter_context(show_progress(opened.progress, console))

        outcome = run_in_loop(run_build(request, start, lambda note: console.print(f"note: {note}")))
    return report(outcome)


def report(outcome: BuildOutcome) -> int:
    """Print how a build ended, and return the exit code."""
    say(outcome.progress.describe())
    if outcome.reason is not None:
        complain(str(outcome.reason))
        say(RESUME)
        return exit_code_for(outcome.reason)
    shard = outcome.manifest.shard
    if shard:
        say(f"shard {shard}: {outcome.out}; join all shards with weft build merge DIR {outcome.out} ...")
    else:
        say(f"dataset: {outcome.out}; yields and reasons: weft build status {outcome.out}")
    left_out = count_kinds(read_left_out(outcome.out))
    if left_out:
        kinds = ", ".join(f"{count:,} by {kind}" for kind, count in left_out.items())
        say(f"left out as duplicates of earlier dialogues: {kinds} (--duplicates none keeps them)")
    if outcome.failed:
        say(f"{outcome.failed} seeds failed through no fault of their own: the same command tries them again")
        say(f"the last of them: {outcome.progress.last_failure}")
        return INCOMPLETE
    return COMPLETE


def print_forecast(request: BuildRequest) -> int:
    """Print what a build would call and cost. Nothing is called."""
    forecast = run_in_loop(forecast_build(request))
    measured = forecast.measured
    left = forecast.seeds if measured is None else measured.left
    say(f"build {forecast.manifest.run}: {forecast.manifest.recipe}, {left:,} of {forecast.total:,} seeds left")
    low = 0.0
    high = 0.0
    for role, one in forecast.roles.items():
        name = forecast.manifest.names[role]
        calls = _format_range(one.calls[0], one.calls[1])
        if role in forecast.local:
            say(f"{role}: {name} answers here, {calls} times, at no cost")
            continue
        cost = "price unknown"
        if one.cost is not None:
            low += one.cost[0]
            high += one.cost[1]
            cost = f"about {_format_cost(*one.cost)}"
        images = f", {one.usage.images:,} images" if one.usage.images else ""
        say(f"{role}: {name}, {calls} calls to make ({one.cached:,} cached){images}, {cost}")
    if all(one.cost is not None for one in forecast.roles.values()):
        whole = f"about {_format_cost(low, high)}"
        if low < high:
            whole = f"about ${low:.2f} if every image is right at once, ${high:.2f} if every one is mended"
        say(f"together: {whole}")
        say("seeds that are dropped on the way cost less; each further try of a seed costs more")
    if measured is not None:
        say(
            f"by what {measured.seeds:,} seeds cost so far (${measured.cost:.4f} each, {measured.kept:,} kept): about "
            f"${measured.rest:.2f} for {measured.left:,} more, give or take ${measured.margin:.2f}"
        )
    expected = high if measured is None else measured.rest + measured.margin
    if request.budget is not None and expected > request.budget:
        say(f"note: that may be more than --budget {request.budget:g}, at which the build stops")
    return COMPLETE


def _format_range(low: int, high: int) -> str:
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _format_cost(low: float, high: float) -> str:
    """Return a range of dollars; one value where both round to the same."""
    bounds = (f"${low:.2f}", f"${high:.2f}")
    return bounds[0] if bounds[0] == bounds[1] else " to ".join(bounds)


@contextlib.contextmanager
def show_progress(progress: BuildProgress, console: Console) -> Generator[None]:
    """Show progress until the block ends. A thread reads the counters; it never changes anything."""
    done = threading.Event()
    target = _show_bar if console.is_terminal else _print_lines
    thread = threading.Thread(target=target, args=(progress, console, done), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(JOIN_TIMEOUT_S)


def _show_bar(progress: BuildProgress, console: Console, done: threading.Event) -> None:
    from rich.console import Group

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(compact=True),
    )
    bar = Progress(*columns, console=console, auto_refresh=False)
    task = bar.add_task("seeds", total=progress.total, completed=progress.earlier)
    with Live(console=console, refresh_per_second=4, transient=True) as live:
        while not done.wait(BAR_INTERVAL_S):
            bar.update(task, completed=progress.done, total=progress.total)
            lines = [progress.describe()]
            lines += [f"{reason}: {count:,}" for reason, count in progress.dropped.most_common(TOP_REASONS)]
            live.update(Group(bar, *(Text(format_for_terminal(line), style="dim") for line in lines)))


def _print_lines(progress: BuildProgress, console: Console, done: threading.Event) -> None:
    while not done.wait(LINE_INTERVAL_S):
        console.print(progress.describe())
