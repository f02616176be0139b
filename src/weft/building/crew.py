"""Goes through parts: many rows at once, so that every endpoint has as many calls in flight as it can take."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence

from msgspec import Struct

from weft.building.draft import Row
from weft.building.parts import Part
from weft.calls.caller import Halt
from weft.calls.sending import RunHalted
from weft.errors import WeftError

PartWriter = Callable[[Part, Sequence[Row]], None]
RowListener = Callable[[Row], None]


class Crew(Struct, frozen=True):
    """Who makes rows: this process, or workers of Ray."""

    make: Callable[[int], Awaitable[Row]]  # the row of a seed; raises what ends the whole build
    halt: Halt
    rows_in_flight: int
    stop: Callable[[WeftError], None]  # ends the build: no new call is sent, and `halt` has the reason


async def build_parts(parts: Sequence[Part], crew: Crew, write: PartWriter, on_row: RowListener) -> None:
    """Build all parts in their order. A part is written as soon as all its rows are there.

    At the first error that ends the build, no new call is sent.
    """
    seeds = _iterate_seeds(parts)
    rows: dict[int, list[Row]] = {}

    async def work() -> None:
        for part, number in seeds:
            if crew.halt.reason is not None:
                return
            try:
                row = await crew.make(number)
            except RunHalted:
                return
            except WeftError as error:
                crew.stop(error)
                return
            on_row(row)
            done = rows.setdefault(part.number, [])
            done.append(row)
            if len(done) == len(part.seeds):
                write(part, rows.pop(part.number))

    await asyncio.gather(*(work() for _ in range(crew.rows_in_flight)))


def _iterate_seeds(parts: Sequence[Part]) -> Iterator[tuple[Part, int]]:
    for part in parts:
        for number in part.seeds:
            yield part, number
