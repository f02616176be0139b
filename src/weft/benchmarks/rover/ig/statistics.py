"""What `weft data stats` counts of ROVER-IG's tasks: reference images, descriptions and keywords."""

from collections.abc import Mapping

from weft.benchmarks.rover.ig.data import RoverIGGold
from weft.benchmarks.statistics import DatasetStatistics
from weft.types import Sample


class RoverIGStatistics(DatasetStatistics, frozen=True):
    """Statistics of ROVER-IG."""

    def count(self, sample: Sample) -> Mapping[str, int]:
        gold: RoverIGGold = sample.turns[0].gold
        return {
            "reference images": int(gold.target is not None),
            "descriptions": int(bool(gold.description)),
            "keywords": int(bool(gold.keywords)),
        }


STATISTICS = RoverIGStatistics(published={"ROVER-IG (paper)": {"dialogues": 904}})
