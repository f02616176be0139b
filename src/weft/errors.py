"""Errors for the person who must act. A `UserError` ends a command with one clear line and exit code 2, never a traceback."""

import traceback
from pathlib import PurePath


class WeftError(Exception):
    """Anything weft itself raises on purpose."""


class UserError(WeftError):
    """A mistake in what the user gave: what is wrong, where, and what to do next."""


class PictureError(WeftError):
    """Bytes that are not a usable picture; the message says why, without naming a file (the caller knows which)."""


class StoreError(WeftError):
    """What weft must keep cannot be written: the run ends, since whatever came next would be lost."""


class BudgetReached(WeftError):
    """The next call could pass `--budget`."""


def blamed(whom: str, error: Exception) -> WeftError:
    """What a foreign piece of code raised, told as its own in one line, with the place in it; what weft raises on purpose stays so."""
    if isinstance(error, WeftError):
        return error
    at = traceback.extract_tb(error.__traceback__)[-1:]
    place = f" ({PurePath(at[0].filename).name}:{at[0].lineno})" if at else ""
    made = WeftError(f"{whom}: {type(error).__name__}: {error}{place}")
    made.__cause__ = error
    return made
