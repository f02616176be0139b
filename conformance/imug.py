"""IMUG-Bench: the released client beside `weft run imug --official`, and the five released scoring scripts beside `weft
score`: requests, prompts, scores, every cell of the summary, missing outputs, odd replies of the judge, answers of all
sorts, grid pictures."""

import importlib.util
import json
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageFilter

import weft
from conformance.imug_odd import ODD_FILES, refuse_broken
from conformance.report import Report
from conformance.server import Asked, Server
from conformance.weave import settings, weft_cli
from server import drawn
from weft.benchmarks.imug import mcq
from weft.benchmarks.imug.data import read_reference_links
from weft.benchmarks.imug.grid_official import read_grid_as_released
from weft.benchmarks.imug.tables import METRIC_COLUMNS, build_cell, percent

FILES = ("scripts/run_evaluation.py", "scripts/auxiliary/score_image.py", "data/image_references.jsonl")
NEEDS = ("requests", "openai", "numpy", "opencv-python-headless")
SAMPLES = 120  # dialogues that are made up on the released keys and reference files
ANSWERS = 200_000
WORDS = [
    "A",
    "B",
    "C",
    "D",
    "E",
    "BCD",
    "B, C",
    "a",
    "(A)",
    "A.",
    "The answer is A.",
    "A good one: B",
    "H",
    "",
    " ",
    "\n",
    "AB",
    "A和B",
    "-",
]
ODD = {  # what a judge may say about points, about a key; and why it is read otherwise where it is
    "a point missing": ('{"evaluation_results": [{"point_id": 1, "score": 4}]}', '{"determined_answer": "B"}', ""),
    "points as text": ('{"evaluation_results": [{"point_id": 1, "score": "4"}]}', '{"determined_answer": "b"}', ""),
    "six points": (
        '{"evaluation_results": [{"point_id": 1, "score": 6, "reason": "x"}]}',
        '{"determined_answer": "B, D"}',
        "",
    ),
    "words around it": (
        'So: {"evaluation_results": [{"point_id": 1, "score": 2}]} there',
        'So {"determined_answer": "None"} there',
        "",
    ),
    "a sentence": ('{"evaluation_results": [{"point_id": 1, "score": 0.5}]}', '{"determined_answer": "Answer: B"}', ""),
    "no points": ('{"evaluation_results": []}', '{"reasoning": "x"}', ""),
    "no JSON": (
        "four",
        "B",
        "an empty answer is zero in weft without asking for its key; here the scripts get none, and leave it out",
    ),
}


def compare(checkout: Path, data: Path | None, work: Path, python: Path, report: Report) -> None:
    folder = dataset(checkout, data, work / "data")
    records = [json.loads(line) for line in (folder / "benchmark.jsonl").read_text().splitlines()]
    turns = [task for record in records for task in record["tasks"]]
    report.say(
        f"{len(records)} dialogues, {len(turns)} turns, from "
        f"{data or 'invented tasks on the released keys and references'}"
    )
    with Server() as server:
        server.answers = {"model": model, "judge": judge}
        side = Sides(checkout, folder, work, python, server, records)
        if report.wants("model"):
            side.ask(report)
        if report.wants("judge"):
            for name, spoil in SPOILS.items():
                side.compare(name, spoil, report)
        if report.wants("odd"):
            for name, (points, key, why) in ODD.items():
                server.answers["judge"] = lambda asked, points=points, key=key: (
                    key if "determined_answer" in asked.texts else points
                )
                side.compare(f"a judge that says {name}", None, report, part="odd", why=why, requests=False)
            server.answers["judge"] = judge
        if report.wants("files"):
            server.answers["judge"] = refuse_broken(judge)
            for name, (spoil, why) in ODD_FILES.items():
                side.compare(name, spoil, report, part="files", why=why, requests=False)
    if report.wants("answers"):
        answers(checkout, report)
    if report.wants("grids"):
        grids(checkout, folder, work, python, report)


