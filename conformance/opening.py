"""OpenING: the released scripts for win rates, agreement with people and score summaries beside weft's own arithmetic,
on the files that are shipped and on random ones; what the released judge keeps of a reply; how many battles the sampler
makes; what is sent about answers.

The scripts run as they are, each in a scratch folder of the layout that it expects: their paths are fixed, and one
overwrites what it reads. What they import and do not need here is stubbed, and so is the network: replies come from a
file, or from the server that weft asks. A difference that is a known defect of theirs, or meant, has a row with what it
comes to, and beside it one without excuse: its cause away."""

import csv
import io
import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from PIL import ExifTags, Image

from conformance.report import Report
from conformance.server import Asked, Server
from conformance.weave import weft_cli
from weft.arena.files import read_answer_scores, read_verdicts
from weft.arena.tables import CRITERIA, build_agreement_table, build_summary_table
from weft.stats.battles import WIN_RATES, Battle, list_models
from weft.stats.battles import compute_win_rates as rates_of
from weft.store.images import encode_png

ARENA, TASKS = "Interleaved_Arena", "OpenING-benchmark/test_data.jsonl"
HUMAN, SCORES, MODELS = "judge_modelAB_results.json", "gpt-score_results.json", "baseline_models.json"
JUDGES = {
    "GPT-4o": "gpt-judge_modelAB_results.json",
    "IntJudge": "intjudge_rag-judge_modelAB_results.json",
    "IntJudge, new": "intjudge_rag-judge_modelAB_results_new.json",
}
RATED, BATTLES, ASKED = (
    "intjudge_rag-judge_modelAB_results.json",
    "data_instance_modelAB.json",
    "new_data_instance_modelAB.json",
)
SCRIPTS = ("calculate_model_winrate.py", "calculate_agreement.py", "summarize_GPT_scores.py", "GPT_judge_AB.py",
           "sampling_battles_pairs.py", "GPT_score_A.py")  # fmt: skip
PROMPT, SCORE_PROMPT, SCORED = "judge_system.txt", "prompts/detailed_score_system.txt", "data_instance_modelAB_new.json"
FILES = (
    *SCRIPTS,
    TASKS,
    f"prompts/{PROMPT}",
    SCORE_PROMPT,
    *(f"{ARENA}/{one}" for one in (HUMAN, SCORES, MODELS, *JUDGES.values())),
)
NEEDS = ("pandas",)

# how the scripts' tables of pairs are called
MATRICES = dict(zip(WIN_RATES, ("", "_notie", "_withtie0", "_withtie05"), strict=True))
WAYS, MEAN = ("FDT", "with tie", "without tie"), "harmonic mean"
MEANT = {"GPT-4+DALL-E3": "GPT-4o+DALL-E3"}  # the list of unseen models has a name that no file has
WINNERS = ("A", "B", "Tie(A)", "Tie(B)")

RATE_FILES, PAIRS_OF_FILES, SCORE_FILES, REPLIES, AT_ONCE = 400, 300, 6, 10_000, 200
# fmt: off
HAND_MADE = [
    "A", "B", "A is better", "B is better", "Tie(A)", "Tie(B)", "Tie(A better)", "Tie(B better)", "Tie (A is better)", "Tie (B is better)",
    "Tie", "tie", "TIE", "Tie.", "tie(a)", "TIE(B)", "Tie(C)", "Tie:A", "Tie A", "Tied", "Ties", "Ti", "T", "Tie(", "Tie()", "Tie\nA",
    "Both are good", "As both", "Answer: B", "All the same", "Model A", "Model B", "model a", "The better one is "
                                                                                              "B", " A", "\nB",
    "**A**", "**Tie(B)**", '"A"', "'Tie(A)'", "neither", "none", "equal", "I cannot tell", "C", "0", "?", "a", "b", "\u0410", "\u212b",
    "It is a tie (B)", "AB", "BA", "Tie(AB)", "t\u0130e", "\ufb05ie", "\U0001f600", "\U0001f600 B", "Output A", "<OUTPUT_B>", " tie(A)",
]
PIECES = [
    "A", "B", "a", "b", "C", "Tie", "tie", "TIE", "tIe", "Ti", "e", "(", ")", " ", "\n", ":", ".", "**", "'", "is better", "better",
    "Model", "model", "Both", "All", "Answer", "neither", "equal", "I", "the", "0", "\u0391", "\u00e9", "\U0001f600",
]
# fmt: on

