"""PlanViz's released scorer: tasks without an image, and replies that do not end in a digit, are in no mean, and
nothing keeps a score within its scale. Scores are shares of full marks."""

from collections.abc import Mapping

from weft.benchmarks.official import NO_MODEL_OUTPUT, MissingScore, Official
from weft.benchmarks.planviz import official_reading, rubric
from weft.benchmarks.planviz.facts import read_plan_facts
from weft.types import OfficialReading, Question, Verdict


class PlanVizOfficial(Official):
    """PlanViz's arithmetic."""

    prompts_file = "template.py"
    prompts = rubric.CONSTANTS
    published_judge = "qwen3-vl-235b-a22b-instruct"
    published_samples = 360
    samples_are = "tasks"

    def reading(self, question: Question, text: str) -> Mapping[str, OfficialReading]:
        """Read a reply. The scorer never asks again: a reply without a score is left out."""
        if question.text_only:
            return {question.metrics[0]: OfficialReading(official_reading.read_share(question, text))}
        return {}

    def find_reading(self, verdict: Verdict) -> OfficialReading | MissingScore:
        if verdict.by == "failure":
            return NO_MODEL_OUTPUT
        return super().find_reading(verdict)

    def lacks_official_question(self, verdict: Verdict) -> bool:
        """Whether the released code shows its judge something else here, and that question was not asked."""
        if verdict.variant_reading is not None:
            return False
        if verdict.merged_from:
            return any(map(self.lacks_official_question, verdict.merged_from))
        return read_plan_facts(verdict).official_input_differs


OFFICIAL = PlanVizOfficial()
