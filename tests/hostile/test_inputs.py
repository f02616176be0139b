"""What a user, or a file, gives that cannot be used: one line, exit code 2."""

import json
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import weft
from forked import run_forked
from waiting import HANGS
from weft.errors import UserError
from weft.store.blobs import Blobs
from weft_tabletop.make import make
from weft_tabletop.tiny.endpoint import SHIPPED
from weft_tabletop.tiny.infer import Tiny

DEEP = b"[" * 100_000 + b"]" * 100_000
GRIDS = [
    "5",
    "[1, 2, 3]",
    "[[1,1,1],[1,1,1]]",
    '[["0","0","0"],["0","0","0"],5]',
    "null",
    '["000","111","rgx"]',
    "[{},{},{}]",
]
BASE = ["--model", "reference", "--judge", "constant/5"]


def run_weft(*words: str | bytes, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "weft", *words], cwd=cwd, capture_output=True, text=True, timeout=HANGS, errors="replace"
    )


def one_line(done: subprocess.CompletedProcess[str], code: int = 2) -> str:
    assert done.returncode == code, (done.returncode, done.stderr[-500:])
    assert "Traceback" not in done.stderr and done.stderr.startswith("weft: ") and done.stderr.count("\n") == 1, (
        done.stderr[-800:]
    )
    return done.stderr


@pytest.mark.parametrize(
    "content", [b'[{"idx": "\xff"}]', DEEP, b"", b"\0" * 100, b"\xff\xfe[\0]\0", b'[{"idx": 1e999}]', b'{"a": ' * 5000]
)
def test_a_weave_file_that_is_none(toy: Path, tmp_path: Path, content: bytes):
    (toy / "test" / "test.json").write_bytes(content)
    one_line(run_forked("run", "weave", "--data", str(toy), *BASE, cwd=tmp_path))


@pytest.fixture
def chats(tmp_path: Path) -> Path:
    return make("tabletop-imug", tmp_path / "chats", samples=3, seed=0)


@pytest.mark.parametrize("file", ["benchmark.jsonl", "image_references.jsonl", "dynamic_references.jsonl"])
@pytest.mark.parametrize(
    "content", [b'{"domain": "\xff"}\n', DEEP, b'{"turn_idx": {}}', b"[1]", b'{"domain": "a", "turn_idx": 1e400}']
)
def test_an_imug_file_that_is_none(chats: Path, tmp_path: Path, file: str, content: bytes):
    found = next(chats.rglob(file), chats / file)
    found.write_bytes(content)
    one_line(run_forked("run", "imug", "--data", str(chats), *BASE, cwd=tmp_path))


@pytest.mark.parametrize("grid", GRIDS)
def test_an_odd_grid(chats: Path, tmp_path: Path, grid: str):
    folder = next(chats.rglob("benchmark.jsonl")).parent / "grid_gt"
    folder.mkdir(exist_ok=True)
    (folder / "A__b__c.jsonl").write_text(f'{{"turn": 1, "grid": {grid}}}\n')
    assert "a grid is three rows" in one_line(run_forked("run", "imug", "--data", str(chats), *BASE, cwd=tmp_path))


@pytest.mark.parametrize(
    "toml",
    [
        '[models.m]\nuse = "openai-chat/m@http://127.0.0.1:9/v1"\ntemperature = inf\n',
        '[models.m]\nuse = "openai-chat/m@http://127.0.0.1:9/v1"\ntimeout = nan\n',
        '[models.m]\nuse = "openai-chat/m@http://127.0.0.1:9/v1"\nmax_tokens = inf\n',
        '[models.m]\nuse = "openai-chat/m@http://127.0.0.1:9/v1"\nseed = inf\n',
        '[models.m]\nuse = "openai-chat/m@http://127.0.0.1:9/v1"\nextra = 5\n',
        "[models.m]\nuse = 5\n",
        "[prices.x]\nin = inf\nout = 1\n",
        "a = " + "[" * 5000 + "]" * 5000,
        "\x00",
        "models = 5",
    ],
)
def test_an_odd_weft_toml(toy: Path, tmp_path: Path, toml: str):
    (tmp_path / "weft.toml").write_text(toml)
    one_line(run_forked("run", "weave", "--data", str(toy), "--model", "m", "--judge", "constant/5", cwd=tmp_path))


def test_a_weft_toml_that_is_no_utf8(toy: Path, tmp_path: Path):
    (tmp_path / "weft.toml").write_bytes(b'[models.m]\nuse = "\xff"\n')
    one_line(run_forked("run", "weave", "--data", str(toy), *BASE, cwd=tmp_path))


