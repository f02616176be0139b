"""What a run is: everything that decides what it asks and how that is scored.

Its digest names the run, so that the same command is the same run.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from weft import __version__
from weft.benchmarks.base import Benchmark
from weft.benchmarks.prompts import Rubrics
from weft.errors import wrap_error
from weft.models.endpoint import Endpoint
from weft.models.registry import COMPOSITION_PATTERN, ResolvedModel
from weft.secrets import strip_url_secrets
from weft.store.manifest import BenchmarkVersion, DatasetVersion, Identity, Manifest, PromptsVersion, Sampling
from weft.store.records import Shard
from weft.types import Dataset, LoadedDataset, Sample, Takes, Turn


class RunPlan(Struct, frozen=True):
    """A run before it begins. `model` and `judge` are as in the manifest: a stored run needs no model to be planned."""

    benchmark: Benchmark
    dataset: Dataset
    options: Any
    rubrics: Rubrics
    model: Mapping[str, Any]
    judge: Mapping[str, Any]
    strategy: str = "none"
    repeats: int = 1  # how often the judge is asked each question
    selection: Mapping[str, Any] = {}  # which samples
    shard: Shard | None = None  # the part that runs here; not in the manifest, since all shards are one run

    def manifest(self) -> Manifest:
        """Return the manifest, without secrets."""
        options = msgspec.to_builtins(self.options)
        selection = dict(self.selection)
        return Manifest(
            weft=__version__,
            benchmark=BenchmarkVersion(self.benchmark.name, self.benchmark.version),
            dataset=DatasetVersion(self.dataset.name, self.dataset.digest),
            model=Identity(self.model),
            judge=Identity(self.judge),
            prompts=PromptsVersion(self.rubrics.source, self.rubrics.digest),
            options={name: _strip_secrets(value) for name, value in options.items()},
            option_labels=tuple(map(_strip_secrets, self._option_labels())),
            strategy=self.strategy,
            judge_repeats=self.repeats,
            limit=selection.pop("limit", None),
            where=selection.pop("where", {}),
            sample=msgspec.convert(selection.pop("sample", None), Sampling | None),
            **selection,
        )

    def _option_labels(self) -> list[str]:
        presentation = self.benchmark.presentation
        if str(self.model["name"]).startswith("folder/"):  # others generated the replies
            return presentation.describe_outputs(self.options)
        return presentation.describe_options(self.options)

    def run_id(self) -> str:
        """Return `benchmark-model-digest`."""
        name = str(self.model["name"])
        if "parts" in self.model:  # the name of a composition lists its parts, which is too long
            name = str(self.model["model"])
        model = _slug(name.rpartition("/")[2]).strip("-.") or "model"
        return f"{_slug(self.benchmark.name)}-{model}-{self.manifest().digest[:8]}"

    def own_samples(self) -> Iterator[tuple[int, Sample]]:
        """Yield the samples that run here, with their positions in the dataset."""
        ids: set[str] | None = None
        if self.shard is not None:
            ids = set(self.shard.samples)
        samples = enumerate(self.dataset.samples)
        return ((position, sample) for position, sample in samples if ids is None or sample.id in ids)

    def expected_samples(self) -> int:
        """Return about how many samples run here: the number of records, if they are not read yet."""
        if self.shard is not None:
            return len(self.shard.samples)
        count = self.dataset.records
        if isinstance(self.dataset, LoadedDataset):
            count = len(self.dataset.samples)
        limit: int | None = self.selection.get("limit")
        if limit is None:
            return count
        return min(limit, count)

    def count_turns(self, sample: Sample) -> int:
        """Count the turns of a sample that the model is asked."""
        return sum(map(self.includes, sample.turns))

    def includes(self, turn: Turn) -> bool:
        """Return whether the model is asked this turn."""
        try:
            return bool(self.benchmark.includes(turn, self.options))
        except Exception as error:
            raise wrap_error(f"benchmark {self.benchmark.name}: which turns it includes", error) from error


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", text.lower())


def _strip_secrets(value: Any) -> Any:
    """Strip secrets from an option: it may name a model by its address."""
    if isinstance(value, str):
        return strip_url_secrets(value)
    return value


def describe_takes(takes: Takes) -> dict[str, Any]:
    """Return what a model accepts, as in the manifest.

    Run ids depend on these names, and on which of them are left out.
    """
    description = msgspec.to_builtins(takes)
    description["most"] = description.pop("max_images")
    return description


def describe_endpoint(endpoint: Endpoint) -> dict[str, Any]:
    """Return an endpoint as in the manifest."""
    takes = describe_takes(endpoint.takes)
    for name in ("most", "drawing"):
        if takes[name] is None:
            del takes[name]
    return {"name": endpoint.name, "takes": takes, **endpoint.identity}


def describe_model(resolved: ResolvedModel) -> dict[str, Any]:
    """Return a model as in the manifest: one endpoint, or a composition of several."""
    parts = {role: describe_endpoint(endpoint) for role, endpoint in resolved.endpoints.items()}
    composition = resolved.composition
    if composition is None:
        return parts["model"]
    takes = describe_takes(composition.takes)
    del takes["drawing"]
    model = resolved.name
    match = COMPOSITION_PATTERN.fullmatch(resolved.name)
    if match:
        model = match["name"]
    return {
        "name": resolved.name,
        "takes": takes,
        "provider": "composition",
        "model": model,
        "version": resolved.version,
        "parts": parts,
    }
