"""PlanViz: the released judging script and scorer beside `weft score --official`: requests to the judge, what is kept
of each reply, the number of each list and metric, missing pictures, copies, odd replies, a judge that refuses; and what
both read from random replies. Only first requests are compared: the scripts take what comes, weft objects to what it
cannot use.

The test set is not public. Without --data the tasks are the tabletop's, in the official lists, with some pictures as
JPEG under names that end in png. What the scripts import and never use is stubbed; their client is turned to loopback.
"""

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aiohttp import web
from PIL import Image

import weft
from conformance.printed import official_cells
from conformance.report import Report
from conformance.server import Asked, Server, pixels_of
from conformance.weave import settings, weft_cli
from server import drawn
from weft.benchmarks.official import score_or_none
from weft.benchmarks.planviz import official_reading
from weft.benchmarks.planviz.data import PlanVizGold
from weft.benchmarks.planviz.files import POINT_FIELDS, TASK_LISTS, find_root
from weft.benchmarks.planviz.official import OFFICIAL
from weft.benchmarks.planviz.rubric import COLUMNS
from weft.benchmarks.planviz.tables import SUBTASK_TITLES, TASK_NAMES
from weft.types import Question, TurnRef
from weft_tabletop.make import make

FILES = ("template.py", "score.py", "qwen_eval_larger_api.py")
NEEDS = ("openai",)
DRIVER = Path(__file__).with_name("planviz_driver.py")
MODES = ("correctness", "visual", "efficiency")
JUDGE = "qwen3-vl-235b-a22b-instruct"
ODD = {  # what a judge may say; KEY is the line's key, N a score that fits
    "a plain score": "Explanation: x\nKEY: 3",
    "10": "Explanation: x\nKEY: 10",
    "-1": "Explanation: x\nKEY: -1",
    "3/5": "Explanation: x\nKEY: 3/5",
    "2.5": "Explanation: x\nKEY: 2.5",
    "**3**": "Explanation: x\nKEY: **3**",
    "a trailing space": "Explanation: x\nKEY: 3 ",
    "a trailing newline": "Explanation: x\nKEY: 3\n",
    "a full stop": "Explanation: x\nKEY: 3.",
    "no key": "It is worth 3",
    "the other key": "Correctness is not asked here.\nKEY: 2",
    "no number": "I cannot tell.",
    "a full-width digit": "KEY: \uff13",
    "JSON": '{"KEY": 3}',
}
PIECES = [
    "Correctness",
    "correctness",
    "Efficiency",
    ":",
    " ",
    "\n",
    "1",
    "3",
    "5",
    "10",
    "-",
    "/",
    ".",
    "**",
    "**3**",
    "\uff13",
    "\u00b2",
]
PIECES += ["score", "]", "}", "No response", "", "x", "3/5", "2.5"]


def compare(checkout: Path, data: Path | None, work: Path, python: Path, report: Report) -> None:
    with Server() as server:
        scoring = Scoring(checkout, work, python, server, data)
        report.say(
            f"{sum(map(len, scoring.lists.values()))} tasks in {len(scoring.lists)} lists, from "
            f"{data or 'the tabletop'}"
        )
        if report.wants("parsing"):
            parsing(scoring, report)
        if report.wants("judge"):
            scoring.compare("all there", report, judge)
            scoring.compare("a third missing", report, judge, missing=3)
            scoring.compare("a judge that refuses one in eight", report, failing)
        if report.wants("odd"):
            for name, said in ODD.items():
                scoring.compare(
                    f"odd, {name}",
                    report,
                    lambda asked, said=said: said.replace("KEY", key_of(asked.texts)),
                    short=True,
                )
        if report.wants("files"):
            from conformance.planviz_odd import OddScoring, compare_odd_files  # it is made of what is below

            compare_odd_files(OddScoring(checkout, work / "odd", python, server, data), report)


def judge(asked: Asked) -> str:
    """By what it is shown alone."""
    return f"Explanation: {asked.seed[:8]}\n{key_of(asked.texts)}: {int(asked.seed[:6], 16) % 6}"


def failing(asked: Asked) -> str:
    if int(asked.seed[:4], 16) % 8 == 0:
        raise web.HTTPBadRequest(text="this one it does not take")
    return judge(asked)


def key_of(prompt: str) -> str:
    """The key of the line that a prompt asks for, which stands at its end."""
    keys = ("Correctness", "Consistency", "Visual Coherence", "Efficiency")
    return max(keys, key=lambda key: prompt.rfind(f"{key}: score"))


