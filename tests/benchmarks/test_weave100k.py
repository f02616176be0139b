"""WEAVE-100k is read in the test split's shape, with Table 5's names; what is not understood is named, and costs little."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pil
from typer.testing import CliRunner

from weft.benchmarks.data_format import load_format
from weft.benchmarks.weave.training_names import TABLE_5, published_groups
from weft.cli.app import app
from weft.errors import UserError
from weft.store.blobs import Blobs
from weft.types import LoadedDataset

GROUPS = [(domain, kind) for domain, counts in TABLE_5.items() for kind in counts]


def record(idx: Any = 1, domain: Any = "Edit", kind: Any = "Food", **more: Any) -> dict[str, Any]:
    chats = [
        {"role": "user", "type": "text", "content": "Paint the door of Image #1 green."},
        {"role": "assistant", "type": "image", "content": "Image #2"},
        {"role": "user", "type": "text", "content": "How many windows has Image #2?"},
        {"role": "assistant", "type": "text", "content": "Four."},
    ]
    return {"idx": idx, "domain": domain, "type": kind, "images": ["imgs/a.png", "imgs/b.png"], "chats": chats, **more}


def write(folder: Path, records: Any, name: str = "train.json") -> Path:
    (folder / "imgs").mkdir(parents=True, exist_ok=True)
    for index, image in enumerate("ab"):
        Pil.new("RGB", (8, 8), (0, 90 * index, 0)).save(folder / "imgs" / f"{image}.png")
    text = json.dumps(records)
    if name.endswith(".jsonl"):
        text = "\n".join(map(json.dumps, records))
    (folder / name).write_text(text)
    return folder


def read(folder: Path, tmp_path: Path) -> LoadedDataset:
    return load_format("weave-100k").load(folder, Blobs(tmp_path / "blobs")).load_all()


def test_table_5_is_read_with_its_own_names_and_adds_up(tmp_path: Path):
    data = write(tmp_path / "data", [record(number, *group) for number, group in enumerate(GROUPS)])
    dataset = read(data, tmp_path)
    assert not dataset.problems
    assert [(sample.groups["domain"], sample.groups["type"]) for sample in dataset.samples] == GROUPS
    totals = Counter({domain: sum(counts.values()) for domain, counts in TABLE_5.items()})
    assert totals.total() == 100_750 and totals["Edit"] == 19_903 and totals["Recall"] == 1_369
    assert dict(published_groups())["Edit", "Food"] == 234
    (turn, question) = dataset.samples[0].turns
    assert (turn.modality, turn.image_number, turn.reference) == ("image", 2, (dataset.samples[0].images[1],))
    assert (question.modality, question.gold) == ("text", None)


@pytest.mark.parametrize(
    ("domain", "kind", "expected"),
    [
        ("fusion", "gpt_image", ("Multi-image Fusion", "GPT-Image")),
        ("multi_image_fusion", "Seedream 4.0", ("Multi-image Fusion", "SeeDream")),
        ("visual_jigsaw", None, ("Visual Jigsaw", "None")),
        ("chess_game", "none", ("Chess Game", "None")),
        ("recall/real_human", None, ("Recall", "Real Human")),
        ("edit_nature_landscapes", None, ("Edit", "Nature Landscapes")),
        ("optics", None, ("optics", "None")),  # the test split's, as a built dataset may have it
    ],
)
def test_other_spellings_of_table_5_are_known(tmp_path: Path, domain: str, kind: Any, expected: tuple[str, str]):
    dataset = read(write(tmp_path / "data", [record(1, domain, kind)]), tmp_path)
    groups = dataset.samples[0].groups
    assert (groups["domain"], groups["type"]) == expected and not dataset.problems


def chats(*contents: str, **fields: Any) -> list[dict[str, Any]]:
    roles = ("user", "assistant")
    return [{"role": roles[index % 2], "content": content, **fields} for index, content in enumerate(contents)]


ODD: dict[str, tuple[dict[str, Any], int, str]] = {  # what a record has instead -> how many turns are read, and what is said of it
    "no key in its fields": ({"source": "x"}, 2, "source: is a field that weft does not know"),
    "unknown domain": ({"domain": "origami"}, 2, "domain: 'origami' is no domain of WEAVE; it is kept as it is"),
    "unknown type": ({"type": "Boats"}, 2, "type: 'Boats' is no type of WEAVE-100k"),
    "no domain": ({"domain": None}, 2, "domain: is missing"),
    "no idx": ({"idx": None}, 2, ""),
    "other names": ({"chats": None, "conversations": [{"from": "human", "value": "Make Image #2."}, {"from": "gpt", "value": "Image #2"}]}, 1, ""),
    "a request without an answer": ({"chats": chats("Draw.", "Image #2", "And?")}, 1, "chats[2]: is a request without an answer"),
    "two requests in a row": ({"chats": [*chats("Look."), *chats("Draw.", "Image #2")]}, 1, ""),
    "an answer with words and an image": ({"chats": chats("Draw.", "Here is Image #2", type="image")}, 1, ""),
    "an unknown kind of message": ({"chats": chats("Draw.", "Image #2", type="img")}, 1, "chats[0].type: 'img' is neither text nor image"),
    "a strange key point": ({"chats": [*chats("Draw."), {"role": "assistant", "content": "Image #2", "key_point": {"A": "b"}}]}, 1, "key_point: 'A' is no 'GT #k'"),
    "an image as an object": ({"images": [{"path": "imgs/a.png"}, {"path": "imgs/b.png"}]}, 2, ""),
    "a mention of an image that is not there": ({"chats": chats("Edit Image #9.", "Image #2")}, 1, "mentions Image #9"),
    "an unknown role": ({"chats": [{"role": "tool", "content": "x"}]}, 0, "chats[0].role: 'tool' is none of system, user and assistant"),
    "a role that is a list": ({"chats": [{"role": [], "content": "x"}]}, 0, "chats[0].role: [] is none of"),
    "content of parts": ({"chats": [{"role": "user", "content": [{"text": "x"}]}]}, 0, "chats[0].content: must be a text, not list"),
    "an answer first": ({"chats": [{"role": "assistant", "content": "x"}]}, 0, "is an answer without a request"),
    "an image beyond the list": ({"chats": chats("Draw.", "Image #3")}, 0, "names Image #3, which the record does not have (it has 2)"),
    "a file that is not there": ({"images": ["imgs/a.png", "imgs/c.png"]}, 0, "images[1]: imgs/c.png does not exist"),
    "a path that leads out": ({"images": ["../../etc/a.png"]}, 0, "leads out of the dataset"),
    "no images": ({"images": []}, 0, "images: must be a list of paths"),
    "no chats": ({"chats": 3}, 0, "chats: must be a list of messages"),
}  # fmt: skip


@pytest.mark.parametrize("oddity", ODD)
def test_an_odd_record_is_read_or_named_and_costs_only_itself(tmp_path: Path, oddity: str):
    change, turns, said = ODD[oddity]
    dataset = read(write(tmp_path / "data", [record(1) | change, record(2)]), tmp_path)
    problems = [str(problem) for problem in dataset.problems]
    assert [len(sample.turns) for sample in dataset.samples] == ([turns, 2] if turns else [2])
    if not said:
        assert not problems
    else:
        assert any(said in problem and "record 0" in problem for problem in problems), problems
        severities = {problem.severity for problem in dataset.problems}
        assert severities == ({"warning"} if turns else {"error"})


def test_a_problem_of_many_records_is_listed_three_times_and_counted(tmp_path: Path):
    records = [record(number, license="x", domain="origami" if number % 2 else "Edit") for number in range(100)]
    data = write(tmp_path / "data", records)
    problems = [str(problem) for problem in read(data, tmp_path).problems]
    assert len(problems) == 8
    assert problems[-2:] == [
        "license: 97 more records have this problem: is a field that weft does not know; it is not read",
        "domain: 47 more records have this problem: 'origami' is no domain of WEAVE; it is kept as it is",
    ]


@pytest.mark.parametrize("place", ["", "train", "test"])
def test_records_may_be_in_several_files_and_in_a_folder(tmp_path: Path, place: str):
    folder = tmp_path / "data" / place
    write(folder, [record(0), record(1)], "part-0.json")
    write(folder, [record(0, images=["imgs/a.png", "no.png"]), record(1)], "part-1.jsonl")
    (folder / "card.json").write_text('{"dialogues": 4}')
    dataset = read(tmp_path / "data", tmp_path)
    assert [sample.id for sample in dataset.samples] == ["part-0-0", "part-0-1", "part-1-1"]
    assert str(dataset.problems[0]) == "part-1.jsonl: record 0 (idx 0): images[1]: " + (
        f"{place}/no.png does not exist" if place else "no.png does not exist"
    )


def test_a_folder_without_dialogues_is_refused_with_what_it_has(tmp_path: Path):
    (tmp_path / "train.parquet").write_bytes(b"PAR1")
    with pytest.raises(UserError, match=r"no JSON file of dialogues.*the folder has train\.parquet"):
        load_format("weave-100k").load(tmp_path, Blobs(tmp_path / "blobs"))
    with pytest.raises(UserError, match="known: .*imug, .*weave-100k"):
        load_format("weave-101k")


def test_the_check_says_that_training_data_has_no_protocol(tmp_path: Path):
    data = write(tmp_path / "data", [record(1), record(2, domain="Recall")])
    result = CliRunner().invoke(app, ["data", "check", "weave-100k", str(data)])
    assert result.exit_code == 0, result.output
    assert "by domain: 1 Edit, 1 Recall" in result.output
    assert "2 of 2 records can be used: 4 turns (2 image, 2 text)" in result.output
    assert "no protocol to check end to end" in result.output
