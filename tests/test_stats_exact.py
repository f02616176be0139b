"""The arithmetic of intervals, paired differences and repeats, against second implementations and cases that can be
worked out by hand."""

import math
import random
from typing import Any

import numpy as np
import pytest

from weft.stats.intervals import Clusters, Estimate, estimate_mean, estimate_slope, mean_interval, variance_interval
from weft.stats.paired import compare_paired, compare_pairs, compare_relative, holm_adjust
from weft.stats.repeats import build_repeats_tables
from weft.stats.resampling import bootstrap_weights
from weft.types import Verdict

scipy: Any = pytest.importorskip("scipy.stats", reason="SciPy is what these are held to: pip install -e .[dev]")


def drawn_again(clusters: int, draws: int, seed: int) -> list[list[int]]:
    """Which clusters each draw has, made one by one."""
    chance = np.random.default_rng(seed)
    return [list(chance.integers(0, clusters, size=clusters)) for _ in range(draws)]


CLUSTERS = {"a": [1.0, 0.0, 1.0], "b": [0.5], "c": [0.25, 0.75], "d": [1.0], "e": [0.0, 0.0]}
OTHER = {"a": [0.2], "c": [0.9, 0.1], "f": [0.4]}


def test_weights_tell_how_often_each_was_drawn():
    made = bootstrap_weights(4, 100, 9)
    for row, draw in zip(made, drawn_again(4, 100, 9), strict=True):
        assert [int(count) for count in row] == [draw.count(at) for at in range(4)]


def by_the_rule(terms: list[tuple[float, Clusters]], scale: tuple[float, float]) -> tuple[float, float]:
    """The rule again: every dialogue is left out in turn, and the ends are searched for."""
    least, most = scale
    names = list(dict.fromkeys(name for _, clusters in terms for name, values in clusters.items() if values))

    def share_of(clusters: Clusters, without: str = "") -> float:
        values = [value for name in names if name != without for value in clusters.get(name, ())]
        return (sum(values) / len(values) - least) / (most - least)

    moved = dict.fromkeys(names, 0.0)
    size, at_top, at_bottom = dict(moved), dict(moved), dict(moved)
    unseen_in_all = value = 0.0
    for weight, clusters in terms:
        count = sum(map(len, clusters.values()))
        share = share_of(clusters)
        steps = {name: share - share_of(clusters, name) for name in names}
        squares, fourths = (sum(step**power for step in steps.values()) for power in (2, 4))
        unseen = 1 / (1 + (squares**2 / fourths if fourths else 0.0)) ** 3
        if least == -most:
            part_of = {name: len(clusters.get(name, ())) / count for name in names}
            of_equal_size = 1 / sum(part**2 for part in part_of.values())
            sizes = [of_equal_size * sum(clusters.get(name, ())) / count / most for name in names]
            squares, fourths = (sum(size**power for size in sizes) for power in (2, 4))
            unseen *= min(1.0, (squares + 1) / ((squares**2 / fourths if fourths else 0.0) + 1))
        for name in names:
            part = weight * len(clusters.get(name, ())) / count
            size[name] += part
            moved[name] += weight * steps[name]
            at_top[name] += part * unseen**0.5 * share
            at_bottom[name] += part * unseen**0.5 * (1 - share)
        unseen_in_all += weight * unseen
        value += weight * share
    dialogues = 1 / sum(part**2 for part in size.values())
    variance = sum(step**2 for step in moved.values())
    variance += sum(part**2 for part in (*at_top.values(), *at_bottom.values())) / dialogues
    answers = (value * (1 - value) + unseen_in_all / dialogues) / variance
    added = [part**1.5 for part in size.values()]  # turns of one dialogue are neither independent nor all alike
    of_equal_weight = sum(added) ** 2 / sum(one**2 for one in added)
    t = float(scipy.t.ppf(0.975, max(1.0, round(of_equal_weight - 1, 2))))

    def is_inside(mean: float) -> bool:
        return (value - mean) ** 2 <= t**2 * (mean * (1 - mean) + 0.25 / answers) / answers

    ends: list[float] = []
    for far in (0.0, 1.0):
        inside, outside = value, far
        for _ in range(60):
            middle = (inside + outside) / 2
            if is_inside(middle):
                inside = middle
            else:
                outside = middle
        ends.append(least + (most - least) * (far if is_inside(far) else inside))
    return ends[0], ends[1]


