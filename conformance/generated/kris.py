"""KRIS-Bench: five scripts' reading of replies, their requests, and the scores that they keep."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from conformance.companions import Companion, Judge, evaluate, own_facts, recorded_facts, write_constants
from conformance.images import painted
from conformance.recording import Explained, Facts
from weft.benchmarks.kris.data import CATEGORIES
from weft.benchmarks.kris.official import (
    MULTI_FUNCTION,
    OFFICIAL,
    PROMPTS,
    PROMPTS_FILE,
    SCRIPTS,
    TEMPORAL_FUNCTION,
)
from weft.benchmarks.kris.official_reading import read_scores
from weft.benchmarks.official import MissingScore
from weft.judges.official_prompts import PromptFunction

REPOSITORY = "mercurystraw/Kris_Bench"
ITEMS = 3  # of each category
SIZES = ((32, 32), (64, 48), (48, 96))
SCORES = (1, 3, 5, 2, 4)
ANSWERS = [
    json.dumps({f"{name}_score": score + place % 2 for place, name in enumerate(PROMPTS) if " " not in name}
               | {"knowledge_score": score, "reasoning": "so"})
    for score in SCORES
]  # fmt: skip
ANSWERS += ["4/5", "I say 2.", "none", "consistency score: 3", "instruction_score: 2 and knowledge_score: 4"]
EXPLAINED: tuple[Explained, ...] = ()
FILES = (PROMPTS_FILE, *SCRIPTS.values())
LABELS = ("source:", "made:", "right:")  # ours, in place of theirs
TEMPLATES = {("multi", MULTI_FUNCTION): ({"idx": "idx"}, "source {idx}:"),
             ("temporal", TEMPORAL_FUNCTION): ({"frame_num": "frame_num", "frame_type": "frame_type"},
                                               "frame {frame_num}, {frame_type}:")}  # fmt: skip


def prepare(work: Path) -> dict[str, Any]:
    """Write annotations with their images, and edited images, of which some are missing."""
    for place, category in enumerate(CATEGORIES):
        items: dict[str, Any] = {}
        for number in range(1, ITEMS + 1):
            names: list[str] = [f"{number}.png"]
            if category == "multi-element_composition":
                names = [f"{number}-{part}.jpg" for part in range(1, number + 1)]
            elif category == "temporal_prediction":
                names = [f"{number}-{frame}.jpg" for frame in range(1, 5) if frame != number + 1]
            many = category in ("multi-element_composition", "temporal_prediction")
            item = {"ori_img": names if many else names[0], "gt_img": "", "ins_en": f"Change {category} {number}.",
                    "explain_en": f"So it is {number}."}  # fmt: skip
            if category == "viewpoint_change":
                item["gt_img"] = f"{number}_gt.jpg"
                names = [*names, f"{number}_gt.jpg"]
            for name in names:
                write(work / "KRIS_Bench" / category / name, f"{category} {name}", SIZES[place % 3])
            if (place + number) % 5:
                write(
                    work / "results" / "mine" / category / f"{number}.jpg",
                    f"made {category} {number}",
                    SIZES[number % 3],
                )
            items[str(number)] = item
        (work / "KRIS_Bench" / category / "annotation.json").write_text(json.dumps(items))
    return {"folder": str(work), "answers": ANSWERS}


def write(path: Path, seed: str, size: tuple[int, int]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(painted(seed, "JPEG" if path.suffix == ".jpg" else "PNG", size))


def make_weft_facts(work: Path, prompts: str, replies: Sequence[str]) -> Mapping[str, Any]:
    judge = Judge(ANSWERS)
    folder = work / "released"
    run = evaluate("kris", folder / "KRIS_Bench", folder / "results" / "mine", work, judge, prompts=prompts)
    cells: dict[str, Any] = {}
    for verdict in run.verdicts:
        score = OFFICIAL.score(verdict)
        if not isinstance(score, MissingScore):
            category, _, key = verdict.sample.rpartition("-")
            cells[f"{category} {key} {verdict.metric}_score"] = 4 * score + 1
    return {"replies": [read(text) for text in replies], "requests": judge.asked, "cells": cells}


def read(text: str) -> list[int | None]:
    """What each script makes of a reply about consistency, and of two scores."""
    both = read_scores("knowledge", ("instruction", "knowledge"), text)
    one = [("common", "consistency"), ("common", "instruction"), ("multi", "consistency"), ("knowledge", "consistency")]
    return [*(read_scores(script, (name,), text)[name] for script, name in one), *both.values()]


def stand_in(checkout: Path) -> None:
    """Prompts and labels of ours, in copies of the scripts or in files that have nothing else."""
    text = "{instruct} {{braces}}"
    write_constants(checkout / PROMPTS_FILE, PROMPTS.values(), text)
    for script, file in SCRIPTS.items():
        path = checkout / file
        if not path.is_file():
            path.write_text(write_stub(script))
            continue
        source = path.read_text()
        functions = ["evaluate_with_gpt", *(name for own, name in TEMPLATES if own == script)]
        for function in functions:
            labels = PromptFunction.read(checkout, file, function)
            if function in (MULTI_FUNCTION, "evaluate_with_gpt"):
                for old, new in zip(labels.list_part_texts(), own_labels(script, function), strict=False):
                    source = source.replace(f'"{old}"', json.dumps(new))
            if (script, function) in TEMPLATES:
                slots, new = TEMPLATES[script, function]
                old = labels.find_template(slots)
                for slot in slots:
                    old = old.replace(f"[[{slot}]]", f"{{{slot}}}")
                source = source.replace(old, new)
        path.write_text(source)


def own_labels(script: str, function: str) -> tuple[str, ...]:
    return LABELS[1:2] if function == MULTI_FUNCTION or script in ("multi", "temporal") else LABELS


def write_stub(script: str) -> str:
    """Functions with the labels alone."""
    lines = ["def evaluate_with_gpt():"]
    lines += [f'    {{"text": {label!r}}}' for label in own_labels(script, "evaluate_with_gpt")]
    for (own, function), (_, template) in TEMPLATES.items():
        if own == script:
            lines += [f"def {function}():", f"    f{template!r}", '    {"text": "made:"}']
    return "\n".join(lines) + "\n"


COMPANION = Companion("kris", prepare, make_weft_facts, stand_in, FILES)


def released(checkout: Path, python: Path, work: Path) -> Facts:
    return recorded_facts(COMPANION, checkout, python, work)


def weft_facts(work: Path) -> Facts:
    return own_facts(COMPANION, work)
