"""Pair a judge's verdicts with other scores of the same replies. What is left out is counted, and said in notes."""

import statistics
from collections.abc import Mapping, Sequence

from weft.benchmarks.paired_verdicts import PairedVerdicts
from weft.errors import UserError
from weft.judge_eval.agreement.scores import HumanScores, VerdictKey
from weft.results.run import Run, find_cluster
from weft.store.annotations import Annotation
from weft.store.journal import TurnRecord
from weft.store.manifest import Manifest
from weft.types import Verdict

TurnKey = tuple[str, int]  # sample, turn (from 0)


def collect_scores(annotations: Sequence[Annotation]) -> HumanScores:
    """By verdict and annotator, the share of full marks that was given.

    Attention checks are left out. If one person answered twice, the later answer counts; several questions about one
    metric (two orders, parts) count as their mean."""
    by_variant: dict[VerdictKey, dict[str, dict[str, float]]] = {}
    for annotation in sorted(annotations, key=lambda annotation: annotation.created_at):
        if annotation.is_attention_check:
            continue
        for verdict in annotation.verdicts:
            if verdict.value is not None:
                by_annotator = by_variant.setdefault(verdict_key(verdict), {})
                by_annotator.setdefault(annotation.annotator, {})[verdict.variant] = verdict.value
    scores: HumanScores = {}
    for key, by_annotator in by_variant.items():
        scores[key] = {annotator: statistics.fmean(values.values()) for annotator, values in by_annotator.items()}
    return scores


def mean_scores(scores: HumanScores) -> dict[VerdictKey, float]:
    """By verdict, the mean over annotators."""
    return {key: statistics.fmean(by_annotator.values()) for key, by_annotator in scores.items()}


def verdict_key(verdict: Verdict) -> VerdictKey:
    return verdict.sample, verdict.turn, verdict.metric


def pair_with_scores(
    run: Run, scores: Mapping[VerdictKey, float], other: str = "people"
) -> tuple[PairedVerdicts, list[str]]:
    """Pair the verdicts of a run's judge with other scores; return the pairs, and notes about what was left out.

    Derived metrics are not compared: no annotator rates them directly."""
    verdicts = {
        verdict_key(verdict): verdict for verdict in run.verdicts if verdict.metric not in run.benchmark.derived_metrics
    }
    common = [verdicts[key] for key in scores if key in verdicts]
    judged = [verdict for verdict in common if verdict.by == "judge" and verdict.value is not None]
    pairs = [(verdict, scores[verdict_key(verdict)]) for verdict in judged]
    if other == "people":
        subject = "the verdicts that people annotated"
    else:
        subject = f"the verdicts of {other}"
    notes = _note_left_out(common, len(scores) - len(common), subject)
    groups = run.groups
    clusters = {sample: find_cluster(run.benchmark, sample, facts) for sample, facts in groups.items()}
    manifest = run.record.manifest
    paired = PairedVerdicts(
        run.name, pairs, groups, clusters, manifest.judge.name, other, manifest.dataset.name, run.id
    )
    return paired, notes


def _note_left_out(common: Sequence[Verdict], foreign: int, subject: str) -> list[str]:
    not_judged = 0
    unscored = 0
    for verdict in common:
        if verdict.by != "judge":
            not_judged += 1
        elif verdict.value is None:
            unscored += 1
    notes: list[str] = []
    if not_judged:
        notes.append(f"{not_judged} of {subject} are left out: decided by rule or model failures, not by the judge")
    if unscored:
        notes.append(f"{unscored} of {subject} are left out: unscored in this run")
    if foreign:
        notes.append(f"{foreign} of {subject} are left out: not part of this run")
    return notes


def pair_with_run(run: Run, other: Run) -> tuple[PairedVerdicts, list[str]]:
    """Pair the verdicts of two judges over identical replies: that of the turn, and those before it in its dialogue."""
    check_comparable(run, other)
    same = find_same_replies(run.turns, other.turns)
    run_turns = {(turn.sample, turn.turn) for turn in run.turns}
    scores: dict[VerdictKey, float] = {}
    differing = 0
    for verdict in other.verdicts:
        if verdict.metric in other.benchmark.derived_metrics or verdict.by != "judge" or verdict.value is None:
            continue
        turn_key = (verdict.sample, verdict.turn)
        if turn_key in same:
            scores[verdict_key(verdict)] = verdict.value
        elif turn_key in run_turns:
            differing += 1
    if not scores:
        reason = f"; {differing} verdicts are about replies that differ" if differing else ""
        raise UserError(
            f"{run.id} and {other.id} have no judged reply in common{reason}: "
            f"`weft judge {run.id} --judge JUDGE` judges its replies"
        )
    paired, notes = pair_with_scores(run, scores, other.record.manifest.judge.name)
    if differing:
        notes.insert(0, f"{differing} verdicts are left out: their replies differ between the two runs")
    return paired, notes


def check_comparable(run: Run, other: Run) -> None:
    """Raise UserError unless two judges could have judged the same replies in both runs."""
    model = run.record.manifest.model.name
    other_model = other.record.manifest.model.name
    if run.id == other.id:
        raise UserError(f"{run.id} is given twice")
    if run.benchmark.name != other.benchmark.name:
        raise UserError(f"{run.id} and {other.id} are runs of different benchmarks")
    if not run.benchmark.presentation.pairwise and model != other_model:
        raise UserError(
            f"{run.id} is a run of {model}, {other.id} one of {other_model}: judges are compared over the same "
            f"replies; `weft judge {run.id} --judge JUDGE` judges those of a run again, and `weft compare` compares "
            "models"
        )


def is_same_model_and_data(manifest: Manifest, other: Manifest) -> bool:
    """Whether two manifests have the same benchmark, model and dataset."""
    return (
        manifest.benchmark.name == other.benchmark.name
        and manifest.model.name == other.model.name
        and manifest.dataset.digest == other.dataset.digest
    )


def find_same_replies(turns: Sequence[TurnRecord], other_turns: Sequence[TurnRecord]) -> set[TurnKey]:
    """Turns whose replies, that of the turn and all before it in its dialogue, are identical in both."""
    replies = _replies_by_turn(turns)
    other_replies = _replies_by_turn(other_turns)
    same: set[TurnKey] = set()
    for sample, turn in sorted(replies):
        earlier = [(sample, number) for number in range(turn) if (sample, number) in replies]
        if all(key in same for key in earlier) and replies[sample, turn] == other_replies.get((sample, turn)):
            same.add((sample, turn))
    return same


def _replies_by_turn(turns: Sequence[TurnRecord]) -> dict[TurnKey, object]:
    return {(turn.sample, turn.turn): (turn.reply.outcome, turn.reply.parts) for turn in turns}
