"""Whether 95% intervals hold the true number 95% of the time, in studies whose truth is known.

    python bench/coverage.py [--studies 2000] [--seed 0] [--write]

`--write` puts the table on docs/reference/coverage.md. A study draws n dialogues as a benchmark would have them, and computes the interval. Printed, for each case and n: how
often the percentile bootstrap (2,000 resamples of whole dialogues) has the truth in it, how often weft's rule has, and
how wide both are on average. Aimed at: 93% from 20 dialogues on, 90% with 10. One row is there to show where the rule
ends: differences of which one in twenty is ten times the others."""

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from weft.report.seeds import mean_over_seeds
from weft.stats.intervals import score_sums
from weft.stats.resampling import bootstrap_weights
from weft.types import Cell

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "coverage.md"
TABLE_BEGIN, TABLE_END = "<!-- coverage -->\n", "<!-- end -->\n"
DIALOGUES = (10, 20, 50)
BOOTSTRAP_DRAWS = 2000
TRUTH_DIALOGUES = 400_000
DIFFERENCE = (-1.0, 1.0)
WEAVE_WEIGHTS = (0.4, 0.1, 0.2, 0.3)
Random = np.random.Generator
Interval = tuple[float, float]
Sums = tuple[Any, Any]  # sums and counts: (dialogues, means)


class Case(NamedTuple):
    """How dialogues come about, and the number that is computed from them."""

    draw: Callable[[Random, int], Sums]
    weights: Sequence[float] = (1.0,)
    scale: Interval = (0.0, 1.0)
    runs: int = 1  # of one model with different seeds; the columns of `draw` are the runs


class Coverage(NamedTuple):
    bootstrap: float
    covered: float
    bootstrap_width: float
    width: float


def one_a_dialogue(values: Any) -> Sums:
    return values[:, None], np.ones((len(values), 1))


def single(draw: Callable[[Random, int], Any], scale: Interval = (0.0, 1.0)) -> Case:
    """A number a dialogue."""

    def draw_sums(random: Random, n: int) -> Sums:
        return one_a_dialogue(draw(random, n))

    return Case(draw_sums, scale=scale)


def of_turns(values: Any, lengths: Any) -> Sums:
    """The sums of the first turns of each dialogue, as many as it has."""
    is_turn = cast(Any, np.arange(values.shape[1]) < lengths[:, None])
    return (values * is_turn).sum(axis=1)[:, None], lengths[:, None].astype(float)


def right_answers(random: Random, share: float | Any, dialogues: int, turns: int, correlation: float) -> Any:
    """Right and wrong answers, with some correlation within a dialogue."""
    strength = 1 / correlation - 1
    ease = random.beta(share * strength, (1 - share) * strength, dialogues)
    return (random.random((dialogues, turns)) < ease[:, None]).astype(float)


def share(right: float) -> Case:
    return single(lambda random, n: (random.random(n) < right).astype(float))


def turns(right: float, fewest: int, most: int, correlation: float = 0.3) -> Case:
    def draw(random: Random, n: int) -> Sums:
        return of_turns(right_answers(random, right, n, most, correlation), random.integers(fewest, most + 1, n))

    return Case(draw)


def harder_if_longer(lengths: Callable[[Random, int], Any], most: int, slope: float) -> Case:
    def draw(random: Random, n: int) -> Sums:
        length = lengths(random, n)
        right = np.clip(0.95 - slope * length, 0.05, 1)
        return of_turns(right_answers(random, right, n, most, 0.25), length)

    return Case(draw)


def mostly_full(random: Random, full: float, size: Any) -> Any:
    """Scores from 0 to 10, as shares, most of them at 10."""
    is_full = cast(Any, random.random(size) < full)
    lower = cast(Any, random.integers(0, 10, size))
    return np.where(is_full, 1.0, lower / 10)


def weave_average(random: Random, n: int) -> Sums:
    """Four metrics of 1 to 6 turns; a part of the dialogues has the last one."""
    level = random.beta(6, 2, n)[:, None, None]
    scores = np.round(10 * np.clip(level + random.normal(0, 0.15, (n, 6, 4)), 0, 1)) / 10
    is_turn = (np.arange(6) < random.integers(1, 7, n)[:, None])[:, :, None] * np.ones(4)
    has_last = random.random(n) < 0.4
    has_last[:2] = True
    is_turn[:, :, 3] *= has_last[:, None]
    return (scores * is_turn).sum(axis=1), is_turn.sum(axis=1)


def group_means(shares: Sequence[float], sizes: Sequence[float]) -> Case:
    """The mean of the means of groups, as ROVER and PlanViz have it."""

    def draw(random: Random, n: int) -> Sums:
        group = np.searchsorted(np.cumsum(sizes), (np.arange(n) + 0.5) / n)
        is_member = np.eye(len(shares))[group]
        right = (random.random(n) < np.array(shares)[group]).astype(float)
        return right[:, None] * is_member, is_member

    return Case(draw, [1 / len(shares)] * len(shares))


