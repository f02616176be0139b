"""Benchmarks. A benchmark makes no network call and opens no file outside its data.py; everything else about it is pure.

The interface, and all there is to adding one:

    class Mine:
        name, version, metrics = "mine", "1", ("correct",)
        def load(self, data, blobs): ...                          # files -> Dataset, with every problem found
        def default_view(self): ...                               # the history policy of the paper
        def see(self, sample, turn, dialogue, view): ...          # what the model is shown: messages
        def needs(self, sample, turn, view): ...                  # earlier turns that it depends on
        def questions(self, sample, turn, dialogue, view, rubrics): ...  # what to ask the judge, or verdicts that need no judge
        def read(self, question, found): ...                      # a judge's reply -> (value, reason, detail); optional
        def outputs(self, folder, blobs): ...                     # outputs made elsewhere, in its own layout; optional
        def rubrics(self, prompts): ...                           # our prompts, or the official ones from a checkout
        def tables(self, runs): ...                               # verdicts, aggregated as the paper does it
        def check_view(self, view): ...                           # refuse a history policy that it does not have; optional
        def headline(self, verdicts): ...                         # the main number as weighted means: [(weight, verdicts)]; optional
        full_marks = 1.0                                          # the best value of a verdict; optional
        published_judge = "gpt-4o"                                # who judged the published rows; optional

It is found as an entry point of the group `weft.benchmarks`, or as file.py:Name.
"""

import importlib.metadata
import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from weft.errors import UserError
from weft.models.registry import load_object, load_target
from weft.store.blobs import Blobs
from weft.types import Dataset, Dialogue, Message, Question, Sample, Table, Turn, Verdict, View

INTERFACE = ("name", "version", "metrics", "load", "default_view", "see", "needs", "questions", "rubrics", "tables")
BUILT_IN = {"weave": "weft.benchmarks.weave:Weave", "imug": "weft.benchmarks.imug:Imug"}


class Rubrics(Struct, frozen=True):
    """The judge's prompts by metric; `source` is `weft` or where the official ones came from; `digest` goes into the manifest."""

    texts: Mapping[str, str]
    source: str
    digest: str


class Finished(Struct, frozen=True):
    """A run's results, for tables: the groups of each sample by its id, every verdict in dataset order, and what data it was: published
    rows belong beside the benchmark's own alone."""

    name: str
    groups: Mapping[str, Mapping[str, str]]
    verdicts: Sequence[Verdict]
    dataset: str = ""


class Benchmark(Protocol):
    name: str
    version: str
    metrics: tuple[str, ...]

    def load(self, data: Path, blobs: Blobs) -> Dataset: ...
    def default_view(self) -> View: ...
    def see(self, sample: Sample, turn: Turn, dialogue: Dialogue, view: View) -> tuple[Message, ...]: ...
    def needs(self, sample: Sample, turn: Turn, view: View) -> set[int]: ...
    def questions(self, sample: Sample, turn: Turn, dialogue: Dialogue, view: View, rubrics: Rubrics) -> tuple[Question | Verdict, ...]: ...
    def rubrics(self, prompts: str) -> Rubrics: ...
    def tables(self, runs: Sequence[Finished]) -> list[Table]: ...


def names() -> dict[str, str]:
    found = dict(BUILT_IN)
    found.update({point.name: point.value for point in importlib.metadata.entry_points(group="weft.benchmarks")})
    return found


def resolve(benchmark: Any) -> Benchmark:
    """A benchmark by name, from file.py:Name, or as the object or class itself."""
    if isinstance(benchmark, str):
        known = names()
        if ".py:" in benchmark:
            benchmark = load_object(benchmark)
        elif benchmark in known:
            benchmark = load_target(known[benchmark])
        else:
            raise UserError(f"unknown benchmark {benchmark!r}; known: {', '.join(sorted(known))}; or file.py:NAME for your own")
    made = benchmark() if isinstance(benchmark, type) else benchmark
    missing = [name for name in INTERFACE if not hasattr(made, name)]
    if missing:
        raise UserError(f"{made!r} is no benchmark: it lacks {', '.join(missing)}")
    return made


def full_marks(benchmark: Benchmark) -> float:
    return float(getattr(benchmark, "full_marks", 1.0))


def headline(benchmark: Benchmark, verdicts: Sequence[Verdict]) -> list[tuple[float, Sequence[Verdict]]]:
    """The main number of a benchmark: means of verdicts, with their weights. All verdicts alike, unless it says otherwise."""
    own = getattr(benchmark, "headline", None)
    return own(verdicts) if own is not None else [(1.0, verdicts)]


def where(benchmark: Any) -> str:
    """Where a benchmark's code can be found again: its name, or file:NAME with the whole path."""
    if isinstance(benchmark, str) and ".py:" not in benchmark:
        return benchmark
    if isinstance(benchmark, str):
        file, _, name = benchmark.rpartition(":")
        return f"{Path(file).absolute()}:{name}"
    kind: Any = benchmark if isinstance(benchmark, type) else type(benchmark)
    if kind.__module__.startswith("weft."):
        return kind.name
    try:
        return f"{inspect.getfile(kind)}:{kind.__qualname__}"
    except (OSError, TypeError):
        return f"{kind.__module__}:{kind.__qualname__}"
