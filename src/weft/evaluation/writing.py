"""One document, asked for in a sentence: a run without a dataset and without a judge. It is journalled, budgeted and resumed like any
other: the same sentence to the same model is the same document, and costs nothing the second time."""

import contextlib
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from weft.benchmarks.base import Answered, Benchmark, Finished, Groups, Item, Terms
from weft.benchmarks.preparation import Preparation
from weft.benchmarks.presentation import Presentation
from weft.benchmarks.prompts import Rubrics, rubrics_of
from weft.benchmarks.records import digest_of
from weft.calls.caller import Patience
from weft.errors import PictureError, UserError
from weft.evaluation.generate import Live
from weft.evaluation.plan import Plan, told_endpoint, told_model
from weft.evaluation.session import Session, check_numbers
from weft.models.compose.imagine import parse
from weft.models.config import usual_home
from weft.models.endpoint import Endpoint
from weft.models.registry import wired
from weft.models.thinking import parted
from weft.results.run import Run
from weft.store.blobs import Blobs
from weft.store.images import MAX_BYTES
from weft.types import Dataset, Dialogue, Image, Message, Part, Reply, Sample, Table, Text, Turn, Verdict
from weft.untrusted import read_file
from weft.workspace import Limits, Workspace, reading

DOCUMENT = "document"  # what its one sample is called


class WriteJob(Struct, frozen=True, kw_only=True):
    """What to write, with pictures at hand, and who writes it."""

    text: str
    model: Any
    pictures: tuple[Path, ...] = ()
    home: str | Path = field(default_factory=usual_home)
    concurrency: int | None = None
    judge_repeats: int = 1
    budget: float | None = None
    model_options: Mapping[str, Any] = {}
    patience: Patience = Patience()


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


@contextlib.asynccontextmanager
async def open_writing(job: WriteJob) -> AsyncGenerator[Session]:
    check_numbers(job)
    if not job.text.strip():
        raise UserError("say what is to be written")
    workspace, benchmark = Workspace(job.home), Writing()
    blobs = workspace.blobs
    model = wired(job.model, blobs, job.model_options, workspace.settings)
    ask: tuple[Part, ...] = (Text(job.text), *(_picture(path, blobs) for path in job.pictures))
    sample = Sample(DOCUMENT, (Turn(0, ask, "interleaved", ()),))
    dataset = Dataset("a sentence", digest_of([sample]), (sample,), (), 1)
    nobody = Endpoint("nobody")
    limits, free = Limits(job.budget, job.concurrency, None, job.patience), {"nobody": {"in": 0, "out": 0}}
    async with workspace.open({**model.endpoints, "judge": nobody}, limits, prices=free) as roles:
        told = (told_model(model), told_endpoint(nobody))
        rubrics = benchmark.preparation.rubrics(benchmark, "weft")
        plan = Plan(benchmark, dataset, benchmark.choose({}), rubrics, *told, "none", 1, {"limit": None, "where": {}})
        yield Session(job, plan, roles, lambda parts: Live(plan, model, blobs, parts), (benchmark.name, ""))


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
