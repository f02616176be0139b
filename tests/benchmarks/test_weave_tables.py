"""WEAVE's arithmetic against the paper's own numbers."""

import importlib.resources
import json

import pytest

from weft.benchmarks import RunResults
from weft.benchmarks.weave.tables import COLUMNS, build_metric_cells, official_average, tables
from weft.types import OfficialReading, Verdict

PUBLISHED = json.loads(importlib.resources.files("weft.benchmarks.weave").joinpath("published.json").read_text())
ROWS = [(name, row) for name in ("table7", "table8", "table9", "table10") for row in PUBLISHED[name]["rows"]]
ERRATA = {("table7", "UltraEdit(SD3)"): 0.495, ("table8", "Ovis-U1"): 0.544}


def test_98_of_the_100_rows_of_tables_7_to_10_follow_the_formula_to_three_decimals():
    assert len(ROWS) == 100
    off = {(table, row["model"]): official_average(row) for table, row in ROWS if official_average(row) != row["Avg"]}
    assert off == ERRATA


def test_the_class_averages_are_table_2s_columns_in_all_100_cells():
    for number, column in (("table7", "Science"), ("table8", "Creation"), ("table9", "Logic"), ("table10", "Game")):
        assert [row["Avg"] for row in PUBLISHED[number]["rows"]] == [row[column] for row in PUBLISHED["table2"]["rows"]]


@pytest.mark.parametrize(
    ("half_points", "turns", "published"), [(25, 42, 0.298), (32, 42, 0.381), (39, 42, 0.464), (18, 39, 0.231)]
)
def test_text_only_rows_are_turn_micro_means(half_points: int, turns: int, published: float):
    """Qwen3-VL, GPT-4o and GPT-4.1 over all 42 text turns; InternVL's 0.231 needs a denominator of 39: three answers
    were dropped."""
    values = [10.0] * (half_points // 2) + [5.0] * (half_points % 2)
    values += [0.0] * (turns - len(values))
    cells = build_metric_cells(
        [Verdict("s", n, "accuracy", value / 10, score=value) for n, value in enumerate(values)], official=True
    )
    assert cells["ACC"].value == published and cells["Avg"].value == published


def verdicts(sample: str, **scores: list[float | None]) -> list[Verdict]:
    """From points out of ten, as a judge gives them."""
    return [
        Verdict(sample, turn, metric, None if value is None else value / 10, score=value)
        for metric, values in scores.items()
        for turn, value in enumerate(values)
    ]


def test_the_formula_is_chosen_group_by_group():
    image = verdicts("a", key_point=[8.0], visual_consistency=[6.0], image_quality=[4.0])
    assert build_metric_cells(image, official=False)["Avg"].value == pytest.approx(0.5 * 0.8 + 0.2 * 0.6 + 0.3 * 0.4)
    both = image + verdicts("b", accuracy=[10.0, 0.0])
    due = 0.4 * 0.8 + 0.1 * 0.6 + 0.2 * 0.4 + 0.3 * 0.5
    assert build_metric_cells(both, official=False)["Avg"].value == pytest.approx(due)
    run = RunResults(
        "m", {"a": {"domain": "edit", "class": "Creation"}, "b": {"domain": "optics", "class": "Science"}}, both
    )
    rows = next(iter(tables([run]))).cells("m")
    values = {column: cell.value for column, cell in rows.items()}
    assert values == pytest.approx({"Creation": 0.64, "Science": 0.5, "Avg": 0.61})


def test_a_models_failure_is_zero_in_strict_and_what_the_judge_says_of_it_in_official():
    made = [
        *verdicts("a", accuracy=[10.0]),
        Verdict("a", 1, "accuracy", 0.0, "refused", by="failure", variant_reading=OfficialReading(10)),
    ]
    assert build_metric_cells(made, official=False)["ACC"].value == 0.5
    assert build_metric_cells(made, official=True)["ACC"].value == 1.0
    run = RunResults("m", {"a": {"domain": "optics", "class": "Science"}}, made)
    strict, official = next(iter(tables([run]))).run_rows
    assert (strict.arithmetic, strict.cells["Avg"].value, official.arithmetic, official.cells["Avg"].value) == (
        "strict",
        0.5,
        "official",
        1.0,
    )
    assert (strict.label, official.label) == ("m (strict)", "m (official)")


def test_what_is_unscored_is_left_out_of_the_mean_and_shown_in_the_coverage():
    made = verdicts("a", key_point=[8.0, None], visual_consistency=[6.0, 6.0], image_quality=[4.0, 4.0])
    cells = build_metric_cells(made, official=False)
    assert (cells["KP"].value, cells["KP"].scored, cells["KP"].expected) == (0.8, 1, 2)
    assert (cells["Avg"].scored, cells["Avg"].expected) == (5, 6)
    nothing = build_metric_cells(
        verdicts("a", key_point=[None], visual_consistency=[6.0], image_quality=[4.0]), official=False
    )
    assert nothing["KP"].value is None and nothing["Avg"].value is None, "no average without one of its terms"


def test_published_rows_stand_beside_ours_unchanged():
    run = RunResults("m", {"a": {"domain": "optics", "class": "Science"}}, verdicts("a", accuracy=[10.0]))
    science = list(tables([run]))[1]
    assert len(science.published_rows) == 25 and len(science.rows) == 26
    row = science.cells("UltraEdit(SD3) 2B [partial, image, concatenated]")
    assert [row[column].value for column in COLUMNS] == [0.45, 0.558, 0.528, None, 0.493]
