"""One document, asked for in a sentence: a run without a dataset and without a judge. It is journalled, budgeted and
resumed like any other: the same sentence to the same model is the same document, and costs nothing the second time."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from weft.benchmarks.base import Assessment, Benchmark, JudgedTurn, RunResults, SampleGroups, WeightedMeans
from weft.benchmarks.preparation import Preparation
from weft.benchmarks.presentation import Presentation
from weft.benchmarks.prompts import Rubrics, build_rubrics
from weft.benchmarks.records import digest_samples
from weft.errors import ImageError, UserError
from weft.evaluation.config import RunConfig
from weft.evaluation.sources import ModelUnderTest, RunInputs
from weft.models.compose.imagine import parse_plan
from weft.models.endpoint import Endpoint
from weft.models.registry import resolve_model
from weft.models.thinking import split_thinking
from weft.results.run import Run
from weft.store.blobs import Blobs
from weft.store.images import MAX_BYTES
from weft.types import Dataset, Dialogue, Image, LoadedDataset, Message, Part, Reply, Sample, Table, Text, Turn, Verdict
from weft.untrusted import read_file
from weft.workspace import Workspace, read_only_journal

DOCUMENT = "document"  # what its one sample is called


class WritingPreparation(Preparation, frozen=True):
    def rubrics(self, benchmark: Benchmark, prompts: str) -> Rubrics:
        return build_rubrics({}, "weft")


class WritingBenchmark(Benchmark):
    """Nothing is judged."""

    name = "write"
    version = "1"
    metrics = ()
    presentation = Presentation(title="Documents")
    preparation = WritingPreparation()

    def load(self, data: Path, blobs: Blobs) -> Dataset:
        raise UserError('a document is asked for in a sentence: weft write "..." --model MODEL')

    def build_messages(self, sample: Sample, turn: Turn, dialogue: Dialogue, options: Any) -> tuple[Message, ...]:
        return (Message("user", turn.prompt),)

    def questions(self, answered: JudgedTurn) -> Iterable[Assessment]:
        return ()

    def tables(self, runs: Sequence[RunResults]) -> Iterator[Table]:
        return iter(())

    def headline(self, verdicts: Sequence[Verdict], groups: SampleGroups) -> WeightedMeans:
        return []


class WritingRequest(Struct, frozen=True):
    """What to write, with images at hand. Nobody judges it."""

    text: str
    images: tuple[Path, ...] = ()

    def open(self, config: RunConfig, workspace: Workspace) -> RunInputs:
        if not self.text.strip():
            raise UserError("say what is to be written")
        benchmark = WritingBenchmark()
        blobs = workspace.blobs
        asked = ModelUnderTest(resolve_model(config.model, blobs, config.model_options, workspace.settings), blobs)
        ask: tuple[Part, ...] = (Text(self.text), *(_picture(path, blobs) for path in self.images))
        sample = Sample(DOCUMENT, (Turn(0, ask, "interleaved", ()),))
        return RunInputs(
            benchmark=benchmark,
            options=benchmark.parse_options({}),
            load=lambda: LoadedDataset("a sentence", digest_samples([sample]), (sample,), (), 1),
            replies=asked.replies,
            model=asked.endpoints,
            locations=(benchmark.name, ""),
            judge=Endpoint("nobody"),
            prices={"nobody": {"in": 0, "out": 0}},
        )


def _picture(path: Path, blobs: Blobs) -> Image:
    try:
        return blobs.put(read_file(path, MAX_BYTES, ImageError))
    except ImageError as error:
        raise UserError(f"{path} {error}") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None


def find_document(run: Run) -> Reply:
    """What was written."""
    if run.turns:
        return run.turns[0].reply
    return Reply("failed", reason="nothing was written")


def find_image_prompts(run: Run, home: Path) -> tuple[str, ...]:
    """What a planner ordered, picture by picture; nothing where there was no planner."""
    with read_only_journal(home) as journal:
        calls = journal.calls(list(find_document(run).keys))
    plans = [msgspec.json.decode(call.reply, type=Reply) for call in calls.values() if call.role == "planner"]
    return tuple(order.prompt for plan in plans[:1] for order in parse_plan(split_thinking(plan.text)[1]).images)
