"""Intervals, p-values and corrections against independent computations; marks, published tables, Parquet."""

import csv
import importlib
import io
import json
import random
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.benchmarks import load_benchmark
from weft.errors import UserError
from weft.report import parquet, plots
from weft.report.compare import compare
from weft.report.glossary import find_term
from weft.report.numbers import render_table
from weft.report.ranking import rank_cells
from weft.report.render import render
from weft.stats.intervals import estimate_mean, estimate_slope, mean_interval
from weft.stats.paired import compare_paired, holm_adjust
from weft.types import Cell, Row, Table
from weft_tabletop.make import make

SHARED = Path(__file__).parents[3] / "shared" / "spec" / "published_results.json"


def resampled(terms: list[tuple[float, dict[str, list[float]]]], draws: int, seed: int) -> tuple[float, float]:
    """The percentile bootstrap over dialogues, in plain Python: another way to an interval, for many dialogues."""
    chance = random.Random(seed)
    names = sorted({name for _, clusters in terms for name in clusters})
    found: list[float] = []
    for _ in range(draws):
        picked = [chance.choice(names) for _ in names]
        total = 0.0
        for weight, clusters in terms:
            values = [value for name in picked for value in clusters.get(name, ())]
            total += weight * sum(values) / len(values)
        found.append(total)
    found.sort()
    return found[int(0.025 * draws)], found[int(0.975 * draws)]


def clusters(seed: int, count: int = 60) -> dict[str, list[float]]:
    chance = random.Random(seed)
    made: dict[str, list[float]] = {}
    for n in range(count):
        level = chance.random()
        made[str(n)] = [min(1.0, max(0.0, level + chance.gauss(0, 0.1))) for _ in range(chance.randint(1, 6))]
    return made


def test_with_many_dialogues_an_interval_is_what_resampling_finds():
    one = clusters(1, 300)
    found, (low, high) = estimate_mean(one), resampled([(1.0, one)], 1000, 9)
    assert found.low == pytest.approx(low, abs=0.01) and found.high == pytest.approx(high, abs=0.01)


def test_the_interval_of_a_weighted_sum_is_of_the_same_dialogues_for_all_its_means():
    terms = [
        (0.4, clusters(1, 300)),
        (0.1, clusters(2, 300)),
        (0.2, clusters(3, 300)),
        (0.3, {name: v for name, v in clusters(4, 300).items() if int(name) % 3}),
    ]
    bounds, (low, high) = mean_interval(terms), resampled(terms, 1000, 5)
    assert (
        bounds is not None
        and bounds[0] == pytest.approx(low, abs=0.008)
        and bounds[1] == pytest.approx(high, abs=0.008)
    )


def test_a_slope_is_least_squares_within_dialogues():
    chance = random.Random(2)
    points = {str(n): [(t, 5 * n - 3 * t + chance.gauss(0, 1)) for t in range(chance.randint(2, 6))] for n in range(50)}
    found = estimate_slope(points)
    num = den = 0.0
    for pairs in points.values():
        mx, my = sum(x for x, _ in pairs) / len(pairs), sum(y for _, y in pairs) / len(pairs)
        num += sum((x - mx) * (y - my) for x, y in pairs)
        den += sum((x - mx) ** 2 for x, _ in pairs)
    assert (
        found is not None
        and found.value == pytest.approx(num / den)
        and found.low < -3 < found.high
        and found.high < -2
    )


def p_of(values: list[float]) -> float:
    found = compare_paired([(1.0, {str(at): [value] for at, value in enumerate(values)})], full=10.0)
    assert found is not None
    return found.p


def p_of_swaps(values: list[float], draws: int = 4000) -> float:
    """How often the sum is as far from zero if the two runs of each dialogue are swapped at random."""
    chance = random.Random(1)
    as_far = sum(abs(sum(chance.choice((1, -1)) * value for value in values)) >= abs(sum(values)) for _ in range(draws))
    return as_far / draws


@pytest.mark.parametrize("shift", [0.0, 0.3, 0.6])
def test_p_is_about_that_of_swapping_the_runs_of_each_dialogue(shift: float):
    chance = random.Random(3)
    values = [chance.gauss(shift, 2.0) for _ in range(60)]
    assert p_of(values) == pytest.approx(p_of_swaps(values), abs=0.03)


