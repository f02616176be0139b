"""Files and texts that weft did not write. A file is rejected by its type and size before it is read: a pipe is never
waited for, a sparse file of terabytes never loaded. A text is shown on a terminal with every character escaped that
could control the terminal or reverse the writing direction."""

import os
import re
import stat
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec

from weft.errors import UserError, WeftError
from weft.secrets import scrub

MAX_FILE_BYTES = 2 * 1024**3
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
HOST = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[^\s:/@\[\]\\]+)(:(?P<port>[0-9]{1,5}))?")
MAX_PORT = 65535


def open_file(path: Path, max_bytes: int, error: type[WeftError], *, follow: bool = True) -> BinaryIO:
    """Open a regular file of at most `max_bytes`.

    Raises OSError if it cannot be opened, and `error`, without the path, if it is something else or too large.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    if not follow:
        flags |= os.O_NOFOLLOW
    file = open(os.open(path, flags), "rb")  # noqa: PTH123, SIM115 (a pipe must not be waited for)
    status = os.fstat(file.fileno())
    if not stat.S_ISREG(status.st_mode):
        file.close()
        raise error("is not a regular file")
    if status.st_size > max_bytes:
        file.close()
        raise error(f"has {status.st_size:,} bytes, more than the limit of {max_bytes:,}")
    return file


def read_file(path: Path, max_bytes: int = MAX_FILE_BYTES, error: type[WeftError] = UserError) -> bytes:
    """Read a regular file of at most `max_bytes`. Raises as `open_file` does."""
    with open_file(path, max_bytes, error) as file:
        return file.read(max_bytes + 1)


def parse_json(data: bytes | bytearray, what: object, type: Any = Any) -> Any:
    """Decode JSON. Raises a UserError that names `what` for anything else: invalid UTF-8 and endless nesting too."""
    try:
        return msgspec.json.decode(data, type=type)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise UserError(f"{what}: broken JSON: {_with_line(str(error), data)}") from None
    except RecursionError:
        raise UserError(f"{what}: broken JSON: it is nested too deep") from None


def _with_line(message: str, data: bytes | bytearray) -> str:
    """Replace a byte offset in a message by line and column, as editors count them."""
    match = re.search(r"\(byte (\d+)\)", message)
    if match is None:
        return message
    before = bytes(data[: int(match.group(1))])
    line = before.count(b"\n") + 1
    column = len(before) - before.rfind(b"\n")
    return f"{message[: match.start()]}(line {line}, column {column}){message[match.end() :]}"


def read_bytes_file(path: Path) -> bytes:
    """Read a file that the user named, without its byte order mark. Raises a UserError that names the file."""
    try:
        return read_file(path).removeprefix(BYTE_ORDER_MARK)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    except UserError as error:
        raise UserError(f"{path} {error}") from None


def read_json_file(path: Path) -> Any:
    """Decode a JSON file that the user named. Raises a UserError that names the file."""
    return parse_json(read_bytes_file(path), path)


def read_text_file(path: Path) -> str:
    """Read a UTF-8 file that the user named. Raises a UserError that names the file."""
    try:
        return read_bytes_file(path).decode()
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: is not UTF-8: {error.reason} at byte {error.start}") from None


def escape_control_characters(text: str) -> str:
    """Return the text with invisible and direction-changing characters as escapes, for a page, a plot or a table."""
    return CONTROL.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 256:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}"


def format_for_terminal(text: object) -> str:
    """Return a text without secrets and control characters."""
    return escape_control_characters(scrub(str(text)))


def read_host(header: str) -> str:
    """Return the host in a Host header, in lower case and without its port; "" if it is none."""
    match = HOST.fullmatch(header)
    if match is None or int(match["port"] or 0) > MAX_PORT:
        return ""
    return match["host"].strip("[]").lower()


def list_or_empty(value: Any) -> list[Any]:
    """Return a decoded JSON array, or an empty one if the value is something else."""
    if isinstance(value, list):
        return cast(list[Any], value)
    return []


def dict_or_empty(value: Any) -> dict[str, Any]:
    """Return a decoded JSON object, or an empty one if the value is something else."""
    if isinstance(value, dict):
        return cast(dict[str, Any], value)
    return {}
