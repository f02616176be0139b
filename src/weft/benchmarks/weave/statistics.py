"""What `weft data stats` counts of WEAVE's dialogues: key points by what an image is compared with."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from weft.benchmarks.statistics import DatasetStatistics
from weft.types import Sample, Turn

SOURCES = {"GT": "key points: reference", "Image": "key points: own image", "Text": "key points: text"}


class WeaveStatistics(DatasetStatistics, frozen=True):
    """Statistics of WEAVEBench and of WEAVE-100k, which has no key points."""

    def turn_kind(self, turn: Turn) -> str:
        return f"{turn.modality} turns"

    def count(self, sample: Sample) -> Mapping[str, int]:
        """Count key points by what the judge sees with them (paper, Figure 5: the evaluation methods)."""
        counts: Counter[str] = Counter()
        for turn in sample.turns:
            points: Any = turn.gold or ()
            counts.update(SOURCES[point.source] for point in points)
        return counts