class Scoring:
    def __init__(self, checkout: Path, work: Path, python: Path, server: Server, data: Path | None) -> None:
        self.work, self.server, self.scripts, self._python = work, server, checkout, python
        self.root = find_root(data) if data is not None else work / "tabletop"
        if data is None and not self.root.exists():
            make("tabletop-planviz", self.root, samples=60, seed=3)
            for at, path in enumerate(sorted(self.root.rglob("*.png"))):
                if at % 5 == 0:
                    Image.open(path).save(path.with_suffix(".jpg"), quality=95)
                    path.unlink()
        self.lists = {
            one.name: json.loads((self.root / one.file).read_text())
            for one in TASK_LISTS
            if (self.root / one.file).is_file()
        }

    def made(self, missing: int) -> Path:
        """Pictures under their official names; every so many-th is missing, and one edit of each list is a copy of its
        source."""
        folder = self.work / "results" / "mine"
        shutil.rmtree(folder, ignore_errors=True)
        for name, records in self.lists.items():
            (folder / name).mkdir(parents=True)
            for at, record in enumerate(records):
                if not missing or at % missing:
                    copied = at == 1 and "image_path" in record
                    source = self.root / record["image_path"] if copied else None
                    source = source if source is None or source.is_file() else source.with_suffix(".jpg")
                    (folder / name / f"{at}.png").write_bytes(
                        source.read_bytes() if source else drawn(f"{name} {at}", 64)
                    )
        return folder

    def released(self, folder: Path) -> tuple[dict[Any, Any], dict[Any, Any]]:
        """What the scripts keep of each reply, and their number for each list and metric."""
        place = self.work / "released"
        shutil.rmtree(place, ignore_errors=True)
        (place / "output_jsons").mkdir(parents=True)
        kept: dict[Any, Any] = {}
        numbers: dict[Any, Any] = {}
        for listed in TASK_LISTS:
            records = [dict(record) for record in self.lists.get(listed.name, ())]
            for at, record in enumerate(records):
                for field in ("image_path", "ref_image_path"):
                    record.update({field: str(self.root / record[field])} if field in record else {})
                record |= {"id": at + 1}
                if (folder / listed.name / f"{at}.png").is_file():
                    record["res_path"] = str(folder / listed.name / f"{at}.png")
            if not records:
                continue
            file = place / f"{listed.name}_mine.json"
            file.write_text(json.dumps(records))
            for mode in MODES:
                url = f"{self.server.url}/released/judge/v1"
                self.run(["judge", self.scripts, url, file, listed.task, mode], place)
                out = place / "output_jsons" / f"{file.stem}_{mode}_after_score.json"
                for record in json.loads(out.read_text()):
                    said, points = record["evaluation_out"], record.get(POINT_FIELDS[0]) or record[POINT_FIELDS[1]]
                    kept[listed.name, record["id"] - 1, mode] = share(said, mode, points)
                numbers[listed.name, mode] = (
                    self.run(["score", self.scripts, out], place).stdout.strip().splitlines()[-1]
                )
        return kept, {place: float(said) if said[0].isdigit() else said for place, said in numbers.items()}

    def run(self, words: list[Any], place: Path) -> "subprocess.CompletedProcess[str]":
        command = [str(self._python), str(DRIVER), *map(str, words)]
        done = subprocess.run(command, cwd=place, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{' '.join(map(str, words))[:200]} ended with {done.returncode}:\n{done.stderr[-2000:]}")
        return done

    def compare(
        self, name: str, report: Report, answer: Callable[[Asked], str], *, missing: int = 0, short: bool = False
    ) -> None:
        self.server.answers["judge"] = answer
        whole = self.lists
        self.lists = {one: some[:2] for one, some in whole.items()} if short else whole
        folder = self.made(missing)
        self.server.asked.clear()
        kept, numbers = self.released(folder)
        home = self.work / "home"
        shutil.rmtree(home, ignore_errors=True)
        judge = f"openai-chat/{JUDGE}@{self.server.url}/weft/judge/v1"
        weft_cli("score", folder, "--benchmark", "planviz", "--data", self.root, "--judge", judge, "--prompts", f"official:{self.scripts}",
                 "--official", "--home", home)  # fmt: skip
        run = weft.Run.from_home(home, "last", weft.benchmarks.base.load_benchmark("planviz"))
        ours = self.shares(run)
        report.same(f"judge, {name}", "shares", {place: one for place, one in kept.items() if one is not None}, ours)
        report.same(f"judge, {name}", "printed cells", as_cells(kept, numbers), printed_cells(run))
        if not short:
            theirs = self.server.of("released", "judge")
            mine = [
                one for one in self.server.of("weft", "judge") if len(one.messages) == 1 and not self.is_ours_alone(one)
            ]
            sent, ours_sent = {one.messages for one in theirs}, {one.messages for one in mine}
            report.bags(f"judge, {name}", "prompts with their pictures", sent, ours_sent)
            report.bags(
                f"judge, {name}",
                "what else is sent",
                {settings(one) for one in theirs},
                {settings(one) for one in mine},
            )
        self.lists = whole

    def shares(self, run: weft.Run) -> dict[Any, float]:
        made: dict[Any, float] = {}
        files = {turn.sample: self.file_of(turn.sample) for turn in run.turns}
        for one in run.verdicts:
            name, at = files[one.sample]
            found = score_or_none(OFFICIAL.score(one))
            if found is not None and at < len(self.lists[name]):
                made[name, at, one.metric] = round(found, 9)
        return made

    def file_of(self, sample: str) -> tuple[str, int]:
        for name, records in self.lists_whole().items():
            for at, record in enumerate(records):
                if sample == f"{name}-{record.get('name')}":
                    return name, at
        dataset = weft.benchmarks.base.load_benchmark("planviz").load(
            self.root, weft.store.blobs.Blobs(self.work / "blobs")
        )
        name, _, at = (
            next(one.turns[0].file for one in dataset.samples if one.id == sample).removesuffix(".png").partition("/")
        )
        return name, int(at)

    def lists_whole(self) -> dict[str, list[Any]]:
        return {
            one.name: json.loads((self.root / one.file).read_text())
            for one in TASK_LISTS
            if (self.root / one.file).is_file()
        }

    def is_ours_alone(self, asked: Asked) -> bool:
        """A workflow looked at without its page, as the paper says, which the scripts do not do."""
        alone = len(asked.pictures) == 1 and key_of(asked.texts) == "Visual Coherence"
        return alone and asked.pictures[0] in self.workflows()

    def workflows(self) -> set[str]:
        folder = self.work / "results" / "mine" / "process_plan_edit"
        return {pixels_of(Image.open(path)) for path in folder.glob("*.png")}


def as_cells(kept: dict[Any, Any], numbers: dict[Any, Any]) -> dict[Any, float]:
    """What weft prints, from the scripts' numbers of lists. Of two lists that are one sub-task weft prints one number:
    the mean over both."""
    cells: dict[Any, float] = {}
    for subtask, task in dict.fromkeys((listed.subtask, listed.task) for listed in TASK_LISTS):
        names = [listed.name for listed in TASK_LISTS if (listed.subtask, listed.task) == (subtask, task)]
        for mode in MODES:
            found = [numbers[name, mode] for name in names if (name, mode) in numbers]
            shares = [
                one for (name, _, of), one in kept.items() if (of, one is None) == (mode, False) and name in names
            ]
            if found and shares:
                value = found[0] if len(found) == 1 else sum(shares) / len(shares)
                cells[subtask, task, mode] = round(value, 4)
    return cells


def printed_cells(run: weft.Run) -> dict[Any, float]:
    """The official cells of all tables that have a sub-task's number, which must be one number."""
    subtasks = {title: name for name, title in SUBTASK_TITLES.items()}
    tasks = {title: name for name, title in TASK_NAMES.items()}
    cells: dict[Any, float] = {}
    for (title, part, column), value in official_cells(run, 4).items():
        name = column
        if title in tasks:
            subtask, _, name = column.partition(" ")
            place = (subtasks.get(subtask), tasks[title])
        elif title == "by sub-task and task":
            subtask, task = part.split(", ")
            place = (subtasks[subtask], tasks[task])
        else:
            continue
        if name in COLUMNS:
            assert cells.setdefault((*place, COLUMNS[name]), value) == value, (title, part, column)
    return cells


def share(said: str, mode: str, points: list[str]) -> float | None:
    """What the scorer adds for one reply, in plain words: its last character over the points or five; nothing where it
    is no digit."""
    try:
        return round(int(said[-1]) / (len(points) if "Correctness" in said else 5), 9)
    except (ValueError, IndexError):
        return None


def parsing(scoring: Scoring, report: Report) -> None:
    """Random replies, read by both."""
    records = random_records(100_000)
    theirs = read_as_released(scoring, records)
    off: list[str] = []
    for record, script in zip(records, theirs, strict=True):
        mine = read_by_weft(record)
        if mine != script:
            off.append(f"{record['evaluation_out']!r}: released {script}, weft {mine}")
    report.count("parsing", "random replies", len(records) - len(off), len(records), examples=off)


def random_records(count: int) -> list[dict[str, Any]]:
    chance = random.Random(5)
    records: list[dict[str, Any]] = []
    for _ in range(count):
        said = "".join(chance.choice(PIECES) for _ in range(chance.randint(0, 8)))
        points = [f"point {at}" for at in range(chance.randint(1, 12))]
        records.append(
            {"evaluation_out": [said] if chance.random() < 0.1 else said, chance.choice(POINT_FIELDS): points}
        )
    return records


def read_as_released(scoring: Scoring, records: list[dict[str, Any]]) -> list[str]:
    file, out = scoring.work / "records.json", scoring.work / "read.json"
    file.write_text(json.dumps(records))
    scoring.run(["read", scoring.scripts, file, out], scoring.work)
    return json.loads(out.read_text())


def read_by_weft(record: dict[str, Any]) -> str:
    said = record["evaluation_out"][0] if isinstance(record["evaluation_out"], list) else record["evaluation_out"]
    goal = PlanVizGold(tuple(record.get(POINT_FIELDS[0]) or record[POINT_FIELDS[1]]), "ui", "gen")
    found = official_reading.read_share(Question(("visual",), (), {}, TurnRef(), gold=goal, text_only=True), said)
    return "none" if found is None else str(found)
