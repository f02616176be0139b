"""Comprehension turns: at most one question a dialogue, about one of its images, as in WEAVE-100k.

A writer sees one image and asks for a caption, a number, a relation or some knowledge. A second model sees the same
image, the question and the answer, and nothing of how the image was made; what it does not confirm is left out.
"""

from collections.abc import Mapping
from random import Random
from typing import Any

from msgspec.structs import replace

from weft.building.context import Context
from weft.building.draft import Draft, DraftTurn, Row
from weft.building.gates.choose import GateOptions, has_level
from weft.building.gates.rules import find_draft_problem, find_text_problem
from weft.building.recipe import Dropped
from weft.building.references import renumber_text
from weft.types import Image, Text
from weft_recipes.schemas import CHECK_SCHEMA, TEXT, object_of

KINDS: Mapping[str, tuple[int, str]] = {  # kind -> its weight, what the writer is told
    "caption": (3, "that asks for a description; the answer says in one or two sentences what can be seen"),
    "count": (3, "about how many there are of something that can be counted for certain; the answer is short"),
    "relation": (
        3,
        "about how things stand to each other, such as what is left of or behind what; the answer is short",
    ),
    "knowledge": (1, "that needs some common knowledge about what can be seen; the answer is short and certain"),
}
QUESTION = """You see Image #1. Write one question about it in `question`, {kind}. Name the image as Image #1 in the \
question, and put the answer in `answer`. The answer must be certain from the image, must not be yes or no, and must \
not stand in the question."""
CHECK_ANSWER = """You see Image #1. A question about it, and an answer:

{question}
{answer}

Score in `asked_score` from 0 (wrong) to 10 (right and complete) whether the answer is right. Say in `reasoning` what \
you see, before you score."""
QUESTION_SCHEMA = object_of(question=TEXT, answer=TEXT)


class Comprehension:
    """Asks the question, and has it checked. A subclass may word it differently."""

    def question_prompt(self, number: int, kind: str) -> str:
        return QUESTION.format(kind=KINDS[kind][1])

    def check_prompt(self, question: str, answer: str) -> str:
        return CHECK_ANSWER.format(question=question, answer=answer)

    async def add(self, row: Row, context: Context, options: GateOptions) -> Row:
        """Return the row with a question at its end, or without one if it cannot be used."""
        draft = row.draft
        if draft is None:
            return row
        rng = Random(f"question {row.number}")
        kind = rng.choices(list(KINDS), [weight for weight, _ in KINDS.values()])[0]
        number = rng.randint(1, len(draft.images))
        image = draft.images[number - 1]
        try:
            question = await context.write(
                "writer",
                self.question_prompt(row.number, kind),
                QUESTION_SCHEMA,
                images=[image],
                task="question",
                material={"seed": (Text(str(row.number)),), "kind": (Text(kind),), "image": (image,)},
            )
        except Dropped:
            return replace(row, counts={**row.counts, "questions lost": 1})
        text = renumber_text(question["question"], {1: number})
        turn = DraftTurn(text, "question", answer=question["answer"])
        asked = replace(draft, turns=(*draft.turns, turn))
        is_broken = has_level(options, "rules") and find_problem(question, asked)
        if is_broken or not await self._is_right(question, image, context, options):
            return replace(row, counts={**row.counts, "questions lost": 1})
        return replace(row, draft=asked, counts={**row.counts, "questions": 1, f"questions: {kind}": 1})

    async def _is_right(
        self, question: Mapping[str, str], image: Image, context: Context, options: GateOptions
    ) -> bool:
        if not has_level(options, "judge") or not context.has("checker"):
            return True
        material: dict[str, Any] = {
            "question": (Text(question["question"]),),
            "answer": (Text(question["answer"]),),
            "image": (image,),
        }
        prompt = self.check_prompt(question["question"], question["answer"])
        try:
            verdict = await context.write(
                "checker", prompt, CHECK_SCHEMA, images=[image], task="check answer", material=material
            )
        except Dropped:
            return False
        return verdict["asked_score"] >= options.least_score


def find_problem(question: Mapping[str, str], asked: Draft) -> str:
    """Return what is wrong with a question, by itself and in its dialogue; empty if nothing is."""
    return find_text_problem(question["question"], images=1, needs=(1,)) or find_draft_problem(asked)
