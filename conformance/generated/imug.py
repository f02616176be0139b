"""IMUG-Bench: dialogues from a seed with references, dynamic keys and grids; the released client, the five released
scoring scripts, the released reader of grids and scorer of choices."""

import json
import random
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw

import weft
from conformance.generated.imug_prompts import reword, write_stand_in
from conformance.generated.stand_in import evaluate, first_question, sometimes
from conformance.images import digest_of, painted
from conformance.imug import (
    ODD,
    SPOILS,
    WORDS,
    Sides,
    as_rows,
    invented,
    judge,
    random_choices,
    read_released_grids,
    released_choice_scorer,
    scores_of,
    spoils,
)
from conformance.printed import official_cells
from conformance.recording import Explained, Facts, keyed, requests_of, rows_of
from conformance.server import Asked, Server
from conformance.weave import settings
from weft.benchmarks.imug import mcq
from weft.benchmarks.imug.data import read_reference_links
from weft.benchmarks.imug.grid_official import read_grid_as_released
from weft.benchmarks.imug.official_questions import read_released_rubrics
from weft.benchmarks.imug.tables import METRIC_COLUMNS, build_cell

REPOSITORY = "ccccEsion/IMUG-Bench"
KEYS = (
    ("Apparel", "one", "1"),
    ("Botany", "natural_growth", "2"),
    ("Chemistry", "one", "3"),
    ("Cooking", "one", "4"),
    ("Cooking", "two", "5"),
    ("DIY", "one", "6"),
    ("Geometric_Coloring", "cubes_coloring", "7"),
    ("Geometric_Coloring", "cubes_completion", "8"),
)
CHOICES, GRIDS = 2_000, 6
MODALITIES = {"text": "Und.", "image": "Gen."}
CELLS = {"r": "red", "g": "green", "1": "white"}
TARGET = re.compile(r"Target (\d+) is Turn \d+ of (\S+):")
EXPLAINED = (
    Explained("imug-grids-without-a-judge", "*, requests about grids", released="asked", weft="nothing"),
    Explained("imug-no-key-without-an-answer", "*, requests for keys without an answer", released="asked", weft="nothing"),
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    name: str
    answer: Callable[[Asked], str] = judge
    spoil: Any = None
    requests: bool = False


def released(checkout: Path, python: Path, work: Path) -> Facts:
    scripts = work / "reworded"
    shutil.copytree(checkout, scripts, ignore=shutil.ignore_patterns(".git", "assets", "data"))
    reword(scripts)
    stand_in = write_stand_in(work / "stand-in")
    assert read_released_rubrics(scripts).texts == read_released_rubrics(stand_in).texts
    data, records = write(work / "data")
    facts: Facts = {}
    with serve() as server:
        sides = Sides(scripts, data, work, python, server, records)
        sides.made()
        facts["model, requests"] = requests_of(server.asked, dialogues=True)
        for case in cases():
            server.answers["judge"] = case.answer
            outputs = make(work, records, case)
            server.asked.clear()
            found = sides.released(outputs)
            facts |= facts_of(case, server, outputs, found["scores"], found["cells"])
    score = released_choice_scorer(checkout)
    facts["choices"] = rows_of([score(key, said) for key, said in random_choices(CHOICES)])
    facts["grids"] = read_released_grids(checkout, python, write_grids(work / "grids"))
    return facts


def weft_facts(work: Path) -> Facts:
    data, records = write(work / "data")
    prompts = f"official:{write_stand_in(work / 'stand-in')}"
    facts: Facts = {}
    with serve() as server:
        model = f"infer/{server.url}/weft/model/infer"
        evaluate("imug", data, work / "homes" / "model", model, "constant/3", prompts=prompts, official=True)
        facts["model, requests"] = requests_of(server.asked, dialogues=True)
        for case in cases():
            server.answers["judge"] = case.answer
            outputs = make(work, records, case)
            server.asked.clear()
            judged = f"openai-chat/m@{server.url}/weft/judge/v1"
            home = work / "homes" / case.name
            run = evaluate("imug", data, home, f"folder/{outputs / 'm'}", judged, prompts=prompts, official=True)
            facts |= facts_of(case, server, outputs, scores_of(run), cells_of(run))
    facts["choices"] = rows_of([mcq.score_as_released(said, key) for key, said in random_choices(CHOICES)])
    grids = sorted(write_grids(work / "grids").iterdir())
    facts["grids"] = {path.name: as_rows(read_grid_as_released(Image.open(path))) for path in grids}
    return facts


def serve() -> Server:
    answers = {"judge": judge, "model": lambda asked: asked.seed if asked.kind == "image" else word(asked.seed)}
    return Server(answers, draw=painted, digest=digest_of)


def word(seed: str) -> str:
    return random.Random(seed).choice([*"ABCDE" * 3, *(said for said in WORDS if said.strip())])


def facts_of(case: Case, server: Server, outputs: Path, scores: dict[Any, Any], cells: dict[Any, Any]) -> Facts:
    facts: Facts = {f"{case.name}, scores": keyed(scores), f"{case.name}, cells": keyed(cells)}
    facts[f"{case.name}, settings"] = {settings(one): "sent" for one in server.asked}
    heaps: dict[str, list[Asked]] = {"": [], " about grids": [], " for keys without an answer": []}
    for one in server.asked:
        target = TARGET.search(one.texts)
        grid = "of Geometric_Coloring/cubes_" in one.texts and target is None
        lacks_answer = target is not None and not answer_of(outputs, target.group(2), int(target.group(1)))
        heaps[" about grids" if grid else " for keys without an answer" if lacks_answer else ""].append(one)
    if case.requests:
        facts |= {f"{case.name}, requests{about}": requests_of(some) for about, some in heaps.items()}
    return facts


def answer_of(outputs: Path, key: str, turn: int) -> str:
    """What the model said; nothing where that is an error."""
    domain, subdomain, name = key.split("/")
    file = outputs / "m" / domain / subdomain / f"question_{name}" / "result.json"
    tasks = json.loads(file.read_text())["tasks"] if file.exists() else []
    said = next((task["model_response"] for task in tasks if task["turn"] == turn), "")
    return "" if said.startswith("ERROR:") else said.strip()


def cases() -> Iterator[Case]:
    for name, spoil in SPOILS.items():
        yield Case(name, spoil=spoil, requests=True)
    going_on = [(points, key) for name, (points, key, _) in ODD.items() if name != "no JSON"]
    yield Case("odd replies", by_kind(going_on, 1))
    yield Case(
        "odd replies, a fifth of the pictures missing", by_kind(going_on, 2), SPOILS["a fifth of the pictures missing"]
    )
    yield Case("unreadable replies", by_kind([ODD["no JSON"][:2], ("", ""), ("[1]", '{"determined_answer": null}')], 3))


def by_kind(replies: list[tuple[str, str]], every: int) -> Callable[[Asked], str]:
    """The first of two is said about points, the second about a key."""
    about = [sometimes(judge, [said[at] for said in replies], every) for at in (0, 1)]
    return lambda asked: about["determined_answer" in asked.texts](first_question(asked))


def make(work: Path, records: list[dict[str, Any]], case: Case) -> Path:
    """Outputs as the released client leaves them behind."""
    outputs = work / "spoilt"
    shutil.rmtree(outputs, ignore_errors=True)
    for record in records:
        key = (record["domain"], record["subdomain"], record["sample_id"])
        folder = outputs / "m" / key[0] / key[1] / f"question_{key[2]}"
        folder.mkdir(parents=True)
        tasks: list[dict[str, Any]] = []
        for task in record["tasks"]:
            seed, said = f"{key} {task['turn']}", f"turn_{task['turn']}_output.png"
            if task["modality"] == "text":
                said = word(seed)
            elif key[1].startswith("cubes_"):
                draw_grid(random.Random(seed)).save(folder / said)
            else:
                (folder / said).write_bytes(painted(seed))
            tasks.append({**task, "model_response": said})
        (folder / "result.json").write_text(json.dumps({**record, "tasks": tasks}))
    if case.spoil is not None:
        case.spoil(records, outputs, random.Random(7))
    return outputs


def write(folder: Path) -> tuple[Path, list[dict[str, Any]]]:
    """Benchmark, references, dynamic references and grids."""
    chance = random.Random("imug")
    (folder / "images").mkdir(parents=True)
    (folder / "grid_gt").mkdir()
    images: list[str] = []
    dynamic: list[str] = []
    for domain, subdomain, name in KEYS:
        key = {"domain": domain, "subdomain": subdomain, "sample_id": name}
        cubes = subdomain.startswith("cubes_")
        links = [{"turn_idx": 2, "refs": [{"ref_turn": 1, "ref_type": "input"}]}]
        if chance.random() < 0.7 or cubes:
            refs = [{"ref_turn": 1, "ref_type": "input"}, {"ref_turn": 2, "ref_type": "output"}]
            links.append({"turn_idx": 4, "refs": refs[chance.randrange(2) :]})
        images.append(json.dumps({**key, "reference_links": links}))
        if not cubes:
            asked = chance.sample((3, 5), chance.randint(1, 2))
            dynamic += [
                json.dumps({**key, "turn_idx": at, "ref_turn_idxs": [at - 1, 1][: chance.randint(1, 2)]})
                for at in asked
            ]
        else:
            grids = [{"turn": turn, "grid": random_grid(chance)} for turn in (2, 4)]
            file = folder / "grid_gt" / f"{domain}__{subdomain}__{name}.jsonl"
            file.write_text("".join(json.dumps(one) + "\n" for one in grids))
    (folder / "image_references.jsonl").write_text("\n".join(images) + "\n")
    (folder / "dynamic_references.jsonl").write_text("\n".join(dynamic) + "\n")
    links = read_reference_links(folder)
    records = [invented(key, links, folder) for key in KEYS]
    (folder / "benchmark.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return folder, records


def random_grid(chance: random.Random) -> list[list[str]]:
    return [[chance.choice("01rg") for _ in range(3)] for _ in range(3)]


def draw_grid(chance: random.Random, side: int = 60) -> Image.Image:
    picture = Image.new("RGB", (3 * side + 40, 3 * side + 40), "white")
    draw = ImageDraw.Draw(picture)
    for row, cells in enumerate(random_grid(chance)):
        for column, cell in enumerate(cells):
            if cell != "0":
                x, y = 20 + column * side, 20 + row * side
                draw.rectangle((x, y, x + side, y + side), fill=CELLS[cell], outline="black", width=3)
    return picture


def write_grids(folder: Path) -> Path:
    """Grids spoilt in some ways, and pictures that are none."""
    folder.mkdir(parents=True)
    for at in range(GRIDS):
        for name, spoilt in spoils(draw_grid(random.Random(at), 40 + 10 * at)).items():
            spoilt.save(folder / f"{at} {name}.png")
        (folder / f"{at} no grid.png").write_bytes(painted(f"no grid {at}", size=(200, 160)))
    return folder


def cells_of(run: weft.Run) -> dict[tuple[str, str], float]:
    """What is printed, under the names that the released summary has for it; over all, each kind of turn is nowhere
    printed, and computed as printed cells are."""
    cells: dict[tuple[str, str], float] = {}
    for (title, part, column), value in official_cells(run, 2).items():
        named, _, kind = column.rpartition(" ")
        if title == "by turn" and part in MODALITIES:
            if kind in ("turn", "Avg"):  # the slope is weft's own; the paper's average over all turns is in no script
                continue
            place = (column.removeprefix("T"), MODALITIES[part])
        elif title in ("by class", "by turn", "by domain"):
            place = (part.removeprefix("turn "), column)
        elif title == "by class and modality":
            place = (named or "overall", kind)
        else:
            continue
        assert cells.setdefault(place, value) == value, (title, place)
    overall = {name: build_cell(of_metric(run, metric), official=True) for name, metric in METRIC_COLUMNS.items()}
    return cells | {("overall", name): round(cell.value, 2) for name, cell in overall.items() if cell.value is not None}


def of_metric(run: weft.Run, metric: str) -> Iterator[weft.types.Verdict]:
    return (one for one in run.verdicts if one.metric == metric)
