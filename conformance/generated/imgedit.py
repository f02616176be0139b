"""ImgEdit-Bench: the released reading of replies, the requests of both suites, and means by type."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from conformance.companions import Companion, Judge, evaluate, list_official_cells, own_facts, recorded_facts
from conformance.images import painted
from conformance.recording import Explained, Facts
from weft.benchmarks.imgedit.data import TYPES
from weft.benchmarks.imgedit.official import PROMPTS_FILE, UGE_FILE
from weft.benchmarks.imgedit.official_reading import read_average

REPOSITORY = "PKU-YuanGroup/ImgEdit"
ITEMS = 5  # of each type
HARD = 6
NAMES = ("Compliance", "Seamlessness", "Detail")
ANSWERS = [
    f"Brief reasoning: so\n{NAMES[0]}: {first}\n{NAMES[1]}: {second}\n{NAMES[2]}: {min(first, 3)}\nScore: {second}"
    for first in (1, 3, 4, 5)
    for second in (1, 2, 5)
]
EXPLAINED: tuple[Explained, ...] = ()
FILES = (
    PROMPTS_FILE,
    UGE_FILE,
    *(f"Benchmark/Basic/{name}.py" for name in ("basic_bench", "step1_get_avgscore", "step2_typescore")),
    "Benchmark/UGE/get_average_score.py",
)


def prepare(work: Path) -> dict[str, Any]:
    """Write the items of both suites with their images and edits, of which none is missing: the scripts stop there."""
    origin = work / "data" / "images"
    made = work / "outputs" / "mine"
    basic: dict[str, Any] = {}
    hard: dict[str, Any] = {}
    for place, edit_type in enumerate(TYPES * ITEMS):
        basic[str(place)] = {"id": f"{place}.png", "prompt": f"Edit {place}.", "edit_type": edit_type}
    for place in range(HARD):
        hard[f"hard-{place}"] = {"id": f"hard-{place}.png", "prompt": f"Edit hard {place}."}
    for folder, items in ((made, basic), (made / "UGE", hard)):
        folder.mkdir(parents=True, exist_ok=True)
        origin.mkdir(parents=True, exist_ok=True)
        for key, item in items.items():
            (origin / item["id"]).write_bytes(painted(f"source {key}"))
            (folder / f"{key}.png").write_bytes(painted(f"made {key}", size=(48, 32)))
    for path, items in (("Basic/basic_edit.json", basic), ("UGE/UGE_edit.json", hard)):
        (work / "data" / path).parent.mkdir(parents=True, exist_ok=True)
        (work / "data" / path).write_text(json.dumps(items))
    return {"basic": basic, "uge": hard, "made": str(made), "made_uge": str(made / "UGE"), "origin": str(origin),
            "answers": ANSWERS}  # fmt: skip


def make_weft_facts(work: Path, prompts: str, replies: Sequence[str]) -> Mapping[str, Any]:
    folder = work / "released"
    asked: list[str] = []
    cells: dict[str, Any] = {}
    for suite in ("basic", "uge"):
        judge = Judge(ANSWERS)
        run = evaluate(
            "imgedit",
            folder / "data",
            folder / "outputs" / "mine",
            work,
            judge,
            prompts=prompts,
            where={"suite": suite},
        )
        asked += judge.asked
        found = list_official_cells(run, ": basic" if suite == "basic" else "UGE")
        if suite == "uge":
            cells["uge"] = found["Score"] if "Score" in found else next(iter(found.values()))
        else:
            cells |= {name.lower(): value for name, value in found.items() if name != "Overall"}
    return {"replies": list(map(read, replies)), "requests": asked, "cells": cells}


def read(text: str) -> Any:
    try:
        return read_average(text)
    except ValueError:
        return "stops"


def stand_in(checkout: Path) -> None:
    lines = "\n".join(f"{name}: A number from 1 to 5." for name in NAMES)
    prompts = {edit_type: f"Is it {edit_type}? <edit_prompt>\n{lines}" for edit_type in TYPES}
    (checkout / PROMPTS_FILE).parent.mkdir(parents=True, exist_ok=True)
    (checkout / PROMPTS_FILE).write_text(json.dumps(prompts))
    path = checkout / UGE_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    before = path.read_text() if path.is_file() else ""
    text = f"prompt = {'Is it hard? <edit_prompt>'!r}\n"
    marker = "def image_to_base64"
    path.write_text(before.replace(marker, f"{text}\n{marker}", 1) if before else text)


COMPANION = Companion("imgedit", prepare, make_weft_facts, stand_in, FILES)


def released(checkout: Path, python: Path, work: Path) -> Facts:
    return recorded_facts(COMPANION, checkout, python, work)


def weft_facts(work: Path) -> Facts:
    return own_facts(COMPANION, work)
