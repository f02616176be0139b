"""Agreement among annotators: Krippendorff's alpha, how often two give the same score, each annotator against the mean
of the others, and attention checks."""

import itertools
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from weft.benchmarks.base import Benchmark
from weft.benchmarks.paired_verdicts import build_correlation_cell, build_count_cell, build_measure_cell
from weft.judge_eval.agreement.scores import HumanScores, infer_scale
from weft.stats.agreement import NullableEstimate, Unit, estimate_alpha, measure_agreement
from weft.stats.intervals import estimate_mean
from weft.store.annotations import Annotation, Study
from weft.types import Cell, Row, Table
from weft.untrusted import dict_or_empty

COLUMNS = ("questions", "annotations", "annotators", "alpha (ordinal)", "alpha (interval)", "same", "within a step")
ANNOTATOR_COLUMNS = ("annotations", "shared", "mean", "others", "Pearson", "Spearman", "MAE", "bias")
ATTENTION_COLUMNS = ("attention passed", "attention asked")
NOTE = (
    "questions: those that two or more people answered. alpha: Krippendorff's. same: how often two people gave the "
    "same score, in percent of all pairs; within a step: at most one step of the scale apart (without a scale, the "
    "smallest difference that occurs). Intervals are by dialogue."
)
ANNOTATOR_NOTE = (
    "Each annotator against the mean of the others who answered the same questions (`shared`). bias: the annotator "
    "minus the others. attention: how many attention checks were asked, and how many of them were passed."
)
TOLERANCE = 1e-9


def find_scale_steps(annotations: Sequence[Annotation], scores: HumanScores) -> dict[str, float]:
    """By metric, one step of its scale as a share of full marks; without a scale, the smallest difference between two
    scores."""
    points, without_score = _collect_points(annotations)
    values: dict[str, set[float]] = {}
    for (_, _, metric), by_annotator in scores.items():
        values.setdefault(metric, set()).update(by_annotator.values())
    steps: dict[str, float] = {}
    for metric, metric_values in values.items():
        scale = None
        if metric not in without_score:
            scale = infer_scale(points.get(metric, ()))
        if scale:
            low, high = scale
            steps[metric] = 1 / (high - low)
        else:
            steps[metric] = _smallest_gap(metric_values)
    return steps


def _collect_points(annotations: Sequence[Annotation]) -> tuple[dict[str, set[tuple[float, float]]], set[str]]:
    """By metric, the pairs of score and share that people gave; and the metrics with a share that has no score."""
    points: dict[str, set[tuple[float, float]]] = {}
    without_score: set[str] = set()
    for annotation in annotations:
        if annotation.is_attention_check:
            continue
        for verdict in annotation.verdicts:
            if verdict.value is None:
                continue
            if verdict.score is None:
                without_score.add(verdict.metric)
            else:
                points.setdefault(verdict.metric, set()).add((verdict.score, verdict.value))
    return points, without_score


def _smallest_gap(values: set[float]) -> float:
    gaps = [high - low for low, high in itertools.pairwise(sorted(values))]
    return min((gap for gap in gaps if gap > TOLERANCE), default=0.0)


def build_people_tables(
    scores: HumanScores, clusters: Mapping[str, str], metrics: Sequence[str], steps: Mapping[str, float]
) -> Iterator[Table]:
    """Yield one table of agreement among annotators, or none where no question was answered by two."""
    groups: dict[str, Sequence[str]] = {}
    if len(metrics) > 1:
        groups["all metrics"] = metrics
    for metric in metrics:
        groups[metric] = (metric,)
    rows: list[Row] = []
    for label, included in groups.items():
        shared: HumanScores = {}
        for key, by_annotator in scores.items():
            if key[2] in included and len(by_annotator) > 1:
                shared[key] = by_annotator
        if shared:
            rows.append(Row(label, _people_cells(shared, clusters, steps), kind="part"))
    if rows:
        yield Table("Agreement among annotators", COLUMNS, tuple(rows), NOTE, 3, "mixed")


def _people_cells(scores: HumanScores, clusters: Mapping[str, str], steps: Mapping[str, float]) -> dict[str, Cell]:
    units: dict[str, list[Unit]] = {}
    same: dict[str, list[float]] = {}
    within_step: dict[str, list[float]] = {}
    annotators: set[str] = set()
    annotations = 0
    for (sample, _, metric), by_annotator in scores.items():
        cluster = clusters.get(sample, sample)
        units.setdefault(cluster, []).append(by_annotator)
        cluster_same = same.setdefault(cluster, [])
        cluster_within = within_step.setdefault(cluster, [])
        for first, second in itertools.combinations(by_annotator.values(), 2):
            gap = abs(first - second)
            cluster_same.append(float(gap <= TOLERANCE))
            cluster_within.append(float(gap <= steps[metric] + TOLERANCE))
        annotators.update(by_annotator)
        annotations += len(by_annotator)
    count = len(scores)
    return {
        "questions": build_count_cell(count),
        "annotations": build_count_cell(annotations),
        "annotators": build_count_cell(len(annotators)),
        "alpha (ordinal)": build_measure_cell(estimate_alpha(units, "ordinal"), count),
        "alpha (interval)": build_measure_cell(estimate_alpha(units, "interval"), count),
        "same": _percent_cell(same),
        "within a step": _percent_cell(within_step),
    }


