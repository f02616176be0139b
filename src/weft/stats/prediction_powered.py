"""What people would say of all items, from a judge that judged all of them and people who annotated some.

Prediction-powered inference for a mean (Angelopoulos et al., Science 2023), with the judge's weight chosen from the
data (PPI++, Angelopoulos, Duchi and Zrnic 2023):

    value = mean over annotated items of (annotation - lambda judge) + lambda mean over all items of judge

Lambda 0 is people alone; lambda 1 is the judge's mean less its bias. Where the annotated items are a simple random
sample, of items or of dialogues, the value is unbiased whatever the judge does; `weigh_rated_items` is for samples of
one item from as many dialogues as possible. A good judge makes the interval narrower than that of people alone. Lambda
is between 0 and 1, and minimises the estimated variance.

Items that nobody needs to judge (`exact_values`: a rule's, a model's failure) count as they are. A headline score is a
weighted sum of means whose items may share dialogues: its variance is the jackknife's, over whole dialogues, so that
correlation within a dialogue is accounted for. Intervals follow the rule of `intervals`; degrees of freedom combine
those of dialogues with and without annotations, as Welch and Satterthwaite do, less one for a chosen lambda. `python
bench/powered.py` measures their coverage.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from weft.stats.agreement import NullableEstimate, Pairs
from weft.stats.intervals import SHARE, ScoredMean, count_unseen, list_clusters

Clusters = Mapping[str, Sequence[float]]  # values by dialogue
MIN_RATED_DIALOGUES = 5  # of about one size, that show how likely their items were to be sampled
ROUNDING = 1e-12  # a share of variance that is rounding error


class WeightedMean(Struct, frozen=True):
    """One mean of a weighted sum."""

    weight: float
    judge_values: Clusters  # of all judged items, annotated ones included
    pairs: Pairs  # (judge, annotation) of annotated items
    exact_values: Clusters = {}  # of items that nobody needs to judge
    item_weights: Mapping[str, float] = {}  # for how many items an annotated one stands, by dialogue; 1 where missing


class PoweredEstimate(Struct, frozen=True):
    """A prediction-powered estimate, and what it is compared with."""

    value: float
    low: float | None  # with `high` the 95% interval
    high: float | None
    judge_only: NullableEstimate  # the judge's mean, not corrected
    people_only: NullableEstimate  # from annotations alone
    n: int  # annotated items
    total: int  # judged items
    clusters: int  # dialogues with annotations
    weight: float  # lambda: how far the judge is relied on


def estimate_powered_mean(
    judged: Clusters, pairs: Pairs, *, sure: Clusters | None = None, weight: float | None = None
) -> PoweredEstimate | None:
    """Estimate one mean. `weight` fixes lambda. None where items are judged and none is annotated."""
    return estimate_powered_sum([WeightedMean(1.0, judged, pairs, sure or {})], weight=weight)


def estimate_powered_sum(parts: Sequence[WeightedMean], *, weight: float | None = None) -> PoweredEstimate | None:
    """Estimate a weighted sum of means. `weight` fixes lambda.

    None where a part has judged items and no annotated one: nothing is known of the judge there.
    """
    samples: list[Mapping[str, Sequence[Any]]] = []
    for part in parts:
        samples += [part.judge_values, part.exact_values, part.pairs]
    names = list_clusters(samples)
    sums = [_PartSums(part, names) for part in parts if _has_items(part)]
    if any(part.judged and not part.rated for part in sums) or not any(part.rated for part in sums):
        return None
    rated: Any = 0
    sizes: Any = 0
    base_influence: Any = 0
    full_influence: Any = 0
    plain_influence: Any = 0
    plain_value = 0.0
    reach = 0.0
    for part in sums:
        rated = rated + part.rated_counts
        sizes = sizes + (part.counts + part.exact_counts)
        base_influence = base_influence + part.weight * part.influence(0.0)
        full_influence = full_influence + part.weight * part.influence(1.0)
        plain_influence = plain_influence + part.weight * part.plain_influence()
        plain_value += part.weight * part.plain_mean
        reach += part.weight * part.judged / part.total
    judge_influence = full_influence - base_influence
    tuned = weight is None
    if weight is None:
        weight = _choose_lambda(base_influence, judge_influence, plain_influence)

    def estimate(lambda_: float, tuned: bool) -> NullableEstimate:
        value = float(sum(part.weight * part.value(lambda_) for part in sums))
        residuals = sum(part.weight * part.residuals(lambda_) for part in sums)
        influence = base_influence + lambda_ * judge_influence
        above_judge = value - lambda_ * plain_value
        ends = (above_judge + lambda_, 1 - above_judge)
        return _estimate_interval(value, influence, rated, residuals, ends, reach=reach, tuned=int(tuned))

    powered = estimate(weight, tuned)
    return PoweredEstimate(
        float(powered.value or 0.0),
        powered.low,
        powered.high,
        judge_only=_estimate_interval(
            plain_value, plain_influence, sizes, plain_influence, (plain_value, 1 - plain_value)
        ),
        people_only=estimate(0.0, tuned=False),
        n=int(sum(part.rated_items.sum() for part in sums)),
        total=int(sum(part.judged for part in sums)),
        clusters=int((rated > 0).sum()),
        weight=weight,
    )


def _has_items(part: WeightedMean) -> bool:
    return any(part.judge_values.values()) or any(part.exact_values.values())


def _choose_lambda(base_influence: Any, judge_influence: Any, plain_influence: Any) -> float:
    """Return the lambda of least variance; 0 where all items are annotated, and the judge changes nothing."""
    judge_variance = float(judge_influence @ judge_influence)
    scale = float(plain_influence @ plain_influence + base_influence @ base_influence)
    if judge_variance > ROUNDING * scale:
        return min(1.0, max(0.0, -float(base_influence @ judge_influence) / judge_variance))
    return 0.0


def weigh_rated_items(
    sizes: Mapping[str, int], rated: Mapping[str, int], fewest: int = MIN_RATED_DIALOGUES
) -> dict[str, float]:
    """Return for how many items each annotated one stands, by dialogue.

    For samples in which items of short dialogues were more likely to be drawn than those of long ones, or the other way
    round. Dialogues of about the same size are grouped, each group with at least `fewest` annotated dialogues, and what
    is annotated of a group stands for all of it. Where items were drawn with equal chances, it changes little.
    """
    weights: dict[str, float] = {}
    for group in _group_by_size(sizes, rated, fewest):
        annotated = sum(rated.get(name, 0) for name in group)
        weight = 1.0
        if annotated:
            weight = sum(sizes[name] for name in group) / annotated
        weights |= dict.fromkeys(group, weight)
    return weights


def _group_by_size(sizes: Mapping[str, int], rated: Mapping[str, int], fewest: int) -> list[list[str]]:
    """Group dialogues by size, with `fewest` annotated ones in each group. Equal sizes stay together."""
    ordered = sorted((size, name) for name, size in sizes.items() if size)
    annotated_left = sum(rated.get(name, 0) > 0 for _, name in ordered)
    groups: list[list[str]] = [[]]
    annotated_in_group = 0
    previous_size = 0
    for size, name in ordered:
        if annotated_in_group >= fewest and size != previous_size and annotated_left >= fewest:
            groups.append([])
            annotated_in_group = 0
        groups[-1].append(name)
        is_annotated = rated.get(name, 0) > 0
        annotated_in_group += is_annotated
        annotated_left -= is_annotated
        previous_size = size
    return groups


def subtract_bias(
    value: float, low: float | None, high: float | None, bias: float, bias_low: float | None, bias_high: float | None
) -> tuple[float, float | None, float | None]:
    """Return a number less a bias that was measured elsewhere, with its interval.

    The half-widths of both intervals, on each side, add as squares. Where one has no interval, the result has none.
    """
    corrected = value - bias
    if low is None or high is None or bias_low is None or bias_high is None:
        return corrected, None, None
    lower = corrected - math.hypot(value - low, bias_high - bias)
    upper = corrected + math.hypot(high - value, bias - bias_low)
    return corrected, lower, upper


class _PartSums:
    """The sums and counts of one part by dialogue, in the order of `names`.

    Its mean over all items is that of the exact values, and of `lambda judge + offset` for the rest, where `offset` is
    the mean of `annotation - lambda judge` over annotated items.
    """

    def __init__(self, part: WeightedMean, names: Sequence[str]) -> None:
        import numpy as np

        judge: dict[str, list[float]] = {}
        annotations: dict[str, list[float]] = {}
        for name, pairs in part.pairs.items():
            judge[name] = [value for value, _ in pairs]
            annotations[name] = [value for _, value in pairs]
        item_weights = np.array([part.item_weights.get(name, 1.0) for name in names])
        self.weight = part.weight
        self.sums = _sum_by_name(part.judge_values, names)
        self.counts = _count_by_name(part.judge_values, names)
        self.exact_sums = _sum_by_name(part.exact_values, names)
        self.exact_counts = _count_by_name(part.exact_values, names)
        self.rated_items = _count_by_name(annotations, names)
        self.rated_judge = item_weights * _sum_by_name(judge, names)
        self.rated_sums = item_weights * _sum_by_name(annotations, names)
        self.rated_counts = item_weights * self.rated_items
        self.judged = int(self.counts.sum())
        self.rated = float(self.rated_counts.sum())
        self.total = self.judged + float(self.exact_counts.sum())

    @property
    def plain_mean(self) -> float:
        """The mean with the judge's values as they are."""
        return float((self.sums.sum() + self.exact_sums.sum()) / self.total)

    def plain_influence(self) -> Any:
        """Return how far leaving out each dialogue would move `plain_mean`."""
        import numpy as np

        sizes = self.counts + self.exact_counts
        with np.errstate(divide="ignore", invalid="ignore"):
            return (self.sums + self.exact_sums - self.plain_mean * sizes) / (self.total - sizes)

    def _offset(self, lambda_: float) -> float:
        if not self.rated:
            return 0.0
        return float((self.rated_sums - lambda_ * self.rated_judge).sum()) / self.rated

    def value(self, lambda_: float) -> float:
        total = self.exact_sums.sum() + lambda_ * self.sums.sum() + self._offset(lambda_) * self.judged
        return float(total) / self.total

    def influence(self, lambda_: float) -> Any:
        """Return how far leaving out each dialogue would move the value; not finite where one has everything."""
        import numpy as np

        offset = self._offset(lambda_)
        sizes = self.counts + self.exact_counts
        moved = self.exact_sums + lambda_ * self.sums + offset * self.counts - self.value(lambda_) * sizes
        with np.errstate(divide="ignore", invalid="ignore"):
            influence = moved / (self.total - self.counts - self.exact_counts)
            return influence + self.residuals(lambda_)

    def residuals(self, lambda_: float) -> Any:
        """Return the part of `influence` that comes from annotations."""
        import numpy as np

        if not self.rated:
            return np.zeros(len(self.counts))
        residual = self.rated_sums - lambda_ * self.rated_judge - self._offset(lambda_) * self.rated_counts
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.judged / self.total * residual / (self.rated - self.rated_counts)


