"""What a run is: everything that decides what it asks and how that is scored. Its digest names the run, so that the
same command is the same run."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from weft import __version__
from weft.benchmarks.base import Benchmark
from weft.benchmarks.prompts import Rubrics
from weft.models.endpoint import Endpoint
from weft.models.registry import COMPOSITION_PATTERN, ResolvedModel
from weft.secrets import strip_url_secrets
from weft.store.manifest import BenchmarkVersion, DatasetVersion, Identity, Manifest, PromptsVersion, Sampling
from weft.store.records import Shard
from weft.types import Dataset, LoadedDataset, Sample, Takes, Turn


class RunPlan(Struct, frozen=True):
    """`model` and `judge` are told as the manifest tells them: a stored run can be planned again without its model."""

    benchmark: Benchmark
    dataset: Dataset
    options: Any
    rubrics: Rubrics
    model: Mapping[str, Any]
    judge: Mapping[str, Any]
    strategy: str = "none"
    repeats: int = 1  # how often a judge is asked each question
    selection: Mapping[str, Any] = {}  # which samples
    # the part of the run that is done here; it is no part of the manifest: all shards are one run
    shard: Shard | None = None

    def manifest(self) -> Manifest:
        chosen = dict(self.selection)
        labels = self._option_labels()
        return Manifest(
            weft=__version__,
            benchmark=BenchmarkVersion(self.benchmark.name, self.benchmark.version),
            dataset=DatasetVersion(self.dataset.name, self.dataset.digest),
            model=Identity(self.model),
            judge=Identity(self.judge),
            prompts=PromptsVersion(self.rubrics.source, self.rubrics.digest),
            options={name: _without_secrets(value) for name, value in msgspec.to_builtins(self.options).items()},
            option_labels=tuple(map(_without_secrets, labels)),
            strategy=self.strategy,
            judge_repeats=self.repeats,
            limit=chosen.pop("limit", None),
            where=chosen.pop("where", {}),
            sample=msgspec.convert(chosen.pop("sample", None), Sampling | None),
            **chosen,
        )

    def _option_labels(self) -> list[str]:
        show = self.benchmark.presentation
        if _elsewhere(self.model):
            return show.describe_outputs(self.options)
        return show.describe_options(self.options)

    def run_id(self) -> str:
        # a composition's parts would make it too long
        name = str(self.model["model"] if "parts" in self.model else self.model["name"])
        slug = re.sub(r"[^a-z0-9.]+", "-", name.lower().rsplit("/", 1)[-1]).strip("-.") or "model"
        return f"{re.sub(r'[^a-z0-9.]+', '-', self.benchmark.name.lower())}-{slug}-{self.manifest().digest[:8]}"

    def own_samples(self) -> Iterator[tuple[int, Sample]]:
        """The samples that are done here, with their places in the dataset."""
        if self.shard is None:
            own = None
        else:
            own = set(self.shard.samples)
        return ((at, sample) for at, sample in enumerate(self.dataset.samples) if own is None or sample.id in own)

    def expected_samples(self) -> int:
        """How many samples are done here, at the most: as many as there are records, where they are not read yet."""
        if self.shard is not None:
            return len(self.shard.samples)
        limit: int | None = self.selection.get("limit")
        if isinstance(self.dataset, LoadedDataset):
            count = len(self.dataset.samples)
        else:
            count = self.dataset.records
        if limit is None:
            return count
        return min(limit, count)

    def count_turns(self, sample: Sample) -> int:
        """How many of its turns the model is asked."""
        return sum(map(self.includes, sample.turns))

    def includes(self, turn: Turn) -> bool:
        return self.benchmark.includes(turn, self.options)


def _without_secrets(value: Any) -> Any:
    """An option may name a model, with more of its address than anyone may know."""
    if isinstance(value, str):
        return strip_url_secrets(value)
    return value


def _elsewhere(model: Mapping[str, Any]) -> bool:
    """Whether the replies were made by others, and lie in a folder."""
    return str(model["name"]).startswith("folder/")


def describe_takes(takes: Takes) -> dict[str, Any]:
    """What a model takes, as the manifest has it. Run ids depend on these names and on which of them are left out."""
    names = msgspec.to_builtins(takes)
    names["most"] = names.pop("max_images")
    return names


def describe_endpoint(endpoint: Endpoint) -> dict[str, Any]:
    takes = describe_takes(endpoint.takes)
    for name in ("most", "drawing"):
        if takes[name] is None:
            del takes[name]
    return {"name": endpoint.name, "takes": takes, **endpoint.identity}


def describe_model(wired: ResolvedModel) -> dict[str, Any]:
    """A model as the manifest tells it: one endpoint, or a composition of several."""
    parts = {role: describe_endpoint(endpoint) for role, endpoint in wired.endpoints.items()}
    if wired.composition is None:
        return parts["model"]
    kind = wired.composition
    written = COMPOSITION_PATTERN.fullmatch(wired.name)
    of = {"provider": "composition", "model": written["name"] if written else wired.name, "version": kind.version}
    return {
        "name": wired.name,
        "takes": {name: value for name, value in describe_takes(kind.takes).items() if name != "drawing"},
        **of,
        "parts": parts,
    }
