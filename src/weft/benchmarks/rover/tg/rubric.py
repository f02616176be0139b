"""ROVER-TG's two questions to the judge, about the picture on the way and about how the answer comes from it.

Pictures in the stated order. On the way: physical and logical source, reference, made; embodied and jigsaw reference,
made; multi-view both views, made. Alignment: physical, embodied and jigsaw source, made; logical source, reference,
made; multi-view both views, made.

Material: `source`, `second`, `reference`, `made`, `question`, `answer`, `reply`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from weft.benchmarks.base import JudgedTurn
from weft.benchmarks.prompts import Rubrics, build_rubrics, fence, fill_slots
from weft.benchmarks.rover import prompts
from weft.benchmarks.rover.ig.rubric import ALIGNMENT, build_schema
from weft.benchmarks.rover.official import RoverOfficial
from weft.benchmarks.rover.tg.data import RoverTGGold
from weft.errors import UserError
from weft.types import Image, Part, Question, Text

INTERLEAVED = "interleaved_reasoning"
ACCURACY = "accuracy"
TRACK = "track"
# of an answer without a picture on the way
TEXT_ONLY_METRICS = {ACCURACY: "accuracy_in_words", TRACK: "track_in_words"}
SETTINGS = {"max_tokens": 10000, "temperature": 0.0}
NEEDED = {
    **{
        f"{INTERLEAVED} {kind}": f"prompt_{INTERLEAVED}_{kind.replace('-', '_')}"
        for kind in ("physical", "embodied", "logical", "jigsaw", "multi-view")
    },
    **{f"{ALIGNMENT} {kind}": f"prompt_{ALIGNMENT}_{kind}" for kind in ("physical", "logical", "jigsaw")},
}
OFFICIAL = RoverOfficial(NEEDED, SETTINGS, loose=True)
PERHAPS = {f"{ALIGNMENT} multi-view": f"prompt_{ALIGNMENT}_multi_view"}  # which the released file does not have
SAME = {"embodied": "physical"}  # whose alignment is judged by another's rubric
TOLD = ("logical", "jigsaw", "multi-view")  # where the judge of alignment is told the true answer
NAMES = {
    "source": "What was given",
    "second": "What was given, second view",
    "reference": "Reference",
    "made": "What the model made",
}


def read_official_rubrics(checkout: Path, own: Rubrics) -> Rubrics:
    """The released prompts; where they lack one that the released evaluator asks for, ours."""
    try:
        found = prompts.read_official_rubrics(checkout, {**NEEDED, **PERHAPS}, "model_answer", SETTINGS)
        source = ""
    except UserError:
        found = prompts.read_official_rubrics(checkout, NEEDED, "model_answer", SETTINGS)
        source = ", multi-view alignment weft's"
    made = build_rubrics({**own.texts, **found.texts}, f"{found.source}{source}")
    return Rubrics(made.texts, made.source, made.digest, SETTINGS)


def list_image_names(metric: str, kind: str) -> tuple[str, ...]:
    if kind == "multi-view":
        return ("source", "second", "made")
    if kind == "logical" or (metric == INTERLEAVED and kind == "physical"):
        return ("source", "reference", "made")
    if metric == INTERLEAVED:
        return ("reference", "made")
    return ("source", "made")


def build_question(metric: str, answered: JudgedTurn, made: Image, reply: str, **more: Any) -> Question:
    puzzle: RoverTGGold = answered.turn.gold
    there = {"source": puzzle.source, "second": puzzle.second, "reference": puzzle.reference, "made": made}
    pictures = [(name, image) for name in list_image_names(metric, puzzle.kind) if (image := there[name]) is not None]
    told: Mapping[str, tuple[Part, ...]] = {
        **{name: (image,) for name, image in there.items() if image is not None},
        "question": (Text(answered.turn.prompt_text),),
        "answer": (Text(puzzle.answer),),
        "reply": (Text(reply),),
    }
    rubric = f"{metric} {SAME.get(puzzle.kind, puzzle.kind) if metric == ALIGNMENT else puzzle.kind}"
    if answered.rubrics.official and rubric in answered.rubrics.texts:
        # as the scripts put its parts together
        if reply:
            said = answered.reply.text
        else:
            said = answered.rubrics.texts[prompts.NO_TEXT]
        slots = {"prompt": answered.turn.prompt_text, "answer": puzzle.answer, "model_answer": said}
        parts: Sequence[Part] = (
            Text(prompts.format_prompt(answered.rubrics.texts[rubric], slots)),
            *(image for _, image in pictures),
        )
        more |= {"text_only": True, "jpeg": True, "unconverted_images": (len(pictures) - 1,)}
    else:
        parts = _own(metric, answered, puzzle, pictures, reply)
    return answered.ask(
        metric, parts, build_schema(metric), material=told, value_key=f"{metric}_score", gold=puzzle, **more
    )


def _own(
    metric: str, answered: JudgedTurn, puzzle: RoverTGGold, pictures: Sequence[tuple[str, Image]], reply: str
) -> tuple[Part, ...]:
    texts = answered.rubrics.texts
    if metric == INTERLEAVED:
        name = "interleaved"
    else:
        name = "alignment"
    kind = (SAME.get(puzzle.kind, puzzle.kind) if metric == ALIGNMENT else puzzle.kind).replace("-", "_")
    shown: list[Part] = []
    for called, image in pictures:
        shown += [Text(f"{NAMES[called]}:\n"), image, Text("\n")]
    words = f"Question: {answered.turn.prompt_text}"
    if metric == INTERLEAVED or puzzle.kind in TOLD:
        words += f"\nTrue answer: {puzzle.answer}"
    slots: dict[str, Sequence[Part]] = {
        "kind": [Text(texts[f"{name}_{kind}"])],
        "pictures": shown,
        "question": fence([Text(words)], "the question"),
        "reply": fence([Text(reply or "(nothing)")], "what the model said"),
    }
    return fill_slots(texts[name], slots)