@pytest.mark.parametrize(
    "words",
    [
        ["--model", "infer/http://[::1", "--judge", "constant/5"],
        ["--model", "reference", "--judge", "openai-chat/x@http://[::1"],
        [*BASE, "--strategy", "best-of:²"],
        [*BASE, "--strategy", "self-verify:٣"],
        [*BASE, "--strategy", "best-of:999999999999"],
        [*BASE, "--where", "domain"],
        [
            "--model",
            "openai-chat/x@http://127.0.0.1:9/v1",
            "--judge",
            "constant/5",
            "--model-opt",
            "extra=" + "[" * 5000,
        ],
        ["--model", "tabletop/oracle", "--model-opt", "error=inf", "--judge", "constant/5"],
        ["--model", "tabletop/tiny", "--model-opt", "temperature=nan", "--judge", "constant/5"],
        ["--model", "constant/inf", "--judge", "constant/nan"],
    ],
)
def test_an_odd_word(toy: Path, tmp_path: Path, words: list[str]):
    one_line(run_forked("run", "weave", "--data", str(toy), *words, cwd=tmp_path))


@pytest.mark.parametrize("place", range(4))
def test_a_path_that_is_no_utf8(toy: Path, tmp_path: Path, place: int):
    words: list[Any] = ["run", "weave", "--data", str(toy), *BASE, "--home", "home"]
    words[(3, 5, 7, 9)[place]] = b"caf\xe9"
    assert "is not UTF-8" in one_line(run_weft(*words, cwd=tmp_path))


def test_a_folder_that_leads_out_of_the_dataset_is_refused(chats: Path, toy: Path, tmp_path: Path):
    images = next(chats.rglob("images"))
    images.rename(tmp_path / "elsewhere")
    images.symlink_to(tmp_path / "elsewhere")
    assert "leads out of the dataset" in one_line(run_forked("run", "imug", "--data", str(chats), *BASE, cwd=tmp_path))
    (toy / "test" / "imgs").rename(tmp_path / "imgs")
    (toy / "test" / "imgs").symlink_to(tmp_path / "imgs")
    assert "leads out of the dataset" in one_line(run_forked("run", "weave", "--data", str(toy), *BASE, cwd=tmp_path))


def fifo(path: Path) -> None:
    os.mkfifo(path)


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(6 * 1024**3)


def circle(path: Path) -> None:
    path.symlink_to(path)


def folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize("odd", [fifo, sparse, circle, folder], ids=lambda odd: odd.__name__)
def test_what_is_no_plain_file_of_a_fitting_size_is_refused_by_its_kind(
    toy: Path, tmp_path: Path, odd: Callable[[Path], None]
):
    picture = toy / "test" / "imgs" / "toy_1.png"
    picture.unlink()
    odd(picture)
    run = weft.evaluate("weave", data=toy, model="reference", judge="constant/5", home=tmp_path / "home")
    left = " ".join(run.record.left_out)
    assert len(run.record.left_out) == 1 and "images[0]" in left, left
    records = toy / "test" / "test.json"
    records.unlink()
    odd(records)
    one_line(run_forked("run", "weave", "--data", str(records if odd is not circle else toy), *BASE, cwd=tmp_path))


def test_outputs_that_are_no_plain_files_are_unscored(toy: Path, tmp_path: Path):
    out = tmp_path / "out"
    out.mkdir()
    os.mkfifo(out / "toy_2.png")
    (out / "other.png").write_bytes(b"a file of its own, so that the folder has outputs")
    run = weft.evaluate("weave", data=toy, model=f"folder/{out}", judge="constant/5", home=tmp_path / "home")
    assert run.record.state == "finished" and len(run.turns) == 10


def header_of(data: bytes) -> tuple[dict[str, Any], bytes]:
    length = struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def with_header(data: bytes, change: Callable[[dict[str, Any]], Any]) -> bytes:
    header, body = header_of(data)
    change(header)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


def first(header: dict[str, Any]) -> dict[str, Any]:
    return next(value for name, value in header.items() if name != "__metadata__")


