"""OpenING's released script for battles: each is fought once, and its own reading of the reply is what is stored."""

from collections.abc import Mapping

from msgspec import Struct

from weft.arena.released import SETTINGS, read_released_verdict, to_winner
from weft.arena.rubric import BATTLE
from weft.benchmarks.facts import read_facts
from weft.benchmarks.official import UNSCORED, Official
from weft.stats.battles import LEAN, Winner
from weft.types import MissingScore, OfficialReading, Question, Verdict

BY_RULE = MissingScore("the released script has no battle where somebody has no answer")
NO_WINNER = MissingScore("what is stored names no winner")


class BattleFacts(Struct, frozen=True, omit_defaults=True):
    """What is known of a battle besides its value."""

    winner: Winner | None = None  # as both stand in the data
    judge_winner: Winner | None = None  # as the judge said it, who may have seen them the other way round
    is_by_rule: bool = False  # whether it needed no judge


def read_battle_facts(verdict: Verdict) -> BattleFacts:
    return read_facts(verdict.detail, BattleFacts)


class ArenaOfficial(Official):
    settings = SETTINGS

    def reading(self, question: Question, text: str) -> Mapping[str, OfficialReading]:
        if question.text_only:
            stored = read_released_verdict(text)
        else:
            stored = None
        if stored is not None:
            return {BATTLE: OfficialReading(text=stored)}
        return {}

    def score(self, verdict: Verdict) -> float | MissingScore:
        """How far it leans to the first, from 0 to 1. Its tables count winners."""
        winner = self.winner(verdict)
        if isinstance(winner, MissingScore):
            return winner
        return (LEAN[winner] + 1) / 2

    def winner(self, verdict: Verdict) -> Winner | MissingScore:
        """Of one order: what the script stores, or what our judge says where it could not be read so."""
        facts = read_battle_facts(verdict)
        if facts.is_by_rule:
            return BY_RULE
        if verdict.reading is not None:
            return to_winner(verdict.reading.text) or NO_WINNER
        return facts.winner or UNSCORED


OFFICIAL = ArenaOfficial()
