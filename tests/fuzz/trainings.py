"""Folders of training runs that somebody else made: their curves are drawn, or a command says in one line why not."""

import json
import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from fuzz import Broken
from fuzz.commands import run_command
from fuzz.spoil import ODD, spoil_bytes, spoil_file
from fuzz.traps import OUTSIDE, become_other_kind
from weft.training.checkpoint import LOG_FILE, MANIFEST_FILE, Checkpoint, write_checkpoint
from weft.training.curves import pack_runs, read_curves
from weft.training.log import TrainingLog

COMMANDS = (
    ["train", "curve", "runs"],
    ["train", "curve", "runs", "packed.jsonl", "--out", "drawn"],
    ["train", "curve", "packed.jsonl", "-m", "loss"],
)
STEPS = 4
NUMBERS = [1e308, -1e308, 5e-324, 10**400, 2**63, -1, 0, True, "5", None, [1]]


def attack(chance: random.Random, count: int, folder: Path) -> Counter[str]:
    done: Counter[str] = Counter()
    for number in range(count):
        work = folder / "above" / f"{number}"
        made = _make(work, chance)
        trap = chance.choice(list(TRAPS))
        TRAPS[trap](chance.choice(made), chance)
        before = _listing(work / OUTSIDE)
        words = chance.choice(COMMANDS)
        try:
            ended = run_command(words, work)
        except Broken as broken:
            raise Broken(f"{trap}: {broken}") from None
        if "\x1b[" in ended.out + ended.err or (ended.code == 2 and ended.err.count("\n") > 4):
            raise Broken(f"{trap}, weft {' '.join(words)}: {ended.out[-500:]} {ended.err[-800:]}")
        strange = {path.name for path in work.iterdir()} - {
            *("runs", "packed.jsonl", OUTSIDE, "reports", "drawn", ".stdout", ".stderr")
        }
        if strange or _listing(work / OUTSIDE) != before:
            raise Broken(f"{trap}, weft {' '.join(words)}: it wrote {strange or 'outside'}")
        done[f"{trap}: exit code {ended.code}"] += 1
        shutil.rmtree(work)
    done["folders"] = count
    return done


def _make(work: Path, chance: random.Random) -> list[Path]:
    """Make two training runs, beside a file with the same; return the files that somebody may change."""
    (work / OUTSIDE / "folder").mkdir(parents=True)
    (work / OUTSIDE / "file").write_text("not yours")
    for name in ("a", "b"):
        run = work / "runs" / name
        log = TrainingLog(run / LOG_FILE)
        for step in range(STEPS):
            log.add(step, loss=chance.random(), edit=chance.random(), seconds=1.0)
        write_checkpoint(Checkpoint(run, STEPS - 1, {"world": "micro", "seed": 0}, {"dialogue": 7}, done=True))
    packed = work / "packed.jsonl"
    packed.write_text(pack_runs(read_curves(work / "runs")))
    return [packed, *(work / "runs" / name / file for name in ("a", "b") for file in (LOG_FILE, MANIFEST_FILE))]


def _listing(folder: Path) -> list[tuple[str, int]]:
    return sorted((str(path), path.lstat().st_mtime_ns) for path in folder.rglob("*"))


def other_kind(path: Path, chance: random.Random) -> None:
    root = next(parent for parent in path.parents if (parent / OUTSIDE).exists())
    become_other_kind(chance.choice([path, path.parent] if path.parent != root else [path]), root / OUTSIDE, chance)


def odd_json(path: Path, chance: random.Random) -> None:
    spoil_file(path, chance)


def odd_numbers(path: Path, chance: random.Random) -> None:
    spoil_file(path, chance, NUMBERS, only=(int, float))


def odd_bytes(path: Path, chance: random.Random) -> None:
    path.write_bytes(spoil_bytes(path.read_bytes(), chance))


def odd_names(path: Path, chance: random.Random) -> None:
    """A measure, or a run, has a name that leads elsewhere or is a program."""
    name = chance.choice(["../../../outside/x", "\x1b[31m", "<script>", "=1+1", "a" * 3000, "", "\n", "a/b", "\ud800"])
    text = path.read_text()
    for known in ("loss", "edit", '"a"', "micro"):
        text = text.replace(f'"{known}"', json.dumps(name))
    path.write_text(text)


def deep(path: Path, chance: random.Random) -> None:
    odd = chance.choice(["[" * 100_000, '{"a":' * 100_000, "9" * 100_000, "NaN", '{"step": ' + "1" * 5000 + "}", json.dumps(chance.choice(ODD))])  # fmt: skip
    path.write_text(chance.choice([odd, path.read_text() + odd + "\n", odd + "\n" + path.read_text()]))


TRAPS: dict[str, Callable[[Path, random.Random], None]] = {
    "a file of another kind": other_kind,
    "odd JSON": odd_json,
    "odd numbers": odd_numbers,
    "odd bytes": odd_bytes,
    "odd names": odd_names,
    "deep": deep,
}
