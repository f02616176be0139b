"""ROVER: the released scorer and summary beside `weft score`: requests to the judge, scores, table cells, missing texts
and pictures, odd replies; and what both read from random replies. The half is the checkout's: its main branch scores
IG, the branch for TG scores TG.

The dataset is a folder in the hub's layout, read by the authors' code through `datasets` and by weft by itself. Without
--data it is the tabletop's, with some pictures in unusual forms. The branch for TG has no summary, and imports a prompt
that it does not define: one of ours stands in for it in the scratch folder, for both sides."""

import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import weft
from conformance.odd import IMAGES, TEXTS, spoil
from conformance.report import Report
from conformance.server import Asked, Server
from conformance.weave import settings, weft_cli
from server import drawn
from weft.benchmarks.rover import official_reading
from weft.benchmarks.rover.facts import read_rover_facts
from weft.benchmarks.rover.ig import tables as ig
from weft.types import OfficialReading
from weft_tabletop.make import make

FILES = ("base_metric.py", "evaluator.py", "prompts.py")
NEEDS = ("openai", "datasets", "tqdm")
FILE_ROUNDS = 2
DRIVER = Path(__file__).with_name("rover_driver.py")
LACKS = "prompt_reasoning_alignment_multi_view"  # imported, and not defined
ODD = {  # what a judge may say, and why it is read otherwise where it is; KEY is the score's key
    "a fraction": '{"KEY": 4.7, "reasoning": "x"}',
    "a fraction as text": '{"KEY": "4.5", "reasoning": "x"}',
    "not applicable": '{"KEY": "N/A", "reasoning": "x"}',
    "zero": '{"KEY": 0, "reasoning": "x"}',
    "six": '{"KEY": 6, "reasoning": "x"}',
    "below zero": '{"KEY": -1, "reasoning": "x"}',
    "a number as text": '{"KEY": "3", "reasoning": "x"}',
    "score: 10": "I would say score: 10.",
    "2/5 in prose": "It gets 2/5 from me.",
    "3 points": "That is worth 3 points.",
    "doubled braces": '{{"KEY": 4, "reasoning": "x"}}',
    "in a fence": '```json\n{"KEY": 5, "reasoning": "x"}\n```',
    "another key": '{"score": 2, "reasoning": "x"}',
    "no number": '{"KEY": null, "reasoning": "none"}',
    "nothing to read": "I cannot tell.",
}
PIECES = [
    *(
        "{",
        "}",
        "{{",
        "}}",
        '"KEY"',
        "KEY",
        "READ",
        ":",
        " ",
        "\n",
        "1",
        "3",
        "5",
        "6",
        "0",
        "4.5",
        '"4.5"',
        '"N/A"',
        "null",
        "/5",
        "out of 5",
    ),
    *(
        "score",
        "rating",
        "points",
        "stars",
        "is",
        "=",
        ".",
        ",",
        ")",
        "]",
        '"reasoning"',
        '"x"',
        "```json",
        "```",
        "[",
        "true",
        "10",
    ),
]


def compare(checkout: Path, data: Path | None, work: Path, python: Path, report: Report) -> None:
    half = "tg" if "interleaved_reasoning" in (checkout / "evaluator.py").read_text() else "ig"
    report.say(f"the checkout scores ROVER-{half.upper()}")
    with Server() as server:
        server.answers = {"judge": judge}
        scoring = Scoring(half, checkout, work, python, server, data)
        report.say(f"{len(scoring.tasks)} tasks, from {data or 'the tabletop, with pictures in unusual forms'}")
        if report.wants("parsing"):
            parsing(scoring, report)
        if report.wants("judge"):
            scoring.compare("all there", report)
            scoring.compare("texts missing", report, no_text=2)
            scoring.compare("a third missing", report, no_picture=3)
        if report.wants("files"):
            files(scoring, report)
        if report.wants("odd"):
            odd(scoring, report)


