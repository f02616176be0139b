"""A figure of one dialogue: every model beside the others, with its scores, and nothing of a text becomes markup."""

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import weft
from weft.cli.app import app
from weft.errors import UserError
from weft.report.case_drawing import draw_cases
from weft.report.case_figure import Case, CaseReply, CaseScore, CaseTurn, build_case
from weft.report.plots import save_svg
from weft.report.svg_text import ELLIPSIS, measure_text, wrap_text
from weft.results.samples import find_samples
from weft.types import Dataset, Image, Sample, Text
from weft_tabletop.make import make

HOSTILE = '</text><script>alert(1)</script>&amp;" onload="x" \x1b[31m\u202e\ufffe ' + "w" * 300
MISSING = Image("0" * 64, "image/png", 64, 64, 100)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[weft.Run]:
    folder = tmp_path_factory.mktemp("figures")
    data = make("tabletop-weave", folder / "data", samples=3, seed=0)
    job: dict[str, Any] = {"data": data, "judge": "tabletop/exact", "home": folder / "home"}
    return [weft.evaluate("weave", model="tabletop/oracle", **job), weft.evaluate("weave", model="copy", **job)]


def texts(svg: str) -> list[str]:
    return [text for text in ElementTree.fromstring(svg).itertext() if text.strip()]


def test_a_case_has_each_turn_with_every_models_reply_and_its_scores(runs: list[weft.Run]):
    case = build_case(runs, "2", turns=(1, 2), reference=True)
    assert case.columns == ("tabletop/oracle", "copy", "reference")
    assert [turn.title for turn in case.turns] == ["Turn 1", "Turn 2"]
    for turn in case.turns:
        oracle, copied, reference = turn.replies
        assert any(isinstance(part, Image) for part in oracle.parts) and reference.parts
        assert {score.metric: score.text for score in oracle.scores}["key point"] == "1.000"
        assert {score.metric: score.text for score in copied.scores}["key point"] == "0.000"


def test_the_files_are_whole_and_hold_the_images(runs: list[weft.Run], tmp_path: Path):
    paths = weft.figure(runs, "2", tmp_path / "case.v2", turns=(1, 1))
    assert {path.name for path in paths} == {"case.v2.pdf", "case.v2.svg", "case.v2.png"}
    starts = {".pdf": b"%PDF", ".svg": b"<svg", ".png": b"\x89PNG"}
    assert all(path.read_bytes().startswith(starts[path.suffix]) for path in paths)
    svg = (tmp_path / "case.v2.svg").read_text()
    assert svg.count("data:image/png;base64,") == 3  # the prompt's image, and one of each model
    assert [path.name for path in weft.figure(runs, "2", tmp_path / "one.pdf")] == ["one.pdf"]


def test_hostile_texts_stay_text_and_a_missing_image_is_named():
    reply = CaseReply((Text(HOSTILE), MISSING), HOSTILE, (CaseScore(HOSTILE, "-", None),))
    case = Case(HOSTILE, (HOSTILE, "b"), (CaseTurn(HOSTILE, (Text(HOSTILE),), (reply, reply)),))
    svg, height = draw_cases([case], lambda image, points: None)
    root = ElementTree.fromstring(svg)
    assert {element.tag.rpartition("}")[2] for element in root.iter()} == {"svg", "title", "rect", "g", "text"}
    assert height > 0 and not any("onload" in element.attrib for element in root.iter())
    assert "this image is not in the store" in texts(svg)


def test_eight_models_are_in_rows_of_four_and_none_is_left_out():
    names = tuple(f"model {number}" for number in range(8))
    reply = CaseReply((Text("yes"),))
    svg, _ = draw_cases([Case("a", names, (CaseTurn("Turn 1", (), (reply,) * 8),))], lambda image, points: None)
    assert set(names) <= set(texts(svg)) and texts(svg).count("yes") == 8


def test_lines_fit_and_what_is_cut_ends_in_an_ellipsis():
    text = "one two three " * 30 + "\n" + "a/very/long/path=" * 9 + "\n" + "中文" * 60
    lines = wrap_text(text, 120, 7, 100)
    assert all(measure_text(line, 7) <= 120 for line in lines)
    assert "".join(lines).replace(" ", "") == "".join(text.split())
    cut = wrap_text(text, 120, 7, 4)
    assert len(cut) == 4 and cut[-1].endswith(ELLIPSIS) and cut[:3] == lines[:3]
    assert wrap_text("short", 120, 7, 1) == ["short"]


def test_a_line_has_its_measured_width_in_any_font():
    case = Case("a", ("model",), (CaseTurn("Turn 1", (Text("How wide is this?"), Text("这有多宽")), (CaseReply(),)),))
    svg, _ = draw_cases([case], lambda image, points: None)
    lines = [element for element in ElementTree.fromstring(svg).iter() if element.tag.endswith("}text")]
    widths = {element.text: element.get("textLength") for element in lines}
    assert float(widths["How wide is this?"] or 0) == pytest.approx(measure_text("How wide is this?", 7), rel=0.03)
    assert widths["这有多宽"] is None


