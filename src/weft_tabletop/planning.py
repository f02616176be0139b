"""The oracle as a planner: it writes a document about a table, with an order for each image that a tabletop model
understands.

An order describes a table as a whole, so that no image needs another one; or, chained, it says what changes from the
previous image."""

from collections.abc import Mapping

from weft.types import Message, Text
from weft_tabletop.world import answers
from weft_tabletop.world.language import TableRequest, describe_scene, fill_wording
from weft_tabletop.world.operations import build_frames
from weft_tabletop.world.scenes import SIDE, Scene
from weft_tabletop.world.wordings import DOCUMENTS, QUESTIONS, WORDINGS, with_article


def is_plan_requested(messages: tuple[Message, ...]) -> bool:
    """Whether a system message says how images are ordered."""
    for message in messages:
        if message.role != "system":
            continue
        if any(isinstance(part, Text) and "<imagine" in part.text for part in message.parts):
            return True
    return False


def write_plan(
    request: TableRequest, scenes: Mapping[str, Scene], *, chained: bool = False, short: bool = False
) -> str:
    """The plan of a document, or the answer to a question. `short`: without the order for the last image."""
    if request.kind in QUESTIONS:
        return answers.answer(request, scenes)
    base = scenes.get("image")
    if request.kind not in DOCUMENTS:
        result = request.operation.apply(base or Scene("white"), scenes.get("source"))
        return _format_order(f"Draw {describe_scene(result)}.", "none")
    steps = build_frames(request.kind, request.args, base)
    lines: list[str] = []
    for number, (text, scene) in enumerate(steps, start=1):
        lines.append(text)
        if short and number == len(steps):
            continue
        is_whole = not chained or (request.kind == "build" and number == 1)
        if is_whole:
            order = f"Draw {describe_scene(scene)}."
        else:
            order = _describe_change(request, number)
        uses = "none" if is_whole or number == 1 else str(number - 1)
        lines.append(_format_order(order, uses))
    return "\n".join(lines)


def _format_order(order: str, uses: str) -> str:
    return f'<imagine size="{SIDE}x{SIDE}" uses="{uses}">{order}</imagine>'


def _describe_change(request: TableRequest, number: int) -> str:
    """What changes from the previous image to this one."""
    if request.kind == "film":
        args = {"steps": "1", "side": request.args["side"]}
        return fill_wording(WORDINGS["drift"][0], args, {"image": "the table"})
    thing, _, cell = request.args["things"].split(", ")[number - 1].partition(" at ")
    return f"Add {with_article(thing)} at {cell} in the table."
