"""Samples of a run or of a dataset, found by the beginning of their names."""

from collections.abc import Iterable, Sequence

from weft.errors import UserError
from weft.types import Dataset, Sample

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


def find_samples(dataset: Dataset, names: Sequence[str], where: str) -> list[Sample]:
    """Return the samples of these names, or whose names begin so, in the order of the names.

    Reading ends when all have been found by their whole names. `where`: the dataset, for the message. Raises UserError
    with the samples that there are."""
    wanted = set(names)
    seen: dict[str, None] = {}
    found: dict[str, Sample] = {}
    for sample in dataset.samples:
        seen[sample.id] = None
        if sample.id in wanted or any(sample.id.startswith(name) for name in names):
            found[sample.id] = sample
        if wanted <= found.keys():
            break
    return [found[find_sample(seen, name, where)] for name in dict.fromkeys(names)]
