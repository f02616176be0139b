"""What happens before a model is asked: `Benchmark.preparation`.

It reads the judge's prompts and outputs made elsewhere, lets auxiliary models complete the data, describes a dataset,
and writes a template folder for a user's own data.

`template`, `outputs` and `statistics` are given by keyword; the rest is a method of a subclass:

    class PlanVizPreparation(Preparation, frozen=True):
        def describe_data(self, dataset): ...

    class PlanViz(Benchmark):
        preparation = PlanVizPreparation(template=write_template, outputs=PlanVizOutputs)
"""

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from weft.benchmarks.outputs import OutputFolder, StoredOutputs
from weft.benchmarks.prompts import Rubrics, read_rubrics
from weft.benchmarks.statistics import DatasetStatistics
from weft.types import LoadedDataset, Model

if TYPE_CHECKING:
    from weft.benchmarks.base import Benchmark


class Preparation(Struct, frozen=True, kw_only=True):
    """A benchmark's preparation; the defaults suit a benchmark whose data need none."""

    template: Callable[[Path], None] | None = None
    """Writes a folder with an example of each kind, which users fill with their own data."""
    outputs: type[StoredOutputs] = OutputFolder
    """Reads outputs made elsewhere as a model: by default files named by `Turn.file`."""
    statistics: DatasetStatistics = DatasetStatistics()
    """What `weft data stats` counts of the records, besides what all samples have."""

    def rubrics(self, benchmark: "Benchmark", prompts: str) -> Rubrics:
        """Read the judge's prompts.

        `weft` reads `rubrics/*.md` in the folder of the benchmark's class, or else of a class that it extends;
        `official:DIR` reads the paper's prompts from a checkout of its repository.
        """
        folders = [Path(inspect.getfile(kind)).parent for kind in type(benchmark).__mro__[:-1]]
        for folder in folders:
            if (folder / "rubrics").is_dir():
                return read_rubrics(folder, prompts, benchmark.official, benchmark.name)
        return read_rubrics(folders[0], prompts, benchmark.official, benchmark.name)

    def judge(self, options: Any) -> str:
        """Return the judge of a run where the user names none: a program that the benchmark's rules are made for."""
        return ""

    def auxiliary_models(self, options: Any) -> Mapping[str, str]:
        """Return the names of models that complete the data before the run, by role, as a user would write them.

        Their replies are cached and paid for like all others.
        """
        return {}

    async def prepare(self, dataset: LoadedDataset, options: Any, models: Mapping[str, Model]) -> LoadedDataset:
        """Return the dataset that a run uses: by default the one that was loaded. A changed dataset needs a new digest.

        `models` are the auxiliary models by role. In a dry run their replies have the note `stand-in`: ask as many
        questions as a real run would.
        """
        return dataset

    def describe_data(self, dataset: LoadedDataset) -> list[str]:
        """Return lines about a dataset that `weft data check` prints."""
        return []
