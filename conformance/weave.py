"""WEAVE: both released loops and the image loop beside `--official`, weft's own histories without a leak, and the
released scorer beside `weft score`: requests, scores, table cells, missing outputs, odd replies, time."""

import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from PIL import Image

import weft
from conformance.odd import IMAGES, TEXTS, spoil
from conformance.report import Report
from conformance.server import Asked, Server, pixels_of
from server import drawn
from toy import toy_records, write_weave
from weft.benchmarks.weave.domains import CLASSES
from weft.benchmarks.weave.tables import SHORT_NAMES, build_metric_cells, points_out_of_ten
from weft.types import MENTION

SMALL = 200  # pixels
FILES = ("eval/main.py", "eval/summarize.py", "infer/loader.py")
NEEDS = ("requests", "tqdm", "termcolor", "numpy")
LOOPS = {  # a released loop with its mode -> what weft is told
    ("bagel", "no"): ["--history", "none"],
    ("bagel", "partial"): ["--history", "partial"],
    ("bagel", "yes"): ["--history", "full"],
    ("step1x", "partial"): ["--history", "partial", "--turns", "image", "--model-opt", "images=strip"],
    ("gpt", "yes-front"): ["--history", "full", "--turns", "text"],
    ("gpt", "yes-first"): ["--history", "full", "--turns", "text", "--placement", "inline"],
    ("gpt", "no"): ["--history", "none", "--turns", "text"],
}
OWN = [
    [*view, "--past", past]
    for view in (["--history", "none"], ["--history", "partial"], ["--history", "full"], ["--history", "full", "--placement", "inline"],
                 ["--history", "dialogue"])
    for past in ("own", "reference")
]  # fmt: skip
FILE_ROUNDS = 3
Spoilt = Mapping[str, str]  # an output -> the kind of odd file in its place
TURNS = {"umm": (), "img": ("--turns", "image"), "txt": ("--turns", "text")}
ODD = {  # what a judge may say, and why it is read otherwise where it is
    "no reasoning": ('{"score": 7}', ""),
    "a fraction": ('{"score": 6.5, "reasoning": "x"}', ""),
    "seven": ('{"score": 7, "reasoning": "x"}', ""),
    "eleven": ('{"score": 11, "reasoning": "x"}', ""),
    "below zero": ('{"score": -2, "reasoning": "x"}', ""),
    "in a fence": ('```json\n{"score": 5, "reasoning": "x"}\n```', ""),
    "a list as reasoning": ('{"score": 5, "reasoning": ["x"]}', ""),
    "more keys": ('{"score": 5, "reasoning": "x", "confidence": 1}', ""),
    "true": ('{"score": true, "reasoning": "x"}', ""),
    "no score": ('{"reasoning": "x"}', ""),
    "a bare number": ("7", ""),
    "a list with an object": ('[{"score": 7}]', ""),
    "null": ("null", ""),
    "words around it": (
        'Here it is: {"score": 5, "reasoning": "x"}',
        "the scripts lose the record until they are run again; weft reads it",
    ),
    "a number as text": (
        '{"score": "5", "reasoning": "x"}',
        "it aborts the scripts' whole summary; weft reads the number",
    ),
    "no JSON": ("five out of ten", "both leave the record out, weft in both rows"),
    "nothing": ("", "both leave the record out, weft in both rows"),
}