TWENTY = {str(at): [float(at != 3)] for at in range(20)}
ALIKE = {str(at): [0.7] for at in range(10)}
MANY = {str(at): list(np.random.default_rng(at).random(at % 4 + 1)) for at in range(40)}


@pytest.mark.parametrize("scale", [(0.0, 1.0), (-1.0, 1.0), (0.0, 10.0)])
@pytest.mark.parametrize(
    "terms",
    [[(1.0, CLUSTERS)], [(0.7, CLUSTERS), (0.3, OTHER)], [(1.0, TWENTY)], [(1.0, ALIKE)], [(1.0, MANY)]],
)
def test_an_interval_follows_the_rule(terms: list[tuple[float, Clusters]], scale: tuple[float, float]):
    assert mean_interval(terms, scale) == pytest.approx(by_the_rule(terms, scale), abs=1e-9)


def test_of_single_right_answers_it_is_a_bit_wider_than_wilsons():
    """Wilson's interval (1927) with Student's t, of 19 right answers of 20."""
    t, share = float(scipy.t.ppf(0.975, 19)), 0.95
    centre = (share + t**2 / 40) / (1 + t**2 / 20)
    radius = t / (1 + t**2 / 20) * math.sqrt(share * (1 - share) / 20 + t**2 / 1600)
    found = estimate_mean(TWENTY)
    assert found.low == pytest.approx(centre - radius, abs=0.03) and found.low < centre - radius
    assert found.high == pytest.approx(centre + radius, abs=0.03) and found.high > centre + radius


def test_all_right_is_never_certain():
    widths: list[float] = []
    for dialogues in (2, 10, 20, 200, 5000):
        found = estimate_mean({str(at): [1.0, 1.0] for at in range(dialogues)})
        assert found.high == 1.0 == found.value
        widths.append(found.high - found.low)
    assert widths == sorted(widths, reverse=True) and widths[2] == pytest.approx(0.19, abs=0.02) and widths[-1] > 5e-4


def test_one_dialogue_has_no_interval_and_two_have():
    assert estimate_mean({"a": [0.0, 1.0]}) == Estimate(0.5, 0.5, 0.5, 2)
    assert mean_interval([(1.0, {"a": [0.0, 1.0]})]) is None
    assert mean_interval([(1.0, {"a": [0.0, 1.0], "b": []})]) is None, "a dialogue without a value is none"
    assert mean_interval([(0.5, CLUSTERS), (0.5, {})]) is None, "a mean of nothing"
    assert mean_interval([(1.0, {"a": [0.0], "b": [1.0]})]) == (0.0, 1.0)
    assert str(Estimate(0.5, 0.25, 1.0, 2)) == "0.500 [0.250, 1.000]"
    with pytest.raises(AttributeError):
        estimate_mean({"a": [0.0]}).value = 1.0  # type: ignore[misc]


def test_a_mean_that_rests_on_one_dialogue_is_as_unsure_as_it_can_be():
    sure, unsure = {str(at): [0.5] for at in range(30)}, {"lone": [0.5]}
    low, high = mean_interval([(0.5, sure), (0.5, unsure)]) or (0.5, 0.5)
    assert low < 0.2 and high > 0.8


def test_a_mean_variance_has_students_interval_on_the_scale_of_logarithms():
    variances = [0.01, 0.02, 0.012, 0.03, 0.018, 0.022]
    low, high = variance_interval({str(at): [one] for at, one in enumerate(variances)}) or (0.0, 0.0)
    mean = float(np.mean(variances))
    error = float(scipy.sem(variances)) / mean
    assert low * high == pytest.approx(mean**2) and math.log(high / mean) == pytest.approx(
        float(scipy.t.ppf(0.975, 5)) * error, rel=0.15
    )
    assert variance_interval({"a": [0.1]}) is None and variance_interval({"a": [0.0], "b": [0.0]}) is None


def test_a_slope_is_least_squares_within_dialogues():
    points = {"a": [(1.0, 0.9), (2.0, 0.7), (3.0, 0.2)], "b": [(1.0, 0.1), (4.0, 0.5)], "c": [(2.0, 1.0)], "d": []}
    found = estimate_slope(points)
    products, squares = [], []
    for pairs in [points["a"], points["b"], points["c"]]:
        x0, y0 = np.mean([x for x, _ in pairs]), np.mean([y for _, y in pairs])
        products.append(sum((x - x0) * (y - y0) for x, y in pairs))
        squares.append(sum((x - x0) ** 2 for x, _ in pairs))
    assert found is not None and found.value == pytest.approx(sum(products) / sum(squares)) and found.n == 6
    assert found.low < found.value < found.high
    percent = estimate_slope({name: [(x, 100 * y) for x, y in pairs] for name, pairs in points.items()}, (0.0, 100.0))
    assert percent is not None and (percent.low, percent.high) == pytest.approx((100 * found.low, 100 * found.high))


