"""The log of a training run: one JSON line for each measurement, with its step."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from weft.errors import UserError
from weft.training.checkpoint import replace_file
from weft.untrusted import parse_json, read_file

MAX_LOG_BYTES = 64 << 20
MAX_STEP = 1 << 53
MAX_NUMBER = 1e100  # a measurement from here on is none


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
        lines = read_file(path, MAX_LOG_BYTES).split(b"\n")
    except FileNotFoundError:
        raise UserError(f"{path}: there is no log of a training run") from None
    for number, line in enumerate(lines, start=1):
        where = f"{path}, line {number}"
        try:
            measured = parse_json(line, where)
        except UserError:
            if number == len(lines):  # cut off while it was written, or empty
                continue
            raise
        yield check_line(measured, where)


def check_line(measured: Any, where: str) -> dict[str, Any]:
    """Return a line of a log without numbers that none can be drawn for. Raises UserError if it has no step."""
    if not isinstance(measured, dict):
        raise UserError(f"{where}: a line of a training log is an object with a step")
    line = {str(key): value for key, value in cast(dict[Any, Any], measured).items() if not _is_endless(value)}
    step = line.get("step")
    if not isinstance(step, int) or isinstance(step, bool) or not 0 <= step < MAX_STEP:
        raise UserError(f"{where}: a line of a training log has a step: a whole number from 0")
    return line


def _is_endless(value: Any) -> bool:
    return isinstance(value, int | float) and not abs(value) < MAX_NUMBER
