"""ImgEdit-Bench's protocol: an image and a request, and one image back; in dialogues two or three requests in turn,
each about what the model itself made before.

One call to a judge gives three scores from 1 to 5, whose mean is the edit's (UGE: one score). The overall score is the
plain mean of the nine types (arXiv 2505.20275).
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.benchmarks.base import Assessment, JudgedTurn, SampleGroups, WeightedMeans
from weft.benchmarks.edits.protocol import JudgedEdits, PartVerdicts
from weft.benchmarks.imgedit import data, official, official_reading, rubric, tables
from weft.benchmarks.imgedit.outputs import ImgEditOutputs
from weft.benchmarks.preparation import Preparation
from weft.benchmarks.presentation import Presentation
from weft.types import Dialogue, LoadedDataset, Message, Question, Sample, Score, Turn, Verdict

if TYPE_CHECKING:
    from weft.benchmarks.base import Benchmark
    from weft.benchmarks.prompts import Rubrics

SCORE = tables.SCORE
OFFICIAL = official.OFFICIAL


class ImgEditPreparation(Preparation, frozen=True):
    def describe_data(self, dataset: LoadedDataset) -> list[str]:
        counts: dict[str, int] = dict.fromkeys(data.SUITES, 0)
        for sample in dataset.samples:
            counts[sample.groups["suite"]] += 1
        return [", ".join(f"{suite}: {count}" for suite, count in counts.items())]

    def rubrics(self, benchmark: "Benchmark", prompts: str) -> "Rubrics":
        if prompts.startswith("official:"):
            return official.read_official_rubrics(Path(prompts.removeprefix("official:")))
        return super().rubrics(benchmark, prompts)


class ImgEdit(JudgedEdits):
    name = "imgedit"
    version = "1"
    metrics = (*rubric.METRICS, rubric.UGE_METRIC, SCORE)
    derived_metrics = (SCORE,)
    axes = ("suite", "type")
    official = OFFICIAL
    presentation = Presentation(
        title="ImgEdit",
        axis_names={"suite": data.SUITES},
        max_score=5.0,
        digits=2,
        distribution_metrics=(SCORE,),
        glossary={
            "Overall": "Plain mean of the types",
            "compliance": "First score: what was asked for is done",
            "seamlessness": "Second score: it fits in, or what was to be kept is kept",
            "detail": "Third score: light, shape and detail are right",
            "uge": "One score of a hard edit",
            SCORE: "Mean of the three scores of an edit",
        },
    )
    preparation = ImgEditPreparation(outputs=ImgEditOutputs)

    load = staticmethod(data.load)  # pyright: ignore[reportAssignmentType]
    tables = staticmethod(tables.tables)  # pyright: ignore[reportAssignmentType]

    def build_messages(self, sample: Sample, turn: Turn, dialogue: Dialogue, options: Any) -> tuple[Message, ...]:
        """Every earlier request, with the image that the model made for it."""
        messages: list[Message] = []
        for earlier in sample.turns[: turn.number]:
            messages.append(Message("user", earlier.prompt))
            reply = dialogue.get(earlier.number)
            if reply is not None and reply.last_image is not None:
                messages.append(Message("assistant", (reply.last_image,)))
        return (*messages, Message("user", turn.prompt))

    def depends_on(self, sample: Sample, turn: Turn, options: Any) -> set[int]:
        return set(range(turn.number))

    def metrics_for(self, turn: Turn) -> tuple[str, ...]:
        return rubric.list_metrics(turn.gold)

    def questions(self, judged_turn: JudgedTurn) -> Iterable[Assessment]:
        yield rubric.build_question(judged_turn)

    def parse_text(self, question: Question, text: str) -> dict[str, Any] | None:
        """Read a reply to a released prompt, which has a line for each score."""
        if not question.text_only or text.lstrip().startswith(("{", "```")):
            return None
        if question.metrics == (rubric.UGE_METRIC,):
            return official_reading.parse_one_score(text)
        names = [name for name in question.schema["properties"] if name != "reasoning"]
        return official_reading.parse_scores(text, names)

    def to_scores(self, question: Question, parsed: dict[str, Any]) -> Sequence[Score]:
        return rubric.build_scores(question, parsed)

    def derive(self, parts: PartVerdicts) -> Iterable[Verdict]:
        """The score of an edit is the mean of its three, or UGE's one."""
        judged = [parts[metric] for metric in (*rubric.METRICS, rubric.UGE_METRIC) if metric in parts]
        if not judged:
            return
        first = judged[0]
        values = [part.value for part in judged if part.value is not None]
        value: float | None = None
        reason = f"only {len(values)} of {len(judged)} scores are there"
        if len(values) == len(judged):
            value = sum(values) / len(values)
            words = [f"{part.metric} {official_reading.MAX_SCORE * (part.value or 0):g}" for part in judged]
            reason = f"the mean of {', '.join(words)}"
        yield Verdict(
            first.sample,
            first.turn,
            SCORE,
            value,
            reason,
            by="failure" if first.by == "failure" else "rule",
            keys=first.keys,
            variant=first.variant,
            reading=first.reading,
        )

    def headline(self, verdicts: Sequence[Verdict], groups: SampleGroups) -> WeightedMeans:
        """The plain mean of the types of the basic suite; without it, of what there is."""
        return tables.overall_terms(verdicts, groups)
