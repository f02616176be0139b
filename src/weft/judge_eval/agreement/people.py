"""People among themselves: Krippendorff's alpha, how often two of them say the same, each beside the mean of the
others, and questions whose answers were known."""

import itertools
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from weft.benchmarks.base import Benchmark
from weft.benchmarks.paired_verdicts import build_correlation_cell, build_count_cell, build_measure_cell
from weft.judge_eval.agreement.scores import Place, Said, scale_of
from weft.stats.agreement import NullableEstimate, Unit, estimate_alpha, measure_agreement
from weft.stats.intervals import estimate_mean
from weft.store.annotations import Annotation, Study
from weft.types import Cell, Row, Table
from weft.untrusted import dict_or_empty

COLUMNS = ("questions", "ratings", "raters", "alpha (ordinal)", "alpha (interval)", "same", "within a step")
EACH = (
    "ratings",
    "shared",
    "mean",
    "others",
    "Pearson",
    "Spearman",
    "MAE",
    "bias",
    "attention passed",
    "attention asked",
)
NOTE = (
    "questions: those that two or more people rated. alpha: Krippendorff's. same: how often two people gave the same, in percent of all "
    "pairs; within a step: of the scale, or the smallest difference that was given where there is no scale. Intervals resample dialogues."
)
EACH_NOTE = (
    "Each rater beside the mean of the others who rated the same (`shared`). bias: the rater minus the others. attention: how many "
    "questions with a known answer were asked, and how many of them were answered rightly."
)
CLOSE = 1e-9


def steps_of(ratings: Sequence[Annotation], said: Said) -> dict[str, float]:
    """By metric, what a step is as a share of full marks: one point of the scale; else the smallest difference between
    two ratings."""
    points: dict[str, set[tuple[float, float]]] = {}
    bare: set[str] = set()
    for one in (
        verdict
        for rating in ratings
        if not rating.is_attention_check
        for verdict in rating.verdicts
        if verdict.value is not None
    ):
        if one.score is None:
            bare.add(one.metric)
        else:
            points.setdefault(one.metric, set()).add((one.score, one.value or 0.0))
    made: dict[str, float] = {}
    for metric in {place[2] for place in said}:
        if metric not in bare:
            scale = scale_of(points.get(metric, ()))
        else:
            scale = None
        values = sorted({value for place, by in said.items() if place[2] == metric for value in by.values()})
        gaps = [b - a for a, b in itertools.pairwise(values) if b - a > CLOSE]
        if scale:
            made[metric] = 1 / (scale[1] - scale[0])
        else:
            made[metric] = min(gaps, default=0.0)
    return made


def among(
    said: Said, clusters: Mapping[str, str], metrics: Sequence[str], steps: Mapping[str, float]
) -> Iterator[Table]:
    """One table, where two people rated the same at all."""
    wanted = {"all metrics": tuple(metrics)} if len(metrics) > 1 else {}
    wanted |= {metric: (metric,) for metric in metrics}
    rows: list[Row] = []
    for name, some in wanted.items():
        mine = {place: by for place, by in said.items() if place[2] in some and len(by) > 1}
        if mine:
            rows.append(Row(name, _cells(mine, clusters, steps), kind="part"))
    if rows:
        yield Table("People among themselves", COLUMNS, tuple(rows), NOTE, 3, "mixed")


def _cells(said: Said, clusters: Mapping[str, str], steps: Mapping[str, float]) -> dict[str, Cell]:
    units: dict[str, list[Unit]] = {}
    same: dict[str, list[float]] = {}
    near: dict[str, list[float]] = {}
    for place, by in said.items():
        of = clusters.get(place[0], place[0])
        units.setdefault(of, []).append(by)
        gaps = [abs(a - b) for a, b in itertools.combinations(by.values(), 2)]
        same.setdefault(of, []).extend(float(gap <= CLOSE) for gap in gaps)
        near.setdefault(of, []).extend(float(gap <= steps[place[2]] + CLOSE) for gap in gaps)
    count = len(said)
    return {
        "questions": build_count_cell(count),
        "ratings": build_count_cell(sum(map(len, said.values()))),
        "raters": build_count_cell(len({rater for by in said.values() for rater in by})),
        "alpha (ordinal)": build_measure_cell(estimate_alpha(units, "ordinal"), count),
        "alpha (interval)": build_measure_cell(estimate_alpha(units, "interval"), count),
        "same": _percent(same),
        "within a step": _percent(near),
    }


