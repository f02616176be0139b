"""Correlations over models: the numbers of the textbook, and never one that is undefined."""

import math
from typing import Any

import pytest

import weft
from weft.errors import UserError
from weft.report.correlate import correlate_models
from weft.report.model_scores import collect_scores
from weft.stats.correlations import correlate, difference_of_means
from weft_tabletop.make import make

X = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
Y = [2.0, 1.0, 4.0, 3.0, 6.0, 5.0]


def test_pearsons_interval_is_fishers():
    found = correlate(X, Y)
    assert found.value == pytest.approx(0.828571, abs=1e-6) and found.n == 6
    # scipy.stats.pearsonr(X, Y).confidence_interval()
    assert (found.low, found.high) == (pytest.approx(0.0519293188), pytest.approx(0.9806845993))


def test_ranks_have_a_wider_interval():
    plain, ranked = correlate(X, Y), correlate(X, Y, "spearman")
    assert ranked.value == pytest.approx(plain.value)
    assert ranked.low is not None and plain.low is not None and ranked.low < plain.low


@pytest.mark.parametrize(
    ("x", "y", "value", "has_interval"),
    [
        ([1.0, 2.0], [1.0, 2.0], None, False),
        ([1.0, 1.0, 1.0, 1.0], X[:4], None, False),
        ([1.0, 2.0, 4.0], [1.0, 2.0, 3.0], 0.9819805, False),
        (X, X, 1.0, False),
        (X, Y, 0.828571, True),
    ],
)
def test_what_is_undefined_is_none(x: list[float], y: list[float], value: float | None, has_interval: bool):
    found = correlate(x, y)
    assert found.value is None if value is None else found.value == pytest.approx(value, abs=1e-5)
    assert (found.low is not None) == has_interval


def test_a_gap_has_welchs_interval():
    found = difference_of_means([5.0, 6.0, 7.0], [1.0, 2.0, 3.0, 4.0])
    # scipy.stats.ttest_ind(..., equal_var=False).confidence_interval()
    assert found.value == 3.5 and found.n == 7
    assert (found.low, found.high) == (pytest.approx(1.2682885187), pytest.approx(5.7317114813))
    assert difference_of_means([5.0], [1.0, 2.0]).low is None and difference_of_means([], [1.0]).value is None


def test_published_metrics_correlate_over_the_models_that_have_both():
    found = correlate_models(published="rover-ig", split="group")
    cell = found.table.cells("RP")["RV"]
    assert (cell.scored, round(cell.value or 0, 2)) == (6, 0.96)
    assert found.table.cells("RV")["models"].value == 12 and "RP" not in found.table.cells("RP")
    assert found.plot is not None and "RP and RV: 0.96" in found.plot.description
    assert found.gaps is not None and found.gaps.columns[-1] == "difference"


def test_published_groups_are_those_of_one_metric_and_averages_are_left_out():
    scores = collect_scores([], "rover-ig", over="groups", metric="RV")
    assert scores.columns == ("Science", "Culture", "Common Sense", "Logic")
    assert scores.rows[0].values["Science"] == 77.3 and len(scores.rows) == 12
    with pytest.raises(UserError, match="name one of the columns RP, Align., RV"):
        collect_scores([], "rover-ig", over="groups")


def test_rows_that_are_no_models_can_be_left_out():
    everyone = collect_scores([], "planviz", table="editing")
    models = collect_scores([], "planviz", table="editing", without=["human"])
    assert len(models.rows) == len(everyone.rows) - 1 and not any("Human" in row.name for row in models.rows)
    with pytest.raises(UserError, match="--without nobody: there is AnyEdit"):
        collect_scores([], "planviz", table="editing", without=["nobody"])


@pytest.mark.parametrize("name", ["weave", "imug", "planviz", "rover-ig", "rover-tg", "weaverbench", "opening"])
def test_every_paper_has_correlations(name: str):
    found = correlate_models(published=name)
    values = [cell.value for row in found.table.rows for column, cell in row.cells.items() if column != "models"]
    assert values and all(value is not None and -1 <= value <= 1 for value in values)


def test_runs_correlate_by_metric_and_by_axis(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("correlations")
    data = make("tabletop-rover", folder / "data", samples=12, seed=0)
    job: dict[str, Any] = {"data": data, "judge": "tabletop/exact", "home": folder / "home"}
    runs = [weft.evaluate("rover-ig", model="copy", **job)]
    models = [{"error": 0.0}, {"error": 0.5}, {"error": 0.9}]
    runs += [weft.evaluate("rover-ig", model="tabletop/oracle", model_options=one, **job) for one in models]
    by_type = weft.correlate(runs, over="type")
    assert set(by_type.table.columns[:-1]) == {group["type"] for group in runs[0].groups.values()}
    metrics = weft.correlate(runs)
    values = [cell.value for row in metrics.table.rows for cell in row.cells.values()]
    assert not any(value is not None and math.isnan(value) for value in values)
    both = collect_scores(runs, "rover-ig")
    assert len(both.rows) == 16 and "other data" in both.note
    assert "alignment held" not in weft.correlate(runs).table.columns, "it follows from two others"
    with pytest.raises(UserError, match="--metric x: it is about groups"):
        weft.correlate(runs, metric="x")
    with pytest.raises(UserError, match="the runs are of rover-ig"):
        weft.correlate(runs, "weave")
    with pytest.raises(UserError, match="needs three models"):
        weft.correlate(runs[:2])
    with pytest.raises(UserError, match="choose metrics, groups"):
        weft.correlate(runs, over="taste")
