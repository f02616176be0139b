"""Agreement and correction: against SciPy, published worked examples, and studies whose truth is known."""

import importlib.util
import math
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.stats import agreement as found
from weft.stats.prediction_powered import (
    WeightedMean,
    estimate_powered_mean,
    estimate_powered_sum,
    subtract_bias,
    weigh_rated_items,
)
from weft.stats.student_t import student_t_quantile, two_sided_p

scipy: Any = pytest.importorskip("scipy.stats", reason="SciPy is what these are held to: pip install -e .[dev]")

TENTHS = st.integers(0, 10).map(lambda one: one / 10)
PAIRS = st.lists(st.tuples(TENTHS, TENTHS), min_size=2, max_size=40) | st.lists(
    st.tuples(*[st.floats(-1e3, 1e3).map(lambda one: round(one, 6))] * 2), min_size=2, max_size=40
)
NONE = None
OBSERVERS = {  # Krippendorff 2011, section D: four observers, twelve units, some missing
    "A": (1, 2, 3, 3, 2, 1, 4, 1, 2, NONE, NONE, NONE),
    "B": (1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NONE, 3),
    "C": (NONE, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NONE),
    "D": (1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NONE),
}


def units_of(observers: dict[str, Any]) -> list[dict[str, float]]:
    columns = zip(*observers.values(), strict=True)
    return [{name: one for name, one in zip(observers, column, strict=True) if one is not None} for column in columns]


@settings(max_examples=150, deadline=None)
@given(PAIRS)
def test_correlations_are_those_of_scipy_ties_included(pairs: list[tuple[float, float]]):
    x, y = [a for a, _ in pairs], [b for _, b in pairs]
    flat = len(set(x)) == 1 or len(set(y)) == 1
    for ours, theirs in (
        (found.pearson, scipy.pearsonr),
        (found.spearman, scipy.spearmanr),
        (found.kendall, scipy.kendalltau),
    ):
        if flat:
            assert ours(x, y) is None
        else:
            assert ours(x, y) == pytest.approx(float(theirs(x, y)[0]), abs=1e-8)


def test_what_is_undefined_is_none():
    assert found.pearson([1.0], [1.0]) is None and found.kendall([], []) is None and found.mae([], []) is None
    assert (
        found.spearman([1.0, 2.0], [3.0, 3.0]) is None
        and found.coefficient_of_variation([1.0]) is None
        and found.coefficient_of_variation([-1.0, 1.0]) is None
    )
    nothing = found.measure_agreement({})
    assert nothing.n == 0 and nothing.pearson.value is None and nothing.bias.value is None
    one = found.measure_agreement({"a": [(0.5, 0.4), (0.7, 0.9)]})
    assert one.clusters == 1 and one.mae.value == pytest.approx(0.15) and one.mae.low is None


def test_agreement_has_the_values_and_intervals_by_dialogue():
    """Ten copies of an item in its dialogue are one observation: the interval is that of the dialogues."""
    chance = random.Random(3)
    singles = {str(at): [(truth + chance.gauss(0.1, 0.2), truth)] for at in range(150) for truth in [chance.random()]}
    copied = {name: some * 10 for name, some in singles.items()}
    one, ten = found.measure_agreement(singles), found.measure_agreement(copied)
    assert (one.n, ten.n, ten.clusters) == (150, 1500, 150)
    for name in ("pearson", "spearman", "kendall", "mae", "bias"):
        mine, theirs = getattr(one, name), getattr(ten, name)
        assert mine.value == pytest.approx(theirs.value, abs=0.01) and mine.low < mine.value < mine.high
        assert (mine.low, mine.high) == pytest.approx((theirs.low, theirs.high), abs=0.03)
    theirs = scipy.pearsonr(*zip(*(some[0] for some in singles.values()), strict=True)).confidence_interval()
    assert (one.pearson.low, one.pearson.high) == pytest.approx((theirs.low, theirs.high), abs=0.04)
    assert one.bias.low is not None and one.bias.low > 0.05


def test_draws_that_are_all_the_same_give_no_interval():
    """A judge that agrees with people each time may not do so the next time."""
    perfect = found.measure_agreement({str(at): [(at / 10, at / 10)] for at in range(11)})
    for name in ("pearson", "spearman", "kendall"):
        estimate = getattr(perfect, name)
        assert estimate.value == pytest.approx(1.0) and estimate.low is None and estimate.high is None
    alpha = found.estimate_alpha({str(at): [{"a": at % 3, "b": at % 3}] for at in range(9)}, "nominal")
    assert alpha.value == 1.0 and alpha.low is None


@pytest.mark.parametrize(
    ("level", "printed"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849), ("ratio", 0.797)]
)
def test_alpha_of_four_observers_is_as_krippendorff_prints_it(level: Any, printed: float):
    assert found.krippendorff_alpha(units_of(OBSERVERS), level) == pytest.approx(printed, abs=0.0005)


