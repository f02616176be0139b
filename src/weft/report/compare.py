"""Two runs on the same dialogues: the main number, each metric, and each metric in each group of the benchmark's first
axis, as differences of paired verdicts.

Only items that both runs have scored are paired; what one of them lacks is counted and told. Values are on the scale of
the benchmark's paper: `full` is full marks, and `digits` are its decimals."""

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from weft.errors import UserError
from weft.results.run import Run, headline_terms
from weft.stats.paired import Difference, compare_paired, holm_adjust
from weft.types import Verdict

Terms = Sequence[tuple[float, Sequence[Verdict]]]
VerdictKey = tuple[str, int, str]  # sample, turn, metric


class ComparisonRow(Struct, frozen=True):
    name: str
    first: float
    second: float
    difference: Difference
    corrected_p: float  # p after Holm over all rows


class Gap(Struct, frozen=True):
    """A dialogue, and how the two runs did in it."""

    sample: str
    first: float
    second: float


class Comparison(Struct, frozen=True):
    names: tuple[str, str]
    rows: list[ComparisonRow]
    gaps: list[Gap]
    unpaired: int
    notes: list[str]
    max_score: float = 1.0
    digits: int = 3


def compare(first: Run, second: Run, most: int = 10, names: tuple[str, str] | None = None) -> Comparison:
    if first.benchmark.name != second.benchmark.name:
        raise UserError(f"{first.id} and {second.id} are runs of different benchmarks")
    if first.id == second.id:
        raise UserError(f"{first.id} is given twice")
    if first.benchmark.presentation.pairwise:
        raise UserError(
            f"{first.id} and {second.id} are of battles, which do not compare so; `weft arena agree {first.id} {second.id}` does"
        )
    ours, theirs = (_scored(run) for run in (first, second))
    common = [item for item in ours if item in theirs]
    if not common:
        raise UserError(f"{first.id} and {second.id} have no scored turn in common")
    values = {item: (100 * _value(ours[item]), 100 * _value(theirs[item])) for item in common}
    verdicts = [ours[item][0] for item in common]
    groups = first.groups
    if first.benchmark.axes:
        axis = first.benchmark.axes[0]
    else:
        axis = ""
    wanted: list[tuple[str, Terms]] = [("main number", headline_terms(first.benchmark, verdicts, groups))]
    for metric in first.benchmark.metrics:
        mine = [verdict for verdict in verdicts if verdict.metric == metric]
        wanted.append((metric, [(1.0, mine)]))
        parts = sorted({groups[verdict.sample].get(axis, "") for verdict in mine} - {""})
        wanted += [
            (f"{metric}, {name}", [(1.0, [v for v in mine if groups[v.sample].get(axis) == name])]) for name in parts
        ]
    of = {sample: first.benchmark.cluster_of(sample, some) for sample, some in groups.items()}
    found = [(what, terms, _difference(terms, values, of)) for what, terms in wanted]
    kept = [(what, terms, one) for what, terms, one in found if one is not None]
    corrected = holm_adjust([one.p for _, _, one in kept])
    full = first.benchmark.presentation.max_score
    digits = first.benchmark.presentation.digits
    rows = [
        ComparisonRow(
            what,
            full / 100 * _mean(terms, values, 0),
            full / 100 * _mean(terms, values, 1),
            _scaled(one, full / 100),
            p,
        )
        for (what, terms, one), p in zip(kept, corrected, strict=True)
    ]
    gaps = [
        Gap(gap.sample, full / 100 * gap.first, full / 100 * gap.second)
        for gap in _gaps(first, verdicts, values)[:most]
    ]
    unpaired = len({_item(v) for run in (first, second) for v in run.verdicts}) - len(common)
    return Comparison(names or (first.name, second.name), rows, gaps, unpaired, _notes(first, second), full, digits)


def _scored(run: Run) -> dict[VerdictKey, list[Verdict]]:
    """What is scored; of runs that are taken together over their seeds, several verdicts of one item."""
    made: dict[VerdictKey, list[Verdict]] = {}
    for verdict in run.verdicts:
        if verdict.value is not None:
            made.setdefault(_item(verdict), []).append(verdict)
    return made


def _value(verdicts: Sequence[Verdict]) -> float:
    return sum(verdict.value or 0.0 for verdict in verdicts) / len(verdicts)


def _item(verdict: Verdict) -> VerdictKey:
    return verdict.sample, verdict.turn, verdict.metric


def _difference(
    terms: Terms, values: Mapping[VerdictKey, tuple[float, float]], of: Mapping[str, str]
) -> Difference | None:
    """`of`: what each sample belongs to."""
    made: list[tuple[float, dict[str, list[float]]]] = []
    for weight, verdicts in terms:
        clusters: dict[str, list[float]] = {}
        for verdict in verdicts:
            a, b = values[_item(verdict)]
            clusters.setdefault(of[verdict.sample], []).append(a - b)
        made.append((weight, clusters))
    return compare_paired(made)


def _scaled(one: Difference, by: float) -> Difference:
    low, high = (None if bound is None else by * bound for bound in (one.low, one.high))
    return replace(one, value=by * one.value, low=low, high=high)


def _mean(terms: Terms, values: Mapping[VerdictKey, tuple[float, float]], side: int) -> float:
    return sum(weight * sum(values[_item(v)][side] for v in verdicts) / len(verdicts) for weight, verdicts in terms)


def _gaps(run: Run, verdicts: Sequence[Verdict], values: Mapping[VerdictKey, tuple[float, float]]) -> list[Gap]:
    """Dialogues by their main number, the widest gap first."""
    by_sample: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        by_sample.setdefault(verdict.sample, []).append(verdict)
    gaps: list[Gap] = []
    for sample, some in by_sample.items():
        terms = headline_terms(run.benchmark, some, run.groups)
        if terms:
            gaps.append(Gap(sample, _mean(terms, values, 0), _mean(terms, values, 1)))
    return sorted((gap for gap in gaps if gap.first != gap.second), key=lambda gap: -abs(gap.first - gap.second))


def _option(value: object) -> object:
    if value == "":
        return "none"
    return value


def _notes(first: Run, second: Run) -> list[str]:
    """What differs besides the model, and so may be what makes the difference."""
    a = first.record.manifest
    b = second.record.manifest
    same = {
        "judges": a.judge == b.judge,
        "prompts": a.prompts == b.prompts,
        "versions of weft": a.weft == b.weft,
        "numbers of judgements": a.judge_repeats == b.judge_repeats,
        "datasets": a.dataset.digest == b.dataset.digest,
    }
    differing = [name for name, alike in same.items() if not alike]
    ours = a.options
    theirs = b.options
    apart = [name for name in ours if name in theirs and ours[name] != theirs[name]]
    differing += [f"{name} ({_option(ours[name])}, {_option(theirs[name])})" for name in apart]
    return [f"the runs have different {name}" for name in differing]
