"""Errors for the person who must act. A `UserError` ends a command with one clear line and exit code 2, never a traceback."""

import contextlib
from collections.abc import Generator


class WeftError(Exception):
    """Anything weft itself raises on purpose."""


class UserError(WeftError):
    """A mistake in what the user gave: what is wrong, where, and what to do next."""


class PictureError(WeftError):
    """Bytes that are not a usable picture; the message says why, without naming a file (the caller knows which)."""


class BudgetReached(WeftError):
    """The next call could pass `--budget`."""


@contextlib.contextmanager
def blaming(whom: str) -> Generator[None]:
    """Whatever a foreign piece of code raises is told as its own, in one line; what weft raises on purpose passes."""
    try:
        yield
    except WeftError:
        raise
    except Exception as error:
        raise WeftError(f"{whom}: {type(error).__name__}: {error}") from error
