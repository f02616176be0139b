"""What a run is: everything that decides what it asks and how that is scored. Its digest names the run, so that the same command is the
same run."""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from weft import __version__
from weft.benchmarks.base import Benchmark
from weft.benchmarks.prompts import Rubrics
from weft.types import Dataset, Turn


class Plan(Struct, frozen=True):
    """`model` and `judge` are told as the manifest tells them: a stored run can be planned again without its model."""

    benchmark: Benchmark
    dataset: Dataset
    options: Any
    rubrics: Rubrics
    model: Mapping[str, Any]
    judge: Mapping[str, Any]
    strategy: str
    repeats: int  # how often a judge is asked each question
    chosen: Mapping[str, Any]  # which samples
    against: str = ""  # the run that the replies are compared with, if the questions are about two

    def manifest(self) -> dict[str, Any]:
        dataset = self.dataset
        return {
            "weft": __version__,
            "benchmark": {"name": self.benchmark.name, "version": self.benchmark.version},
            "dataset": {"name": dataset.name, "digest": dataset.digest, "samples": len(dataset.samples), "turns": self.turns()},
            "model": self.model,
            "judge": self.judge,
            "rubric": {"source": self.rubrics.source, "digest": self.rubrics.digest},
            "options": msgspec.to_builtins(self.options),
            "told": self.benchmark.told(self.options),
            "strategy": self.strategy,
            "judge_repeats": self.repeats,
            **self.chosen,
            **({"against": self.against} if self.against else {}),
        }

    def run_id(self) -> str:
        digest = hashlib.sha256(msgspec.json.encode(self.manifest(), order="deterministic")).hexdigest()
        slug = re.sub(r"[^a-z0-9.]+", "-", str(self.model["name"]).lower().rsplit("/", 1)[-1]).strip("-.") or "model"
        return f"{re.sub(r'[^a-z0-9.]+', '-', self.benchmark.name.lower())}-{slug}-{digest[:8]}"

    def turns(self) -> int:
        return sum(self.asks(turn) for sample in self.dataset.samples for turn in sample.turns)

    def asks(self, turn: Turn) -> bool:
        return self.benchmark.asks(turn, self.options)


def narrowed(dataset: Dataset, limit: int | None, where: Mapping[str, str]) -> Dataset:
    """The first `limit` samples of the groups asked for."""
    kept = [sample for sample in dataset.samples if all(sample.groups.get(name) == value for name, value in where.items())]
    return msgspec.structs.replace(dataset, samples=tuple(kept[:limit] if limit is not None else kept))
