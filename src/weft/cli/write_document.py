"""What `weft write` does: runs the request, shows its progress, and writes the files."""

import contextlib
import threading
import time
from collections.abc import Generator, Sequence
from pathlib import Path

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from weft.cli.outcome import COMPLETE, INCOMPLETE, INTERRUPTED, RESUME, format_count
from weft.cli.screen import Screen
from weft.cli.terminal import complain, open_in_browser, say
from weft.evaluation.config import RunConfig
from weft.evaluation.event_loop import run_in_loop
from weft.evaluation.session import Interrupted, open_run
from weft.evaluation.writing import WritingRequest, find_document, find_image_prompts
from weft.models.compose.weaver import PROGRESS_LISTENER, WeaverProgress
from weft.report import document
from weft.results.run import Run
from weft.types import Reply
from weft.workspace import open_blobs

FIRST_LINE_S = 0.5  # until the first line where there is no terminal
LINE_INTERVAL_S = 5.0
BAR_INTERVAL_S = 0.2
JOIN_TIMEOUT_S = 2.0
WORTH_TELLING = 1.1  # times faster than one image after another


class ProgressWatch:
    """The last progress that the model reported."""

    def __init__(self) -> None:
        self.last: WeaverProgress | None = None

    def update(self, progress: WeaverProgress) -> None:
        self.last = progress

    @property
    def description(self) -> str:
        if self.last is None or not self.last.planned:
            return "writing"
        number = min(self.last.drawn + 1, self.last.planned)
        return f"generating image {number} of {self.last.planned}"


def write_document(config: RunConfig, request: WritingRequest, outs: Sequence[Path], *, open_file: bool) -> int:
    """Write a document to files, and return the exit code."""
    for out in outs:
        document.format_of(out)  # refuses an unknown suffix before any call is paid for
    return run_in_loop(_write(config, request, outs, open_file))


async def _write(config: RunConfig, request: WritingRequest, outs: Sequence[Path], open_file: bool) -> int:
    watch = ProgressWatch()
    started = time.monotonic()
    try:
        async with open_run(config, request) as session:
            PROGRESS_LISTENER.set(watch.update)
            with _show_progress(watch):
                await session.run()
    except Interrupted as error:
        complain(str(error))
        return INTERRUPTED
    home = session.journal.path.parent
    reason = session.halt.reason
    run = Run.from_home(home, session.run_id, session.plan.benchmark)
    if isinstance(reason, Interrupted):
        complain(RESUME)
        return INTERRUPTED
    if reason is not None:
        complain(str(reason))
        return INCOMPLETE
    reply = find_document(run)
    if reply.reason and reply.outcome == "answered":
        complain(f"note: {reply.reason}")
    elif reply.reason:
        complain(f"{reply.outcome}: {reply.reason}")
    if not reply.output:
        return INCOMPLETE
    _print_summary(run, reply, time.monotonic() - started)
    readable = document.build_document(run, home, request.text)
    for out in outs:
        document.write(readable, open_blobs(home), out)
        say(out)
    if open_file:
        open_in_browser(outs[0].absolute().as_uri(), what="file")
    lacks_images = len(find_image_prompts(run, home)) > len(reply.images)
    if lacks_images or reply.outcome != "answered":
        return INCOMPLETE
    return COMPLETE


def _print_summary(run: Run, reply: Reply, seconds: float) -> None:
    """Print the size of the document, and the time that concurrent generation saved."""
    words = len(reply.text.split())
    summary = f"{words} words, {format_count(len(reply.images), 'image')}, {seconds:.1f} s"
    generation = sum(total.seconds for total in run.totals if total.role == "visualizer")
    if generation > WORTH_TELLING * seconds:
        summary += f"; the images alone would have taken {generation:.1f} s one after another"
    complain(summary)


@contextlib.contextmanager
def _show_progress(watch: ProgressWatch) -> Generator[None]:
    done = threading.Event()
    screen = Screen(stderr=True, soft_wrap=True)
    if screen.is_terminal:
        target = _show_bar
    else:
        target = _print_lines
    thread = threading.Thread(target=target, args=(watch, screen, done), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(JOIN_TIMEOUT_S)


def _show_bar(watch: ProgressWatch, screen: Screen, done: threading.Event) -> None:
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(compact=True),
    )
    with Progress(*columns, console=screen, transient=True) as bar:
        task = bar.add_task("writing", total=None)
        while not done.wait(BAR_INTERVAL_S):
            last = watch.last
            if last is not None:
                bar.update(task, description=watch.description, completed=last.drawn, total=last.planned)


def _print_lines(watch: ProgressWatch, screen: Screen, done: threading.Event) -> None:
    printed = ""
    interval = FIRST_LINE_S
    while not done.wait(interval):
        if watch.description != printed:
            printed = watch.description
            screen.print(printed)
            interval = LINE_INTERVAL_S
