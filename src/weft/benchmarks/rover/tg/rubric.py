"""ROVER-TG's two questions to the judge: about the intermediate image, and about how the answer follows from it.

Images in the stated order. Intermediate image: physical and logical source, reference, output; embodied and jigsaw
reference, output; multi-view both views, output. Alignment: physical, embodied and jigsaw source, output; logical
source, reference, output; multi-view both views, output.

Material: `source`, `second`, `reference`, `output`, `question`, `answer`, `reply`.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from weft.benchmarks.base import JudgedTurn
from weft.benchmarks.prompts import Rubrics, build_rubrics, fence, fence_pieces, fill_slots
from weft.benchmarks.rover import prompts
from weft.benchmarks.rover.ig.rubric import ALIGNMENT, build_schema
from weft.benchmarks.rover.official import RoverOfficial
from weft.benchmarks.rover.tg.data import RoverTGGold
from weft.errors import UserError
from weft.types import Image, Part, Question, Text

INTERLEAVED = "interleaved_reasoning"
ACCURACY = "accuracy"
TRACK = "track"
TEXT_ONLY_METRICS = {ACCURACY: "accuracy_in_words", TRACK: "track_in_words"}  # of answers without an intermediate image
GIVEN_METRICS = {ACCURACY: "accuracy_given", TRACK: "track_given"}  # of answers after the reference image
SETTINGS = {"max_tokens": 10000, "temperature": 0.0}
CONSTANTS = {
    f"{INTERLEAVED} physical": f"prompt_{INTERLEAVED}_physical",
    f"{INTERLEAVED} embodied": f"prompt_{INTERLEAVED}_embodied",
    f"{INTERLEAVED} logical": f"prompt_{INTERLEAVED}_logical",
    f"{INTERLEAVED} jigsaw": f"prompt_{INTERLEAVED}_jigsaw",
    f"{INTERLEAVED} multi-view": f"prompt_{INTERLEAVED}_multi_view",
    f"{ALIGNMENT} physical": f"prompt_{ALIGNMENT}_physical",
    f"{ALIGNMENT} logical": f"prompt_{ALIGNMENT}_logical",
    f"{ALIGNMENT} jigsaw": f"prompt_{ALIGNMENT}_jigsaw",
}
OPTIONAL_CONSTANTS = {f"{ALIGNMENT} multi-view": f"prompt_{ALIGNMENT}_multi_view"}  # missing in the released file
OFFICIAL = RoverOfficial(CONSTANTS, SETTINGS, 381, loose=True)
ALIGNMENT_RUBRICS = {"embodied": "physical"}  # types whose alignment is judged by another's rubric
TYPES_WITH_ANSWER = ("logical", "jigsaw", "multi-view")  # where the judge of alignment is told the correct answer
IMAGE_CAPTIONS = {
    "source": "What was given",
    "second": "What was given, second view",
    "reference": "Reference",
    "output": "What the model made",
}


def read_official_rubrics(checkout: Path, own: Rubrics) -> Rubrics:
    """Return the released prompts; where they lack one that the released evaluator asks for, ours."""
    note = ""
    try:
        released = prompts.read_official_rubrics(
            checkout, {**CONSTANTS, **OPTIONAL_CONSTANTS}, "model_answer", SETTINGS
        )
    except UserError:
        released = prompts.read_official_rubrics(checkout, CONSTANTS, "model_answer", SETTINGS)
        note = ", multi-view alignment weft's"
    merged = build_rubrics({**own.texts, **released.texts}, f"{released.source}{note}")
    return Rubrics(merged.texts, merged.source, merged.digest, SETTINGS)


def list_image_names(metric: str, kind: str) -> tuple[str, ...]:
    """Return the images of a question in their order, by their names in its material."""
    if kind == "multi-view":
        return ("source", "second", "output")
    if kind == "logical" or (metric == INTERLEAVED and kind == "physical"):
        return ("source", "reference", "output")
    if metric == INTERLEAVED:
        return ("reference", "output")
    return ("source", "output")


def build_question(metric: str, judged_turn: JudgedTurn, image: Image, text: str, **fields: Any) -> Question:
    """Return the question of a metric. `image` is the model's, `text` its answer."""
    gold: RoverTGGold = judged_turn.turn.gold
    prompt = judged_turn.turn.prompt_text
    named_images = _collect_images(gold, image)
    names = [name for name in list_image_names(metric, gold.kind) if name in named_images]
    rubric = f"{metric} {_rubric_kind(metric, gold)}"
    if judged_turn.rubrics.official_prompts and rubric in judged_turn.rubrics.texts:
        model_answer = judged_turn.rubrics.texts[prompts.NO_TEXT]
        if text:
            model_answer = judged_turn.reply.text  # joined as the released scripts join its parts
        slots = {"prompt": prompt, "answer": gold.answer, "model_answer": model_answer}
        formatted = prompts.format_prompt(judged_turn.rubrics.texts[rubric], slots)
        parts: Sequence[Part] = (Text(formatted), *(named_images[name] for name in names))
        fields |= {"text_only": True, "jpeg": True, "unconverted_images": (len(names) - 1,)}
    else:
        parts = _build_own_parts(metric, judged_turn, {name: named_images[name] for name in names}, text)
    material: dict[str, tuple[Part, ...]] = {name: (named_images[name],) for name in named_images}
    material |= {"question": (Text(prompt),), "answer": (Text(gold.answer),), "reply": (Text(text),)}
    return judged_turn.ask(
        metric, parts, build_schema(metric), material=material, value_key=f"{metric}_score", gold=gold, **fields
    )


def _collect_images(gold: RoverTGGold, image: Image) -> dict[str, Image]:
    images = {"source": gold.source}
    if gold.second is not None:
        images["second"] = gold.second
    if gold.reference is not None:
        images["reference"] = gold.reference
    images["output"] = image
    return images


def _rubric_kind(metric: str, gold: RoverTGGold) -> str:
    if metric == ALIGNMENT:
        return ALIGNMENT_RUBRICS.get(gold.kind, gold.kind)
    return gold.kind


def _build_own_parts(metric: str, judged_turn: JudgedTurn, images: Mapping[str, Image], text: str) -> tuple[Part, ...]:
    """Return the message with our rubric, in which what a dataset or a model wrote is fenced off."""
    gold: RoverTGGold = judged_turn.turn.gold
    texts = judged_turn.rubrics.texts
    rubric = "alignment"
    if metric == INTERLEAVED:
        rubric = "interleaved"
    kind = _rubric_kind(metric, gold).replace("-", "_")
    image_parts: list[Part] = []
    for name, image in images.items():
        image_parts += [Text(f"{IMAGE_CAPTIONS[name]}:\n"), image, Text("\n")]
    question = [("Question", (Text(judged_turn.turn.prompt_text),))]
    if metric == INTERLEAVED or gold.kind in TYPES_WITH_ANSWER:
        question.append(("True answer", (Text(gold.answer),)))
    slots: dict[str, Sequence[Part]] = {
        "kind": [Text(texts[f"{rubric}_{kind}"])],
        "pictures": image_parts,
        "question": fence_pieces(question, "the question"),
        "reply": fence([Text(text)] if text else [], "what the model said"),
    }
    return fill_slots(texts[rubric], slots)
