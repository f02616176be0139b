"""Homes that somebody else made: every command that is given one ends in time, in one line if it cannot be used, writes
nowhere else, and takes nothing from a sound home that it is merged into."""

import asyncio
import json
import random
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from fuzz import Broken
from fuzz.commands import run_command
from fuzz.files import _answers, _judges
from fuzz.traps import OUTSIDE, TRAPS
from tool_results import lmms_run
from weft import api
from weft.benchmarks import load_benchmark
from weft.cli.app import app
from weft.judge_eval.annotation.questions import open_study_source
from weft.judge_eval.annotation.study import begin_study, study_settings
from weft.judge_eval.calibration import check as check_judge
from weft.store.annotations import Annotation, Annotations
from weft.store.blobs import Blobs
from weft.store.schema import journal_file
from weft.types import Verdict
from weft.workspace import read_only_journal
from weft_tabletop.make import make

Rows = tuple[str, frozenset[tuple[object, ...]]]  # the state of a run, and its turns and verdicts
HOME = ("--home", "{home}")
COMMANDS: dict[str, list[str]] = {  # each of which works in a sound home
    "runs": ["runs", *HOME],
    "runs tag": ["runs", "tag", "{run}", "ours", *HOME],
    "runs rm": ["runs", "rm", "{run}", "--yes", *HOME],
    "report": ["report", "--single-file", *HOME],
    "report last": ["report", "last", *HOME],
    "report md": ["report", "-f", "md", *HOME],
    "report parquet": ["report", "-f", "parquet", *HOME],
    "report of several": ["report", "{run}", "{second}", "{third}", "--by", "model", "-f", "latex", *HOME],
    "compare": ["compare", "{run}", "{second}", *HOME],
    "correlate": ["correlate", "{run}", "{second}", "{third}", *HOME],
    "distribution": ["distribution", "{run}", *HOME],
    "figure": ["figure", "{run}", "{second}", "{sample}", *HOME],
    "labels": ["labels", "{run}", *HOME],
    "relative": ["relative", "{run}", "{second}", "--baseline", "{run}", *HOME],
    "show": ["show", "{run}", "{sample}", *HOME],
    "show problems": ["show", "last", *HOME],
    "rate": ["rate", "{run}", "--status", *HOME],
    "rate csv": ["rate", "{run}", "--export", "ratings.csv", *HOME],
    "rate json": ["rate", "{run}", "--export", "ratings.json", *HOME],
    "agree": ["agree", "{run}", *HOME],
    "agree with": ["agree", "{run}", "--with", "{again}", *HOME],
    "suite report": ["suite", "report", *HOME],
    "suite report html": ["suite", "report", "--format", "html", *HOME],
    "suite import": ["suite", "import", "{imported}", "--model", "copy", *HOME],
    "suite run": ["suite", "run", "--models", "copy", "--judge", "constant/max", *HOME],
    "judge again": ["judge", "again", "{run}", "--judge", "constant/max", *HOME],
    "judge prompt": ["judge", "prompt", "{run}", "{sample}", *HOME],
    "judge cards": ["judge", "cards", *HOME],
    "judge cards one": ["judge", "cards", "{card}", *HOME],
    "doctor": ["doctor", *HOME],
    "run": ["run", "weave", "--data", "{data}", "--model", "copy", "--judge", "constant/max", *HOME],
    "write": ["write", "--model", "model.py:model", "a", *HOME],
    "models try": ["models", "try", "model.py:model", *HOME],
    "journal check": ["journal", "check", *HOME],
    "journal check --dry-run": ["journal", "check", "--dry-run", *HOME],
    "journal export": ["journal", "export", "{run}", "--out", "exported", *HOME],
    "journal prune": ["journal", "prune", "--yes", *HOME],
    "journal merge": ["journal", "merge", "{home}", "--home", "merged"],
    "journal merge into it": ["journal", "merge", "{sound}", *HOME],
    "arena run": ["arena", "run", "{run}", "{second}", "--judge", "constant/max", *HOME],
    "arena score": ["arena", "score", "{second}", "--judge", "constant/max", *HOME],
    "arena table": ["arena", "table", *HOME],
    "arena scores": ["arena", "scores", *HOME],
    "arena agree": ["arena", "agree", "{battles}", "{battles}", *HOME],
    "arena export": ["arena", "export", "{battles}", *HOME],
    "data wordings": ["data", "wordings", "{worded}", "--out", "wordings.toml", *HOME],
}
SAYS_NO = {"models try"}  # it tells that the model below cannot do everything
MODEL = """
def model(messages, want, draw):
    return "{}"
"""
# servers, which go on for ever, what asks hundreds of questions, and what reads a home as `agree` does (see builds.py)
ELSEWHERE = {"view", "serve", "demo", "judge check", "build card"}


