"""WeaverBench on the tabletop: the oracle has everything, alone and as a planner; every kind of mistake costs what it
should; words that are not the tabletop's are left open."""

import hashlib
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pil

import weft
from weft.benchmarks.weaverbench.data import load
from weft.models.compose.imagine import parse_plan
from weft.store.blobs import Blobs
from weft.types import Text
from weft_tabletop import planning
from weft_tabletop.exact import weaver
from weft_tabletop.exact.collages import is_collage
from weft_tabletop.make import make
from weft_tabletop.make.weaver import expected_steps
from weft_tabletop.world import language, wordings
from weft_tabletop.world.scenes import Scene, SceneReading, Thing, scene_from_text

WOVEN = "weaver:planner=tabletop/oracle,visualizer=tabletop/{}"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make("tabletop-weaver", tmp_path_factory.mktemp("weaver") / "data", samples=36, seed=0)


def run(data: Path, home: Path, model: Any, **options: Any) -> weft.Run:
    return weft.evaluate("weaverbench", data=data, model=model, judge="tabletop/exact", home=home, **options)


def digest(folder: Path) -> str:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return hashlib.sha256(b"".join(path.name.encode() + path.read_bytes() for path in files)).hexdigest()


def test_same_seed_same_bytes(tmp_path: Path, data: Path):
    again = make("tabletop-weaver", tmp_path / "again", samples=36, seed=0)
    other = make("tabletop-weaver", tmp_path / "other", samples=36, seed=1)
    assert digest(again) == digest(data) != digest(other)


def test_every_kind_is_there_with_its_reference(data: Path):
    found = load(data, Blobs(data.parent / "blobs")).load_all()
    assert not found.problems and found.name == "tabletop" and len(found.samples) == 36
    required = {sample.turns[0].gold.required for sample in found.samples}
    assert {0, 1, None} < required and all(count is None or count >= 0 for count in required)
    assert {sample.groups["count"] for sample in found.samples} == {"exact", "free", "none"}
    for sample in found.samples:
        goal, words = sample.turns[0].gold, sample.turns[0].prompt_text
        asked = language.parse(words)
        assert asked is not None and goal.is_met(sum(not isinstance(part, Text) for part in sample.turns[0].reference))
        if asked.kind in wordings.DOCUMENTS and goal.required is not None:
            assert goal.required == int(asked.args["number"]) and ("exactly" in words or "pictures" in words)


@pytest.mark.parametrize("model", ["tabletop/oracle", WOVEN.format("oracle"), "reference"])
def test_what_is_right_has_everything(tmp_path: Path, data: Path, model: str):
    found = run(data, tmp_path, model)
    assert {verdict.value for verdict in found.verdicts} == {1.0}
    cells = found.table().rows[0].cells
    assert {cells[name].value for name in ("PA", "NC", "CC", "IC", "CP", "Overall")} == {10.0} and cells[
        "Acc"
    ].value == 100.0


def test_a_planner_that_forgets_a_picture_is_seen(tmp_path: Path, data: Path):
    found = run(data, tmp_path, WOVEN.format("oracle"), model_options={"planner.error": 1.0})
    counts = {verdict.sample: verdict.value for verdict in found.verdicts if verdict.metric == "count"}
    assert all(
        value == 0
        for sample, value in counts.items()
        if sample.startswith("film") or ("build" in sample and "free" not in sample)
    )
    assert all(value == 1 for sample, value in counts.items() if sample.startswith(("draw", "question")))


def test_the_tiny_model_alone_and_as_a_visualizer(tmp_path: Path, data: Path):
    alone = run(data, tmp_path, "tabletop/tiny", limit=12)
    both = run(data, tmp_path, WOVEN.format("tiny"), limit=12)
    for one in (alone, both):
        cells = one.table().rows[0].cells
        assert (cells["Overall"].value or 0) > 8 and (cells["Acc"].value or 0) > 80
    assert both.table().rows[0].cells["Acc"].value == 100.0
    assert all(len(turn.reply.keys) == 1 + len(turn.reply.images) for turn in both.turns)


