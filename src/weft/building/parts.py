"""A build's rows in files of so many seeds each: `parts/00012.jsonl`. A part that has all its rows is done.

A part is written whole, under a temporary name first. One in which calls failed is written as `00012.partial.jsonl`:
its rows can be looked at, and the next command goes through it again, at the cost of the failed calls alone.

A build's folder may come from anybody: what is no regular file is refused, a line is limited, and a row is checked
before it is used.
"""

import contextlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec import Struct

from weft.building.draft import Row
from weft.building.recipe import SEED_SPACE
from weft.errors import UserError
from weft.evaluation.selection import parse_shard
from weft.store.blobs import write_file
from weft.untrusted import MAX_FILE_BYTES, open_file

PARTS = "parts"
SUFFIX = ".jsonl"
PARTIAL = ".partial.jsonl"
MAX_ROW_BYTES = 32 * 1024**2  # of one line
MAX_SEEDS = SEED_SPACE
MAX_PARTS = 1_000_000
BLOCK = 1 << 20
PRINT = re.compile(r"[0-9a-f]{16}")


class Part(Struct, frozen=True):
    """Seeds that are worked on together."""

    number: int
    seeds: range

    @property
    def name(self) -> str:
        return f"{self.number:05d}"


def split_seeds(seeds: int, part_size: int, shard: str = "") -> list[Part]:
    """Divide the seeds 0..seeds into parts; of a shard such as 2/8, return every eighth part from the second on."""
    starts = range(0, seeds, part_size)
    parts = [Part(number, range(start, min(start + part_size, seeds))) for number, start in enumerate(starts)]
    if not shard:
        return parts
    one = parse_shard(shard)
    return parts[one.number - 1 :: one.count]


def find_open_parts(out: Path, seeds: int, part_size: int, shard: str = "") -> list[Part]:
    """Return the parts that are not done: absent, partial, or with fewer rows than they have seeds now."""
    return [part for part in split_seeds(seeds, part_size, shard) if not is_done(out, part)]


def is_done(out: Path, part: Part) -> bool:
    """Return whether a part has a row for each of its seeds, and none of them failed."""
    try:
        with open_part(out / PARTS / (part.name + SUFFIX)) as file:
            return sum(block.count(b"\n") for block in iter(lambda: file.read(BLOCK), b"")) >= len(part.seeds)
    except OSError:
        return False


def open_part(file: Path) -> BinaryIO:
    """Open a part file. Raises OSError if it cannot be opened, and UserError if it is no regular file."""
    try:
        return open_file(file, MAX_FILE_BYTES, UserError)
    except UserError as error:
        raise UserError(f"{file} {error}: remove it, and run the same command again") from None


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


def remove_replaced_parts(out: Path) -> None:
    """Remove the partial files of parts that are done: a kill kept the command from it that wrote them again."""
    for partial in sorted((out / PARTS).glob(f"[0-9]*{PARTIAL}")):
        if partial.with_name(partial.name.removesuffix(PARTIAL) + SUFFIX).is_file():
            with contextlib.suppress(OSError):  # somebody else's folder, such as one with this name
                partial.unlink()


def encode_row(row: Row) -> bytes:
    """Return a row as a line of its part file. Raises an error for one that could not be read from there again."""
    line = msgspec.json.encode(row)
    decode_row(line)
    return line


def decode_row(line: bytes) -> Row:
    """Return the row in a line of a part file. Raises ValueError or msgspec's error for one that no build writes."""
    if len(line) > MAX_ROW_BYTES:
        raise ValueError(f"it has {len(line):,} bytes, more than the limit of {MAX_ROW_BYTES:,}")
    row = msgspec.json.decode(line, type=Row)
    _check_row(row)
    return row


def reopen_part(out: Path, number: int) -> None:
    """Let the next command go through the part again that has the row of a seed."""
    for file in list_files(out):
        if any(row.number == number for row in _read_rows_of(file)) and not file.name.endswith(PARTIAL):
            file.replace(file.with_name(file.name.removesuffix(SUFFIX) + PARTIAL))


def read_rows(out: Path) -> Iterator[Row]:
    """Yield all rows of a build, by seed. Raises UserError for a file that is damaged."""
    last = -1
    for file in list_files(out):
        for row in _read_rows_of(file):
            if row.number <= last:
                raise _damage(file, f"seed {row.number} comes after seed {last}")
            last = row.number
            yield row


def _read_rows_of(file: Path) -> Iterator[Row]:
    try:
        lines = open_part(file)
    except OSError as error:
        raise _damage(file, str(error.strerror)) from None
    with lines:
        number = 0
        while line := lines.readline(MAX_ROW_BYTES):
            number += 1
            try:
                row = decode_row(line)
            except (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError) as error:
                raise _damage(f"{file}, line {number}", str(error)) from None
            yield row


def _damage(where: object, what: str) -> UserError:
    return UserError(
        f"{where} is no row of a build ({what}): remove the file, and run the same command again; its calls are in "
        "the journal"
    )


def _check_row(row: Row) -> None:
    """Raise ValueError for a row that no build writes: a layout would write it to another place, or fail."""
    if not 0 <= row.number < MAX_SEEDS:
        raise ValueError(f"there is no seed {row.number}")
    if row.draft is None:
        return
    images = len(row.draft.images)
    if any(PRINT.fullmatch(one) is None for one in row.prints):
        raise ValueError("the hash of an image is none")
    if row.provenance is not None:
        counts = (len(row.provenance.images), len(row.provenance.turns))
        if counts != (images, len(row.draft.turns)):
            raise ValueError(f"it says where {counts[0]} images and {counts[1]} turns come from, and has others")
    for turn in row.draft.turns:
        if turn.makes is not None and not 1 <= turn.makes <= images:
            raise ValueError(f"a turn makes image {turn.makes} of {images}")


def list_files(out: Path) -> list[Path]:
    """Return the part files of a build, in the order of their seeds. Of a part that was written again while a kill kept
    what it replaces, only the one that is done counts."""
    files: dict[int, Path] = {}
    for file in sorted((out / PARTS).glob(f"[0-9]*{SUFFIX}"), reverse=True):  # NNNNN.partial.jsonl before NNNNN.jsonl
        name = file.name.removesuffix(PARTIAL).removesuffix(SUFFIX)
        if name.isascii() and name.isdecimal() and len(name) <= len(str(MAX_SEEDS)):
            files[int(name)] = file
    return [files[number] for number in sorted(files)]
