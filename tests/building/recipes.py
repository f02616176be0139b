"""A small recipe, with models that are functions: what the engine does can be seen without any world."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from weft.building.context import Context
from weft.building.draft import Draft, DraftTurn, Row
from weft.building.orders import Order, add_attempts, make_image
from weft.building.recipe import Dropped, Recipe, Role, Step

NAMES = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


class Pairs(Recipe):
    """A name, an image of it, and the image changed twice."""

    name = "pairs"
    roles = (Role("writer", "text"), Role("painter", "image", sees=True))

    def steps(self) -> Sequence[Step]:
        return (Step("write", self.write), Step("draw", self.draw))

    async def write(self, row: Row, context: Context) -> Row:
        written = await context.write("writer", f"Name thing {row.number}.", NAMES)
        if row.number % 7 == 6:
            raise Dropped("a seventh")
        if written["name"] == "trouble":
            raise ValueError("a name that cannot be")
        return replace(row, facts=written)

    async def draw(self, row: Row, context: Context) -> Row:
        images: list[Any] = []
        for number in range(1, 4):
            shown = tuple(images[-1:])
            order = Order(f"image {number}", f"{row.facts['name']}, {number}", shown)
            image, attempts = await make_image(order, ["painter"], [], context)
            row = add_attempts(row, attempts)
            if image is None:
                raise Dropped("no image", row=row)
            images.append(image)
        turns = tuple(
            DraftTurn(f"Change Image #{number}.", "change", number + 1, key_points={"GT #1": "as <image>"})
            for number in (1, 2)
        )
        return replace(row, draft=Draft("edit", tuple(images), turns), facts={})
