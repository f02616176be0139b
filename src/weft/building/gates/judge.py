"""A judge with a schema: the role `checker` scores an image from 0 to 10 by what was asked, what had to stay, and how
clean it is. The lowest score decides."""

from typing import Any

from msgspec import Struct

from weft.building.context import Context
from weft.building.draft import GateVerdict
from weft.building.orders import Order
from weft.building.recipe import Dropped
from weft.types import Image, Part, Text

CHECK_IMAGE = "check image"  # the task of its questions, for checkers that are programs
MAX_SCORE = 10
ASKED = "`asked_score`: is everything that the request asks for there, and as it asks for it?"
KEPT = "`kept_score`: is everything that the request does not mention as it was in {images}?"
CLEAN = "`clean_score`: is the result a clean image, without defects, collage or stray text?"
PROMPT = """You check one image that a model made on request. You see {shown}the result, which is the last image.

The request:
{request}

Score from 0 (not at all) to 10 (without fault), each by itself, strictly:
{questions}
Name what is wrong in `reasoning`, in one or two sentences, before you score."""


class JudgeGate(Struct, frozen=True):
    """Rejects an image if the checker gives it less than `least` of ten in anything."""

    least: float = 7.0
    role: str = "checker"
    name: str = "judge"

    async def check(self, order: Order, image: Image, context: Context) -> GateVerdict:
        names = score_names(order)
        material: dict[str, tuple[Part, ...]] = {
            "request": (Text(order.prompt),),
            "shown": order.shown,
            "output": (image,),
        }
        try:
            reply = await context.write(
                self.role,
                _build_prompt(order),
                build_schema(names),
                images=(*order.shown, image),
                task=CHECK_IMAGE,
                material=material,
            )
        except Dropped as error:  # it cannot be vouched for; another attempt can
            return GateVerdict(self.name, passed=False, reason=error.reason)
        scores = [float(reply[name]) for name in names]
        value = round(sum(scores) / len(scores) / MAX_SCORE, 4)
        return GateVerdict(self.name, min(scores) >= self.least, value, str(reply["reasoning"])[:300])


def score_names(order: Order) -> tuple[str, ...]:
    """Return the scores that a checker gives: nothing has to stay where nothing was shown but a style."""
    if order.shown and order.kind != "draw":
        return ("asked_score", "kept_score", "clean_score")
    return ("asked_score", "clean_score")


def build_schema(names: tuple[str, ...]) -> dict[str, Any]:
    score = {"type": "integer", "minimum": 0, "maximum": MAX_SCORE}
    properties: dict[str, Any] = {"reasoning": {"type": "string"}, **dict.fromkeys(names, score)}
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _build_prompt(order: Order) -> str:
    numbers = ", ".join(f"Image #{number}" for number in range(1, len(order.shown) + 1))
    questions = [ASKED, CLEAN]
    shown = ""
    if order.shown:
        shown = f"{numbers}, which the request is about, and "
    if "kept_score" in score_names(order):
        questions.insert(1, KEPT.format(images=numbers))
    return PROMPT.format(shown=shown, request=order.prompt, questions="\n".join(f"- {line}" for line in questions))
