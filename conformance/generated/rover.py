"""ROVER-IG: tasks from a seed in the hub's layout, the released scorer and its summary. The public branch of the
repository does not score ROVER-TG, so that there is nothing to record of it."""

import json
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import weft
from conformance.generated.stand_in import constants, evaluate, sometimes
from conformance.images import digest_of, painted
from conformance.printed import official_cells
from conformance.recording import Explained, Facts, keyed, requests_of
from conformance.rover import ODD, Scoring, judge, key_of, released_cells, released_scores, scores_of
from conformance.server import Asked, Server
from conformance.weave import settings
from rover import DIMENSIONS
from weft.benchmarks.rover.ig import rubric
from weft.benchmarks.rover.ig.tables import DIMENSION_TITLES
from weft.benchmarks.rover.prompts import NO_TEXT

REPOSITORY = "cheryyunl/ROVER"
TASKS = 12
TYPES = ("temporal", "spatial", "quantitative", "causal", "imaginative", "math", "logical", "abstract")
SLOTS = {
    rubric.PROCESS: "{prompt} {dimension} {keywords} {target_description} {think_output}",
    rubric.VISUAL: "{prompt} {dimension} {keywords} {target_description}",
    rubric.ALIGNMENT: "{prompt} {think_output}",
    rubric.CONSISTENCY: "{prompt}",
    rubric.QUALITY: "",
}
PROMPTS = constants(
    **{
        constant: f'{name}: {SLOTS[name.split()[0]]} {{{{"{name.split()[0]}_score": X}}}}'
        for name, constant in rubric.CONSTANTS.items()
    }
)
NO_THOUGHT = "(no thought)"
STOPS = ("a fraction as text", "not applicable")  # what the summary does not survive
EXPLAINED: tuple[Explained, ...] = ()


@dataclass(frozen=True)
class Case:
    name: str
    answer: Callable[[Asked], str] = judge
    no_text: int = 0  # every so many-th text is not there, the first included
    no_picture: int = 0
    requests: bool = False


def released(checkout: Path, python: Path, work: Path) -> Facts:
    facts: Facts = {}
    scripts = work / "reworded"
    shutil.copytree(checkout, scripts, ignore=shutil.ignore_patterns(".git"))
    (scripts / "prompts.py").write_text(PROMPTS)
    evaluator, text = (scripts / "evaluator.py").read_text(), rubric.read_official_rubrics(scripts).texts[NO_TEXT]
    (scripts / "evaluator.py").write_text(evaluator.replace(json.dumps(text), json.dumps(NO_THOUGHT)))
    assert rubric.read_official_rubrics(scripts).texts == rubric.read_official_rubrics(stand_in(work)).texts
    tasks = write(work / "cheryyunl" / "ROVER")
    with serve() as server:
        scoring = Scoring("ig", scripts, work, python, server, None)
        for case in cases():
            server.answers["judge"] = case.answer
            outputs, results = make(work, tasks, case), work / "results" / case.name
            scoring.released(outputs, results)
            facts |= facts_of(case, server, released_scores(results), released_cells(results))
    return facts


def weft_facts(work: Path) -> Facts:
    facts: Facts = {}
    tasks, prompts = write(work / "data"), f"official:{stand_in(work)}"
    with serve() as server:
        for case in cases():
            server.answers["judge"] = case.answer
            outputs, judged = make(work, tasks, case), f"openai-chat/m@{server.url}/weft/judge/v1"
            home = work / "homes" / case.name
            run = evaluate("rover-ig", work / "data", home, f"folder/{outputs}", judged, prompts=prompts, official=True)
            facts |= facts_of(case, server, scores_of(run), cells_of(run))
    return facts


def serve() -> Server:
    return Server({"judge": judge}, draw=painted, digest=digest_of)


def stand_in(work: Path) -> Path:
    checkout = work / "stand-in"
    checkout.mkdir(exist_ok=True)
    (checkout / "prompts.py").write_text(PROMPTS)
    (checkout / "evaluator.py").write_text(f"think_output = think_output if think_output else {NO_THOUGHT!r}\n")
    return checkout


def facts_of(case: Case, server: Server, scores: dict[Any, Any], cells: dict[Any, Any]) -> Facts:
    facts: Facts = {f"{case.name}, scores": keyed(scores), f"{case.name}, cells": keyed(cells)}
    facts[f"{case.name}, settings"] = {settings(one): "sent" for one in server.asked}
    facts |= {f"{case.name}, requests": requests_of(server.asked)} if case.requests else {}
    server.asked.clear()
    return facts