def judge(asked: Asked) -> str:
    """By what it is shown alone. The key is the one that its prompt asks for."""
    number = int(asked.seed[:6], 16)
    return json.dumps({key_of(asked.texts): 1 + number % 5, "reasoning": asked.seed[:8]})


def key_of(prompt: str) -> str:
    names = (
        "reasoning_process",
        "reasoning_visual",
        "reasoning_alignment",
        "visual_consistency",
        "image_quality",
        "interleaved_reasoning",
    )
    found = {name: prompt.rfind(f'"{name}_score"') for name in names}
    return f"{max(found, key=lambda name: found[name])}_score"


def quick(folder: Path) -> Path:
    """A folder whose import makes waits short: the released client waits for minutes before it gives a question up."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sitecustomize.py").write_text(
        "import time\nwait = time.sleep\ntime.sleep = lambda seconds: wait(min(seconds, 0.01))\n"
    )
    return folder


class Scoring:
    def __init__(self, half: str, checkout: Path, work: Path, python: Path, server: Server, data: Path | None) -> None:
        self.half, self.work, self.server, self._python = half, work, server, python
        self.name = f"ROVER-{half.upper()}"
        self.root = work / "cheryyunl" / "ROVER"  # `datasets` takes a folder of that name for the dataset of that name
        self._env = {**os.environ, "HF_HOME": str(work / "hf"), "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "OPENAI_API_KEY": "k",
                     "OPENAI_MODEL": "m", "MAX_TOKENS": "10000"}  # fmt: skip
        self._env["PYTHONPATH"] = str(quick(work / "quick"))
        self.scripts = work / "scripts"
        if not self.scripts.exists():
            shutil.copytree(checkout, self.scripts, ignore=shutil.ignore_patterns(".git"))
            if half == "tg" and not re.search(rf"^{LACKS}\s*=", (checkout / "prompts.py").read_text(), re.MULTILINE):
                with (self.scripts / "prompts.py").open("a") as file:
                    file.write(
                        f'\n{LACKS} = "{{prompt}} {{answer}} {{model_answer}} '
                        f'{{{{\\"reasoning_alignment_score\\": X}}}}"\n'
                    )
        if data is not None:
            self.root.parent.mkdir(parents=True, exist_ok=True)
            self.root.symlink_to(data.absolute())
        elif not self.root.exists():
            made = make("tabletop-rover", work / "tabletop", samples=75, seed=3)
            self._run([self._python, DRIVER, "table", made, self.root, self.name])
        listed = self._run([self._python, DRIVER, "list", self.root, self.name]).stdout
        self.tasks: list[dict[str, Any]] = json.loads(listed.splitlines()[-1])

    def _run(self, command: list[Any], **more: str) -> "subprocess.CompletedProcess[str]":
        done = subprocess.run(
            list(map(str, command)), cwd=self.work, env={**self._env, **more}, capture_output=True, text=True
        )
        if done.returncode:
            sys.exit(f"{' '.join(map(str, command))[:200]} ended with {done.returncode}:\n{done.stderr[-2000:]}")
        return done

    def made(self, name: str, no_text: int = 0, no_picture: int = 0) -> Path:
        """A folder of outputs under their official names; every so many-th text or picture is not there."""
        folder = self.work / "outputs" / name.replace(" ", "-")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for at, task in enumerate(self.tasks):
            if not no_picture or at % no_picture:
                (folder / f"gen_{task['id']}.png").write_bytes(drawn(f"{task['id']}"))
                if not no_text or at % no_text:
                    (folder / f"gen_{task['id']}.txt").write_text(
                        f"\n thought {task['id']} {{with braces}}\nFinal Answer: B \n"
                    )
        return folder

    def released(self, outputs: Path, results: Path) -> None:
        shutil.rmtree(results, ignore_errors=True)
        results.mkdir(parents=True)
        more = {
            "OPENAI_BASE_URL": f"{self.server.url}/released/judge/v1",
            "ROVER_GEN_DIR": str(outputs),
            "VORTEX_GEN_DIR": str(outputs),
        }
        self._run(
            [self._python, self.scripts / "evaluate_rover.py", "--output_dir", results, "--workers", "32"], **more
        )
        if self.half == "tg":
            return
        lines = [json.loads(line) for line in (results / "rover_metrics.jsonl").read_text().splitlines()]
        if lines:
            summary = [
                self._python,
                self.scripts / "summarize.py",
                "--results_file",
                results / "rover_metrics.jsonl",
                "--output_dir",
                results,
            ]
            done = subprocess.run(list(map(str, summary)), env=self._env, capture_output=True, text=True)
            if done.returncode:
                (results / "stopped").write_text(done.stderr[-300:])

    def score(self, outputs: Path, home: Path) -> weft.Run:
        shutil.rmtree(home, ignore_errors=True)
        judge = f"openai-chat/m@{self.server.url}/weft/judge/v1"
        weft_cli("score", outputs, "--benchmark", f"rover-{self.half}", "--data", self.root, "--judge", judge,
                 "--prompts", f"official:{self.scripts}", "--official", "--home", home)  # fmt: skip
        return weft.Run.from_home(home, "last", weft.benchmarks.base.load_benchmark(f"rover-{self.half}"))

    def compare(self, name: str, report: Report, spoilt: Mapping[str, str] | None = None, **without: int) -> None:
        """`spoilt`: the kind of odd file that stands in place of an output."""
        outputs = self.made(name, **without)
        for output, kind in (spoilt or {}).items():
            spoil(outputs / output, kind, output)
        results, home = self.work / "results" / name.replace(" ", "-"), self.work / "homes" / name.replace(" ", "-")
        self.server.asked.clear()
        self.released(outputs, results)
        run = self.score(outputs, home)
        theirs, ours = self.server.of("released", "judge"), self.server.of("weft", "judge")
        part = f"judge, {name}"
        report.bags(
            part, "prompts with their pictures", (one.messages for one in theirs), (one.messages for one in ours)
        )
        report.bags(part, "what else is sent", (settings(one) for one in theirs), (settings(one) for one in ours))
        report.same(part, "scores", released_scores(results), scores_of(run))
        if self.half == "ig":
            report.same(part, "cells of the summary", released_cells(results), cells(run))


def scores_of(run: weft.Run) -> dict[tuple[str, str], Any]:
    official = run.benchmark.official
    assert official is not None
    judged = [one for one in run.verdicts if not one.metric.startswith((ig.CAPPED_ALIGNMENT, "accuracy", "track"))]
    kept = {(one.sample, one.metric): official.find_reading(one) for one in judged}
    kept |= {
        (one.sample, metric): reading
        for one in judged
        for metric, reading in read_rover_facts(one).official_readings.items()
    }
    found = {place: one.text or one.score for place, one in kept.items() if isinstance(one, OfficialReading)}
    return {place: score for place, score in found.items() if score is not None}


def released_scores(results: Path) -> dict[tuple[str, str], Any]:
    made: dict[tuple[str, str], Any] = {}
    for line in (results / "rover_metrics.jsonl").read_text().splitlines():
        record = json.loads(line)
        for name, score in record["result"].items():
            if name.endswith("_score") and score is not None:
                made[record["key"], name.removesuffix("_score")] = score
    return made


def released_cells(results: Path) -> dict[tuple[str, str], float]:
    if (results / "stopped").exists() or not (results / "rover_summary.json").exists():
        return {}
    found = json.loads((results / "rover_summary.json").read_text())["summary"]
    groups = {**found["dimensions"], **found["reasoning_types"], "overall": found["overall"]}
    return {(group, name): round(value, 2) for group, some in groups.items() for name, value in some.items()}


def cells(run: weft.Run) -> dict[tuple[str, str], float]:
    made: dict[tuple[str, str], float] = {}
    for group, names in (("dimension", ig.DIMENSIONS), ("type", ig.TYPES)):
        for part, found in ig._build_group_cells(group, names, run.results(), True).items():
            for column, cell in found.items():
                name = "RA" if column == "Align." else column
                if cell.value is not None and column != "Align. held":
                    made[part, name] = round(cell.value, 2)
    return made


def files(scored: Scoring, report: Report) -> None:
    """Files that are not what their name says, or hardly, in place of half of the outputs. Where there is no image,
    there is no text: weft judges thinking without an image for its strict row, and the released code does not."""
    chance = random.Random(5)
    scored.server.refuses_broken = True
    for number in range(FILE_ROUNDS):
        spoilt: dict[str, str] = {}
        for task in scored.tasks:
            if chance.random() < 0.5:
                spoilt[f"gen_{task['id']}.png"] = chance.choice([*IMAGES, "missing", "a folder"])
            if chance.random() < 0.5:
                spoilt[f"gen_{task['id']}.txt"] = chance.choice([*TEXTS, "missing", "a folder"])
            if spoilt.get(f"gen_{task['id']}.png") in ("missing", "a folder"):
                spoilt[f"gen_{task['id']}.txt"] = "missing"
        scored.compare(f"odd files {number + 1}", report, spoilt)
    scored.server.refuses_broken = False


def odd(scored: Scoring, report: Report) -> None:
    """One reply for everything: what the released code keeps, and what our official row has."""
    whole = scored.tasks
    scored.tasks = whole[::4]
    for at, (name, said) in enumerate(ODD.items()):
        scored.server.answers["judge"] = lambda asked, said=said: said.replace("KEY", key_of(asked.texts))
        outputs = scored.made("odd")
        results, home = scored.work / "results" / f"odd{at}", scored.work / "homes" / f"odd{at}"
        scored.released(outputs, results)
        run = scored.score(outputs, home)
        kept = {
            place: score for place, score in scores_of(run).items() if place[0] in {task["id"] for task in scored.tasks}
        }
        report.same("odd", f"scores, a judge that says {name}", released_scores(results), kept)
        if scored.half == "ig":
            report.same("odd", f"cells, a judge that says {name}", released_cells(results), cells(run))
        asked = [one for one in run.verdicts if one.by == "judge" and one.metric != ig.CAPPED_ALIGNMENT]
        usable = name in ("a number as text", "doubled braces", "in a fence")
        what = "strict verdicts" if usable else "left without a strict verdict"
        report.count(
            "odd",
            f"{what}, a judge that says {name}",
            sum((one.value is not None) == usable for one in asked),
            len(asked),
        )
    scored.tasks = whole
    scored.server.answers["judge"] = judge


def parsing(scored: Scoring, report: Report) -> None:
    """Random replies, read by both."""
    chance, key = random.Random(5), "reasoning_alignment_score"
    texts = [said.replace("KEY", key) for said in ODD.values()]
    while len(texts) < 100_000:
        pieces = [chance.choice(PIECES) for _ in range(chance.randint(1, 9))]
        text = "".join(pieces) if chance.random() < 0.5 else " ".join(pieces)
        if chance.random() < 0.4:
            text = f'{{"KEY": {chance.choice(PIECES)}, "reasoning": {chance.choice(PIECES)}}}'
        texts.append(text.replace("KEY", key).replace("READ", key.replace("_", " ")))
    file = scored.work / "replies.json"
    file.write_text(json.dumps(texts))
    scored._run(
        [scored._python, DRIVER, "read", scored.scripts, file, key, scored.work / "read.json"],
        OPENAI_BASE_URL="http://127.0.0.1:9",
    )
    theirs: list[Any] = json.loads((scored.work / "read.json").read_text())
    ours = [repr(official_reading.read_score(text, key, loose=scored.half == "tg")) for text in texts]
    off = [f"{text!r}: released {a}, weft {b}" for text, a, b in zip(texts, theirs, ours, strict=True) if a != b]
    report.count("parsing", "random replies", len(texts) - len(off), len(texts), examples=off)
