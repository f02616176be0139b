"""Errors for the person who must act. A `UserError` ends a command with one clear line and exit code 2, never a
traceback."""

import traceback
from pathlib import Path, PurePath

TRACE_ATTRIBUTE = "weft_trace"  # an error that crossed a process boundary carries its traceback as text here
MAX_TRACE = 20_000  # characters


class WeftError(Exception):
    """Anything weft itself raises on purpose."""


class ReuseWarning(UserWarning):
    """Says in Python what the command line prints as a note: why cached answers are, or are not, reused."""


class UserError(WeftError):
    """A mistake in what the user gave: what is wrong, where, and what to do next."""


class MessagesError(UserError):
    """A benchmark's method returned something other than messages. Every turn would fail alike, so the run ends."""


class ImageError(WeftError):
    """Bytes that are not a usable image. The message says why without naming a file, which the caller knows."""


class StoreError(WeftError):
    """A result cannot be written to disk. The run ends, since whatever came next would be lost."""


class BudgetReached(WeftError):
    """The next call could exceed `--budget`."""


class UnusableJudge(WeftError):
    """Too many of a judge's replies in a row could not be used."""


def format_trace(error: BaseException) -> str:
    """Return the traceback of what a user's code raised, without weft's own frames, at most MAX_TRACE characters."""
    stored = getattr(error, TRACE_ATTRIBUTE, None)
    if isinstance(stored, str):
        return stored
    summary = traceback.TracebackException.from_exception(error)
    own_folder = str(Path(__file__).parent)
    frames = [frame for frame in summary.stack if not frame.filename.startswith(own_folder)]
    summary.stack = traceback.StackSummary.from_list(frames or summary.stack)
    text = "".join(summary.format(chain=False))
    if len(text) <= MAX_TRACE:
        return text
    return f"{text[: MAX_TRACE // 2]}\n...\n{text[-MAX_TRACE // 2 :]}"


def message_of(error: BaseException) -> str:
    """Return the message of an error, also of one of foreign code that cannot be formatted."""
    try:
        return str(error)
    except Exception:
        return "(its message cannot be formatted)"


def wrap_error(source: str, error: BaseException) -> WeftError:
    """Return an error of foreign code as a one-line WeftError that names `source` and the line of code.

    An error that weft itself raised is returned unchanged.
    """
    if isinstance(error, WeftError):
        return error
    location = ""
    for frame in traceback.extract_tb(error.__traceback__)[-1:]:
        location = f" ({PurePath(frame.filename).name}:{frame.lineno})"
    message = " ".join(message_of(error).splitlines())
    wrapped = WeftError(f"{source}: {type(error).__name__}: {message}{location}")
    wrapped.__cause__ = error
    return wrapped