DAMAGES: list[Callable[[bytes], bytes]] = [
    lambda data: b"",
    lambda data: data[:4],
    lambda data: data[: len(data) // 2],
    lambda data: data + b"x",
    lambda data: struct.pack("<Q", 2**63) + data[8:],
    lambda data: struct.pack("<Q", 0) + data[8:],
    lambda data: data[:8] + b"\xff" + data[9:],
    lambda data: data[:8] + b"[" * 5000 + data[5008:],
    lambda data: data[:-5] + b"xxxxx",
    lambda data: with_header(data, lambda header: header.clear()),
    lambda data: with_header(data, lambda header: header.pop("__metadata__")),
    lambda data: with_header(data, lambda header: header.update(__metadata__=5)),
    lambda data: with_header(
        data, lambda header: header.update(extra={"dtype": "F32", "shape": [1], "data_offsets": [0, 4]})
    ),
    lambda data: with_header(data, lambda header: header.update(extra=5)),
    lambda data: with_header(data, lambda header: first(header).update(dtype="F99")),
    lambda data: with_header(data, lambda header: first(header).update(dtype="F16")),
    lambda data: with_header(data, lambda header: first(header).update(shape=[1, 2, 3])),
    lambda data: with_header(data, lambda header: first(header).update(shape=[-1])),
    lambda data: with_header(data, lambda header: first(header).update(shape="x")),
    lambda data: with_header(data, lambda header: first(header).update(data_offsets=[0])),
    lambda data: with_header(data, lambda header: first(header).update(data_offsets=[4, 0])),
    lambda data: with_header(data, lambda header: first(header).update(data_offsets=[1, 2, 3])),
    lambda data: with_header(data, lambda header: first(header).update(data_offsets=["a", "b"])),
    lambda data: with_header(data, lambda header: header.pop(next(name for name in header if name != "__metadata__"))),
    lambda data: with_header(
        data, lambda header: header.update(renamed=header.pop(next(name for name in header if name != "__metadata__")))
    ),
    lambda data: with_header(data, lambda header: header["__metadata__"].update(sha256="0")),
]


@pytest.mark.parametrize("at", range(len(DAMAGES)))
@pytest.mark.parametrize("file", ["pictures", "talker"])
def test_damaged_weights_are_one_line(tmp_path: Path, at: int, file: str):
    for name in ("pictures", "talker"):
        data = (SHIPPED / f"{name}.safetensors").read_bytes()
        (tmp_path / f"{name}.safetensors").write_bytes(DAMAGES[at](data) if name == file else data)
    with pytest.raises(UserError) as caught:
        Tiny(tmp_path)
    assert "\n" not in str(caught.value) and str(tmp_path) in str(caught.value)


def test_the_shipped_weights_are_whole(blobs: Blobs):
    Tiny(SHIPPED)


def test_a_byte_order_mark_costs_nothing(toy: Path, chats: Path, tmp_path: Path):
    for name, file in (("weave", toy / "test" / "test.json"), ("imug", next(chats.rglob("benchmark.jsonl")))):
        data = toy if name == "weave" else chats
        before = weft.evaluate(name, data=data, model="copy", judge="constant/max", home=tmp_path / f"{name}-1")
        file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes().replace(b"\n", b"\r\n"))
        after = weft.evaluate(name, data=data, model="copy", judge="constant/max", home=tmp_path / f"{name}-2")
        assert len(after.turns) == len(before.turns) and not after.record.left_out


def test_pictures_may_lie_beside_the_folder_of_the_records(tmp_path: Path, blobs: Blobs):
    from weft.benchmarks.records import Records

    for folder in ("annotations", "images"):
        (tmp_path / "data" / folder).mkdir(parents=True)
    Records(tmp_path / "data" / "annotations" / "a.json", tmp_path / "data" / "images", blobs)
    (tmp_path / "link").symlink_to(tmp_path / "data")
    Records(tmp_path / "link" / "annotations" / "a.json", tmp_path / "link" / "images", blobs)
    (tmp_path / "data" / "away").symlink_to(tmp_path)
    with pytest.raises(UserError, match="leads out of the dataset"):
        Records(tmp_path / "data" / "a.json", tmp_path / "data" / "away", blobs)


@pytest.mark.parametrize(
    "suite",
    [
        "weave = 5",
        'weave = ["data"]',
        'weave = {data = "DATA", limit = "two"}',
        "weave = {data = 5}",
        'weave = {data = "DATA", judge = 5}',
        'weave = {data = "DATA", where = "x"}',
        'weave = {data = "DATA", budget = []}',
    ],
)
def test_an_odd_suite_is_one_line(toy: Path, tmp_path: Path, suite: str):
    (tmp_path / "weft.toml").write_text(f"[suite]\n{suite}\n".replace("DATA", str(toy)))
    done = run_forked("suite", "run", "--models", "copy", "--judge", "constant/5", cwd=tmp_path)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "suite.weave" in done.stderr, done.stderr
