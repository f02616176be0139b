"""OpenING's released script for battles: it judges each once, and stores its own reading of the judge's reply."""

from collections.abc import Mapping

from msgspec import Struct

from weft.arena.official_reading import SETTINGS, read_released_verdict, to_winner
from weft.arena.rubric import BATTLE
from weft.benchmarks.facts import read_facts
from weft.benchmarks.official import UNSCORED, LeftOut, MissingScore, Official
from weft.stats.battles import LEAN, Winner
from weft.types import OfficialReading, Question, Verdict

BY_RULE = LeftOut("the released script has no battle where somebody has no answer")
NO_WINNER = MissingScore("what is stored names no winner")


class BattleFacts(Struct, frozen=True, omit_defaults=True):
    """The `detail` of a battle's verdict."""

    winner: Winner | None = None  # by the models' places in the sample
    judge_winner: Winner | None = None  # as the judge said it, who may have seen the two in the other order
    is_by_rule: bool = False  # whether it was decided without a judge


def read_battle_facts(verdict: Verdict) -> BattleFacts:
    return read_facts(verdict.detail, BattleFacts)


class ArenaOfficial(Official):
    """OpenING's arithmetic for battles."""

    settings = SETTINGS

    def reading(self, question: Question, text: str) -> Mapping[str, OfficialReading]:
        if not question.text_only:
            return {}
        stored = read_released_verdict(text)
        if stored is None:
            return {}
        return {BATTLE: OfficialReading(text=stored)}

    def score(self, verdict: Verdict) -> float | MissingScore:
        """Return how far the verdict leans to the first model, from 0 to 1. The released tables count winners."""
        winner = self.winner(verdict)
        if isinstance(winner, MissingScore):
            return winner
        return (LEAN[winner] + 1) / 2

    def winner(self, verdict: Verdict) -> Winner | MissingScore:
        """Return the winner of one order: as the script stores it, or as our judge says if the script read nothing."""
        facts = read_battle_facts(verdict)
        if facts.is_by_rule:
            return BY_RULE
        if verdict.reading is not None:
            return to_winner(verdict.reading.text) or NO_WINNER
        return facts.winner or UNSCORED


OFFICIAL = ArenaOfficial()