def columns(random: Random, n: int) -> Sums:
    """Three metrics of one answer, nearly always right, and often wrong together."""
    right = right_answers(random, 0.97, n, 3, 0.5)
    return right, np.ones_like(right)


def slope_per_turn(random: Random, n: int) -> Sums:
    """The products and squares of a slope within dialogues of 2 to 6 turns."""
    turn = np.arange(6)
    is_turn = turn < random.integers(2, 7, n)[:, None]
    right = random.random((n, 6)) < 0.95 - 0.05 * turn
    middle = (turn * is_turn).sum(axis=1) / is_turn.sum(axis=1)
    distance = (turn - middle[:, None]) * is_turn
    return (distance * right).sum(axis=1)[:, None], (distance**2).sum(axis=1)[:, None]


def pair(first: float, second: float) -> Case:
    """Differences of two models that find the same questions hard."""

    def draw(random: Random, n: int) -> Sums:
        hardness = random.normal(0, 1, n)
        latent = np.sqrt(0.5) * (hardness + random.normal(0, 1, (2, n)))
        limits = np.array([normal_quantile(first), normal_quantile(second)])
        right = (latent < limits[:, None]).astype(float)
        return one_a_dialogue(right[0] - right[1])

    return Case(draw, scale=DIFFERENCE)


def normal_quantile(share: float) -> float:
    from statistics import NormalDist

    return NormalDist().inv_cdf(share)


def paired_scores(random: Random, n: int) -> Sums:
    """Small differences of scores over 1 to 8 turns."""
    differences = np.clip(0.03 + random.normal(0, 0.1, (n, 1)) + random.normal(0, 0.2, (n, 8)), -1, 1)
    return of_turns(differences, random.integers(1, 9, n))


def rarely_apart(random: Random, n: int) -> Sums:
    """Differences of a tenth in one direction, but for a few of full marks."""
    sizes = np.where(random.random(n) < 0.05, 1.0, 0.1)
    return one_a_dialogue(sizes * np.where(random.random(n) < 0.8, 1.0, -1.0))


def seeds(right: float) -> Case:
    """Three runs of one model, of which some are luckier."""

    def draw(random: Random, n: int) -> Sums:
        ease = math.log(right / (1 - right)) + random.normal(0, 1, n)
        luck = random.normal(0, 0.2, 3) if n < TRUTH_DIALOGUES else random.normal(0, 0.2, (n, 3))
        answers = (random.random((n, 3)) < 1 / (1 + np.exp(-(ease[:, None] + luck)))).astype(float)
        return answers, np.ones_like(answers)

    return Case(draw, [1 / 3] * 3, runs=3)


CASES: dict[str, Case] = {
    **{f"share {right}": share(right) for right in (0.5, 0.9, 0.98)},
    **{f"5 turns a dialogue, {right}": turns(right, 5, 5) for right in (0.5, 0.9, 0.98)},
    **{f"1 to 12 turns, {right}": turns(right, 1, 12) for right in (0.5, 0.9, 0.98)},
    "2 to 6 turns, long ones harder": harder_if_longer(lambda random, n: random.integers(2, 7, n), 6, 0.06),
    "1 to 40 turns, long ones harder": harder_if_longer(
        lambda random, n: np.minimum(random.geometric(0.15, n), 40), 40, 0.02
    ),
    "0 to 10, 80% at 10": single(lambda random, n: mostly_full(random, 0.8, n)),
    "0 to 10, 95% at 10": single(lambda random, n: mostly_full(random, 0.95, n)),
    "all near 0.7": single(lambda random, n: np.clip(random.normal(0.7, 0.05, n), 0, 1)),
    "WEAVE's Avg": Case(weave_average, WEAVE_WEIGHTS),
    "mean of 3 groups, 0.95 0.6 0.98": group_means((0.95, 0.6, 0.98), (0.4, 0.3, 0.3)),
    "mean of 3 groups, all 0.98": group_means((0.98, 0.98, 0.98), (0.5, 0.3, 0.2)),
    "mean of 3 metrics, 0.97": Case(columns, [1 / 3] * 3),
    "slope per turn": Case(slope_per_turn, scale=(-0.5, 0.5)),
    "pairs, 0.5 and 0.5": pair(0.5, 0.5),
    "pairs, 0.9 and 0.7": pair(0.9, 0.7),
    "pairs, 0.98 and 0.9": pair(0.98, 0.9),
    "pairs, 0.98 and 0.98": pair(0.98, 0.98),
    "pairs of scores, rarely a point apart": Case(rarely_apart, scale=DIFFERENCE),
    "pairs of scores, 1 to 8 turns": Case(paired_scores, scale=DIFFERENCE),
    "pairs, 0 to 10, most at 10": single(
        lambda random, n: mostly_full(random, 0.9, n) - mostly_full(random, 0.8, n), scale=DIFFERENCE
    ),
    "3 seeds, 0.5": seeds(0.5),
    "3 seeds, 0.9": seeds(0.9),
    "3 seeds, 0.98": seeds(0.98),
}
LIMITS = ("pairs of scores, rarely a point apart",)  # where the rule ends: what is rare is what matters


