"""What `weft data stats` counts of PlanViz's tasks: key points and reference images, by sub-task, task and kind of
question (paper, Figure 3)."""

from collections.abc import Mapping

from weft.benchmarks.planviz.data import OFFICIAL_TASKS, SUBTASKS, TASKS, PlanVizGold
from weft.benchmarks.statistics import DatasetStatistics
from weft.types import Sample


class PlanVizStatistics(DatasetStatistics, frozen=True):
    """Statistics of PlanViz."""

    def count(self, sample: Sample) -> Mapping[str, int]:
        gold: PlanVizGold = sample.turns[0].gold
        return {
            "key points": len(gold.points),
            "source images": int(gold.source is not None),
            "reference images": int(gold.reference is not None),
        }

    def histogram_bins(self, sample: Sample) -> Mapping[str, str]:
        return {"key points of a task": str(len(sample.turns[0].gold.points))}


def _published_groups() -> dict[tuple[str, ...], int]:
    groups: dict[tuple[str, ...], int] = {}
    for subtask in SUBTASKS:
        groups[(subtask,)] = OFFICIAL_TASKS * len(TASKS)
        for task in TASKS:
            groups[subtask, task] = OFFICIAL_TASKS
    return groups


PLANVIZ_STATISTICS = PlanVizStatistics(
    composition=("subtask", "task", "ended"),
    published={"PlanViz (paper)": {"dialogues": 360}},
    published_groups=_published_groups(),
)
