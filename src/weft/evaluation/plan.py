"""What a run is: everything that decides what it asks and how that is scored. Its digest names the run, so that the same command is the
same run."""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from weft import __version__
from weft.benchmarks.base import Benchmark
from weft.benchmarks.prompts import Rubrics
from weft.errors import UserError, blamed
from weft.models.endpoint import Endpoint
from weft.models.registry import PARTS, Wired
from weft.secrets import without_secrets
from weft.store.blobs import Blobs
from weft.store.manifest import BenchmarkVersion, DatasetVersion, Identity, Manifest, Prompts, Sampling
from weft.store.records import Shard
from weft.types import Dataset, Sample, Turn


class Plan(Struct, frozen=True):
    """`model` and `judge` are told as the manifest tells them: a stored run can be planned again without its model."""

    benchmark: Benchmark
    dataset: Dataset
    options: Any
    rubrics: Rubrics
    model: Mapping[str, Any]
    judge: Mapping[str, Any]
    strategy: str = "none"
    repeats: int = 1  # how often a judge is asked each question
    chosen: Mapping[str, Any] = {}  # which samples
    shard: Shard | None = None  # the part of the run that is done here; it is no part of the manifest: all shards are one run

    def manifest(self) -> Manifest:
        chosen = dict(self.chosen)
        return Manifest(
            weft=__version__,
            benchmark=BenchmarkVersion(self.benchmark.name, self.benchmark.version),
            dataset=DatasetVersion(self.dataset.name, self.dataset.digest),
            model=Identity(self.model),
            judge=Identity(self.judge),
            prompts=Prompts(self.rubrics.source, self.rubrics.digest),
            options={name: _without_secrets(value) for name, value in msgspec.to_builtins(self.options).items()},
            option_labels=tuple(_without_secrets(label) for label in self._option_labels()),
            strategy=self.strategy,
            judge_repeats=self.repeats,
            limit=chosen.pop("limit", None),
            where=chosen.pop("where", {}),
            sample=msgspec.convert(chosen.pop("sample", None), Sampling | None),
            **chosen,
        )

    def _option_labels(self) -> list[str]:
        return self.benchmark.told_of_outputs(self.options) if _elsewhere(self.model) else self.benchmark.told(self.options)

    def run_id(self) -> str:
        name = str(self.model["model"] if "parts" in self.model else self.model["name"])  # a composition's parts would make it too long
        slug = re.sub(r"[^a-z0-9.]+", "-", name.lower().rsplit("/", 1)[-1]).strip("-.") or "model"
        return f"{re.sub(r'[^a-z0-9.]+', '-', self.benchmark.name.lower())}-{slug}-{self.manifest().digest[:8]}"

    def turns(self) -> int:
        """Of the whole run."""
        return sum(self.asks(turn) for sample in self.dataset.samples for turn in sample.turns)

    def mine(self) -> Iterator[tuple[int, Sample]]:
        """The samples that are done here, with their places in the dataset."""
        own = None if self.shard is None else set(self.shard.samples)
        return ((at, sample) for at, sample in enumerate(self.dataset.samples) if own is None or sample.id in own)

    def my_turns(self) -> int:
        return sum(self.asks(turn) for _, sample in self.mine() for turn in sample.turns)

    def asks(self, turn: Turn) -> bool:
        return self.benchmark.asks(turn, self.options)


def _without_secrets(value: Any) -> Any:
    """An option may name a model, with more of its address than anyone may know."""
    return without_secrets(value) if isinstance(value, str) else value


def _elsewhere(model: Mapping[str, Any]) -> bool:
    """Whether the replies were made by others, and lie in a folder."""
    return str(model["name"]).startswith("folder/")


LATER = ("most", "drawing")  # that not every manifest has: runs keep their names


def told_endpoint(endpoint: Endpoint) -> dict[str, Any]:
    takes = {name: value for name, value in msgspec.to_builtins(endpoint.takes).items() if name not in LATER or value is not None}
    return {"name": endpoint.name, "takes": takes, **endpoint.identity}


