"""Every mistake a WEAVE dataset can hold is named by file, record and field, and costs only its own record."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from server import png_header
from toy import toy_records, write_weave
from weft.benchmarks.weave import data
from weft.errors import UserError
from weft.store.blobs import Blobs
from weft.types import Image, Text

Records = list[dict[str, Any]]


def load(folder: Path, records: Records, blobs: Blobs):
    return data.load(write_weave(folder, records), blobs).load_all()


def test_the_official_shape_becomes_samples(toy: Path, blobs: Blobs):
    dataset = data.load(toy, blobs).load_all()
    assert [sample.id for sample in dataset.samples] == ["7", "9", "12", "15"] and not dataset.problems
    first = dataset.samples[0]
    assert first.groups == {"domain": "recall", "class": "Creation"}
    assert [(turn.modality, turn.image_number, turn.file) for turn in first.turns] == [
        ("image", 2, "toy_2.png"),
        ("text", None, "toy_1_1.txt"),
        ("image", 3, "toy_3.png"),
    ]
    assert first.turns[1].reference == (Text("Four."),) and isinstance(first.turns[0].reference[0], Image)
    assert [(point.source, point.number) for point in first.turns[2].gold] == [("Image", 2), ("GT", 1), ("Text", None)]


def test_the_digest_changes_with_any_text_or_pixel_and_with_nothing_else(tmp_path: Path, blobs: Blobs):
    same = [load(tmp_path / name, toy_records(), blobs).digest for name in ("a", "b")]
    assert same[0] == same[1]
    changed = toy_records()
    changed[0]["chats"][0]["content"] += "!"
    assert load(tmp_path / "c", changed, blobs).digest != same[0]
    (tmp_path / "b" / "test" / "imgs" / "toy_1.png").write_bytes(
        (tmp_path / "b" / "test" / "imgs" / "toy_2.png").read_bytes()
    )
    assert data.load(tmp_path / "b", blobs).load_all().digest != same[0]


def chat(at: int, **fields: Any) -> Callable[[Records], None]:
    return lambda records: records[0]["chats"][at].update(fields)


def record(**fields: Any) -> Callable[[Records], None]:
    return lambda records: records[0].update(fields)


@pytest.mark.parametrize(
    ("spoil", "field", "message"),
    [
        (record(domain="cooking"), "domain", "'cooking' is none of the 16 domains"),
        (
            record(images=["imgs/gone.png", "imgs/toy_2.png", "imgs/toy_3.png"]),
            "images[0]",
            "imgs/gone.png does not exist",
        ),
        (
            record(images=["../../secret.png", "imgs/toy_2.png", "imgs/toy_3.png"]),
            "images[0]",
            "leads out of the dataset",
        ),
        (record(images=["/etc/passwd", "imgs/toy_2.png", "imgs/toy_3.png"]), "images[0]", "leads out of the dataset"),
        (record(images="imgs/toy_1.png"), "images", "must be a list"),
        (record(chats=[]), "chats", "must be a list of messages"),
        (lambda records: records[0]["chats"].pop(), "chats", "has 5 messages; they must come in pairs"),
        (lambda records: records[0].pop("idx"), "idx", "is missing"),
        (chat(0, role="assistant"), "chats[0].role", "'user' is expected"),
        (
            chat(0, content="Look at Image #9"),
            "chats[0].content",
            '"Image #9" names an image that the record does not have (it has 3)',
        ),
        (chat(1, content="Image #9"), "chats[1].content", "does not have (it has 3)"),
        (chat(1, content="a picture"), "chats[1].content", "must name the image to make"),
        (chat(1, type="video"), "chats[1].type", "must be 'text' or 'image'"),
        (chat(1, key_point=None), "chats[1].key_point", "needs at least one key point"),
        (
            chat(1, key_point={"GT #9": "As in <image>."}),
            "chats[1].key_point",
            '"GT #9" names an image that the record does not have (it has 3)',
        ),
        (
            chat(1, key_point={"GT #1": "No marker here."}),
            "chats[1].key_point",
            '"GT #1" must hold exactly one <image> marker; it holds 0',
        ),
        (
            chat(1, key_point={"Text": "A <image> too many."}),
            "chats[1].key_point",
            "must hold no <image> marker; it holds 1",
        ),
        (chat(1, key_point={"Picture": "x"}), "chats[1].key_point", "must be 'GT #k', 'Image #k' or 'Text'"),
        (
            chat(1, key_point={"Image #3": "Like <image>."}),
            "chats[1].key_point",
            "is made by turn 3, not before this one",
        ),
        (chat(5, content="Image #2"), "chats[5].content", "is already made by turn 1"),
        (chat(2, content=None), "chats[2].content", "must be a string"),
        (record(idx=9), "", ""),
        (record(domain=[]), "domain", "none of the 16 domains"),
        (record(images=["imgs/a\0b.png", "imgs/toy_2.png", "imgs/toy_3.png"]), "images[0]", "cannot be read"),
        (chat(1, key_point={"GT #" + "9" * 5000: "As in <image>."}), "chats[1].key_point", "must be 'GT #k'"),
        (chat(1, content="Image #" + "9" * 5000), "chats[1].content", "must name the image to make"),
    ],
)
def test_a_bad_record_is_named_and_left_out_and_the_others_stay(
    tmp_path: Path, blobs: Blobs, spoil: Callable[[Records], Any], field: str, message: str
):
    records = toy_records()
    write_weave(tmp_path, records)
    (tmp_path / "secret.png").write_bytes(b"")
    before = copy.deepcopy(records)
    spoil(records)
    assert records != before
    (tmp_path / "test" / "test.json").write_text(json.dumps(records))
    dataset = data.load(tmp_path, blobs).load_all()
    assert len(dataset.samples) == 3 and dataset.records == 4
    errors = [problem for problem in dataset.problems if problem.severity == "error"]
    if not field and not message:  # a repeated idx: the second record is the one left out
        assert [(problem.record, problem.field) for problem in errors] == [("record 1 (idx 9)", "idx")]
        return
    assert any(problem.field == field and message in problem.message for problem in errors), errors
    assert str(errors[0]).startswith("test.json: record 0")


@pytest.mark.parametrize(
    ("data_bytes", "message"),
    [
        (b"", "is empty"),
        (b"GIF89a nonsense", "cannot be read"),
        (png_header(50_000, 50_000), "more pixels"),
        (b"plain text", "is not a PNG"),
    ],
)
def test_a_corrupt_or_enormous_picture_is_named_and_costs_its_record(
    toy: Path, blobs: Blobs, data_bytes: bytes, message: str
):
    (toy / "test" / "imgs" / "mix_2.png").write_bytes(data_bytes)
    dataset = data.load(toy, blobs).load_all()
    (problem,) = dataset.problems
    assert (problem.record, problem.field) == ("record 1 (idx 9)", "images[1]") and message in problem.message
    assert [sample.id for sample in dataset.samples] == ["7", "12", "15"]


def test_a_link_out_of_the_dataset_is_refused(toy: Path, blobs: Blobs, tmp_path: Path):
    secret = tmp_path / "secret.png"
    secret.write_bytes((toy / "test" / "imgs" / "toy_1.png").read_bytes())
    path = toy / "test" / "imgs" / "toy_1.png"
    path.unlink()
    path.symlink_to(secret)
    assert "leads out of the dataset" in str(data.load(toy, blobs).load_all().problems[0])


def test_a_mention_of_the_turns_own_answer_is_a_warning(tmp_path: Path, blobs: Blobs):
    records = toy_records()
    records[0]["chats"][0]["content"] = "Make Image #2 from Image #1; later there will be Image #3."
    dataset = load(tmp_path, records, blobs)
    assert len(dataset.samples) == 4
    assert [problem.severity for problem in dataset.problems] == ["warning", "warning"]
    assert "its own answer" in str(dataset.problems[0]) and "only turn 3 makes" in str(dataset.problems[1])


def test_broken_json_and_missing_files_are_one_clear_line(toy: Path, tmp_path: Path, blobs: Blobs):
    (toy / "test" / "test.json").write_text('[{"idx": 1,')
    with pytest.raises(UserError, match=r"test\.json: broken JSON"):
        data.load(toy, blobs).load_all()
    (toy / "test" / "test.json").write_text('{"idx": 1}')
    with pytest.raises(UserError, match="must be one JSON array"):
        data.load(toy, blobs).load_all()
    with pytest.raises(UserError, match=r"there is no test\.json in"):
        data.load(tmp_path / "nowhere", blobs).load_all()


def test_the_real_samples_load_without_a_problem(real: Path, blobs: Blobs):
    dataset = data.load(real, blobs).load_all()
    assert len(dataset.samples) == 10 and not dataset.problems
    assert sum(len(sample.turns) for sample in dataset.samples) == 39
