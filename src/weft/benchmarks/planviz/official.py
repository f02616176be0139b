"""PlanViz's released scorer: tasks without an image, and replies that do not end in a digit, are in no mean, and nothing keeps a score
within its scale. Scores are shares of full marks."""

from collections.abc import Mapping

from weft.benchmarks.official import FAILED, Official
from weft.benchmarks.planviz import released, rubric
from weft.benchmarks.planviz.facts import plan_facts
from weft.types import Missing, Question, Reading, Verdict


class PlanVizOfficial(Official):
    prompts_file = "template.py"
    prompts = rubric.CONSTANTS
    published_judge = "qwen3-vl-235b-a22b-instruct"

    def reading(self, question: Question, text: str) -> Mapping[str, Reading]:
        """A reply is never asked for again: what has no score is left out."""
        return {question.metrics[0]: Reading(released.share(question, text))} if question.plain else {}

    def kept(self, verdict: Verdict) -> Reading | Missing:
        return FAILED if verdict.by == "failure" else super().kept(verdict)

    def is_unasked(self, verdict: Verdict) -> bool:
        """Where the released code shows its judge something else, about which nobody was asked."""
        if verdict.asked is not None:
            return False
        return any(map(self.is_unasked, verdict.behind)) if verdict.behind else plan_facts(verdict).elsewhere


OFFICIAL = PlanVizOfficial()
