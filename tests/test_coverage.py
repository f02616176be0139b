"""What an interval promises: it covers the truth, has a width, stays on its scale, and agrees with its p-value."""

import importlib.util
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.stats.intervals import Clusters, estimate_mean, mean_interval
from weft.stats.paired import compare_paired

PATH = Path(__file__).parents[1] / "bench" / "coverage.py"
SPEC = importlib.util.spec_from_file_location("coverage_study", PATH)
assert SPEC is not None and SPEC.loader is not None
STUDY: Any = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(STUDY)
STUDIES = 300

SCORES = st.sampled_from([0.0, 0.5, 1.0]) | st.floats(0, 1) | st.just(1.0)
DIALOGUES = st.lists(st.lists(SCORES, min_size=1, max_size=6), min_size=2, max_size=40)


@pytest.mark.parametrize("dialogues", [10, 20])
@pytest.mark.parametrize("name", [name for name in STUDY.CASES if name not in STUDY.LIMITS])
def test_95_percent_intervals_cover(name: str, dialogues: int):
    """The target, less three standard errors of the simulation."""
    target = STUDY.target(dialogues)
    slack = 3 * math.sqrt(target * (1 - target) / STUDIES)
    found = STUDY.measure(STUDY.CASES[name], dialogues, STUDIES, seed=1, with_bootstrap=False)
    assert found.covered >= target - slack


@pytest.mark.parametrize(
    "name", ["share 0.98", "5 turns a dialogue, 0.98", "0 to 10, 95% at 10", "pairs, 0.98 and 0.9"]
)
def test_the_percentile_bootstrap_would_not(name: str):
    found = STUDY.measure(STUDY.CASES[name], 20, 100, seed=1)
    assert found.bootstrap < 0.9 < found.covered


def named(dialogues: list[list[float]]) -> Clusters:
    return {str(at): values for at, values in enumerate(dialogues)}


@settings(max_examples=300, deadline=None)
@given(DIALOGUES, st.sampled_from([1.0, 10.0, 100.0]))
def test_an_interval_has_a_width_contains_the_estimate_and_stays_on_the_scale(
    dialogues: list[list[float]], full: float
):
    found = estimate_mean(named([[full * value for value in values] for values in dialogues]), (0.0, full))
    tolerance = 1e-9 * full
    assert 0 <= found.low <= found.value + tolerance and found.value - tolerance <= found.high <= full
    assert found.high - found.low > tolerance


@settings(max_examples=300, deadline=None)
@given(DIALOGUES, DIALOGUES, st.floats(0.05, 0.95))
def test_so_has_that_of_a_weighted_sum(first: list[list[float]], second: list[list[float]], weight: float):
    low, high = mean_interval([(weight, named(first)), (1 - weight, named(second))]) or (0.0, 0.0)
    means = [sum(map(sum, some)) / sum(map(len, some)) for some in (first, second)]
    value = weight * means[0] + (1 - weight) * means[1]
    assert 0 <= low <= value + 1e-9 and value - 1e-9 <= high <= 1 + 1e-9 and high - low > 1e-9


@settings(max_examples=500, deadline=None)
@given(DIALOGUES, DIALOGUES)
def test_p_is_under_5_percent_exactly_where_zero_is_outside_of_the_interval(
    first: list[list[float]], second: list[list[float]]
):
    differences = [
        [a - b for a, b in zip(mine, others, strict=False)] for mine, others in zip(first, second, strict=False)
    ]
    found = compare_paired([(1.0, named(differences))])
    assert found is not None and found.low is not None and found.high is not None
    assert (found.p < 0.05) == (not found.low <= 0 <= found.high) or found.p == pytest.approx(0.05, abs=1e-9)
    swapped = compare_paired([(1.0, named([[-value for value in values] for values in differences]))])
    assert swapped is not None and swapped.low is not None and swapped.high is not None
    assert (swapped.p, -swapped.high, -swapped.low) == pytest.approx((found.p, found.low, found.high), abs=1e-9)


@settings(max_examples=100, deadline=None)
@given(DIALOGUES, st.integers(2, 10))
def test_copies_of_a_dialogues_turns_say_nothing_new(dialogues: list[list[float]], copies: int):
    once = mean_interval([(1.0, named(dialogues))])
    assert once == pytest.approx(mean_interval([(1.0, named([values * copies for values in dialogues]))]), abs=1e-9)


@settings(max_examples=100, deadline=None)
@given(DIALOGUES)
def test_the_order_of_dialogues_does_not_matter(dialogues: list[list[float]]):
    assert mean_interval([(1.0, named(dialogues))]) == pytest.approx(
        mean_interval([(1.0, named(dialogues[::-1]))]), abs=1e-9
    )


def page_rows() -> dict[str, list[str]]:
    """The figures of the documentation's table, by case."""
    lines = [line for line in STUDY.PAGE.read_text().splitlines() if line.startswith("|")]
    return {cells[0]: cells[1:] for cells in ([cell.strip() for cell in line[1:-1].split("|")] for line in lines[2:])}


def test_the_documented_table_has_every_case_and_names_what_is_below_the_target():
    rows = page_rows()
    assert list(rows) == list(STUDY.CASES)
    below = [name for name, cells in rows.items() if any("**" in cell for cell in cells)]
    assert set(below) == set(STUDY.LIMITS)


@pytest.mark.parametrize("name", ["share 0.98", "pairs, 0.9 and 0.7", "1 to 12 turns, 0.9", *STUDY.LIMITS])
def test_the_documented_table_is_that_of_todays_rule(name: str):
    cells = [cell.strip("*%") for cell in page_rows()[name][1::2]]
    measured = [STUDY.measure(STUDY.CASES[name], n, 2000, with_bootstrap=False).covered for n in STUDY.DIALOGUES]
    assert [float(cell) for cell in cells] == pytest.approx([100 * share for share in measured], abs=0.11)
