"""Folders of datasets that somebody else made, of every benchmark: files of another kind, images that are bombs, texts
that are addresses. Every command that is given one ends in time, in one line if it cannot be used, and reads and writes
nothing elsewhere; and the pages of `weft data view` can be built."""

import json
import random
import shutil
import signal
import struct
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fuzz import Broken
from fuzz.commands import run_command
from fuzz.data import all_of, record_files
from fuzz.spoil import spoil_bytes, spoil_json
from fuzz.traps import OUTSIDE, become_other_kind
from weft.benchmarks.data_format import load_format
from weft.datasets.browsed_images import BrowsedImages
from weft.datasets.record_index import RecordIndex
from weft.errors import UserError
from weft.report.gallery import ImageFiles, Thumbnails
from weft.report.view.data_pages import build_list_page, build_problems_page, build_record_page, parse_address

SECRET = "not-yours-9b1f"  # in a file beside the dataset: it is shown nowhere
MODEL = ("--model", "reference", "--judge", "constant/max", "--home", "home")
COMMANDS: dict[str, list[str]] = {
    "check": ["data", "check", "{name}", "data"],
    "stats": ["data", "stats", "{name}", "data", "--out", "stats.txt"],
    "stats json": ["data", "stats", "{name}", "data", "--format", "json", "--no-repeats"],
    "stats plots": ["data", "stats", "{name}", "data", "--format", "latex", "--plots", "plots"],
    "dry run": ["run", "{name}", "--data", "data", *MODEL, "--dry-run"],
    "run": ["run", "{name}", "--data", "data", *MODEL],
    "report": ["report", "--home", "home", "--out", "page"],
}
IMAGES = (".png", ".jpg", ".jpeg", ".webp", ".gif")
LONGEST_S = 60  # for the pages of a dataset
PLACES = ["file:///etc/passwd", "/etc/passwd", "http://127.0.0.1:9/x.png", "data:image/png;base64,AAAA", "\\\\host\\x"]


def attack(chance: random.Random, count: int, folder: Path) -> Counter[str]:
    done: Counter[str] = Counter()
    datasets = all_of(folder / "sound", 3, chance.randrange(10**6))
    names = sorted(datasets)
    for number in range(count):
        seed = chance.randrange(10**9)
        name = names[number % len(names)]
        work = folder / f"{number}"
        _try_dataset(name, datasets[name][1], random.Random(seed), work, done)
        shutil.rmtree(work)
    done["folders"] = count
    return done


def _try_dataset(name: str, sound: Path, chance: random.Random, work: Path, done: Counter[str]) -> None:
    work.mkdir()
    shutil.copytree(sound, work / "data")
    outside = work / OUTSIDE
    (outside / "folder").mkdir(parents=True)
    (outside / "file").write_text(SECRET)
    trap = chance.choice(list(TRAPS))
    TRAPS[trap](work / "data", chance)
    done[f"trap: {trap}"] += 1
    before = _listing(outside)
    for command in [*chance.sample(list(COMMANDS)[:-2], 2), "run", "report"]:
        words = [word.format(name=name) for word in COMMANDS[command]]
        try:
            ended = run_command(words, work)
        except Broken as broken:
            raise Broken(f"{name}, {trap}: {broken}") from None
        done[f"exit code {ended.code}"] += 1
        if ended.code == 2 and ended.err.count("\n") > 4:
            raise Broken(f"{name}, {trap}, then {command}: {ended.err[:1000]}")
        if SECRET in ended.out + ended.err or "\x1b[" in ended.out + ended.err:
            raise Broken(f"{name}, {trap}, then {command}: it shows {ended.out[-500:]} {ended.err[-500:]}")
        if _listing(outside) != before:
            raise Broken(f"{name}, {trap}, then {command}: it wrote outside")
    _view(name, work, f"{name}, {trap}")
    strange = {path.name for path in work.iterdir()} - {
        *("data", OUTSIDE, "home", "plots", "page", "stats.txt", ".stdout", ".stderr", "scratch")
    }
    if strange:
        raise Broken(f"{name}, {trap}: {strange} was written")
    for path in [*work.rglob("page/**/*"), *work.glob("home/blobs/*/*"), work / "stats.txt"]:
        if path.is_symlink() or (path.is_file() and SECRET.encode() in path.read_bytes()):
            raise Broken(f"{name}, {trap}: {path} has what the dataset's folder does not")


def _view(name: str, work: Path, what: str) -> None:
    """Build the pages of `weft data view`."""
    previous = signal.signal(signal.SIGALRM, _hang)
    signal.alarm(LONGEST_S)
    images = BrowsedImages(work / "scratch" / "blobs")
    index = RecordIndex(load_format(name), work / "data", images)
    try:
        index.start()
        index.check_open(LONGEST_S)
        index.wait(LONGEST_S)
        shown = ImageFiles(Thumbnails(work / "scratch", blobs=images))
        address = parse_address({})
        pages = [build_list_page(index, address, shown, "data"), build_problems_page(index, "data")]
        pages += [build_record_page(index, number, address, shown) for number in range(len(index.entries))]
        for page in pages:
            if SECRET in page or "<script>alert" in page:
                raise Broken(f"{what}: a page has what it must not")
            page.encode()
    except UserError as error:
        if "\n" in str(error):
            raise Broken(f"{what}: an error of more than a line: {error}") from None
    finally:
        index.stop()
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


