"""OpenING: random verdicts, scores and replies through the released win rates, agreement, summary and judge; and what
is sent about random answers, in battles and one by one."""

import ast
import io
import json
import random
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from PIL import Image

import weft
from conformance.generated.stand_in import evaluate
from conformance.images import digest_of, paint
from conformance.opening import (
    ASKED,
    ASKING,
    DRAWING,
    FOLDERS,
    NO_ANSWER,
    SCORED,
    SCRIPTS,
    UNUSED,
    WINNERS,
    Apart,
    Checkout,
    Records,
    Task,
    battles_in,
    cause_of,
    kept,
    layout,
    made_up,
    our_agreement,
    our_pairs,
    our_rates,
    our_scores,
    random_pair,
    random_replies,
    random_scores,
    random_verdicts,
    verdict,
    verdicts_without_coin,
)
from conformance.printed import official_cells
from conformance.recording import Explained, Facts, requests_of, rows_of
from conformance.server import Asked
from conformance.weave import settings
from weft.arena.official_reading import read_released_verdict
from weft.arena.tables import CRITERIA
from weft.benchmarks.opening.official_questions import SCRIPTS as ASKING_SCRIPTS
from weft.benchmarks.opening.official_questions import SYSTEM_PROMPTS, read_closing_sentence, read_official_rubrics
from weft.store.images import encode_png

REPOSITORY = "LanceZPF/OpenING"
UNSEEN = [f"unseen {at}" for at in range(4)]
CLOSING = {"battle": "\nWho wins: ", "criteria": "\nHow good: "}
RATE_FILES, PAIR_FILES, PAIRS_OF_FILES, REPLIES, ITEMS = 24, 4, 12, 600, 16
SEVEN = json.dumps({name: {"Score": 5, "Justification": "x"} for name in CRITERIA})
ANSWERS = {"battle": lambda _: "A", **dict.fromkeys(("scores", "left", "right"), lambda _: SEVEN)}
EXPLAINED = (
    Explained("opening-missing-answer-loses", "*, no answer", released="asked", weft="nothing"),
    Explained("opening-ties-in-the-denominator", "rates of pairs, *", "* without tie *"),
    Explained("opening-bare-tie", "rates, a bare tie", "* FDT*"),
    Explained("opening-bare-tie", "agreement, a bare tie", "* FDT *"),
)


def released(checkout: Path, python: Path, work: Path) -> Facts:
    scripts = Checkout(reword(checkout, work / "reworded"), work / "place", python)
    scripts.work.mkdir()
    for which in CLOSING:
        assert read_official_rubrics(scripts.path, which).texts == read_official_rubrics(stand_in(work), which).texts
    facts: Facts = {}
    for part, files in rate_files().items():
        for at, records in enumerate(files):
            rates, pairs = scripts.rates(records)
            facts.setdefault(f"rates, {part}", {}).update(lined(at, rates))
            if part == "random" and at < PAIR_FILES:
                facts.setdefault("rates of pairs, random", {}).update(lined(at, pairs))
    for part, pairs_of_files in agreement_files().items():
        for at, (judge, human) in enumerate(pairs_of_files):
            facts.setdefault(f"agreement, {part}", {}).update(lined(at, scripts.agreement(judge, human)))
    facts["scores"] = lined("", scripts.scores(score_file()))
    facts["replies"] = rows_of(verdicts_without_coin(scripts, random_replies(REPLIES)), 20)
    facts["odd scores, cells"] = scored_by_scripts(scripts)
    return facts | sent_by_scripts(scripts)


def weft_facts(work: Path) -> Facts:
    here = Checkout(stand_in(work), work / "place", Path())
    facts: Facts = {}
    for part, files in rate_files().items():
        for at, records in enumerate(files):
            battles = battles_in(here, records)
            facts.setdefault(f"rates, {part}", {}).update(lined(at, our_rates(battles)))
            if part == "random" and at < PAIR_FILES:
                facts.setdefault("rates of pairs, random", {}).update(lined(at, our_pairs(battles)))
    for part, pairs_of_files in agreement_files().items():
        for at, (judge, human) in enumerate(pairs_of_files):
            facts.setdefault(f"agreement, {part}", {}).update(lined(at, our_agreement(here, judge, human, UNSEEN)))
    facts["scores"] = lined("", our_scores(here, score_file()))
    facts["replies"] = rows_of([read_released_verdict(said) for said in random_replies(REPLIES)], 20)
    facts["odd scores, cells"] = scored_by_weft(here)
    return facts | sent_by_weft(here)


# random files


def rate_files() -> dict[str, list[Records]]:
    chance = random.Random(1)
    files = [random_verdicts(chance, WINNERS) for _ in range(RATE_FILES)]
    return {"random": files, "a bare tie": [random_verdicts(chance, (*WINNERS, "Tie ()")) for _ in range(8)]}


