"""RISEBench's released arithmetic: the score of an edit from 1 to 5, and whether it is complete, by both rules.

Until 13 April 2026 an edit was complete only if appearance consistency was 5, which an edit without that question never
is. Since then such edits need only the other two. `official` follows the rule since then; the older rule has a table of
its own, beside the rows that papers printed by it.
"""

from collections.abc import Mapping, Sequence

from weft.benchmarks.official import UNSCORED, MissingScore, Official
from weft.benchmarks.risebench import official_reading
from weft.benchmarks.risebench.facts import EditRules, ReleasedScores
from weft.benchmarks.risebench.scoring import FULL, combine, list_metrics
from weft.types import OfficialReading, Question, Verdict

PROMPTS = {
    "consistency": "prompt_consist",
    "consistency spatial": "prompt_spatial_cons",
    "consistency logical, words": "prompt_logical_cons_ans",
    "consistency logical, image": "prompt_logical_cons",
    "reasoning": "prompt_reasoning",
    "reasoning, source": "prompt_reasoning_w_input",
    "reasoning spatial": "prompt_spatial_ref",
    "reasoning spatial, source": "prompt_spatial_ref_w_input",
    "reasoning spatial, image": "prompt_spatial_ref_img",
    "reasoning logical, words": "prompt_logical_txt",
    "reasoning logical, image": "prompt_logical_img",
    "reasoning logical, image alone": "prompt_logical_img_wo_q",
    "plausibility": "prompt_generation",
    "plausibility spatial": "prompt_spatial_qual",
}


class RiseOfficial(Official):
    """RISEBench's arithmetic."""

    prompts_file = "utils.py"
    prompts = PROMPTS
    settings = {"temperature": 0, "max_tokens": 4096}
    published_judge = "gpt-4.1-2025-04-14"
    published_samples = 360
    samples_are = "edits"

    def reading(self, question: Question, text: str) -> Mapping[str, OfficialReading]:
        """Read a reply. The script never asks again: the text that it keeps has its numbers, or none."""
        if not question.text_only:
            return {}
        numbers = official_reading.read_numbers(text)
        if len(numbers) == 1:
            return {question.metrics[0]: OfficialReading(float(numbers[0]))}
        return {question.metrics[0]: OfficialReading(text=" ".join(map(str, numbers)))}

    def find_reading(self, verdict: Verdict) -> OfficialReading | MissingScore:
        if verdict.by == "failure":
            return UNSCORED
        return super().find_reading(verdict)

    def reading_without_reply(self, verdict: Verdict) -> OfficialReading | MissingScore:
        """The judge's own number, on its own scale."""
        if verdict.value is None or verdict.score is None:
            return UNSCORED
        return OfficialReading(verdict.score)


OFFICIAL = RiseOfficial()


def read_edit(parts: Mapping[str, Verdict], rules: EditRules) -> ReleasedScores:
    """Return what the script makes of the replies about one edit."""
    numbers: list[float | None] = []
    failed = False
    if rules.is_consistency_free:
        numbers.append(None)
    for metric in list_metrics(rules):
        reading = OFFICIAL.find_reading(parts[metric])
        if isinstance(reading, MissingScore) or reading.failed:
            return ReleasedScores()
        own = [reading.score] if reading.score is not None else [float(word) for word in reading.text.split()]
        failed = failed or not own
        numbers += own
    if failed:
        return ReleasedScores(is_known=True)
    if len(numbers) not in (2, 3):
        return ReleasedScores(is_known=True, stops=True)
    return _score_numbers(numbers, rules)


def _score_numbers(numbers: Sequence[float | None], rules: EditRules) -> ReleasedScores:
    """Return the script's score from two or three numbers, whatever they were meant for."""
    consistency = numbers[0]
    reasoning = numbers[1] or 0.0
    plausibility = numbers[2] if len(numbers) == 3 else None
    if len(numbers) == 2:
        consistency = 4 * min(consistency or 0.0, 1.0) + 1
        reasoning = 4 * min(reasoning, 1.0) + 1
    score = combine(consistency, reasoning, plausibility, is_logical=rules.is_logical, is_free=rules.counts_as_free)
    return ReleasedScores(True, False, score, consistency, reasoning, plausibility)


def is_complete(facts: ReleasedScores, rules: EditRules, *, old_rule: bool) -> bool:
    """Whether all scores that apply are 5; by the old rule consistency always applies."""
    needed = [facts.reasoning]
    if old_rule or not rules.is_consistency_free:
        needed.append(facts.consistency)
    if not rules.is_logical:
        needed.append(facts.plausibility)
    return all(part == FULL for part in needed)
