"""One document, asked for in a sentence: a run without a dataset and without a judge. It is journalled, budgeted and resumed like any
other: the same sentence to the same model is the same document, and costs nothing the second time."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from weft.benchmarks.base import Answered, Benchmark, Finished, Groups, Item, Terms
from weft.benchmarks.preparation import Preparation
from weft.benchmarks.presentation import Presentation
from weft.benchmarks.prompts import Rubrics, rubrics_of
from weft.benchmarks.records import digest_of
from weft.errors import PictureError, UserError
from weft.evaluation.config import RunConfig
from weft.evaluation.sources import Asked, Material
from weft.models.compose.imagine import parse
from weft.models.endpoint import Endpoint
from weft.models.registry import wired
from weft.models.thinking import parted
from weft.results.run import Run
from weft.store.blobs import Blobs
from weft.store.images import MAX_BYTES
from weft.types import Dataset, Dialogue, Image, Message, Part, ReadDataset, Reply, Sample, Table, Text, Turn, Verdict
from weft.untrusted import read_file
from weft.workspace import Workspace, reading

DOCUMENT = "document"  # what its one sample is called


class WritingPreparation(Preparation, frozen=True):
    def rubrics(self, benchmark: Benchmark, prompts: str) -> Rubrics:
        return rubrics_of({}, "weft")


class Writing(Benchmark):
    """Nothing is judged."""

    name = "write"
    version = "1"
    metrics = ()
    presentation = Presentation(title="Documents")
    preparation = WritingPreparation()

    def load(self, data: Path, blobs: Blobs) -> Dataset:
        raise UserError('a document is asked for in a sentence: weft write "..." --model MODEL')

    def build_messages(self, sample: Sample, turn: Turn, dialogue: Dialogue, options: Any) -> tuple[Message, ...]:
        return (Message("user", turn.ask),)

    def questions(self, answered: Answered) -> Iterable[Item]:
        return ()

    def tables(self, runs: Sequence[Finished]) -> Iterator[Table]:
        return iter(())

    def headline(self, verdicts: Sequence[Verdict], groups: Groups) -> Terms:
        return []


class Document(Struct, frozen=True):
    """What to write, with images at hand. Nobody judges it."""

    text: str
    pictures: tuple[Path, ...] = ()

    def open(self, config: RunConfig, workspace: Workspace) -> Material:
        if not self.text.strip():
            raise UserError("say what is to be written")
        benchmark, blobs = Writing(), workspace.blobs
        asked = Asked(wired(config.model, blobs, config.model_options, workspace.settings), blobs)
        ask: tuple[Part, ...] = (Text(self.text), *(_picture(path, blobs) for path in self.pictures))
        sample = Sample(DOCUMENT, (Turn(0, ask, "interleaved", ()),))
        return Material(
            benchmark=benchmark,
            options=benchmark.choose({}),
            load=lambda: ReadDataset("a sentence", digest_of([sample]), (sample,), (), 1),
            replies=asked.replies,
            model=asked.endpoints,
            place=(benchmark.name, ""),
            judge=Endpoint("nobody"),
            prices={"nobody": {"in": 0, "out": 0}},
        )


def _picture(path: Path, blobs: Blobs) -> Image:
    try:
        return blobs.put(read_file(path, MAX_BYTES, PictureError))
    except PictureError as error:
        raise UserError(f"{path} {error}") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None


def written(run: Run) -> Reply:
    """What was written."""
    return run.turns[0].reply if run.turns else Reply("failed", reason="nothing was written")


def ordered(run: Run, home: Path) -> tuple[str, ...]:
    """What a planner ordered, picture by picture; nothing where there was no planner."""
    with reading(home) as journal:
        calls = journal.calls(list(written(run).keys))
    plans = [msgspec.json.decode(call.reply, type=Reply) for call in calls.values() if call.role == "planner"]
    return tuple(order.prompt for plan in plans[:1] for order in parse(parted(plan.text)[1]).pictures)
