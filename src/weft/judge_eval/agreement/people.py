"""People among themselves: Krippendorff's alpha, how often two of them say the same, each beside the mean of the others, and questions
whose answers were known."""

import itertools
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from weft.benchmarks.agreed import correlation, counted, measured
from weft.benchmarks.base import Benchmark
from weft.judge_eval.agreement.scores import Place, Said, scale_of
from weft.stats.agreement import Measured, Unit, agreement, alpha_between
from weft.stats.intervals import mean
from weft.store.annotations import Rating, Study
from weft.types import Cell, Row, Table
from weft.untrusted import fields

COLUMNS = ("questions", "ratings", "raters", "alpha (ordinal)", "alpha (interval)", "same", "within a step")
EACH = ("ratings", "shared", "mean", "others", "Pearson", "Spearman", "MAE", "bias", "attention passed", "attention asked")
NOTE = (
    "questions: those that two or more people rated. alpha: Krippendorff's. same: how often two people gave the same, in percent of all "
    "pairs; within a step: of the scale, or the smallest difference that was given where there is no scale. Intervals resample dialogues."
)
EACH_NOTE = (
    "Each rater beside the mean of the others who rated the same (`shared`). bias: the rater minus the others. attention: how many "
    "questions with a known answer were asked, and how many of them were answered rightly."
)
CLOSE = 1e-9


def steps_of(ratings: Sequence[Rating], said: Said) -> dict[str, float]:
    """By metric, what a step is as a share of full marks: one point of the scale; else the smallest difference between two ratings."""
    points: dict[str, set[tuple[float, float]]] = {}
    bare: set[str] = set()
    for one in (verdict for rating in ratings if not rating.attention for verdict in rating.verdicts if verdict.value is not None):
        if one.score is None:
            bare.add(one.metric)
        else:
            points.setdefault(one.metric, set()).add((one.score, one.value or 0.0))
    made: dict[str, float] = {}
    for metric in {place[2] for place in said}:
        scale = scale_of(points.get(metric, ())) if metric not in bare else None
        values = sorted({value for place, by in said.items() if place[2] == metric for value in by.values()})
        gaps = [b - a for a, b in itertools.pairwise(values) if b - a > CLOSE]
        made[metric] = 1 / (scale[1] - scale[0]) if scale else min(gaps, default=0.0)
    return made


def among(said: Said, clusters: Mapping[str, str], metrics: Sequence[str], steps: Mapping[str, float]) -> Iterator[Table]:
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
        "questions": counted(count),
        "ratings": counted(sum(map(len, said.values()))),
        "raters": counted(len({rater for by in said.values() for rater in by})),
        "alpha (ordinal)": measured(alpha_between(units, "ordinal"), count),
        "alpha (interval)": measured(alpha_between(units, "interval"), count),
        "same": _percent(same),
        "within a step": _percent(near),
    }


def _percent(clusters: Mapping[str, Sequence[float]]) -> Cell:
    found = mean(clusters)
    bounds = (found.low, found.high) if len(clusters) > 1 else (None, None)
    return measured(Measured(found.value, *bounds), found.n, full=100.0, digits=1)


def each(said: Said, clusters: Mapping[str, str], benchmark: Benchmark, known: Mapping[str, tuple[int, int]]) -> Iterator[Table]:
    """Each rater beside the mean of the others. `known`: of the questions with known answers, how many were passed, and how many given."""
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
        found, full, digits = agreement(pairs), benchmark.presentation.max_score, benchmark.presentation.digits
        own = {place: by[rater] for place, by in mine.items()}
        cells = {
            "ratings": counted(len(mine)),
            "shared": counted(found.n),
            "mean": measured(_own_mean(own, clusters), len(own), full=full, digits=digits),
            "others": measured(found.truth, found.n, full=full, digits=digits),
            "Pearson": correlation(found.pearson, found.n),
            "Spearman": correlation(found.spearman, found.n),
            "MAE": measured(found.mae, found.n, full=full, digits=digits),
            "bias": measured(found.bias, found.n, full=full, digits=digits),
        }
        if rater in known:
            passed, given = known[rater]
            cells |= {"attention passed": counted(passed), "attention asked": counted(given)}
        rows.append(Row(rater, cells, kind="part"))
    shown = EACH if known else EACH[:-2]
    yield Table("Each rater beside the others", shown, tuple(rows), EACH_NOTE, benchmark.presentation.digits, "mixed")


def _own_mean(values: Mapping[Place, float], clusters: Mapping[str, str]) -> Measured:
    if not values:
        return Measured(None)
    by_dialogue: dict[str, list[float]] = {}
    for place, value in values.items():
        by_dialogue.setdefault(clusters.get(place[0], place[0]), []).append(value)
    found = mean(by_dialogue)
    return Measured(found.value, found.low, found.high) if len(by_dialogue) > 1 else Measured(found.value)


def attention(ratings: Sequence[Rating], studies: Sequence[Study]) -> dict[str, tuple[int, int]]:
    """By rater, how many questions with known answers were passed, and how many were given; those whose answer no study tells are in
    neither."""
    known = {(study.id, item): fields(one) for study in studies for item, one in fields(study.settings.get("known")).items()}
    made: dict[str, tuple[int, int]] = {}
    for rating in ratings:
        right = known.get((rating.study, rating.item)) if rating.attention else None
        if right is not None:
            passed, given = made.get(rating.rater, (0, 0))
            made[rating.rater] = passed + _passed(rating, right), given + 1
    return made


def _passed(rating: Rating, right: Mapping[str, Any]) -> bool:
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
