"""OpenING's released script for battles: each is fought once, and its own reading of the reply is what is stored."""

from collections.abc import Mapping

from msgspec import Struct

from weft.arena.released import SETTINGS, as_winner, released_verdict
from weft.arena.rubric import BATTLE
from weft.benchmarks.facts import facts_of
from weft.benchmarks.official import UNSCORED, Official
from weft.stats.battles import LEAN, Winner
from weft.types import Missing, Question, Reading, Verdict

BY_RULE = Missing("the released script has no battle where somebody has no answer")
NO_WINNER = Missing("what is stored names no winner")


class BattleFacts(Struct, frozen=True, omit_defaults=True):
    """What is known of a battle besides its value."""

    winner: Winner | None = None  # as both stand in the data
    said: Winner | None = None  # as the judge said it, who may have seen them the other way round
    rule: bool = False  # whether it needed no judge


def battle_facts(verdict: Verdict) -> BattleFacts:
    return facts_of(verdict.detail, BattleFacts)


class ArenaOfficial(Official):
    settings = SETTINGS

    def reading(self, question: Question, text: str) -> Mapping[str, Reading]:
        stored = released_verdict(text) if question.plain else None
        return {BATTLE: Reading(text=stored)} if stored is not None else {}

    def score(self, verdict: Verdict) -> float | Missing:
        """How far it leans to the first, from 0 to 1. Its tables count winners."""
        winner = self.winner(verdict)
        return winner if isinstance(winner, Missing) else (LEAN[winner] + 1) / 2

    def winner(self, verdict: Verdict) -> Winner | Missing:
        """Of one order: what the script stores, or what our judge says where it could not be read so."""
        facts = battle_facts(verdict)
        if facts.rule:
            return BY_RULE
        if verdict.reading is not None:
            return as_winner(verdict.reading.text) or NO_WINNER
        return facts.winner or UNSCORED


OFFICIAL = ArenaOfficial()
