"""What `weft data stats` counts of WeaverBench's prompts: by category and input (paper, Table 1), and how many images
they require."""

from collections.abc import Mapping

from weft.benchmarks.statistics import DatasetStatistics
from weft.benchmarks.weaverbench.data import CATEGORIES, IMAGE_INPUT, TEXT_INPUT, WeaverBenchGold
from weft.types import Sample, Turn

ANY_NUMBER = "any number"
KINDS = {None: "document, free", 0: "question", 1: "image"}  # by the required number of images


class WeaverBenchStatistics(DatasetStatistics, frozen=True):
    """Statistics of WeaverBench."""

    def turn_kind(self, turn: Turn) -> str:
        gold: WeaverBenchGold = turn.gold
        return KINDS.get(gold.required, "document, exact")

    def count(self, sample: Sample) -> Mapping[str, int]:
        gold: WeaverBenchGold = sample.turns[0].gold
        return {"prompts with a count": int(gold.required is not None), "images required": gold.required or 0}

    def histogram_bins(self, sample: Sample) -> Mapping[str, str]:
        gold: WeaverBenchGold = sample.turns[0].gold
        required = ANY_NUMBER if gold.required is None else str(gold.required)
        return {"required images": required, "length of the prompt": sample.groups["length"]}


def _published_groups() -> dict[tuple[str, ...], int]:
    groups: dict[tuple[str, ...], int] = {}
    for category, (text_only, with_images) in CATEGORIES.items():
        groups[(category,)] = text_only + with_images
        groups[category, TEXT_INPUT] = text_only
        if with_images:
            groups[category, IMAGE_INPUT] = with_images
    return groups


WEAVERBENCH_STATISTICS = WeaverBenchStatistics(
    composition=("category", "input"),
    published={"WeaverBench (paper)": {"dialogues": sum(map(sum, CATEGORIES.values()))}},
    published_groups=_published_groups(),
)
