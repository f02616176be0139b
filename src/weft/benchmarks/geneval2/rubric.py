"""The questions about an image: one for each atom, of which the probability of the right answer counts. A judge that
reads sees the question alone; the schema is for programs, and no model is asked to fill it.

Material: `output`, `accepted`.
"""

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from weft.benchmarks.base import JudgedTurn
from weft.benchmarks.facts import read_facts
from weft.benchmarks.geneval2.data import AtomGold, AtomQuestion
from weft.benchmarks.prompts import fence, fill_slots, object_schema
from weft.calls.structured_output import UnusableReply
from weft.judges.tokens import Token, find_probability, read_tokens
from weft.types import Question, Score, Text, Verdict

AM = "am"
OTHER = "another word"  # stands for what is not accepted, where a judge is not a model
WORDS_REFUSED = (
    "it gives words, and GenEval 2 takes the probability of an answer: name a judge whose server gives "
    "log-probabilities, --judge logprobs/NAME@URL"
)


class AtomFacts(Struct, frozen=True, omit_defaults=True):
    """Which atom a verdict is about."""

    number: int = 0
    skill: str = ""


def build_questions(judged_turn: JudgedTurn) -> list[Question]:
    """Return a question for each atom."""
    return [_build_question(judged_turn, *each) for each in list_atoms(judged_turn)]


def list_atoms(judged_turn: JudgedTurn) -> Iterable[tuple[AtomQuestion, str, AtomFacts]]:
    """Yield the questions about an image, each with the variant and the facts of its verdict."""
    gold: AtomGold = judged_turn.turn.gold
    for number, question in enumerate(gold.questions, 1):
        yield question, f"{number} {question.skill}", AtomFacts(number, question.skill)


def _build_question(judged_turn: JudgedTurn, asked: AtomQuestion, variant: str, facts: AtomFacts) -> Question:
    slots = {"picture": [judged_turn.image, Text("\n")], "question": fence([Text(asked.text)], "the question")}
    entry = {
        "token": {"type": "string", "enum": [*asked.accepted, OTHER]},
        "logprob": {"type": "number", "minimum": -10, "maximum": 0},
    }
    return judged_turn.ask(
        AM,
        fill_slots(judged_turn.rubrics.texts["answer"], slots),
        object_schema(tokens={"type": "array", "items": object_schema(**entry), "minItems": 1}),
        material={"output": (judged_turn.image,), "accepted": tuple(map(Text, asked.accepted))},
        gold=asked,
        detail=facts,
        variant=variant,
        text_only=True,
    )


def parse_tokens(text: str) -> dict[str, Any]:
    """Parse a reply. Raises UnusableReply for words: no number is made of them."""
    tokens = read_tokens(text)
    if tokens is None:
        raise UnusableReply(WORDS_REFUSED, ask_again=False)
    return {"tokens": tokens}


def build_score(question: Question, tokens: tuple[Token, ...]) -> Score:
    """Return the probability of the right answer. One that is not among the tokens has less than the least of them,
    and counts as 0."""
    accepted = question.gold.accepted
    try:
        probability = find_probability(tokens, accepted)
    except ValueError as error:
        raise UnusableReply(str(error), ask_again=False) from None
    best = max(tokens, key=lambda token: token.logprob).token.strip()
    reason = f"{question.gold.text} {question.gold.answer}: "
    if probability is None:
        reason += f"not among the {len(tokens)} likeliest answers, of which the first is {best[:40]}"
        return Score(AM, 0.0, reason, 0.0, question.detail)
    return Score(AM, probability, f"{reason}{probability:.3f}; likeliest: {best[:40]}", probability, question.detail)


def find_skill(verdict: Verdict) -> str:
    return read_facts(verdict.detail, AtomFacts).skill


def find_number(verdict: Verdict) -> int:
    return read_facts(verdict.detail, AtomFacts).number
