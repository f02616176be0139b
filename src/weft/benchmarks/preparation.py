"""What is done before a model is asked: `Benchmark.preparation`. It reads the judge's prompts and outputs made
elsewhere, has the data completed by auxiliary models, describes a dataset, and writes a folder for a user's own data.

`template` and `outputs` are given by keyword; the rest is a method of a subclass:

    class PlanVizPreparation(Preparation, frozen=True):
        def describe_data(self, dataset): ...

    class PlanViz(Benchmark):
        preparation = PlanVizPreparation(template=write_template, outputs=Outputs)
"""

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from weft.benchmarks.outputs import OutputFolder
from weft.benchmarks.prompts import Rubrics, read_rubrics
from weft.models.endpoint import Endpoint
from weft.store.blobs import Blobs
from weft.types import LoadedDataset, Model

if TYPE_CHECKING:
    from weft.benchmarks.base import Benchmark


class Preparation(Struct, frozen=True, kw_only=True):
    template: Callable[[Path], None] | None = None
    """Writes a folder that users fill with data of their own, with an example of each kind."""
    outputs: Callable[[Path, Blobs], Endpoint] = OutputFolder
    """Outputs made elsewhere, as a model: by default files with the names in `Turn.file`."""

    def rubrics(self, benchmark: "Benchmark", prompts: str) -> Rubrics:
        """The judge's prompts. `weft`: `rubrics/*.md` beside the code of the benchmark's class, or of the class that it
        extends; `official:DIR`: the paper's, from a checkout of its repository."""
        folders = [Path(inspect.getfile(kind)).parent for kind in type(benchmark).__mro__[:-1]]
        folder = next((one for one in folders if (one / "rubrics").is_dir()), folders[0])
        return read_rubrics(folder, prompts, benchmark.official, benchmark.name)

    def auxiliary_models(self, options: Any) -> Mapping[str, str]:
        """Models that complete the data before the run, by role, named as a user names them. Their replies are cached
        and paid for like all others."""
        return {}

    async def prepare(self, dataset: LoadedDataset, options: Any, models: Mapping[str, Model]) -> LoadedDataset:
        """The dataset that a run uses: by default the one that was loaded. What is changed must change the digest.
        `models` are the auxiliary models by role. In a dry run their replies have the note `stand-in`: ask as many
        questions as a real run would."""
        return dataset

    def describe_data(self, dataset: LoadedDataset) -> list[str]:
        """Facts about a dataset that `weft data check` prints, line by line."""
        return []