def agreement_files() -> dict[str, list[tuple[Records, Records]]]:
    chance = random.Random(2)
    pairs = [random_pair(chance, WINNERS, UNSEEN) for _ in range(PAIRS_OF_FILES)]
    return {"random": pairs, "a bare tie": [random_pair(chance, (*WINNERS, "Tie"), UNSEEN) for _ in range(4)]}


def score_file() -> Records:
    return [record for record in random_scores(random.Random(3)) if int(record["model"]["id"]) < 12]


def lined(file: int | str, numbers: Mapping[Any, Any]) -> dict[str, list[Any]]:
    """Numbers by all but the last word of their key, sorted by that word."""
    made: dict[str, list[Any]] = {}
    for key in sorted(numbers, key=lambda key: tuple(map(str, key))):
        line = made.setdefault(" ".join(map(str, (file, *key[:-1], ""))), [])
        line.append([str(key[-1]), numbers[key]])
    return {key: [f"{name}: {value}" for name, value in line] for key, line in made.items()}


# scores that a judge gives


def odd_scores(asked: Asked) -> str:
    """By the item alone."""
    item = int(asked.texts.partition("Show (")[2].partition(")")[0])
    chance = random.Random(item)
    scores: dict[str, Any] = {name: {"Score": chance.randint(0, 10), "Justification": "x"} for name in CRITERIA}
    odd = (7.5, 11, -1, None, "7", True)
    if item < len(odd):
        scores[CRITERIA[item % len(CRITERIA)]]["Score"] = odd[item]
    elif item == len(odd):
        del scores[CRITERIA[0]]
    elif item == len(odd) + 1:
        scores = {"scores": scores}
    return json.dumps(scores)


def told_items() -> list[Task]:
    answer: Records = [{"text": "So it is.", "image": None}]
    return [
        {who: [{"text": f"Show ({at})", "image": None}] if who == "asked" else answer for who in FOLDERS}
        for at in range(12)
    ]


def scored_by_scripts(scripts: Checkout) -> dict[str, float]:
    with Apart({"scores": odd_scores}, digest=digest_of) as server:
        battles = [(f"{at:07}", "left", "right") for at in range(len(told_items()))]
        listed = {f"Interleaved_Arena/{SCORED}": [verdict(item, pair) for item, *pair in battles]}
        place = scripts.place("scored", layout(scripts, told_items(), {}) | listed)
        stubs = scripts.place("to the server", {**UNUSED, **DRAWING, "requests.py": ASKING})
        address = f"{server.url}/released/scores"
        words = (scripts.path / SCRIPTS[5], "--mode", "pairwise_file")
        scripts.run(words, place, PYTHONPATH=stubs, JUDGE=address, no_proxy="*")
    records: Records = json.loads((place / "Interleaved_Arena" / "gpt-score_results_new.json").read_text())
    found = scripts.scores([one for one in records if one["model"]["name"] == "left"])
    return {name: value for (_, name), value in found.items() if name != "items"}


def scored_by_weft(here: Checkout) -> dict[str, float]:
    with Apart({"scores": odd_scores}, digest=digest_of) as server:
        place, home = here.place("scored", layout(here, told_items(), {})), here.work / "scored home"
        judge, outputs = f"openai-chat/gpt-4o@{server.url}/weft/scores/v1", f"folder/{place / FOLDERS['left']}"
        run = evaluate("opening", place / FOLDERS["asked"], home, outputs, judge, prompts=f"official:{here.path}")
    return {column: value for (title, _, column), value in official_cells(run, 2).items() if title == "single answers"}


# what is sent


def tasks_and_pictures() -> tuple[list[Task], dict[str, bytes]]:
    return made_up(random.Random(5), ITEMS, draw_picture)


def draw_picture(chance: random.Random, mode: str) -> bytes:
    out, sizes = io.BytesIO(), [(64, 48), (32, 96), (512, 512)]
    picture = paint(str(chance.random()), chance.choice(sizes))
    picture.convert(mode, dither=Image.Dither.NONE).save(out, "PNG")
    return out.getvalue()


def sent_by_scripts(scripts: Checkout) -> Facts:
    tasks, pictures = tasks_and_pictures()
    with Apart(ANSWERS, digest=digest_of) as server:
        ask(scripts, "messages", layout(scripts, tasks, pictures), server)
        facts = sort_requests(tasks, server.asked, mended=False)
        server.asked.clear()
        opaque = {name: encode_png(Image.open(io.BytesIO(data)).convert("RGB")) for name, data in pictures.items()}
        mended = [kept(task) for task in tasks]
        ask(scripts, "mended", layout(scripts, mended, opaque), server)
        return {**facts, **sort_requests(tasks, server.asked, mended=True)}