def test_a_slope_is_not_steeper_than_from_one_end_to_the_other():
    falling = {str(at): [(0.0, 1.0), (1.0, 0.0)] for at in range(10)}
    found = estimate_slope(falling)
    assert found is not None and found.value == found.low == -1.0 and -0.4 < found.high < -0.2


def test_a_slope_needs_two_turns_and_its_interval_two_dialogues():
    assert (
        estimate_slope({"a": [(1.0, 0.5)], "b": [(3.0, 0.5)]}) is None
        and estimate_slope({}) is None
        and estimate_slope({"a": []}) is None
    )
    alone = estimate_slope({"a": [(1.0, 0.0), (2.0, 1.0)], "b": [(5.0, 0.3)]})
    assert (
        alone is not None and alone.value == 1.0 and math.isnan(alone.low) and math.isnan(alone.high) and alone.n == 3
    )
    two = estimate_slope({"a": [(1.0, 0.0), (2.0, 1.0)], "b": [(1.0, 0.0), (2.0, 0.5)]})
    assert two is not None and (two.value, two.n) == (0.75, 4) and two.low < 0.5 and two.high == pytest.approx(1.0)


def test_a_difference_is_a_weighted_sum_with_its_pairs_and_dialogues():
    first = {"a": [0.5, -0.5], "b": [1.0], "e": []}
    second = {"b": [0.2], "c": [0.4, 0.4]}
    found = compare_paired([(0.75, first), (0.25, second)])
    assert found is not None
    assert found.value == pytest.approx(0.75 * 1.0 / 3 + 0.25 * 1.0 / 3) and (found.pairs, found.dialogues) == (6, 3)
    assert (found.low, found.high) == mean_interval([(0.75, first), (0.25, second)], (-1.0, 1.0))
    assert (
        compare_paired([(1.0, {"a": []})]) is None
        and compare_paired([(0.5, first), (0.5, {})]) is None
        and compare_paired([]) is None
    )
    with pytest.raises(AttributeError):
        found.p = 0.0  # type: ignore[misc]
    alone = compare_paired([(1.0, {"a": [0.5]})])
    assert alone is not None and (alone.value, alone.low, alone.high, alone.p) == (0.5, None, None, 1.0)


def test_small_differences_that_all_say_the_same_are_significant_however_wide_the_scale():
    found = compare_paired([(1.0, {str(at): [0.1] for at in range(20)})])
    assert found is not None and found.p < 1e-3 and found.low is not None and 0.05 < found.low < 0.1


def test_two_runs_that_never_differ_are_not_certain_to_be_alike():
    found = compare_paired([(1.0, {str(at): [0.0] for at in range(20)})])
    assert found is not None and found.p == pytest.approx(1.0) and found.low is not None and found.high is not None
    assert found.low == pytest.approx(-found.high) and 0.05 < found.high < 0.15


@pytest.mark.parametrize("dialogues", [1, 2, 4, 5])
def test_few_dialogues_that_all_say_the_same_are_not_significant(dialogues: int):
    found = compare_paired([(1.0, {str(at): [0.3] for at in range(dialogues)})])
    assert found is not None and found.p > 0.05


