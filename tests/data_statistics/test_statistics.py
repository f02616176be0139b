"""Statistics of datasets: numbers counted by hand, in every format, and as plots."""

import csv
import io
import json
import random
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pil
from typer.testing import CliRunner

from weft.cli.app import app
from weft.datasets.measure import DatasetReport, measure_dataset
from weft.datasets.words import WordCounter, find_words
from weft.errors import UserError
from weft.report.dataset_plots import build_dataset_plots
from weft.report.word_cloud import place_words
from weft_tabletop.make import make

SHARED = Path(__file__).parents[3] / "shared" / "data"
RECORDS: list[dict[str, Any]] = [
    {
        "idx": 1,
        "domain": "edit",
        "images": ["a.png", "b.png", "c.png", "d.png"],
        "chats": [
            {"role": "user", "type": "text", "content": "Paint the door of Image #1 green."},
            {"role": "assistant", "type": "image", "content": "Image #2", "key_point": {"GT #1": "As <image>.", "Text": "A door."}},
            {"role": "user", "type": "text", "content": "How many doors has Image #2?"},
            {"role": "assistant", "type": "text", "content": "One.", "key_point": None},
            {"role": "user", "type": "text", "content": "Add the door of Image #3 to Image #2."},
            {"role": "assistant", "type": "image", "content": "Image #4", "key_point": {"Image #2": "As <image>."}},
        ],
    },
    {
        "idx": 2,
        "domain": "optics",
        "images": ["e.png", "f.png"],
        "chats": [
            {"role": "user", "type": "text", "content": "Draw the door."},
            {"role": "assistant", "type": "image", "content": "Image #2", "key_point": {"Text": "A door."}},
        ],
    },
]  # fmt: skip


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("weave")
    for name in "abcdef":
        noise = random.Random(name).randbytes(3 * 40 * 40)
        Pil.frombytes("RGB", (40, 40), noise).save(folder / f"{name}.png")
    (folder / "test.json").write_text(json.dumps(RECORDS))
    return folder


def cells(report: DatasetReport, title: str, row: str) -> dict[str, Any]:
    table = next(table for table in report.tables if table.title.endswith(title))
    return {column: cell.text or cell.value for column, cell in table.cells(row).items()}


def test_sizes_are_those_counted_by_hand(data: Path):
    report = measure_dataset("weave", data)
    assert cells(report, "sizes", "all") == {
        "dialogues": 2, "turns": 4, "turns / dialogue": 2, "images": 6, "images / dialogue": 3, "most images": 4,
        "≥4 images": 1, "≥5 images": 0, "≥6 images": 0,
        "question characters": (33 + 28 + 37 + 14) / 4, "question words": (7 + 6 + 9 + 3) / 4,
    }  # fmt: skip
    assert cells(report, "sizes", "Science")["images / dialogue"] == 2
    assert cells(report, "sizes", "WEAVEBench (paper)") == {"dialogues": 100, "images": 480}
    assert cells(report, "by class, domain", "Creation / edit")["share %"] == 50
    assert cells(report, "by class, domain", "Creation / edit")["paper"] == 13
    assert cells(report, "kinds of turns", "Creation") == {
        "image turns": 2, "text turns": 1,
        "key points: reference": 1, "key points: own image": 1, "key points: text": 1,
    }  # fmt: skip
    assert cells(report, "modality sequences", "Creation / edit [I, T, I]")["turns"] == 3
    assert cells(report, "images in a dialogue", "4") == {"dialogues": 1, "share %": 50}
    assert cells(report, "question lengths", "25-49") == {"questions": 3, "share %": 75}
    assert cells(report, "frequent words", "door") == {"occurrences": 3, "dialogues": 2}


def test_the_ten_real_dialogues_of_weave_have_the_numbers_of_an_independent_count():
    folder = SHARED / "weave"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there")
    report = measure_dataset("weave", folder)
    sizes = cells(report, "sizes", "all")
    assert [sizes[column] for column in ("dialogues", "turns", "images", "most images")] == [10, 39, 45, 7]
    assert [sizes[f"≥{count} images"] for count in (4, 5, 6)] == [8, 5, 1]
    assert (round(sizes["question characters"], 2), round(sizes["question words"], 2)) == (85.49, 16.77)
    assert list(cells(report, "kinds of turns", "all").values()) == [29, 10, 27, 7, 3]
    assert cells(report, "modality sequences", "Game / maze [I, I, T, I]")["dialogues"] == 1
    assert report.repeats is not None and not report.repeats.tasks


NUMBERS = {  # what the papers print -> a row of the tabletop's data, and one of its numbers
    "imug": ("tabletop-imug", "kinds of turns", "all"),
    "rover-ig": ("tabletop-rover", "kinds of turns", "all"),
    "rover-tg": ("tabletop-rover", "kinds of turns", "all"),
    "planviz": ("tabletop-planviz", "dialogues by subtask and task", "route"),
    "weaverbench": ("tabletop-weaver", "required images", "any number"),
}


