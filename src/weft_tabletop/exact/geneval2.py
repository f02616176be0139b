"""The answer to a question about an atom of a prompt, for GenEval 2, as a model's first token: certain, from pixels."""

from collections.abc import Mapping
from typing import Any

from msgspec import to_builtins

from weft.judges.tokens import Token
from weft.types import Question, Text
from weft_tabletop.world.scenes import SceneReading

NO = "No"


def answer_geneval2(reference: Mapping[str, Any], question: Question, reading: SceneReading) -> dict[str, Any]:
    """Answer the question about one atom."""
    about = reference["atoms"][question.detail.number - 1]
    things = [thing for thing in reading.scene.things().values() if thing.shape == about["shape"]]
    accepted = [part.text for part in question.material["accepted"] if isinstance(part, Text)]
    if "count" in about:
        is_right = len(things) == about["count"]
    elif about["skill"] == "attribute":
        is_right = bool(things) and all(thing.colour == about["colour"] for thing in things)
    else:
        is_right = bool(things)
    return {"tokens": [to_builtins(Token(accepted[0] if is_right else NO, 0.0))]}