def compare(checkout: Path, data: Path | None, work: Path, python: Path, report: Report) -> None:
    whole = dataset(checkout, data, work)
    root = small(whole, work / "small")
    records = json.loads((root / "test" / "test.json").read_text())
    turns = sum(len(record["chats"]) // 2 for record in records)
    report.say(f"{len(records)} dialogues, {turns} turns, from {data or 'the checkout or our own set'}")
    with Server() as server:
        server.answers = {"judge": judge, **dict.fromkeys(("bagel", "step1x", "own"), model), "gpt-jpeg": model}
        if report.wants("model"):
            loops(checkout, root, work, python, server, report)
        if report.wants("leaks"):
            leaks(root, work, server, report)
        scored = Scoring(checkout, root, work, python, server)
        if report.wants("judge"):
            for name, without in missing(records).items():
                scored.compare(name, without, report)
            scored.compare("a fifth broken", set(), report, broken=5)
            scored.compare("image turns", set(), report, mode="img")
            scored.compare("text turns", set(), report, mode="txt")
        if report.wants("files"):
            files(scored, report)
        if report.wants("odd"):
            odd(scored, report)
        if report.wants("time"):
            clock(Scoring(checkout, whole, work, python, server), report)


def dataset(checkout: Path, data: Path | None, work: Path) -> Path:
    """A folder with test/test.json: the one that is given, the sample that the repository's page shows, or a small one
    of our own."""
    root = work / "root"
    if root.exists():
        return root
    (root / "test").parent.mkdir(parents=True)
    if data is not None:
        there = next((one for one in (data, data / "test") if (one / "test.json").is_file()), None)
        if there is None:
            sys.exit(f"there is no test.json in {data}")
        (root / "test").symlink_to(there.absolute())
        return root
    for branch in ("html", "origin/html"):
        if not subprocess.run(
            ["git", "-C", checkout, "cat-file", "-e", f"{branch}:static/test.json"], capture_output=True
        ).returncode:
            packed = subprocess.run(
                ["git", "-C", checkout, "archive", branch, "static/test.json", "static/images/sample"],
                capture_output=True,
            )
            subprocess.run(["tar", "-x", "-C", work], input=packed.stdout, check=True)
            (root / "test").mkdir()
            (work / "static/test.json").rename(root / "test/test.json")
            (work / "static/images/sample").rename(root / "test/imgs")
            return root
    write_weave(root, toy_records())
    return root


def small(root: Path, to: Path, records: list[dict[str, Any]] | None = None) -> Path:
    """The same dialogues, or some of them, with small pictures: what is compared is which are shown, not how large they
    are."""
    (to / "test").mkdir(parents=True, exist_ok=True)
    kept = json.loads((root / "test/test.json").read_text()) if records is None else records
    (to / "test/test.json").write_text(json.dumps(kept))
    for name in {name for record in kept for name in record["images"]}:
        path = to / "test" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            picture = Image.open(root / "test" / name)
            exif = picture.getexif()
            picture.thumbnail((SMALL, SMALL))
            picture.save(path, exif=exif)
    return to


def model(asked: Asked) -> str:
    return asked.seed if asked.kind == "image" else f"answer {asked.seed[:6]}\n"


def judge(asked: Asked) -> str:
    """By what it is shown alone; only three scores where only three are allowed."""
    number = int(asked.seed[:6], 16)
    score = (0, 5, 10)[number % 3] if "0|5|10" in asked.texts else number % 11
    return json.dumps({"score": score, "reasoning": asked.seed[:8]})


# the model's requests


def loops(checkout: Path, root: Path, work: Path, python: Path, server: Server, report: Report) -> None:
    for (loop, mode), view in LOOPS.items():
        label = "gpt-jpeg" if loop == "gpt" else loop
        some, skipped = that_run(root, work, loop, mode)
        server.asked.clear()
        run_loop(checkout, some, work, python, server, loop, mode)
        run(
            root=some,
            work=work,
            model=f"openai-chat/m@{server.url}/weft/{label}/v1",
            home=f"{loop}-{mode}",
            options=["--official", "--prompts", f"official:{checkout}", *view],
        )
        theirs, ours = ([(one.kind, one.messages) for one in server.of(side, label)] for side in ("released", "weft"))
        report.bags("model", f"requests of the {loop} loop, {mode}", theirs, ours)
        if skipped:
            report.say(
                f"model, {loop} loop, {mode}: {skipped} dialogues are left out, in which the script ends (a turn "
                "without a mention)"
            )


def run_loop(checkout: Path, root: Path, work: Path, python: Path, server: Server, loop: str, mode: str) -> None:
    script, label = Path(__file__).with_name("weave_loops.py"), "gpt-jpeg" if loop == "gpt" else loop
    save = work / "save" / f"{loop}-{mode}"
    shutil.rmtree(save, ignore_errors=True)  # the scripts go on with what is there
    address = f"{server.url}/released/{label}/v1/chat/completions"
    done = subprocess.run(
        [python, script, checkout, root, f"{save}/", loop, mode, address], capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(f"the released {loop} loop ended: {done.stderr[-2000:]}")


def that_run(root: Path, work: Path, loop: str, mode: str) -> tuple[Path, int]:
    """The records on which a script does not end early: the complete history, the strip and the chat all need a mention
    in every turn that they look at."""
    if (loop, mode) in (("bagel", "no"), ("bagel", "partial")):
        return root, 0
    due = {"bagel": ("image", "text"), "step1x": ("image",), "gpt": ("text",)}[loop]
    kept = []
    records = json.loads((root / "test/test.json").read_text())
    for record in records:
        pairs = zip(record["chats"][::2], record["chats"][1::2], strict=True)
        if all(MENTION.search(user["content"]) for user, assistant in pairs if assistant["type"] in due):
            kept.append(record)
    some = small(root, work / "some" / f"{loop}-{mode}", kept)
    return some, len(records) - len(kept)


def run(root: Path, work: Path, model: str, home: str, options: Iterable[str], judge: str = "constant/5") -> None:
    shutil.rmtree(work / "homes" / home, ignore_errors=True)
    weft_cli(
        "run",
        "weave",
        "--data",
        root / "test",
        "--model",
        model,
        "--judge",
        judge,
        "--home",
        work / "homes" / home,
        *options,
    )


def weft_cli(*words: object) -> None:
    env = {**os.environ, "NO_COLOR": "1", "COLUMNS": "200"}
    done = subprocess.run([sys.executable, "-m", "weft", *map(str, words)], capture_output=True, text=True, env=env)
    if done.returncode not in (0, 1):  # 1: something is unscored
        sys.exit(
            f"weft {' '.join(map(str, words))} ended with "
            f"{done.returncode}:\n{done.stdout[-1500:]}\n{done.stderr[-1500:]}"
        )


def leaks(root: Path, work: Path, server: Server, report: Report) -> None:
    """Weft's own histories: no request has a picture that a later turn makes, or is to make in this one."""
    records = {str(record["idx"]): record for record in json.loads((root / "test/test.json").read_text())}
    pixels = {
        name: pixels_of(Image.open(root / "test" / name)) for record in records.values() for name in record["images"]
    }
    free = total = 0
    for view in OWN:
        server.asked.clear()
        name = "own-" + "-".join(view).replace("--", "")
        run(root=root, work=work, model=f"openai-chat/m@{server.url}/weft/own/v1", home=name, options=view)
        sent = Counter((asked.kind, tuple(asked.pictures)) for asked in server.asked)
        stored = weft.Run.from_home(work / "homes" / name, "last", weft.benchmarks.base.load_benchmark("weave"))
        blobs = weft.store.blobs.Blobs(work / "homes" / name / "blobs")
        for turn in stored.turns:
            record = records[turn.sample]
            outputs = later(record, turn.turn)
            parts = [part for message in weft_messages(turn.messages_json) for part in message.parts]
            seen = [pixels_of(blobs.decode(part)) for part in parts if isinstance(part, weft.types.Image)]
            own = {pixels[name] for name in outputs} - {
                pixels[name] for name in record["images"] if name not in outputs
            }
            total += 1
            free += not own & set(seen) and sent[turn.modality, tuple(seen)] > 0
    report.count("leaks", f"requests of weft's own {len(OWN)} histories that show nothing of the future", free, total)


def later(record: Mapping[str, Any], turn: int) -> list[str]:
    makers = [chat["content"] for chat in record["chats"][1::2]][turn:]
    kinds = [chat["type"] for chat in record["chats"][1::2]][turn:]
    numbers = [int(re.findall(r"\d+", text)[0]) for text, kind in zip(makers, kinds, strict=True) if kind == "image"]
    return [record["images"][number - 1] for number in numbers]


def weft_messages(seen: str) -> tuple[Any, ...]:
    import msgspec

    return msgspec.json.decode(seen, type=tuple[weft.types.Message, ...])


# scoring


def missing(records: list[dict[str, Any]]) -> dict[str, set[str]]:
    """Which outputs are not there: none, all texts, every third of all."""
    names = [name for record in records for name, _ in outputs_of(record)]
    texts = {name for name in names if name.endswith(".txt")}
    return {"all there": set(), "texts missing": texts, "a third missing": set(names[::3])}


def outputs_of(record: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    for turn, chat in enumerate(record["chats"][1::2]):
        number = MENTION.search(chat["content"])
        if chat["type"] == "image" and number:
            yield Path(record["images"][int(number.group(1)) - 1]).name, "image"
        else:
            yield f"{Path(record['images'][0]).stem}_{turn}.txt", "text"


class Scoring:
    def __init__(self, checkout: Path, root: Path, work: Path, python: Path, server: Server) -> None:
        self.root, self.work, self.server, self._checkout, self._python = root, work, server, checkout, python
        self.records = json.loads((root / "test/test.json").read_text())

    def made(self, name: str, without: set[str], size: int = 24) -> Path:
        """A folder of outputs under their official names."""
        folder = self.work / "outputs" / name.replace(" ", "-") / "imgs"
        folder.mkdir(parents=True, exist_ok=True)
        for record in self.records:
            for output, kind in outputs_of(record):
                if output not in without:
                    data = (
                        drawn(f"{record['idx']} {output}", size)
                        if kind == "image"
                        else f"\nanswer to {output} \n".encode()
                    )
                    (folder / output).write_bytes(data)
        return folder

    def released(self, outputs: Path, results: Path, address: str, workers: int = 8, mode: str = "umm") -> float:
        """The released scorer, with the configuration that it lacks; its seconds."""
        shutil.rmtree(results, ignore_errors=True)
        results.mkdir(parents=True)
        scripts = self.work / "eval"
        if not scripts.exists():
            shutil.copytree(self._checkout / "eval", scripts)
        domains, kinds = json.dumps(CLASSES), json.dumps({"img": [*SHORT_NAMES][:3], "txt": [*SHORT_NAMES][3:]})
        facts = {
            "ROOT_PATH": self.root,
            "DATASET_PATH": self.root / "test",
            "OPENAI_MODEL": "m",
            "AZURE_API_KEY": "k",
            "AZURE_ENDPOINT": address,
        }
        lines = [f"{name} = {str(value)!r}" for name, value in facts.items()]
        (scripts / "config.py").write_text("\n".join([*lines, f"WEAVE_DOMAIN = {domains}", f"WEAVE_METRICS = {kinds}"]))
        began = time.perf_counter()
        command = [
            self._python,
            "main.py",
            "--input_dir",
            outputs,
            "--output_dir",
            results,
            "--workers",
            str(workers),
            "--mode",
            mode,
        ]
        subprocess.run(command, cwd=scripts, check=True, capture_output=True)
        seconds = time.perf_counter() - began
        if (results / "metrics.jsonl").exists():
            summary = [self._python, "summarize.py", "--metrics_file", results / "metrics.jsonl"]
            subprocess.run(summary, cwd=scripts, check=True, capture_output=True)
        return seconds

    def weft(self, outputs: Path, home: Path, address: str, *more: str) -> float:
        shutil.rmtree(home, ignore_errors=True)
        began = time.perf_counter()
        weft_cli("score", outputs.parent, "--benchmark", "weave", "--data", self.root / "test", "--judge", f"openai-chat/m@{address}",
                 "--prompts", f"official:{self._checkout}", "--official", "--home", home, *more)  # fmt: skip
        return time.perf_counter() - began

    def compare(
        self,
        name: str,
        without: set[str],
        report: Report,
        mode: str = "umm",
        broken: int = 0,
        spoilt: Spoilt | None = None,
    ) -> None:
        outputs = self.made(name, without)
        for path in sorted(outputs.iterdir())[::broken] if broken else ():
            path.write_bytes(b"\xff no picture, and no text")
        for output, kind in (spoilt or {}).items():
            spoil(outputs / output, kind, output)
        results, home = self.work / "results" / name, self.work / "homes" / f"score {name}"
        self.server.asked.clear()
        self.released(outputs, results, f"{self.server.url}/released/judge/v1/chat/completions", mode=mode)
        self.weft(outputs, home, f"{self.server.url}/weft/judge/v1", *TURNS[mode])
        theirs, ours = self.server.of("released", "judge"), self.server.of("weft", "judge")
        part = f"judge, {name}"
        report.bags(
            part, "prompts with their pictures", (one.messages for one in theirs), (one.messages for one in ours)
        )
        report.bags(part, "what else is sent", (settings(one) for one in theirs), (settings(one) for one in ours))
        run = weft.Run.from_home(home, "last", weft.benchmarks.base.load_benchmark("weave"))
        report.same(
            part,
            "scores",
            released_scores(results),
            {place(one): points_out_of_ten(one, official=True) for one in run.verdicts},
        )
        report.same(part, "table cells", released_cells(results), weft_cells(run))


def settings(asked: Asked) -> str:
    """What a body says besides its messages; that it is not streamed is the default."""
    said = json.loads(asked.rest)
    return json.dumps(
        {name: value for name, value in said.items() if (name, value) != ("stream", False)}, sort_keys=True
    )


def place(verdict: weft.types.Verdict) -> tuple[str, int, str]:
    return verdict.sample, verdict.turn, verdict.metric


def released_scores(results: Path) -> dict[tuple[str, int, str], float]:
    made: dict[tuple[str, int, str], float] = {}
    file = results / "metrics.jsonl"
    for line in file.read_text().splitlines() if file.exists() else ():
        record = json.loads(line)
        for turn, found in record.items():
            if turn.startswith("turn "):
                made.update(
                    {
                        (str(record["idx"]), int(turn[5:]), metric): one["score"]
                        for metric, one in found.items()
                        if isinstance(one, dict) and "score" in one
                    }
                )
    return made


def released_cells(results: Path) -> dict[tuple[str, str], float]:
    file = results / "result.jsonl"
    if not file.exists():
        return {}
    found = json.loads(file.read_text())
    groups = {**found["domains"], **{name: one for name, one in found["categories"].items() if one["categories"]}}
    cells = {
        (name, SHORT_NAMES[metric]): value
        for name, one in groups.items()
        for metric, value in one["categories"].items()
    }
    cells.update({(name, "Avg"): one["AVG"] for name, one in groups.items()})
    cells.update({("overall", SHORT_NAMES[metric]): value for metric, value in found["overall"]["metrics"].items()})
    return {**cells, ("overall", "Avg"): found["overall"]["AVG"]}


def weft_cells(run: weft.Run) -> dict[tuple[str, str], float]:
    groups = run.groups
    parts: dict[str, list[Any]] = {"overall": list(run.verdicts)}
    for verdict in run.verdicts:
        for group in ("domain", "class"):
            parts.setdefault(groups[verdict.sample][group], []).append(verdict)
    cells = {
        (name, column): cell.value
        for name, some in parts.items()
        for column, cell in build_metric_cells(some, official=True).items()
    }
    return {name: round(value, 3) for name, value in cells.items() if value is not None}


def files(scored: Scoring, report: Report) -> None:
    """Files that are not what their name says, or hardly, in place of half of the outputs."""
    chance = random.Random(5)
    for number in range(FILE_ROUNDS):
        spoilt: dict[str, str] = {}
        for record in scored.records:
            for output, kind in outputs_of(record):
                if chance.random() < 0.5:
                    kinds = [*IMAGES] if kind == "image" else [*TEXTS]
                    spoilt[output] = chance.choice([*kinds, "missing", "a folder"])
        scored.compare(f"odd files {number + 1}", set(), report, spoilt=spoilt)


def odd(scored: Scoring, report: Report) -> None:
    """One reply for everything: what the released code counts, and what our official row counts."""
    outputs = scored.made("odd", set())
    for at, (name, (said, why)) in enumerate(ODD.items()):
        scored.server.answers["judge"] = lambda _, said=said: said
        results, home = scored.work / "results" / f"odd {at}", scored.work / "homes" / f"odd {at}"
        scored.released(outputs, results, f"{scored.server.url}/released/judge/v1/chat/completions", workers=32)
        scored.weft(outputs, home, f"{scored.server.url}/weft/judge/v1", "--limit", "40")
        run = weft.Run.from_home(home, "last", weft.benchmarks.base.load_benchmark("weave"))
        ours = {
            place(one): points for one in run.verdicts if (points := points_out_of_ten(one, official=True)) is not None
        }
        report.same("odd", f"a judge that says {name}", released_scores(results), ours, why)
    scored.server.answers["judge"] = judge


def clock(scored: Scoring, report: Report) -> None:
    """Both scorers on the same outputs, in turn, with a judge that takes half a second."""
    outputs = scored.made("clock", set(), size=1024)
    calls = sum(3 if kind == "image" else 1 for record in scored.records for _, kind in outputs_of(record))
    scored.server.latency, address = 0.5, f"{scored.server.url}/light/v1"
    theirs, ours = [], []
    for number in range(3):
        theirs.append(
            scored.released(outputs, scored.work / "results" / "clock", f"{address}/chat/completions", workers=32)
        )
        home = scored.work / "homes" / f"clock {number}"
        ours.append(scored.weft(outputs, home, address, "--concurrency", "32"))
    scored.server.latency = 0.0
    bound = calls / 32 * 0.5
    report.say(
        f"time for {calls} calls of 0.5 s, 32 in flight (the bound is {bound:.1f} s), three rounds in turn: released "
        f"{', '.join(f'{one:.1f}' for one in theirs)} s; weft {', '.join(f'{one:.1f}' for one in ours)} s, with its "
        "start, "
        f"its checks of all pictures and its report; {sum(theirs) / sum(ours):.2f} times as fast"
    )
