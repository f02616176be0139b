"""The judge's two questions about a document: its eight scores, in one call; and whether separate images are separate.

Material: `input`, `output`. Replies are read under the names that the paper's prompt has for the eight scores, and
under the names in the paper's text.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from weft.benchmarks.base import JudgedTurn
from weft.benchmarks.documents import SHEETS_NOTE, DocumentSection, Sheet, format_sections
from weft.benchmarks.facts import read_facts
from weft.benchmarks.prompts import fence, fill_slots, object_schema
from weft.benchmarks.weaverbench.data import WeaverBenchGold
from weft.benchmarks.weaverbench.facts import DocumentFacts
from weft.calls.structured_output import UnusableReply
from weft.models.endpoint import UNDECIDED
from weft.types import Image, Message, Part, Question, Score, Text
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
ALTERNATIVE_NAMES = {  # in the paper's text
    "Image Text Consistency": "Content Consistency",
    "Multi step Consistency": "Image Consistency",
}
SCORES = tuple(NAMES)
COUNT = "count"  # decided by counting images
SEPARATE = "separate"  # decided by the judge's reply about collages
IMAGE_METRICS = (NARRATIVE, INTRA, TO_IMAGE, ENTITY, STYLE)  # not expected of a question that needs no image
MAX_SCORE = 10
COUNT_WORDS = {len(SCORES): "eight", len(SCORES) - len(IMAGE_METRICS): "three"}


def list_expected_scores(gold: WeaverBenchGold) -> tuple[str, ...]:
    """Return the scores that a judge gives for a prompt."""
    if gold.required == 0:
        return tuple(metric for metric in SCORES if metric not in IMAGE_METRICS)
    return SCORES


def _build_entry_schema(score_type: str) -> dict[str, Any]:
    score = {"type": score_type, "minimum": 0, "maximum": MAX_SCORE}
    return object_schema(Justification={"type": "string"}, Score=score)


def build_schema(metrics: Sequence[str]) -> dict[str, Any]:
    names = [NAMES[metric] for metric in metrics]
    return object_schema(scores=object_schema(**dict.fromkeys(names, _build_entry_schema("integer"))))


def alternative_name(name: str) -> str:
    """Return the name of a score in the paper's text, given its name in the paper's prompt."""
    dimension, _, aspect = name.partition(" (")
    if dimension in ALTERNATIVE_NAMES:
        return f"{ALTERNATIVE_NAMES[dimension]} ({aspect}"
    return name


def build_accepted_schema(metrics: Sequence[str]) -> dict[str, Any]:
    """Return a schema that also accepts the alternative names, decimals, and scores without a justification."""
    entry = {**_build_entry_schema("number"), "required": ["Score"]}
    properties: dict[str, Any] = {}
    for metric in metrics:
        properties[NAMES[metric]] = entry
        properties[alternative_name(NAMES[metric])] = entry
    scores = {"type": "object", "properties": properties}
    return {"type": "object", "properties": {"scores": scores}, "required": ["scores"]}


def build_sections(judged_turn: JudgedTurn) -> list[DocumentSection]:
    return [
        DocumentSection("INPUT:", "what was asked for", judged_turn.turn.prompt),
        DocumentSection("OUTPUT:", "the document that the model made", judged_turn.reply.output),
    ]


def build_question(judged_turn: JudgedTurn, metrics: Sequence[str], sheets: Sequence[Sheet] = ()) -> Question:
    """Return the question for all scores. `sheets` stand for images, where there are too many to show one by one."""
    texts = judged_turn.rubrics.texts
    if judged_turn.rubrics.official_prompts:
        return _build_printed_question(judged_turn, metrics, sheets)
    slots = {
        "cards": "\n".join(texts[metric] for metric in metrics),
        "sheets": "",
        "count": COUNT_WORDS[len(metrics)],
        "pictures": "",
    }
    detail = None
    if sheets:
        slots["sheets"] = SHEETS_NOTE
        detail = DocumentFacts(sheets=len(sheets))
    if ENTITY in metrics:
        slots["pictures"] = texts["pictures"]
    system = fill_slots(texts["system"], {name: [Text(text)] for name, text in slots.items()})
    user = tuple(format_sections(build_sections(judged_turn), sheets))
    return _build_scores_question(judged_turn, metrics, (Message("system", system), Message("user", user)), detail)


def _build_printed_question(judged_turn: JudgedTurn, metrics: Sequence[str], sheets: Sequence[Sheet]) -> Question:
    """Return the question in the words of the user's file: the paper's prompt, then input and output under titles.

    The prompt says itself how to reply, for all eight scores; no schema is sent."""
    system = (Text(judged_turn.rubrics.texts["system"]),)
    user = tuple(format_sections(build_sections(judged_turn), sheets, fenced=False))
    detail = DocumentFacts(sheets=len(sheets)) if sheets else None
    messages = (Message("system", system), Message("user", user))
    return replace(_build_scores_question(judged_turn, metrics, messages, detail), text_only=True)


def _build_scores_question(
    judged_turn: JudgedTurn, metrics: Sequence[str], messages: tuple[Message, ...], detail: DocumentFacts | None
) -> Question:
    return Question(
        tuple(metrics),
        messages,
        build_schema(metrics),
        judged_turn.turn_ref,
        material={"input": judged_turn.turn.prompt, "output": judged_turn.reply.output},
        gold=judged_turn.turn.gold,
        detail=detail,
        accepted_schema=build_accepted_schema(metrics),
    )


def build_collage_questions(judged_turn: JudgedTurn, max_images: int) -> list[Question]:
    """Return the question whether each image is one image.

    There are several questions if there are too many images for one: a sheet of them would be a collage. Where the
    request leaves the number of images open, the judge sees it: a sheet that it asks for is no collage.
    """
    images = judged_turn.reply.images
    if len(images) <= max_images:
        return [_build_collage_question(judged_turn, images, "")]
    questions: list[Question] = []
    for number, start in enumerate(range(0, len(images), max_images), start=1):
        chunk = images[start : start + max_images]
        questions.append(_build_collage_question(judged_turn, chunk, f"part {number}"))
    return questions


def _build_collage_question(judged_turn: JudgedTurn, images: tuple[Image, ...], variant: str) -> Question:
    count = len(images)
    number = {"type": "integer", "enum": list(range(count))}
    entry = object_schema(picture=number, seen={"type": "string"}, one_picture={"type": "boolean"})
    schema = object_schema(pictures={"type": "array", "items": entry, "minItems": count, "maxItems": count})
    slots: dict[str, Sequence[Part]] = {
        "pictures": format_sections([DocumentSection("", "the pictures of the document", images)])
    }
    text = judged_turn.rubrics.texts["collage"]
    gold: WeaverBenchGold = judged_turn.turn.gold
    if gold.required is None:
        text = judged_turn.rubrics.texts["collage_free"]
        slots["request"] = fence([Text(judged_turn.turn.prompt_text)], "what was asked for")
    parts = fill_slots(text, slots)
    return judged_turn.ask(
        SEPARATE, parts, schema, material={"output": images}, gold=judged_turn.turn.gold, variant=variant
    )


def build_scores(question: Question, reply: Mapping[str, Any]) -> list[Score]:
    """Return a score for each metric. Raises UnusableReply if one is missing."""
    entries = dict_or_empty(reply.get("scores"))
    undecided: Sequence[str] = reply.get(UNDECIDED, ())
    scores: list[Score] = []
    for metric in question.metrics:
        if metric in undecided:
            scores.append(Score(metric, None, "it cannot be decided here"))
            continue
        name = NAMES[metric]
        entry = dict_or_empty(entries.get(name) or entries.get(alternative_name(name)))
        if "Score" not in entry:
            raise UnusableReply(f'$.scores has no "{name}"')
        score = float(entry["Score"])
        scores.append(Score(metric, score / MAX_SCORE, str(entry.get("Justification", "")), score, question.detail))
    sheets = read_facts(question.detail, DocumentFacts).sheets
    if sheets and scores[0].value is not None:
        reason = f"{scores[0].reason} [the judge saw the images on {sheets} sheets]"
        scores[0] = replace(scores[0], reason=reason)
    return scores


def build_separate_score(question: Question, reply: Mapping[str, Any]) -> Score:
    """Return the share of images that are one image each. Raises UnusableReply if one is missing."""
    entries: list[dict[str, Any]] = sorted(reply["pictures"], key=lambda entry: entry["picture"])
    collages: list[str] = []
    for index, entry in enumerate(entries):
        if entry["picture"] != index:
            raise UnusableReply(f"every picture from 0 to {len(entries) - 1} must be there, each once")
        if not entry["one_picture"]:
            collages.append(f"image {index + 1} is a collage: {entry['seen']}")
    return Score(
        SEPARATE,
        1 - len(collages) / len(entries),
        "\n".join(collages) or "each image is one image",
        detail=DocumentFacts(len(entries), collages=len(collages)),
    )
