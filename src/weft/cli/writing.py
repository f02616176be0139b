"""What `weft write` does: asks, tells how far it is, and writes the files."""

import contextlib
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bar

from weft.api import build_document
from weft.cli.screen import Screen
from weft.cli.terminal import complain, say
from weft.evaluation.config import RunConfig
from weft.evaluation.session import Interrupted, open_run, run_in_loop
from weft.evaluation.writing import WritingRequest, find_document, find_image_prompts
from weft.models.compose.weaver import PROGRESS_LISTENER, WeaverProgress
from weft.report import document
from weft.results.run import Run
from weft.workspace import open_blobs

EVERY = 5.0  # seconds between lines where there is no terminal


class Watch:
    """How far the pictures are, as the model tells it."""

    def __init__(self) -> None:
        self.last: WeaverProgress | None = None

    def take(self, told: WeaverProgress) -> None:
        self.last = told

    @property
    def words(self) -> str:
        if self.last is None:
            return "writing"
        if self.last.planned:
            return f"drawing, picture {min(self.last.drawn + 1, self.last.planned)} of {self.last.planned}"
        return "writing"


def write_document(
    text: str,
    model: str,
    outs: Sequence[Path],
    images: Sequence[Path],
    options: Mapping[str, Any],
    concurrency: int | None,
    budget: float | None,
    show: bool,
    home: Path,
) -> int:
    for out in outs:
        document.format_of(out)  # before anything is paid for
    config = RunConfig(
        model=model, home=home, concurrency=concurrency, budget=budget, model_options=options, probe=False
    )
    return run_in_loop(_write(config, WritingRequest(text, tuple(images)), outs, show))


async def _write(config: RunConfig, asked: WritingRequest, outs: Sequence[Path], show: bool) -> int:
    watch = Watch()
    began = time.monotonic()
    try:
        async with open_run(config, asked) as session:
            PROGRESS_LISTENER.set(watch.take)
            with _follow(watch):
                await session.run()
    except Interrupted as error:
        complain(str(error))
        return 130
    home = session.journal.path.parent
    reason = session.halt.reason
    run = Run.from_home(home, session.run_id, session.plan.benchmark)
    if reason is not None:
        complain(
            "stopped. Nothing is lost: run the same command again to go on."
            if isinstance(reason, Interrupted)
            else str(reason)
        )
        if isinstance(reason, Interrupted):
            return 130
        return 1
    reply = find_document(run)
    if reply.reason:
        complain(f"note: {reply.reason}" if reply.outcome == "answered" else f"{reply.outcome}: {reply.reason}")
    if not reply.output:
        return 1
    words = sum(len(part.split()) for part in [reply.text])
    _told(run, time.monotonic() - began, words, len(reply.images))
    whole = build_document(run, home, asked.text)
    for out in outs:
        document.write(whole, open_blobs(home), out)
        say(out)
    if show:
        import webbrowser

        if not webbrowser.open(outs[0].absolute().as_uri()):
            say("no browser could be opened here: open the file yourself")
    missing = len(find_image_prompts(run, home)) > len(reply.images)
    if missing or reply.outcome != "answered":
        return 1
    return 0


def _told(run: Run, seconds: float, words: int, pictures: int) -> None:
    """What there is, and what drawing at the same time has saved."""
    said = f"{words} words, {pictures} picture{'s' * (pictures != 1)}, {seconds:.1f} s"
    drew = sum(total.seconds for total in run.totals if total.role == "visualizer")
    if drew > 1.1 * seconds:
        said += f"; the pictures alone would have taken {drew:.1f} s one after another"
    complain(said)


@contextlib.contextmanager
def _follow(watch: Watch) -> Generator[None]:
    done = threading.Event()
    screen = Screen(stderr=True, soft_wrap=True)
    thread = threading.Thread(target=_bar if screen.is_terminal else _lines, args=(watch, screen, done), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(2)


def _bar(watch: Watch, screen: Screen, done: threading.Event) -> None:
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Bar(*columns, TimeRemainingColumn(compact=True), console=screen, transient=True) as bar:
        task = bar.add_task("writing", total=None)
        while not done.wait(0.2):
            last = watch.last
            bar.update(
                task, description=watch.words, completed=last.drawn if last else 0, total=last.planned if last else None
            )


def _lines(watch: Watch, screen: Screen, done: threading.Event) -> None:
    told = ""
    while not done.wait(EVERY if told else 0.5):
        if watch.words != told:
            told = watch.words
            screen.print(told)
