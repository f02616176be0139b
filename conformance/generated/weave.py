"""WEAVE: dialogues from a seed; the three released loops, the released scorer and its summary."""

import json
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import weft
from conformance.generated.stand_in import constants, evaluate, options_of, sometimes
from conformance.images import digest_of, painted
from conformance.printed import official_cells
from conformance.recording import Explained, Facts, keyed, requests_of
from conformance.server import Asked, Server
from conformance.weave import (
    LOOPS,
    TURNS,
    Scoring,
    judge,
    missing,
    model,
    outputs_of,
    place,
    released_cells,
    released_scores,
    run_loop,
    settings,
    that_run,
)
from toy import toy_records
from weft.benchmarks.weave.domains import CLASS_OF, CLASSES
from weft.benchmarks.weave.tables import find_skipped_samples, points_out_of_ten

REPOSITORY = "weichow23/weave"
DIALOGUES = 5  # besides those of the tests
PROMPTS = constants(
    prompt_keypoint_checklist='Count the points that <image> meets, as {"score": 0-10}. The points:\n',
    prompt_visual_consistency="How much of its sources is left in <image>? The points:\n",
    prompt_image_quality="How well is <image> made?",
    prompt_txt_acc='Right is {standard_answer}, said was {generated_answer}: {{"score": 0|5|10}}',
)
ODD = [
    '{"score": 7}',
    '{"score": 6.5, "reasoning": "x"}',
    '{"score": 7, "reasoning": "x"}',
    '{"score": 11, "reasoning": "x"}',
    '{"score": -2, "reasoning": "x"}',
    '```json\n{"score": 5, "reasoning": "x"}\n```',
    '{"score": 5, "reasoning": ["x"]}',
    '{"score": 5, "reasoning": "x", "confidence": 1}',
    '{"reasoning": "x"}',
]
UNREADABLE = ["five out of ten", '{"score": 5,', "[5]"]
SAID_BY_ALL = {"words around it": 'Here: {"score": 5, "reasoning": "x"}', "a text": '{"score": "5", "reasoning": "x"}'}
EXPLAINED = (
    Explained("weave-record-ends", "unreadable replies, requests", released="nothing", weft="asked"),
    Explained("weave-words-around-json", "words around it, *", released="nothing"),
    Explained("weave-score-as-text", "a text, *", released="nothing"),
    Explained("weave-score-as-text", "a text, scores", released="5", weft=5),
)

WITH_REQUESTS = ("all there", "texts missing", "a third missing", "a fifth broken", "unreadable replies")


@dataclass(frozen=True)
class Case:
    name: str
    answer: Callable[[Asked], str] = judge
    without: frozenset[str] = frozenset()  # outputs that are not there
    broken: int = 0  # every so many-th output cannot be read
    mode: str = "umm"


def released(checkout: Path, python: Path, work: Path) -> Facts:
    facts: Facts = {}
    scripts = work / "scripts"
    shutil.copytree(checkout, scripts, ignore=shutil.ignore_patterns(".git", "asset", "*.ipynb"))
    (scripts / "eval/prompts.py").write_text(PROMPTS)
    with serve() as server:
        root, records = write(work / "asked")
        for loop, mode in LOOPS:
            some, _ = that_run(root, work, loop, mode)
            run_loop(scripts, some, work, python, server, loop, mode)
            facts[f"model, {loop} loop, {mode}"] = take(server)
        root, records = write(work, judged=True)
        scoring = Scoring(scripts, root, work, python, server)
        for case in cases(records):
            server.answers["judge"] = case.answer
            outputs, results = make(work, records, case), work / "results" / case.name
            scoring.released(outputs, results, f"{server.url}/all/judge/v1/chat/completions", mode=case.mode)
            facts |= facts_of(case, server, released_scores(results), released_cells(results))
    return facts


def weft_facts(work: Path) -> Facts:
    facts: Facts = {}
    with serve() as server:
        root, records = write(work / "asked")
        checkout = work / "stand-in"
        (checkout / "eval").mkdir(parents=True)
        (checkout / "eval/prompts.py").write_text(PROMPTS)
        given = {"prompts": f"official:{checkout}", "official": True}
        for (loop, mode), view in LOOPS.items():
            some, _ = that_run(root, work, loop, mode)
            address = f"openai-chat/m@{server.url}/weft/{label_of(loop)}/v1"
            options = {**given, **options_of(view)}
            evaluate("weave", some / "test", work / "homes" / f"{loop} {mode}", address, "constant/5", **options)
            facts[f"model, {loop} loop, {mode}"] = take(server)
        root, records = write(work, judged=True)
        for case in cases(records):
            server.answers["judge"] = case.answer
            outputs, home = make(work, records, case), work / "homes" / case.name
            judged = f"openai-chat/m@{server.url}/weft/judge/v1"
            options = {**given, **options_of(TURNS[case.mode])}
            run = evaluate("weave", root / "test", home, f"folder/{outputs.parent}", judged, **options)
            facts |= facts_of(case, server, scores_of(run), cells_of(run))
    return facts


def serve() -> Server:
    answers = {"judge": judge, **{label_of(loop): model for loop, _ in LOOPS}}
    return Server(answers, draw=painted, digest=digest_of)


