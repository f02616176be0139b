"""What an official cell says of itself: on how many verdicts it rests, which of them only the released scripts could
read, and which question was not asked; in every benchmark and in every output."""

import csv
import io
import json
from collections.abc import Sequence

import pytest
from rich.console import Console

from weft.arena.official import BattleFacts
from weft.arena.protocol import Arena
from weft.benchmarks import RunResults, load_benchmark
from weft.benchmarks.imug.facts import PointsFacts
from weft.benchmarks.imug.official import OFFICIAL
from weft.benchmarks.official import OFFICIAL_VARIANT, explain_official_cells
from weft.benchmarks.opening.rubric import CRITERIA
from weft.benchmarks.rover.facts import RoverFacts
from weft.cli.tables import print_table
from weft.report.numbers import render_table
from weft.report.render import render
from weft.types import Cell, OfficialReading, Row, Table, Verdict

COOKING = {"domain": "Cooking", "task": "x", "class": "Hybrid"}


def image(number: int, value: float | None, reading: float | None = None, by: str = "judge") -> Verdict:
    """A verdict on an image of IMUG-Bench; the points of a reading are from 0 to 5."""
    read = None if reading is None else OfficialReading(reading)
    return Verdict(f"Cooking/x/{number}", 0, "points", value, "", by, detail=PointsFacts((3,)), reading=read)  # type: ignore[arg-type]


def imug(verdicts: Sequence[Verdict]) -> tuple[Cell, Cell]:
    """The cells of the class Hybrid in both arithmetics."""
    run = RunResults("m", {verdict.sample: COOKING for verdict in verdicts}, verdicts, "mine")
    table = next(iter(load_benchmark("imug").tables([run])))
    return table.run_rows[0].cells["Hybrid Gen."], table.run_rows[-1].cells["Hybrid Gen."]


def test_what_only_the_released_scripts_could_read_stays_their_number_and_the_cell_says_so():
    strict, official = imug([image(number, None, reading) for number, reading in enumerate((1, 2, 3, 2, 2, 3))])
    assert strict.format(1) == "unscored (0/6)"
    assert official.format(1) == "43.3 (6/6, 6 unusable)"


def test_what_never_got_a_reply_is_unscored_in_both():
    strict, official = imug([image(0, 0.6, 2.0), image(1, None, 4.0), image(2, None)])
    assert strict.format(1) == "60.0 (1/3)" and official.format(1) == "60.0 (2/3, 1 unusable)"
    _, nothing = imug([image(0, None), image(1, None)])
    assert nothing.format(1) == "unscored (0/2)"


def test_a_question_for_the_official_row_that_failed_is_unscored_there():
    """It was asked: it is neither left out nor `not asked`."""
    missing = image(1, 0.0, by="failure")
    lost = Verdict(missing.sample, 0, "points", None, "the judge call failed", variant=OFFICIAL_VARIANT)
    (merged,) = load_benchmark("imug").merge_variants([missing, lost])
    assert not OFFICIAL.lacks_official_question(merged)
    strict, official = imug([image(0, 0.6, 2.0), merged])
    assert strict.format(1) == "30.0" and official.format(1) == "40.0 (1/2)"


def test_slopes_count_what_they_could_not_use():
    verdicts = [Verdict("Cooking/x/1", turn, "points", 0.5, detail=PointsFacts((3,))) for turn in range(3)]
    verdicts.append(Verdict("Cooking/x/1", 3, "points", None, detail=PointsFacts((3,))))
    run = RunResults("m", {"Cooking/x/1": COOKING}, verdicts, "mine")
    rows = list(load_benchmark("imug").tables([run]))[1].run_rows
    assert [row.cells["per turn"].format(1) for row in rows if row.subset == "image"] == ["0.0 (3/4)", "0.0 (3/4)"]


def test_weave_counts_what_a_whole_record_loses():
    verdicts = [Verdict(sample, turn, "accuracy", 1.0) for sample in "ab" for turn in range(2)]
    verdicts += [Verdict("b", 2, "accuracy", None), Verdict("c", 0, "accuracy", None, reading=OfficialReading(4.0))]
    groups = {sample: {"domain": "optics", "class": "Science"} for sample in "abc"}
    strict, official = next(iter(load_benchmark("weave").tables([RunResults("m", groups, verdicts, "tabletop")]))).rows
    assert strict.cells["Avg"].format() == "1.000 (4/6)" and official.cells["Avg"].format() == "0.800 (3/6, 1 unusable)"


def rover(verdicts: Sequence[Verdict]) -> Table:
    groups = {verdict.sample: {"dimension": "science", "type": "temporal"} for verdict in verdicts}
    return next(iter(load_benchmark("rover-ig").tables([RunResults("m", groups, verdicts, "tabletop")])))


def test_rover_says_what_is_unscored_in_means_over_tasks_and_over_dimensions():
    verdicts = [
        Verdict("science_temporal_1", 0, "reasoning_visual", 1.0, reading=OfficialReading(5)),
        Verdict("science_temporal_2", 0, "reasoning_visual", None, reading=OfficialReading(0)),
        Verdict("science_temporal_3", 0, "reasoning_visual", None),
        Verdict("science_temporal_4", 0, "reasoning_visual", 0.0, by="failure"),
    ]
    rows = {row.label: row.cells["RV"].format(1) for row in rover(verdicts).rows}
    assert rows["m (strict), micro"] == rows["m (strict), macro"] == "50.0 (2/4)"
    assert rows["m (official), micro"] == rows["m (official), macro"] == "37.5 (2/3, 1 unusable)"


