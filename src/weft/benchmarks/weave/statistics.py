"""What `weft data stats` counts of WEAVE's dialogues: key points by what an image is compared with."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from weft.benchmarks.statistics import DatasetStatistics
from weft.benchmarks.weave.domains import CLASSES
from weft.types import Sample, Turn

SOURCES = {"GT": "key points: reference", "Image": "key points: own image", "Text": "key points: text"}
DOMAIN_COUNTS = {  # of WEAVEBench, in the order of CLASSES
    "Science": (6, 6, 3, 7, 5, 2),
    "Creation": (13, 12, 12, 10),
    "Logic": (5, 3),
    "Game": (4, 5, 5, 2),
}


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


def _published_groups() -> dict[tuple[str, ...], int]:
    groups: dict[tuple[str, ...], int] = {}
    for name, domains in CLASSES.items():
        groups[(name,)] = sum(DOMAIN_COUNTS[name])
        for domain, count in zip(domains, DOMAIN_COUNTS[name], strict=True):
            groups[name, domain] = count
    return groups


WEAVEBENCH_STATISTICS = WeaveStatistics(
    published={"WEAVEBench (paper)": {"dialogues": 100, "images": 480}}, published_groups=_published_groups()
)
