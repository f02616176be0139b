"""Errors for the person who must act. A `UserError` ends a command with one clear line and exit code 2, never a
traceback."""

import traceback
from pathlib import Path, PurePath


class WeftError(Exception):
    """Anything weft itself raises on purpose."""


class UserError(WeftError):
    """A mistake in what the user gave: what is wrong, where, and what to do next."""


class ImageError(WeftError):
    """Bytes that are not a usable picture; the message says why, without naming a file (the caller knows which)."""


class StoreError(WeftError):
    """What weft must keep cannot be written: the run ends, since whatever came next would be lost."""


class BudgetReached(WeftError):
    """The next call could pass `--budget`."""


class UnusableJudge(WeftError):
    """A judge whose replies cannot be used, one after another."""


TRACE_ATTRIBUTE = "weft_trace"  # under this an error that holds nothing else has the traceback of the one it stands for
LONGEST = 20_000


def format_trace(error: BaseException) -> str:
    """The traceback of what a user's code raised, without weft's own frames before it."""
    if isinstance(kept := getattr(error, TRACE_ATTRIBUTE, None), str):
        return kept
    told = traceback.TracebackException.from_exception(error)
    own = str(Path(__file__).parent)
    frames = [frame for frame in told.stack if not frame.filename.startswith(own)]
    told.stack = traceback.StackSummary.from_list(frames or told.stack)
    made = "".join(told.format(chain=False))
    if len(made) <= LONGEST:
        return made
    return f"{made[: LONGEST // 2]}\n...\n{made[-LONGEST // 2 :]}"


def wrap_error(whom: str, error: Exception) -> WeftError:
    """What a foreign piece of code raised, told as its own in one line, with the place in it; what weft raises on
    purpose stays so."""
    if isinstance(error, WeftError):
        return error
    at = traceback.extract_tb(error.__traceback__)[-1:]
    if at:
        place = f" ({PurePath(at[0].filename).name}:{at[0].lineno})"
    else:
        place = ""
    made = WeftError(f"{whom}: {type(error).__name__}: {error}{place}")
    made.__cause__ = error
    return made