def test_alpha_of_two_observers_is_as_krippendorff_prints_it():
    binary = {"Meg": (0, 1, 0, 0, 0, 0, 0, 0, 1, 0), "Owen": (1, 1, 1, 0, 0, 1, 0, 0, 0, 0)}
    letters = {"Ben": "aabbdcccedda", "Gerry": "babbbccceddd"}
    named = {name: tuple("abcde".index(letter) for letter in word) for name, word in letters.items()}
    assert found.krippendorff_alpha(units_of(binary), "nominal") == pytest.approx(0.095, abs=0.0005)
    assert found.krippendorff_alpha(units_of(named), "nominal") == pytest.approx(0.692, abs=0.0005)


def test_alpha_without_anything_to_compare_is_none():
    assert found.krippendorff_alpha([{"a": 1.0}, {"b": 2.0}], "interval") is None
    assert found.krippendorff_alpha([{"a": 1.0, "b": 1.0}, {"a": 1.0, "b": 1.0}], "ordinal") is None


def test_alpha_has_an_interval_by_dialogue():
    chance = random.Random(5)
    units = {
        str(at): [
            {rater: float(max(0, round(truth + chance.gauss(0, 0.7)))) for rater in "abc"}
            for truth in [chance.randint(1, 5)] * 2
        ]
        for at in range(60)
    }
    for level in ("nominal", "ordinal", "interval", "ratio"):
        whole = found.estimate_alpha(units, level)
        assert whole.value == pytest.approx(
            found.krippendorff_alpha([unit for some in units.values() for unit in some], level) or 0.0
        )
        assert (
            whole.low is not None
            and whole.high is not None
            and whole.value is not None
            and whole.low < whole.value < whole.high
        )


def test_a_reliability_curve_has_the_judges_mean_in_every_bin_that_has_items():
    pairs = {"a": [(0.2, 0.0), (0.4, 0.1)], "b": [(0.4, 0.05), (0.9, 1.0)], "c": [(0.8, 0.95)]}
    low, high = found.reliability_curve(pairs, 4)
    assert (low.reference, low.judge, low.n) == (pytest.approx(0.05), pytest.approx(1 / 3), 3) and low.low is not None
    assert (high.reference, high.judge, high.n) == (pytest.approx(0.975), pytest.approx(0.85), 2)


def test_variation_is_deviation_over_mean():
    assert found.coefficient_of_variation([1.0, 2.0, 3.0]) == pytest.approx(0.5)


@pytest.mark.parametrize("freedom", [1, 1.7, 2, 5, 30, 1000, 123_456.7])
def test_students_t_is_that_of_scipy(freedom: float):
    for share in (0.5, 0.9, 0.95, 0.999):
        assert student_t_quantile(freedom, share) == pytest.approx(scipy.t.ppf((1 + share) / 2, freedom), rel=1e-7)
    for t in (0.0, 1e-6, 0.3, 1.0, 1.96, 4.0, 30.0):
        assert two_sided_p(t, freedom) == pytest.approx(2 * scipy.t.sf(t, freedom), rel=1e-7)


def test_with_one_item_a_dialogue_and_a_fixed_weight_it_is_the_published_formula():
    chance = random.Random(7)
    truth = [chance.random() for _ in range(400)]
    judge = [0.2 + 0.7 * one + chance.gauss(0, 0.1) for one in truth]
    judged = {str(at): [one] for at, one in enumerate(judge)}
    pairs = {str(at): [(judge[at], truth[at])] for at in range(80)}
    one = estimate_powered_mean(judged, pairs, weight=1.0)
    assert one is not None and (one.n, one.total, one.clusters, one.weight) == (80, 400, 80, 1.0)
    assert one.value == pytest.approx(sum(judge) / 400 + sum(truth[at] - judge[at] for at in range(80)) / 80)
    assert one.judge_only.value == pytest.approx(sum(judge) / 400) and one.people_only.value == pytest.approx(
        sum(truth[:80]) / 80
    )
    tuned = estimate_powered_mean(judged, pairs)
    assert (
        tuned is not None
        and tuned.low is not None
        and tuned.high is not None
        and one.low is not None
        and one.high is not None
    )
    assert one.people_only.low is not None and one.people_only.high is not None
    assert 0.5 < tuned.weight <= 1 and tuned.high - tuned.low < 0.7 * (one.people_only.high - one.people_only.low)


def test_people_alone_have_students_interval():
    values = [0.1, 0.5, 0.4, 0.9, 0.6, 0.3]
    pairs = {str(at): [(0.5, one)] for at, one in enumerate(values)}
    one = estimate_powered_mean(
        {**{str(at): [0.5] for at in range(6)}, **{str(at): [0.5] for at in range(6, 2000)}}, pairs
    )
    theirs = scipy.ttest_1samp(values, 0.0).confidence_interval()
    assert one is not None and one.weight == 0.0  # a judge that always says the same says nothing
    assert one.people_only.low is not None and one.people_only.high is not None
    wider = (one.people_only.high - one.people_only.low) / (theirs.high - theirs.low)
    assert one.value == pytest.approx(sum(values) / 6) and 1 <= wider < 1.25