def test_holm_steps_down_and_never_falls():
    assert holm_adjust([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm_adjust([0.5, 0.6]) == [1.0, 1.0] and holm_adjust([]) == [] and holm_adjust([0.2]) == [0.2]
    assert holm_adjust([0.04, 0.01, 0.01, 0.9]) == pytest.approx([0.08, 0.04, 0.04, 0.9])


def verdict(metric: str, *values: float | None, variant: str = "repeat {}") -> Verdict:
    behind = tuple(Verdict("s", 0, metric, value, variant=variant.format(at + 1)) for at, value in enumerate(values))
    return Verdict("s", 0, metric, 0.5, merged_from=behind)


def test_how_far_a_judge_agrees_with_itself():
    verdicts = [verdict("x", 0.2, 0.4, 0.6), verdict("x", 0.5, None, 0.7), verdict("x", 0.9), verdict("y", 0.1)]
    (table,) = build_repeats_tables({"run": verdicts}, ["x", "y"], 100.0, 2)
    assert (
        [row.name for row in table.rows] == ["x"]
        and table.rows[0].kind == "part"
        and table.kind == "mixed"
        and table.digits == 2
    )
    cells = {name: (cell.value, cell.scored, cell.expected) for name, cell in table.rows[0].cells.items()}
    deviation = 100 * math.sqrt((0.04 + 0.02) / 2)
    assert cells["mean"] == (pytest.approx(48.0), 2, 2) and cells["standard deviation"] == (
        pytest.approx(deviation),
        2,
        2,
    )
    assert cells["variation"] == (pytest.approx(100 * deviation / 48), 2, 2)
    assert cells["items"] == (2.0, 2, 2) and cells["repeats"] == (2.5, 2, 2)
    odd = [verdict("x", 0.1, 0.2, 1.0), verdict("x", 0.3, 0.4), verdict("x", 0.5, 0.55)]
    told = next(build_repeats_tables({"run": odd}, ["x"], 100.0, 2)).rows[0].cells
    assert (told["mean"].value, told["repeats"].value) == (pytest.approx(305 / 7), pytest.approx(7 / 3))
    both = next(build_repeats_tables({"one": verdicts, "two": verdicts}, ["x"], 100.0, 2))
    assert [row.name for row in both.rows] == ["one: x", "two: x"]


def test_orders_and_raters_are_questions_of_their_own():
    orders = Verdict(
        "s", 0, "x", 0.5,
        merged_from=tuple(
            Verdict("s", 0, "x", value, variant=variant)
            for value, variant in zip((0.0, 0.5, 1.0, 1.0), ("AB, repeat 1", "AB, repeat 2", "BA, repeat 1", "BA, repeat 12"), strict=True)
        ),
    )  # fmt: skip
    (table,) = build_repeats_tables({"run": [orders]}, ["x"], 100.0, 2)
    assert table.rows[0].cells["items"].value == 2.0 and table.rows[0].cells["repeats"].value == 2.0
    assert table.rows[0].cells["standard deviation"].value == pytest.approx(25.0)
    raters = verdict("x", 0.1, 0.9, variant="rater {}")
    assert list(build_repeats_tables({"run": [raters]}, ["x"], 100.0, 2)) == [], "two raters were each asked once"
    nothing = next(build_repeats_tables({"run": [verdict("x", 0.0, 0.0)]}, ["x"], 100.0, 2))
    assert nothing.rows[0].cells["variation"].value is None and nothing.rows[0].cells["mean"].value == 0.0


def test_a_relative_change_excludes_zero_where_the_difference_does():
    chance = random.Random(3)
    found = 0
    for shift in (0.0, 0.05, 0.1, 0.15, 0.2, 0.3):
        pairs = {
            str(at): [(min(1.0, base + shift * chance.random() * 2), base) for base in [0.5 * chance.random()] * 2]
            for at in range(12)
        }
        relative, difference = compare_relative([(1.0, pairs)]), compare_pairs([(1.0, pairs)])
        assert relative is not None and difference is not None and difference.low is not None
        assert relative.low is not None and relative.high is not None
        assert relative.low <= relative.value <= relative.high
        assert (relative.low > 0) == (difference.low > 0)
        found += relative.low > 0
    assert 0 < found < 6


def test_a_relative_change_has_no_value_above_zero_and_no_interval_for_one_dialogue():
    assert compare_relative([(1.0, {"a": [(1.0, 0.0)], "b": [(0.5, 0.0)]})]) is None
    assert compare_relative([(1.0, {})]) is None and compare_relative([]) is None
    alone = compare_relative([(1.0, {"a": [(0.6, 0.5)]})])
    assert alone is not None and alone.value == pytest.approx(0.2) and alone.low is None
    same = compare_relative([(1.0, {str(at): [(0.8, 0.8)] for at in range(20)})])
    assert same is not None and same.value == 0 and same.low is not None and same.low < 0, "twenty show no more"
    weighted = compare_relative([(0.5, {str(at): [(0.6, 0.3)] for at in range(4)}), (0.5, {"0": [(0.2, 0.1)]})])
    assert weighted is not None and weighted.value == pytest.approx(1.0)
