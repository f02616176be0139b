"""The question about an image: which objects are in it, and where. For a program that detects objects, and in words for
a judge that reads.

Material: `output`, `classes`, `colored`.
"""

from weft.benchmarks.base import JudgedTurn
from weft.benchmarks.geneval.rules import ImageRules
from weft.benchmarks.prompts import fence_pieces, fill_slots, object_schema
from weft.judges.detections import COLORS, NO_COLOR
from weft.types import Question, Text

COLOR_LINE = "\n- `color`: the colour that most of it has: {colors}, or {none}"


def build_question(judged_turn: JudgedTurn, metric: str) -> Question:
    """Return the question, whose `gold` has the rules that are applied to the answer."""
    rules: ImageRules = judged_turn.turn.gold
    image = judged_turn.image
    classes = list(dict.fromkeys(rule.name for rule in (*rules.include, *rules.exclude)))
    colored = list(dict.fromkeys(rule.name for rule in rules.include if rule.color))
    entry = {
        "class": {"type": "string", "enum": classes},
        "box": {"type": "array", "items": {"type": "number"}, "minItems": 4, "maxItems": 4},
        "confidence": {"type": "number", "minimum": 0, "maximum": 1},
    }
    color_line = ""
    if colored:
        entry["color"] = {"type": "string", "enum": [*COLORS, NO_COLOR]}
        color_line = COLOR_LINE.format(colors=", ".join(COLORS), none=NO_COLOR)
    slots = {
        "picture": [Text("\n"), image, Text("\n")],
        "size": [Text(f"{image.width} wide and {image.height} high, in")],
        "classes": fence_pieces(
            [(f"Class {number}", [Text(name)]) for number, name in enumerate(classes, 1)], "the names of the classes"
        ),
        "colors": [Text(color_line)],
    }
    return judged_turn.ask(
        metric,
        fill_slots(judged_turn.rubrics.texts["detections"], slots),
        object_schema(reasoning={"type": "string"}, objects={"type": "array", "items": object_schema(**entry)}),
        material={
            "output": (image,),
            "classes": tuple(map(Text, classes)),
            "colored": tuple(map(Text, colored)),
        },
        gold=rules,
    )
