"""How far a reader walks to follow one WEAVE turn through the code: a whole run of one dialogue with one image turn, over
HTTP, and its tables, traced.

    python bench/walk.py [--list]

Functions of weft are listed in the order in which they are first called. A change is a step of that list into another file; a return is a
change into a file that was left before. `--list` shows the walk. The package that is importable is the one that is measured, so
`PYTHONPATH=OTHER/src python bench/walk.py` measures another version.
"""

import argparse
import asyncio
import sys
import tempfile
import threading
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import weft
from server import Provider
from toy import write_weave

PACKAGE = str(Path(weft.__file__).parent) + "/"
INNER = ("<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>", "<lambda>", "<module>")


def one_turn() -> list[dict[str, Any]]:
    """A dialogue with a single request for a picture."""
    chats = [
        {"role": "user", "type": "text", "content": "Paint the door of Image #1 green."},
        {"role": "assistant", "type": "image", "content": "Image #2", "key_point": {"GT #1": "Only the door of <image> is green."}},
    ]
    return [{"idx": 1, "domain": "edit", "images": ["imgs/a_1.png", "imgs/a_2.png"], "chats": chats}]


def traced(work: Any) -> list[CodeType]:
    """The functions of weft that `work` calls, in the order of their first call, in whatever thread."""
    order: dict[CodeType, None] = {}

    def see(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE) and code.co_name not in INNER:
            order.setdefault(code)

    threading.setprofile(see)
    sys.setprofile(see)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return list(order)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--list", action="store_true", help="show every step")
    shown = parser.parse_args().list
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        data = write_weave(folder / "data", one_turn())
        loop = asyncio.new_event_loop()
        threading.Thread(target=loop.run_forever, daemon=True).start()
        provider = asyncio.run_coroutine_threadsafe(Provider().start(), loop).result(10)
        ends = {"model": f"openai-chat/model@{provider.url}", "judge": f"openai-chat/judge@{provider.url}"}

        def work(home: str) -> None:
            weft.evaluate("weave", data=data, home=folder / home, **ends).report()

        work("warm")  # imports are no part of the walk
        order = traced(lambda: work("home"))
    files = [code.co_filename.removeprefix(PACKAGE) for code in order]
    known: set[str] = set()
    changes = returns = 0
    before = ""
    for code, file in zip(order, files, strict=True):
        if file != before:
            changes += 1
            returns += file in known
            if shown:
                print(f"{'back to ' if file in known else ''}{file}")
            known.add(file)
            before = file
        if shown:
            print(f"    {code.co_qualname}")
    print(f"{len(order)} functions in {len(set(files))} files, {changes} changes of file, {returns} of them back into a file already left")


if __name__ == "__main__":
    main()