@pytest.mark.parametrize(
    ("sample", "choices", "message"),
    [
        ("nobody", {}, "no sample of these 2 runs is called 'nobody'"),
        ("2", {"turns": (9, 9)}, "2 has no turn 9; its last is"),
        ("2", {"metrics": ["beauty"]}, "has no metric 'beauty'"),
        ("2", {"titles": ["one"]}, "2 runs need as many different names"),
    ],
)
def test_what_is_not_there_is_an_error_that_says_what_is(
    runs: list[weft.Run], sample: str, choices: dict[str, Any], message: str
):
    with pytest.raises(UserError, match=message):
        build_case(runs, sample, **choices)


def test_runs_of_different_prompts_are_refused(runs: list[weft.Run], tmp_path: Path):
    other_data = make("tabletop-weave", tmp_path / "data", samples=3, seed=1)
    other = weft.evaluate("weave", data=other_data, judge="tabletop/exact", model="copy", home=tmp_path / "home")
    with pytest.raises(UserError, match="different prompts"):
        build_case([runs[0], other], "2")


@pytest.mark.parametrize("folder", [".", "..", "/"])
def test_a_folder_without_a_name_for_the_files_is_an_error(folder: str):
    with pytest.raises(UserError, match="is a folder: add a name for the files"):
        save_svg("<svg/>", Path(folder), scale=1)


@pytest.mark.parametrize(("width", "height"), [(0, 64), (64, 0), (-64, 64), (10**400, 64)])
def test_an_image_that_claims_an_impossible_size_is_drawn(width: int, height: int):
    image = Image("0" * 64, "image/png", width, height, 100)
    case = Case("1", ("a",), (CaseTurn("Turn 1", (image,), (CaseReply((image,)),)),))
    svg, _ = draw_cases([case], lambda image, points: None)
    assert "this" in "".join(texts(svg))


def test_several_dialogues_stand_one_below_another_with_their_names(runs: list[weft.Run], tmp_path: Path):
    (path,) = weft.figure(runs, ["2", "1"], tmp_path / "both.svg")
    svg = path.read_text()
    (one,) = weft.figure(runs, "2", tmp_path / "one.svg")
    assert texts(svg).index("2") < texts(svg).index("1") and texts(one.read_text()).count("2") == 1, "the file's title"
    assert {part for part in texts(one.read_text()) if len(part) > 30} <= set(texts(svg))
    out = tmp_path / "c"
    result = CliRunner().invoke(app, ["figure", runs[0].id, "2,1", "--home", str(runs[0].home), "-o", str(out)])
    assert result.exit_code == 0 and (tmp_path / "c.svg").read_text().count("<title>2, 1</title>") == 1


def test_a_single_turn_has_its_samples_name():
    cases = [Case(name, (), (CaseTurn("Turn 1", (Text(f"Draw {name}."),), ()),)) for name in ("a cat", "a dog")]
    svg, _ = draw_cases(cases, lambda image, points: None)
    assert texts(svg)[1:] == ["a cat", "Draw a cat.", "a dog", "Draw a dog."]


def test_a_dataset_is_drawn_without_a_run(tmp_path: Path):
    data = make("tabletop-weave", tmp_path / "data", samples=3, seed=0)

    def draw(*words: str) -> str:
        out = tmp_path / "drawn.svg"
        result = CliRunner().invoke(app, ["data", "figure", "weave", str(data), *words, "--out", str(out)])
        assert result.exit_code == 0, result.output
        return out.read_text()

    whole = draw("1", "2")
    assert "Image #1" in texts(whole) and "reference" in texts(whole), "what a prompt mentions is drawn"
    alone = draw("1", "--turns", "1", "--no-references")
    assert "reference" not in texts(alone) and alone.count("data:image/") == 1 and "Turn 2" not in texts(alone)
    assert not (tmp_path / ".weft").exists()
    missing = CliRunner().invoke(app, ["data", "figure", "weave", str(data), "nobody"])
    assert isinstance(missing.exception, UserError) and "there is 1, 2, 3" in str(missing.exception)


def test_samples_are_found_by_the_beginnings_of_their_names_and_reading_ends_when_all_are():
    read: list[str] = []

    def samples() -> Iterator[Sample]:
        for name in ("fusion-1", "fusion-10", "edit-7", "edit-8"):
            read.append(name)
            yield Sample(name, ())

    found = find_samples(Dataset("made up", "0", samples()), ["edit-7", "fusion-1"], "data")
    assert [sample.id for sample in found] == ["edit-7", "fusion-1"] and read[-1] == "edit-7"
    with pytest.raises(UserError, match="more than one sample of data is called 'edit'; there is edit-7, edit-8"):
        find_samples(Dataset("made up", "0", samples()), ["edit"], "data")
