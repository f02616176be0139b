"""The log of a training run: one JSON line for each measurement, with its step."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from weft.errors import UserError
from weft.training.checkpoint import replace_file
from weft.untrusted import read_file

MAX_LOG_BYTES = 64 << 20


class TrainingLog:
    """Appends to a log. What an earlier process wrote after the checkpoint that training goes on from is dropped, so
    that every step is logged once."""

    def __init__(self, path: Path, step: int = 0) -> None:
        self._path = path
        kept = [line for line in read_log(path) if line["step"] <= step] if step and path.exists() else []
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, "".join(json.dumps(line) + "\n" for line in kept).encode())
        self.seconds = float(kept[-1].get("seconds", 0.0)) if kept else 0.0  # of training, up to where it goes on

    def add(self, step: int, **values: Any) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"step": step, **values}) + "\n")


def read_log(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a log. A last line that was cut off is left out. Raises UserError for any other bad line."""
    return list(_read_lines(path))


def _read_lines(path: Path) -> Iterator[dict[str, Any]]:
    try:
        text = read_file(path, MAX_LOG_BYTES).decode("utf-8", "replace")
    except FileNotFoundError:
        raise UserError(f"{path}: there is no log of a training run") from None
    lines = text.split("\n")
    for number, line in enumerate(lines, start=1):
        try:
            value = json.loads(line)
        except ValueError:
            if number == len(lines):  # cut off while it was written, or empty
                continue
            raise UserError(f"{path}, line {number}: this is no JSON") from None
        try:
            measured = msgspec.convert(value, dict[str, Any])
            step = msgspec.convert(measured["step"], int)
        except (msgspec.ValidationError, KeyError):
            raise UserError(f"{path}, line {number}: a line of a training log has a step") from None
        finite = {key: item for key, item in measured.items() if not isinstance(item, float) or math.isfinite(item)}
        yield {**finite, "step": step}
