"""The judge's two questions about a document: its eight scores, in one call; and whether separate pictures are separate.

Material: `input`, `output`. Replies are taken under the names that the paper's prompt has for the eight, and under those of its text."""

from collections.abc import Mapping, Sequence
from typing import Any

from weft.benchmarks.base import Answered
from weft.benchmarks.documents import TOLD, Section, Sheet, laid_out
from weft.benchmarks.facts import facts_of
from weft.benchmarks.prompts import filled, object_schema
from weft.benchmarks.weaverbench.data import Goal
from weft.benchmarks.weaverbench.facts import DocumentFacts
from weft.calls.structured_output import Unusable
from weft.models.endpoint import UNDECIDED
from weft.types import Mark, Message, Question, Text
from weft.untrusted import fields

ADHERENCE, NARRATIVE = "prompt_adherence", "narrative_coordination"
INTRA, TO_IMAGE, TO_TEXT = "intra_output", "input_to_image", "input_to_text"
ENTITY, STYLE, COMPLETE = "entity", "style", "completeness"
NAMES: Mapping[str, str] = {
    ADHERENCE: "Prompt Adherence",
    NARRATIVE: "Narrative Coordination",
    INTRA: "Image Text Consistency (Intra-output Coherence)",
    TO_IMAGE: "Image Text Consistency (Input-to-Image Fidelity)",
    TO_TEXT: "Image Text Consistency (Input-to-Text Fidelity)",
    ENTITY: "Multi step Consistency (Entity Consistency)",
    STYLE: "Multi step Consistency (Visual Style Uniformity)",
    COMPLETE: "Completeness",
}
OTHERS = {
    "Image Text Consistency": "Content Consistency",
    "Multi step Consistency": "Image Consistency",
}  # in the paper's text
SCORES = tuple(NAMES)
COUNT, SEPARATE = "count", "separate"  # decided by counting; the judge's word on collages
OF_PICTURES = (NARRATIVE, INTRA, TO_IMAGE, ENTITY, STYLE)  # what a question that needs no picture is not judged by
FULL = 10
COUNTED = {len(SCORES): "eight", len(SCORES) - len(OF_PICTURES): "three"}


def _entry(kind: str) -> dict[str, Any]:
    return object_schema(Justification={"type": "string"}, Score={"type": kind, "minimum": 0, "maximum": FULL})


def schema_of(metrics: Sequence[str]) -> dict[str, Any]:
    return object_schema(scores=object_schema(**{NAMES[metric]: _entry("integer") for metric in metrics}))


def other_name(name: str) -> str:
    first, _, rest = name.partition(" (")
    return f"{OTHERS[first]} ({rest}" if first in OTHERS else name


def accepted(metrics: Sequence[str]) -> dict[str, Any]:
    """Both spellings, scores with decimals, and no justification, do no harm."""
    entry = {**_entry("number"), "required": ["Score"]}
    names = dict.fromkeys(spelt for metric in metrics for spelt in (NAMES[metric], other_name(NAMES[metric])))
    scores = {"type": "object", "properties": dict.fromkeys(names, entry)}
    return {"type": "object", "properties": {"scores": scores}, "required": ["scores"]}


def sections_of(answered: Answered) -> list[Section]:
    return [
        Section("INPUT:", "what was asked for", answered.turn.ask),
        Section("OUTPUT:", "the document that the model made", answered.reply.said),
    ]


def about(answered: Answered, metrics: Sequence[str], sheets: Sequence[Sheet] = ()) -> Question:
    texts = answered.rubrics.texts
    cards = "\n".join(texts[metric] for metric in metrics)
    slots = {"cards": cards, "sheets": TOLD if sheets else "", "count": COUNTED[len(metrics)]}
    slots["pictures"] = texts["pictures"] if ENTITY in metrics else ""
    system = filled(texts["system"], {name: [Text(text)] for name, text in slots.items()})
    sections = sections_of(answered)
    material = {"input": answered.turn.ask, "output": answered.reply.said}
    detail = DocumentFacts(sheets=len(sheets)) if sheets else None
    return Question(
        tuple(metrics),
        (Message("system", system), Message("user", tuple(laid_out(sections, sheets)))),
        schema_of(metrics),
        answered.place,
        material=material,
        gold=answered.turn.gold,
        detail=detail,
        accepts=accepted(metrics),
    )


def about_collages(answered: Answered, most: int) -> list[Question]:
    """How many pictures each picture is; several questions where there are too many for one: a sheet of them would be a collage."""
    made = answered.reply.images
    parts = [range(at, min(at + most, len(made))) for at in range(0, len(made), most)]
    return [_about_collages(answered, part, f"part {number}" if len(parts) > 1 else "") for number, part in enumerate(parts, start=1)]


def _about_collages(answered: Answered, part: range, variant: str) -> Question:
    number = {"type": "integer", "enum": list(range(len(part)))}
    entry = object_schema(picture=number, seen={"type": "string"}, one_picture={"type": "boolean"})
    schema = object_schema(pictures={"type": "array", "items": entry, "minItems": len(part), "maxItems": len(part)})
    some = tuple(answered.reply.images[at] for at in part)
    asked = filled(answered.rubrics.texts["collage"], {"pictures": laid_out([Section("", "the pictures of the document", some)])})
    more: dict[str, Any] = {"material": {"output": some}, "gold": answered.turn.gold, "variant": variant}
    return answered.ask(SEPARATE, asked, schema, **more)


def scores(question: Question, found: Mapping[str, Any]) -> list[Mark]:
    said = fields(found.get("scores"))
    left: Sequence[str] = found.get(UNDECIDED, ())
    made: list[Mark] = []
    for metric in question.metrics:
        spelt = NAMES[metric]
        entry = fields(said.get(spelt) or said.get(other_name(spelt)))
        if metric in left:
            made.append(Mark(metric, None, "it cannot be decided here"))
            continue
        if "Score" not in entry:
            raise Unusable(f'$.scores has no "{spelt}"')
        score = float(entry["Score"])
        made.append(Mark(metric, score / FULL, str(entry.get("Justification", "")), score, question.detail))
    sheets = facts_of(question.detail, DocumentFacts).sheets
    if sheets and made[0].value is not None:
        note = f"[the judge saw the pictures on {sheets} sheets]"
        made[0] = Mark(made[0].metric, made[0].value, f"{made[0].reason} {note}", made[0].score, question.detail)
    return made


def separate(question: Question, found: Mapping[str, Any]) -> Mark:
    """The share of pictures that are one picture each."""
    entries: list[dict[str, Any]] = sorted(found["pictures"], key=lambda one: one["picture"])
    if [one["picture"] for one in entries] != list(range(len(entries))):
        raise Unusable(f"every picture from 0 to {len(entries) - 1} must be there, each once")
    collages = [one for one in entries if not one["one_picture"]]
    told = [f"picture {one['picture'] + 1} is a collage: {one['seen']}" for one in collages]
    return Mark(
        SEPARATE,
        1 - len(collages) / len(entries),
        "\n".join(told) or "each picture is one picture",
        detail=DocumentFacts(len(entries), collages=len(collages)),
    )


def is_due(metric: str, goal: Goal) -> bool:
    return metric not in OF_PICTURES or goal.required != 0