def _percent_cell(clusters: Mapping[str, Sequence[float]]) -> Cell:
    n = sum(map(len, clusters.values()))
    return build_measure_cell(_nullable_mean(clusters), n, full=100.0, digits=1)


def _nullable_mean(clusters: Mapping[str, Sequence[float]]) -> NullableEstimate:
    """A mean; with one cluster alone there is no interval."""
    mean = estimate_mean(clusters)
    if len(clusters) > 1:
        return NullableEstimate(mean.value, mean.low, mean.high)
    return NullableEstimate(mean.value)


def build_annotator_tables(
    scores: HumanScores, clusters: Mapping[str, str], benchmark: Benchmark, checks: Mapping[str, tuple[int, int]]
) -> Iterator[Table]:
    """Yield one table of each annotator against the mean of the others.

    `checks` has, by annotator, how many attention checks were passed and how many were asked. A single annotator
    without attention checks gets no table."""
    names = set(checks)
    for by_annotator in scores.values():
        names.update(by_annotator)
    if len(names) < 2 and not checks:
        return
    rows: list[Row] = []
    for annotator in sorted(names):
        cells = _annotator_cells(annotator, scores, clusters, benchmark)
        if annotator in checks:
            passed, asked = checks[annotator]
            cells["attention passed"] = build_count_cell(passed)
            cells["attention asked"] = build_count_cell(asked)
        rows.append(Row(annotator, cells, kind="part"))
    columns = ANNOTATOR_COLUMNS
    if checks:
        columns += ATTENTION_COLUMNS
    title = "Each annotator against the others"
    yield Table(title, columns, tuple(rows), ANNOTATOR_NOTE, benchmark.presentation.digits, "mixed")


def _annotator_cells(
    annotator: str, scores: HumanScores, clusters: Mapping[str, str], benchmark: Benchmark
) -> dict[str, Cell]:
    own: dict[str, list[float]] = {}
    pairs: dict[str, list[tuple[float, float]]] = {}
    count = 0
    for (sample, _, _), by_annotator in scores.items():
        if annotator not in by_annotator:
            continue
        count += 1
        cluster = clusters.get(sample, sample)
        own.setdefault(cluster, []).append(by_annotator[annotator])
        others = [value for name, value in by_annotator.items() if name != annotator]
        if others:
            pairs.setdefault(cluster, []).append((by_annotator[annotator], statistics.fmean(others)))
    agreement = measure_agreement(pairs)
    n = agreement.n
    full = benchmark.presentation.max_score
    digits = benchmark.presentation.digits
    mean = NullableEstimate(None)
    if own:
        mean = _nullable_mean(own)
    return {
        "annotations": build_count_cell(count),
        "shared": build_count_cell(n),
        "mean": build_measure_cell(mean, count, full=full, digits=digits),
        "others": build_measure_cell(agreement.reference, n, full=full, digits=digits),
        "Pearson": build_correlation_cell(agreement.pearson, n),
        "Spearman": build_correlation_cell(agreement.spearman, n),
        "MAE": build_measure_cell(agreement.mae, n, full=full, digits=digits),
        "bias": build_measure_cell(agreement.bias, n, full=full, digits=digits),
    }


def count_attention_checks(annotations: Sequence[Annotation], studies: Sequence[Study]) -> dict[str, tuple[int, int]]:
    """By annotator, how many attention checks were passed, and how many were asked. Checks whose expected answer no
    study has are not counted."""
    expected: dict[tuple[str, str], dict[str, Any]] = {}
    for study in studies:
        for item, check in dict_or_empty(study.settings.get("known")).items():
            expected[study.id, item] = dict_or_empty(check)
    counts: dict[str, tuple[int, int]] = {}
    for annotation in annotations:
        check = expected.get((annotation.study, annotation.item))
        if check is None or not annotation.is_attention_check:
            continue
        passed, asked = counts.get(annotation.annotator, (0, 0))
        counts[annotation.annotator] = (passed + _is_passed(annotation, check), asked + 1)
    return counts


def _is_passed(annotation: Annotation, check: Mapping[str, Any]) -> bool:
    """Whether every score is at most what is allowed, or the answer has the expected values."""
    most = check.get("most")
    if isinstance(most, (int, float)):
        return all(verdict.value is not None and verdict.value <= most + TOLERANCE for verdict in annotation.verdicts)
    values = cast(list[Any], check.get("values") or [])
    return bool(values) and all(_value_at(annotation.answer, path) == value for path, value in values)


def _value_at(answer: Any, path: Sequence[Any]) -> Any:
    """The value at a path of an answer, None where there is none."""
    value = answer
    for key in path:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return None
    return value