def told_model(wired: Wired) -> dict[str, Any]:
    """A model as the manifest tells it: one endpoint, or a composition of several."""
    parts = {role: told_endpoint(endpoint) for role, endpoint in wired.endpoints.items()}
    if wired.composition is None:
        return parts["model"]
    kind = wired.composition
    written = PARTS.fullmatch(wired.name)
    of = {"provider": "composition", "model": written["name"] if written else wired.name, "version": kind.version}
    return {
        "name": wired.name,
        "takes": {name: value for name, value in msgspec.to_builtins(kind.takes).items() if name != "drawing"},
        **of,
        "parts": parts,
    }


def sharded(samples: Sequence[Sample], shard: Shard) -> Shard:
    """With its samples: the same on every machine, about as many in each."""
    ordered = sorted(samples, key=lambda sample: _place("shard", sample))
    return Shard(shard.number, shard.of, tuple(sample.id for sample in ordered[shard.number - 1 :: shard.of]))


def shard_of(text: str) -> Shard:
    """`2/8`."""
    number, _, of = text.partition("/")
    if not (number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of) <= 10_000):
        raise UserError(f"shard {text!r}: write which of how many, from 1 up, such as 2/8")
    return Shard(int(number), int(of))


def shard_in(text: str, samples: Sequence[Sample]) -> Shard | None:
    """The part that a text names, with its samples; None where it names none."""
    if not text:
        return None
    made = sharded(samples, shard_of(text))
    if not made.samples:
        raise UserError(f"shard {text}: the run has {len(samples)} samples, and none is left for it")
    return made


def drawn(samples: Sequence[Sample], sample: Mapping[str, int]) -> list[Sample]:
    """So many at random, in their order: the same on every machine, whatever else is in the dataset's files."""
    ordered = sorted(samples, key=lambda one: _place(f"sample {sample['seed']}", one))
    kept = {one.id for one in ordered[: sample["count"]]}
    return [one for one in samples if one.id in kept]


def _place(chance: str, sample: Sample) -> str:
    return hashlib.sha256(f"{chance}\n{sample.id}".encode("utf-8", "replace")).hexdigest()


def check_ids(samples: Sequence[Sample], where: str) -> None:
    ids = [sample.id for sample in samples]
    if len(set(ids)) < len(ids):
        raise UserError(f"{where}: two samples are called {next(one for one in ids if ids.count(one) > 1)!r}; every id must be its own")


def loaded(
    benchmark: Benchmark,
    data: Path,
    blobs: Blobs,
    *,
    limit: int | None,
    where: Mapping[str, str],
    sample: Mapping[str, int] | None = None,
) -> Dataset:
    """The first `limit` samples of the groups asked for, or of those a random `sample`; they must be some, each with an id of its own."""
    try:
        dataset = benchmark.load(data, blobs)
    except OSError:
        raise
    except Exception as error:
        raise blamed(f"benchmark {benchmark.name}: loading {data}", error) from error
    kept = [sample for sample in dataset.samples if all(sample.groups.get(name) == value for name, value in where.items())]
    kept = kept[:limit] if limit is not None else kept
    check_ids(kept, str(data))
    kept = drawn(kept, sample) if sample else kept
    if kept:
        return replace(dataset, samples=tuple(kept))
    for name, value in where.items():
        there = sorted({sample.groups[name] for sample in dataset.samples if name in sample.groups})
        if value not in there:
            groups = ", ".join(dict.fromkeys(group for sample in dataset.samples for group in sample.groups))
            has = f"there is {', '.join(there)}" if there else f"there is no such group; there is {groups or 'none'}"
            raise UserError(f"{data}: no sample is left: none has {name} {value!r}; {has}")
    if where or limit == 0:
        raise UserError(f"{data}: no sample is left by what was asked for ({dataset.records} records)")
    errors = [problem for problem in dataset.problems if problem.severity == "error"]
    first = f"; the first problem: {errors[0]}" if errors else ""
    raise UserError(f"{data}: none of its {dataset.records} records can be used{first}")