class Sound(NamedTuple):
    """A home in which every command works, and what the commands are told."""

    home: Path
    names: dict[str, str]  # by placeholder


def attack(chance: random.Random, count: int, folder: Path) -> Counter[str]:
    _check_commands()
    done: Counter[str] = Counter()
    sound = build_home(folder / "sound")
    check_sound(sound, folder)
    right = read_rows(sound.home)
    for number in range(count):
        seed = chance.randrange(10**9)
        work = folder / f"{number}-{seed}"
        done.update(try_home(random.Random(seed), work, sound, right))
        shutil.rmtree(work)
    done["homes"] = count
    return done


def check_sound(sound: Sound, folder: Path) -> None:
    """Raise Broken if a command does not do its work in a sound home: it would be attacked in vain."""
    for name in COMMANDS:
        work = folder / "check"
        home = lay_out(sound, work)
        ended = run_command(words_of(name, sound, home), work / "deep" / "work")
        if ended.code and name not in SAYS_NO:
            raise Broken(f"weft {' '.join(ended.words)} fails in a sound home: {ended.err[-1500:]}")
        shutil.rmtree(work)


def lay_out(sound: Sound, work: Path) -> Path:
    """Copy a home, and make a working folder with a home to merge into, beside a folder in which nothing may change."""
    home = work / "deep" / "home"
    shutil.copytree(sound.home, home)
    (work / "deep" / OUTSIDE / "folder").mkdir(parents=True)
    (work / "deep" / OUTSIDE / "file").write_text("not yours")
    (work / "deep" / "work").mkdir()
    (work / "deep" / "work" / "weft.toml").write_text(_suite(sound.names["data"]))
    (work / "deep" / "work" / "model.py").write_text(MODEL)
    shutil.copytree(sound.home, work / "deep" / "work" / "merged")
    return home


def words_of(name: str, sound: Sound, home: Path) -> list[str]:
    return [word.format(home=home, sound=sound.home, **sound.names) for word in COMMANDS[name]]


def try_home(chance: random.Random, work: Path, sound: Sound, right: dict[str, Rows]) -> Counter[str]:
    done: Counter[str] = Counter()
    names, weights = list(TRAPS), [weight for _, weight in TRAPS.values()]
    chosen = chance.choices(names, weights, k=chance.choice([1, 1, 2]))
    home = lay_out(sound, work)
    set_trap = []
    for name in chosen:
        try:
            TRAPS[name][0](home, chance)
        except Exception as error:  # two traps that cannot be set together
            if not set_trap:
                raise
            del error
            continue
        set_trap.append(name)
        done[f"trap: {name}"] += 1
    outside = _listing(work / "deep" / OUTSIDE)
    commands = chance.sample(list(COMMANDS), 6)
    if "journal merge" not in commands:
        commands.insert(0, "journal merge")
    for name in commands:
        words = words_of(name, sound, home)
        try:
            ended = run_command(words, work / "deep" / "work")
        except Broken as broken:
            raise Broken(
                f"{' and '.join(set_trap)}, then {', '.join(commands[: commands.index(name)])}: {broken}"
            ) from None
        done[f"exit code {ended.code}"] += 1
        if _listing(work / "deep" / OUTSIDE) != outside:
            raise Broken(f"{set_trap}: weft {' '.join(words)} wrote outside")
    strange = {path.name for path in (work / "deep").iterdir()} - {"home", "work", OUTSIDE}
    if strange or {path.name for path in work.iterdir()} != {"deep"}:
        raise Broken(f"{set_trap}: {strange} was written")
    _check_merged(right, read_rows(work / "deep" / "work" / "merged"), set_trap)
    return done


def _suite(data: str) -> str:
    return f"[suite.weave]\ndata = {json.dumps(data)}\n"


