"""Files and texts that weft did not make. A file is refused by its kind and size before it is read: a pipe is never
waited for, a sparse giant never loaded. A text is shown on a terminal with everything that could steer the terminal, or
turn its lines about, made visible."""

import os
import re
import stat
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec

from weft.errors import UserError, WeftError
from weft.secrets import scrub

MAX_FILE_BYTES = 2 * 1024**3  # bytes of a file of records
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def open_file(path: Path, most: int, error: type[WeftError], *, follow: bool = True) -> BinaryIO:
    """A plain file of at most so many bytes, open. Raises OSError where there is none, and `error`, without the path,
    for any other."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    file = open(os.open(path, flags), "rb")  # noqa: PTH123, SIM115 (a pipe must not be waited for)
    about = os.fstat(file.fileno())
    if stat.S_ISREG(about.st_mode) and about.st_size <= most:
        return file
    file.close()
    raise error(
        "is no plain file"
        if not stat.S_ISREG(about.st_mode)
        else f"has {about.st_size:,} bytes, more than the limit of {most:,}"
    )


def read_file(path: Path, most: int = MAX_FILE_BYTES, error: type[WeftError] = UserError) -> bytes:
    """The bytes of such a file."""
    with open_file(path, most, error) as file:
        return file.read(most + 1)


def parse_json(data: bytes | bytearray, what: object, type: Any = Any) -> Any:
    """Decoded JSON. Raises UserError, which calls it `what`, for anything that is none: invalid UTF-8 and endless
    nesting as well."""
    try:
        return msgspec.json.decode(data, type=type)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise UserError(f"{what}: broken JSON: {_with_line(str(error), data)}") from None
    except RecursionError:
        raise UserError(f"{what}: broken JSON: it is nested too deep") from None


def _with_line(said: str, data: bytes | bytearray) -> str:
    """Where it is, as editors tell it."""
    match = re.search(r"\(byte (\d+)\)", said)
    if match is None:
        return said
    before = bytes(data[: int(match.group(1))])
    line = before.count(b"\n") + 1
    column = len(before) - before.rfind(b"\n")
    return f"{said[: match.start()]}(line {line}, column {column}){said[match.end() :]}"


def read_bytes_file(path: Path) -> bytes:
    """The bytes of a file that the user named, without a byte order mark. Whatever is wrong with it is a UserError that
    names it."""
    try:
        return read_file(path).removeprefix(b"\xef\xbb\xbf")
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    except UserError as error:
        raise UserError(f"{path} {error}") from None


def read_json_file(path: Path) -> Any:
    return parse_json(read_bytes_file(path), path)


def read_text_file(path: Path) -> str:
    try:
        return read_bytes_file(path).decode()
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: is not UTF-8: {error.reason} at byte {error.start}") from None


def escape_control_characters(text: str) -> str:
    """The text with what is not seen made visible, so that it can go into a page, a plot or a table."""
    return STEERING.sub(
        lambda match: f"\\x{ord(match.group()):02x}" if ord(match.group()) < 256 else f"\\u{ord(match.group()):04x}",
        text,
    )


def format_for_terminal(text: object) -> str:
    """A text for the terminal."""
    return escape_control_characters(scrub(str(text)))


def dict_or_empty(value: Any) -> dict[str, Any]:
    """A decoded JSON object, or nothing where something else came."""
    if isinstance(value, dict):
        return cast(dict[str, Any], value)
    return {}