def cases() -> Iterator[Case]:
    yield Case("all there", requests=True)
    yield Case("half of the texts missing", no_text=2, requests=True)
    yield Case("a third of the pictures missing", no_picture=3, requests=True)
    going_on = [said for name, said in ODD.items() if name not in STOPS]
    yield Case("odd replies", by_key(going_on, 1))
    yield Case("odd replies, a third missing", by_key(going_on, 2), no_picture=3)
    yield Case("odd replies, no text", by_key(going_on, 1, "again"), no_text=1)
    for name in STOPS:
        yield Case(f"{name}, now and then", by_key([ODD[name]], 9))
    for name in ("another key", "zero"):
        yield Case(f"{name}, always", by_key([ODD[name]], 1))


def by_key(replies: list[str], every: int, salt: str = "") -> Callable[[Asked], str]:
    """Replies under the key that was asked for."""
    answer = sometimes(judge, replies, every, salt)
    return lambda asked: answer(asked).replace("KEY", key_of(asked.messages[0][1][0]))


def make(work: Path, tasks: list[dict[str, Any]], case: Case) -> Path:
    """Outputs under their official names."""
    folder = work / "outputs"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for at, task in enumerate(tasks):
        if case.no_picture and at % case.no_picture == 0:
            continue
        (folder / f"gen_{task['id']}.png").write_bytes(painted(f"made {task['id']}", "JPEG" if at % 4 == 1 else "PNG"))
        if not case.no_text or at % case.no_text:
            (folder / f"gen_{task['id']}.txt").write_text(f"\n thought {task['id']} {{with braces}}\n")
    return folder


def write(folder: Path) -> list[dict[str, Any]]:
    """The table of the hub, with pictures in all forms."""
    import pyarrow
    from pyarrow import parquet

    chance = random.Random("rover")
    tasks: list[dict[str, Any]] = []
    for at in range(TASKS):
        kind = TYPES[at % len(TYPES)]
        task: dict[str, Any] = {
            "id": f"{DIMENSIONS[at % 4 if at < 8 else chance.randrange(4)]}_{kind}_{at}",
            "dimension": at % 4,
            "reasoning_type": {"math": "mathematical"}.get(kind, kind),
            "prompt": f"What becomes of thing {at}?" + " {so}" * (at % 3 == 0),
            "target_description": f"result {at}" if at % 4 else "",
            "keywords": f"idea {at}, law {at}" if at % 5 else "",
        }
        task["dimension"] = DIMENSIONS.index(task["id"].rpartition(f"_{kind}")[0])
        for field, there in (("image", True), ("target_image", at % 3)):
            form = chance.choice(("PNG", "JPEG", "palette", "clear", "turned"))
            task[field] = {"bytes": painted(f"{field} {at}", form), "path": None} if there else None
        tasks.append(task)
    picture = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])
    kinds = {name: picture if name.endswith("image") else None for name in tasks[0]}
    columns = {name: pyarrow.array([task[name] for task in tasks], type=kind) for name, kind in kinds.items()}
    features: dict[str, Any] = {name: {"_type": "Value", "dtype": "string"} for name in tasks[0]}
    features |= {name: {"_type": "Image"} for name in ("image", "target_image")}
    features["dimension"] = {"_type": "ClassLabel", "names": DIMENSIONS}
    about = {"huggingface": json.dumps({"info": {"features": features}})}
    (folder / "ROVER-IG").mkdir(parents=True)
    table = pyarrow.table(columns).replace_schema_metadata(about)
    parquet.write_table(table, folder / "ROVER-IG" / "train-00000-of-00001.parquet")
    lists = "configs:\n- config_name: ROVER-IG\n  data_files:\n  - split: train\n    path: ROVER-IG/*.parquet\n"
    (folder / "README.md").write_text(f"---\n{lists}---\n")
    return tasks


def cells_of(run: weft.Run) -> dict[tuple[str, str], float]:
    """What is printed, under the names that the released summary has for it."""
    cells: dict[tuple[str, str], float] = {}
    for (title, part, column), value in official_cells(run, 2).items():
        dimension = next((name for name, shown in DIMENSION_TITLES.items() if column.startswith(f"{shown} ")), part)
        group = "overall" if part == "micro" else dimension
        name = column.rpartition(" ")[2] if dimension != part else column
        if part != "macro" and name != "Align. held":
            place = (group, {"Align.": "RA"}.get(name, name))
            assert cells.setdefault(place, value) == value, (title, place)
    return cells
