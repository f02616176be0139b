"""What people would have said of everything, from a judge that judged all of it and people who rated some.

Prediction-powered inference for a mean (Angelopoulos et al., Science 2023), with the weight of the judge chosen from
the data (PPI++, Angelopoulos, Duchi and Zrnic 2023):

    value = mean over people's (truth - lambda judge) + lambda mean over all of judge

With lambda 0 it is people alone; with 1 the judge's mean less its bias. Where the rated items are a simple random
sample, of items or of dialogues, it is unbiased whatever the judge does; `evened` is for samples of one item from as
many dialogues as can be. A good judge makes the interval narrower than that of people alone. lambda is between 0 and 1,
and is the one that makes the estimated variance smallest.

Items that nobody needs to judge (`sure`: a rule's, a model's failure) stand for themselves. A main number is a weighted
sum of means, whose items may be of the same dialogues: what leaving a whole dialogue out would move (the jackknife) is
squared and added up, so that whatever goes together within a dialogue is allowed for. Intervals have Student's t: its
degrees of freedom are those of dialogues with ratings and of dialogues without, put together as Welch and Satterthwaite
do; one is taken off for a chosen lambda. `python bench/powered.py` shows whether they hold what they promise."""

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from weft.stats.agreement import NullableEstimate, Pairs

Clusters = Mapping[str, Sequence[float]]  # values by dialogue
FEWEST = 5  # dialogues with ratings that say how many of their size were drawn
NOTHING = 1e-12  # a share of variance that is rounding


class WeightedMean(Struct, frozen=True):
    """One mean of a weighted sum. `judged`: the judge's values, those that people rated as well included; `pairs`:
    (judge, truth); `counts`: for how many a rated item of a dialogue stands, where that is not the same for all."""

    weight: float
    judge_values: Clusters
    pairs: Pairs
    exact_values: Clusters = {}
    item_weights: Mapping[str, float] = {}


class PoweredEstimate(Struct, frozen=True):
    value: float
    low: float | None
    high: float | None
    judge_only: NullableEstimate  # the judge's mean as it is
    people_only: NullableEstimate  # by people alone
    n: int  # items that people rated
    total: int  # all items that the judge judged
    clusters: int  # dialogues with ratings
    weight: float  # lambda: how far the judge is relied on


def estimate_powered_mean(
    judged: Clusters, pairs: Pairs, *, sure: Clusters | None = None, weight: float | None = None
) -> PoweredEstimate | None:
    """For one mean. `weight` fixes lambda. None where nothing is rated, though it is judged."""
    return estimate_powered_sum([WeightedMean(1.0, judged, pairs, sure or {})], weight=weight)


def estimate_powered_sum(parts: Sequence[WeightedMean], *, weight: float | None = None) -> PoweredEstimate | None:
    """For a weighted sum of means. None where people rated nothing of a part that a judge judged: nothing is known of
    the judge there."""
    some = [
        _Sums(part, names)
        for names in [_names(parts)]
        for part in parts
        if any(part.judge_values.values()) or any(part.exact_values.values())
    ]
    if not some or any(part.judged and not part.rated for part in some) or not any(part.rated for part in some):
        return None
    rated: Any = sum(part.counts_rated for part in some)
    sizes: Any = sum(part.counts + part.sure_counts for part in some)
    fixed: Any = sum(part.weight * part.influence(0.0) for part in some)
    moved: Any = sum(part.weight * part.influence(1.0) for part in some) - fixed
    plain_value = float(sum(part.weight * part.plain for part in some))
    plain_influence: Any = sum(part.weight * part.plain_influence() for part in some)
    free = weight is None
    if weight is None:  # where all is rated, the judge moves nothing
        below = float(moved @ moved)
        if below > NOTHING * float(plain_influence @ plain_influence + fixed @ fixed):
            weight = min(1.0, max(0.0, -float(fixed @ moved) / below))
        else:
            weight = 0.0

    def at(chosen: float, tuned: int = 0) -> NullableEstimate:
        value = float(sum(part.weight * part.value(chosen) for part in some))
        return _between(value, fixed + chosen * moved, rated, tuned)

    plain = _between(plain_value, plain_influence, sizes)
    best = at(weight, int(free))
    return PoweredEstimate(
        float(best.value or 0.0),
        best.low,
        best.high,
        plain,
        at(0.0),
        int(sum(part.items_rated.sum() for part in some)),
        int(sum(part.judged for part in some)),
        int((rated > 0).sum()),
        weight,
    )


def weigh_rated_items(sizes: Mapping[str, int], rated: Mapping[str, int], fewest: int = FEWEST) -> dict[str, float]:
    """For how many items each rated one stands, by dialogue, where items of short dialogues were more likely to be
    drawn than those of long ones, or the other way round: dialogues of about the same size, so many of them rated that
    it can be told, are taken together, and what is rated of them stands for all of them. Where items were drawn alike,
    it changes little."""
    ordered = sorted((size, name) for name, size in sizes.items() if size)
    groups: list[list[str]] = [[]]
    for at, (size, name) in enumerate(ordered):
        full = sum(rated.get(one, 0) > 0 for one in groups[-1]) >= fewest
        if full and size != ordered[at - 1][0] and sum(rated.get(one, 0) > 0 for _, one in ordered[at:]) >= fewest:
            groups.append([])
        groups[-1].append(name)
    made: dict[str, float] = {}
    for some in groups:
        known = sum(rated.get(name, 0) for name in some)
        made |= dict.fromkeys(some, sum(sizes[name] for name in some) / known if known else 1.0)
    return made


