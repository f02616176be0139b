"""Homes that somebody else made: every command that is given one ends in time, in one line if it cannot be used, writes
nowhere else, and takes nothing from a sound home that it is merged into."""

import random
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fuzz import Broken
from fuzz.commands import run_command
from fuzz.files import _answers, _judges
from fuzz.traps import OUTSIDE, TRAPS
from tool_results import lmms_run
from weft import api
from weft.cli.app import app
from weft.store.annotations import Annotation, Annotations, Study
from weft.store.schema import journal_file
from weft.types import Verdict
from weft_tabletop.make import make

Rows = tuple[str, frozenset[tuple[object, ...]]]  # the state of a run, and its turns and verdicts
HOME = ("--home", "{home}")
COMMANDS: dict[str, list[str]] = {
    "runs": ["runs", *HOME],
    "runs tag": ["runs", "tag", "last", "ours", *HOME],
    "runs rm": ["runs", "rm", "last", "--yes", *HOME],
    "report": ["report", "--single-file", *HOME],
    "report last": ["report", "last", *HOME],
    "report md": ["report", "-f", "md", *HOME],
    "report parquet": ["report", "-f", "parquet", *HOME],
    "compare": ["compare", "last", "weave", *HOME],
    "correlate": ["correlate", "last", *HOME],
    "distribution": ["distribution", "last", *HOME],
    "figure": ["figure", "last", "1", *HOME],
    "relative": ["relative", "last", "weave", *HOME],
    "show": ["show", "last", *HOME],
    "rate": ["rate", "last", "--status", *HOME],
    "rate csv": ["rate", "last", "--export", "ratings.csv", *HOME],
    "rate json": ["rate", "last", "--export", "ratings.json", *HOME],
    "agree": ["agree", "last", *HOME],
    "suite report": ["suite", "report", *HOME],
    "suite import": ["suite", "import", "{imported}", "--model", "copy", *HOME],
    "judge again": ["judge", "again", "last", "--judge", "constant/3", *HOME],
    "judge cards": ["judge", "cards", *HOME],
    "doctor": ["doctor", *HOME],
    "run": ["run", "weave", "--data", "{data}", "--model", "copy", "--judge", "constant/5", *HOME],
    "write": ["write", "--model", "copy", "a", *HOME],
    "models try": ["models", "try", "copy", *HOME],
    "journal check": ["journal", "check", *HOME],
    "journal check --dry-run": ["journal", "check", "--dry-run", *HOME],
    "journal export": ["journal", "export", "last", "--out", "exported", *HOME],
    "journal prune": ["journal", "prune", "--yes", *HOME],
    "journal merge": ["journal", "merge", "{home}", "--home", "merged"],
    "journal merge into it": ["journal", "merge", "{sound}", *HOME],
    "arena export": ["arena", "export", "last", *HOME],
    "data wordings": ["data", "wordings", "last", *HOME],
}
# servers, which go on for ever, and commands that read files rather than homes, or a home of their own
ELSEWHERE = {"view", "serve", "demo", "suite run", "judge check", "arena run", "arena score", "arena table", "arena agree", "arena scores"}  # fmt: skip


def attack(chance: random.Random, count: int, folder: Path) -> Counter[str]:
    _check_commands()
    done: Counter[str] = Counter()
    sound, data = build_home(folder / "sound")
    right = _tables(sound, folder)
    for number in range(count):
        seed = chance.randrange(10**9)
        work = folder / f"{number}-{seed}"
        done.update(try_home(random.Random(seed), work, sound, data, right))
        shutil.rmtree(work)
    done["homes"] = count
    return done


def try_home(chance: random.Random, work: Path, sound: Path, data: Path, right: dict[str, Rows]) -> Counter[str]:
    done: Counter[str] = Counter()
    names, weights = list(TRAPS), [weight for _, weight in TRAPS.values()]
    chosen = chance.choices(names, weights, k=chance.choice([1, 1, 2]))
    home = work / "deep" / "home"
    shutil.copytree(sound, home)
    (work / "deep" / OUTSIDE / "folder").mkdir(parents=True)
    (work / "deep" / OUTSIDE / "file").write_text("not yours")
    (work / "deep" / "work").mkdir()
    shutil.copytree(sound, work / "deep" / "work" / "merged")
    imported = lmms_run(work / "deep" / "work" / "tool", "acc", 0.5, [(1.0, "A"), (0.0, "B")])
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
        words = [word.format(home=home, data=data, sound=sound, imported=imported) for word in COMMANDS[name]]
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
    _check_merged(right, _tables(work / "deep" / "work" / "merged", work), set_trap)
    return done


def build_home(folder: Path) -> tuple[Path, Path]:
    """A home with runs of two benchmarks, shards, annotations and a ticket, and the dataset of the first."""
    home = folder / "home"
    data = make("tabletop-weave", folder / "weave", samples=3, seed=0)
    run = api.evaluate("weave", data=data, model=_answers, judge=_judges, home=home)
    api.evaluate("weave", data=data, model="copy", judge="constant/4", home=home)
    talks = make("tabletop-imug", folder / "imug", samples=2, seed=0)
    api.evaluate("imug", data=talks, model=_answers, judge=_judges, home=home, shard="1/2")
    annotations = Annotations(journal_file(home))
    study = Study("study-1", run.id, 1e9, {"orders": {"ann": ["q"]}, "known": {}, "questions": 1})
    verdict = Verdict(run.verdicts[0].sample, 0, run.verdicts[0].metric, 0.5, by="person")
    annotations.add_all([Annotation(run.id, "study-1", "q", "ann", (verdict,), {"score": 5}, 1e9)], [study])
    annotations.close()
    with sqlite3.connect(journal_file(home)) as db:
        db.execute("INSERT INTO tickets VALUES ('key', 'ticket', 'https://example.invalid', 1e9)")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    return home, data


def _tables(home: Path, folder: Path) -> dict[str, Rows]:
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
