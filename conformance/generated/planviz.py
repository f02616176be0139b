"""PlanViz: lists of tasks from a seed, the released judging script and scorer."""

import json
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image

import weft
from conformance.generated.stand_in import constants, evaluate, first_question, sometimes
from conformance.images import digest_of, painted
from conformance.planviz import (
    JUDGE,
    ODD,
    Scoring,
    as_cells,
    failing,
    judge,
    key_of,
    printed_cells,
    random_records,
    read_as_released,
    read_by_weft,
)
from conformance.recording import Explained, Facts, keyed, requests_of, rows_of
from conformance.server import Asked, Server
from conformance.weave import settings
from weft.benchmarks.official import score_or_none
from weft.benchmarks.planviz.files import POINT_FIELDS, TASK_LISTS
from weft.benchmarks.planviz.official import OFFICIAL

REPOSITORY = "lijunxian111/PlanViz"
TASKS, REPLIES = 4, 2_000
LISTS = [listed for listed in TASK_LISTS if listed.name != "ui_gen_diff"]  # weft prints one number of it and `ui_gen`
PROMPTS = constants(
    TEMPLATE_CORRECTNESS_GENERATION="Is {} drawn? Points: {}\nCorrectness: score",
    TEMPLATE_CORRECTNESS_EDITING="Is {} changed? Points: {}\nCorrectness: score",
    TEMPLATE_VISUAL_GENERATION="Does it hold together?\nVisual Coherence: score",
    TEMPLATE_VISUAL_EDIT="Is the rest left?\nConsistency: score",
    TEMPLATE_EFFICIENCY_GEN="Is there more than {}?\nEfficiency: score",
    TEMPLATE_EFFICIENCY_EDIT="Is there more in it than {}?\nEfficiency: score",
)
EXPLAINED = (
    Explained("planviz-workflow-without-its-page", "*, requests without the page", released="nothing", weft="asked"),
)


@dataclass(frozen=True)
class Case:
    name: str
    answer: Callable[[Asked], str]
    missing: int = 0  # every so many-th picture
    requests: bool = False


def released(checkout: Path, python: Path, work: Path) -> Facts:
    scripts = work / "reworded"
    shutil.copytree(checkout, scripts, ignore=shutil.ignore_patterns(".git", "figs"))
    (scripts / "template.py").write_text(PROMPTS)
    facts: Facts = {}
    lists = write(work / "tabletop")  # where the harness looks for tasks
    with serve() as server:
        scoring = Scoring(scripts, work, python, server, None)
        for case in cases():
            server.answers["judge"] = case.answer
            outputs = make(work, lists, case)
            kept, numbers = scoring.released(outputs)
            shares = {place: share for place, share in kept.items() if share is not None}
            facts |= facts_of(case, server, outputs, shares, as_cells(kept, numbers))
        facts["replies"] = rows_of(read_as_released(scoring, random_records(REPLIES)))
    return facts


def weft_facts(work: Path) -> Facts:
    facts: Facts = {}
    lists, checkout = write(work / "data"), work / "stand-in"
    checkout.mkdir()
    (checkout / "template.py").write_text(PROMPTS)
    prompts = f"official:{checkout}"
    with serve() as server:
        for case in cases():
            server.answers["judge"] = case.answer
            outputs, judged = make(work, lists, case), f"openai-chat/{JUDGE}@{server.url}/weft/judge/v1"
            home = work / "homes" / case.name
            run = evaluate("planviz", work / "data", home, f"folder/{outputs}", judged, prompts=prompts, official=True)
            facts |= facts_of(case, server, outputs, shares_of(run), printed_cells(run))
    facts["replies"] = rows_of([read_by_weft(record) for record in random_records(REPLIES)])
    return facts


def serve() -> Server:
    return Server(draw=painted, digest=digest_of)


def facts_of(case: Case, server: Server, outputs: Path, shares: dict[Any, Any], cells: dict[Any, Any]) -> Facts:
    facts: Facts = {f"{case.name}, shares": keyed(shares), f"{case.name}, cells": keyed(cells)}
    facts[f"{case.name}, settings"] = {settings(one): "sent" for one in server.asked}
    workflows = {digest_of(Image.open(path)) for path in (outputs / "process_plan_edit").glob("*.png")}
    alone = [one for one in server.asked if len(one.pictures) == 1 and one.pictures[0] in workflows]
    if case.requests:
        facts[f"{case.name}, requests"] = requests_of(one for one in server.asked if one not in alone)
        facts[f"{case.name}, requests without the page"] = requests_of(alone)
    server.asked.clear()
    return facts


def cases() -> Iterator[Case]:
    yield Case("all there", judge, requests=True)
    yield Case("a third missing", judge, missing=3, requests=True)
    yield Case("a judge that refuses one in eight", lambda asked: failing(first_question(asked)), requests=True)
    for name, every, missing in (("odd replies", 1, 0), ("odd replies, a third missing", 2, 3)):
        answer = sometimes(judge, list(ODD.values()), every)
        yield Case(name, lambda asked, answer=answer: said_to(asked, answer), missing)
    yield Case("no number, always", lambda asked: ODD["no number"])


def said_to(asked: Asked, answer: Callable[[Asked], str]) -> str:
    question = first_question(asked)
    return answer(question).replace("KEY", key_of(question.texts))


def make(work: Path, lists: dict[str, list[Any]], case: Case) -> Path:
    """Pictures under their official names; one edit of each list is a copy of its source."""
    folder = work / "results" / "mine"
    shutil.rmtree(folder, ignore_errors=True)
    for name, records in lists.items():
        (folder / name).mkdir(parents=True)
        for at, record in enumerate(records):
            if not case.missing or at % case.missing:
                copied = at == 1 and "image_path" in record
                (folder / name / f"{at}.png").write_bytes(painted(f"{name} source {at}" if copied else f"{name} {at}"))
    return folder


def write(root: Path) -> dict[str, list[Any]]:
    chance = random.Random("planviz")
    lists: dict[str, list[Any]] = {}
    for listed in LISTS:
        folder = Path(listed.file).parent
        for at in range(TASKS):
            field = POINT_FIELDS[at % 2]
            points = [f"point {number} of {at}" for number in range(1, chance.randint(2, 7))]
            record: dict[str, Any] = {"name": f"t{at}", "prompt": f"Plan {listed.name} {{{at}}}.", field: points}
            if listed.task == "edit":
                for name, what in (("image_path", "source"), ("ref_image_path", "reference")):
                    record[name] = (folder / what / f"{at}.png").as_posix()
                    path = root / record[name]
                    path = path if at % 3 else path.with_suffix(".jpg")  # which the released script finds, too
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(painted(f"{listed.name} {what} {at}", "PNG" if at % 3 else "JPEG"))
            lists.setdefault(listed.name, []).append(record)
        (root / listed.file).parent.mkdir(parents=True, exist_ok=True)
        (root / listed.file).write_text(json.dumps(lists[listed.name]))
    return lists


def shares_of(run: weft.Run) -> dict[Any, float]:
    shares: dict[Any, float] = {}
    for one in run.verdicts:
        share = score_or_none(OFFICIAL.score(one))
        if share is not None:
            name, _, at = one.sample.rpartition("-t")
            shares[name, int(at), one.metric] = round(share, 9)
    return shares
