"""Two runs on the same dialogues: paired differences of the headline score, of each metric, and of each metric in each
group of the benchmark's first axis.

Only verdicts that both runs have scored are paired; the others are counted and left out. The headline score is compared
if each of its parts has pairs: without one of them it would be another number. Values are on the scale of the
benchmark's paper. `pair_runs` and `pair_terms` do the same for any one number."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from weft.errors import UserError
from weft.report.scale import headline_share, to_points
from weft.results.run import Run, find_cluster, headline_parts, sum_values
from weft.rounding import format_number
from weft.stats.intervals import mix_means
from weft.stats.paired import Difference, PairedTerms, compare_pairs, holm_adjust
from weft.types import Verdict

HEADLINE = "headline score"
PERCENT = 100.0  # statistics are computed in percent, then scaled to the paper's full marks
Terms = Sequence[tuple[float, Sequence[Verdict]]]
VerdictKey = tuple[str, int, str]  # sample, turn, metric
Pairs = Mapping[VerdictKey, tuple[float, float]]  # percents of the first and of the second run


class ComparisonRow(Struct, frozen=True, omit_defaults=True):
    """The comparison of one number."""

    name: str  # `headline score`, a metric, or a metric and a group
    first: float  # score of the first run
    second: float  # score of the second run
    difference: Difference  # first minus second
    corrected_p: float  # p after Holm over all rows
    first_verdicts: Sequence[Verdict] = ()  # what the numbers were computed from; never serialised
    second_verdicts: Sequence[Verdict] = ()


class Gap(Struct, frozen=True):
    """A dialogue in which two runs differ."""

    sample: str  # id of the sample
    first: float  # headline score of the first run
    second: float  # headline score of the second run


class Comparison(Struct, frozen=True):
    """Two runs compared."""

    names: tuple[str, str]  # titles of the runs
    rows: list[ComparisonRow]  # the headline score first
    gaps: list[Gap]  # the dialogues that differ most, the widest gap first
    unpaired: int  # verdicts that only one run has scored
    notes: list[str]  # what differs besides the model
    max_score: float = 1.0  # full marks on the paper's scale
    digits: int = 3  # decimals of a number that is shown
    alone: tuple[float | None, float | None] = (None, None)  # the headline scores, with what is left out here

    @property
    def headline(self) -> ComparisonRow | None:
        """The comparison of the headline score; None if a part of it has no pairs."""
        return next((row for row in self.rows if row.name == HEADLINE), None)

    @property
    def remark(self) -> str:
        """What is left out, and the headline scores that the runs have with it; "" if nothing is."""
        if not self.unpaired:
            return ""
        scores = ["-" if score is None else format_number(score, self.digits) for score in self.alone]
        return (
            f"{self.unpaired} verdicts have no partner and are left out; with them the headline scores are "
            f"{scores[0]} and {scores[1]}"
        )

    def without_verdicts(self) -> "Comparison":
        """Return what is serialised."""
        return replace(self, rows=[replace(row, first_verdicts=(), second_verdicts=()) for row in self.rows])


class SharedVerdicts(Struct, frozen=True):
    """What two runs have both scored."""

    verdicts: list[Verdict]  # of the first run, one for each pair
    shared: list[Verdict]  # of the first run, those that both have, scored or not
    pairs: Pairs
    clusters: Mapping[str, str]  # by sample
    unpaired: int  # verdicts that only one run has scored


def pair_runs(first: Run, second: Run) -> SharedVerdicts:
    """Pair the scored verdicts of two runs. Repeats of one verdict, such as those of several seeds, count as their
    mean."""
    scored = _scored_verdicts(first)
    others = _scored_verdicts(second)
    common = [key for key in scored if key in others]
    pairs = {key: (_mean_percent(scored[key]), _mean_percent(others[key])) for key in common}
    own = {key_of(verdict): verdict for verdict in first.verdicts}
    other_keys = {key_of(verdict) for verdict in second.verdicts}
    shared = [verdict for key, verdict in own.items() if key in other_keys]
    clusters = {sample: find_cluster(first.benchmark, sample, groups) for sample, groups in first.groups.items()}
    unpaired = len(own.keys() | other_keys) - len(common)
    return SharedVerdicts([scored[key][0] for key in common], shared, pairs, clusters, unpaired)


def headline_pairs(run: Run, shared: Sequence[Verdict], pairs: Pairs) -> Terms:
    """Return the headline score as weighted means of the verdicts that have pairs; empty if a part of it has none."""
    terms: list[tuple[float, Sequence[Verdict]]] = []
    for weight, members in headline_parts(run.benchmark, shared, run.groups):
        paired = [verdict for verdict in members if key_of(verdict) in pairs]
        if not paired:
            return []
        terms.append((weight, paired))
    return terms


def pair_terms(terms: Terms, pairing: SharedVerdicts) -> PairedTerms:
    """Return a weighted mean of verdicts as the values of both runs, in percent, by cluster of dialogues."""
    paired: list[tuple[float, dict[str, list[tuple[float, float]]]]] = []
    for weight, verdicts in terms:
        values: dict[str, list[tuple[float, float]]] = {}
        for verdict in verdicts:
            values.setdefault(pairing.clusters[verdict.sample], []).append(pairing.pairs[key_of(verdict)])
        paired.append((weight, values))
    return paired


def compare(first: Run, second: Run, max_gaps: int = 10, names: tuple[str, str] | None = None) -> Comparison:
    """Compare two runs of one benchmark. Raises UserError if they have no scored turn in common."""
    _check_comparable(first, second)
    pairing = pair_runs(first, second)
    verdicts = pairing.verdicts
    pairs = pairing.pairs
    if not verdicts:
        raise UserError(f"{first.id} and {second.id} have no scored turn in common")
    presentation = first.benchmark.presentation
    scale = presentation.max_score / PERCENT
    gaps = [
        replace(gap, first=scale * gap.first, second=scale * gap.second)
        for gap in _find_gaps(first, pairing.shared, pairs)
    ]
    rows = _build_rows(first, second, pairing, scale)
    notes = _describe_differences(first, second)
    if all(row.name != HEADLINE for row in rows):
        notes.append("the headline score is not compared: a part of it has no verdict that both runs have scored")
    return Comparison(
        names=names or (first.name, second.name),
        rows=rows,
        gaps=gaps[:max_gaps],
        unpaired=pairing.unpaired,
        notes=notes,
        max_score=presentation.max_score,
        digits=presentation.digits,
        alone=(_headline_points(first), _headline_points(second)),
    )


def _headline_points(run: Run) -> float | None:
    return to_points(run.benchmark, headline_share(run.benchmark, run.verdicts, run.groups))


def _check_comparable(first: Run, second: Run) -> None:
    if first.benchmark.name != second.benchmark.name:
        raise UserError(f"{first.id} and {second.id} are runs of different benchmarks")
    if first.id == second.id:
        raise UserError(f"{first.id} is named twice; name two runs")
    if first.benchmark.presentation.pairwise:
        raise UserError(
            f"{first.id} and {second.id} are battles, whose verdicts cannot be paired; "
            f"use `weft arena agree {first.id} {second.id}`"
        )


def _build_rows(run: Run, other: Run, pairing: SharedVerdicts, scale: float) -> list[ComparisonRow]:
    sides = (_scored_verdicts(run), _scored_verdicts(other))
    rows: list[ComparisonRow] = []
    for name, terms in _compared_numbers(run, pairing):
        difference = compare_pairs(pair_terms(terms, pairing), full=PERCENT)
        if difference is not None:
            first = scale * _weighted_mean(terms, pairing.pairs, 0)
            second = scale * _weighted_mean(terms, pairing.pairs, 1)
            keys = [key_of(verdict) for _, verdicts in terms for verdict in verdicts]
            behind = [tuple(verdict for key in keys for verdict in side[key]) for side in sides]
            rows.append(ComparisonRow(name, first, second, difference, difference.p, *behind))
    corrected = holm_adjust([row.difference.p for row in rows])
    for index, p in enumerate(corrected):
        row = rows[index]
        rows[index] = replace(row, difference=scale_difference(row.difference, scale), corrected_p=p)
    return rows


def _compared_numbers(run: Run, pairing: SharedVerdicts) -> list[tuple[str, Terms]]:
    """Return the numbers to compare, each with its name and its weighted means."""
    verdicts = pairing.verdicts
    numbers: list[tuple[str, Terms]] = [(HEADLINE, headline_pairs(run, pairing.shared, pairing.pairs))]
    axis = run.benchmark.axes[0] if run.benchmark.axes else ""
    for metric in run.benchmark.metrics:
        by_group: dict[str, list[Verdict]] = {}
        of_metric = [verdict for verdict in verdicts if verdict.metric == metric]
        for verdict in of_metric:
            group = run.groups[verdict.sample].get(axis, "")
            by_group.setdefault(group, []).append(verdict)
        by_group.pop("", None)
        numbers.append((metric, [(1.0, of_metric)]))
        numbers += [(f"{metric}, {group}", [(1.0, by_group[group])]) for group in sorted(by_group)]
    return numbers


def _scored_verdicts(run: Run) -> dict[VerdictKey, list[Verdict]]:
    """Return the scored verdicts by key. A pooled run has one per seed."""
    by_key: dict[VerdictKey, list[Verdict]] = {}
    for verdict in run.verdicts:
        if verdict.value is not None:
            by_key.setdefault(key_of(verdict), []).append(verdict)
    return by_key


def _mean_percent(verdicts: Sequence[Verdict]) -> float:
    return PERCENT * (sum_values(verdicts) / len(verdicts))


def key_of(verdict: Verdict) -> VerdictKey:
    return verdict.sample, verdict.turn, verdict.metric


def scale_difference(difference: Difference, scale: float) -> Difference:
    """Return a difference on another scale."""
    low = difference.low
    high = difference.high
    if low is not None:
        low *= scale
    if high is not None:
        high *= scale
    return replace(difference, value=scale * difference.value, low=low, high=high)


def _weighted_mean(terms: Terms, pairs: Pairs, side: int) -> float:
    means: list[tuple[float, float]] = []
    for weight, verdicts in terms:
        means.append((weight, sum(pairs[key_of(verdict)][side] for verdict in verdicts) / len(verdicts)))
    return mix_means(means)


def _find_gaps(run: Run, shared: Sequence[Verdict], pairs: Pairs) -> list[Gap]:
    """Return the dialogues whose headline scores differ, the widest gap first."""
    by_sample: dict[str, list[Verdict]] = {}
    for verdict in shared:
        by_sample.setdefault(verdict.sample, []).append(verdict)
    gaps: list[Gap] = []
    for sample, members in by_sample.items():
        terms = headline_pairs(run, members, pairs)
        if not terms:
            continue
        first = _weighted_mean(terms, pairs, 0)
        second = _weighted_mean(terms, pairs, 1)
        if first != second:
            gaps.append(Gap(sample, first, second))
    return sorted(gaps, key=lambda gap: -abs(gap.first - gap.second))


def list_differences(first: Run, second: Run) -> list[str]:
    """Return what differs between two runs in how they were measured, such as `judges`: it may explain the difference
    of their scores."""
    a = first.record.manifest
    b = second.record.manifest
    is_same = {
        "judges": a.judge == b.judge,
        "prompts": a.prompts == b.prompts,
        "versions of weft": a.weft == b.weft,
        "numbers of judgements": a.judge_repeats == b.judge_repeats,
        "datasets": a.dataset.digest == b.dataset.digest,
    }
    return [name for name, same in is_same.items() if not same]


def warn_of_differences(pairs: Iterable[tuple[Run, Run]]) -> str:
    """Return a sentence on what differs within pairs of runs whose numbers are put side by side; "" if nothing does."""
    differing = dict.fromkeys(name for first, second in pairs for name in list_differences(first, second))
    return f"The runs have different {' and '.join(differing)}: compare with care." if differing else ""


def _describe_differences(first: Run, second: Run) -> list[str]:
    """Return what differs between two runs besides the model."""
    a = first.record.manifest
    b = second.record.manifest
    differing = list_differences(first, second)
    for name, value in a.options.items():
        if name in b.options and b.options[name] != value:
            differing.append(f"{name} ({_format_option(value)}, {_format_option(b.options[name])})")
    return [f"the runs have different {name}" for name in differing]


def _format_option(value: object) -> object:
    if value == "":
        return "none"
    return value