def test_many_dialogues_have_the_p_that_the_normal_limit_has():
    chance = random.Random(4)
    values = [chance.gauss(0.1, 1.0) for _ in range(400)]
    from statistics import NormalDist

    z = abs(sum(values)) / sum(v * v for v in values) ** 0.5
    assert p_of(values) == pytest.approx(2 * (1 - NormalDist().cdf(z)), abs=0.02)


def test_p_is_uniform_where_there_is_no_difference():
    chance = random.Random(7)
    found = [p_of([chance.gauss(0, 2) for _ in range(30)]) for _ in range(600)]
    assert sum(p <= 0.05 for p in found) / 600 == pytest.approx(0.045, abs=0.025)
    assert sum(found) / 600 == pytest.approx(0.5, abs=0.05)


def test_holm_is_the_textbooks():
    assert holm_adjust([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm_adjust([0.9, 0.8]) == [1.0, 1.0] and holm_adjust([]) == []


def test_a_difference_needs_pairs():
    assert compare_paired([(1.0, {})]) is None
    found = compare_paired([(1.0, {str(n): [1.0, 1.0] for n in range(20)})])
    assert (
        found is not None
        and found.value == pytest.approx(1.0)
        and found.pairs == 40
        and found.dialogues == 20
        and found.p < 1e-3
    )


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[weft.Run, weft.Run, Path]:
    folder = tmp_path_factory.mktemp("two")
    data = make("tabletop-imug", folder / "data", samples=60, seed=0)

    def run(error: float) -> weft.Run:
        options = {"error": error} if error else {}
        return weft.evaluate(
            "imug",
            data=data,
            model="tabletop/oracle",
            judge="tabletop/exact",
            home=folder / "home",
            model_options=options,
        )

    return run(0.0), run(0.4), folder


def test_two_runs_are_compared_turn_by_turn(two: tuple[weft.Run, weft.Run, Path]):
    good, bad, _ = two
    found = compare(good, bad)
    main = found.rows[0]
    assert main.name == "headline score" and main.first == 100.0 and main.difference.p < 1e-4
    assert main.second == pytest.approx(sum(100 * (v.value or 0) for v in bad.verdicts) / len(bad.verdicts))
    assert main.difference.low is not None and main.difference.high is not None
    assert main.difference.low < main.difference.value < main.difference.high and main.corrected_p >= main.difference.p
    assert {row.name for row in found.rows} >= {"choice", "points", "choice, Hybrid", "points, Static Spatial"}
    assert found.unpaired == 0 and found.gaps[0].first - found.gaps[0].second == max(
        g.first - g.second for g in found.gaps
    )
    again = compare(bad, good)
    assert again.rows[0].difference.value == pytest.approx(-main.difference.value) and again.rows[
        0
    ].difference.p == pytest.approx(main.difference.p)


def test_what_cannot_be_compared_is_told(two: tuple[weft.Run, weft.Run, Path]):
    with pytest.raises(UserError, match="named twice"):
        compare(two[0], two[0])


def test_best_and_second_are_marked_at_the_digits_shown():
    values = {"a": 0.5001, "b": 0.5004, "c": 0.4, "d": None}
    rows = (
        *(Row(name, {"x": Cell(value)}) for name, value in values.items()),
        Row("a", {"x": Cell(0.9)}, arithmetic="official"),
    )
    table = Table("t", ("x",), rows, digits=3)
    assert rank_cells(table) == {("a", "x"): "best", ("b", "x"): "best", ("c", "x"): "second"}
    assert (
        rank_cells(Table("t", ("x",), rows, kind="breakdown")) == {}
        and rank_cells(Table("t", ("x",), (Row("a", {"x": Cell(1.0)}),))) == {}
    )


@pytest.mark.parametrize(
    ("benchmark", "number", "place"),
    [("weave", 0, ("weave", "table2")), ("imug", 0, ("imug", "table2")), ("imug", 3, ("imug", "table4"))],
)
def test_a_table_of_published_rows_alone_is_the_papers(benchmark: str, number: int, place: tuple[str, str]):
    if not SHARED.is_file():
        pytest.skip(f"the published results are not here ({SHARED})")
    theirs = json.loads(SHARED.read_text())[place[0]][place[1]]["rows"]
    table = list(load_benchmark(benchmark).tables([]))[number]
    shown = list(csv.DictReader(io.StringIO(render([table], [], "csv"))))
    ours = [float(row["value"]) for row in shown]
    due = [value for row in theirs for value in row.values() if isinstance(value, float)]
    assert sorted(ours) == pytest.approx(sorted(due)) and len({row["row"] for row in shown}) == len(theirs)


def test_every_verdict_is_a_row_of_parquet(two: tuple[weft.Run, weft.Run, Path], tmp_path: Path):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed (pip install '.[parquet]')")
    pq: Any = importlib.import_module("pyarrow.parquet")
    parquet.write(two[:2], tmp_path / "sub" / "runs.parquet")
    rows: list[dict[str, Any]] = pq.read_table(tmp_path / "sub" / "runs.parquet").to_pylist()
    assert len(rows) == len(two[0].verdicts) + len(two[1].verdicts)
    assert {"run", "sample", "turn", "metric", "value", "outcome", "group_class"} <= rows[0].keys() and rows[0][
        "turn"
    ] == 1


def test_rows_that_all_share_the_best_are_all_best():
    rows = (Row("a", {"x": Cell(0.5)}), Row("b", {"x": Cell(0.5)}))
    assert rank_cells(Table("t", ("x",), rows)) == {("a", "x"): "best", ("b", "x"): "best"}


@pytest.mark.parametrize(
    ("column", "term"),
    [("RP", "RP"), ("Science RP", "RP"), ("Align. held", "Align. held"), ("RP mean", "RP"), ("x", "")],
)
def test_a_column_is_explained_by_its_name_its_end_or_its_beginning(column: str, term: str):
    assert find_term(column, {"RP": "Reasoning Process", "Align. held": "held"}) == term


def test_a_table_explains_its_columns_on_hover_and_below():
    table = Table("t", ("Science RP", "Logic RP"), (Row("a", {"Science RP": Cell(0.5)}),))
    page = render_table(table, glossary={"RP": "Reasoning Process: the reasoning is <sound>"})
    assert page.count('<abbr title="Reasoning Process: the reasoning is &lt;sound&gt;">') == 2
    assert page.count("<dt>RP</dt> <dd>Reasoning Process: the reasoning is &lt;sound&gt;</dd>") == 1


def test_a_mean_over_one_dialogue_is_drawn_without_an_interval():
    rows = [
        {"turn": 1, "series": "a", "score": 0.5, "low": 0.4, "high": 0.6},
        {"turn": 2, "series": "a", "score": 0.7, "low": None, "high": None},
    ]
    bars = plots.grouped_bar_chart(rows, x="turn", y="score", series="series", title="t")
    assert plots.render_svg(bars).count('aria-roledescription="rule mark"') == 2, "a dark line on a light one"
    assert "<svg" in plots.render_svg(plots.line_chart(rows, x="turn", y="score", series="series", title="t"))


@pytest.mark.parametrize("name", ["weave", "imug", "rover-ig", "rover-tg", "planviz", "weaverbench", "opening"])
def test_every_metric_of_a_benchmark_is_in_its_glossary(name: str):
    benchmark = load_benchmark(name)
    assert set(benchmark.metrics) <= set(benchmark.presentation.glossary)


def test_a_zero_is_a_rival_that_is_never_marked():
    rows = tuple(Row(name, {"x": Cell(value), "y": Cell(0.0)}) for name, value in (("a", 0.5), ("b", 0.5), ("c", 0.0)))
    assert rank_cells(Table("t", ("x", "y"), rows)) == {("a", "x"): "best", ("b", "x"): "best"}
    pair = tuple(Row(name, {"x": Cell(value)}) for name, value in (("a", 0.5), ("c", 0.0)))
    assert rank_cells(Table("t", ("x",), pair)) == {("a", "x"): "best"}


def test_ranks_are_those_of_the_numbers_that_are_shown():
    rows = tuple(Row(name, {"x": Cell(value, digits=1)}) for name, value in (("a", 0.54), ("b", 0.53), ("c", 0.2)))
    assert rank_cells(Table("t", ("x",), rows)) == {("a", "x"): "best", ("b", "x"): "best", ("c", "x"): "second"}
