"""Write one document from a prompt: a run without a dataset and without a judge.

It is journalled, budgeted and resumed like any other run: the same prompt to the same model costs nothing the second
time.
"""

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
from weft.evaluation.reuse import identify_model
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

DOCUMENT = "document"  # the id of its one sample


class WritingPreparation(Preparation, frozen=True):
    """No prompts for a judge."""

    def rubrics(self, benchmark: Benchmark, prompts: str) -> Rubrics:
        return build_rubrics({}, "weft")


class WritingBenchmark(Benchmark):
    """A benchmark of one interleaved turn that is not judged."""

    name = "write"
    version = "1"
    metrics = ()
    presentation = Presentation(title="Documents")
    preparation = WritingPreparation()

    def load(self, data: Path, blobs: Blobs) -> Dataset:
        raise UserError('a document is asked for in a sentence: weft write "..." --model MODEL')

    def build_messages(self, sample: Sample, turn: Turn, dialogue: Dialogue, options: Any) -> tuple[Message, ...]:
        return (Message("user", turn.prompt),)

    def questions(self, judged_turn: JudgedTurn) -> Iterable[Assessment]:
        return ()

    def tables(self, runs: Sequence[RunResults]) -> Iterator[Table]:
        return iter(())

    def headline(self, verdicts: Sequence[Verdict], groups: SampleGroups) -> WeightedMeans:
        return []


class WritingRequest(Struct, frozen=True):
    """A prompt for a document, and the images that it shows."""

    text: str
    images: tuple[Path, ...] = ()

    def open(self, config: RunConfig, workspace: Workspace) -> RunInputs:
        if not self.text.strip():
            raise UserError("the prompt for the document is empty")
        benchmark = WritingBenchmark()
        blobs = workspace.blobs
        resolved = resolve_model(config.model, blobs, config.model_options, workspace.settings)
        if config.fresh or config.reuse:
            resolved = identify_model(config, resolved)
        model = ModelUnderTest(resolved, blobs)
        images = [_store_image(path, blobs) for path in self.images]
        prompt: tuple[Part, ...] = (Text(self.text), *images)
        sample = Sample(DOCUMENT, (Turn(0, prompt, "interleaved", ()),))
        return RunInputs(
            benchmark=benchmark,
            options=benchmark.parse_options({}),
            load=lambda: LoadedDataset("a sentence", digest_samples([sample]), (sample,), (), 1),
            replies=model.replies,
            model=model.endpoints,
            locations=(benchmark.name, ""),
            judge=Endpoint("nobody"),
            version_note=resolved.version_note,
            prices={"nobody": {"in": 0, "out": 0}},
        )


def _store_image(path: Path, blobs: Blobs) -> Image:
    try:
        return blobs.put(read_file(path, MAX_BYTES, ImageError), unchanged=True)
    except ImageError as error:
        raise UserError(f"{path} {error}") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None


def find_document(run: Run) -> Reply:
    """Return the document; a failed reply if there is none."""
    if run.turns:
        return run.turns[0].reply
    return Reply("failed", reason="nothing was written")


def find_image_prompts(run: Run, home: Path) -> tuple[str, ...]:
    """Return the planner's prompts for images, in order; nothing if the model has no planner."""
    with read_only_journal(home) as journal:
        calls = journal.calls(list(find_document(run).keys))
    for call in calls.values():
        if call.role == "planner":
            _, plan = split_thinking(msgspec.json.decode(call.reply, type=Reply).text)
            return tuple(order.prompt for order in parse_plan(plan).images)
    return ()
