"""RISEBench: the released reading of replies, which prompt and images each question has, and the script's table."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from conformance.companions import (
    Companion,
    Judge,
    evaluate,
    list_breakdown,
    list_official_cells,
    own_facts,
    recorded_facts,
    write_constants,
)
from conformance.images import painted
from conformance.recording import Explained, Facts
from weft.benchmarks.risebench.official import PROMPTS
from weft.benchmarks.risebench.official_reading import read_numbers
from weft.benchmarks.risebench.rubric import UNFORMATTED

REPOSITORY = "PhoenixZ810/RISEBench"
ITEMS = 6  # of each category
SUBTASKS = {
    "temporal": ("Life Progression", "Societal Transformation"),
    "causal": ("State Transition", "Physics Manifestation"),
    "spatial": ("Viewpoint Generation", "Layout Reasoning"),
    "logical": ("Pattern Prediction", "Puzzle Solving"),
}
DATA = ("plain", "full")  # without and with the columns that decide how the script scores
ANSWERS = ["**Final Score:** 5", "So.\n\n**Final Score**: **1**", "Final Score: 3", "Final Score: 0", "Final Score: 4\n\n",
           "Final Scores: 2", "Final Score: 5", "Final Score: 5", "I cannot tell."]  # fmt: skip
EXPLAINED: tuple[Explained, ...] = ()
FILES = ("gpt_eval.py", "utils.py")


def list_records(name: str) -> Iterator[dict[str, Any]]:
    for category, subtasks in SUBTASKS.items():
        for number in range(ITEMS):
            index = f"{category}_reasoning_{number}"
            record: dict[str, Any] = {
                "index": index,
                "category": f"{category}_reasoning",
                "subtask": subtasks[number % 2],
                "instruction": f"What comes of {index}?",
                "image": f"images/{index}.png",
                "reasoning_img": "yes" if number % 3 == 0 else None,
            }
            by_image = category in ("spatial", "logical") and number % 2 == 0
            if by_image:
                record["reference_img"] = f"images/{index}_right.png"
            else:
                record["reference_txt" if category == "logical" else "reference"] = f"The right one of {index}."
            if name == "full":
                if number == 1 and category != "logical":
                    record["consistency_free"] = True
                if number == 2:
                    record["reasoning_wo_ins"] = True
            yield record


def prepare(work: Path) -> dict[str, Any]:
    data: dict[str, str] = {}
    for name in DATA:
        folder, made = work / name, work / "outputs" / name
        records = list(list_records(name))
        for record in records:
            index = record["index"]
            files = {folder / record["image"]: f"source {index}",
                     made / "images" / record["category"] / f"{index}.png": f"made {name} {index}"}  # fmt: skip
            if "reference_img" in record:
                files[folder / record["reference_img"]] = f"right {index}"
            for place, (path, seed) in enumerate(files.items()):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(painted(seed, size=(1000, 64) if place == 1 and index.endswith("3") else (32, 32)))
        data[name] = str(folder / "risebench.json")
        (folder / "risebench.json").write_text(json.dumps(records))
    return {"data": data, "outputs": str(work / "outputs"), "answers": ANSWERS}


def make_weft_facts(work: Path, prompts: str, replies: Sequence[str]) -> Mapping[str, Any]:
    judge = Judge(ANSWERS)
    cells: dict[str, Any] = {}
    folder = work / "released"
    for name in DATA:
        run = evaluate("risebench", folder / name, folder / "outputs" / name, work, judge, prompts=prompts)
        for column, value in list_official_cells(run, ": accuracy").items():
            cells[f"{name} {column} Accuracy"] = None if value is None else value / 100
        for column, value in list_official_cells(run, ": scores").items():
            words = {"Reasoning": "Overall_Reasoning", "Consistency": "Overall_ApprConsistency",
                     "Plausibility": "Overall_VisualPlausibility_total"}  # fmt: skip
            cells[f"{name} {words.get(column, column)} Score-Percentage"] = value
        for subtask, found in list_breakdown(run, "by sub-task").items():
            category, _, words = subtask.partition(": ")
            short = {"temporal": "Temp", "causal": "Causal", "spatial": "Spa", "logical": "Logic"}[category]
            accuracy = found["Accuracy"]
            cells[f"{name} {short}-{words} Accuracy"] = None if accuracy is None else accuracy / 100
            cells[f"{name} {short}-{words} Score-Percentage"] = found["Score"]
    return {"replies": [read_numbers(text) for text in replies], "requests": judge.asked, "cells": cells}


def stand_in(checkout: Path) -> None:
    formatted = [constant for key, constant in PROMPTS.items() if key not in UNFORMATTED]
    write_constants(checkout / "utils.py", formatted, "{instruct} {{x}} ")
    write_constants(checkout / "utils.py", [PROMPTS[key] for key in UNFORMATTED], "{x}")


def is_printed(name: str) -> bool:
    """Whether weft prints the number, too: dimensions are over all edits alone."""
    words = name.split()[1]
    return "_" not in words or words.startswith("Overall_")


COMPANION = Companion("risebench", prepare, make_weft_facts, stand_in, FILES, is_printed)


def released(checkout: Path, python: Path, work: Path) -> Facts:
    return recorded_facts(COMPANION, checkout, python, work)


def weft_facts(work: Path) -> Facts:
    return own_facts(COMPANION, work)
