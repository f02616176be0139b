"""ROVER's records in the forms that people have them in: what can be used is, what cannot is named, and a large set is
never in memory."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from PIL import Image as Pil

from rover import as_table, puzzles, tasks, write_json, write_parquet, write_save
from server import drawn
from weft.benchmarks import download as hub
from weft.benchmarks.records import digest_samples
from weft.benchmarks.rover.ig import data as ig
from weft.benchmarks.rover.tg import data as tg
from weft.errors import UserError
from weft.store.blobs import Blobs
from weft.types import Image

Write = Callable[[Path], Path]


def in_json(folder: Path) -> Path:
    write_json(folder, "ROVER-TG", puzzles())
    return write_json(folder, "ROVER-IG", tasks())


def in_parquet(folder: Path) -> Path:
    write_parquet(folder, "ROVER-TG", puzzles())
    return write_parquet(folder, "ROVER-IG", tasks(), files=2)


def in_saves(folder: Path) -> Path:
    write_save(folder / "ROVER-TG", puzzles())
    write_save(folder / "ROVER-IG" / "train", tasks())
    (folder / "ROVER-IG" / "dataset_dict.json").write_text('{"splits": ["train"]}')
    return folder


@pytest.mark.parametrize("write", [in_json, in_parquet, in_saves])
def test_all_forms_are_the_same_dataset(write: Write, tmp_path: Path, blobs: Blobs):
    folder, plain = write(tmp_path / "data"), in_json(tmp_path / "plain")
    for half, name in ((ig, "rover-ig"), (tg, "rover-tg")):
        found, due = half.load(folder, blobs).load_all(), half.load(plain, blobs).load_all()
        assert (
            found.name == name
            and found.problems == ()
            and digest_samples(found.samples) == digest_samples(due.samples)
            and len(found.samples) == found.records
        )
    first = ig.load(folder, blobs).load_all().samples[0]
    assert (
        dict(first.groups) == {"dimension": "science", "type": "temporal"}
        and first.turns[0].file == "gen_science_temporal_1.png"
    )
    assert ig.load(folder, blobs).load_all().samples[3].groups["type"] == "mathematical"
    puzzle = tg.load(folder, blobs).load_all().samples
    assert [(one.groups["scenario"], one.groups["type"]) for one in puzzle] == [
        *(("Physical World", "physical"), ("Physical World", "embodied"), ("Logical Assistant", "logical")),
        *(("Visual Perception", "jigsaw"), ("Visual Perception", "multi-view")),
    ]
    with_reference = [one.turns[0].gold.reference is not None for one in puzzle]
    assert with_reference == [True, True, True, True, False]  # a turn more that is given the reference image
    assert [[turn.modality for turn in one.turns] for one in puzzle] == [
        ["interleaved", "text", "text"] if given else ["interleaved", "text"] for given in with_reference
    ]


def test_a_single_file_will_do(tmp_path: Path, blobs: Blobs):
    in_parquet(tmp_path / "a")
    in_saves(tmp_path / "b")
    files = [
        tmp_path / "a/ROVER-IG/train-00000-of-00002.parquet",
        tmp_path / "b/ROVER-IG/train/data-00000-of-00001.arrow",
    ]
    assert [len(ig.load(file, blobs).load_all().samples) for file in files] == [2, 4]


def test_tables_of_any_name_are_told_apart_by_their_columns(tmp_path: Path, blobs: Blobs):
    write_parquet(tmp_path / "x", "ROVER-IG", tasks())
    write_parquet(tmp_path / "x", "ROVER-TG", puzzles())
    (tmp_path / "flat").mkdir()
    for at, path in enumerate(sorted((tmp_path / "x").rglob("*.parquet"))):
        path.rename(tmp_path / "flat" / f"part{at}.parquet")
    assert (
        len(ig.load(tmp_path / "flat", blobs).load_all().samples),
        len(tg.load(tmp_path / "flat", blobs).load_all().samples),
    ) == (4, 5)


def test_a_table_without_a_column_costs_that_table_and_is_said_once(tmp_path: Path, blobs: Blobs):
    from pyarrow import parquet

    folder = write_parquet(tmp_path, "ROVER-IG", tasks(), files=2)
    file = folder / "ROVER-IG" / "train-00000-of-00002.parquet"
    parquet.write_table(parquet.read_table(file).drop_columns(["prompt"]), file)
    found = ig.load(folder, blobs).load_all()
    assert len(found.samples) == 2
    assert [str(one) for one in found.problems] == [
        f"{file.name}: prompt: has no column prompt: all of its 2 records are left out"
    ]


def test_a_broken_table_costs_itself_alone(tmp_path: Path, blobs: Blobs):
    folder = write_parquet(tmp_path, "ROVER-IG", tasks(), files=2)
    whole = (folder / "ROVER-IG" / "train-00000-of-00002.parquet").read_bytes()
    (folder / "ROVER-IG" / "train-00000-of-00002.parquet").write_bytes(whole[: len(whole) // 2])
    found = ig.load(folder, blobs).load_all()
    assert len(found.samples) == 2 and len(found.problems) == 1 and "cannot be read" in str(found.problems[0])


def test_no_table_of_the_half_is_a_clear_error(tmp_path: Path, blobs: Blobs):
    write_parquet(tmp_path, "ROVER-TG", puzzles())
    with pytest.raises(UserError, match="none of its 1 tables is of ROVER-IG.*weft data get rover"):
        ig.load(tmp_path, blobs).load_all()


SPOILT: list[tuple[dict[str, Any], str]] = [
    ({"image": None}, "image: has no image; it is null"),
    ({"image": {"bytes": b"no picture", "path": None}}, "image: "),
    ({"reasoning_type": "musical"}, "reasoning_type: 'musical' is none of temporal, spatial"),
    ({"dimension": "sports"}, "dimension: 'sports' is none of science, culture"),
    ({"dimension": True}, "dimension: True is none of"),
    ({"prompt": "  "}, "prompt: is missing or empty"),
    ({"prompt": 7}, "prompt: must be text, not int"),
    ({"id": "../../etc"}, "id: '../../etc' cannot be part of a file's name"),
    ({"id": None}, "id: is missing"),
    ({"image": "../outside.png"}, "image: '../outside.png' leads out of the dataset"),
]


@pytest.mark.parametrize(("change", "told"), SPOILT)
def test_a_spoilt_record_is_named_and_the_others_run(change: dict[str, Any], told: str, tmp_path: Path, blobs: Blobs):
    records = tasks()
    whole = write_json(tmp_path, "ROVER-IG", records)
    lines = [json.loads(line) for line in (whole / "ROVER-IG.jsonl").read_text().splitlines()]
    lines[1] |= {
        name: {"bytes": "bm90", "path": 3} if isinstance(value, dict) else value for name, value in change.items()
    }
    (whole / "ROVER-IG.jsonl").write_text("\n".join(map(json.dumps, lines)))
    found = ig.load(whole, blobs).load_all()
    assert len(found.samples) == 3 and [one.severity for one in found.problems] == ["error"]
    assert str(found.problems[0]).startswith("ROVER-IG.jsonl: record 1") and told in str(found.problems[0])


def test_null_pictures_and_bytes_that_are_none_in_a_table(tmp_path: Path, blobs: Blobs):
    from pyarrow import parquet

    records = tasks()
    records[1]["image"] = None
    (tmp_path / "ROVER-IG").mkdir()
    table = as_table(records)
    rows = table.to_pylist()
    rows[2]["image"]["bytes"] = b"GIF89a and then nothing"
    import pyarrow

    parquet.write_table(pyarrow.Table.from_pylist(rows, schema=table.schema), tmp_path / "ROVER-IG" / "train.parquet")
    found = ig.load(tmp_path, blobs).load_all()
    assert [sample.id for sample in found.samples] == ["science_temporal_1", "logic_math_3"]
    assert [problem.field for problem in found.problems] == ["image", "image"]


def test_a_text_that_is_no_utf8_costs_its_record_alone(tmp_path: Path, blobs: Blobs):
    import pyarrow
    from pyarrow import parquet

    table = as_table(tasks())
    spoilt = pyarrow.array([b"Melt it.", b"\xff\xfe\xfa", b"Mix it.", b"Add it."]).view(pyarrow.string())
    (tmp_path / "ROVER-IG").mkdir()
    at = table.schema.names.index("prompt")
    parquet.write_table(table.set_column(at, "prompt", spoilt), tmp_path / "ROVER-IG" / "train.parquet")
    found = ig.load(tmp_path, blobs).load_all()
    assert len(found.samples) == 3 and len(found.problems) == 1 and "cannot be read" in str(found.problems[0])


def test_a_time_that_python_does_not_have_costs_its_record_and_two_columns_of_one_name_their_table(
    tmp_path: Path, blobs: Blobs
):
    import pyarrow
    from pyarrow import parquet

    table = as_table(tasks())
    spans = pyarrow.array([1, 2**62, 3, 4], pyarrow.int64()).view(pyarrow.duration("s"))
    (tmp_path / "ROVER-IG").mkdir()
    at = table.schema.names.index("target_image")
    parquet.write_table(table.set_column(at, "target_image", spans), tmp_path / "ROVER-IG" / "train-1.parquet")
    os.mkfifo(tmp_path / "ROVER-IG" / "train-2.parquet")
    twice = table.append_column("id", table.column("prompt"))
    parquet.write_table(twice, tmp_path / "ROVER-IG" / "train-3.parquet")
    parquet.write_table(table, tmp_path / "ROVER-IG" / "train-4.parquet")
    found = ig.load(tmp_path, blobs).load_all()
    problems = [str(problem) for problem in found.problems]
    assert len(found.samples) == 4 and any(
        "train-3.parquet: cannot be read: it has two columns id" in one for one in problems
    )
    assert sum("record" in one for one in problems) >= 4 and not any("\n" in one for one in problems), problems


def test_a_text_that_leads_out_of_its_file_costs_its_record_and_not_the_process(tmp_path: Path, blobs: Blobs):
    import pyarrow

    write_save(tmp_path / "ROVER-IG", tasks())
    table = as_table(tasks())
    offsets = pyarrow.array([0, 8, 2_000_000_000, 2_000_000_004, 12], pyarrow.int32()).buffers()[1]
    texts = pyarrow.StringArray.from_buffers(4, offsets, pyarrow.py_buffer(b"Melt it.Add."))
    table = table.set_column(table.schema.names.index("prompt"), "prompt", texts)
    with (
        pyarrow.OSFile(str(tmp_path / "ROVER-IG" / "data-00000-of-00001.arrow"), "wb") as sink,
        pyarrow.ipc.new_stream(sink, table.schema) as writer,
    ):
        writer.write_table(table)
    found = ig.load(tmp_path, blobs).load_all()
    assert [sample.id for sample in found.samples] == ["science_temporal_1"]
    assert len(found.problems) == 3 and all("cannot be read" in str(problem) for problem in found.problems)


def test_other_shapes_that_mean_the_same(tmp_path: Path, blobs: Blobs):
    """Pictures as plain bytes, keywords as a list with a gap, numbers as ids, one split of several, metadata that is no
    JSON."""
    import pyarrow
    from pyarrow import parquet

    rows = [
        {**row, "image": row["image"]["bytes"], "keywords": ["a", None, "b"], "id": at}
        for at, row in enumerate(as_table(tasks()).to_pylist())
    ]
    table = pyarrow.Table.from_pylist(rows).replace_schema_metadata({b"huggingface": b"{no JSON"})
    (tmp_path / "ROVER-IG").mkdir()
    parquet.write_table(
        table.set_column(1, "dimension", [["science", "culture", "common_sense", "logic"]]),
        tmp_path / "ROVER-IG" / "train-0.parquet",
    )
    parquet.write_table(table, tmp_path / "ROVER-IG" / "test-0.parquet")
    found = ig.load(tmp_path, blobs).load_all()
    assert [sample.id for sample in found.samples] == ["0", "1", "2", "3"] and found.records == 4
    assert found.samples[0].turns[0].gold.keywords == "a, b"


def test_one_object_is_a_dataset_of_one(tmp_path: Path, blobs: Blobs):
    write_json(tmp_path, "ROVER-IG", tasks()[:1])
    (tmp_path / "ROVER-IG.jsonl").rename(tmp_path / "ROVER-IG.json")
    whole = json.loads((tmp_path / "ROVER-IG.json").read_text())
    (tmp_path / "ROVER-IG.json").write_text(json.dumps(whole, indent=2))
    assert len(ig.load(tmp_path, blobs).load_all().samples) == 1


def test_halves_in_different_forms(tmp_path: Path, blobs: Blobs):
    write_parquet(tmp_path, "ROVER-IG", tasks())
    write_save(tmp_path / "ROVER-TG", puzzles())
    assert (len(ig.load(tmp_path, blobs).load_all().samples), len(tg.load(tmp_path, blobs).load_all().samples)) == (
        4,
        5,
    )


def test_names_of_the_paper_and_of_the_prompts_mean_the_same(tmp_path: Path, blobs: Blobs):
    records = tasks()
    for record, dimension, kind in zip(
        records,
        ("Nature Science", "humanity", "Common Sense", "Logic"),
        ("Temporal", "synthetic", "causal", "math"),
        strict=True,
    ):
        record |= {"dimension": dimension, "reasoning_type": kind}
    found = ig.load(write_json(tmp_path, "ROVER-IG", records), blobs).load_all()
    assert [sample.groups["dimension"] for sample in found.samples] == ["science", "culture", "common_sense", "logic"]
    assert [sample.groups["type"] for sample in found.samples] == ["temporal", "imaginative", "causal", "mathematical"]
    assert (
        ig.canonical_group("type", "Synthetic") == "imaginative"
        and ig.canonical_group("dimension", "Humanity") == "culture"
    )
    assert (
        tg.canonical_group("type", "perception_next") == "multi-view"
        and tg.canonical_group("scenario", "logical assistance") == "Logical Assistant"
    )
    assert found.samples[1].turns[0].gold.dimension == "humanity"  # the judge is told what the data say


def test_numbers_without_names_are_told_by_the_id(tmp_path: Path, blobs: Blobs):
    from pyarrow import parquet

    folder = write_parquet(tmp_path, "ROVER-IG", tasks())
    file = next(folder.rglob("*.parquet"))
    parquet.write_table(parquet.read_table(file).replace_schema_metadata({}), file)
    assert [sample.groups["dimension"] for sample in ig.load(folder, blobs).load_all().samples] == [
        "science",
        "culture",
        "common_sense",
        "logic",
    ]


def test_what_an_id_tells():
    assert ig.parse_id("science_temporal_1") == ("science", "temporal")
    assert ig.parse_id("common_sense_causal_12") == ("common_sense", "causal")
    assert ig.parse_id("logic_math_3") == ("logic", "mathematical")
    assert ig.parse_id("odd") == ("odd", "")


def test_an_id_that_tells_otherwise_is_a_warning(tmp_path: Path, blobs: Blobs):
    records = tasks()
    records[0]["id"] = "logic_abstract_7"
    found = ig.load(write_json(tmp_path, "ROVER-IG", records), blobs).load_all()
    assert len(found.samples) == 4 and "says logic abstract, its fields science temporal" in str(found.problems[0])


def test_puzzles_that_cannot_be_asked(tmp_path: Path, blobs: Blobs):
    records = puzzles()
    records[0]["problem_type"] = "musical"
    records[1]["answer"] = "go left"
    records[2]["answer"] = None
    records[3]["reasoning_image"] = None
    records[4]["image2"] = None
    found = tg.load(write_json(tmp_path, "ROVER-TG", records), blobs).load_all()
    assert [sample.id for sample in found.samples] == ["jigsaw_3"]
    assert [(one.severity, one.field) for one in found.problems] == [
        *(
            ("error", "problem_type"),
            ("error", "answer"),
            ("error", "answer"),
            ("warning", "reasoning_image"),
            ("error", "image2"),
        ),
    ]


def test_lists_and_numbers_are_answers(tmp_path: Path, blobs: Blobs):
    records = puzzles()
    records[0]["answer"] = ["red cup", "blue cup"]
    records[1]["answer"] = [[2, 3], [4, 5]]
    records[2]["answer"] = 12.5
    records[3]["answer"] = 1234567
    records[4]["answer"] = [1.0, 2.0]
    found = tg.load(write_json(tmp_path, "ROVER-TG", records), blobs).load_all()
    answers = [sample.turns[0].gold.answer for sample in found.samples]
    assert answers == ["red cup, blue cup", "[[2, 3], [4, 5]]", "12.5", "1234567", "1, 2"]


@pytest.mark.parametrize("answer", [None, "", "  ", [], [None], True, {"a": 1}])
def test_no_answer_is_the_datas_fault(answer: Any, tmp_path: Path, blobs: Blobs):
    records = puzzles()
    records[2]["answer"] = answer
    found = tg.load(write_json(tmp_path, "ROVER-TG", records), blobs).load_all()
    assert len(found.samples) == 4 and [problem.field for problem in found.problems] == ["answer"]


def test_pictures_of_a_puzzle_in_their_order(tmp_path: Path, blobs: Blobs):
    found = {
        sample.groups["type"]: sample.turns[0].gold
        for sample in tg.load(write_json(tmp_path, "ROVER-TG", puzzles()), blobs).load_all().samples
    }

    def shown(kind: str, turn: int) -> list[bytes]:
        return [blobs.read(image) for image in found[kind].input_images(turn)]

    assert shown("physical", tg.VISUAL_TURN) == [drawn("view 0")]
    assert shown("embodied", tg.VISUAL_TURN) == [drawn("view 1"), drawn("example 1")]
    assert shown("embodied", tg.TEXT_TURN) == [drawn("view 1")]  # how a path is drawn is nothing to who draws none
    assert (
        shown("multi-view", tg.VISUAL_TURN) == shown("multi-view", tg.TEXT_TURN) == [drawn("view 4"), drawn("second 4")]
    )


LOAD = """
import sys, tempfile
from pathlib import Path
from weft.benchmarks import load_benchmark
from weft.store.blobs import Blobs
with tempfile.TemporaryDirectory() as home:
    found = load_benchmark("rover-ig").load(Path(sys.argv[1]), Blobs(Path(home))).load_all()
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print(len(found.samples), int(peak.split()[1]) // 1024)
"""


@pytest.mark.parametrize("form", ["parquet", "save"])
def test_a_large_table_is_never_in_memory(form: str, tmp_path: Path):
    """600 pictures of a megabyte each, which only their last bytes tell apart."""
    import pyarrow
    from pyarrow import parquet

    made = io.BytesIO()
    Pil.open(io.BytesIO(drawn("x"))).save(made, "JPEG")
    filling, records = made.getvalue() + bytes(1_000_000), tasks()
    schema = as_table(records).schema

    def some(start: int) -> Any:
        pictures = [{"bytes": filling + str(at).encode(), "path": None} for at in range(start, start + 100)]
        facts = {**records[0], "dimension": 0, "target_image": None}
        rows = [
            {**facts, "id": f"science_temporal_{start + at}", "image": picture} for at, picture in enumerate(pictures)
        ]
        return pyarrow.Table.from_pylist(rows, schema=schema)

    if form == "parquet":
        (tmp_path / "ROVER-IG").mkdir()
        file = tmp_path / "ROVER-IG" / "train.parquet"
        with parquet.ParquetWriter(file, schema, compression="none", use_dictionary=False) as writer:
            for start in range(0, 600, 100):
                writer.write_table(some(start))
    else:
        file = write_save(tmp_path / "ROVER-IG", records) / "data-00000-of-00001.arrow"
        with pyarrow.OSFile(str(file), "wb") as sink, pyarrow.ipc.new_stream(sink, schema) as writer:
            for start in range(0, 600, 100):
                writer.write_table(some(start))
    done = subprocess.run([sys.executable, "-c", LOAD, str(tmp_path)], capture_output=True, text=True, check=True)
    file.unlink()
    count, megabytes = map(int, done.stdout.split())
    assert count == 600 and megabytes < 500


def test_without_pyarrow_the_extra_is_named(tmp_path: Path, blobs: Blobs, monkeypatch: pytest.MonkeyPatch):
    folder = write_parquet(tmp_path, "ROVER-IG", tasks())
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UserError, match=r"pip install -e '\.\[parquet\]'"):
        ig.load(folder, blobs).load_all()


class Hub(BaseHTTPRequestHandler):
    """As much of a hub as a download needs."""

    files: dict[str, bytes] = {}

    def do_HEAD(self) -> None:
        self.answer(body=False)

    def do_GET(self) -> None:
        self.answer(body=True)

    def answer(self, *, body: bool) -> None:
        name = self.path.partition("?")[0].partition("/resolve/" + "0" * 40 + "/")[2]
        if self.path.startswith("/api/datasets/cheryyunl/ROVER"):
            said = {"id": "cheryyunl/ROVER", "sha": "0" * 40, "siblings": [{"rfilename": one} for one in self.files]}
            tree = [
                {"type": "file", "path": one, "size": len(data), "oid": "1" * 40} for one, data in self.files.items()
            ]
            data = json.dumps(tree if "/tree/" in self.path else said).encode()
        elif name in self.files:
            data = self.files[name]
        else:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.send_header(
            "Content-Type", "application/json" if self.path.startswith("/api/") else "application/octet-stream"
        )
        self.send_header("ETag", f'"{len(data)}"')
        self.send_header("X-Repo-Commit", "0" * 40)
        self.end_headers()
        if body:
            self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None: ...


GET = """
import sys
from pathlib import Path
from weft.benchmarks.rover.ig import data
from weft.benchmarks.download import download_folders
from weft.store.blobs import Blobs
out = Path(sys.argv[1])
print(download_folders("cheryyunl/ROVER", out, ["ROVER-IG", "ROVER-TG"], "rover") == out)
print(sorted(str(path.relative_to(out)) for path in out.rglob("*.parquet")))
print(len(data.load(Path("cheryyunl/ROVER"), Blobs(out / "blobs")).load_all().samples))
"""


def test_by_name_from_a_hub(tmp_path: Path):
    pytest.importorskip("huggingface_hub")
    write_parquet(tmp_path / "hub", "ROVER-IG", tasks())
    write_parquet(tmp_path / "hub", "ROVER-TG", puzzles())
    Hub.files = {
        str(path.relative_to(tmp_path / "hub")): path.read_bytes() for path in (tmp_path / "hub").rglob("*.parquet")
    }
    Hub.files["other/huge.bin"] = b"not wanted"
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        env = {
            "HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}",
            "HF_HOME": str(tmp_path / "hf"),
            "HF_HUB_DISABLE_XET": "1",
        }
        env |= {"PATH": "/usr/bin", "HOME": str(tmp_path), "HF_HUB_DISABLE_TELEMETRY": "1"}
        (tmp_path / "cwd").mkdir()
        done = subprocess.run(
            [sys.executable, "-c", GET, str(tmp_path / "out")],
            capture_output=True,
            text=True,
            env=env,
            cwd=tmp_path / "cwd",
        )
    finally:
        server.shutdown()
    files = ["ROVER-IG/train-00000-of-00001.parquet", "ROVER-TG/train-00000-of-00001.parquet"]
    assert done.stdout.splitlines() == ["True", str(files), "4"], done.stderr[-2000:]


def test_offline_says_what_to_download_and_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(UserError) as caught:
        hub.download_folders("cheryyunl/ROVER", tmp_path, ["ROVER-IG"], "rover")
    told = str(caught.value)
    assert (
        "pip install -e '.[hub]'" in told
        and f"download ROVER-IG/*.parquet from {hub.HUB_URL}/cheryyunl/ROVER into {tmp_path}/" in told
    )


def test_a_picture_is_an_image(tmp_path: Path, blobs: Blobs):
    found = ig.load(write_json(tmp_path, "ROVER-IG", tasks()), blobs).load_all()
    assert all(isinstance(sample.turns[0].prompt[1], Image) for sample in found.samples)