def _hang(*_: Any) -> None:
    raise Broken("the pages did not come to an end")


def _listing(folder: Path) -> list[Any]:
    return sorted((str(path), path.lstat().st_size, path.lstat().st_mtime_ns) for path in folder.rglob("*"))


# what somebody may have done to a folder


def _images_in(data: Path) -> list[Path]:
    return [path for path in sorted(data.rglob("*")) if path.suffix.lower() in IMAGES] or [data / "x.png"]


def other_kind(data: Path, chance: random.Random) -> None:
    path = chance.choice(sorted(data.rglob("*")))
    become_other_kind(path, data.parent / OUTSIDE, chance)


def other_images(data: Path, chance: random.Random) -> None:
    for path in chance.sample(_images_in(data), min(3, len(_images_in(data)))):
        path.write_bytes(chance.choice(list(BOMBS.values()))())


def images_elsewhere(data: Path, chance: random.Random) -> None:
    """Images are links to a file outside, which is no image or is one."""
    for path in chance.sample(_images_in(data), min(3, len(_images_in(data)))):
        target = data.parent / OUTSIDE / "file"
        path.unlink(missing_ok=True)
        path.symlink_to(chance.choice([target, Path("/dev/zero"), Path("/proc/self/environ"), path]))


def odd_places(data: Path, chance: random.Random) -> None:
    """Texts that name files name others."""
    file = chance.choice(record_files(data) or [data / "x.json"])
    text = file.read_text() if file.exists() else "[]"
    places = [*PLACES, f"../{OUTSIDE}/file", str(data.parent / OUTSIDE / "file"), f"x/../../{OUTSIDE}/file", "x" * 5000]
    for suffix in IMAGES:
        text = text.replace(f'{suffix}"', f'{suffix}{chance.choice(["", ".", "/.."])}"')
    names = sorted({path.name for path in _images_in(data)})
    for name in names:
        text = text.replace(json.dumps(name)[1:-1], json.dumps(chance.choice(places))[1:-1])
    file.write_text(text)


def odd_texts(data: Path, chance: random.Random) -> None:
    """Every text of the records ends in what somebody else may run."""
    ends = [
        "<script>alert(1)</script>",
        "=cmd|' /C calc'!A0",
        "\x1b[2J",
        "\\input{/etc/passwd}",
        "\ud800",
        "]]><!--",
        "${}`",
    ]
    end = json.dumps(chance.choice(ends))[1:-1]
    for file in record_files(data):
        file.write_text(file.read_text().replace('",', f'{end}",'))


def odd_records(data: Path, chance: random.Random) -> None:
    file = chance.choice(record_files(data) or [data / "x.json"])
    content = file.read_bytes() if file.exists() else b"[]"
    if chance.random() < 0.5 and file.suffix == ".json" and file.exists():
        content = json.dumps(spoil_json(json.loads(content), chance)).encode()
    file.write_bytes(spoil_bytes(content, chance) if chance.random() < 0.5 else content)


def many_folders(data: Path, chance: random.Random) -> None:
    """Folders in folders, and one that leads back to the first."""
    deep = data
    for _ in range(200):
        deep = deep / "a"
    deep.mkdir(parents=True)
    (deep / "back").symlink_to(data)


TRAPS: dict[str, Callable[[Path, random.Random], None]] = {
    "a file of another kind": other_kind,
    "other images": other_images,
    "images elsewhere": images_elsewhere,
    "odd places": odd_places,
    "odd texts": odd_texts,
    "odd records": odd_records,
    "many folders": many_folders,
}


# images


def png(width: int, height: int, *chunks: bytes, rows: int = 100) -> bytes:
    """A gray image of one bit, whose first rows are there."""
    data = zlib.compress(b"\0" * (rows * (1 + (width + 7) // 8)), 1)
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + b"".join(chunks) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


BOMBS: dict[str, Callable[[], bytes]] = {
    "wide and high": lambda: png(20_000, 20_000, rows=20_000),
    "says that it is endless": lambda: png(2**31 - 1, 2**31 - 1, rows=0),
    "no pixels": lambda: png(0, 0),
    "one row": lambda: png(1_000_000, 1, rows=1),
    "a text that unfolds": lambda: png(8, 8, chunk(b"zTXt", b"a\0\0" + zlib.compress(b"x" * 200_000_000, 9)), rows=8),
    "a profile that unfolds": lambda: png(8, 8, chunk(b"iCCP", b"a\0\0" + zlib.compress(b"x" * 200_000_000, 9)), rows=8),
    "a drawing": lambda: b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>",
    "a program": lambda: b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n(/etc/passwd) run\n",
    "frames for ever": lambda: b"GIF89a\x08\0\x08\0\xf0\0\0\0\0\0\xff\xff\xff" + b"\x2c\0\0\0\0\x08\0\x08\0\0\x02\x02\x4c\x01\0" * 20_000 + b";",
    "an archive": lambda: b"PK\x03\x04" + b"\0" * 100,
}  # fmt: skip