def _percent(clusters: Mapping[str, Sequence[float]]) -> Cell:
    found = estimate_mean(clusters)
    if len(clusters) > 1:
        bounds = (found.low, found.high)
    else:
        bounds = (None, None)
    return build_measure_cell(NullableEstimate(found.value, *bounds), found.n, full=100.0, digits=1)


def each(
    said: Said, clusters: Mapping[str, str], benchmark: Benchmark, known: Mapping[str, tuple[int, int]]
) -> Iterator[Table]:
    """Each rater beside the mean of the others. `known`: of the questions with known answers, how many were passed, and
    how many given."""
    raters = sorted({rater for by in said.values() for rater in by} | set(known))
    if len(raters) < 2 and not known:
        return
    rows: list[Row] = []
    for rater in raters:
        mine = {place: by for place, by in said.items() if rater in by}
        pairs: dict[str, list[tuple[float, float]]] = {}
        for place, by in mine.items():
            others = [value for name, value in by.items() if name != rater]
            if others:
                pairs.setdefault(clusters.get(place[0], place[0]), []).append((by[rater], statistics.fmean(others)))
        found = measure_agreement(pairs)
        full = benchmark.presentation.max_score
        digits = benchmark.presentation.digits
        own = {place: by[rater] for place, by in mine.items()}
        cells = {
            "ratings": build_count_cell(len(mine)),
            "shared": build_count_cell(found.n),
            "mean": build_measure_cell(_own_mean(own, clusters), len(own), full=full, digits=digits),
            "others": build_measure_cell(found.reference, found.n, full=full, digits=digits),
            "Pearson": build_correlation_cell(found.pearson, found.n),
            "Spearman": build_correlation_cell(found.spearman, found.n),
            "MAE": build_measure_cell(found.mae, found.n, full=full, digits=digits),
            "bias": build_measure_cell(found.bias, found.n, full=full, digits=digits),
        }
        if rater in known:
            passed, given = known[rater]
            cells |= {"attention passed": build_count_cell(passed), "attention asked": build_count_cell(given)}
        rows.append(Row(rater, cells, kind="part"))
    if known:
        shown = EACH
    else:
        shown = EACH[:-2]
    yield Table("Each rater beside the others", shown, tuple(rows), EACH_NOTE, benchmark.presentation.digits, "mixed")


def _own_mean(values: Mapping[Place, float], clusters: Mapping[str, str]) -> NullableEstimate:
    if not values:
        return NullableEstimate(None)
    by_dialogue: dict[str, list[float]] = {}
    for place, value in values.items():
        by_dialogue.setdefault(clusters.get(place[0], place[0]), []).append(value)
    found = estimate_mean(by_dialogue)
    if len(by_dialogue) > 1:
        return NullableEstimate(found.value, found.low, found.high)
    return NullableEstimate(found.value)


def attention(ratings: Sequence[Annotation], studies: Sequence[Study]) -> dict[str, tuple[int, int]]:
    """By rater, how many questions with known answers were passed, and how many were given; those whose answer no study
    tells are in neither."""
    known = {
        (study.id, item): dict_or_empty(one)
        for study in studies
        for item, one in dict_or_empty(study.settings.get("known")).items()
    }
    made: dict[str, tuple[int, int]] = {}
    for rating in ratings:
        if rating.is_attention_check:
            right = known.get((rating.study, rating.item))
        else:
            right = None
        if right is not None:
            passed, given = made.get(rating.annotator, (0, 0))
            made[rating.annotator] = passed + _passed(rating, right), given + 1
    return made


def _passed(rating: Annotation, right: Mapping[str, Any]) -> bool:
    """At most so much, or these values at their places in the answer."""
    most = right.get("most")
    if isinstance(most, (int, float)):
        return all(one.value is not None and one.value <= most + CLOSE for one in rating.verdicts)
    values = cast(list[Any], right.get("values") or [])
    return bool(values) and all(_at(rating.answer, path) == value for path, value in values)


def _at(answer: Any, path: Sequence[Any]) -> Any:
    found = answer
    for key in path:
        try:
            found = found[key]
        except (KeyError, IndexError, TypeError):
            return None
    return found