def test_plans_of_both_kinds_come_to_the_same(tmp_path: Path, data: Path):
    """Whole tables in words, which need no other; or what changes from the one before, which waits for it."""
    dense = run(data, tmp_path, WOVEN.format("oracle"))
    chained = run(data, tmp_path, WOVEN.format("oracle"), model_options={"planner.plan": "steps"})
    assert dense.id != chained.id and {verdict.value for verdict in chained.verdicts} == {1.0}
    asked = language.parse("Show in exactly 2 steps how to make a mint table with a red star at b2, a blue ring at c3.")
    assert asked is not None
    whole, by_steps = (parse_plan(planning.write_plan(asked, {}, chained=one)).images for one in (False, True))
    assert [one.uses for one in whole] == [(), ()] and [one.uses for one in by_steps] == [(), (1,)]
    assert by_steps[1].prompt == "Add a blue ring at c3 in the table." and whole[1].size == (64, 64)


# the exact judge

TURN = {"kind": "build", "args": {"background": "mint", "number": "2", "things": "red star at b2, blue ring at c3"}}
ONE, BOTH = scene_from_text("mint: red star at b2"), scene_from_text("mint: red star at b2, blue ring at c3")
SAID = ["Step 1: add a red star at b2.", "Step 2: add a blue ring at c3."]


def seen(scene: Scene, unknown: tuple[str, ...] = ()) -> SceneReading:
    return SceneReading(scene, 1.0, 0.0, unknown)


def scores(*made: Any, turn: Any = TURN) -> dict[str, float | None]:
    return {metric: share for metric, (share, _) in weaver.score_document(turn, [], made).items()}


def test_what_each_mistake_costs():
    right = scores(SAID[0], seen(ONE), SAID[1], seen(BOTH))
    assert set(right.values()) == {1.0} and set(right) == set(weaver.METRICS)
    swapped = scores(SAID[1], seen(BOTH), SAID[0], seen(ONE))
    assert (
        swapped["prompt_adherence"],
        swapped["completeness"],
        swapped["input_to_text"],
        swapped["intra_output"],
    ) == (0, 0.5, 0, 1)
    assert swapped["entity"] == 0.0, "what was there is gone"
    missing = scores(SAID[0], seen(ONE))
    assert (missing["prompt_adherence"], missing["narrative_coordination"], missing["completeness"]) == (0.5, 0.5, 0.5)
    assert missing["input_to_image"] == 0.5 and missing["intra_output"] == 1.0 and missing["input_to_text"] == 0.5
    gathered = scores(SAID[0], SAID[1], seen(ONE), seen(BOTH))
    assert gathered["narrative_coordination"] == 0.5
    silent = scores(seen(ONE), seen(BOTH))
    assert (silent["input_to_text"], silent["intra_output"], silent["prompt_adherence"]) == (0, 0, 1)
    grey = scores(SAID[0], seen(ONE), SAID[1], seen(Scene("grey", BOTH.cells)))
    assert (grey["style"], grey["prompt_adherence"], grey["entity"]) == (0.5, 0.5, 1) and grey[
        "input_to_image"
    ] == pytest.approx(1 - 1 / 34)
    wrong = scores(SAID[0], seen(ONE), SAID[1], seen(ONE.put({"c3": Thing("red", "ring")})))
    assert wrong["intra_output"] == 0.5 and wrong["entity"] == 1.0
    blurred = scores(SAID[0], seen(ONE), SAID[1], seen(BOTH, ("a1",)))
    assert (blurred["style"], blurred["prompt_adherence"]) == (0.5, 0.5)
    extra = scores(SAID[0], seen(ONE), SAID[1], seen(BOTH), "And more:", seen(BOTH))
    assert extra["prompt_adherence"] == pytest.approx(2 / 3) and extra["completeness"] == 1.0
    nothing = scores("I cannot.")
    assert nothing["prompt_adherence"] == 0.0 and nothing["input_to_text"] is None


def test_other_words_are_left_open():
    other = scores("First a star.", seen(ONE), "Then a ring.", seen(BOTH))
    assert other["intra_output"] is None and other["input_to_text"] is None and other["prompt_adherence"] == 1.0


