"""GEdit-Bench, ImgEdit, RISEBench, KRIS-Bench, GenEval and MM-Vet beside their released scripts: random replies through both
readers, what the judge is sent, and the numbers that follow from the same replies.

The scripts' own functions run in a process of their own (`companions_driver.py`), on the files that weft is given, too.
What a judge says is decided by what it is shown alone."""

import json
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image

import weft
from conformance.companions_inputs import Asked, choose_reply, describe_request, digest_blocks, random_replies
from conformance.images import digest_of
from conformance.recording import ASKED, Facts
from conformance.report import Report

DRIVER = Path(__file__).parent / "companions_driver.py"
REPLIES = 10_000
DIGITS = 6  # of a number that is compared
PARTS = ("replies", "requests", "cells")


@dataclass(frozen=True)
class Companion:
    """One benchmark beside its scripts. `prepare` writes data and outputs, and says what the driver is given; `weft`
    makes facts of the same files; `stand_in` writes prompts of ours into a copy of the checkout."""

    system: str
    prepare: Callable[[Path], dict[str, Any]]
    weft_facts: Callable[[Path, str, Sequence[str]], Mapping[str, Any]]  # (work, --prompts, replies)
    stand_in: Callable[[Path], None]
    files: tuple[str, ...]  # of the checkout that are copied
    prints: Callable[[str], bool] = bool  # whether weft prints a number of theirs, too


def released_facts(one: Companion, checkout: Path, python: Path, work: Path) -> Facts:
    """What the scripts make of the inputs."""
    work.mkdir(parents=True, exist_ok=True)
    inputs = {**one.prepare(work), "replies": list_replies(one.system)}
    (work / "inputs.json").write_text(json.dumps(inputs))
    subprocess.run([python, DRIVER, one.system, checkout, work], check=True)
    outputs = json.loads((work / "outputs.json").read_text())
    cells = {name: value for name, value in outputs.get("cells", {}).items() if one.prints(name)}
    return as_facts({**outputs, "cells": cells})


def recorded_facts(one: Companion, checkout: Path, python: Path, work: Path) -> Facts:
    """The same, with prompts of ours in a copy of what is needed of the checkout."""
    copy = work / "reworded"
    for file in one.files:
        (copy / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(checkout / file, copy / file)
    one.stand_in(copy)
    return released_facts(one, copy, python, work / "released")


def own_facts(one: Companion, work: Path, prompts: Path | None = None) -> Facts:
    """What weft makes of the inputs; without a checkout with prompts of ours."""
    work.mkdir(parents=True, exist_ok=True)
    if prompts is None:
        prompts = work / "stand-in"
        one.stand_in(prompts)
    one.prepare(work / "released")
    return as_facts(one.weft_facts(work, f"official:{prompts}", list_replies(one.system)))


def list_replies(system: str) -> list[str]:
    return [] if system == "geneval" else random_replies(system, REPLIES)


def as_facts(outputs: Mapping[str, Any]) -> Facts:
    facts: Facts = {"replies": dict(digest_blocks(map(as_text, outputs["replies"])))}
    facts["requests"] = dict.fromkeys(outputs.get("requests", ()), ASKED)
    cells = {name: as_number(value) for name, value in outputs.get("cells", {}).items()}
    facts["cells"] = {name: value for name, value in cells.items() if value is not None}
    if "summary" in outputs:
        lines = [line for line in outputs["summary"] if line.strip("=")]
        facts["summary"] = {f"{at:02}": line for at, line in enumerate(lines)}
    return {part: found for part, found in facts.items() if found}


def as_text(reading: Any) -> str:
    """A reading, as JSON would have it again."""
    return json.dumps(reading)


def as_number(value: Any) -> Any:
    """A number to so many digits; nan is none."""
    if not isinstance(value, int | float) or value != value:
        return None
    return round(float(value), DIGITS)


def compare(one: Companion, checkout: Path, work: Path, python: Path, report: Report) -> None:
    """The large form: with the authors' own prompts."""
    theirs = released_facts(one, checkout, python, work / "theirs")
    ours = own_facts(one, work / "ours", checkout)
    for part in theirs:
        if report.wants(part):
            report.same(part, one.system, theirs[part], ours.get(part, {}))


class Judge:
    """What weft's judge says, by what it is shown alone."""

    name, version, concurrency = "conformance", "1", 1

    def __init__(self, replies: Sequence[str]) -> None:
        self._replies = replies
        self.asked: list[str] = []

    def __call__(self, messages: Any, want: str, question: Any) -> str:
        text = ""
        images: list[str] = []
        _, parts = messages[0]  # the others object to a reply
        for part in parts:
            if isinstance(part, Image.Image):
                images.append(digest_of(part))
            else:
                text += part
        asked = Asked(text, tuple(images))
        self.asked.append(describe_request(asked))
        return choose_reply(asked, self._replies)


def evaluate(benchmark: str, data: Path, outputs: Path, work: Path, judge: Any, **options: Any) -> weft.Run:
    return weft.evaluate(
        benchmark, data=data, model=f"folder/{outputs}", judge=judge, home=work / "home", preflight=False, **options
    )


def list_official_cells(run: weft.Run, title: str) -> dict[str, Any]:
    """The cells of the run's official row, or its only one, in the first table of this title."""
    table = next(table for table in run.tables() if title in table.title)
    row = next(row for row in table.run_rows if row.arithmetic in ("", "official"))
    return {column: cell.value for column, cell in row.cells.items()}


def list_breakdown(run: weft.Run, title: str) -> dict[str, Mapping[str, Any]]:
    """The official cells of a breakdown, by row."""
    tables = [table for table in run.tables() if title in table.title and not table.title.endswith(", strict")]
    return {row.name: {name: cell.value for name, cell in row.cells.items()} for row in tables[0].rows}


def write_constants(path: Path, names: Iterable[str], text: str) -> None:
    """Add constants of ours to the end of a Python file, after those that it has."""
    path.parent.mkdir(parents=True, exist_ok=True)
    before = path.read_text() if path.is_file() else ""
    path.write_text(before + "\n" + "".join(f"{name} = {f'{name}: {text}'!r}\n" for name in names))