@pytest.mark.parametrize("benchmark", NUMBERS)
def test_each_benchmark_counts_what_its_paper_prints(benchmark: str, tmp_path: Path):
    made, title, row = NUMBERS[benchmark]
    make(made, tmp_path / "data", samples=24, seed=1)
    report = measure_dataset(benchmark, tmp_path / "data")
    numbers = cells(report, title, row)
    if benchmark == "imug":
        kinds = [numbers[kind] for kind in ("static choice", "dynamic choice", "image generation")]
        assert all(kinds) and sum(kinds) == report.counts.total.turns and numbers["evaluation points"]
        sequences = next(table for table in report.tables if table.title.endswith("modality sequences"))
        assert sum(row.cells["dialogues"].value or 0 for row in sequences.rows) == 24
    elif benchmark == "rover-tg":
        assert (numbers["questions"], numbers["reasoning images"]) == (8, 8)
    elif benchmark == "rover-ig":
        assert numbers["image"] == 16 and 0 < numbers["reference images"] < 16
    elif benchmark == "planviz":
        assert numbers == {"all": 8, "gen": 4, "edit": 4}
    else:
        assert numbers["dialogues"] == 4
        assert cells(report, "by category and input", "Reasoning") == {"all": 4, "text": 0, "image+text": 4}


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["data", "stats", *map(str, arguments)])


@pytest.mark.parametrize("format", ["table", "md", "csv", "json", "latex"])
def test_every_format_has_the_numbers(data: Path, format: str):
    result = run("weave", data, "--format", format, "--tables", "sizes")
    assert result.exit_code == 0, result.output
    if format == "csv":
        rows = list(csv.DictReader(io.StringIO(result.output)))
        assert [row["value"] for row in rows if row["row"] == "all"][:4] == ["2", "4", "2.00", "6"]
    elif format == "json":
        assert json.loads(result.output)["tables"][0]["rows"][0]["cells"]["images"]["value"] == 6
    else:
        assert "28.00" in result.output and "sizes" in result.output and "key point" not in result.output


def test_tables_go_into_a_file_and_plots_into_a_folder(data: Path, tmp_path: Path):
    result = run("weave", data, "--out", tmp_path / "t.md", "--format", "md", "--plots", tmp_path / "plots")
    assert result.exit_code == 0, result.output
    assert "| **all** | 2 | 4 |" in (tmp_path / "t.md").read_text()
    names = {path.stem for path in (tmp_path / "plots").glob("*.svg")}
    assert names == {
        *("by-class", "by-class-domain", "kinds-of-turns", "modality-sequences", "turns-in-a-dialogue"),
        *("images-in-a-dialogue", "question-lengths-in-characters", "words"),
    }
    assert (tmp_path / "plots" / "words.pdf").read_bytes().startswith(b"%PDF")
    assert "edit" in (tmp_path / "plots" / "by-class-domain.svg").read_text()


def test_a_plot_says_in_words_what_it_shows(data: Path):
    plots = {plot.name: plot for plot in build_dataset_plots(measure_dataset("weave", data).counts)}
    assert plots["by-class-domain"].description.endswith("Creation, edit: 1 (50.0%); Science, optics: 1 (50.0%)")


def test_bars_of_groups_of_one_have_the_whole_name_and_small_axes_whole_numbers(tmp_path: Path):
    data = make("tabletop-weaver", tmp_path / "data", samples=12, seed=0)
    plots = {plot.name: plot for plot in build_dataset_plots(measure_dataset("weaverbench", data).counts)}
    by_input = plots["by-category-input"]
    values = json.dumps(by_input.chart.to_dict())
    assert "Daily Life / text" in values, "no legend would say which `text` it is"
    assert '"values": [0, 1, 2]' in values, "ticks between whole numbers would repeat their labels"


def test_words_of_a_cloud_do_not_overlap_and_are_inside():
    places = place_words([(f"word{number}", 100 - number) for number in range(60)])
    assert len(places) > 50 and all(place.is_inside for place in places)
    for index, place in enumerate(places):
        assert not any(place.overlaps(other) for other in places[:index])


def test_nothing_is_written_where_nothing_is_asked_for(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    before = sorted(data.rglob("*"))
    assert run("weave", data).exit_code == 0
    assert not list(tmp_path.iterdir()) and sorted(data.rglob("*")) == before


def test_a_damaged_image_leaves_its_record_out_as_in_a_run(data: Path, tmp_path: Path):
    for path in data.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "e.png").write_bytes((data / "e.png").read_bytes()[:200])
    result = run("weave", tmp_path)
    assert "1 of 2 records cannot be used: `weft data check` names them" in result.output
    (tmp_path / "a.png").unlink()
    with pytest.raises(UserError, match=r"none of the 2 records .* can be used, the first for this: .*a\.png does not"):
        measure_dataset("weave", tmp_path)


def test_training_data_has_the_papers_numbers_beside_its_own(data: Path):
    report = measure_dataset("weave-100k", data)
    assert cells(report, "sizes", "WEAVE-100k (paper, Figure 4)")["≥5 images"] == 60_361
    assert cells(report, "by domain, type", "Edit / None")["paper"] == 18_261
    assert "Recall / Real Human" in next(table.note for table in report.tables if "by domain" in table.title)


def test_function_words_numbers_of_images_and_noise_are_no_words():
    assert find_words("Add the Image #3 castle to IMAGE, don't x ok rock-and-roll " + "z" * 50) == [
        "add",
        "castle",
        "rock-and-roll",
    ]
    counter = WordCounter()
    counter.add(["a red red fox", "the fox"])
    assert counter.most_common(2) == [("fox", 2, 1), ("red", 2, 1)]