def subtract_bias(
    value: float, low: float | None, high: float | None, bias: float, bias_low: float | None, bias_high: float | None
) -> tuple[float, float | None, float | None]:
    """A number less a bias that was measured elsewhere. The half-widths of the two intervals, on each side, add as
    squares; where one of the two has no interval, there is none."""
    made = value - bias
    if low is None or high is None or bias_low is None or bias_high is None:
        return made, None, None
    return made, made - math.hypot(value - low, bias_high - bias), made + math.hypot(high - value, bias - bias_low)


def _names(parts: Sequence[WeightedMean]) -> list[str]:
    every = [some for part in parts for some in (part.judge_values, part.exact_values, part.pairs)]
    return list(dict.fromkeys(name for some in every for name, values in some.items() if values))


class _Sums:
    """A part by dialogue, in the order of `names`. The mean over all its items is that of what is sure, and of `lambda
    judge + off` for the rest, where `off` is what people say beyond `lambda judge`, on average over what they rated."""

    def __init__(self, part: WeightedMean, names: Sequence[str]) -> None:
        import numpy as np

        def column(values: Clusters, size: bool = False) -> Any:
            return np.array(
                [len(values.get(name, ())) if size else math.fsum(values.get(name, ())) for name in names],
                dtype=np.float64,
            )

        judge = {name: [one for one, _ in some] for name, some in part.pairs.items()}
        truth = {name: [one for _, one in some] for name, some in part.pairs.items()}
        self.weight = part.weight
        self.sums = column(part.judge_values)
        self.counts = column(part.judge_values, True)
        self.sure_sums = column(part.exact_values)
        self.sure_counts = column(part.exact_values, True)
        times = np.array([part.item_weights.get(name, 1.0) for name in names])
        self.items_rated = column(truth, True)
        self.judge_rated = times * column(judge)
        self.truth_rated = times * column(truth)
        self.counts_rated = times * self.items_rated
        self.judged = int(self.counts.sum())
        self.rated = float(self.counts_rated.sum())
        self.all = self.judged + float(self.sure_counts.sum())

    @property
    def plain(self) -> float:
        return float((self.sums.sum() + self.sure_sums.sum()) / self.all)

    def plain_influence(self) -> Any:
        import numpy as np

        sizes = self.counts + self.sure_counts
        with np.errstate(divide="ignore", invalid="ignore"):
            return (self.sums + self.sure_sums - self.plain * sizes) / (self.all - sizes)

    def _off(self, weight: float) -> float:
        if self.rated:
            return float((self.truth_rated - weight * self.judge_rated).sum()) / self.rated
        return 0.0

    def value(self, weight: float) -> float:
        return float(self.sure_sums.sum() + weight * self.sums.sum() + self._off(weight) * self.judged) / self.all

    def influence(self, weight: float) -> Any:
        """Of each dialogue: how far leaving it out would move the value. Not a number where one dialogue has
        everything."""
        import numpy as np

        off = self._off(weight)
        moved = (
            self.sure_sums
            + weight * self.sums
            + off * self.counts
            - self.value(weight) * (self.counts + self.sure_counts)
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            made = moved / (self.all - self.counts - self.sure_counts)
            if self.rated:
                rest = self.truth_rated - weight * self.judge_rated - off * self.counts_rated
                made = made + self.judged / self.all * rest / (self.rated - self.counts_rated)
        return made


def _between(value: float, influence: Any, rated: Any, tuned: int = 0) -> NullableEstimate:
    """The interval from what each dialogue moves, and how many of its items are rated; none where fewer than two
    dialogues stand behind it, or three where lambda is chosen. Dialogues of unequal size count as so many of equal
    size: (sum of sizes)^2 / sum of squares."""
    labelled = rated > 0
    many = int(labelled.sum())
    rest = int((~labelled).sum())
    if many - tuned < 2:
        return NullableEstimate(value)
    inner = float((influence[labelled] ** 2).sum()) * many / (many - 1)
    outer = float((influence[~labelled] ** 2).sum())
    whole = inner + outer
    if not math.isfinite(whole):
        return NullableEstimate(value)
    if not whole:
        return NullableEstimate(value, value, value)
    alike = float(rated.sum() ** 2 / (rated**2).sum())
    free = whole**2 / (inner**2 / max(1.0, alike - 1 - tuned) + outer**2 / max(1, rest - 1))
    half = student_t_quantile(round(max(1.0, free), 2)) * math.sqrt(whole)
    return NullableEstimate(value, value - half, value + half)


@functools.lru_cache(maxsize=512)
def student_t_quantile(freedom: float, share: float = 0.95) -> float:
    """Between minus and plus this lies `share` of Student's t. With t = sqrt(freedom) tan(a), that is where the
    integral of cos(a)^(freedom - 1) from 0 has this share of its whole; it is taken on a grid."""
    import numpy as np

    end = min(math.pi / 2, 12 / math.sqrt(freedom))
    at = np.linspace(0.0, end, 40_001)
    inside: Any = np.clip(np.cos(at), 0.0, 1.0) ** (freedom - 1)
    sums: Any = np.concatenate([[0.0], np.cumsum((inside[1:] + inside[:-1]) / 2)])
    interp: Any = np.interp
    return math.sqrt(freedom) * math.tan(float(interp(share * sums[-1], sums, at)))
