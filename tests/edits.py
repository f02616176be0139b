"""Small datasets of judged edits, and judges that say what they are told to."""

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from PIL import Image as Pil

import weft
from weft.types import Table

COLOURS = ("red", "green", "blue", "white", "black", "gray", "olive", "navy")


def paint(path: Path, colour: str, size: tuple[int, int] = (32, 32), mark: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    picture = Pil.new("RGB", size, colour)
    picture.putpixel((size[0] - 1, 0), (mark % 256, mark // 256, 7))  # no two are alike
    picture.save(path)
    return path


def gedit_record(number: int, task: str, language: str = "en", *, intersection: bool = True) -> dict[str, Any]:
    return {
        "task_type": task,
        "key": f"k{number}",
        "instruction": f"Change it, number {number}.",
        "instruction_language": language,
        "input_image": f"images/{number}.png",
        "Intersection_exist": intersection,
    }


def write_gedit(folder: Path, records: Sequence[dict[str, Any]]) -> Path:
    """The records as gedit.jsonl, each with an image of its own."""
    for number, record in enumerate(records):
        if isinstance(record.get("input_image"), str):
            paint(folder / record["input_image"], COLOURS[number % len(COLOURS)], mark=number)
    (folder / "gedit.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return folder


class Painter:
    """Returns a purple image, another for each request; none for requests that say so."""

    name, version = "painter", "1"

    def __init__(self, refuses: str = "") -> None:
        self.refuses = refuses

    def __call__(self, messages: Any, want: str) -> Any:
        text = "".join(part for _, parts in messages for part in parts if isinstance(part, str))
        if self.refuses and self.refuses in text:
            return weft.Reply("refused", reason="not this one")
        picture = Pil.new("RGB", (24, 48), "purple")
        picture.putpixel((0, 0), (*hashlib.sha256(text.encode()).digest()[:3],))  # equal questions would share one call
        return picture


class Saying:
    """A judge that says what a function makes of the question; it keeps what it was shown."""

    version, concurrency = "1", 1

    def __init__(self, say: Callable[[Any], Any], name: str = "saying") -> None:
        self.say, self.name = say, name
        self.asked: list[Any] = []
        self.shown: list[list[Any]] = []

    def __call__(self, messages: Any, want: str, question: Any) -> Any:
        self.asked.append(question)
        self.shown.append([part for _, parts in messages for part in parts])
        return self.say(question)


def evaluate(benchmark: str, data: Path, home: Path, judge: Any, model: Any = None, **options: Any) -> weft.Run:
    return weft.evaluate(benchmark, data=data, home=home, model=model or Painter(), judge=judge, **options)


def table(run: weft.Run, words: str) -> Table:
    return next(one for one in run.tables() if words in one.title)


def cells(run: weft.Run, words: str, arithmetic: str = "") -> dict[str, Any]:
    """Values by column of the run's row in a table: the only one, or that of an arithmetic."""
    rows = table(run, words).run_rows
    row = next(row for row in rows if not arithmetic or row.arithmetic in ("", arithmetic))
    return {column: cell.value for column, cell in row.cells.items()}


def rise_record(number: int, category: str = "temporal", **more: Any) -> dict[str, Any]:
    text_field = "reference_txt" if category == "logical" else "reference"
    record = {
        "index": f"{category}_reasoning_{number}",
        "category": f"{category}_reasoning",
        "subtask": "Some",
        "instruction": f"What comes of it, number {number}?",
        "image": f"images/{number}.png",
        text_field: f"The right one, number {number}.",
        **more,
    }
    return {field: value for field, value in record.items() if value is not ...}


def write_rise(folder: Path, records: Sequence[dict[str, Any]]) -> Path:
    """The records as risebench.json, each with an image of its own."""
    for number, record in enumerate(records):
        for place, field in enumerate(("image", "reference_img")):
            if isinstance(record.get(field), str):
                paint(folder / record[field], COLOURS[(number + place) % len(COLOURS)], mark=number + 100 * place)
    (folder / "risebench.json").write_text(json.dumps(records))
    return folder


ImgEditFiles = dict[str, dict[str, dict[str, Any]]]  # file -> key -> item


def write_imgedit(folder: Path, files: ImgEditFiles) -> Path:
    """The items' files, and an image for each in `original/`."""
    number = 0
    for file, items in files.items():
        for item in items.values():
            if isinstance(item.get("id"), str) and ".." not in item["id"]:
                paint(folder / "original" / item["id"], COLOURS[number % len(COLOURS)], mark=number)
            number += 1
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(json.dumps(items))
    return folder


def basic_item(number: int, edit_type: str = "add") -> dict[str, Any]:
    return {"id": f"animal/{number}.png", "prompt": f"Edit it, number {number}.", "edit_type": edit_type}