def test_where_people_rated_everything_the_judge_counts_for_nothing():
    pairs = {str(at): [(0.9, at / 10), (0.1, at / 20)] for at in range(10)}
    one = estimate_powered_mean({name: [judge for judge, _ in some] for name, some in pairs.items()}, pairs)
    assert one is not None and one.weight == 0.0 and one.value == one.people_only.value == pytest.approx(0.3375)


def test_what_a_rule_decided_stands_for_itself():
    """Half of the items are zeros that nobody needs to rate: the rest are what people say of them."""
    judged = {str(at): [0.9] for at in range(40)}
    pairs = {str(at): [(0.9, 0.5)] for at in range(10)}
    one = estimate_powered_mean(judged, pairs, sure={str(at): [0.0] for at in range(100, 140)})
    assert (
        one is not None
        and one.value == pytest.approx(0.25)
        and one.judge_only.value == pytest.approx(0.45)
        and one.total == 40
    )


def test_nothing_is_said_of_a_part_that_nobody_rated():
    judged = {"a": [0.5], "b": [0.6]}
    assert estimate_powered_mean(judged, {}) is None
    assert (
        estimate_powered_sum(
            [WeightedMean(0.5, judged, {"a": [(0.5, 0.4)], "b": [(0.6, 0.7)]}), WeightedMean(0.5, judged, {})]
        )
        is None
    )


def test_one_rated_dialogue_has_no_interval():
    one = estimate_powered_mean({str(at): [at / 10] for at in range(10)}, {"3": [(0.3, 0.4), (0.3, 0.2)]})
    assert one is not None and one.value == pytest.approx(0.3) and one.low is None and one.high is None


def test_what_was_drawn_from_dialogues_of_one_size_stands_for_all_of_that_size():
    """One question of each dialogue: those of long dialogues stand for more."""
    sizes = {str(at): 2 if at < 20 else 6 for at in range(40)}
    found_counts = weigh_rated_items(sizes, dict.fromkeys(sizes, 1))
    assert found_counts == {name: float(size) for name, size in sizes.items()}
    assert set(weigh_rated_items(sizes, {"0": 2, "39": 6}).values()) == {20.0}, "too few to tell sizes apart"
    judged = {name: [0.5] * size for name, size in sizes.items()}
    pairs = {name: [(0.5, 0.2 if size == 2 else 0.6)] for name, size in sizes.items()}
    one = estimate_powered_mean(judged, pairs)
    assert one is not None and one.value == pytest.approx(0.4)
    even = estimate_powered_sum([WeightedMean(1.0, judged, pairs, item_weights=found_counts)])
    assert even is not None and even.value == pytest.approx((40 * 0.2 + 120 * 0.6) / 160)


def test_a_card_takes_its_bias_off_and_widens_the_interval():
    value, low, high = subtract_bias(0.7, 0.66, 0.75, 0.1, 0.07, 0.14)
    assert (
        value == pytest.approx(0.6)
        and low == pytest.approx(0.6 - math.hypot(0.04, 0.04))
        and high == pytest.approx(0.6 + math.hypot(0.05, 0.03))
    )
    assert subtract_bias(0.7, None, None, 0.1, 0.07, 0.14)[1:] == (None, None)


def test_near_full_marks_corrected_intervals_hold_too():
    """Judge and people nearly always give full marks, so that often no annotation shows any variance."""
    chance = random.Random(11)
    studies = 300
    covered = 0
    for _ in range(studies):
        truth = [float(chance.random() < 0.98) for _ in range(100)]
        judge = [one if chance.random() < 0.97 else 1 - one for one in truth]
        judged = {str(at): [one] for at, one in enumerate(judge)}
        one = estimate_powered_mean(judged, {str(at): [(judge[at], truth[at])] for at in range(20)})
        assert one is not None and one.low is not None and one.high is not None and one.low < one.high
        covered += one.low <= 0.98 <= one.high
    assert covered / studies > 0.93


@pytest.mark.parametrize(
    "kind", ["30 questions", "20 dialogues", "one each of 60 dialogues", "20 dialogues, two means"]
)
def test_corrected_intervals_hold_what_they_promise_where_the_plain_ones_do_not(kind: str):
    """300 studies: 95% coverage is between 90.5% and 98.5% but in one of a thousand such tests."""
    path = Path(__file__).parents[1] / "bench" / "powered.py"
    spec = importlib.util.spec_from_file_location("simulated", path)
    assert spec is not None and spec.loader is not None
    simulated: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(simulated)
    told = simulated.coverage(300, seed=1, dialogues=80, **simulated.KINDS[kind])
    assert 0.905 <= told["corrected"][0] <= 0.985 and 0.905 <= told["people"][0] <= 0.985
    assert told["plain"][0] < 0.8 and told["corrected"][1] < told["people"][1]
    assert abs(told["error"][0]) < 0.01