def build_home(folder: Path) -> Sound:
    """A home with runs of three benchmarks, a suite, shards, battles, annotations, a calibration card and a ticket."""
    home = folder / "home"
    data = make("tabletop-weave", folder / "weave", samples=3, seed=0)
    talks = make("tabletop-imug", folder / "imug", samples=2, seed=0)
    api.evaluate("imug", data=talks, model=_answers, judge=_judges, home=home, shard="1/2")
    (folder / "weft.toml").write_text(_suite(str(data)))
    worded = _reword(folder, home)
    copied = api.evaluate("weave", data=data, model="copy", judge="constant/max", home=home)
    told = api.evaluate("weave", data=data, model="reference", judge=_judges, home=home)
    again = api.evaluate("weave", data=data, model=_answers, judge="constant/max", home=home)
    for words in (
        ["suite", "run", "--models", "reference", "--judge", "constant/max"],
        ["arena", "run", copied.id, told.id, "--judge", "constant/max"],
        ["arena", "score", copied.id, "--judge", "constant/max"],
    ):
        ended = run_command([*words, "--home", str(home)], folder)
        if ended.code:
            raise Broken(f"weft {' '.join(words)}: {ended.err}")
    run = api.evaluate("weave", data=data, model=_answers, judge=_judges, home=home)
    battles = _battles(home)
    check_judge("constant/max", benchmarks=["weave"], questions=4, sides=[64], home=folder / "exam")
    shutil.copytree(folder / "exam" / "cards", home / "cards")
    asyncio.run(_annotate(run.id, home))
    with sqlite3.connect(journal_file(home)) as db:
        db.execute("INSERT INTO tickets VALUES ('key', 'ticket', 'https://example.invalid', 1e9)")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    return Sound(
        home,
        {
            "data": str(data),
            "imported": str(lmms_run(folder / "tool", "acc", 0.5, [(1.0, "A"), (0.0, "B")])),
            "run": run.id,
            "second": copied.id,
            "third": told.id,
            "again": again.id,
            "battles": battles,
            "card": "constant",
            "worded": worded,
            "sample": run.turns[0].sample,
        },
    )


def _reword(folder: Path, home: Path) -> str:
    """Return a run whose prompts have other wordings."""
    plans = make("tabletop-planviz", folder / "plans", samples=1, seed=0)
    (task,) = load_benchmark("planviz").load(plans, Blobs(home / "blobs")).load_all().samples
    wordings = folder / "wordings.jsonl"
    wordings.write_text(json.dumps({"task": task.id, "style": "terse", "prompt": "Draw the plan."}) + "\n")
    options = {"reword": str(wordings), "styles": 1}
    return api.evaluate("planviz", data=plans, model="copy", judge="constant/max", home=home, **options).id


async def _annotate(run: str, home: Path) -> None:
    """Let a person answer one question of a study."""
    annotations = Annotations(journal_file(home))
    try:
        source = await open_study_source(run, home)
        study, _ = begin_study(source, study_settings("ann", 4), annotations, Blobs(home / "blobs"))
        (item,) = [one for one in source.questions if one.item == study.settings["orders"]["ann"][0]]
        place = item.question.turn_ref
        verdict = Verdict(place.sample, place.turn, "key_point", 0.5, by="person")
        annotations.add(Annotation(run, study.id, item.item, "ann", (verdict,), {"score": 5}, 1e9))
    finally:
        annotations.close()


def _battles(home: Path) -> str:
    with read_only_journal(home) as journal:
        return next(record.id for record in journal.runs() if record.id.startswith("arena-battles"))


def read_rows(home: Path) -> dict[str, Rows]:
    db = sqlite3.connect(journal_file(home))
    try:
        found: dict[str, Rows] = {}
        for run, state in db.execute("SELECT id, state FROM runs").fetchall():
            turns = db.execute("SELECT sample, turn, reply FROM replies WHERE run = ?", (run,)).fetchall()
            sql = "SELECT sample, turn, metric, variant, verdict FROM verdicts WHERE run = ?"
            found[run] = (state, frozenset([*turns, *db.execute(sql, (run,))]))
        return found
    finally:
        db.close()


def _check_merged(right: dict[str, Rows], merged: dict[str, Rows], traps: list[str]) -> None:
    """Raise Broken if a run lost or changed a row, or a finished one got another. Shards are made to be added to."""
    for run, (state, rows) in right.items():
        new_state, new_rows = merged[run]
        if rows - new_rows or (state == "finished" and (new_state, new_rows) != (state, rows)):
            raise Broken(
                f"{traps}: merging changed {run}: {state} became {new_state}, {sorted(map(str, rows ^ new_rows))[:4]}"
            )


def _listing(folder: Path) -> list[Any]:
    return sorted((str(path), path.lstat().st_size, path.lstat().st_mtime_ns) for path in folder.rglob("*"))


def _check_commands() -> None:
    """Raise Broken if a command that takes a home is not attacked."""
    import typer

    missing = {
        name
        for name, command in _leaves(typer.main.get_command(app), "")
        if any(parameter.name == "home" for parameter in command.params)
    }
    missing -= {name.removesuffix(" ") for name in COMMANDS} | ELSEWHERE
    if missing:
        raise Broken(f"these commands take a home and are not attacked: {', '.join(sorted(missing))}")


def _leaves(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    children = getattr(command, "commands", None)
    if children is None or getattr(command, "invoke_without_command", False):
        yield name, command
    for child, sub in (children or {}).items():
        yield from _leaves(sub, f"{name} {child}".strip())
