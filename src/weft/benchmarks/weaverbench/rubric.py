"""The judge's two questions about a document: its eight scores, in one call; and whether separate pictures are
separate.

Material: `input`, `output`. Replies are taken under the names that the paper's prompt has for the eight, and under
those of its text."""

from collections.abc import Mapping, Sequence
from typing import Any

from weft.benchmarks.base import JudgedTurn
from weft.benchmarks.documents import SHEETS_NOTE, DocumentSection, Sheet, format_sections
from weft.benchmarks.facts import read_facts
from weft.benchmarks.prompts import fill_slots, object_schema
from weft.benchmarks.weaverbench.data import WeaverBenchGold
from weft.benchmarks.weaverbench.facts import DocumentFacts
from weft.calls.structured_output import UnusableReply
from weft.models.endpoint import UNDECIDED
from weft.types import Message, Question, Score, Text
from weft.untrusted import dict_or_empty

ADHERENCE = "prompt_adherence"
NARRATIVE = "narrative_coordination"
INTRA = "intra_output"
TO_IMAGE = "input_to_image"
TO_TEXT = "input_to_text"
ENTITY = "entity"
STYLE = "style"
COMPLETE = "completeness"
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
# decided by counting; the judge's word on collages
COUNT = "count"
SEPARATE = "separate"
IMAGE_METRICS = (NARRATIVE, INTRA, TO_IMAGE, ENTITY, STYLE)  # what a question that needs no picture is not judged by
FULL = 10
COUNTED = {len(SCORES): "eight", len(SCORES) - len(IMAGE_METRICS): "three"}


def _entry(kind: str) -> dict[str, Any]:
    return object_schema(Justification={"type": "string"}, Score={"type": kind, "minimum": 0, "maximum": FULL})


def build_schema(metrics: Sequence[str]) -> dict[str, Any]:
    return object_schema(scores=object_schema(**{NAMES[metric]: _entry("integer") for metric in metrics}))


def alternative_name(name: str) -> str:
    first, _, rest = name.partition(" (")
    if first in OTHERS:
        return f"{OTHERS[first]} ({rest}"
    return name


def build_accepted_schema(metrics: Sequence[str]) -> dict[str, Any]:
    """Both spellings, scores with decimals, and no justification, do no harm."""
    entry = {**_entry("number"), "required": ["Score"]}
    names = dict.fromkeys(spelt for metric in metrics for spelt in (NAMES[metric], alternative_name(NAMES[metric])))
    scores = {"type": "object", "properties": dict.fromkeys(names, entry)}
    return {"type": "object", "properties": {"scores": scores}, "required": ["scores"]}


def build_sections(answered: JudgedTurn) -> list[DocumentSection]:
    return [
        DocumentSection("INPUT:", "what was asked for", answered.turn.prompt),
        DocumentSection("OUTPUT:", "the document that the model made", answered.reply.output),
    ]


def build_question(answered: JudgedTurn, metrics: Sequence[str], sheets: Sequence[Sheet] = ()) -> Question:
    texts = answered.rubrics.texts
    cards = "\n".join(texts[metric] for metric in metrics)
    slots = {"cards": cards, "sheets": SHEETS_NOTE if sheets else "", "count": COUNTED[len(metrics)]}
    if ENTITY in metrics:
        slots["pictures"] = texts["pictures"]
    else:
        slots["pictures"] = ""
    system = fill_slots(texts["system"], {name: [Text(text)] for name, text in slots.items()})
    sections = build_sections(answered)
    material = {"input": answered.turn.prompt, "output": answered.reply.output}
    if sheets:
        detail = DocumentFacts(sheets=len(sheets))
    else:
        detail = None
    return Question(
        tuple(metrics),
        (Message("system", system), Message("user", tuple(format_sections(sections, sheets)))),
        build_schema(metrics),
        answered.turn_ref,
        material=material,
        gold=answered.turn.gold,
        detail=detail,
        accepted_schema=build_accepted_schema(metrics),
    )


def build_collage_questions(answered: JudgedTurn, most: int) -> list[Question]:
    """How many pictures each picture is; several questions where there are too many for one: a sheet of them would be a
    collage."""
    made = answered.reply.images
    parts = [range(at, min(at + most, len(made))) for at in range(0, len(made), most)]
    return [
        _about_collages(answered, part, f"part {number}" if len(parts) > 1 else "")
        for number, part in enumerate(parts, start=1)
    ]


def _about_collages(answered: JudgedTurn, part: range, variant: str) -> Question:
    number = {"type": "integer", "enum": list(range(len(part)))}
    entry = object_schema(picture=number, seen={"type": "string"}, one_picture={"type": "boolean"})
    schema = object_schema(pictures={"type": "array", "items": entry, "minItems": len(part), "maxItems": len(part)})
    some = tuple(answered.reply.images[at] for at in part)
    asked = fill_slots(
        answered.rubrics.texts["collage"],
        {"pictures": format_sections([DocumentSection("", "the pictures of the document", some)])},
    )
    more: dict[str, Any] = {"material": {"output": some}, "gold": answered.turn.gold, "variant": variant}
    return answered.ask(SEPARATE, asked, schema, **more)


def build_scores(question: Question, found: Mapping[str, Any]) -> list[Score]:
    said = dict_or_empty(found.get("scores"))
    left: Sequence[str] = found.get(UNDECIDED, ())
    made: list[Score] = []
    for metric in question.metrics:
        spelt = NAMES[metric]
        entry = dict_or_empty(said.get(spelt) or said.get(alternative_name(spelt)))
        if metric in left:
            made.append(Score(metric, None, "it cannot be decided here"))
            continue
        if "Score" not in entry:
            raise UnusableReply(f'$.scores has no "{spelt}"')
        score = float(entry["Score"])
        made.append(Score(metric, score / FULL, str(entry.get("Justification", "")), score, question.detail))
    sheets = read_facts(question.detail, DocumentFacts).sheets
    if sheets and made[0].value is not None:
        note = f"[the judge saw the pictures on {sheets} sheets]"
        made[0] = Score(made[0].metric, made[0].value, f"{made[0].reason} {note}", made[0].score, question.detail)
    return made


def build_separate_score(question: Question, found: Mapping[str, Any]) -> Score:
    """The share of pictures that are one picture each."""
    entries: list[dict[str, Any]] = sorted(found["pictures"], key=lambda one: one["picture"])
    if [one["picture"] for one in entries] != list(range(len(entries))):
        raise UnusableReply(f"every picture from 0 to {len(entries) - 1} must be there, each once")
    collages = [one for one in entries if not one["one_picture"]]
    told = [f"picture {one['picture'] + 1} is a collage: {one['seen']}" for one in collages]
    return Score(
        SEPARATE,
        1 - len(collages) / len(entries),
        "\n".join(told) or "each picture is one picture",
        detail=DocumentFacts(len(entries), collages=len(collages)),
    )


def is_expected(metric: str, goal: WeaverBenchGold) -> bool:
    return metric not in IMAGE_METRICS or goal.required != 0
