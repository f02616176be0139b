"""IMUG-Bench's released scripts (`scripts/auxiliary`). Scores are percent.

They read letters only if they stand alone, average whatever points come back, read grids by their own reader, and if an
image is missing, have the judge look at the remaining ones.
"""

from collections.abc import Mapping

from weft.benchmarks.imug import mcq, official_questions
from weft.benchmarks.imug.facts import ChoiceFacts, read_choice_facts, read_points_facts
from weft.benchmarks.imug.outputs import ERROR_PREFIX
from weft.benchmarks.official import NO_MODEL_OUTPUT, NO_SCORE, UNSCORED, LeftOut, Official
from weft.types import MissingScore, OfficialReading, Question, Verdict

UNLISTED = LeftOut("the released scripts do not list this question as a dynamic one")
NO_KEY = MissingScore("its key was not worked out")


class ImugOfficial(Official):
    """What IMUG-Bench's released scripts ask and compute."""

    prompts = official_questions.SYSTEM
    settings = official_questions.SETTINGS
    published_judge = "qwen3-vl-235b-a22b-thinking"
    published_samples = 3113

    def reading(self, question: Question, text: str) -> Mapping[str, OfficialReading]:
        """Read the share of a choice, or the mean of the points, from 0 to 5."""
        reading: OfficialReading | None = None
        if "choice" in question.metrics:
            score = official_questions.read_choice_as_released(question, text)
            if score is not None:
                reading = OfficialReading(score)
        else:
            reading = official_questions.read_points_as_released(text)
        if reading is None:
            return {}
        return {question.metrics[0]: reading}

    def score(self, verdict: Verdict) -> float | MissingScore:
        """Return the score in percent, computed in the scripts' order: other orders round differently."""
        score = super().score(verdict)
        if isinstance(score, MissingScore):
            return score
        if verdict.metric == "points":
            return 20 * score
        return 100 * score

    def find_reading(self, verdict: Verdict) -> OfficialReading | MissingScore:
        if verdict.metric == "choice" and read_choice_facts(verdict).unlisted:
            return UNLISTED
        return super().find_reading(verdict)

    def reading_without_reply(self, verdict: Verdict) -> OfficialReading | MissingScore:
        if verdict.value is not None and verdict.by == "judge" and verdict.keys:
            return NO_SCORE  # weft alone could read the judge's reply
        if verdict.metric == "choice":
            return _read_choice(verdict, read_choice_facts(verdict))
        if verdict.value is None:
            return UNSCORED
        if verdict.by == "failure":
            return NO_MODEL_OUTPUT
        points = read_points_facts(verdict).points
        return OfficialReading(sum(points) / len(points))

    def lacks_official_question(self, verdict: Verdict) -> bool:
        """Whether an image is missing and the judge was not asked about the remaining ones as the scripts ask."""
        return verdict.metric == "points" and verdict.by == "failure" and verdict.variant_reading is None


OFFICIAL = ImugOfficial()


def _read_choice(verdict: Verdict, facts: ChoiceFacts) -> OfficialReading | MissingScore:
    """Score a choice from its key and the raw reply, even if that is the client's own `ERROR:`.

    A question whose key was not worked out is left out, unless no key could give the reply a point.
    """
    key = facts.union or facts.key
    if not key:
        return NO_KEY
    if facts.dynamic and (verdict.by == "failure" or facts.response.startswith(ERROR_PREFIX)):
        if mcq.find_standalone_letters(facts.response):
            return NO_KEY
        return OfficialReading(0.0)
    if verdict.value is None and (facts.dynamic or not facts.response):
        return UNSCORED
    return OfficialReading(mcq.score_as_released(facts.response, key))
