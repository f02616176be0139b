"""Curves of training runs: what was measured at each checkpoint. A run is a folder with its manifest and its log, or a
line of a file in which runs are packed.

    read_curves(Path("W"))                every run in a folder, however deep
    read_curves(Path("runs.jsonl"))       packed runs
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from weft.errors import UserError
from weft.training.checkpoint import LOG_FILE, MANIFEST_FILE, read_checkpoint
from weft.training.log import check_line, read_log
from weft.untrusted import parse_json, read_file

MAX_PACKED_BYTES = 64 << 20
MAX_RUNS = 10_000


class Curve(Struct, frozen=True):
    name: str
    manifest: dict[str, Any]
    lines: list[dict[str, Any]]  # measurements, each with its step
    done: bool = True
    seen: dict[str, int] = {}  # rows really seen, by source

    @property
    def last(self) -> Mapping[str, Any]:
        return self.lines[-1] if self.lines else {"step": 0}


def read_curves(path: Path) -> list[Curve]:
    """Return the runs of a folder or a packed file. Raises UserError where there is none, or one is broken."""
    if path.is_dir():
        folders = sorted(file.parent for file in path.rglob(MANIFEST_FILE))[:MAX_RUNS]
        curves = [read_run(folder, _name(folder, path)) for folder in folders]
    else:
        curves = _unpack(path)
    if not curves:
        raise UserError(f"{path}: there is no training run; `weft train` makes them")
    return curves


def read_run(folder: Path, name: str) -> Curve:
    """Return the run of one folder."""
    checkpoint = read_checkpoint(folder)
    if checkpoint is None:
        raise UserError(f"{folder}: there is no training run; `weft train` makes them")
    return Curve(name, dict(checkpoint.manifest), read_log(folder / LOG_FILE), checkpoint.done, dict(checkpoint.seen))


def pack_runs(curves: Iterable[Curve]) -> str:
    """Runs as lines of JSON."""
    return "".join(json.dumps(msgspec.to_builtins(curve)) + "\n" for curve in curves)


def list_measures(curves: Sequence[Curve]) -> list[str]:
    """Everything that was measured in these runs, in the order in which it appears."""
    names: dict[str, None] = {}
    for curve in curves:
        for line in curve.lines:
            names |= dict.fromkeys(name for name, value in line.items() if isinstance(value, int | float))
    return [name for name in names if name not in ("step", "seconds")]


def _name(folder: Path, root: Path) -> str:
    relative = folder.relative_to(root)
    return str(relative) if relative.parts else folder.absolute().name


def _unpack(path: Path) -> list[Curve]:
    try:
        data = read_file(path, MAX_PACKED_BYTES)
    except FileNotFoundError:
        raise UserError(f"{path}: there is no training run; `weft train` makes them") from None
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    lines = data.splitlines()
    return [_unpack_run(line, f"{path}, line {number}") for number, line in enumerate(lines, start=1)]


def _unpack_run(line: bytes, where: str) -> Curve:
    packed = parse_json(line, where, Curve)
    return replace(packed, lines=[check_line(measured, where) for measured in packed.lines])
