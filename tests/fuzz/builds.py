"""Builds: folders that somebody else made, in which every command ends in time and writes nowhere else; and builds that
are killed, shrunk, extended and damaged on their way, whose files are those of a build that was left alone."""

import json
import random
import shutil
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fuzz import Broken
from fuzz.commands import Command, Ended, run_command
from fuzz.spoil import ODD, spoil_bytes, spoil_json
from fuzz.traps import OUTSIDE, become_other_kind
from weft.building.export import LAYOUTS

PLAYERS = ("--writer", "tabletop/oracle", "--painter", "tabletop/oracle", "--checker", "tabletop/exact")
SEEDS = 4
SHARED = "shared"  # a home beside the build
MERGED = "merged"  # the folder that it is merged into
COMMANDS: dict[str, list[str]] = {
    "status": ["build", "status", "data"],
    "again": ["build", "tabletop-recall", "--seeds", str(SEEDS), *PLAYERS, "--out", "data"],
    "more": ["build", "tabletop-recall", "--seeds", str(SEEDS + 1), *PLAYERS, "--out", "data"],
    "dry run": ["build", "tabletop-recall", "--seeds", str(SEEDS + 1), *PLAYERS, "--out", "data", "--dry-run"],
    "prune": ["journal", "prune", "--yes", "--home", "data"],
    "check": ["data", "check", "weave", "data"],
    "card": ["build", "card", "data", "--terms", "files=CC0"],
    "merge": ["build", "merge", MERGED, "data"],
    **{
        f"export {layout}": ["build", "export", "data", "--to", layout, "--out", layout, "--accept-unknown-terms"]
        for layout in LAYOUTS
    },
}


def words_of(recipe: str, seeds: int, out: str) -> list[str]:
    editor = ("--editor", "tabletop/oracle") if recipe == "tabletop-fusion" else ()
    return ["build", recipe, "--seeds", str(seeds), "--part-size", "2", *PLAYERS, *editor, "--out", out]


# folders of strangers


def received(chance: random.Random, count: int, folder: Path) -> Counter[str]:
    done: Counter[str] = Counter()
    sound = folder / "sound"
    if run_command(words_of("tabletop-recall", SEEDS, str(sound)), folder).code:
        raise Broken("no build can be made")
    for number in range(count):
        seed = chance.randrange(10**9)
        work = folder / f"{number}-{seed}"
        _try_folder(random.Random(seed), work, sound, done)
        shutil.rmtree(work)
    done["folders"] = count
    return done


def _try_folder(chance: random.Random, work: Path, sound: Path, done: Counter[str]) -> None:
    shutil.copytree(sound, work / "data")
    outside = work / OUTSIDE
    (outside / "folder").mkdir(parents=True)
    (outside / "file").write_text("not yours")
    name = chance.choices(list(TRAPS), [2, 2, 1, 4, 1, 1, 1, 1])[0]
    TRAPS[name](work / "data", chance)
    done[f"trap: {name}"] += 1
    before = _listing(outside)
    for command in chance.sample(list(COMMANDS), 4):
        try:
            ended = run_command(COMMANDS[command], work)
        except Broken as broken:
            raise Broken(f"{name}, then {command}: {broken}") from None
        done[f"exit code {ended.code}"] += 1
        if ended.code == 2 and ended.err.count("\n") > 4:
            raise Broken(f"{name}, then {command}: {ended.err[:1000]}")
        if _listing(outside) != before:
            raise Broken(f"{name}, then {command}: it wrote outside")
    usual = {"data", OUTSIDE, SHARED, MERGED, ".stdout", ".stderr", *LAYOUTS}
    strange = {path.name for path in work.iterdir()} - usual
    if strange:
        raise Broken(f"{name}: {strange} was written")
    for link in (path for layout in (*LAYOUTS, MERGED) for path in (work / layout).rglob("*") if path.is_symlink()):
        raise Broken(f"{name}: {link} is a link in what leaves")


