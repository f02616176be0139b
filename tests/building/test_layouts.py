"""A build's dialogues in other layouts: all of them say the same, and the same data are the same bytes."""

import asyncio
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pil

import weft
from weft.building.build import run_build
from weft.building.draft import Row
from weft.building.export import export
from weft.building.parts import read_rows
from weft.building.request import BuildRequest
from weft.errors import UserError
from weft.store.blobs import Blobs
from weft_tabletop.building.check_build import is_right_attempt

pq: Any = pytest.importorskip("pyarrow.parquet")
MODELS = {"writer": "tabletop/oracle", "painter": "tabletop/faulty,tabletop/oracle", "checker": "tabletop/exact"}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("build") / "out"
    request = BuildRequest("tabletop-recall", out, MODELS, 6, model_options={"painter.rate": "0.5"})
    assert asyncio.run(run_build(request)).reason is None
    return out


def tree(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize("layout", ["weave", "parquet", "webdataset", "pairs"])
def test_the_same_data_are_the_same_bytes(built: Path, tmp_path: Path, layout: str):
    first = export(built, layout, tmp_path / "first")
    assert first > 0 and export(built, layout, tmp_path / "second") == first
    assert tree(tmp_path / "first") == tree(tmp_path / "second")
    export(built, layout, tmp_path / "first")
    assert tree(tmp_path / "first") == tree(tmp_path / "second")


def test_all_layouts_have_the_same_dialogues(built: Path, tmp_path: Path):
    for layout in ("weave", "parquet", "webdataset"):
        export(built, layout, tmp_path / layout)
    records: list[dict[str, Any]] = json.loads((tmp_path / "weave" / "test.json").read_text())
    table = pq.read_table(tmp_path / "parquet" / "00000.parquet").to_pylist()
    with tarfile.open(tmp_path / "webdataset" / "shard-00000.tar") as tar:
        members = {one.name: tar.extractfile(one).read() for one in tar}  # type: ignore[union-attr]
    assert [record["idx"] for record in records] == [row["id"] for row in table]
    for record, row in zip(records, table, strict=True):
        key = f"{record['idx']:08d}"
        shard = json.loads(members[f"{key}.json"])
        assert shard["chats"] == record["chats"] and shard["domain"] == record["domain"] == row["domain"]
        files = [(tmp_path / "weave" / path).read_bytes() for path in record["images"]]
        assert files == [image["bytes"] for image in row["images"]] == [members[name] for name in shard["images"]]
        assert [chat["content"] for chat in record["chats"][::2]] == [turn["user"] for turn in row["turns"]]
        replies = [turn["text"] if turn["image"] is None else f"Image #{turn['image']}" for turn in row["turns"]]
        assert replies == [chat["content"] for chat in record["chats"][1::2]]
        points = [{one["name"]: one["text"] for one in turn["key_points"]} or None for turn in row["turns"]]
        assert points == [chat["key_point"] for chat in record["chats"][1::2]]


def test_datasets_finds_its_features_in_the_parquet(built: Path, tmp_path: Path):
    export(built, "parquet", tmp_path / "parquet")
    file = pq.ParquetFile(tmp_path / "parquet" / "00000.parquet")
    features = json.loads(file.schema_arrow.metadata[b"huggingface"])["info"]["features"]
    assert features["images"] == {"feature": {"_type": "Image"}, "_type": "List"}
    assert [*features] == file.schema_arrow.names
    image = file.read().to_pylist()[0]["images"][0]
    assert Pil.open(io.BytesIO(image["bytes"])).size == (64, 64)


def test_pairs_have_the_right_image_against_a_wrong_one(built: Path, tmp_path: Path):
    count = export(built, "pairs", tmp_path / "pairs")
    lines = [json.loads(line) for line in (tmp_path / "pairs" / "pairs.jsonl").read_text().splitlines()]
    assert len(lines) == count
    blobs = Blobs(built / "blobs")
    attempts = {
        (row.number, attempt.item, attempt.role): attempt for row in read_rows(built) for attempt in row.attempts
    }
    for line in lines:
        sides = [attempts[line["seed"], line["item"], line[side]["role"]] for side in ("chosen", "rejected")]
        assert [is_right_attempt(one, blobs) for one in sides] == [True, False]
        assert line["rejected"]["reasons"] and (tmp_path / "pairs" / line["chosen"]["image"]).is_file()


def test_an_export_replaces_no_build(built: Path, tmp_path: Path):
    with pytest.raises(UserError, match="is a build: give --out another folder"):
        export(built, "weave", built)
    with pytest.raises(UserError, match="there is no layout 'csv'; there is weave, parquet, webdataset, pairs"):
        export(built, "csv", tmp_path / "csv")


def test_a_test_part_has_its_own_folder_that_can_be_evaluated(tmp_path: Path):
    def build(seeds: int, **more: Any) -> list[Row]:
        request = BuildRequest("weave-derive", tmp_path, {}, seeds, options={"side": 128, "domains": "chess"}, **more)
        assert asyncio.run(run_build(request)).reason is None
        return list(read_rows(tmp_path))

    def held_out(name: str) -> set[int]:
        return {record["idx"] for record in json.loads((tmp_path / name).read_text())}

    build(10, test_share=0.3)
    rows = build(20, test_share=0.3)
    test = {row.number + 1 for row in rows if row.draft and row.draft.split == "test"}
    assert 0 < len(test) < 20 and held_out("test/test.json") == test
    assert held_out("train.json") == {*range(1, 21)} - test and not (tmp_path / "test.json").exists()
    for data in (tmp_path, tmp_path / "test"):
        run = weft.evaluate("weave", data=data, model="reference", judge="constant/5", home=tmp_path / "home")
        assert {turn.sample for turn in run.turns} == {str(number) for number in test}
    with pytest.raises(UserError, match=r"its test part is 0\.3 of the dialogues, not 0"):
        build(20)
    with pytest.raises(UserError, match="give a share from 0 to below 1"):
        build(20, test_share=1.0)


def test_a_test_part_stays_apart_in_every_layout(tmp_path: Path):
    options = {"side": 128, "domains": "chess"}
    request = BuildRequest("weave-derive", tmp_path / "data", {}, 12, options=options, test_share=0.4)
    assert asyncio.run(run_build(request)).reason is None
    test = {row.number + 1 for row in read_rows(tmp_path / "data") if row.draft and row.draft.split == "test"}
    export(tmp_path / "data", "webdataset", tmp_path / "tar")
    found: dict[str, set[int]] = {}
    for file in (tmp_path / "tar").glob("*.tar"):
        with tarfile.open(file) as tar:
            found[file.stem] = {int(name.split(".")[0]) for name in tar.getnames() if name.endswith(".json")}
    assert found == {"test-00000": test, "shard-00000": {*range(1, 13)} - test}
    export(tmp_path / "data", "parquet", tmp_path / "parquet")
    rows = pq.read_table(tmp_path / "parquet" / "00000.parquet").to_pylist()
    assert {row["id"] for row in rows if row["split"] == "test"} == test


def test_nobodys_files_are_replaced(built: Path, tmp_path: Path):
    (tmp_path / "mine" / "test").mkdir(parents=True)
    (tmp_path / "mine" / "test" / "notes.txt").write_text("keep me")
    request = BuildRequest("weave-derive", tmp_path / "mine", {}, 1, options={"side": 128})
    with pytest.raises(UserError, match=r"has other files in it \(test\), and no build.json"):
        asyncio.run(run_build(request))
    with pytest.raises(UserError, match="has something else in it"):
        export(built, "webdataset", tmp_path / "mine")
    assert (tmp_path / "mine" / "test" / "notes.txt").read_text() == "keep me"


def test_a_dataset_that_cannot_be_written_is_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    options = {"side": 128, "domains": "chess"}
    request = BuildRequest("weave-derive", tmp_path, {}, 3, options=options)
    asyncio.run(run_build(request))
    before = {name: data for name, data in tree(tmp_path).items() if name.startswith(("imgs", "test.json"))}
    rename = Path.rename

    def fail_at_records(path: Path, target: Path) -> Path:
        if target == tmp_path / "test.json" and path.parent.name.startswith(".weave-"):
            raise OSError("no")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", fail_at_records)
    with pytest.raises(OSError, match="no"):
        asyncio.run(run_build(BuildRequest("weave-derive", tmp_path, {}, 5, options=options)))
    assert {name: data for name, data in tree(tmp_path).items() if name.startswith(("imgs", "test.json"))} == before


def test_files_of_another_layout_leave_when_the_dataset_is_written_again(tmp_path: Path):
    out = tmp_path / "data"
    request = BuildRequest("weave-derive", out, {}, 3, options={"side": 128, "domains": "chess"})
    asyncio.run(run_build(request))
    (out / "test").mkdir()
    (out / "train.json").write_text("[]")
    asyncio.run(run_build(request))
    assert (out / "test.json").is_file() and not (out / "test").exists() and not (out / "train.json").exists()
