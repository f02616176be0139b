"""ROVER-IG's five questions to the judge.

Images in the stated order: process the source alone; visual source, output, target; alignment and consistency source,
output; quality the output.

With our rubrics, what a dataset or a model wrote is fenced off. With the official prompts, the message is what the
released code sends: the prompt with its slots filled, then the images; those of the dataset as JPEG, the output as it
is; no schema.

Material: `source`, `output`, `target`, `task`, `thinking`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from weft.benchmarks.base import JudgedTurn
from weft.benchmarks.prompts import Rubrics, fence, fence_pieces, fill_slots, object_schema
from weft.benchmarks.rover import prompts
from weft.benchmarks.rover.ig.data import RoverIGGold
from weft.benchmarks.rover.official import RoverOfficial
from weft.types import Image, Part, Question, Text

PROCESS = "reasoning_process"
VISUAL = "reasoning_visual"
ALIGNMENT = "reasoning_alignment"
CONSISTENCY = "visual_consistency"
QUALITY = "image_quality"
METRICS = (PROCESS, VISUAL, ALIGNMENT, CONSISTENCY, QUALITY)
RUBRICS = {PROCESS: "process", VISUAL: "visual", ALIGNMENT: "alignment", CONSISTENCY: "consistency", QUALITY: "quality"}
RUBRIC_OF = {"mathematical": "logical", "abstract": "logical"}  # types that are judged by another's rubric
SETTINGS = {"max_tokens": 3000, "temperature": 0.0}
KINDS = ("temporal", "spatial", "quantitative", "causal", "imaginative", "logical")
CONSTANTS = {
    **{f"{metric} {kind}": f"prompt_{metric}_{kind}" for metric in (PROCESS, VISUAL) for kind in KINDS},
    **{metric: f"prompt_{metric}" for metric in (ALIGNMENT, CONSISTENCY, QUALITY)},
}
OFFICIAL = RoverOfficial(CONSTANTS, SETTINGS, 904, loose=False)


def read_official_rubrics(checkout: Path) -> Rubrics:
    return prompts.read_official_rubrics(checkout, CONSTANTS, "think_output", SETTINGS)


def build_schema(metric: str) -> dict[str, Any]:
    score = {"type": "integer", "minimum": 1, "maximum": 5}
    return object_schema(reasoning={"type": "string"}, **{f"{metric}_score": score})


def build_question(
    metric: str, judged_turn: JudgedTurn, thinking: str, *, image: Image | None, **fields: Any
) -> Question:
    """Return the question of a metric. `image` is None where thinking came without an image."""
    gold: RoverIGGold = judged_turn.turn.gold
    prompt = judged_turn.turn.prompt_text
    source = (gold.source,)
    output = _optional(image)
    target = _optional(gold.target)
    if judged_turn.rubrics.official_prompts:
        images = {PROCESS: source, VISUAL: (*source, *output, *target), QUALITY: output}.get(metric, (*source, *output))
        parts: Sequence[Part] = (Text(_format_released(metric, judged_turn.rubrics, gold, prompt, thinking)), *images)
        fields |= {"text_only": True, "jpeg": True}
        if image is not None:
            fields["unconverted_images"] = (_index_of_output(metric),)
    else:
        slots = _build_slots(metric, judged_turn.rubrics, gold, prompt, thinking, image)
        parts = fill_slots(judged_turn.rubrics.texts[RUBRICS[metric]], slots)
    material = {
        "source": source,
        "output": output,
        "target": target,
        "task": (Text(prompt),),
        "thinking": (Text(thinking),),
    }
    return judged_turn.ask(
        metric, parts, build_schema(metric), material=material, value_key=f"{metric}_score", gold=gold, **fields
    )


def _optional(image: Image | None) -> tuple[Image, ...]:
    if image is None:
        return ()
    return (image,)


def _index_of_output(metric: str) -> int:
    """Return the position of the output among the images of a question; -1 if it is not shown."""
    return {QUALITY: 0, PROCESS: -1}.get(metric, 1)


def _format_released(metric: str, rubrics: Rubrics, gold: RoverIGGold, prompt: str, thinking: str) -> str:
    """Return the prompt with its slots filled. That of image quality is never filled, so that its doubled braces reach
    the judge."""
    if metric == QUALITY:
        return rubrics.texts[metric]
    name = metric
    if metric in (PROCESS, VISUAL):
        name = f"{metric} {RUBRIC_OF.get(gold.kind, gold.kind)}"
    slots = {
        "prompt": prompt,
        "dimension": gold.dimension,
        "keywords": gold.keywords,
        "target_description": str(gold.description),  # "None" for null
        "think_output": thinking or rubrics.texts[prompts.NO_TEXT],
    }
    return prompts.format_prompt(rubrics.texts[name], slots)


def _build_slots(
    metric: str, rubrics: Rubrics, gold: RoverIGGold, prompt: str, thinking: str, image: Image | None
) -> dict[str, Sequence[Part]]:
    kind = RUBRIC_OF.get(gold.kind, gold.kind)
    kind_texts: list[Part] = []
    if metric == PROCESS:
        kind_texts.append(Text(rubrics.texts[f"process_{kind}"]))
    elif metric == VISUAL:
        kind_texts.append(Text(rubrics.texts[f"visual_{kind}"]))
    scale = "scale"
    if kind == "logical":
        scale = "scale_logical"
    images: list[Part] = [Text("The picture that the request is about:\n"), gold.source]
    output: list[Part] = []
    if image is not None:
        images += [Text("\nThe picture that was made:\n"), image]
        output = [image, Text("\n")]
    if gold.target is not None:
        images += [Text("\nReference, what the result looks like:\n"), gold.target]
    return {
        "kind": kind_texts,
        "scale": [Text(rubrics.texts[scale])],
        "source": [gold.source, Text("\n")],
        "made": output,
        "pictures": [*images, Text("\n")],
        "task": fence_pieces(_describe_task(metric, gold, prompt), "the task"),
        "thinking": fence([Text(thinking)] if thinking else [], "what the model wrote before it made its picture"),
    }


def _describe_task(metric: str, gold: RoverIGGold, prompt: str) -> list[tuple[str, tuple[Text]]]:
    """Return what the dataset says of the task, each text by its name."""
    texts = {"Request": prompt}
    if metric in (PROCESS, VISUAL):
        texts["Domain"] = gold.dimension.replace("_", " ")
        texts["Ideas"] = gold.keywords
        texts["Expected result"] = gold.description or ""
    return [(name, (Text(text),)) for name, text in texts.items() if text]
