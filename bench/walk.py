"""How far a reader walks to follow one WEAVE turn through the code: a run of one dialogue with one image turn, over
HTTP, traced.

    python bench/walk.py [--list]

Functions of weft are listed in the order in which they are first called. A return is a step of that list back into a
file that was left before. Three walks are counted, each by itself: opening a run (once a command), one turn (from the
first message that is built to its verdicts in the journal), and the report; and all of it together. `--list` shows the
whole walk. The package that is importable is the one that is measured, so `PYTHONPATH=OTHER/src python bench/walk.py`
measures another version."""

import argparse
import asyncio
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures.thread import _WorkItem
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import weft
from server import Provider
from toy import write_weave

PACKAGE = str(Path(weft.__file__).parent) + "/"
THREAD_START = threading.Thread.start.__code__
JOB_INIT, JOB_RUN = _WorkItem.__init__.__code__, _WorkItem.run.__code__  # of a thread pool, whichever thread has time
Work = threading.Thread | _WorkItem  # what runs functions of its own, where it was started
INNER = ("<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>", "<lambda>", "<module>")
# the first function of a turn (and its former name), and the first of a report
BEGINS = ("build_messages", "see")  # the first function of a turn, and its former name
ENDS = ("Run.from_home", "Run.stored")  # the first function of a report, and its former name


class Step(NamedTuple):
    """A function, and the file that it stands in."""

    name: str
    file: str


class Walk(NamedTuple):
    functions: int
    files: int
    returns: int

    def __str__(self) -> str:
        return f"{self.functions} functions in {self.files} files, {self.returns} returns to a file already left"


def one_turn() -> list[dict[str, Any]]:
    """A dialogue with a single request for an image."""
    chats = [
        {"role": "user", "type": "text", "content": "Paint the door of Image #1 green."},
        {
            "role": "assistant",
            "type": "image",
            "content": "Image #2",
            "key_point": {"GT #1": "Only the door of <image> is green."},
        },
    ]
    return [{"idx": 1, "domain": "edit", "images": ["imgs/a_1.png", "imgs/a_2.png"], "chats": chats}]


def traced(work: Any) -> list[Step]:
    """The functions of weft that `work` calls, in the order of their first call.

    What a thread or a job of a thread pool calls stands where it was started, so that the order does not depend on how
    busy the machine is.
    """
    calls: dict[Work, dict[CodeType | Work, None]] = {}
    running: dict[threading.Thread, Work] = {}  # the job of a thread

    def see(frame: FrameType, event: str, _: Any) -> None:
        thread = threading.current_thread()
        code = frame.f_code
        if code is JOB_RUN:
            running[thread] = frame.f_locals["self"] if event == "call" else thread
        elif event == "call":
            own = calls.setdefault(running.get(thread, thread), {})
            if code is THREAD_START or code is JOB_INIT:
                own.setdefault(frame.f_locals["self"])
            elif code.co_filename.startswith(PACKAGE) and code.co_name not in INNER:
                own.setdefault(code)

    threading.setprofile(see)
    sys.setprofile(see)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    order = dict.fromkeys(_with_jobs(threading.current_thread(), calls))
    return [Step(code.co_qualname, code.co_filename.removeprefix(PACKAGE)) for code in order]


def _with_jobs(work: Work, calls: dict[Work, dict[CodeType | Work, None]]) -> Iterator[CodeType]:
    for call in calls.get(work, {}):
        if isinstance(call, CodeType):
            yield call
        else:
            yield from _with_jobs(call, calls)


def run_and_report() -> list[Step]:
    """The steps of a run and its report, once everything is imported."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        data = write_weave(folder / "data", one_turn())
        loop = asyncio.new_event_loop()
        threading.Thread(target=loop.run_forever, daemon=True).start()
        provider = asyncio.run_coroutine_threadsafe(Provider().start(), loop).result(10)
        ends = {"model": f"openai-chat/model@{provider.url}", "judge": f"openai-chat/judge@{provider.url}"}

        def work(home: str) -> None:
            run = weft.evaluate("weave", data=data, home=folder / home, **ends)
            run.report()

        work("warm")
        return traced(lambda: work("home"))


def counted(steps: list[Step]) -> Walk:
    known: set[str] = set()
    returns, before = 0, ""
    for step in steps:
        returns += step.file != before and step.file in known
        known.add(step.file)
        before = step.file
    return Walk(len(steps), len(known), returns)


def walks(steps: list[Step]) -> dict[str, Walk]:
    """Opening, one turn, the report, and all of it."""
    begins = next(at for at, step in enumerate(steps) if step.name.rpartition(".")[2] in BEGINS)
    ends = next(at for at, step in enumerate(steps) if step.name in ENDS)
    parts = {
        "opening a run": steps[:begins],
        "one turn": steps[begins:ends],
        "its report": steps[ends:],
        "all of it": steps,
    }
    return {name: counted(some) for name, some in parts.items()}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--list", action="store_true", help="show every step")
    shown = parser.parse_args().list
    steps = run_and_report()
    before, known = "", set[str]()
    for step in steps if shown else ():
        if step.file != before:
            print(f"{'back to ' if step.file in known else ''}{step.file}")
        known.add(step.file)
        before = step.file
        print(f"    {step.name}")
    for name, walk in walks(steps).items():
        print(f"{name}: {walk}")


if __name__ == "__main__":
    main()
