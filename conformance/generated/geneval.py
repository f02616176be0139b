"""GenEval: its six rules over random detections, thresholds at their edges, and the released summary."""

import random
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from conformance.companions import Companion, own_facts, recorded_facts
from conformance.recording import Explained, Facts
from weft.benchmarks.base import RunResults
from weft.benchmarks.geneval.data import SHORT, TAGS
from weft.benchmarks.geneval.rules import RELATIONS, ImageRules, ObjectRule, find_faults
from weft.benchmarks.geneval.tables import build_tables
from weft.judges.detections import COLORS, Detection
from weft.types import Verdict

REPOSITORY = "djghosh13/geneval"
CASES, PROMPTS = 10_000, 40
CLASSES = ("bird", "chair", "computer mouse")
EDGES = (0.3, 0.30000001, 0.31, 0.9, 0.89999998, 0.90000004, 0.95, 0.5, 1.0, 0.0)  # confidences
SIDES = (0.0, 10.0, 20.0, 20.5, 21.0, 30.0, 31.0, 45.0, 60.0)
EXPLAINED: tuple[Explained, ...] = ()
FILES = ("evaluation/evaluate_images.py", "evaluation/summary_scores.py", "evaluation/object_names.txt")


@cache
def list_cases() -> list[dict[str, Any]]:
    chance = random.Random("geneval")
    return [make_case(chance) for _ in range(CASES)]


def make_case(chance: random.Random) -> dict[str, Any]:
    tag = chance.choice(TAGS)
    include: list[dict[str, Any]] = []
    for place in range(chance.randint(1, 3)):
        rule: dict[str, Any] = {"class": chance.choice(CLASSES), "count": chance.choice((1, 1, 2, 3))}
        if chance.random() < 0.3:
            rule["color"] = chance.choice(COLORS[:2])
        if place and chance.random() < 0.6:
            rule["position"] = [chance.choice([name for pair in RELATIONS for name in pair]), chance.randrange(place)]
        include.append(rule)
    metadata: dict[str, Any] = {"tag": tag, "include": include, "prompt": "x"}
    if chance.random() < 0.3:
        metadata["exclude"] = [{"class": chance.choice(CLASSES), "count": chance.randint(1, 4)}]
    found: dict[str, list[Any]] = {}
    for name in CLASSES:
        count = chance.choice((0, 1, 1, 2, 3, 20 if chance.random() < 0.1 else 4))
        # no two alike: which of equal confidences comes first is decided by the sort of the scripts' numpy
        confidences = chance.sample(EDGES, min(count, len(EDGES))) + [0.4 + at / 100 for at in range(count - 10)]
        if confidences:
            found[name] = [[make_box(chance), number, chance.choice(COLORS[:2])] for number in confidences]
    return {"metadata": metadata, "found": found}


def make_box(chance: random.Random) -> list[float]:
    left, right = sorted(chance.choices(SIDES, k=2))
    top, bottom = sorted(chance.choices(SIDES, k=2))
    return [left, top, right, bottom]


def decide(case: Mapping[str, Any]) -> bool:
    metadata = case["metadata"]
    include = tuple(read_rule(rule) for rule in metadata["include"])
    exclude = tuple(read_rule(rule) for rule in metadata.get("exclude", ()))
    detections: list[Detection] = []
    for name, found in case["found"].items():
        detections += [Detection(name, tuple(box), confidence, color) for box, confidence, color in found]
    return not find_faults(ImageRules(metadata["tag"], include, exclude), detections)


def read_rule(rule: Mapping[str, Any]) -> ObjectRule:
    relation, target = rule.get("position", ("", 0))
    return ObjectRule(rule["class"], rule["count"], rule.get("color", ""), relation, target)


def list_images() -> list[dict[str, Any]]:
    """Images of some prompts, right or wrong, as the released results have them."""
    chance = random.Random("geneval summary")
    rows: list[dict[str, Any]] = []
    for number in range(PROMPTS):
        for _ in range(chance.choice((4, 4, 3))):
            tag = TAGS[number % len(TAGS)]
            rows.append({"tag": tag, "metadata": f"prompt {number}", "correct": chance.random() < 0.6})
    return rows


def prepare(work: Path) -> dict[str, Any]:
    work.mkdir(parents=True, exist_ok=True)
    return {"cases": list_cases(), "summary": list_images()}


def make_weft_facts(work: Path, prompts: str, replies: Sequence[str]) -> Mapping[str, Any]:
    return {"replies": [decide(case) for case in list_cases()], "summary": summarise()}


def summarise() -> list[str]:
    """The lines that the released summary prints, from weft's tables."""
    verdicts: list[Verdict] = []
    groups: dict[str, dict[str, str]] = {}
    for row in list_images():
        sample = row["metadata"]
        turn = sum(verdict.sample == sample for verdict in verdicts)
        groups[sample] = {"tag": row["tag"]}
        verdicts.append(Verdict(sample, turn, "correct", float(row["correct"])))
    by_task, whole = build_tables([RunResults("mine", groups, verdicts)], SHORT)
    tasks, cells = by_task.run_rows[0].cells, whole.run_rows[0].cells
    lines = ["Summary", f"Total images: {len(verdicts)}", f"Total prompts: {len(groups)}"]
    lines += [f"% correct images: {cells['Images'].value:.2%}", f"% correct prompts: {cells['Prompts'].value:.2%}"]
    lines += ["", "Task breakdown"]
    for tag, cell in zip(TAGS, list(tasks.values())[: len(TAGS)], strict=True):
        right = sum(verdict.value == 1 for verdict in verdicts if groups[verdict.sample]["tag"] == tag)
        lines.append(f"{tag:<16} = {cell.value:.2%} ({right} / {cell.expected})")
    return [*lines, "", f"Overall score (avg. over tasks): {cells['Overall'].value:.5f}"]


def stand_in(checkout: Path) -> None:
    """A program decides: there is no prompt."""
    checkout.mkdir(parents=True, exist_ok=True)


COMPANION = Companion("geneval", prepare, make_weft_facts, stand_in, FILES)


def released(checkout: Path, python: Path, work: Path) -> Facts:
    return recorded_facts(COMPANION, checkout, python, work)


def weft_facts(work: Path) -> Facts:
    return own_facts(COMPANION, work)
