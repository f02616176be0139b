"""The questions about an edit: consistency, quality, and instruction, with knowledge in the same call where it is
scored; with weft's rubrics, or as the released scripts ask.

Material: `source`, `output`, `reference`, `task`.
"""

import re
from collections.abc import Sequence
from typing import Any

from weft.benchmarks.base import JudgedTurn
from weft.benchmarks.kris.data import KrisGold
from weft.benchmarks.prompts import fence_pieces, fill_slots, object_schema
from weft.types import Image, Part, Question, Text, Turn

CONSISTENCY, QUALITY, INSTRUCTION, KNOWLEDGE = "consistency", "quality", "instruction", "knowledge"
METRICS = (CONSISTENCY, QUALITY, INSTRUCTION, KNOWLEDGE)
SLOT = re.compile(r"\{(instruct|explanation|N)\}|\{\{|\}\}")
KINDS = ("Reference", "Generated")  # of frames, as the released script names them
SCORE = {"type": "integer", "minimum": 1, "maximum": 5}
REASONS = ("reasoning", "reason", "instruction_reasoning", "knowledge_reasoning")


def list_metrics(turn: Turn) -> tuple[str, ...]:
    """Return the metrics of an edit."""
    gold: KrisGold = turn.gold
    return METRICS if gold.has_knowledge else METRICS[:3]


def list_calls(turn: Turn) -> list[tuple[str, ...]]:
    """Return the metrics of each question."""
    return [(CONSISTENCY,), (QUALITY,), list_metrics(turn)[2:]]


def build_questions(judged_turn: JudgedTurn) -> list[Question]:
    """Return the questions with our rubrics, or the released prompts."""
    if judged_turn.rubrics.official_prompts:
        return [_ask_released(judged_turn, metrics) for metrics in list_calls(judged_turn.turn)]
    return [_ask(judged_turn, metrics) for metrics in list_calls(judged_turn.turn)]


def _ask(judged_turn: JudgedTurn, metrics: tuple[str, ...]) -> Question:
    gold: KrisGold = judged_turn.turn.gold
    made: list[Part] = [Text("\nThe result to judge:\n"), judged_turn.image, Text("\n")]
    slots: dict[str, Sequence[Part]] = {"pictures": made}
    if metrics != (QUALITY,):
        pieces: list[tuple[str, Sequence[Part]]] = [("Request", [Text(judged_turn.turn.prompt_text)])]
        if gold.explanation and INSTRUCTION in metrics:
            pieces.append(("What the result must show", [Text(gold.explanation)]))
        slots = {"task": fence_pieces(pieces, "the request"), "pictures": [*_show_sources(gold, metrics), *made]}
    entry = object_schema(reasoning={"type": "string"}, score=SCORE)
    schema = entry if len(metrics) == 1 else object_schema(**dict.fromkeys(metrics, entry))
    name = KNOWLEDGE if KNOWLEDGE in metrics else metrics[0]
    parts = fill_slots(judged_turn.rubrics.texts[name], slots)
    return judged_turn.ask(metrics, parts, schema, material=_build_material(judged_turn), gold=gold)


def _show_sources(gold: KrisGold, metrics: tuple[str, ...]) -> list[Part]:
    """Return the sources under their names, with the right result where what was asked for is judged."""
    parts: list[Part] = []
    for number, image in enumerate(gold.sources, 1):
        name = "The source picture"
        if gold.frames:
            name = f"Frame {gold.frames[number - 1]} of the sequence"
        elif len(gold.sources) > 1:
            name = f"Source picture {number}"
        parts += [Text(f"\n{name}:\n"), image]
    if gold.frames:
        parts.append(Text(f"\nThe result is to be frame {gold.made_frame}.\n"))
    if gold.reference is not None and INSTRUCTION in metrics:
        parts += [Text("\nA right result:\n"), gold.reference]
    return parts


def _ask_released(judged_turn: JudgedTurn, metrics: tuple[str, ...]) -> Question:
    gold: KrisGold = judged_turn.turn.gold
    properties: dict[str, Any] = {f"{metric}_score": SCORE for metric in metrics}
    required = list(properties)
    properties |= {key: {"type": "string"} for key in REASONS}
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return judged_turn.ask(
        metrics,
        _fill_released(judged_turn, metrics),
        schema,
        material=_build_material(judged_turn),
        gold=gold,
        text_only=True,
        jpeg=gold.script == "temporal",
    )


def _fill_released(judged_turn: JudgedTurn, metrics: tuple[str, ...]) -> list[Part]:
    gold: KrisGold = judged_turn.turn.gold
    texts = judged_turn.rubrics.texts
    name = f"{metrics[0]} {gold.script}" if f"{metrics[0]} {gold.script}" in texts else metrics[0]
    if metrics == (QUALITY,):  # this prompt is sent as it is, without filling slots
        return [Text(texts[name]), Text(texts[f"label {gold.script} made"]), judged_turn.image]
    values = {"instruct": judged_turn.turn.prompt_text, "explanation": gold.explanation, "N": str(gold.made_frame)}
    prompt = SLOT.sub(lambda match: values[match[1]] if match[1] else match[0][0], texts[name])
    return [Text(prompt), *_show_released(judged_turn, metrics)]


def _show_released(judged_turn: JudgedTurn, metrics: tuple[str, ...]) -> list[Part]:
    """Return the images in the script's order, each after its own text."""
    gold: KrisGold = judged_turn.turn.gold
    texts = judged_turn.rubrics.texts
    shown: list[tuple[str, Image]] = []
    if gold.script == "temporal":
        frames = [(number, image, KINDS[0]) for number, image in zip(gold.frames, gold.sources, strict=True)]
        frames.append((gold.made_frame, judged_turn.image, KINDS[1]))
        for number, image, kind in sorted(frames, key=lambda frame: frame[0]):
            label = texts["label frame"].replace("[[number]]", str(number)).replace("[[kind]]", kind)
            shown.append((label, image))
    elif gold.script == "multi":
        for number, image in enumerate(gold.sources, 1):
            shown.append((texts["label composed source"].replace("[[number]]", str(number)), image))
        shown.append((texts["label composed made"], judged_turn.image))
    else:
        shown.append((texts[f"label {gold.script} source"], gold.sources[0]))
        shown.append((texts[f"label {gold.script} made"], judged_turn.image))
        if gold.script == "view" and metrics == (INSTRUCTION,) and gold.reference is not None:
            shown.append((texts["label view reference"], gold.reference))
    return [part for label, image in shown for part in (Text(label), image)]


def _build_material(judged_turn: JudgedTurn) -> dict[str, tuple[Part, ...]]:
    gold: KrisGold = judged_turn.turn.gold
    return {
        "source": gold.sources,
        "output": (judged_turn.image,),
        "reference": () if gold.reference is None else (gold.reference,),
        "task": (Text(judged_turn.turn.prompt_text), Text(gold.explanation)),
    }