# The network: answered from a file, with the coin that is thrown where a reply says nothing on one side for a whole
# run; or by the server.
NETWORK = """
import json, os, random
from types import SimpleNamespace
left = iter(json.load(open(os.environ["REPLIES"])))
random.randint = lambda low, high: (low, high)[int(os.environ["COIN"])]
def request(*_, **__):
    body = {"choices": [{"message": {"content": next(left)}}]}
    return SimpleNamespace(status_code=200, json=lambda: body)
"""
ASKING = """
import json, os, urllib.request
from types import SimpleNamespace
def request(method, url, headers, data):
    came = urllib.request.urlopen(os.environ["JUDGE"] + "/v1/chat/completions", data.encode())
    return SimpleNamespace(status_code=200, json=lambda: json.load(came))
"""
PLOTS = """
from unittest.mock import MagicMock
rcParams = {}
title = tight_layout = show = MagicMock()
def subplots(*_, **__):
    return MagicMock(), MagicMock()
"""
UNUSED = {"numpy.py": "", "pandas.py": "", "openai.py": "OpenAI = None", "tqdm.py": "tqdm = None"}
DRAWING = {"seaborn.py": "", "matplotlib/__init__.py": "", "matplotlib/pyplot.py": PLOTS}
SAMPLE = "import random, sys, sampling_battles_pairs as s; random.seed(0); s.save_distribute_results('made.json', int(sys.argv[1]))"
UNSEEN = "import json, calculate_agreement as c; print(json.dumps(c.UNSEEN_MODELS))"

ITEMS, FOLDERS = 96, {"asked": "OpenING-Benchmark", "left": "left_output", "right": "right_output"}
SAID = [
    "Draw it",
    "na\u00efve caf\u00e9",
    "\u56f3\u3092\u63cf\u304f",
    "two\nlines",
    "a < b & 'c'",
    "\U0001f600",
    "\u00a0odd\u2028",
]
ASKS = [
    "{} <image>",
    "{}<image>",
    "<image> {}",
    "{} <image> {}",
    "{}",
    "<BEGIN> {}",
    "<BEGIN>{} <image>",
    "{} <BEGIN> {}",
]
TELLS = ["{}", "{}", "{}", "{} <image>", "<image>{}", "{}<image> <image>{}", "<BEGIN> {}", "<image>", "", " \n"]
AROUND, SIZES = ["{}", "{}", " {} ", "\n{}\n\n", "\u3000{}\t"], [(640, 480), (300, 900), (512, 512), (64, 48), (7, 1)]
MODES, NO_JPEGS = [*["RGB"] * 60, *["L"] * 20, *["1"] * 10, "RGBA", "LA", "P"], ("-RGBA.jpg", "-LA.jpg", "-P.jpg")
ON_PURPOSE = {
    "no answer": "who has no answer loses without a judge, or gets nothing; the scripts ask",
    "no JPEG": "known defect 8: JPEG has neither transparency nor a palette, and the scripts leave such pictures out; "
    "weft shows them",
    "steps together": "weft keeps words and pictures, not steps: one of neither is none, a picture without words is "
    "that of those before",
    "words alone": "weft sends a message without pictures as one text, a line for each part; the scripts send a list "
    "of texts",
}
NO_ANSWER, *_ = ON_PURPOSE

Records = list[dict[str, Any]]
Numbers = dict[Any, Any]
Task = dict[str, Records]  # steps: what is asked, and what each model made of it


def compare(checkout: Path, data: Path | None, work: Path, python: Path, report: Report) -> None:
    released = Checkout(checkout, work, python)
    from conformance.opening_odd import orders  # it is made of what is below

    for part in (rates, agreement, scores, parsing, sampling, messages, orders):
        if report.wants(part.__name__):
            part(released, report)


