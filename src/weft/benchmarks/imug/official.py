"""IMUG-Bench's released scripts (`scripts/auxiliary`): letters read one by one, points averaged as they came, grids by their own reader;
the judge looks at what is left where an image is missing. Scores are percent."""

from collections.abc import Mapping

from weft.benchmarks.imug import mcq, released
from weft.benchmarks.imug.facts import ChoiceFacts, choice_facts, points_facts
from weft.benchmarks.imug.outputs import ERROR
from weft.benchmarks.official import FAILED, UNSCORED, Official
from weft.types import Missing, Question, Reading, Verdict

UNLISTED = Missing("the released scripts do not know this question for a dynamic one")
NO_KEY = Missing("nobody worked out its key")


class ImugOfficial(Official):
    prompts = released.SYSTEM
    settings = released.SETTINGS
    published_judge = "qwen3-vl-235b-a22b-thinking"

    def reading(self, question: Question, text: str) -> Mapping[str, Reading]:
        """The share of a choice; the mean of the points, from 0 to 5."""
        is_choice = "choice" in question.metrics
        found = released.choice_as_released(question, text) if is_choice else released.points_as_released(text)
        return {} if found is None else {question.metrics[0]: Reading(found)}

    def score(self, verdict: Verdict) -> float | Missing:
        """Of a hundred, reckoned as the scripts do: a mean of fifths is not rounded as a mean of points is."""
        found = super().score(verdict)
        return found if isinstance(found, Missing) else (20 if verdict.metric == "points" else 100) * found

    def kept(self, verdict: Verdict) -> Reading | Missing:
        if verdict.metric == "choice" and choice_facts(verdict).unlisted:
            return UNLISTED
        return super().kept(verdict)

    def unread(self, verdict: Verdict) -> Reading | Missing:
        if verdict.metric == "choice":
            return _choice(verdict, choice_facts(verdict))
        if verdict.value is None or verdict.by == "failure":
            return UNSCORED if verdict.value is None else FAILED
        points = points_facts(verdict).points
        return Reading(sum(points) / len(points))

    def is_unasked(self, verdict: Verdict) -> bool:
        """A missing image, of which nobody had the rest looked at as they do."""
        return verdict.metric == "points" and verdict.by == "failure" and verdict.asked is None


OFFICIAL = ImugOfficial()


def _choice(verdict: Verdict, facts: ChoiceFacts) -> Reading | Missing:
    """A question is counted whatever was replied, the client's own `ERROR:` included; not if nobody worked out its key."""
    key = facts.union or facts.key
    if not key.strip():
        return NO_KEY
    if facts.dynamic and (verdict.by == "failure" or facts.response.startswith(ERROR)):
        return NO_KEY if mcq.official_letters(facts.response) else Reading(0.0)  # without a letter, whatever the key is
    if verdict.value is None and (facts.dynamic or not facts.response):
        return UNSCORED
    return Reading(mcq.official(facts.response, key))