def label_of(loop: str) -> str:
    return "gpt-jpeg" if loop == "gpt" else loop


def take(server: Server) -> dict[str, str]:
    asked = [*server.asked]
    server.asked.clear()
    return requests_of(asked)


def facts_of(case: Case, server: Server, scores: dict[Any, Any], cells: dict[Any, Any]) -> Facts:
    facts: Facts = {f"{case.name}, scores": keyed(scores), f"{case.name}, cells": keyed(cells)}
    facts[f"{case.name}, settings"] = {settings(one): "sent" for one in server.asked}
    requests = take(server)
    return facts | ({f"{case.name}, requests": requests} if case.name in WITH_REQUESTS else {})


def cases(records: list[dict[str, Any]]) -> Iterator[Case]:
    for name, without in missing(records).items():
        yield Case(name, without=frozenset(without))
    third = frozenset(missing(records)["a third missing"])
    yield Case("a fifth broken", broken=5)
    yield Case("image turns", mode="img")
    yield Case("text turns", mode="txt")
    yield Case("odd replies", sometimes(judge, ODD, 2))
    yield Case("odd replies, a third missing", sometimes(judge, ODD, 2, "again"), third)
    yield Case("unreadable replies", sometimes(judge, [*ODD, *UNREADABLE], 6))
    for name, said in SAID_BY_ALL.items():
        yield Case(name, lambda _, said=said: said)


def make(work: Path, records: list[dict[str, Any]], case: Case) -> Path:
    """Outputs under their official names; every so many-th is none that can be read."""
    folder = work / "outputs" / "imgs"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for record in records:
        for name, kind in outputs_of(record):
            if name not in case.without:
                made = painted(f"{record['idx']} {name}") if kind == "image" else f"\nanswer to {name} \n".encode()
                (folder / name).write_bytes(made)
    for path in sorted(folder.iterdir())[:: case.broken] if case.broken else ():
        path.write_bytes(b"\xff no picture, and no text")
    return folder


def write(work: Path, *, judged: bool = False) -> tuple[Path, list[dict[str, Any]]]:
    """`judged`: with pictures that are transparent, or to be turned when they are shown."""
    chance = random.Random("weave")
    records = [*toy_records(), *(dialogue(chance, 100 + at) for at in range(DIALOGUES))]
    for record in records:
        for name in record["images"]:
            path = work / "root" / "test" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            form = chance.choice(("PNG", "palette", "clear", "turned") if judged else ("PNG", "palette"))
            path.write_bytes(painted(name, "JPEG" if path.suffix == ".jpg" and form != "turned" else form))
    (work / "root" / "test" / "test.json").write_text(json.dumps(records))
    return work / "root", records


def dialogue(chance: random.Random, idx: int) -> dict[str, Any]:
    """Turns of both kinds. Outputs have any of the numbers, and turns mention what is there by then."""
    kinds = [chance.choice(("image", "image", "text")) for _ in range(chance.randint(2, 5))]
    numbers = list(range(1, kinds.count("image") + chance.randint(1, 3) + 1))
    chance.shuffle(numbers)
    made, given = numbers[: kinds.count("image")], sorted(numbers[kinds.count("image") :])
    suffix = chance.choice(("png", "png", "jpg"))
    chats: list[dict[str, Any]] = []
    outputs: list[int] = []
    for turn, kind in enumerate(kinds):
        there = [*given, *outputs]
        mentioned = chance.choices(there, k=chance.randint(1, 3)) if idx % 5 or turn else []
        words = "".join(f" and Image #{number}" for number in mentioned)
        chats.append({"role": "user", "type": "text", "content": f"Turn {turn} of {idx}: look at this{words}."})
        points: dict[str, str] | None = None
        content = f"Answer {turn} is {{so}}."
        if kind == "image":
            number = made[len(outputs)]
            content = f"Image #{number}"
            points = {f"GT #{one}": "Is <image> kept?" for one in given if chance.random() < 0.6}
            points |= {f"Image #{one}": "As in <image>." for one in outputs if chance.random() < 0.6}
            points |= {"Text": "Nothing else."} if not points or chance.random() < 0.5 else {}
            outputs.append(number)
        chats.append({"role": "assistant", "type": kind, "content": content, "key_point": points})
    images = [f"imgs/d{idx}_{number}.{suffix}" for number in sorted(numbers)]
    return {"idx": idx, "domain": chance.choice(list(CLASS_OF)), "images": images, "chats": chats}


def scores_of(run: weft.Run) -> dict[Any, float]:
    found = {place(one): points_out_of_ten(one, official=True) for one in run.verdicts}
    skipped = find_skipped_samples(run.verdicts)
    return {where: points for where, points in found.items() if points is not None and where[0] not in skipped}


def cells_of(run: weft.Run) -> dict[tuple[str, str], float]:
    """What is printed, under the names that the released summary has for it."""
    cells: dict[tuple[str, str], float] = {}
    for (title, part, column), value in official_cells(run, 3).items():
        if title.endswith("by domain"):
            cells[part.partition(" (")[0], column] = value
        elif title in CLASSES:
            cells[title, column] = value
        elif column in CLASSES:
            assert cells.setdefault((column, "Avg"), value) == value
        else:
            assert cells.setdefault(("overall", column), value) == value
    return cells