class Checkout:
    """The released scripts, run where they are; what they read and write lies in a scratch folder."""

    def __init__(self, path: Path, work: Path, python: Path) -> None:
        self.path, self.work, self._python = path, work, python

    def shipped(self, name: str) -> Records:
        return json.loads((self.path / ARENA / name).read_text())

    def place(self, name: str, files: Mapping[str, Any]) -> Path:
        """A scratch folder with these files: texts and bytes as they are, anything else as JSON."""
        for file, content in files.items():
            path = self.work / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            text = content if isinstance(content, str | bytes) else json.dumps(content)
            path.write_bytes(text.encode() if isinstance(text, str) else text)
        return self.work / name

    def run(self, words: Sequence[Any], place: Path, *, stops: str = "", **env: Any) -> str:
        """What it prints. `stops`: the error that it may end with."""
        given = {**os.environ, "PYTHONUTF8": "1", "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
        given |= {name: str(value) for name, value in env.items()}
        done = subprocess.run(
            [self._python, *map(str, words)], cwd=place, env=given, capture_output=True, text=True, encoding="utf-8"
        )
        if done.returncode and not (stops and stops in done.stderr):
            sys.exit(f"{' '.join(map(str, words))[:200]} ended with {done.returncode}:\n{done.stderr[-2000:]}")
        return done.stdout

    def rates(self, records: Records) -> tuple[Numbers, Numbers]:
        """By rate and model; and by rate, model and rival. A model without a battle that counts is not there."""
        place = self.place("rates", {f"{ARENA}/{RATED}": records, f"{ARENA}/{BATTLES}": []})
        made: Numbers = {}
        lists = re.split(r":\n", self.run([self.path / SCRIPTS[0]], place))[1:]
        for rate, lines in zip(WIN_RATES, lists, strict=True):
            made |= {
                (rate, model): float(value) for model, value in re.findall(r"^(.+): ([\d.]+)%$", lines, re.MULTILINE)
            }
        return made, {key: value for rate, name in MATRICES.items() for key, value in self._matrix(place, rate, name)}

    def _matrix(self, place: Path, rate: str, name: str) -> Iterable[tuple[Any, float]]:
        with (place / ARENA / f"model_win_rates{name}.csv").open(newline="") as file:
            for row in csv.DictReader(file):
                model = row.pop("Model")
                yield from (
                    ((rate, model, rival), float(value.rstrip("%"))) for rival, value in row.items() if value != "N/A"
                )

    def unseen(self) -> list[str]:
        return json.loads(self.run(["-c", UNSEEN], self.work, PYTHONPATH=self.path))

    def agreement(self, judge: Records, human: Records) -> Numbers:
        """By way and part, with how many battles stand behind it. Of no battle the script has 0, and so has a mean with
        it; where both halves are 0 it stops, and has nothing of what would follow."""
        place = self.place("agreement", {f"{ARENA}/{HUMAN}": human, f"{ARENA}/{RATED}": judge})
        said = self.run([self.path / SCRIPTS[1]], place, stops="ZeroDivisionError")
        found: list[tuple[str, str]] = re.findall(r"([\d.]+)%(?: over (\d+))?", said)
        names = [(way, "") for way in WAYS] + [(way, part) for way in WAYS for part in ("unseen", "seen", MEAN)]
        made: Numbers = {}
        for (way, part), (value, count) in zip(names, found, strict=False):
            empty = count == "0" or (not count and not all(made[way, half, "n"] for half in ("seen", "unseen")))
            made[way, part] = None if empty else float(value)
            made |= {(way, part, "n"): int(count)} if count else {}
        return made

    def scores(self, records: Records) -> Numbers:
        """By model and column, with how many entries it keeps: the script puts those in the place of all."""
        place = self.place("scores", {f"{ARENA}/{SCORES}": records})
        self.run([self.path / SCRIPTS[2]], place, PYTHONPATH=self.place("without plots", DRAWING))
        with (place / ARENA / "model_score_summaries.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        made = {
            (row["Model_Name"], name): float(value)
            for row in rows
            for name, value in row.items()
            if name not in ("Rank", "Model_ID", "Model_Name") and value
        }
        kept: Records = json.loads((place / ARENA / SCORES).read_text())
        return made | {
            (name, "items"): float(count) for name, count in Counter(one["model"]["name"] for one in kept).items()
        }

    def verdicts(self, replies: Sequence[str], coin: int) -> list[str]:
        """What the judge keeps of each reply, with every throw of its coin on one side."""
        answer = {
            "conversations": [{"input": [{"text": "x", "image": None}]}, {"output": [{"text": "y", "image": None}]}]
        }
        battle = {"data_id": "1", "model_A": {"id": "0", "name": "x"}, "model_B": {"id": "1", "name": "y"}}
        files = {
            f"{ARENA}/{ASKED}": [battle] * len(replies),
            "x_output/1.json": answer,
            "y_output/1.json": answer,
            "replies.json": replies,
        }
        place = self.place(
            "parsing", files | {f"OpenING-Benchmark/{PROMPT}": (self.path / "prompts" / PROMPT).read_text()}
        )
        results = place / ARENA / "gpt-judge_results.json"
        results.unlink(missing_ok=True)
        stubs = self.place("without network", {**UNUSED, **DRAWING, "requests.py": NETWORK})
        self.run([self.path / SCRIPTS[3]], place, PYTHONPATH=stubs, REPLIES="replies.json", COIN=coin)
        return [one["winner"] for one in json.loads(results.read_text())]

    def sampled(self, battles: int) -> Records:
        """The battles that it makes where so many an item are asked for."""
        models = (self.path / ARENA / MODELS).read_text()
        place = self.place("sampling", {f"{ARENA}/{MODELS}": models, TASKS: (self.path / TASKS).read_text()})
        self.run(["-c", SAMPLE, battles], place, PYTHONPATH=self.path)
        return json.loads((place / "made.json").read_text())


def rates(checkout: Checkout, report: Report) -> None:
    """All four rates of all models and of all pairs; then on random files, and on files with what the judge keeps of a
    tie with a space."""
    for name, file in {"human": HUMAN, **JUDGES}.items():
        records = checkout.shipped(file)
        lost = len(records) - len({key_of(one, "id") for one in records})
        (theirs, pairs), battles = (
            checkout.rates(one_id_each(records) if lost else records),
            battles_in(checkout, records),
        )
        ours = our_rates(battles)
        report.same("rates", f"{name}, models{', an id each' if lost else ''}", theirs, ours)
        matched(name, pairs, our_pairs(battles), report)
        if lost:
            shipped, _ = checkout.rates(records)
            off = max(abs(shipped.get(key, 0) - value) for key, value in ours.items())
            why = f"known defect 3, one id for two models: {lost} of {len(records):,} verdicts overwritten, rates off by up to {off:.2f}"
            report.same("rates", f"{name}, models, ids as shipped", shipped, ours, why)
    chance = random.Random(1)
    files = [random_verdicts(chance, WINNERS) for _ in range(RATE_FILES)]
    report.same("rates", f"{len(files)} random files", *both_rates(checkout, files))
    spaced(checkout, [random_verdicts(chance, (*WINNERS, "Tie ()")) for _ in range(RATE_FILES // 10)], report)


def matched(name: str, theirs: Numbers, ours: Numbers, report: Report) -> None:
    """Tables of pairs. The one without ties is apart: the script's is the one with ties as nothing."""
    report.same("rates", f"{name}, pairs", without(theirs, "without tie"), without(ours, "without tie"))
    wrong = {("with tie 0", *key): value for (_, *key), value in only(theirs, "without tie").items()}
    report.same("rates", f"{name}, pairs without tie, ties as battles", wrong, only(ours, "with tie 0"))
    why = "known defect 5: the script counts ties as battles, so that its table is the one with ties as 0"
    report.same("rates", f"{name}, pairs without tie", only(theirs, "without tie"), only(ours, "without tie"), why)


def spaced(checkout: Checkout, files: Sequence[Records], report: Report) -> None:
    """Ties that lean to neither, since the script cut off to whom."""
    theirs, ours = both_rates(checkout, files)
    report.same("rates", "ties as 'Tie ()', all but FDT", without(theirs, "FDT"), without(ours, "FDT"))
    nobodys = {
        ("FDT", model, at): as_printed(rates_of([to_rival(one, model) for one in battles], model)["FDT"].value)
        for at, battles in enumerate(battles_in(checkout, records) for records in files)
        for model in list_models(battles)
    }
    report.same("rates", "ties as 'Tie ()', FDT, to nobody", only(theirs, "FDT"), nobodys)
    why = "known defect 1: the script gives such a tie to nobody, so that FDT of two models does not come to 100; weft gives each half"
    report.same("rates", "ties as 'Tie ()', FDT", only(theirs, "FDT"), only(ours, "FDT"), why)


def to_rival(battle: Battle, model: str) -> Battle:
    if battle.winner != "Tie":
        return battle
    return Battle(battle.item, battle.first, battle.second, "Tie(B)" if battle.first == model else "Tie(A)")


def both_rates(checkout: Checkout, files: Sequence[Records]) -> tuple[Numbers, Numbers]:
    theirs: Numbers = {}
    ours: Numbers = {}
    for at, records in enumerate(files):
        theirs |= {(*key, at): value for key, value in checkout.rates(records)[0].items()}
        ours |= {(*key, at): value for key, value in our_rates(battles_in(checkout, records)).items()}
    return theirs, ours


def agreement(checkout: Checkout, report: Report) -> None:
    """Each judge with people: with the script's list of unseen models, with that list as it is meant, and on random
    files."""
    human, unseen = checkout.shipped(HUMAN), checkout.unseen()
    meant = [MEANT.get(name, name) for name in unseen]
    for name, file in JUDGES.items():
        judge = checkout.shipped(file)
        theirs, mended = checkout.agreement(judge, human), our_agreement(checkout, judge, human, meant)
        report.same(
            "agreement", f"{name}, its list of unseen models", theirs, our_agreement(checkout, judge, human, unseen)
        )
        report.same(
            "agreement", f"{name}, that list mended", checkout.agreement(misspelt(judge), misspelt(human)), mended
        )
        figures = [
            "/".join(f"{some['FDT', half]:.2f}" for half in ("unseen", "seen", MEAN)) for some in (theirs, mended)
        ]
        why = f"known defect 4: FDT unseen/seen/mean {figures[0]} with a misspelt model among the seen, {figures[1]} mended"
        report.same("agreement", f"{name}, as shipped and mended", theirs, mended, why)
    chance = random.Random(2)
    theirs, ours = both_agreements(
        checkout, [random_pair(chance, WINNERS, unseen) for _ in range(PAIRS_OF_FILES)], unseen
    )
    for what, means in (("", False), (", harmonic means", True)):
        sides = ({key: value for key, value in some.items() if (key[1] == MEAN) == means} for some in (theirs, ours))
        report.same("agreement", f"{PAIRS_OF_FILES} random pairs of files{what}", next(sides), next(sides))
    pairs = [random_pair(chance, (*WINNERS, "Tie"), unseen) for _ in range(PAIRS_OF_FILES // 10)]
    theirs, ours = both_agreements(checkout, pairs, unseen)
    report.same("agreement", "bare ties, with and without tie", without(theirs, "FDT"), without(ours, "FDT"))
    _, given = both_agreements(checkout, pairs, unseen, bare="Tie(A)")
    report.same("agreement", "bare ties, FDT, to A", only(theirs, "FDT"), only(given, "FDT"))
    why = "known defect 7: the script gives a bare tie to A; in weft it agrees with a bare tie alone"
    report.same("agreement", "bare ties, FDT", only(theirs, "FDT"), only(ours, "FDT"), why)


def both_agreements(
    checkout: Checkout, pairs: Sequence[tuple[Records, Records]], unseen: Sequence[str], bare: str = "Tie"
) -> tuple[Numbers, Numbers]:
    """`bare`: what weft has in the place of a tie that leans to neither. Where the script stops, only what it said
    before is compared."""
    theirs: Numbers = {}
    ours: Numbers = {}
    for at, (judge, human) in enumerate(pairs):
        found = checkout.agreement(judge, human)
        read = (
            [one | {"winner": bare if one["winner"] == "Tie" else one["winner"]} for one in some]
            for some in (judge, human)
        )
        mine = our_agreement(checkout, next(read), next(read), unseen)
        theirs |= {(*key, at): value for key, value in found.items()}
        ours |= {(*key, at): mine[key] for key in found}
    return theirs, ours


def scores(checkout: Checkout, report: Report) -> None:
    """Means, Overall and how many entries are left, of the shipped file and of random ones with entries that are
    dropped."""
    shipped = checkout.shipped(SCORES)
    report.same("scores", "shipped", checkout.scores(shipped), our_scores(checkout, shipped))
    chance = random.Random(3)
    theirs: Numbers = {}
    ours: Numbers = {}
    for at in range(SCORE_FILES):
        records = random_scores(chance)
        theirs |= {(*key, at): value for key, value in checkout.scores(records).items()}
        ours |= {(*key, at): value for key, value in our_scores(checkout, records).items()}
    report.same("scores", f"{SCORE_FILES} random files", theirs, ours)


def parsing(checkout: Checkout, report: Report) -> None:
    """Hand-made and random replies, read by both. Those that the script decides by a coin are those whose verdict turns
    with it."""
    from weft.arena.official_reading import read_released_verdict

    replies = random_replies(REPLIES)
    off: list[str] = []
    kept: Counter[str] = Counter()
    for said, theirs in zip(replies, verdicts_without_coin(checkout, replies), strict=True):
        ours = read_released_verdict(said)
        kept["a coin" if theirs is None else theirs if theirs in WINNERS else "another string"] += 1
        off += [f"{said!r}: released {theirs!r}, weft {ours!r}"] if theirs != ours else []
    report.count("parsing", "replies", len(replies) - len(off), len(replies), examples=off)
    report.say(
        f"parsing, known defect 1: of these the script makes "
        f"{', '.join(f'{name} {count:,}' for name, count in kept.most_common())}"
    )


def random_replies(count: int) -> list[str]:
    chance = random.Random(4)
    more = ("".join(chance.choices(PIECES, k=chance.randint(1, 7))) for _ in range(count - len(HAND_MADE)))
    return [*HAND_MADE, *more]


def verdicts_without_coin(checkout: Checkout, replies: Sequence[str]) -> list[str | None]:
    """What the script keeps of each; None where it throws a coin."""
    made: list[str | None] = []
    for start in range(0, len(replies), AT_ONCE):  # the script writes all of its results after each
        some = replies[start : start + AT_ONCE]
        sides = zip(checkout.verdicts(some, 0), checkout.verdicts(some, 1), strict=True)
        made += [heads if heads == tails else None for heads, tails in sides]
    return made


def sampling(checkout: Checkout, report: Report) -> None:
    """The counts alone: draws cannot be compared."""
    for battles in (2, 3, 4):
        made = checkout.sampled(battles)
        items = len({one["data_id"] for one in made})
        known = Counter((one["data_id"], *sorted(one[side]["name"] for side in ("model_A", "model_B"))) for one in made)
        excess = (
            f"known defect 6, {len(made) - battles * items:,} too many"
            if len(made) != battles * items
            else "as many as are due"
        )
        report.say(
            f"sampling, {battles} an item: {len(made):,} on {items:,} items ({excess}); {len(made) - len(known):,} "
            "repeat another"
        )


class Apart(Server):
    """Neighbouring texts are parts of their own."""

    def _message(self, message: dict[str, Any], jpeg: bool) -> tuple[str, tuple[str, ...]]:
        parts: Records = [{"text": message["content"]}] if isinstance(message["content"], str) else message["content"]
        read = [
            part["text"] if "text" in part else self._pixels(part["image_url"]["url"].partition(",")[2], jpeg)
            for part in parts
        ]
        return message["role"], tuple(read)


def messages(checkout: Checkout, report: Report) -> None:
    """Texts to the letter, pictures by their pixels. Where they differ on purpose, the scripts are run again without
    the cause: on pictures that JPEG can hold, on steps as weft has them; and what they send without a picture is made
    one text. Of no answer weft asks nothing."""
    shutil.rmtree(checkout.work / "messages", ignore_errors=True)
    tasks, pictures = made_up(random.Random(5))
    with Apart() as server:
        place = checkout.place("messages", layout(checkout, tasks, pictures))
        ours, battles = sent_by_weft(checkout, place, server)
        theirs = sent_by_scripts(checkout, place, battles, server)
        opaque = {
            name: encode_png(Image.open(io.BytesIO(pictures[name])).convert("RGB"))
            for name in pictures
            if name.endswith(NO_JPEGS)
        }
        place = checkout.place("messages/mended", layout(checkout, [kept(task) for task in tasks], pictures | opaque))
        mended = sent_by_scripts(checkout, place, battles, server, in_one=True)
    for what in ("battles", "single answers"):
        some: dict[str, list[Any]] = {cause: [] for cause in ("", *ON_PURPOSE)}
        for about in dict.fromkeys(about for about, _ in theirs if about[0] == what):
            some[cause_of(tasks[int(about[1])], about[2:])].append(about)
        mine = among(ours, some[""] + some[NO_ANSWER])
        report.same("messages", f"{what}, parts of {len(some[''])} requests", among(theirs, some[""]), mine)
        for cause, why in ON_PURPOSE.items():
            agree = sum(among(theirs, [about]) == among(ours, [about]) for about in some[cause])
            report.count("messages", f"{what}, {cause}", agree, len(some[cause]), why=why)
            if cause != NO_ANSWER:
                report.same(
                    "messages", f"{what}, {cause}, mended, parts", among(mended, some[cause]), among(ours, some[cause])
                )


def cause_of(task: Task, models: Sequence[str]) -> str:
    """What makes a request about it differ, if anything does."""
    whole, left = ([one[who] for who in ("asked", *models)] for one in (task, kept(task)))
    shown = [step["image"] for steps in whole for step in steps if step["image"]]
    found = (not all(left), any(name.endswith(NO_JPEGS) for name in shown), whole != left, not shown)
    return next((cause for cause, there in zip(ON_PURPOSE, found, strict=True) if there), "")


def sent_by_weft(checkout: Checkout, place: Path, server: Server) -> tuple[Numbers, list[list[str]]]:
    """And the battles: the item, who stands first, who second."""
    home, scores = place / "home", {name: {"Score": 5, "Justification": "x"} for name in CRITERIA}
    server.answers |= {"battle": lambda _: "A", **dict.fromkeys(("scores", *FOLDERS), lambda _: json.dumps(scores))}
    given, judge = (
        ("--home", home, "--prompts", f"official:{checkout.path}", "--judge"),
        f"openai-chat/gpt-4o@{server.url}/weft",
    )
    for model in ("left", "right"):
        data = ("--benchmark", "opening", "--data", place / FOLDERS["asked"])
        weft_cli("score", place / FOLDERS[model], *data, *given, f"{judge}/{model}/v1")
    weft_cli("arena", "run", "opening-left", "opening-right", "--one-order", *given, f"{judge}/battle/v1")
    weft_cli("arena", "export", "--out", home / "battles.json", "--home", home)
    fought = [key_of(one, "name") for one in json.loads((home / "battles.json").read_text())]
    battles = [[item, *(re.sub(".*/|_output$", "", name) for name in names)] for item, *names in fought]
    return parts_of((one, ["left", "right"] if one.label == "battle" else [one.label]) for one in server.asked), battles


def sent_by_scripts(
    checkout: Checkout, place: Path, battles: list[list[str]], server: Server, *, in_one: bool = False
) -> Numbers:
    """Of the two answers in a battle only the first is taken as a single one: before the second the script tags what
    was asked again."""
    both = [*battles, *([item, second, first] for item, first, second in battles)]
    lists = {ASKED: battles, SCORED: both}
    checkout.place(
        str(place), {f"{ARENA}/{name}": [verdict(item, pair) for item, *pair in some] for name, some in lists.items()}
    )
    stubs = checkout.place("to the server", {**UNUSED, **DRAWING, "requests.py": ASKING})
    server.asked.clear()
    for label, script, *words in (("battle", SCRIPTS[3]), ("scores", SCRIPTS[5], "--mode", "pairwise_file")):
        checkout.run(
            [checkout.path / script, *words],
            place,
            PYTHONPATH=stubs,
            JUDGE=f"{server.url}/released/{label}",
            no_proxy="*",
        )
    sent = [(one, ["left", "right"]) for one in server.of("released", "battle")]
    sent += [(one, [first]) for one, (_, first, _) in zip(server.of("released", "scores")[::2], both, strict=True)]
    return parts_of(sent, in_one)


def parts_of(sent: Iterable[tuple[Asked, list[str]]], in_one: bool = False) -> Numbers:
    """Roles and parts, by what they are about and their place. `in_one`: all that the user says, where no picture is
    shown."""
    made: Numbers = {}
    for asked, models in sent:
        about = (
            "battles" if len(models) > 1 else "single answers",
            re.findall(r"Show \((\d+)\)", asked.texts)[0],
            *models,
        )
        read = {role: ["\n".join(parts)] if in_one and not asked.pictures else parts for role, parts in asked.messages}
        made |= {
            (about, at): piece
            for at, piece in enumerate(piece for role, parts in read.items() for piece in (role, *parts))
        }
    return made


def among(sent: Numbers, some: Iterable[Any]) -> Numbers:
    return {(*about, at): part for (about, at), part in sent.items() if about in set(some)}


def our_rates(battles: Sequence[Battle]) -> Numbers:
    """As they are printed, without a rate that has nothing to divide by."""
    found = {model: rates_of(battles, model) for model in list_models(battles)}
    rates = {(rate, model): as_printed(cells[rate].value) for model, cells in found.items() for rate in WIN_RATES}
    return {key: value for key, value in rates.items() if value is not None}


def as_printed(value: float | None) -> float | None:
    """With as many digits as the scripts print."""
    return None if value is None else round(value, 2)


def our_pairs(battles: Sequence[Battle]) -> Numbers:
    met: dict[frozenset[str], list[Battle]] = {}
    for one in battles:
        met.setdefault(frozenset((one.first, one.second)), []).append(one)
    made: Numbers = {}
    for pair, some in met.items():
        made |= {(rate, model, *(pair - {model})): value for (rate, model), value in our_rates(some).items()}
    return made


def our_agreement(checkout: Checkout, judge: Records, human: Records, unseen: Sequence[str]) -> Numbers:
    table = build_agreement_table(
        {"judge": battles_in(checkout, judge)}, battles_in(checkout, human), unseen, "agreement"
    )
    made: Numbers = {}
    for row in table.rows:
        made |= {(way, row.subset): as_printed(row.cells[way].value) for way in WAYS}
        made |= {(way, row.subset, "n"): row.cells[way].scored for way in WAYS if row.subset != MEAN}
    return made


def our_scores(checkout: Checkout, records: Records) -> Numbers:
    path = checkout.place("weft", {"scores.json": records}) / "scores.json"
    table = build_summary_table(read_answer_scores(path).entries, "scores")
    return {(row.name, name): cell.value for row in table.rows for name, cell in row.cells.items()}


def battles_in(checkout: Checkout, records: Records) -> Sequence[Battle]:
    """By way of a file, as a user has them."""
    return read_verdicts(checkout.place("weft", {"verdicts.json": records}) / "verdicts.json").battles


def random_verdicts(chance: random.Random, winners: Sequence[str]) -> Records:
    """Few battles or many, in both orders, some judged twice, and winners in any proportion: all ties, or none."""
    names = [f"model {at}" for at in range(chance.randint(2, 8))]
    weights = [chance.choice((0.0, 0.2, 1.0, 3.0)) + 0.01 for _ in winners]
    items = chance.randint(1, 60)
    made: Records = []
    for _ in range(chance.choice((1, 3, 10, 40, 150, 400))):
        made.append(verdict(chance.randrange(items), chance.sample(names, 2), chance.choices(winners, weights)[0]))
    return made


def random_pair(chance: random.Random, winners: Sequence[str], unseen: Sequence[str]) -> tuple[Records, Records]:
    """A judge and people, of one mind more or less often. Each lacks some battles, and has changed its mind about
    some."""
    names = [*chance.sample(unseen, 2), *(f"model {at}" for at in range(chance.randint(2, 6)))]
    pairs = [chance.sample(pair, 2) for pair in ([a, b] for at, a in enumerate(names) for b in names[:at])]
    alike, items = chance.random(), chance.choice((2, 10, 50))
    judge: Records = []
    human: Records = []
    for item in range(items):
        for pair in chance.sample(pairs, chance.randint(1, min(6, len(pairs)))):
            said = chance.choice(winners)
            human += [verdict(item, pair, said)] * (chance.random() < 0.95)
            judge += [verdict(item, pair, chance.choice(winners))] * (chance.random() < 0.1)
            judge += [verdict(item, pair, said if chance.random() < alike else chance.choice(winners))] * (
                chance.random() < 0.95
            )
    return judge or human[:1], human or judge[:1]


def random_scores(chance: random.Random) -> Records:
    """Many models with a few entries each; some entries have a criterion less, a null, nothing, or what the prompt
    shows around it."""
    made: Records = []
    for model in range(60):
        for item in range(chance.choice((1, 3, 20, 90))):
            score: Any = {name: {"Score": chance.randint(0, 20) / 2, "Justification": "x"} for name in CRITERIA}
            odd = chance.random()
            if odd < 0.05:
                score.pop(chance.choice(CRITERIA))
            elif odd < 0.1:
                score[chance.choice(CRITERIA)]["Score"] = None
            elif odd < 0.15:
                score = chance.choice((None, {}, {"scores": score}))
            made.append({"data_id": str(item), "model": {"id": str(model), "name": f"model {model}"}, "score": score})
    return made


def made_up(
    chance: random.Random, items: int = ITEMS, draw: Callable[[random.Random, str], bytes] | None = None
) -> tuple[list[Task], dict[str, bytes]]:
    """With pictures by their files. In every second item all steps can be told from words and pictures."""
    tasks: list[Task] = []
    pictures: dict[str, bytes] = {}
    for at in range(items):
        task: Task = {who: [] for who in FOLDERS}
        for who, steps in task.items():
            forms, path = ([*ASKS, "<image>", "<BEGIN> <image>"], "./images/") if who == "asked" else (TELLS, "")
            for number in range(chance.choice((1, 1, 2, 3) if who == "asked" else (0, 1, 2, 2, 3, 3, 4, 4))):
                text = chance.choice(AROUND).format(chance.choice(forms).format(*chance.choices(SAID, k=2)))
                mode = chance.choice(MODES) if chance.random() < 0.4 else ""
                steps.append({"text": text, "image": f"{path}{at:07}-{number}-{mode}.jpg" if mode else None})
                pictures |= {f"{FOLDERS[who]}/{steps[-1]['image']}": (draw or picture)(chance, mode)} if mode else {}
        chance.choice(task["asked"])["text"] = chance.choice(ASKS).format(f"Show ({at})", "all of it")
        tasks.append(kept(task) if at % 2 else task)
    return tasks, pictures


def picture(chance: random.Random, mode: str) -> bytes:
    """Some are JPEGs, with a note that they are to be turned."""
    out, exif = io.BytesIO(), Image.Exif()
    exif[ExifTags.Base.Orientation] = 6
    made = (
        Image.frombytes("RGBA", (4, 3), chance.randbytes(48))
        .resize(chance.choice(SIZES))
        .convert("RGB" if mode == "P" else mode)
    )
    made.convert(mode).save(out, "JPEG" if mode in ("RGB", "L") and chance.random() < 0.5 else "PNG", exif=exif)
    return out.getvalue()


def kept(task: Task) -> Task:
    """With steps as they can be told from words and pictures alone."""
    made: Task = {who: [] for who in task}
    for who, steps in task.items():
        for step in steps:
            words = re.sub("<BEGIN>|<image>" if who == "asked" else "$^", "", step["text"].strip())
            if words or (step["image"] and (not made[who] or made[who][-1]["image"])):
                made[who].append(step)
            elif step["image"]:
                made[who][-1] = made[who][-1] | {"image": step["image"]}
    return made


def layout(checkout: Checkout, tasks: Sequence[Task], pictures: Mapping[str, bytes]) -> dict[str, Any]:
    """Files as the scripts look for them; weft reads the same. What was asked is its own reference, which nobody looks
    at."""
    files: dict[str, Any] = {**pictures, SCORE_PROMPT: (checkout.path / SCORE_PROMPT).read_bytes()}
    files |= {f"{FOLDERS['asked']}/{PROMPT}": (checkout.path / "prompts" / PROMPT).read_bytes()}
    lines: dict[str, list[str]] = {who: [] for who in FOLDERS}
    for at, task in enumerate(tasks):
        for who, steps in task.items():
            lines[who].append(
                json.dumps({"total_uid": f"{at:07}", "conversations": [{"input": task["asked"]}, {"output": steps}]})
            )
            files |= {f"{FOLDERS[who]}/{at:07}.json": lines[who][-1]}
    return files | {f"{FOLDERS['asked']}/test_data.jsonl": "\n".join(lines["asked"])}


def verdict(item: int | str, pair: Sequence[str], winner: str = "") -> dict[str, Any]:
    first, second = ({"id": name, "name": name} for name in pair)
    return {"data_id": str(item), "model_A": first, "model_B": second, "winner": winner}


def one_id_each(records: Records) -> Records:
    return [
        one | {side: {"id": one[side]["name"], "name": one[side]["name"]} for side in ("model_A", "model_B")}
        for one in records
    ]


def misspelt(records: Records) -> Records:
    """With names as the script's list has them."""
    back = {right: wrong for wrong, right in MEANT.items()}
    return [
        one | {side: {"name": back.get(one[side]["name"], one[side]["name"])} for side in ("model_A", "model_B")}
        for one in records
    ]


def key_of(record: dict[str, Any], field: str) -> tuple[str, ...]:
    return record["data_id"], record["model_A"][field], record["model_B"][field]


def only(numbers: Numbers, rate: str) -> Numbers:
    return {key: value for key, value in numbers.items() if key[0] == rate}


def without(numbers: Numbers, rate: str) -> Numbers:
    return {key: value for key, value in numbers.items() if key[0] != rate}