def test_questions_and_single_pictures():
    question = {"kind": "what", "args": {"cell": "b2"}, "answer": "a red star"}
    assert scores("A red star.", turn=question) == {"prompt_adherence": 1.0, "input_to_text": 1.0, "completeness": 1.0}
    assert scores("nothing", turn=question)["prompt_adherence"] == 0.0
    draw = {"kind": "draw", "args": {"background": "mint", "things": "red star at b2"}}
    found = scores(seen(ONE), turn=draw)
    assert found["prompt_adherence"] == 1.0 and found["intra_output"] is None and found["narrative_coordination"] == 1.0
    assert len(expected_steps("draw", draw["args"], None)) == 1


def test_what_is_left_open_is_a_dash_and_no_hole(tmp_path: Path, data: Path):
    """A model that says it in other words: pictures are scored, words are not, and nothing is called unscored."""
    file = tmp_path / "own.py"
    file.write_text(
        "from weft_tabletop.world.language import parse\n"
        "from weft_tabletop.world.operations import build_frames\n"
        "from weft_tabletop.world.scenes import draw\n"
        "def model(messages, want):\n"
        "    asked = parse(messages[-1][1][0])\n"
        "    if asked.kind != 'build':\n"
        "        return 'no idea'\n"
        "    return [part for _, scene in build_frames(asked.kind, asked.args) for part in ('Look at this:', draw(scene))]\n"
    )
    found = run(data, tmp_path / "home", f"{file}:model", where={"category": "Education Tutorial"})
    cells = next(table for table in found.tables() if "eight" in table.title).rows[0].cells
    assert (
        cells["CC intra-output"].value is None and cells["CC input to text"].value is None and cells["PA"].value == 10.0
    )
    assert not found.summary().unscored and all(verdict.value is not None for verdict in found.verdicts)


def test_two_contestants_before_the_exact_judge(tmp_path: Path, data: Path):
    home = tmp_path / "home"
    first, second = run(data, home, "tabletop/oracle"), run(data, home, "tabletop/oracle", model_options={"error": 1.0})
    arena = weft.battle([first, second], judge="tabletop/exact", home=home)
    cells = arena.table().cells("tabletop/oracle")
    assert (cells["FDT"].value or 0) > 80 and cells["battles"].value == 36
    assert arena.record.manifest.options["both_orders"] is True


def tile(tables: list[Pil.Image], count: int) -> Pil.Image:
    side = tables[0].width
    sheet = Pil.new("RGB", (side * count, side * count))
    for place in range(count * count):
        sheet.paste(tables[place % len(tables)], (side * (place % count), side * (place // count)))
    return sheet


def test_sheets_of_tables_are_collages_and_tables_are_none(tmp_path: Path, data: Path):
    blobs = Blobs(tmp_path)
    tables = [Pil.open(path).convert("RGB") for path in sorted((data / "images").glob("*-o-*.png"))[:8]]
    for table in tables:
        assert not is_collage(blobs.put_pil(table), blobs)
        noise = Pil.effect_noise(table.size, 60).convert("RGB")
        assert not is_collage(blobs.put_pil(Pil.blend(table, noise, 0.2)), blobs), "a bad drawing is one drawing"
    sheets = [tile([*tables[place:], *tables], count) for place in range(4) for count in (2, 3)]
    sheets += [tile([table], 2) for table in tables[:3]]  # the same table four times is read as a table at a glance
    assert all(is_collage(blobs.put_pil(sheet), blobs) for sheet in sheets)
    assert is_collage(blobs.put_pil(Pil.new("RGB", (128, 64), "white")), blobs)


def test_a_model_that_answers_with_one_sheet_has_no_plan(tmp_path: Path, data: Path):
    """Where the number of images is free, one sheet of four would be enough by the number of files."""
    tables = [Pil.open(path).convert("RGB") for path in sorted((data / "images").glob("*-o-*.png"))[:4]]

    def sheet(messages: Any, want: str) -> list[Any]:
        return ["Here.", tile(tables, 2)]

    result = run(data, tmp_path / "home", sheet, where={"count": "free"})
    counts = [verdict for verdict in result.verdicts if verdict.metric == "count"]
    assert counts and {verdict.value for verdict in counts} == {0.0}