def test_rover_says_where_the_released_code_asks_otherwise():
    facts = RoverFacts(thinking_outside_tags=True)
    verdicts = [
        Verdict("science_temporal_1", 0, "reasoning_process", 1.0, reading=OfficialReading(5)),
        Verdict("science_temporal_2", 0, "reasoning_process", 0.5, reading=OfficialReading(3), detail=facts),
    ]
    rows = {row.label: row.cells["RP"].format(1) for row in rover(verdicts).rows}
    assert rows["m (strict), micro"] == "75.0"
    assert rows["m (official), micro"] == rows["m (official), macro"] == "not asked (1/2)"


def test_planviz_says_what_its_scorer_leaves_out_of_what_weft_could_not_score():
    values = {"0": (1.0, None), "1": (None, None), "2": (None, OfficialReading()), "3": (None, OfficialReading(0.5))}
    verdicts = [Verdict(name, 0, "visual", value, reading=read) for name, (value, read) in values.items()]
    verdicts.append(Verdict("4", 0, "visual", 0.0, by="failure"))
    groups = {verdict.sample: {"task": "gen", "subtask": "ui", "ended": "open"} for verdict in verdicts}
    rows = next(iter(load_benchmark("planviz").tables([RunResults("m", groups, verdicts, "mine")]))).rows
    assert [row.cells["Vis"].format(2) for row in rows] == ["0.50 (2/5)", "0.75 (2/4, 1 unusable)"]


def test_opening_counts_the_answers_that_it_left_out_through_a_fault_of_ours():
    fates = {"scored": (0.8, "judge"), "failed": (0.0, "failure"), "lost": (None, "judge")}
    verdicts = [
        Verdict(name, 0, metric, value, by=by)  # type: ignore[arg-type]
        for name, (value, by) in fates.items()
        for metric in CRITERIA
    ]
    groups = {name: {"task": "t", "subtask": "s"} for name in fates}
    rows = next(iter(load_benchmark("opening").tables([RunResults("m", groups, verdicts, "mine")]))).rows
    assert [row.cells["Completeness"].format(2) for row in rows] == ["4.00 (2/3)", "8.00 (1/2)"]
    assert [row.cells["Overall"].format(2) for row in rows] == ["4.00 (14/21)", "8.00 (1/2)"]


def battle(name: str, order: str, winner: str | None, stored: str = "") -> Verdict:
    facts = BattleFacts(winner)  # type: ignore[arg-type]
    value = None if winner is None else {"A": 1.0, "B": 0.0}[winner]
    reading = OfficialReading(text=stored) if stored else None
    return Verdict(name, 0, "battle", value, detail=facts, variant=f"order {order}", reading=reading)


def test_battles_that_nobody_could_judge_are_expected_in_the_rates_of_both_models():
    verdicts = [
        *(battle("i", order, "A") for order in ("AB", "BA")),
        *(battle("j", order, None) for order in ("AB", "BA")),
        battle("k", "AB", None, "A"),  # to the released script the reply names a winner
        battle("k", "BA", "A"),
    ]
    groups = {name: {"item": name, "first": "x", "second": "y"} for name in "ijk"}
    run = RunResults("arena", groups, Arena().merge_variants(verdicts), "toy", "r", "judge")
    rows = {row.label: row.cells for row in next(iter(Arena().tables([run]))).rows}
    for model, rate in (("x", "100.00"), ("y", "0.00")):
        assert rows[f"{model} (strict)"]["FDT"].format(2) == f"{rate} (1/3)"
        assert rows[f"{model} (strict)"]["battles"].format(2) == "1 (1/3)"
        assert rows[f"{model} (official)"]["FDT"].format(2) == f"{rate} (2/3, 1 unusable)"


CELLS = {
    "0.512 (39/40, 2 unusable)": Cell(0.512, 39, 40, unusable=2),
    "0.512 (37/40)": Cell(0.512, 37, 40),
    "unscored (0/40)": Cell(None, 0, 40),
    "not asked (3/40)": Cell(None, 37, 40, not_asked=3),
}


@pytest.mark.parametrize("text", CELLS)
def test_every_output_has_what_the_cell_says(text: str):
    rows = (
        Row("m", {"KP": Cell(0.4, 40, 40)}, arithmetic="strict"),
        Row("m", {"KP": CELLS[text]}, arithmetic="official"),
    )
    table = explain_official_cells(Table("numbers", ("KP",), rows, "A note."))
    screen = Console(file=io.StringIO(), width=300)
    print_table(screen, table)
    texts = {name: render([table], [], name) for name in ("md", "latex")}
    texts["terminal"] = screen.file.getvalue()  # type: ignore[attr-defined]
    texts["html"] = str(render_table(table))
    texts["notebook"] = table._repr_html_()
    texts["text"] = str(table)
    assert {name for name, output in texts.items() if text not in output} == set()
    explained = "unusable" in text or "not asked" in text
    for name in ("md", "latex", "terminal", "html"):
        assert ("A cell " in texts[name]) == explained, name
    (*_, official) = csv.DictReader(io.StringIO(render([table], [], "csv")))
    found = json.loads(render([table], [], "json"))["tables"][0]["rows"][1]["cells"]["KP"]
    for name in ("scored", "expected", "unusable", "not_asked"):
        assert int(official[name]) == found[name] == CELLS[text].as_dict[name]
