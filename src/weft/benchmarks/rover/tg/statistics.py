"""What `weft data stats` counts of ROVER-TG's questions: reasoning images (paper, Table 5)."""

from collections.abc import Mapping, Sequence

from weft.benchmarks.rover.tg.data import VISUAL_TURN, RoverTGGold
from weft.benchmarks.statistics import DatasetStatistics
from weft.types import Sample, Turn


class RoverTGStatistics(DatasetStatistics, frozen=True):
    """Statistics of ROVER-TG. Its two turns are two ways of asking one question, which counts once."""

    def counted_turns(self, sample: Sample) -> Sequence[Turn]:
        return sample.turns[VISUAL_TURN : VISUAL_TURN + 1]

    def turn_kind(self, turn: Turn) -> str:
        return "questions"

    def count(self, sample: Sample) -> Mapping[str, int]:
        gold: RoverTGGold = sample.turns[VISUAL_TURN].gold
        return {
            "reasoning images": int(gold.reference is not None),
            "second images": int(gold.second is not None),
            "answers that are paths": int(gold.is_track),
        }


STATISTICS = RoverTGStatistics(published={"ROVER-TG (paper)": {"dialogues": 381}})
