"""The two questions about an edit: semantics (source, edited image, request) and quality (edited image alone).

Each gives two scores from 0 to 10, of which the lower counts. Material: `source`, `output`, `task`.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from weft.benchmarks.base import JudgedTurn
from weft.benchmarks.edits.pixels import stretch_image
from weft.benchmarks.gedit.data import GEditGold
from weft.benchmarks.gedit.official import MAX_SCORE
from weft.benchmarks.prompts import fence, fill_slots, object_schema
from weft.store.blobs import Blobs
from weft.types import Part, Question, Score, Text

if TYPE_CHECKING:
    from weft.types import Image

SEMANTICS = "sc"
QUALITY = "pq"
METRICS = (SEMANTICS, QUALITY)
SCORES = {SEMANTICS: ("success", "preservation"), QUALITY: ("naturalness", "artifacts")}
RELEASED_NAMES = {SEMANTICS: ("success", "no overediting"), QUALITY: ("naturalness", "no artifacts")}


def build_questions(judged_turn: JudgedTurn) -> list[Question]:
    """Return both questions with our rubrics."""
    gold: GEditGold = judged_turn.turn.gold
    made = [Text("\nThe edited picture:\n"), judged_turn.image, Text("\n")]
    both = [Text("\nThe source picture:\n"), gold.source, *made]
    task = fence([Text(judged_turn.turn.prompt_text)], "the request")
    texts = judged_turn.rubrics.texts
    return [
        _ask(judged_turn, SEMANTICS, fill_slots(texts[SEMANTICS], {"task": task, "pictures": both})),
        _ask(judged_turn, QUALITY, fill_slots(texts[QUALITY], {"pictures": made})),
    ]


def build_released_questions(judged_turn: JudgedTurn, blobs: Blobs) -> list[Question]:
    """Return both questions as the released scripts ask them: the edited image stretched to the source's size."""
    gold: GEditGold = judged_turn.turn.gold
    texts = judged_turn.rubrics.texts
    made = stretch_image(judged_turn.image, gold.source, blobs)
    semantics = "\n".join([texts["context"], texts["rule"], texts[SEMANTICS]])
    semantics = semantics.replace("<instruction>", judged_turn.turn.prompt_text)
    quality = "\n".join([texts["context"], texts[QUALITY]])
    return [
        _ask_released(judged_turn, SEMANTICS, (Text(semantics), gold.source, made)),
        _ask_released(judged_turn, QUALITY, (Text(quality), made)),
    ]


def build_score(question: Question, reply: dict[str, Any]) -> Score:
    """Return the lower of a reply's two scores, as a share of ten."""
    (metric,) = question.metrics
    if question.text_only:
        scores = [float(score) for score in reply["score"]]
        reasons = [str(reply.get("reasoning", ""))]
        names = RELEASED_NAMES[metric]
    else:
        scores = [float(reply[name]["score"]) for name in SCORES[metric]]
        reasons = [f"{name}: {reply[name]['reasoning']}" for name in SCORES[metric]]
        names = SCORES[metric]
    numbers = ", ".join(f"{name} {score:g}" for name, score in zip(names, scores, strict=True))
    lowest = min(scores)
    return Score(metric, lowest / MAX_SCORE, "\n".join([numbers, *filter(None, reasons)]), lowest)


def _ask(judged_turn: JudgedTurn, metric: str, parts: Sequence[Part]) -> Question:
    score = {"type": "integer", "minimum": 0, "maximum": MAX_SCORE}
    entry = object_schema(reasoning={"type": "string"}, score=score)
    schema = object_schema(**dict.fromkeys(SCORES[metric], entry))
    return judged_turn.ask(metric, parts, schema, material=_build_material(judged_turn))


def _ask_released(judged_turn: JudgedTurn, metric: str, parts: "Sequence[Text | Image]") -> Question:
    score = {"type": "number", "minimum": 0, "maximum": MAX_SCORE}
    schema = {
        "type": "object",
        "properties": {
            "score": {"type": "array", "items": score, "minItems": 2, "maxItems": 2},
            "reasoning": {"type": "string"},
        },
        "required": ["score"],
        "additionalProperties": False,
    }
    return judged_turn.ask(metric, parts, schema, material=_build_material(judged_turn), text_only=True, jpeg=True)


def _build_material(judged_turn: JudgedTurn) -> dict[str, tuple[Part, ...]]:
    gold: GEditGold = judged_turn.turn.gold
    return {
        "source": (gold.source,),
        "output": (judged_turn.image,),
        "task": (Text(judged_turn.turn.prompt_text),),
    }
