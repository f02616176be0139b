"""What `weft data stats` counts of IMUG-Bench's chats: static and dynamic questions, image turns, evaluation points
(paper, section 3 and Table 5)."""

from collections.abc import Mapping

from weft.benchmarks.imug.data import ChoiceGold, PointsGold
from weft.benchmarks.statistics import DatasetStatistics
from weft.types import Sample, Turn


class ImugStatistics(DatasetStatistics, frozen=True):
    """Statistics of IMUG-Bench."""

    def turn_kind(self, turn: Turn) -> str:
        if not isinstance(turn.gold, ChoiceGold):
            return "image generation"
        return "dynamic choice" if turn.gold.dynamic else "static choice"

    def count(self, sample: Sample) -> Mapping[str, int]:
        points = sum(len(turn.gold.points) for turn in sample.turns if isinstance(turn.gold, PointsGold))
        return {"evaluation points": points}


IMUG_STATISTICS = ImugStatistics(
    sequence_axes=("domain", "task"),
    published={"IMUG-Bench (paper)": {"dialogues": 3113, "turns": 12_034, "turns / dialogue": 3.87}},
    published_groups={("Static Spatial",): 1448, ("Temporal Causal",): 1122, ("Hybrid",): 543},
)