def dataset(checkout: Path, data: Path | None, folder: Path) -> Path:
    """The one that is given, or tasks made up on the repository's own keys, references and grids: its task file is not
    in every clone."""
    if data is not None:
        return next(one for one in (data, data / "data") if (one / "benchmark.jsonl").is_file()).absolute()
    theirs = checkout / "data"
    if (theirs / "benchmark.jsonl").is_file():
        return theirs
    if (folder / "benchmark.jsonl").exists():
        return folder
    (folder / "images").mkdir(parents=True)
    for name in ("image_references.jsonl", "dynamic_references.jsonl"):
        shutil.copy(theirs / name, folder / name)
    shutil.copytree(theirs / "grid_gt", folder / "grid_gt")
    links = read_reference_links(theirs)
    keys = list(links.images or {})
    cubes = [key for key in keys if key[0] == "Geometric_Coloring" and key[1].startswith("cubes_")]
    dynamic = list(dict.fromkeys(key for key, _ in links.dynamic or {}))
    made = list(
        dict.fromkeys([*cubes, *dynamic[:: max(1, len(dynamic) // 40)], *keys[:: max(1, len(keys) // SAMPLES)]])
    )
    with (folder / "benchmark.jsonl").open("w") as out:
        for key in made:
            out.write(json.dumps(invented(key, links, folder)) + "\n")
    return folder


def invented(key: tuple[str, str, str], links: Any, folder: Path) -> dict[str, Any]:
    """A dialogue whose turns are what the reference files say of it."""
    chance = random.Random(str(key))
    linked, asked = links.images.get(key, {}), {turn: refs for (one, turn), refs in links.dynamic.items() if one == key}
    grids = {turn for one, turn in links.grids if one == key}
    needed = [ref.turn for refs in linked.values() for ref in refs] + [turn for refs in asked.values() for turn in refs]
    inputs = {ref.turn for refs in linked.values() for ref in refs if ref.kind == "input"}
    outputs = {ref.turn for refs in linked.values() for ref in refs if ref.kind == "output"} | set(linked) | grids
    outputs |= {turn for refs in asked.values() for turn in refs if turn not in asked and chance.random() < 0.7}
    tasks: list[dict[str, Any]] = []
    for turn in range(1, max([2, *needed, *linked, *asked, *grids]) + 1):
        given: list[dict[str, str]] = [{"text": f"Turn {turn} of {'/'.join(key)}: make or tell it."}]
        if turn in inputs:
            for at in range(chance.choice((1, 1, 2))):
                name = f"{'__'.join(key)}__img_{turn}_{at}.png"
                (folder / "images" / name).write_bytes(drawn(name))
                given.append({"image": name})
        if turn in outputs and turn not in asked:
            points = [f"Point {number} of turn {turn} is met." for number in range(1, chance.choice((2, 3, 4)) + 1)]
            tasks.append({"turn": turn, "modality": "image", "input": given, "output": {"evaluation_points": points}})
            continue
        given[0]["text"] += "\nOptions:\nA. one\nB. two\nC. three\nD. four\nE. None of the above."
        answer = chance.choice(("<DYNAMIC>", "<DYNAMIC>", "A+<DYNAMIC>")) if turn in asked else chance.choice("ABCDE")
        tasks.append({"turn": turn, "modality": "text", "input": given, "output": {"answer": answer}})
    record = {"sample_id": key[2], "domain": key[0], "subdomain": key[1], "tasks": tasks}
    return {**record, **({"system_prompt": " Letters only, please.\n"} if chance.random() < 0.5 else {})}


def model(asked: Asked) -> str:
    return asked.seed if asked.kind == "image" else WORDS[int(asked.seed[:6], 16) % 15]


def judge(asked: Asked) -> str:
    """By what it is shown alone."""
    chance = random.Random(asked.seed)
    if "determined_answer" in asked.texts:
        return json.dumps({"determined_answer": chance.choice(("A", "B", "C", "D", "E", "BD")), "reasoning": "x"})
    count = asked.texts.count(" is met.")
    results = [{"point_id": number, "score": chance.randrange(6), "reason": "x"} for number in range(1, count + 1)]
    return json.dumps({"evaluation_results": results})


def drop(records: list[dict[str, Any]], outputs: Path, chance: random.Random) -> None:
    """Some pictures are not there."""
    for path in sorted(outputs.rglob("turn_*_output.png")):
        if chance.random() < 0.2:
            path.unlink()


def fail(records: list[dict[str, Any]], outputs: Path, chance: random.Random) -> None:
    """Some turns failed when they were made; some replies were empty; some results are gone."""
    for path in sorted(outputs.rglob("result.json")):
        if chance.random() < 0.1:
            path.unlink()
            continue
        found = json.loads(path.read_text())
        for task in found["tasks"]:
            if task["modality"] == "text" and chance.random() < 0.3:
                said = ("must be a JSON object", "must contain a non-empty text field")
                task["model_response"] = f"ERROR: Server response {chance.choice(said)}"
            elif task["modality"] == "image" and chance.random() < 0.15:
                task["model_response"] = "ERROR: out of memory"
                (path.parent / f"turn_{task['turn']}_output.png").unlink()
        path.write_text(json.dumps(found))


SPOILS: dict[str, Any] = {"all there": None, "a fifth of the pictures missing": drop, "errors and lost results": fail}


class Sides:
    def __init__(
        self, checkout: Path, data: Path, work: Path, python: Path, server: Server, records: list[dict[str, Any]]
    ) -> None:
        self._checkout, self._data, self._work, self._python, self._server = checkout, data, work, python, server
        self._records = records

    def script(self, name: str, *words: object) -> None:
        """A released script. One that leaves something out ends with 1, and has written what it has."""
        done = subprocess.run(
            [self._python, self._checkout / "scripts" / name, *map(str, words)], capture_output=True, text=True
        )
        if done.returncode not in (0, 1) or "Traceback" in done.stderr:
            sys.exit(f"{name} ended with {done.returncode}:\n{done.stdout[-1500:]}\n{done.stderr[-1500:]}")

    def made(self) -> Path:
        """What the released client leaves behind, from our server."""
        outputs = self._work / "outputs"
        if not (outputs / "m").exists():
            data, log = (
                ("--benchmark", self._data / "benchmark.jsonl", "--images", self._data / "images"),
                self._work / "client.log",
            )
            address = f"{self._server.url}/released/model/infer"
            words = (
                "--model",
                "m",
                "--api-url",
                address,
                *data,
                "--output-dir",
                outputs,
                "--log-file",
                log,
                "--workers",
                4,
            )
            self.script("run_evaluation.py", *words)
        return outputs

    def ask(self, report: Report) -> None:
        self._server.asked.clear()
        shutil.rmtree(self._work / "outputs", ignore_errors=True)
        self.made()
        home = self._work / "homes" / "model"
        shutil.rmtree(home, ignore_errors=True)
        weft_cli("run", "imug", "--data", self._data, "--model", f"infer/{self._server.url}/weft/model/infer", "--judge", "constant/3",
                 "--prompts", f"official:{self._checkout}", "--official", "--home", home, "--concurrency", 4)  # fmt: skip
        sides = (
            [(one.kind, one.messages, one.rest) for one in self._server.of(side, "model")]
            for side in ("released", "weft")
        )
        report.bags("model", "requests of the client", *sides)

    def compare(
        self, name: str, spoil: Any, report: Report, part: str = "judge", why: str = "", requests: bool = True
    ) -> None:
        outputs = self._work / "spoilt" / name
        shutil.rmtree(outputs, ignore_errors=True)
        shutil.copytree(self.made(), outputs)
        if spoil is not None:
            spoil(self._records, outputs, random.Random(7))
        self._server.asked.clear()
        summary = self.released(outputs)
        home = self._work / "homes" / name
        shutil.rmtree(home, ignore_errors=True)
        weft_cli("score", outputs / "m", "--benchmark", "imug", "--data", self._data, "--judge",
                 f"openai-chat/m@{self._server.url}/weft/judge/v1", "--prompts", f"official:{self._checkout}", "--official",
                 "--home", home)  # fmt: skip
        theirs, ours = self._server.of("released", "judge"), self._server.of("weft", "judge")
        what = f"{part}, {name}" if part == "judge" else part
        if requests:
            self._prompts(what, outputs, theirs, [one for one in ours if len(one.messages) == 2], report)
            report.bags(what, "what else is sent", {settings(one) for one in theirs}, {settings(one) for one in ours})
        run = weft.Run.from_home(home, "last", weft.benchmarks.base.load_benchmark("imug"))
        label = "" if part == "judge" else f"{name}: "
        report.same(what, f"{label}scores of turns", summary["scores"], scores_of(run), why)
        report.same(what, f"{label}cells of the summary", summary["cells"], cells_of(run), why)

    def _prompts(self, what: str, outputs: Path, theirs: list[Asked], ours: list[Asked], report: Report) -> None:
        """The scripts ask more than weft does: about cubes, which they then read from pixels, and for keys that no
        answer waits for."""
        asked = {one.messages for one in ours}
        cubes = [one for one in theirs if "Geometric_Coloring/cubes_" in one.texts and one.messages not in asked]
        keys = [one for one in theirs if "determined_answer" in one.texts and one.messages not in asked]
        if len(keys) == self._unanswered(outputs):
            report.say(
                f"{what}: the scripts also ask {len(keys)} keys that no answer waits for, and about {len(cubes)} cubes"
            )
            theirs = [one for one in theirs if one not in keys]
        report.bags(what, "prompts with their pictures", [one.messages for one in theirs if one not in cubes], asked)

    def _unanswered(self, outputs: Path) -> int:
        """Dynamic questions without an answer."""
        links = read_reference_links(self._data).dynamic or {}
        count = 0
        for record in self._records:
            key = (record["domain"], record["subdomain"], str(record["sample_id"]))
            file = outputs / "m" / key[0] / key[1] / f"question_{key[2]}" / "result.json"
            found = json.loads(file.read_text())["tasks"] if file.exists() else []
            said = {task["turn"]: task["model_response"] for task in found}
            dynamic = [task["turn"] for task in record["tasks"] if (key, task["turn"]) in links]
            count += sum(not said.get(turn, "").strip() or said[turn].startswith("ERROR:") for turn in dynamic)
        return count

    def released(self, outputs: Path) -> dict[str, dict[Any, Any]]:
        """The five scripts in their order, and what they come to."""
        scores, config = self._work / "scores", self._work / "config.json"
        shutil.rmtree(scores, ignore_errors=True)
        address = f"{self._server.url}/released/judge/v1"
        config.write_text(json.dumps({"judge": {"api_base_url": address, "api_key": "k", "model": "m"}}))
        data = ("--benchmark", self._data / "benchmark.jsonl", "--model-output-dir", outputs, "--output-dir", scores)
        asks = ("--config", config, "--workers", 8)
        self.script(
            "auxiliary/resolve_dynamic_answers.py",
            *data,
            *asks,
            "--dynamic-references",
            self._data / "dynamic_references.jsonl",
        )
        references = ("--image-references", self._data / "image_references.jsonl", "--images", self._data / "images")
        self.script("auxiliary/score_image.py", *data, *asks, *references)
        self.script("auxiliary/score_grid.py", *data, "--grid-gt", self._data / "grid_gt")
        self.script("auxiliary/score_mcq.py", *data)
        self.script(
            "auxiliary/summarize_results.py",
            "--image-score-dir",
            scores,
            "--mcq-score-dir",
            scores,
            "--output-dir",
            scores / "sum",
        )
        found = json.loads((scores / "sum" / "summary.json").read_text())["models"]["m"]
        turns: dict[Any, float] = {}
        for file in scores.rglob("m_img_score.jsonl"):
            for item in lines_of(file):
                points = [float(one["score"]) for one in item["scores"] if "score" in one]
                if points:
                    turns["/".join((item["domain"], item["subdomain"], item["sample_id"])), item["turn"]] = (
                        sum(points) / len(points) / 5
                    )
        for file in scores.rglob("m_mcq_score.jsonl"):
            for item in lines_of(file):
                place = "/".join((item["domain"], item["subdomain"], item["sample_id"]))
                turns.update({(place, one["turn"]): one["score"] for one in item["mcq_scores"]})
        cells: dict[Any, Any] = {}
        for modality, name in (("text", "Und."), ("image", "Gen."), ("all", "Avg")):
            cells["overall", name] = found["overall"][modality]["mean"]
            for group in ("domain", "class", "turn"):
                for part, values in found[f"by_{group}"].items():
                    cells[str(part), name] = values[modality]["mean"]
        return {
            "scores": {place: round(value, 6) for place, value in turns.items()},
            "cells": {place: value for place, value in cells.items() if value is not None},
        }


def scores_of(run: weft.Run) -> dict[Any, float]:
    values = {(one.sample, one.turn + 1): percent(one, official=True) for one in run.verdicts}
    return {place: round(value / 100, 6) for place, value in values.items() if value is not None}


def lines_of(path: Path) -> Iterable[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def cells_of(run: weft.Run) -> dict[Any, Any]:
    parts: dict[str, list[Any]] = {"overall": list(run.verdicts)}
    for one in run.verdicts:
        for part in (run.groups[one.sample]["domain"], run.groups[one.sample]["class"], str(one.turn + 1)):
            parts.setdefault(part, []).append(one)
    cells: dict[Any, Any] = {}
    for part, some in parts.items():
        for way, metric in METRIC_COLUMNS.items():
            cells[part, way] = build_cell((one for one in some if one.metric == metric), official=True).value
        cells[part, "Avg"] = build_cell(some, official=True).value
    return {place: round(value, 2) for place, value in cells.items() if value is not None}


def answers(checkout: Path, report: Report) -> None:
    """Random answers and keys through the released multiple-choice scorer, which needs nothing but Python, and through
    ours."""
    score = released_choice_scorer(checkout)
    pairs = random_choices(ANSWERS)
    agree = sum(score(key, said) == mcq.score_as_released(said, key) for key, said in pairs)
    report.count("answers", "random answers by the released multiple choice", agree, ANSWERS)


def released_choice_scorer(checkout: Path) -> Callable[[str, str], float]:
    sys.path.insert(0, str(checkout / "scripts/auxiliary"))
    spec = importlib.util.spec_from_file_location("released_mcq", checkout / "scripts/auxiliary/score_mcq.py")
    assert spec is not None and spec.loader is not None
    theirs = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(theirs)
    return theirs.calculate_score


def random_choices(count: int) -> list[tuple[str, str]]:
    """Keys and answers."""
    chance = random.Random(1)
    made: list[tuple[str, str]] = []
    for _ in range(count):
        key = chance.choice(("A", "B", "BD", "A, C", "E", "", "G", "F and G"))
        said = "".join(chance.choice((*WORDS, " ", ", ", "; ", "-", "G", "é")) for _ in range(chance.randrange(4)))
        made.append((key, said))
    return made


def grids(checkout: Path, data: Path, work: Path, python: Path, report: Report) -> None:
    """Every cubes picture of the repository, spoilt in some ways, and photographs in place of grids, through both
    readers."""
    folder = work / "grids"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    pictures = sorted((checkout / "data/images").glob("Geometric_Coloring__cubes_*"))
    others = [path for path in sorted((checkout / "data/images").iterdir()) if path not in pictures]
    for path in pictures:
        whole = Image.open(path).convert("RGB")
        for name, spoilt in spoils(whole).items():
            spoilt.save(folder / f"{path.stem} {name}.png")
    for path in others[:: max(1, len(others) // 120)]:
        Image.open(path).convert("RGB").save(folder / f"photograph {path.stem}.png")
    theirs = read_released_grids(checkout, python, folder)
    ours = {path.name: as_rows(read_grid_as_released(Image.open(path))) for path in sorted(folder.iterdir())}
    report.same(
        "grids",
        f"pictures ({len(pictures)} of cubes in {len(spoils(Image.new('RGB', (50, 50))))} ways, photographs)",
        theirs,
        ours,
    )


def read_released_grids(checkout: Path, python: Path, folder: Path) -> dict[str, str]:
    reader = (
        "import sys, json; sys.path.insert(0, sys.argv[1]); from score_grid import GridCVAnalyzer; from pathlib "
        "import Path; "
        "print(json.dumps({p.name: GridCVAnalyzer().analyze(p)[0] for p in sorted(Path(sys.argv[2]).iterdir())}))"
    )
    done = subprocess.run(
        [python, "-c", reader, checkout / "scripts/auxiliary", folder], capture_output=True, text=True, check=True
    )
    return {name: as_rows(grid) for name, grid in json.loads(done.stdout).items()}


def as_rows(grid: Any) -> str:
    return "none" if grid is None else "/".join("".join(row) for row in grid)


def spoils(whole: Image.Image) -> dict[str, Image.Image]:
    canvas = Image.new("RGB", (2 * whole.width, 2 * whole.height), "white")
    canvas.paste(whole, (whole.width // 3, whole.height // 2))
    captioned = Image.new("RGB", (whole.width, whole.height + 30), "white")
    captioned.paste(whole, (0, 0))
    ImageDraw.Draw(captioned).text((10, whole.height + 8), "the next figure", fill="black")
    return {
        "as it is": whole,
        "blurred": whole.filter(ImageFilter.GaussianBlur(1)),
        "large": whole.resize((1024, 1024)),
        "turned": whole.rotate(2, Image.Resampling.BICUBIC, fillcolor="white"),
        "on a canvas": canvas,
        "captioned": captioned,
    }
