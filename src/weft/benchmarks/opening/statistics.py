"""What `weft data stats` counts of OpenING's items: the steps of their references, by task and sub-task."""

from collections.abc import Mapping

from weft.benchmarks.opening.data import TEST_ITEMS
from weft.benchmarks.statistics import DatasetStatistics
from weft.types import Sample


class OpeningStatistics(DatasetStatistics, frozen=True):
    """Statistics of OpenING."""

    def count(self, sample: Sample) -> Mapping[str, int]:
        return {"steps": sample.turns[0].gold.steps}

    def histogram_bins(self, sample: Sample) -> Mapping[str, str]:
        return {"steps of the reference": str(sample.turns[0].gold.steps)}


OPENING_STATISTICS = OpeningStatistics(
    composition=("task", "subtask"), published={"OpenING, test split (paper)": {"dialogues": TEST_ITEMS}}
)
