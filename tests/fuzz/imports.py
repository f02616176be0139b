"""Results of other tools that lie: whatever their files hold, a score is a percentage that a card can show, or there is
none; no error has two lines, and none takes long."""

import contextlib
import importlib
import pkgutil
import random
import re
import shutil
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from fuzz import Broken
from fuzz.spoil import ODD, spoil_bytes, spoil_file
from fuzz.traps import OUTSIDE, become_other_kind
from tool_results import dpg_run, evalscope_run, lmms_run, vlmevalkit_run
from weft.errors import UserError
from weft.evaluation import imports
from weft.evaluation.imports.score import ImportedScore
from weft.evaluation.imports.store import load, read_results, save

LONGEST_S = 10.0  # of processor time for a folder of kilobytes
LONGEST_ERROR = 1500
FAILED = "[LMMS_EVAL_REQUEST_FAILED after 3 retries] no"
NUMBERS: list[Any] = [-1, 0, 1e308, 5e-324, -1e308, 2**70, 10**400, 0.5, 101, True, "5", None]


def evalscope(folder: Path, chance: random.Random) -> Path:
    return evalscope_run(folder, [1.0, 0.0, chance.choice([1.0, 0.5])], errored=chance.choice([0, 1]))


def lmms(folder: Path, chance: random.Random) -> Path:
    replies = [(1.0, "A"), (0.0, chance.choice(["B", FAILED])), (1.0, "C")]
    return lmms_run(folder, "acc", 2 / 3, replies).parent


def vlmevalkit(folder: Path, chance: random.Random) -> Path:
    suffix = chance.choice([".tsv", ".json", ".xlsx", ".xlsx"])
    replies = ["A", chance.choice(["B", "Failed to obtain answer via API."]), "C"]
    return vlmevalkit_run(folder, 55.25, replies, suffix).parent


def dpg(folder: Path, chance: random.Random) -> Path:
    return dpg_run(folder).parent


TOOLS: dict[str, Callable[[Path, random.Random], Path]] = {
    "evalscope": evalscope,
    "lmms-eval": lmms,
    "VLMEvalKit": vlmevalkit,
    "ELLA's dpg_bench": dpg,
}


def attack(chance: random.Random, count: int, folder: Path) -> Counter[str]:
    missing = set(_tools()) - set(TOOLS)
    if missing:
        raise Broken(f"nobody makes results of {', '.join(sorted(missing))}")
    done: Counter[str] = Counter()
    for number in range(count):
        seed = chance.randrange(10**9)
        work = folder / f"{number}"
        tool, change = _make(random.Random(seed), work)
        done[_read(work, f"seed {seed}, {tool}, {change}")] += 1
        done[f"changed: {change}"] += 1
        shutil.rmtree(work)
    return done


def _tools() -> Iterator[str]:
    """The tools that weft reads results of."""
    for module in pkgutil.iter_modules(imports.__path__):
        tool = vars(importlib.import_module(f"{imports.__name__}.{module.name}")).get("TOOL")
        if tool is not None:
            yield tool


def _make(chance: random.Random, work: Path) -> tuple[str, str]:
    tool = chance.choice(list(TOOLS))
    (work / OUTSIDE / "folder").mkdir(parents=True)
    (work / OUTSIDE / "file").write_text("prediction\nnot yours")
    run = TOOLS[tool](work / "run", chance)
    names = [name for name in CHANGES if name != "spreadsheet" or list(run.glob("*.xlsx"))]
    change = chance.choice(names)
    if "spreadsheet" in names and chance.random() < 0.5:
        change = "spreadsheet"
    for _ in range(chance.choice([1, 1, 2])):
        with contextlib.suppress(IndexError, StopIteration, zipfile.BadZipFile, OSError):  # nothing is left to change
            CHANGES[change](run, chance)
    return tool, change


def _read(work: Path, what: str) -> str:
    began = time.process_time()
    try:
        scores = read_results(work / "run", "mine")
        for score in scores:
            _check_score(score, what)
            save(score, work / "home", 1.0)
        kept = load(work / "home")
    except UserError as error:
        if "\n" in str(error) or len(str(error)) > LONGEST_ERROR:
            raise Broken(f"{what}: an error of more than a line: {error}") from None
        return "refused"
    except Exception as error:
        raise Broken(f"{what}: {type(error).__name__}: {error}") from error
    finally:
        if time.process_time() - began > LONGEST_S:
            raise Broken(f"{what}: it took {time.process_time() - began:.0f} s")
    if {score.column for score in kept} != {score.column for score in scores}:
        raise Broken(f"{what}: {scores} became {kept}")
    return "read" if any(score.value is not None for score in scores) else "read, without a score"


def _check_score(score: ImportedScore, what: str) -> None:
    if not 0 <= score.scored <= score.expected:
        raise Broken(f"{what}: {score.scored} of {score.expected} are scored")
    if score.value is None:
        return
    if not 0 <= score.value <= 100:
        raise Broken(f"{what}: {score.value} percent")
    if score.low is not None and not 0 <= score.low <= score.value <= (score.high or 0.0) <= 100:
        raise Broken(f"{what}: {score.value} in {score.low} to {score.high}")


# what somebody may have done to a folder


def _files(run: Path) -> list[Path]:
    return sorted(path for path in run.rglob("*") if path.is_file())


def odd_json(run: Path, chance: random.Random) -> None:
    spoil_file(chance.choice([path for path in _files(run) if path.suffix in (".json", ".jsonl")]), chance)


def odd_numbers(run: Path, chance: random.Random) -> None:
    file = chance.choice([path for path in _files(run) if path.suffix in (".json", ".jsonl")])
    spoil_file(file, chance, NUMBERS, only=(int, float))


