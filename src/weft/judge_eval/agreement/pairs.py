"""A judge's verdicts beside what others say of the very same. What is left out is counted, and told."""

import statistics
from collections.abc import Mapping, Sequence

from weft.benchmarks.paired_verdicts import PairedVerdicts
from weft.errors import UserError
from weft.judge_eval.agreement.scores import Place, Said
from weft.results.run import Run
from weft.store.annotations import Annotation
from weft.store.journal import TurnRecord
from weft.store.manifest import Manifest
from weft.types import Verdict


def said_by(ratings: Sequence[Annotation]) -> Said:
    """What people in the journal say. Questions with known answers are none of it; of what one person said twice the
    later counts; several questions about one metric count as their mean."""
    every: dict[Place, dict[str, dict[str, float]]] = {}
    for rating in sorted(ratings, key=lambda one: one.created_at):
        for one in rating.verdicts if not rating.is_attention_check else ():
            if one.value is not None:
                every.setdefault((one.sample, one.turn, one.metric), {}).setdefault(rating.annotator, {})[
                    one.variant
                ] = one.value
    return {
        place: {rater: statistics.fmean(some.values()) for rater, some in by.items()} for place, by in every.items()
    }


def means(said: Said) -> dict[Place, float]:
    return {place: statistics.fmean(by.values()) for place, by in said.items()}


def place_of(verdict: Verdict) -> Place:
    return verdict.sample, verdict.turn, verdict.metric


def beside(run: Run, others: Mapping[Place, float], other: str = "people") -> tuple[PairedVerdicts, list[str]]:
    """The judge of a run and what others say, by place; and what was left out, in words. Metrics that follow from
    others are nobody's."""
    verdicts = {place_of(one): one for one in run.verdicts if one.metric not in run.benchmark.derived_metrics}
    there = [verdicts[place] for place in others if place in verdicts]
    judged = [one for one in there if one.by == "judge" and one.value is not None]
    notes = _left_out(
        there, len(others) - len(there), f"what {other} rated" if other == "people" else f"what {other} judged"
    )
    pairs = [(one, others[place_of(one)]) for one in judged]
    groups = run.groups
    clusters = {sample: run.benchmark.cluster_of(sample, some) for sample, some in groups.items()}
    manifest = run.record.manifest
    return PairedVerdicts(
        run.name, pairs, groups, clusters, manifest.judge.name, other, manifest.dataset.name, run.id
    ), notes


def _left_out(there: Sequence[Verdict], strange: int, what: str) -> list[str]:
    ruled = sum(one.by in ("rule", "failure", "person") for one in there)
    unscored = sum(one.by == "judge" and one.value is None for one in there)
    told = {
        f"of {what}, {{}} were decided by rule or are the model's failures: no judge's, and left out": ruled,
        f"of {what}, {{}} are unscored in this run, and left out": unscored,
        f"of {what}, {{}} are no part of this run, and left out": strange,
    }
    return [line.format(count) for line, count in told.items() if count]


def against(run: Run, other: Run) -> tuple[PairedVerdicts, list[str]]:
    """Two judges, over the very same replies: that of the turn, and those before it in its dialogue."""
    same_kind(run, other)
    same = same_replies(run.turns, other.turns)
    there = {(turn.sample, turn.turn) for turn in run.turns}
    asked = [one for one in other.verdicts if one.metric not in other.benchmark.derived_metrics]
    said = [one for one in asked if one.by == "judge" and one.value is not None]
    kept = {place_of(one): one.value or 0.0 for one in said if (one.sample, one.turn) in same}
    apart = sum((one.sample, one.turn) in there - same for one in said)
    if not kept:
        if apart:
            why = f"; {apart} verdicts are about replies that differ"
        else:
            why = ""
        raise UserError(
            f"{run.id} and {other.id} have no judged reply in common{why}: `weft judge {run.id} --judge JUDGE` judges its replies"
        )
    found, notes = beside(run, kept, other.record.manifest.judge.name)
    told = (
        [f"{apart} verdicts are left out: the replies that they are about differ between the two runs"] if apart else []
    )
    return found, [*told, *notes]


def same_kind(run: Run, other: Run) -> None:
    """Raises UserError where two runs have nothing that two judges could have judged."""
    a = run.record.manifest
    b = other.record.manifest
    if run.id == other.id:
        raise UserError(f"{run.id} is given twice")
    if run.benchmark.name != other.benchmark.name:
        raise UserError(f"{run.id} and {other.id} are runs of different benchmarks")
    if not run.benchmark.presentation.pairwise and a.model.name != b.model.name:
        raise UserError(
            f"{run.id} is a run of {a.model.name}, {other.id} one of {b.model.name}: judges are compared over the same "
            f"replies; `weft judge {run.id} --judge JUDGE` has those of a run judged again, and `weft compare` compares models"
        )


def is_of_same(mine: Manifest, theirs: Manifest) -> bool:
    """Whether two manifests are of one model on the same data."""
    names = [(one.benchmark.name, one.model.name) for one in (mine, theirs)]
    return names[0] == names[1] and mine.dataset.digest == theirs.dataset.digest


def same_replies(mine: Sequence[TurnRecord], theirs: Sequence[TurnRecord]) -> set[tuple[str, int]]:
    """Samples and turns whose replies, that of the turn and those before it in its dialogue, are the very same in
    both."""
    first, second = (
        {(turn.sample, turn.turn): (turn.reply.outcome, turn.reply.parts) for turn in some} for some in (mine, theirs)
    )
    same: set[tuple[str, int]] = set()
    for sample, turn in sorted(first):
        before = all((sample, at) in same for at in range(turn) if (sample, at) in first)
        if before and first[sample, turn] == second.get((sample, turn)):
            same.add((sample, turn))
    return same
