"""Distributions of scores by group and metric, and one coefficient of variation over the outputs of several models."""

import math
from typing import Any

import pytest

import weft
from weft.errors import UserError
from weft.report.binned_panels import draw_binned_panels
from weft.report.plots import render_svg
from weft.stats.distributions import describe_distribution, find_bin, name_bins
from weft.stats.repeats import build_repeats_tables
from weft.types import Verdict
from weft_tabletop.make import make


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[weft.Run]:
    folder = tmp_path_factory.mktemp("distributions")
    data = make("tabletop-planviz", folder / "data", samples=12, seed=0)
    job: dict[str, Any] = {"data": data, "judge": "tabletop/exact", "home": folder / "home"}
    return [weft.evaluate("planviz", model=model, **job) for model in ("tabletop/oracle", "copy")]


def repeated(metric: str, *values: float) -> Verdict:
    behind = tuple(Verdict("s", 0, metric, value, variant=f"repeat {at}") for at, value in enumerate(values, 1))
    return Verdict("s", 0, metric, 0.5, merged_from=behind)


@pytest.mark.parametrize(
    ("share", "name"),
    [(0.0, "0"), (-0.5, "0"), (0.01, "to 20"), (0.2, "to 20"), (0.21, "to 40"), (0.8, "to 80"), (0.99, "below 100"),
     (1.0, "100"), (1.2, "100")],
)  # fmt: skip
def test_zero_and_full_marks_are_bins_of_their_own(share: float, name: str):
    assert name_bins(100.0)[find_bin(share)] == name


@pytest.mark.parametrize("share", [0.2, 0.4, 0.6, 0.8])
def test_the_mean_of_equal_scores_is_in_their_bin(share: float):
    assert find_bin((share + share + share) / 3) == find_bin(share)
    assert find_bin(1 - 1e-16) == find_bin(1.0) == find_bin(3 * (1 / 3))


def test_a_distribution_has_quartiles_and_counts():
    found = describe_distribution([0.0, 0.25, 0.5, 0.75, 1.0])
    assert found is not None and found.quartiles == (0.25, 0.5, 0.75) and found.mean == 0.5
    assert found.bins == (1, 0, 1, 1, 1, 0, 1) and found.deviation == pytest.approx(math.sqrt(0.15625))
    one = describe_distribution([0.4])
    assert one is not None and one.deviation is None and one.quartiles == (0.4, 0.4, 0.4)
    assert describe_distribution([]) is None


def test_tables_are_by_run_group_and_metric(runs: list[weft.Run]):
    found = weft.distributions(runs)
    assert [table.title.rpartition(": ")[2] for table in found.tables] == ["correctness", "visual", "efficiency"]
    for table in found.tables:
        assert len(table.rows) == 12
        for row in table.rows:
            assert sum(row.cells[f"% {name}"].value or 0.0 for name in name_bins()) == pytest.approx(100)
    correctness = found.tables[0]
    assert correctness.cells("copy: gen, route")["% 0"].value == 100
    svg = render_svg(found.plot.chart)
    assert all(text in svg for text in ("gen, route", "correctness", "efficiency", "copy"))
    assert "copy, gen, route, correctness: 100% at zero, 0% at full marks" in found.plot.description


def test_axes_and_metrics_can_be_chosen(runs: list[weft.Run]):
    found = weft.distributions(runs[:1], by=["subtask"], metrics=["visual"])
    (table,) = found.tables
    assert [row.label.rpartition(": ")[2] for row in table.rows] == ["route", "workflow", "ui"]
    with pytest.raises(UserError, match="no axis 'colour'; there is task, subtask, ended"):
        weft.distributions(runs, by=["colour"])
    with pytest.raises(UserError, match="no metric 'beauty'"):
        weft.distributions(runs, metrics=["beauty"])


def test_a_panel_is_under_its_own_metric_where_a_group_lacks_another():
    rows: list[dict[str, Any]] = []
    for group, metric in (("first", "b"), ("second", "a"), ("second", "b")):
        place = {"name": "run", "group": group, "metric": metric}
        rows.append({**place, "bin": "0", "order": 0, "percent": 100.0})
    spec = draw_binned_panels(rows, name_bins(), "title").to_dict()
    names = [panel["title"]["text"] for panel in spec["vconcat"][0]["hconcat"]]
    for line in spec["vconcat"]:
        for name, panel in zip(names, line["hconcat"], strict=True):
            assert {row["metric"] for row in panel["data"]["values"]} <= {name}


def test_variation_is_pooled_over_the_items_of_all_runs():
    one = [repeated("x", 0.2, 0.4), repeated("y", 0.5, 0.7)]
    two = [repeated("x", 0.6, 0.6), repeated("x", 0.9, 0.7)]
    _, pooled = build_repeats_tables({"one": one, "two": two}, ["x", "y", "z"], 1.0, 3)
    assert [row.name for row in pooled.rows] == ["all runs: x", "all runs: y", "all runs, all metrics"]
    cells = pooled.cells("all runs, all metrics")
    deviation = math.sqrt((0.02 + 0.02 + 0.0 + 0.02) / 4)
    mean = (0.2 + 0.4 + 0.5 + 0.7 + 0.6 + 0.6 + 0.9 + 0.7) / 8
    assert cells["items"].value == 4 and cells["variation"].value == pytest.approx(100 * deviation / mean)
    _, metrics = build_repeats_tables({"one": one}, ["x", "y"], 1.0, 3)
    assert [row.name for row in metrics.rows] == ["all metrics"]