def _sum_by_name(values: Clusters, names: Sequence[str]) -> Any:
    import numpy as np

    return np.array([math.fsum(values.get(name, ())) for name in names], dtype=np.float64)


def _count_by_name(values: Clusters, names: Sequence[str]) -> Any:
    import numpy as np

    return np.array([len(values.get(name, ())) for name in names], dtype=np.float64)


def _estimate_interval(
    value: float,
    influence: Any,
    rated: Any,
    residuals: Any,
    ends: tuple[float, float],
    *,
    reach: float = 1.0,
    tuned: int = 0,
) -> NullableEstimate:
    """Return a value with its interval, from each dialogue's influence and its number of annotated items.

    `residuals` are the influences of annotated dialogues through annotations alone, `ends` how far an annotation may be
    below and above what is expected of it, and `reach` the part of the value that annotations speak for. There is no
    interval where fewer than two dialogues are annotated, or three where lambda is chosen (`tuned`). Dialogues of
    unequal size count as fewer of equal size: (sum of sizes)^2 / sum of squares.
    """
    labelled = rated > 0
    n_labelled = int(labelled.sum())
    n_unlabelled = int((~labelled).sum())
    if n_labelled - tuned < 2:
        return NullableEstimate(value)
    labelled_variance = float((influence[labelled] ** 2).sum()) * n_labelled / (n_labelled - 1)
    unlabelled_variance = float((influence[~labelled] ** 2).sum())
    if not math.isfinite(labelled_variance + unlabelled_variance):
        return NullableEstimate(value)
    share = min(1.0, max(0.0, value))
    effective_size = float(rated.sum() ** 2 / (rated**2).sum())
    unseen = float(count_unseen(residuals[labelled]))
    labelled_variance += unseen * (ends[0] ** 2 + ends[1] ** 2) * (reach / effective_size) ** 2
    variance = labelled_variance + unlabelled_variance
    labelled_term = labelled_variance**2 / max(1.0, effective_size - 1 - tuned)
    unlabelled_term = unlabelled_variance**2 / max(1, n_unlabelled - 1)
    freedom = max(1.0, round(variance**2 / (labelled_term + unlabelled_term), 2))
    # a corrected value can be at an end of the scale, or beyond, by chance: it is as far from the end as its error
    room = max(share * (1 - share) + unseen * reach / effective_size, math.sqrt(variance))
    low, high = ScoredMean(share, room / variance, freedom, SHARE).interval()
    return NullableEstimate(value, min(value, low), max(value, high))
