"""A build's rows in files of so many seeds each: `parts/00012.jsonl`. A part that has all its rows is done.

A part is written whole, under a temporary name first. One in which calls failed is written as `00012.partial.jsonl`:
its rows can be looked at, and the next command goes through it again, at the cost of the failed calls alone.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from weft.building.draft import Row
from weft.errors import UserError
from weft.store.blobs import write_file

PARTS = "parts"
SUFFIX = ".jsonl"
PARTIAL = ".partial.jsonl"


class Part(Struct, frozen=True):
    """Seeds that are worked on together."""

    number: int
    seeds: range

    @property
    def name(self) -> str:
        return f"{self.number:05d}"


def split_seeds(seeds: int, part_size: int) -> list[Part]:
    """Divide the seeds 0..seeds into parts."""
    starts = range(0, seeds, part_size)
    return [Part(number, range(start, min(start + part_size, seeds))) for number, start in enumerate(starts)]


def find_open_parts(out: Path, seeds: int, part_size: int) -> list[Part]:
    """Return the parts that are not done: absent, partial, or with fewer rows than they have seeds now."""
    return [part for part in split_seeds(seeds, part_size) if not is_done(out, part)]


def is_done(out: Path, part: Part) -> bool:
    """Return whether a part has a row for each of its seeds, and none of them failed."""
    file = out / PARTS / (part.name + SUFFIX)
    try:
        with file.open("rb") as lines:
            return sum(1 for _ in lines) >= len(part.seeds)
    except OSError:
        return False


def write_part(out: Path, part: Part, rows: Sequence[Row]) -> None:
    """Write the rows of a part, sorted by seed."""
    folder = out / PARTS
    folder.mkdir(parents=True, exist_ok=True)
    ordered = sorted(rows, key=lambda row: row.number)
    data = b"".join(msgspec.json.encode(row) + b"\n" for row in ordered)
    has_failed = any(row.outcome == "failed" for row in ordered)
    done = folder / (part.name + SUFFIX)
    partial = folder / (part.name + PARTIAL)
    write_file(partial if has_failed else done, data, durable=True, world_readable=True)
    (done if has_failed else partial).unlink(missing_ok=True)


def read_rows(out: Path) -> Iterator[Row]:
    """Yield all rows of a build, by seed. Raises UserError for a file that is damaged."""
    for file in list_files(out):
        with file.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                try:
                    yield msgspec.json.decode(line, type=Row)
                except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
                    raise UserError(
                        f"{file}, line {number} is no row of a build ({error}): remove the file, and run the same "
                        "command again; its calls are in the journal"
                    ) from None


def list_files(out: Path) -> list[Path]:
    """Return the part files of a build, in the order of their seeds."""
    return sorted((out / PARTS).glob(f"[0-9]*{SUFFIX}"))
