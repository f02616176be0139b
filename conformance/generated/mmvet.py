"""MM-Vet: the released reading of replies, what the evaluator asks, and its scores by capability."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from conformance.companions import Companion, Judge, evaluate, list_official_cells, own_facts, recorded_facts
from conformance.images import painted
from conformance.recording import Explained, Facts
from weft.benchmarks.mmvet.data import CAPABILITIES
from weft.benchmarks.mmvet.official import MMVetOfficial
from weft.benchmarks.mmvet.official_reading import is_nan, read_number
from weft.benchmarks.mmvet.tables import COLUMNS

REPOSITORY = "yuweihao/MM-Vet"
ITEMS = 60
ANSWERS = ["0.0", "0.1", "0.4 because", "0.5\n", "0.9", "1.0", "1"]
ELEMENTS = ("5", "-1<AND>-5", "a pen<OR>a pencil", "one<AND>two<OR>three", "The names | mislead.")
FILE = MMVetOfficial.prompts_file
EXPLAINED: tuple[Explained, ...] = ()
FILES = (FILE,)


def prepare(work: Path) -> dict[str, Any]:
    names = tuple(CAPABILITIES)
    records: dict[str, Any] = {}
    answers: dict[str, str] = {}
    (work / "data" / "images").mkdir(parents=True, exist_ok=True)
    (work / "outputs").mkdir(parents=True, exist_ok=True)
    for number in range(ITEMS):
        key = f"v1_{number}"
        (work / "data" / "images" / f"{key}.png").write_bytes(painted(key))
        capability = sorted({names[number % 6], names[number // 6 % 6]})
        records[key] = {"imagename": f"{key}.png", "question": f"What is {number}?", "capability": capability,
                        "answer": ELEMENTS[number % len(ELEMENTS)]}  # fmt: skip
        answers[key] = f"It is {number}.\nSo | it seems "
    (work / "data" / "mm-vet.json").write_text(json.dumps(records))
    predictions = work / "outputs" / "mine.json"
    predictions.write_text(json.dumps(answers))
    return {"data": str(work / "data"), "predictions": str(predictions), "answers": ANSWERS}


def make_weft_facts(work: Path, prompts: str, replies: Sequence[str]) -> Mapping[str, Any]:
    folder = work / "released"
    judge = Judge(ANSWERS)
    run = evaluate("mmvet", folder / "data", folder / "outputs", work, judge, prompts=prompts)
    found = list_official_cells(run, "by capability")
    cells = {name: found[column] for column, name in (*COLUMNS.items(), ("Total", "total"))}
    return {"replies": list(map(read, replies)), "requests": judge.asked, "cells": cells}


def read(text: str) -> Any:
    number = read_number(text)
    if number is None:
        return "again"
    return "nan" if is_nan(number) else number


def stand_in(checkout: Path) -> None:
    path = checkout / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    before = path.read_text() if path.is_file() else ""
    path.write_text(f"{before}\n\nprompt = {'How right is it?'!r}\n")


COMPANION = Companion("mmvet", prepare, make_weft_facts, stand_in, FILES)


def released(checkout: Path, python: Path, work: Path) -> Facts:
    return recorded_facts(COMPANION, checkout, python, work)


def weft_facts(work: Path) -> Facts:
    return own_facts(COMPANION, work)
