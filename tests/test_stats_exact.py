"""The arithmetic of intervals, paired differences and repeats, against second implementations and cases that can be
worked out by hand."""

import itertools
import math

import numpy as np
import pytest

from weft.stats import intervals, paired
from weft.stats.intervals import Estimate, bootstrap_interval, bootstrap_weights, estimate_mean, estimate_slope
from weft.stats.paired import compare_paired, holm_adjust, permutation_p_value
from weft.stats.repeats import build_repeats_tables
from weft.types import Verdict


def drawn_again(clusters: int, draws: int, seed: int) -> list[list[int]]:
    """Which clusters each draw has, made one by one."""
    chance = np.random.default_rng(seed)
    return [list(chance.integers(0, clusters, size=clusters)) for _ in range(draws)]


def middle(values: list[float]) -> tuple[float, float]:
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)


CLUSTERS = {"a": [1.0, 0.0, 1.0], "b": [0.5], "c": [0.25, 0.75], "d": [1.0], "e": [0.0, 0.0]}


def test_a_mean_and_its_interval_are_those_of_drawing_whole_dialogues():
    found = estimate_mean(CLUSTERS)
    names = list(CLUSTERS)
    means = []
    for draw in drawn_again(5, 2000, 0):
        values = [value for at in draw for value in CLUSTERS[names[at]]]
        means.append(sum(values) / len(values))
    assert (found.value, found.n) == (pytest.approx(4.5 / 9), 9)
    assert (found.low, found.high) == pytest.approx(middle(means), abs=1e-12)
    assert estimate_mean(CLUSTERS, draws=50, seed=3) != estimate_mean(CLUSTERS, draws=50, seed=4)


def test_the_usual_draws_and_seed_are_two_thousand_and_zero():
    many = {str(n): list(np.random.default_rng(n).random(n % 4 + 1)) for n in range(40)}
    assert estimate_mean(many) == estimate_mean(many, draws=2000, seed=0) != estimate_mean(many, draws=2001, seed=0)
    assert estimate_mean(many) != estimate_mean(many, draws=2000, seed=1)
    assert (
        bootstrap_interval([(1.0, many)])
        == bootstrap_interval([(1.0, many)], draws=2000, seed=0)
        != bootstrap_interval([(1.0, many)], draws=2000, seed=1)
    )
    points = {name: [(float(at), value) for at, value in enumerate(values)] for name, values in many.items()}
    assert (
        estimate_slope(points)
        == estimate_slope(points, draws=2000, seed=0)
        != estimate_slope(points, draws=2000, seed=1)
    )


def test_one_dialogue_has_no_interval_and_two_have():
    assert (
        estimate_mean({"a": [0.0, 1.0]}) == Estimate(0.5, 0.5, 0.5, 2)
        and bootstrap_interval([(1.0, {"a": [0.0, 1.0]})]) is None
    )
    assert bootstrap_interval([(1.0, {"a": [0.0, 1.0], "b": []})]) is None, "a dialogue without a value is none"
    assert bootstrap_interval([(1.0, {"a": [0.0], "b": [1.0]})]) == (0.0, 1.0)
    assert str(Estimate(0.5, 0.25, 1.0, 2)) == "0.500 [0.250, 1.000]"
    with pytest.raises(AttributeError):
        estimate_mean({"a": [0.0]}).value = 1.0  # type: ignore[misc]


def test_a_weighted_sum_of_means_is_drawn_from_the_same_dialogues():
    other = {"a": [0.2], "c": [0.9, 0.1], "f": [0.4]}
    names = ["a", "b", "c", "d", "e", "f"]
    sums = []
    for draw in drawn_again(6, 300, 5):
        one = [value for at in draw for value in CLUSTERS.get(names[at], [])]
        two = [value for at in draw for value in other.get(names[at], [])]
        if one and two:
            sums.append(0.7 * sum(one) / len(one) + 0.3 * sum(two) / len(two))
    assert bootstrap_interval([(0.7, CLUSTERS), (0.3, other)], draws=300, seed=5) == pytest.approx(
        middle(sums), abs=1e-12
    )