def ask(scripts: Checkout, name: str, files: dict[str, Any], server: Apart) -> None:
    """Each battle in both orders; the second answer of a pair is tagged again by the script that scores one, so that
    only first ones are taken."""
    place = scripts.place(name, files)
    battles = [(f"{at:07}", *pair) for at in range(ITEMS) for pair in (("left", "right"), ("right", "left"))]
    lists = {ASKED: battles, SCORED: battles}
    listed = {
        f"Interleaved_Arena/{file}": [verdict(item, pair) for item, *pair in some] for file, some in lists.items()
    }
    scripts.place(name, listed)
    stubs = scripts.place("to the server", {**UNUSED, **DRAWING, "requests.py": ASKING})
    for label, script, *words in (("battle", SCRIPTS[3]), ("scores", SCRIPTS[5], "--mode", "pairwise_file")):
        address = f"{server.url}/released/{label}"
        scripts.run([scripts.path / script, *words], place, PYTHONPATH=stubs, JUDGE=address, no_proxy="*")
    scored = zip(server.of("released", "scores")[::2], battles, strict=True)
    first = [replace(one, label=model) for one, (_, model, _) in scored]
    server.asked[:] = [*server.of("released", "battle"), *first]


def sent_by_weft(here: Checkout) -> Facts:
    tasks, pictures = tasks_and_pictures()
    place, home = here.place("messages", layout(here, tasks, pictures)), here.work / "home"
    with Apart(ANSWERS, digest=digest_of) as server:
        judge, prompts = f"openai-chat/gpt-4o@{server.url}/weft", f"official:{here.path}"
        runs = [
            evaluate("opening", place / FOLDERS["asked"], home, f"folder/{place / FOLDERS[model]}", f"{judge}/{model}/v1", prompts=prompts)
            for model in ("left", "right")
        ]  # fmt: skip
        weft.battle(runs, judge=f"{judge}/battle/v1", prompts=prompts, home=home, preflight=False)
        facts = sort_requests(tasks, server.asked, mended=False)
        return {**facts, **sort_requests(tasks, server.asked, mended=True)}


def sort_requests(tasks: Sequence[Task], asked: Iterable[Asked], *, mended: bool) -> Facts:
    """By what is asked, and by what makes weft ask otherwise on purpose. Where that can be mended, the scripts are asked
    about mended answers, and are to send the same; `mended`: those alone."""
    facts: Facts = {}
    for one in asked:
        item = tasks[int(one.texts.partition("Show (")[2].partition(")")[0])]
        battle = one.label == "battle"
        cause = cause_of(item, ("left", "right") if battle else (one.label,))
        what = "battles" if battle else "single answers"
        if cause in ("", NO_ANSWER) if not mended else cause not in ("", NO_ANSWER):
            part = f"{what}{', ' if cause else ''}{cause}{', mended' if mended else ''}"
            facts.setdefault(part, {}).update(requests_of([in_one(one) if mended else one]))
        if battle and not mended:
            facts.setdefault("battles, settings", {})[settings(one)] = "sent"
    return facts


def in_one(asked: Asked) -> Asked:
    """With all that the user says as one text, where no picture is shown: weft sends such a message so."""
    if asked.pictures:
        return asked
    return replace(asked, messages=tuple((role, ("\n".join(parts),)) for role, parts in asked.messages))


# the stand-in, and a copy of the scripts with its words


def stand_in(work: Path) -> Path:
    checkout = work / "stand-in"
    (checkout / "prompts").mkdir(parents=True, exist_ok=True)
    for which, text in CLOSING.items():
        (checkout / SYSTEM_PROMPTS[which][0]).write_text(f"Judge by {which}.")
        (checkout / ASKING_SCRIPTS[which]).write_text(f"closing = {text!r}\n")
    return checkout


def reword(checkout: Path, copy: Path) -> Path:
    copy.mkdir()
    for script in SCRIPTS:
        shutil.copy(checkout / script, copy / script)
    (copy / "prompts").mkdir()
    for which, text in CLOSING.items():
        (copy / SYSTEM_PROMPTS[which][0]).write_text(f"Judge by {which}.")
        path, theirs = copy / ASKING_SCRIPTS[which], read_closing_sentence(checkout, which)
        module = ast.parse(path.read_text())
        for node in ast.walk(module):
            if isinstance(node, ast.Constant) and node.value == theirs:
                node.value = text
        path.write_text(ast.unparse(module))
    path = copy / SCRIPTS[1]
    module = ast.parse(path.read_text())
    for node in module.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "UNSEEN_MODELS":
            node.value = ast.parse(repr(UNSEEN), mode="eval").body
    path.write_text(ast.unparse(module))
    return copy
