"""Samples of a run, found by the beginning of their names."""

from collections.abc import Iterable

from weft.errors import UserError

MAX_NAMES = 8  # in a message


def find_sample(samples: Iterable[str], text: str, where: str) -> str:
    """Return the sample of this name, or the only one whose name begins so. `where`: the runs, for the message.

    Raises UserError with those there are."""
    names = list(dict.fromkeys(samples))
    if text in names:
        return text
    matches = [name for name in names if name.startswith(text)]
    if len(matches) == 1:
        return matches[0]
    problem = "no"
    if matches:
        problem = "more than one"
    candidates = matches or names
    listing = ", ".join(candidates[:MAX_NAMES])
    if len(candidates) > MAX_NAMES:
        listing += f" and {len(candidates) - MAX_NAMES} more"
    raise UserError(f"{problem} sample of {where} is called {text!r}; there is {listing}")