def _listing(folder: Path) -> list[Any]:
    return sorted((str(path), path.lstat().st_size, path.lstat().st_mtime_ns) for path in folder.rglob("*"))


def _places(out: Path) -> list[Path]:
    images = sorted((out / "blobs").glob("??/*"))[:3]
    names = ("build.json", "parts", "parts/00000.jsonl", "parts/00001.jsonl", "parts/00001.partial.jsonl")
    more = ("test.json", "imgs", "imgs/0000", "tabletop.json", "locks", "journal.sqlite", "home.lock", ".weave-x")
    return [*(out / name for name in (*names, *more)), *images, images[0].parent]


def other_kind(out: Path, chance: random.Random) -> None:
    become_other_kind(chance.choice(_places(out)), out.parent / OUTSIDE, chance)


def odd_manifest(out: Path, chance: random.Random) -> None:
    file = out / "build.json"
    if chance.random() < 0.3:
        file.write_bytes(spoil_bytes(file.read_bytes(), chance))
    else:
        file.write_text(json.dumps(spoil_json(json.loads(file.read_text()), chance)))


def odd_sizes(out: Path, chance: random.Random) -> None:
    file = out / "build.json"
    manifest = json.loads(file.read_text())
    manifest[chance.choice(["seeds", "part_size"])] = chance.choice([0, -1, 1, 10**7, 10**12, 2**63 - 1, 2**64, 1e300])
    file.write_text(json.dumps(manifest))


def odd_rows(out: Path, chance: random.Random) -> None:
    file = chance.choice(sorted((out / "parts").glob("*")))
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    file.write_text("".join(json.dumps(spoil_json(row, chance)) + "\n" for row in rows))


def odd_bytes(out: Path, chance: random.Random) -> None:
    file = chance.choice(sorted((out / "parts").glob("*")))
    file.write_bytes(spoil_bytes(file.read_bytes(), chance))


def rows_twice(out: Path, chance: random.Random) -> None:
    file = out / "parts" / "00000.jsonl"
    name = chance.choice(["00000.partial.jsonl", "00001.partial.jsonl", "00002.jsonl", "9.jsonl", "٣.jsonl"])
    shutil.copy(file, file.with_name(name))


def home_elsewhere(out: Path, chance: random.Random) -> None:
    outside = out.parent / OUTSIDE
    file = out / "build.json"
    home = chance.choice([f"../{OUTSIDE}", str(outside), f"../{OUTSIDE}/folder", "/dev", "\0", "x" * 5000, "../.."])
    what = chance.randrange(3)
    if what == 0:  # its own
        home = f"../{SHARED}"
        (out.parent / SHARED).mkdir()
        for name in ("journal.sqlite", "blobs"):
            (out / name).rename(out.parent / SHARED / name)
    elif what == 1:
        (out / "blobs").rename(outside / "blobs")
    file.write_text(json.dumps({**json.loads(file.read_text()), "home": home, "version": chance.choice(["1", "2"])}))


def odd_values(out: Path, chance: random.Random) -> None:
    """One field of every row is something else."""
    name = chance.choice(["number", "draft", "outcome", "attempts", "counts", "cost", "reason", "step"])
    value = chance.choice([*ODD, "\x1b[31mkept", 2**70, {"images": 1e308}])
    for file in (out / "parts").glob("*"):
        rows = [{**json.loads(line), name: value} for line in file.read_text().splitlines()]
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))


TRAPS: dict[str, Callable[[Path, random.Random], None]] = {
    "a file of another kind": other_kind,
    "an odd manifest": odd_manifest,
    "odd sizes": odd_sizes,
    "odd rows": odd_rows,
    "odd bytes": odd_bytes,
    "rows twice": rows_twice,
    "a home elsewhere": home_elsewhere,
    "odd values": odd_values,
}


# kills

STEPS = 6


