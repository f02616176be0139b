"""GEdit-Bench: the released reading of replies, its requests, and its statistics by task."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from conformance.companions import Companion, Judge, evaluate, list_breakdown, own_facts, recorded_facts
from conformance.images import painted
from conformance.recording import Explained, Facts
from weft.benchmarks.gedit.data import TASKS
from weft.benchmarks.gedit.official import PROMPTS, PROMPTS_FILE
from weft.benchmarks.gedit.official_reading import read_score

REPOSITORY = "stepfun-ai/Step1X-Edit"
ITEMS = 4  # of each task and language
SIZES = ((32, 32), (64, 48), (48, 96))
ANSWERS = [json.dumps({"score": [first, second], "reasoning": "so"}) for first in (2, 5, 7, 10) for second in (3, 6, 9)]
EXPLAINED: tuple[Explained, ...] = ()
FILES = (
    PROMPTS_FILE,
    "GEdit-Bench/calculate_statistics.py",
    *(f"GEdit-Bench/viescore/{name}" for name in ("__init__.py", "utils.py", "mllm_tools/openai.py")),
)


def list_items() -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for task in TASKS:
        for language in ("en", "cn"):
            for number in range(ITEMS):
                key = f"{task}-{language}-{number}"
                item = {"task": task, "language": language, "key": key, "intersection": number % 2 == 0}
                items.append(item)
    return items


def prepare(work: Path) -> dict[str, Any]:
    """Write gedit.jsonl with sources, and edited images of other sizes, of which some are missing."""
    records: list[dict[str, Any]] = []
    items: list[dict[str, Any]] = []
    for place, item in enumerate(list_items()):
        key = item["key"]
        source = work / "data" / "images" / f"{key}.png"
        made = work / "outputs" / "fullset" / item["task"] / item["language"] / f"{key}.png"
        for path, seed, size in ((source, f"source {key}", SIZES[place % 3]), (made, f"made {key}", SIZES[place % 2])):
            path.parent.mkdir(parents=True, exist_ok=True)
            if path == source or place % 7:
                path.write_bytes(painted(seed, size=size))
        instruction = f"Change {key}."
        records.append({
            "task_type": item["task"], "key": key, "instruction": instruction,
            "instruction_language": item["language"], "input_image": f"images/{key}.png",
            "Intersection_exist": item["intersection"],
        })  # fmt: skip
        items.append({
            "task": item["task"], "source": str(source), "made": str(made), "instruction": instruction,
            "instruction_language": item["language"], "intersection_exist": item["intersection"],
        })  # fmt: skip
    (work / "data" / "gedit.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return {"items": items, "answers": ANSWERS}


def make_weft_facts(work: Path, prompts: str, replies: Sequence[str]) -> Mapping[str, Any]:
    judge = Judge(ANSWERS)
    folder = work / "released"
    run = evaluate("gedit", folder / "data", folder / "outputs", work, judge, prompts=prompts)
    cells: dict[str, Any] = {}
    for language in ("en", "cn"):
        by_task = list_breakdown(run, f"by task, {language.upper()}")
        table = next(t for t in run.tables() if f"{language.upper()}: semantics" in t.title)
        official = next(row for row in table.run_rows if row.arithmetic in ("", "official"))
        for name, cell in official.cells.items():
            cells[f"{language} {name} mean"] = cell.value
        for task, of_task in by_task.items():
            cells |= {f"{language} {name} {task}": value for name, value in of_task.items()}
    readings = [read_score(text) for text in replies]
    return {
        "replies": ["again" if reading is None else reading for reading in readings],
        "requests": judge.asked,
        "cells": cells,
    }


def stand_in(checkout: Path) -> None:
    path = checkout / PROMPTS_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{name} = {f'{name}: <instruction>'!r}\n" for name in PROMPTS.values()))


def is_printed(name: str) -> bool:
    """Whether weft prints the number, too: of the intersection the means alone."""
    return "intersection" not in name or "mean" in name


COMPANION = Companion("gedit", prepare, make_weft_facts, stand_in, FILES, is_printed)


def released(checkout: Path, python: Path, work: Path) -> Facts:
    return recorded_facts(COMPANION, checkout, python, work)


def weft_facts(work: Path) -> Facts:
    return own_facts(COMPANION, work)
