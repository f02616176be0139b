"""Builds parts in this process: many rows at once, so that every endpoint has as many calls in flight as it can
take."""

import asyncio
from collections.abc import Callable, Iterator, Sequence

from weft.building.context import Tools
from weft.building.draft import Row
from weft.building.parts import Part
from weft.building.recipe import Recipe
from weft.building.rows import make_row
from weft.calls.caller import Halt
from weft.calls.sending import RunHalted
from weft.errors import WeftError

PartWriter = Callable[[Part, Sequence[Row]], None]
RowListener = Callable[[Row], None]


class LocalExecutor:
    """Works on parts in their order, a number of rows at a time. A part is written as soon as all its rows are
    there."""

    def __init__(self, recipe: Recipe, tools: Tools, halt: Halt, rows_in_flight: int) -> None:
        self._recipe = recipe
        self._tools = tools
        self._halt = halt
        self._rows_in_flight = rows_in_flight

    async def run(self, parts: Sequence[Part], write: PartWriter, on_row: RowListener) -> None:
        """Build all parts. At the first error that ends the build, no new call is sent, and `halt` has the reason."""
        steps = self._recipe.steps()
        seeds = _iterate_seeds(parts)
        rows: dict[int, list[Row]] = {}

        async def work() -> None:
            for part, number in seeds:
                if self._halt.reason is not None:
                    return
                try:
                    row = await make_row(self._recipe, steps, number, self._tools)
                except RunHalted:
                    return
                except WeftError as error:
                    self._halt.stop(error)
                    return
                on_row(row)
                done = rows.setdefault(part.number, [])
                done.append(row)
                if len(done) == len(part.seeds):
                    write(part, rows.pop(part.number))

        await asyncio.gather(*(work() for _ in range(self._rows_in_flight)))


def _iterate_seeds(parts: Sequence[Part]) -> Iterator[tuple[Part, int]]:
    for part in parts:
        for number in part.seeds:
            yield part, number
