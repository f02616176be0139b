"""MM-Vet's released arithmetic: the mean of the judge's numbers, times 100, rounded to one decimal.

A reply that the evaluator cannot read is asked for again; after five of them it writes 0. Weft asks twice, and such an
answer has no number in either row. `nan` passes for a number there and makes every mean nan: then no cell that it is in
has an official number.
"""

from collections.abc import Mapping

from weft.benchmarks.mmvet import official_reading
from weft.benchmarks.official import Official
from weft.types import OfficialReading, Question

NAN = "nan"  # the text of a reading that is no number, and counts as one
RELEASED_DIGITS = 1


class MMVetOfficial(Official):
    """MM-Vet's arithmetic."""

    prompts_file = "mm-vet_evaluator.py"
    prompts = {"answer": "prompt"}
    settings = {"temperature": 0, "max_tokens": 3}
    published_judge = "gpt-4-0613"
    published_samples = 218
    samples_are = "questions"

    def reading(self, question: Question, text: str) -> Mapping[str, OfficialReading]:
        """Read a reply to the released prompt; nothing where the evaluator asks again."""
        if not question.text_only:
            return {}
        number = official_reading.read_number(text)
        if number is None:
            return {}
        if official_reading.is_nan(number):
            return {question.metrics[0]: OfficialReading(text=NAN)}
        return {question.metrics[0]: OfficialReading(number)}


OFFICIAL = MMVetOfficial()