def killed(chance: random.Random, count: int, folder: Path) -> Counter[str]:
    done: Counter[str] = Counter()
    right: dict[tuple[str, int], dict[str, bytes]] = {}
    for _ in range(count):
        seed = chance.randrange(10**9)
        _Sequence(random.Random(seed), folder, done).play(right, seed)
        shutil.rmtree(folder / "data")
        done["builds"] += 1
    return done


class _Sequence:
    def __init__(self, chance: random.Random, folder: Path, done: Counter[str]) -> None:
        self._chance = chance
        self._folder = folder
        self._done = done
        self._recipe = chance.choice(["tabletop-recall", "tabletop-fusion"])
        self._seeds = chance.choice([3, 6])
        self._log: list[str] = []

    def play(self, right: dict[tuple[str, int], dict[str, bytes]], seed: int) -> None:
        key = (self._recipe, self._seeds)
        if key not in right:
            ended = self._end(self._words(self._seeds, "alone"))
            if ended.code:
                raise Broken(f"{self._recipe}: {ended.err[-800:]}")
            right[key] = _files(self._folder / "alone")
            shutil.rmtree(self._folder / "alone")
        steps: dict[str, Callable[[], None]] = {
            "kill": self._kill,
            "fewer seeds": self._fewer,
            "prune": self._prune,
            "two at once": self._two,
            "an image lost": self._lose_image,
            "a part lost": self._lose_part,
            "a part twice": self._twice,
        }
        for name in self._chance.choices(list(steps), (5, 1, 2, 1, 1, 1, 1), k=self._chance.randint(2, STEPS)):
            self._log.append(name)
            self._done[name] += 1
            steps[name]()
        words = self._words(self._seeds, "data")
        ended = self._end(words)
        while ended.code == 1 and "run the same" in ended.err and self._lost:
            self._lost -= 1
            ended = self._end(words)
        if ended.code:
            raise Broken(f"{', '.join(self._log)}: exit code {ended.code}: {ended.err[-800:]} (seed {seed})")
        if _files(self._folder / "data") != right[key]:
            raise Broken(f"{self._recipe}: the files differ after {', '.join(self._log)} (seed {seed})")

    _lost = 0

    def _words(self, seeds: int, out: str) -> list[str]:
        return words_of(self._recipe, seeds, str(self._folder / out))

    def _end(self, words: list[str]) -> Ended:
        return run_command(words, self._folder)

    def _kill(self) -> None:
        command = Command(self._words(self._seeds, "data"), self._folder)
        time.sleep(self._chance.uniform(0.02, 1.5))
        self._done["kill -9"] += command.kill()

    def _fewer(self) -> None:
        self._end(self._words(self._chance.randint(1, self._seeds), "data"))

    def _prune(self) -> None:
        if (self._folder / "data" / "journal.sqlite").exists():
            self._end(["journal", "prune", "--yes", "--home", str(self._folder / "data")])

    def _two(self) -> None:
        beside = self._folder / "beside"
        beside.mkdir(exist_ok=True)
        command = Command(self._words(self._seeds, "data"), self._folder)
        run_command(self._words(self._seeds, "data"), beside)
        command.end()

    def _lose_image(self) -> None:
        images = sorted((self._folder / "data" / "blobs").glob("??/*"))
        if images:
            self._chance.choice(images).unlink()
            self._lost += 1

    def _lose_part(self) -> None:
        parts = sorted((self._folder / "data" / "parts").glob("*.jsonl"))
        if parts:
            self._chance.choice(parts).unlink()

    def _twice(self) -> None:
        """What a kill leaves between a part that is written and what it replaces."""
        for part in (self._folder / "data" / "parts").glob("00000.jsonl"):
            shutil.copy(part, part.with_name("00000.partial.jsonl"))


def _files(out: Path) -> dict[str, bytes]:
    found = [*out.glob("parts/*"), *out.glob("imgs/*/*"), *out.glob("*.json")]
    return {str(file.relative_to(out)): file.read_bytes() for file in found}
