"""IMUG-Bench's released scripts (`scripts/auxiliary`): letters read one by one, points averaged as they came, grids by
their own reader; the judge looks at what is left where an image is missing. Scores are percent."""

from collections.abc import Mapping

from weft.benchmarks.imug import mcq, released
from weft.benchmarks.imug.facts import ChoiceFacts, read_choice_facts, read_points_facts
from weft.benchmarks.imug.outputs import ERROR_PREFIX
from weft.benchmarks.official import FAILED, UNSCORED, Official
from weft.types import MissingScore, OfficialReading, Question, Verdict

UNLISTED = MissingScore("the released scripts do not know this question for a dynamic one")
NO_KEY = MissingScore("nobody worked out its key")


class ImugOfficial(Official):
    prompts = released.SYSTEM
    settings = released.SETTINGS
    published_judge = "qwen3-vl-235b-a22b-thinking"

    def reading(self, question: Question, text: str) -> Mapping[str, OfficialReading]:
        """The share of a choice; the mean of the points, from 0 to 5."""
        is_choice = "choice" in question.metrics
        if is_choice:
            found = released.read_choice_as_released(question, text)
        else:
            found = released.read_points_as_released(text)
        if found is None:
            return {}
        return {question.metrics[0]: OfficialReading(found)}

    def score(self, verdict: Verdict) -> float | MissingScore:
        """Of a hundred, reckoned as the scripts do: a mean of fifths is not rounded as a mean of points is."""
        found = super().score(verdict)
        if isinstance(found, MissingScore):
            return found
        return (20 if verdict.metric == "points" else 100) * found

    def find_reading(self, verdict: Verdict) -> OfficialReading | MissingScore:
        if verdict.metric == "choice" and read_choice_facts(verdict).unlisted:
            return UNLISTED
        return super().find_reading(verdict)

    def reading_without_reply(self, verdict: Verdict) -> OfficialReading | MissingScore:
        if verdict.metric == "choice":
            return _choice(verdict, read_choice_facts(verdict))
        if verdict.value is None or verdict.by == "failure":
            if verdict.value is None:
                return UNSCORED
            return FAILED
        points = read_points_facts(verdict).points
        return OfficialReading(sum(points) / len(points))

    def lacks_official_question(self, verdict: Verdict) -> bool:
        """A missing image, of which nobody had the rest looked at as they do."""
        return verdict.metric == "points" and verdict.by == "failure" and verdict.variant_reading is None


OFFICIAL = ImugOfficial()


def _choice(verdict: Verdict, facts: ChoiceFacts) -> OfficialReading | MissingScore:
    """A question is counted whatever was replied, the client's own `ERROR:` included; not if nobody worked out its
    key."""
    key = facts.union or facts.key
    if not key.strip():
        return NO_KEY
    if facts.dynamic and (verdict.by == "failure" or facts.response.startswith(ERROR_PREFIX)):
        # without a letter, whatever the key is
        if mcq.find_standalone_letters(facts.response):
            return NO_KEY
        return OfficialReading(0.0)
    if verdict.value is None and (facts.dynamic or not facts.response):
        return UNSCORED
    return OfficialReading(mcq.score_as_released(facts.response, key))
