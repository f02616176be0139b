"""ROVER-IG's five questions to the judge. Pictures in the stated order: process the source alone; visual source, made,
target; alignment and consistency source, made; quality the one that was made.

With our rubrics what a dataset or a model wrote is fenced off. With the official prompts the message is what the
released code sends: the prompt with its slots filled, then the pictures; those of the dataset as JPEG, the one that was
made as it is; no schema.

Material: `source`, `made`, `target`, `task`, `thinking`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from weft.benchmarks.base import JudgedTurn
from weft.benchmarks.prompts import Rubrics, fence, fill_slots, object_schema
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
OFFICIAL = RoverOfficial(CONSTANTS, SETTINGS, loose=False)


def read_official_rubrics(checkout: Path) -> Rubrics:
    return prompts.read_official_rubrics(checkout, CONSTANTS, "think_output", SETTINGS)


def build_schema(metric: str) -> dict[str, Any]:
    return object_schema(
        reasoning={"type": "string"}, **{f"{metric}_score": {"type": "integer", "minimum": 1, "maximum": 5}}
    )


def build_question(metric: str, answered: JudgedTurn, thinking: str, *, made: Image | None, **more: Any) -> Question:
    goal: RoverIGGold = answered.turn.gold
    source = (goal.source,)
    if goal.target:
        target = (goal.target,)
    else:
        target = ()
    if made:
        drawn = (made,)
    else:
        drawn = ()
    shown: Mapping[str, tuple[Image, ...]] = {
        PROCESS: source,
        VISUAL: (*source, *drawn, *target),
        QUALITY: drawn,
    }
    pictures = shown.get(metric, (*source, *drawn))
    prompt = answered.turn.prompt_text
    material = {
        "source": source,
        "made": drawn,
        "target": target,
        "task": (Text(prompt),),
        "thinking": (Text(thinking),),
    }
    if answered.rubrics.official:
        more |= {
            "text_only": True,
            "jpeg": True,
            "unconverted_images": (_place_of_made(metric),) if made else (),
        }
        parts: Sequence[Part] = (Text(_released(metric, answered.rubrics, goal, prompt, thinking)), *pictures)
    else:
        parts = fill_slots(
            answered.rubrics.texts[RUBRICS[metric]], _slots(metric, answered.rubrics, goal, prompt, thinking, made)
        )
    return answered.ask(
        metric, parts, build_schema(metric), material=material, value_key=f"{metric}_score", gold=goal, **more
    )


def _place_of_made(metric: str) -> int:
    if metric == QUALITY:
        return 0
    if metric == PROCESS:
        return -1
    return 1


def _released(metric: str, rubrics: Rubrics, goal: RoverIGGold, prompt: str, thinking: str) -> str:
    """The prompt with its slots filled. That of image quality is never filled, so that its doubled braces reach the
    judge."""
    if metric == QUALITY:
        return rubrics.texts[metric]
    text = rubrics.texts[f"{metric} {RUBRIC_OF.get(goal.kind, goal.kind)}" if metric in (PROCESS, VISUAL) else metric]
    slots = {
        "prompt": prompt,
        "dimension": goal.dimension,
        "keywords": goal.keywords,
        "target_description": goal.description,
    }
    return prompts.format_prompt(text, {**slots, "think_output": thinking or rubrics.texts[prompts.NO_TEXT]})


def _slots(
    metric: str, rubrics: Rubrics, goal: RoverIGGold, prompt: str, thinking: str, made: Image | None
) -> dict[str, Sequence[Part]]:
    kind = RUBRIC_OF.get(goal.kind, goal.kind)
    task = [Text(f"Request: {prompt}")]
    if metric in (PROCESS, VISUAL):
        told = [f"Domain: {goal.dimension.replace('_', ' ')}", *([f"Ideas: {goal.keywords}"] if goal.keywords else [])]
        told += [f"Expected result: {goal.description}"] if goal.description else []
        task = [Text("\n".join([task[0].text, *told]))]
    if thinking:
        words = [Text(thinking)]
    else:
        words = [Text("(nothing)")]
    pictures: list[Part] = [Text("The picture that the request is about:\n"), goal.source]
    pictures += [Text("\nThe picture that was made:\n"), made] if made else []
    pictures += [Text("\nReference, what the result looks like:\n"), goal.target] if goal.target else []
    name = {PROCESS: f"process_{kind}", VISUAL: f"visual_{kind}"}.get(metric)
    return {
        "kind": [Text(rubrics.texts[name])] if name else [],
        "scale": [Text(rubrics.texts["scale_logical" if kind == "logical" else "scale"])],
        "source": [goal.source, Text("\n")],
        "made": [made, Text("\n")] if made else [],
        "pictures": [*pictures, Text("\n")],
        "task": fence(task, "the task"),
        "thinking": fence(words, "what the model wrote before it made its picture"),
    }