def true_value(case: Case) -> float:
    """The number over very many dialogues."""
    sums, counts = case.draw(np.random.default_rng(12345), TRUTH_DIALOGUES)
    return float(sums.sum(axis=0) / counts.sum(axis=0) @ np.array(case.weights))


def weft_interval(case: Case, sums: Any, counts: Any) -> Interval:
    scored = score_sums(sums, counts, case.weights, case.scale)
    assert scored is not None
    return over_seeds(case, sums, scored.interval())


def bootstrap_interval(case: Case, sums: Any, counts: Any) -> Interval:
    """The percentile bootstrap over whole dialogues."""
    drawn = bootstrap_weights(len(sums), BOOTSTRAP_DRAWS, 0).astype(float)
    with np.errstate(divide="ignore", invalid="ignore"):
        values = drawn @ sums / (drawn @ counts) @ np.array(case.weights)
    low, high = np.nanquantile(values, [0.025, 0.975])
    return over_seeds(case, sums, (float(low), float(high)))


def over_seeds(case: Case, sums: Any, pooled: Interval) -> Interval:
    """Add the part of the seeds to the interval of pooled runs."""
    if case.runs == 1:
        return pooled
    runs = [Cell(float(mean)) for mean in sums.mean(axis=0)]
    cell = mean_over_seeds(Cell(float(sums.mean()), low=pooled[0], high=pooled[1]), runs, 1.0)
    assert cell.low is not None and cell.high is not None
    return cell.low, cell.high


def measure(case: Case, dialogues: int, studies: int, seed: int = 0, *, with_bootstrap: bool = True) -> Coverage:
    """Return the shares of intervals with the truth in them, and their mean widths."""
    truth = true_value(case)
    random = np.random.default_rng(seed)
    intervals: list[tuple[Interval, Interval]] = []
    for _ in range(studies):
        sums, counts = case.draw(random, dialogues)
        old = bootstrap_interval(case, sums, counts) if with_bootstrap else (math.nan, math.nan)
        intervals.append((old, weft_interval(case, sums, counts)))
    ends = np.array(intervals)
    covers = (ends[:, :, 0] <= truth + 1e-9) & (truth - 1e-9 <= ends[:, :, 1])
    widths = ends[:, :, 1] - ends[:, :, 0]
    return Coverage(*covers.mean(axis=0), *widths.mean(axis=0))


def target(dialogues: int) -> float:
    return 0.93 if dialogues >= 20 else 0.90


def lines(studies: int, seed: int) -> Iterator[str]:
    yield f"{'case':40}{'n':>4}{'bootstrap':>18}{'weft':>18}"
    for name, case in CASES.items():
        for dialogues in DIALOGUES:
            found = measure(case, dialogues, studies, seed)
            old = f"{found.bootstrap:.1%} ({found.bootstrap_width:.3f})"
            new = f"{found.covered:.1%} ({found.width:.3f})"
            mark = "" if found.covered >= target(dialogues) else "  below the target"
            yield f"{name:40}{dialogues:>4}{old:>18}{new:>18}{mark}"


def write_page(studies: int, seed: int) -> None:
    """Put the table on the page, one row for each case: both coverages by number of dialogues."""
    heads = [f"{dialogues} dialogues{kind}" for dialogues in DIALOGUES for kind in (", bootstrap", ", weft")]
    rows = [f"| Case | {' | '.join(heads)} |", "| --- |" + " --- |" * len(heads)]
    for name, case in CASES.items():
        cells: list[str] = []
        for dialogues in DIALOGUES:
            found = measure(case, dialogues, studies, seed)
            is_below = found.covered < target(dialogues)
            cells += [f"{found.bootstrap:.1%}", f"**{found.covered:.1%}**" if is_below else f"{found.covered:.1%}"]
        rows.append(f"| {name} | {' | '.join(cells)} |")
        print(rows[-1], flush=True)
    head, _, rest = PAGE.read_text().partition(TABLE_BEGIN)
    PAGE.write_text(head + TABLE_BEGIN + "\n".join(["", *rows, ""]) + TABLE_END + rest.partition(TABLE_END)[2])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", action="store_true", help=f"put the table on {PAGE.name}")
    chosen = parser.parse_args()
    print(f"{chosen.studies} studies each; coverage of 95% intervals (mean width)")
    if chosen.write:
        write_page(chosen.studies, chosen.seed)
        return
    for line in lines(chosen.studies, chosen.seed):
        print(line, flush=True)


if __name__ == "__main__":
    main()
