"""What is trained on, in which shares: sources with weights. A mix is data and has no state: the rows of a step follow
from the seed and the step alone, so that training can go on at any step.

    mix = parse_mix("dialogues=.25,single=.75", ("dialogues", "single"), seed=1)
    mix.draw(step=7, batch=64, sizes=[1000, 5000])      # row numbers of each source
"""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from weft.errors import UserError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

GOLDEN = (math.sqrt(5) - 1) / 2  # multiples of it, modulo one, fill the unit interval most evenly


class Source(Struct, frozen=True):
    data: str  # the name of a dataset, or of a kind of rows
    weight: float
    view: str = ""  # one of `weft.benchmarks.weave.views.VIEWS`; empty where the data are rows already


class Mix(Struct, frozen=True):
    sources: tuple[Source, ...]
    seed: int = 0

    def shares(self) -> list[float]:
        total = sum(source.weight for source in self.sources)
        return [source.weight / total for source in self.sources]

    def draw(self, step: int, batch: int, sizes: Sequence[int]) -> "list[NDArray[np.int64]]":
        """Return the row numbers of each source at a step, for sources of these sizes.

        After any number of steps the rows of each source differ from its share by a few rows at most.
        """
        import numpy as np

        numbers = np.arange(step * batch, (step + 1) * batch, dtype=np.float64)
        bounds = np.cumsum(self.shares())[:-1]
        chosen = np.searchsorted(bounds, (numbers * GOLDEN) % 1.0, side="right")
        counts = [int(np.count_nonzero(chosen == index)) for index in range(len(sizes))]
        rows: list[NDArray[np.int64]] = []
        for index, (size, count) in enumerate(zip(sizes, counts, strict=True)):
            rows.append(np.random.default_rng([self.seed, step, index]).integers(0, size, count))
        return rows


def parse_mix(text: str, known: Sequence[str], *, seed: int = 0, views: Mapping[str, str] | None = None) -> Mix:
    """Parse `NAME=WEIGHT,NAME=WEIGHT`. Raises UserError, in one line, for anything else."""
    weights: dict[str, float] = {}
    for item in text.split(","):
        name, equals, number = item.strip().partition("=")
        if name not in known:
            raise UserError(f"--mix {text}: there is no source {name!r}; there is {', '.join(known)}")
        if name in weights:
            raise UserError(f"--mix {text}: {name} is named twice")
        weights[name] = _parse_weight(number if equals else "1", text)
    if not any(weights.values()):
        raise UserError(f"--mix {text}: at least one weight must be above 0")
    sources = [Source(name, weight, (views or {}).get(name, "")) for name, weight in weights.items() if weight]
    return Mix(tuple(sources), seed)


def _parse_weight(number: str, text: str) -> float:
    try:
        weight = float(number)
    except ValueError:
        weight = -1.0
    if not 0 <= weight < math.inf:
        raise UserError(f"--mix {text}: {number!r} is no weight; write NAME=NUMBER, with a number from 0")
    return weight