def odd_bytes(run: Path, chance: random.Random) -> None:
    file = chance.choice(_files(run))
    file.write_bytes(spoil_bytes(file.read_bytes(), chance))


def odd_text(run: Path, chance: random.Random) -> None:
    """Lines of a text that take long to read for whoever reads them twice."""
    file = chance.choice(_files(run))
    long = chance.choice(
        ["a: " + " " * 300_000 + "x", "x" * 500_000, '"' + "\t" * 200_000, "\0" * 1000, "- " * 200_000]
    )
    file.write_text(chance.choice([long, f"prediction\n{long}", f"datasets:\n- {long}\n- x\nlimit: null\n{long}\n"]))


def odd_lines(run: Path, chance: random.Random) -> None:
    """Numbers in the lines of a text are others; or a line is gone, twice, or elsewhere."""
    file = chance.choice([path for path in _files(run) if path.suffix in (".txt", ".csv", ".tsv")])
    lines = file.read_text().splitlines()
    for _ in range(chance.choice([1, 2])):
        at = chance.randrange(len(lines))
        what = chance.randrange(4)
        if what == 0:
            number = str(chance.choice([*NUMBERS[:-1], "nan", "inf", "1e999", "9" * 5000, "²"]))
            lines[at] = re.sub(r"\d+(\.\d+)?", lambda _, number=number: number, lines[at], count=chance.choice([1, 0]))
        elif what == 1 and len(lines) > 1:
            del lines[at]
        else:
            lines.insert(chance.randrange(len(lines) + 1), lines[at])
    file.write_text("\n".join(lines) + "\n")


def odd_name(run: Path, chance: random.Random) -> None:
    """Something is called as patterns and escapes are."""
    path = chance.choice(list(run.rglob("*")))
    name = chance.choice(
        ["[", "**", "a[!]", "x\x1b[31m", "{}", "é" * 80, "-rf", f"*{path.suffix}", f"[a-{path.suffix}"]
    )
    path.rename(path.with_name(name + path.suffix))


def other_kind(run: Path, chance: random.Random) -> None:
    become_other_kind(chance.choice(_files(run)), run.parent / OUTSIDE, chance)


def odd_places(run: Path, chance: random.Random) -> None:
    """A file that is named elsewhere, or a task that is a path."""
    place = chance.choice(
        [f"../{OUTSIDE}/file", f"../{OUTSIDE}/file.tsv", "/etc/passwd", "a/b", "x" * 5000, "\0", "..", "."]
    )
    for file in _files(run):
        if file.suffix == ".json":
            for name in ("tiny_MMMU_DEV_VAL.tsv", "tiny_MMMU_DEV_VAL.xlsx", "mmmu_val", "MMMU_DEV_VAL"):
                file.write_text(file.read_text("utf-8", "replace").replace(f'"{name}"', _quote(place)))


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace("\0", "\\u0000") + '"'


def spreadsheet(run: Path, chance: random.Random) -> None:
    """Another spreadsheet: entities, odd encodings, bombs, indices that lead out of it, members that are not there."""
    file = next(iter(run.glob("*.xlsx")))
    with zipfile.ZipFile(file) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = chance.choice(list(members))
    members[name] = chance.choice(XML)(members[name], chance)
    if chance.random() < 0.1:
        del members[name]
    kind = chance.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
    with zipfile.ZipFile(file, "w", kind) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    if chance.random() < 0.3:
        file.write_bytes(spoil_bytes(file.read_bytes(), chance))


LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10 if n else "ha" * 10}">' for n in range(9))
DOCTYPE = f'<?xml version="1.0" encoding="{{0}}"?><!DOCTYPE a [{LAUGHS}<!ENTITY f SYSTEM "file:///etc/passwd">]><a>&l8;&f;</a>'
XML: list[Callable[[bytes, random.Random], bytes]] = [
    spoil_bytes,
    lambda data, chance: _encode_document(chance.choice(["utf-8", "utf-16", "utf-16-be", "cp037", "cp500", "latin-1"])),
    lambda data, chance: data.replace(b"<v>", b"<v>" + chance.choice([b"-", b"9" * 5000, b"x", b"1e5", "²".encode()])),
    lambda data, chance: data.replace(b'r="', b'r="' + chance.choice([b"", b"9" * 10_000, b"A" * 10_000])),
    lambda data, chance: data.replace(b"<row>", b"<row><x/>" + b"<c/>" * 200_000, 1),
    lambda data, chance: data.replace(b"<row>", b"<a>" * 100_000, 1),
    lambda data, chance: data.replace(b"<t>", b"<t>" + b"x" * 3_000_000, 1),
    lambda data, chance: data.replace(b'xmlns="', b'xmlns="' + bytes(str(chance.choice(ODD)), "utf-8", "ignore")[:50]),
]


def _encode_document(encoding: str) -> bytes:
    text = DOCTYPE.format(encoding)
    declaration, rest = text[: text.index("?>") + 2], text[text.index("?>") + 2 :]
    ascii_first = not encoding.startswith("utf-16")
    return (declaration.encode() if ascii_first else declaration.encode(encoding)) + rest.encode(encoding)


CHANGES: dict[str, Callable[[Path, random.Random], None]] = {
    "odd JSON": odd_json,
    "odd JSON again": odd_json,
    "odd numbers": odd_numbers,
    "odd bytes": odd_bytes,
    "odd text": odd_text,
    "odd lines": odd_lines,
    "odd name": odd_name,
    "a file of another kind": other_kind,
    "odd places": odd_places,
    "spreadsheet": spreadsheet,
}