def test_what_is_never_drawn_together_has_no_interval(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(
        intervals, "bootstrap_weights", lambda clusters, draws, seed: np.array([[2, 0], [0, 2]], np.uint8)
    )
    assert bootstrap_interval([(0.5, {"a": [1.0]}), (0.5, {"b": [1.0]})]) is None


@pytest.mark.parametrize("dialogues", [511, 512, 513, 700])
@pytest.mark.parametrize("room", [1, 1000, 2_000_000])
def test_many_dialogues_are_worked_through_in_pieces_with_the_same_result(
    dialogues: int, room: int, monkeypatch: pytest.MonkeyPatch
):
    chance = np.random.default_rng(dialogues)
    clusters = {str(n): list(chance.random(n % 3 + 1)) for n in range(dialogues)}
    times = bootstrap_weights(dialogues, 300, 1)
    sums, counts = (np.array([how(values) for values in clusters.values()], dtype=float) for how in (sum, len))
    means = [float(row @ sums / (row @ counts)) for row in times.astype(float)]
    monkeypatch.setattr(intervals, "CHUNK_NUMBERS", room)
    monkeypatch.setattr(intervals, "MAX_CACHED_CLUSTERS", 512)
    assert bootstrap_interval([(1.0, clusters)], draws=300, seed=1) == pytest.approx(middle(means), abs=1e-12)
    first, second = np.array([[1.0, 2.0]] * dialogues), np.array([[3.0]] * dialogues)
    one, two = intervals._resample_sums(300, 1, first, second)
    assert one.shape == (300, 2) and two.shape == (300, 1)
    assert np.allclose(one, [[dialogues, 2 * dialogues]]) and np.allclose(two, 3 * dialogues)


def test_the_draws_of_many_dialogues_are_not_kept(monkeypatch: pytest.MonkeyPatch):
    """A hundred thousand dialogues would keep two hundred megabytes of them."""
    assert (intervals.DRAWS, intervals.MAX_CACHED_CLUSTERS, intervals.CHUNK_NUMBERS) == (2000, 4096, 500_000)
    monkeypatch.setattr(intervals, "bootstrap_weights", lambda *_: pytest.fail("they are kept"))
    many = {str(at): [at % 2 / 1] for at in range(4097)}
    low, high = bootstrap_interval([(1.0, many)], draws=50) or (0.0, 0.0)
    assert 0.45 < low < 0.5 < high < 0.55


def test_weights_tell_how_often_each_was_drawn():
    made = bootstrap_weights(4, 100, 9)
    for row, draw in zip(made, drawn_again(4, 100, 9), strict=True):
        assert [int(count) for count in row] == [draw.count(at) for at in range(4)]


def test_a_slope_is_least_squares_within_dialogues():
    points = {"a": [(1.0, 0.9), (2.0, 0.7), (3.0, 0.2)], "b": [(1.0, 0.1), (4.0, 0.5)], "c": [(2.0, 1.0)], "d": []}
    found = estimate_slope(points, draws=400, seed=2)
    products, squares = [], []
    for pairs in [points["a"], points["b"], points["c"]]:
        x0, y0 = np.mean([x for x, _ in pairs]), np.mean([y for _, y in pairs])
        products.append(sum((x - x0) * (y - y0) for x, y in pairs))
        squares.append(sum((x - x0) ** 2 for x, _ in pairs))
    ratios = [
        sum(products[at] for at in draw) / sum(squares[at] for at in draw)
        for draw in drawn_again(3, 400, 2)
        if sum(squares[at] for at in draw) > 0
    ]
    assert found is not None and found.value == pytest.approx(sum(products) / sum(squares)) and found.n == 6
    assert (found.low, found.high) == pytest.approx(middle(ratios))


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
    assert two is not None and (two.value, two.low, two.high, two.n) == (0.75, 0.5, 1.0, 4)


@pytest.mark.parametrize("count", [1, 2, 5, 13, 14])
def test_with_few_dialogues_every_way_round_is_tried(count: int):
    chance = np.random.default_rng(count)
    values = list(chance.normal(0.3, 1, count))
    sums = [
        abs(sum(s * v for s, v in zip(signs, values, strict=True)))
        for signs in itertools.product((-1, 1), repeat=count)
    ]
    assert permutation_p_value(values) == pytest.approx(sum(one >= abs(sum(values)) - 1e-9 for one in sums) / 2**count)


def test_a_difference_as_large_as_the_one_found_counts_though_it_is_rounded():
    assert permutation_p_value([0.1, 0.2, 0.3]) == 0.25, "both all-plus and all-minus of eight"
    assert (
        permutation_p_value([0.0, 0.0]) == 1.0 and permutation_p_value([]) == 1.0 and permutation_p_value([0.5]) == 1.0
    )
    assert permutation_p_value([0.0, 0.1, 0.2, 0.3, 0.0]) == 0.25, "what does not differ says nothing"


def test_with_many_dialogues_signs_are_drawn_and_p_is_never_zero():
    values = list(np.random.default_rng(1).normal(0.4, 1, 15))
    chance = np.random.default_rng(0)
    as_far = 0
    for count in [500] * 19 + [499]:
        signs = chance.integers(0, 2, size=(count, 15), dtype=np.int8).astype(float) * 2 - 1
        as_far += int((np.abs(signs @ np.array(values)) >= abs(sum(values)) * (1 - 1e-9)).sum())
    assert permutation_p_value(values) == (as_far + 1) / 10_000 == permutation_p_value(values, draws=9999, seed=0)
    assert permutation_p_value([1.0] * 40) == 1 / 10_000
    assert permutation_p_value([1.0] * 40, draws=99) == 1 / 100
    assert permutation_p_value(values, seed=1) != permutation_p_value(values)
    assert permutation_p_value([1.0, -1.0] * 8) == 1.0, "every draw is as far from nothing as nothing: each counts once"
    assert permutation_p_value([1.0, -1.0] * 8, draws=500) == 1.0 == permutation_p_value([1.0, -1.0] * 8, draws=501)
    assert (paired.MAX_EXACT, paired.DRAWS, paired.CHUNK_DRAWS) == (14, 9999, 500)


def test_a_difference_is_a_weighted_sum_with_its_pairs_and_dialogues():
    first = {"a": [0.5, -0.5], "b": [1.0], "e": []}
    second = {"b": [0.2], "c": [0.4, 0.4]}
    found = compare_paired([(0.75, first), (0.25, second)])
    assert found is not None
    assert found.value == pytest.approx(0.75 * 1.0 / 3 + 0.25 * 1.0 / 3) and (found.pairs, found.dialogues) == (6, 3)
    shares = [0.0, 0.75 / 3 + 0.25 * 0.2 / 3, 0.25 * 0.8 / 3]
    assert found.p == permutation_p_value(shares) and (found.low, found.high) == bootstrap_interval(
        [(0.75, first), (0.25, second)]
    )
    assert (
        compare_paired([(1.0, {"a": []})]) is None
        and compare_paired([(0.5, first), (0.5, {})]) is None
        and compare_paired([]) is None
    )
    with pytest.raises(AttributeError):
        found.p = 0.0  # type: ignore[misc]
    alone = compare_paired([(1.0, {"a": [0.5]})])
    assert alone is not None and (alone.value, alone.low, alone.high, alone.p) == (0.5, None, None, 1.0)
    many = {str(n): [value] for n, value in enumerate(np.random.default_rng(3).normal(0.2, 1, 30))}
    one, other = compare_paired([(1.0, many)], draws=99, seed=4), compare_paired([(1.0, many)], draws=99, seed=5)
    assert one is not None and other is not None and (one.low, one.p) != (other.low, other.p)
    assert one.p == permutation_p_value([values[0] / 30 for values in many.values()], draws=99, seed=4)
    assert compare_paired([(1.0, many)]) == compare_paired([(1.0, many)], draws=9999, seed=0)


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
    assert cells["mean"] == (pytest.approx(48.0), 2, 2) and cells["standard deviation"] == (round(deviation, 4), 2, 2)
    assert cells["variation"] == (round(100 * deviation / 48, 2), 2, 2)
    assert cells["items"] == (2.0, 2, 2) and cells["repeats"] == (2.5, 2, 2)
    odd = [verdict("x", 0.1, 0.2, 1.0), verdict("x", 0.3, 0.4), verdict("x", 0.5, 0.55)]
    told = next(build_repeats_tables({"run": odd}, ["x"], 100.0, 2)).rows[0].cells
    assert (told["mean"].value, told["repeats"].value) == (43.5714, 2.33)
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
