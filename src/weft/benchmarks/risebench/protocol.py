"""RISEBench's protocol: an image and a request that needs reasoning, and one image back.

A judge scores appearance consistency, reasoning and plausibility from 1 to 5; of logical edits consistency and
reasoning, 0 or 1. An edit is right (accuracy) if all that apply are full. Its score is a weighted mean
(arXiv 2504.02826).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from weft.benchmarks.base import Assessment, JudgedTurn, SampleGroups, WeightedMeans, leave_unscored, score_zero
from weft.benchmarks.edits.protocol import JudgedEdits, PartVerdicts
from weft.benchmarks.preparation import Preparation
from weft.benchmarks.presentation import Presentation
from weft.benchmarks.risebench import data, official_reading, rubric, scoring, tables
from weft.benchmarks.risebench.data import RiseGold
from weft.benchmarks.risebench.facts import EditRules, ReleasedScores, read_edit_rules
from weft.benchmarks.risebench.official import OFFICIAL, is_complete, read_edit
from weft.benchmarks.risebench.outputs import RiseOutputs
from weft.types import LoadedDataset, OfficialReading, Question, Score, Turn, Verdict
from weft.untrusted import dict_or_empty


class RisePresentation(Presentation, frozen=True):
    def describe_gold(self, gold: Any) -> list[str]:
        text = dict_or_empty(gold).get("reference_text")
        return [f"the right result: {text}"] if text else []


class RisePreparation(Preparation, frozen=True):
    def describe_data(self, dataset: LoadedDataset) -> list[str]:
        free = 0
        by_image = 0
        for sample in dataset.samples:
            gold: RiseGold = sample.turns[0].gold
            free += gold.rules.is_consistency_free
            by_image += gold.reference_image is not None
        return [
            f"{len(dataset.samples)} edits: {free} free of consistency, {by_image} with an image as the right result"
        ]


class RiseBench(JudgedEdits):
    name = "risebench"
    version = "1"
    metrics = (*scoring.JUDGED, *scoring.DERIVED)
    derived_metrics = scoring.DERIVED
    axes = ("category", "subtask")
    official = OFFICIAL
    presentation = RisePresentation(
        title="RISEBench",
        axis_names={"category": tuple(data.CATEGORIES.values())},
        max_score=100.0,
        digits=1,
        distribution_metrics=(scoring.SCORE,),
        glossary={
            "Overall": "Mean over all edits",
            "Reasoning": "The result shows what follows from the request",
            "Consistency": "Everything that the request leaves alone is as it was",
            "Plausibility": "The image is sharp and could look so",
            scoring.ACCURACY: "All scores that apply are full",
            scoring.OLD_ACCURACY: "Accuracy by the rule until 13 April 2026: edits free of consistency never count",
            scoring.SCORE: "Weighted mean of the scores, 0 to 100",
        },
    )
    preparation = RisePreparation(outputs=RiseOutputs)

    load = staticmethod(data.load)  # pyright: ignore[reportAssignmentType]
    tables = staticmethod(tables.tables)  # pyright: ignore[reportAssignmentType]

    def metrics_for(self, turn: Turn) -> tuple[str, ...]:
        gold: RiseGold = turn.gold
        return scoring.list_metrics(gold.rules)

    def questions(self, judged_turn: JudgedTurn) -> Iterable[Assessment]:
        if judged_turn.rubrics.official_prompts:
            metrics = self.metrics_for(judged_turn.turn)
            return [judged_turn.check(metrics, lambda blobs: rubric.build_released_questions(judged_turn, blobs))]
        return rubric.build_questions(judged_turn)

    def on_no_answer(self, judged_turn: JudgedTurn) -> Iterable[Assessment]:
        gold: RiseGold = judged_turn.turn.gold
        return score_zero(judged_turn, self.metrics_for(judged_turn.turn), gold.rules)

    def on_failed(self, judged_turn: JudgedTurn) -> Iterable[Assessment]:
        gold: RiseGold = judged_turn.turn.gold
        return leave_unscored(judged_turn, self.metrics_for(judged_turn.turn), gold.rules)

    def parse_text(self, question: Question, text: str) -> dict[str, Any] | None:
        """Read a reply to a released prompt, which ends with a line of text."""
        if not question.text_only or text.lstrip().startswith(("{", "```")):
            return None
        return official_reading.parse_score(text, rubric.max_score(question.gold))

    def to_scores(self, question: Question, parsed: dict[str, Any]) -> Sequence[Score]:
        (score,) = super().to_scores(question, parsed)
        return [Score(score.metric, score.value, score.reason, score.score, question.detail)]

    def derive(self, parts: PartVerdicts) -> Iterable[Verdict]:
        """Score and accuracy follow from the scores of one edit."""
        first = next(iter(parts.values()))
        rules = read_edit_rules(first)
        if not set(scoring.list_metrics(rules)) <= set(parts):
            return
        keys = tuple(key for part in parts.values() for key in part.keys)
        by = "failure" if first.by == "failure" else "rule"
        facts = read_edit(parts, rules)
        values = _compute_values(parts, rules)
        readings = _build_readings(facts, rules)
        for metric in scoring.DERIVED:
            value, reason = values[metric]
            yield Verdict(
                first.sample,
                first.turn,
                metric,
                value,
                reason,
                by=by,
                keys=keys,
                detail=facts if metric == scoring.SCORE else None,
                variant=first.variant,
                reading=readings[metric],
            )

    def headline(self, verdicts: Sequence[Verdict], groups: SampleGroups) -> WeightedMeans:
        """Accuracy over all edits, by the rule since 13 April 2026."""
        return [(1.0, [verdict for verdict in verdicts if verdict.metric == scoring.ACCURACY])]


def _compute_values(parts: PartVerdicts, rules: EditRules) -> dict[str, tuple[float | None, str]]:
    """Return the strict value of each derived metric, as a share, with its reason."""
    scores: dict[str, float] = {}
    for metric, part in parts.items():
        if part.value is not None:
            scores[metric] = 1 + 4 * part.value
    words = ", ".join(f"{metric} {score:g}" for metric, score in scores.items())
    if any(part.by == "failure" for part in parts.values()):
        return dict.fromkeys(scoring.DERIVED, (0.0, "there is no image"))
    missing = [metric for metric in scoring.list_metrics(rules) if metric not in scores]
    if missing:
        return dict.fromkeys(scoring.DERIVED, (None, f"{' and '.join(missing)} could not be scored"))
    score = scoring.combine(
        scores.get(scoring.CONSISTENCY),
        scores[scoring.REASONING],
        scores.get(scoring.PLAUSIBILITY),
        is_logical=rules.is_logical,
        is_free=rules.is_consistency_free,
    )
    all_full = all(value == scoring.FULL for value in scores.values())
    return {
        scoring.SCORE: (None if score is None else (score - 1) / 4, words),
        scoring.ACCURACY: (float(all_full), words),
        scoring.OLD_ACCURACY: (float(all_full and not rules.is_consistency_free), words),
    }


def _build_readings(facts: ReleasedScores, rules: EditRules) -> Mapping[str, OfficialReading | None]:
    """Return what the released script stores of each derived metric, as a share."""
    if not facts.is_known or facts.stops:
        return dict.fromkeys(scoring.DERIVED)
    score = None if facts.score is None else (facts.score - 1) / 4
    return {
        scoring.SCORE: OfficialReading(score),
        scoring.ACCURACY: OfficialReading(float(is_complete(facts, rules, old_rule=False))),
        scoring.OLD_ACCURACY: OfficialReading(float(is_complete(facts, rules, old_rule=True))),
    }
