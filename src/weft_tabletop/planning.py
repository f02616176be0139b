"""The oracle as a planner: a document about a table, in the tabletop's words, with orders for its pictures that a model
of the tabletop understands. An order describes a table as a whole, so that no picture needs another; or, chained, says
what changes from the one before."""

from collections.abc import Mapping

from weft.types import Message, Text
from weft_tabletop.world import answers
from weft_tabletop.world.language import (
    DOCUMENTS,
    QUESTIONS,
    WORDINGS,
    TableRequest,
    describe_scene,
    with_article,
    wording,
)
from weft_tabletop.world.operations import frames
from weft_tabletop.world.scenes import SIDE, Scene


def is_plan_requested(messages: tuple[Message, ...]) -> bool:
    """Whether somebody says how pictures are ordered."""
    told = [
        part for message in messages if message.role == "system" for part in message.parts if isinstance(part, Text)
    ]
    return any("<imagine" in part.text for part in told)


def write_plan(asked: TableRequest, scenes: Mapping[str, Scene], *, chained: bool = False, short: bool = False) -> str:
    """`short`: its last picture is forgotten."""
    if asked.kind in QUESTIONS:
        return answers.answer(asked, scenes)
    base = scenes.get("image")
    if asked.kind not in DOCUMENTS:
        return _block(
            f"Draw {describe_scene(asked.operation.apply(base or Scene('white'), scenes.get('source')))}.", "none"
        )
    steps = frames(asked.kind, asked.args, base)
    made: list[str] = []
    for number, (words, scene) in enumerate(steps, start=1):
        whole = not chained or (asked.kind == "build" and number == 1)
        if whole:
            order = f"Draw {describe_scene(scene)}."
        else:
            order = _change(asked, number)
        if whole or number == 1:
            uses = "none"
        else:
            uses = str(number - 1)
        made.append(words if short and number == len(steps) else f"{words}\n{_block(order, uses)}")
    return "\n".join(made)


def _block(order: str, uses: str) -> str:
    return f'<imagine size="{SIDE}x{SIDE}" uses="{uses}">{order}</imagine>'


def _change(asked: TableRequest, number: int) -> str:
    if asked.kind == "film":
        args = {"steps": "1", "side": asked.args["side"]}
        return wording(WORDINGS["drift"][0], args, {"image": "the table"})
    what, _, cell = asked.args["things"].split(", ")[number - 1].partition(" at ")
    return f"Add {with_article(what)} at {cell} in the table."
