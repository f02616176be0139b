"""IMUG-Bench's protocol: the whole dialogue so far, with the model's own replies; each reply is text or one image.

A turn that failed invents no reply: its request stays in the history, its reply is absent, and the dialogue goes on. A
static question is scored by its key, without a judge; a dynamic one by the key that the judge works out from the
model's own replies. Under `official`, inputs are the released client's, and missing images are judged as its scripts do
(docs/reference/errata.md).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from weft.benchmarks.base import Assessment, Benchmark, JudgedTurn, leave_unscored, score_zero
from weft.benchmarks.imug import agreement, data, grid, mcq, official_questions, rubric, tables
from weft.benchmarks.imug.data import ChoiceGold, PointsGold
from weft.benchmarks.imug.facts import ChoiceFacts, PointsFacts, build_choice_facts, build_zero_points
from weft.benchmarks.imug.grid_official import MAX_PIXELS, read_grid_as_released
from weft.benchmarks.imug.official import OFFICIAL
from weft.benchmarks.imug.options import ImugOptions
from weft.benchmarks.imug.outputs import UNREADABLE, ImugOutputs
from weft.benchmarks.imug.statistics import IMUG_STATISTICS
from weft.benchmarks.official import OFFICIAL_VARIANT, find_released_image
from weft.benchmarks.paired_verdicts import PairedVerdicts
from weft.benchmarks.preparation import Preparation
from weft.benchmarks.presentation import Presentation
from weft.benchmarks.prompts import Rubrics
from weft.errors import UserError
from weft.store.blobs import Blobs
from weft.types import (
    Dialogue,
    Image,
    Message,
    OfficialReading,
    Question,
    Reply,
    Sample,
    Score,
    Table,
    Text,
    Turn,
    Verdict,
)
from weft.untrusted import dict_or_empty

if TYPE_CHECKING:
    from PIL import Image as Pil

ReferenceImage = tuple[int, str, Image]  # turn, from 1; whether `given` or `made` there; the image


class ImugPresentation(Presentation, frozen=True):
    """How IMUG-Bench's results are shown."""

    def describe_options(self, options: ImugOptions) -> list[str]:
        descriptions: list[str] = [options.history]
        if options.official:
            descriptions.append("official inputs")
        return [*descriptions, *_describe_turns(options)]

    def describe_outputs(self, options: ImugOptions) -> list[str]:
        if options.official:
            return ["official", *_describe_turns(options)]
        return _describe_turns(options)

    def agreement_tables(self, paired: PairedVerdicts) -> Iterable[Table]:
        return agreement.tables(paired)

    def describe_gold(self, gold: Any) -> list[str]:
        fields = dict_or_empty(gold)
        if "points" in fields:
            return list(map(str, fields["points"]))
        if "raw" in fields:
            return [f"the key: {fields['raw']}"]
        return []


def _describe_turns(options: ImugOptions) -> list[str]:
    if options.turns == "all":
        return []
    return [f"{options.turns} turns"]


class ImugPreparation(Preparation, frozen=True):
    """How IMUG-Bench's prompts and outputs are read."""

    def rubrics(self, benchmark: Benchmark, prompts: str) -> Rubrics:
        if prompts.startswith("official:"):
            return official_questions.read_released_rubrics(Path(prompts.removeprefix("official:")))
        return super().rubrics(benchmark, prompts)


class Imug(Benchmark):
    """IMUG-Bench."""

    name = "imug"
    version = "1"
    metrics = ("choice", "points")
    Options = ImugOptions
    axes = ("class", "domain", "task")
    official = OFFICIAL
    presentation = ImugPresentation(
        title="IMUG-Bench",
        max_score=100.0,
        digits=1,
        glossary={
            "Und.": "Understanding: multiple-choice questions answered with text",
            "Gen.": "Generation: evaluation points that the images meet",
            "MCQ": "Multiple-choice questions: the key is fixed (static) or follows from earlier replies (dynamic)",
            "Avg": "Average over all turns",
            "Average": "Average over all turns",
            "per turn": "Change of the score from one turn of a dialogue to the next",
            "choice": "Multiple-choice questions answered with text",
            "points": "Evaluation points that the images meet",
        },
    )
    preparation = ImugPreparation(outputs=ImugOutputs, statistics=IMUG_STATISTICS)

    load = staticmethod(data.load)  # pyright: ignore[reportAssignmentType]
    tables = staticmethod(tables.tables)  # pyright: ignore[reportAssignmentType]

    def parse_options(self, values: Mapping[str, Any]) -> ImugOptions:
        options: ImugOptions = super().parse_options(values)
        if options.official and options.history == "none":
            raise UserError("official inputs are the whole dialogue: leave out history none, or official")
        return options

    def includes(self, turn: Turn, options: ImugOptions) -> bool:
        return options.turns == "all" or options.turns == turn.modality

    def build_messages(
        self, sample: Sample, turn: Turn, dialogue: Dialogue, options: ImugOptions
    ) -> tuple[Message, ...]:
        messages: list[Message] = []
        system = sample.system
        if not system.strip() and not options.official:
            system = self.preparation.rubrics(self, "weft").texts["system"].strip()
        if system:
            messages.append(Message("system", (Text(system),)))
        earlier_turns = sample.turns[: turn.number]
        if options.history == "none":
            earlier_turns = ()
        for earlier in earlier_turns:
            messages.append(Message("user", earlier.prompt))
            reply = dialogue.get(earlier.number)
            output = _history_output(earlier, reply)
            if options.official and not output and self.includes(earlier, options):
                output = _released_placeholder(earlier, reply)
            if output:
                messages.append(Message("assistant", output))
        return (*messages, Message("user", turn.prompt))

    def metrics_for(self, turn: Turn) -> tuple[str, ...]:
        if turn.modality == "text":
            return ("choice",)
        return ("points",)

    def questions(self, judged_turn: JudgedTurn) -> Iterable[Assessment]:
        if judged_turn.turn.modality == "text":
            yield from self._assess_choice(judged_turn)
            return
        gold: PointsGold = judged_turn.turn.gold
        detail = _build_detail(judged_turn)
        if gold.grid is not None:
            yield judged_turn.check("points", lambda blobs: [_score_cubes(judged_turn, blobs)], detail)
            return
        for reference in gold.references:
            if reference.kind == "output" and judged_turn.is_unavailable(reference.turn - 1):
                reason = (
                    f"it is judged against the image of turn {reference.turn}, which has no reply through no fault of "
                    "the model"
                )
                yield judged_turn.verdict("points", None, reason, detail=detail)
                yield from self._ask_about_missing_image(judged_turn)
                return
        yield self._ask_points(judged_turn)
        if _is_lost(judged_turn):
            yield _leave_out(judged_turn)

    def on_no_answer(self, judged_turn: JudgedTurn) -> Iterable[Assessment]:
        """Yield zeros, and under `official` what the scripts ask about a missing image."""
        gold: ChoiceGold | PointsGold = judged_turn.turn.gold
        if isinstance(gold, ChoiceGold) and not gold.key and not gold.dynamic:
            yield from self._assess_choice(judged_turn)
            return
        yield from score_zero(judged_turn, self.metrics_for(judged_turn.turn), _build_detail(judged_turn))
        yield from self._ask_about_missing_image(judged_turn)

    def on_failed(self, judged_turn: JudgedTurn) -> Iterable[Assessment]:
        """Yield unscored verdicts, and what the scripts make of a missing image, or of one that they alone can read."""
        gold: ChoiceGold | PointsGold = judged_turn.turn.gold
        if (
            isinstance(gold, PointsGold)
            and gold.grid is not None
            and find_released_image(judged_turn.reply) is not None
        ):
            yield judged_turn.check("points", lambda blobs: _read_cubes_as_released(judged_turn, blobs))
            return
        yield from leave_unscored(judged_turn, self.metrics_for(judged_turn.turn), _build_detail(judged_turn))
        yield from self._ask_about_missing_image(judged_turn)

    def _ask_about_missing_image(self, judged_turn: JudgedTurn) -> Iterator[Assessment]:
        """Yield the scripts' question about the images that remain, under `official` alone.

        A turn that depends on a failed call of this run is not asked about: the next run makes the call again.
        """
        if judged_turn.turn.modality == "text":
            return
        if _is_lost(judged_turn):
            yield _leave_out(judged_turn)
        elif judged_turn.options.official and (
            judged_turn.is_precomputed or judged_turn.reply.outcome in ("empty", "refused")
        ):
            yield replace(self._ask_points(judged_turn), variant=OFFICIAL_VARIANT)

    def _ask_points(self, judged_turn: JudgedTurn) -> Question:
        image = find_released_image(judged_turn.reply)
        gold: PointsGold = judged_turn.turn.gold
        if judged_turn.rubrics.official_prompts:
            count = len(gold.points)
            more = {"gold": gold.points, "detail": build_zero_points(count)}
            return official_questions.build_points_question(
                judged_turn, image, rubric.points_schema(count, is_counted=False), more
            )
        return rubric.build_points_question(judged_turn, image, _reference_images(judged_turn))

    def _assess_choice(self, judged_turn: JudgedTurn) -> Iterator[Assessment]:
        """Yield a verdict by the key, or the question that works out a dynamic key."""
        gold: ChoiceGold = judged_turn.turn.gold
        detail = _build_detail(judged_turn)
        if not gold.dynamic and not gold.key:
            reading: OfficialReading | None = None
            if gold.raw:
                reading = OfficialReading(mcq.score_as_released(judged_turn.reply.raw_text, gold.raw))
            reason = f"its key, {gold.raw!r}, names no option"
            yield judged_turn.verdict("choice", None, reason, detail=detail, reading=reading)
            return
        if not gold.dynamic:
            answer = judged_turn.reply.text
            value = mcq.score_strict(answer, gold.key, mcq.find_options(gold.question))
            reason = f"said {answer.strip()[:80]!r}; {gold.key} is right"
            yield judged_turn.verdict("choice", value, reason, detail=detail)
            return
        unavailable = [number for number in gold.looks_at if judged_turn.is_unavailable(number - 1)]
        if not unavailable:
            yield rubric.build_key_question(judged_turn)
            return
        problem = f"is not asked in a run of {judged_turn.options.turns} turns"
        if self.includes(judged_turn.sample.turns[unavailable[0] - 1], judged_turn.options):
            problem = "has no reply through no fault of the model"
        reason = f"its right answer depends on turn {unavailable[0]}, which {problem}"
        yield judged_turn.verdict("choice", None, reason, detail=detail)
        is_readable = not any(_is_unreadable(judged_turn, number - 1) for number in unavailable)
        if judged_turn.options.official and judged_turn.is_precomputed and is_readable:
            # the scripts ask with whatever replies there are
            yield replace(rubric.build_key_question(judged_turn), variant=OFFICIAL_VARIANT)

    def to_scores(self, question: Question, parsed: dict[str, Any]) -> Sequence[Score]:
        if "choice" in question.metrics:
            return [rubric.score_choice(question, parsed)]
        return [rubric.score_points(question, parsed)]


def _is_unreadable(judged_turn: JudgedTurn, turn: int) -> bool:
    """Whether a turn's output, made elsewhere, is there and cannot be read."""
    reply = judged_turn.dialogue.get(turn)
    return reply is not None and UNREADABLE in reply.notes


def _is_lost(judged_turn: JudgedTurn) -> bool:
    """Whether the released scripts lose an image turn: its own output, or one that it is judged against, is
    unreadable."""
    gold: PointsGold = judged_turn.turn.gold
    turns = [judged_turn.turn.number]
    turns += [reference.turn - 1 for reference in gold.references if reference.kind == "output"]
    return any(_is_unreadable(judged_turn, turn) for turn in turns)


def _leave_out(judged_turn: JudgedTurn) -> Verdict:
    """Return the official row's verdict of an image turn that the released scripts lose."""
    reason = "the released scripts cannot read an output that they look at here"
    return judged_turn.verdict("points", None, reason, variant=OFFICIAL_VARIANT)


def _history_output(turn: Turn, reply: Reply | None) -> tuple[Text | Image, ...]:
    """Return what the history shows of a reply: the answer, or the image that counts."""
    if reply is None:
        return ()
    if turn.modality == "image" and reply.last_image:
        return (reply.last_image,)
    if turn.modality != "image" and reply.text and reply.outcome != "failed":
        return (Text(reply.raw_text),)
    return ()


def _released_placeholder(turn: Turn, reply: Reply | None) -> tuple[Text, ...]:
    """Return what the released client stores for a reply without the expected output: its blanks, else `Error`."""
    if reply is not None and turn.modality == "text" and reply.outcome == "empty" and reply.raw_text:
        return (Text(reply.raw_text),)
    return (Text("Error"),)


def _build_detail(judged_turn: JudgedTurn) -> ChoiceFacts | PointsFacts:
    gold: ChoiceGold | PointsGold = judged_turn.turn.gold
    if isinstance(gold, ChoiceGold):
        return build_choice_facts(gold, judged_turn.reply.raw_text)
    return build_zero_points(len(gold.points))


def _score_cubes(judged_turn: JudgedTurn, blobs: Blobs) -> Verdict:
    """Score an image of the cubes tasks, which is read from pixels, without a judge."""
    gold: PointsGold = judged_turn.turn.gold
    assert gold.grid is not None
    count = len(gold.points)
    with blobs.decode_within_memory(judged_turn.image) as image:
        cells = grid.read_grid(image)
        reading = _find_cubes_reading(gold, image)
    points = grid.score_grid(cells, gold.grid, count)
    description = "no lattice"
    if cells is not None:
        description = _format_grid(cells)
    return judged_turn.verdict(
        "points",
        sum(points) / (5 * count),
        f"{description} was read, {_format_grid(gold.grid)} is right",
        detail=PointsFacts(tuple(points)),
        score=sum(points),
        reading=reading,
    )


def _find_cubes_reading(gold: PointsGold, image: "Pil.Image") -> OfficialReading:
    """Return the scripts' mean of the points of an image of the cubes tasks."""
    if gold.grid is None or image.width * image.height > MAX_PIXELS:
        return OfficialReading()
    points = grid.score_grid(read_grid_as_released(image), gold.grid, len(gold.points))
    return OfficialReading(sum(points) / len(points))


def _read_cubes_as_released(judged_turn: JudgedTurn, blobs: Blobs) -> list[Verdict]:
    """Leave an image unscored that weft cannot read, and read it for the official row as the scripts do."""
    detail = _build_detail(judged_turn)
    verdicts = leave_unscored(judged_turn, ("points",), detail)
    image = find_released_image(judged_turn.reply)
    if image is not None:
        with blobs.decode_within_memory(image) as pixels:
            reading = _find_cubes_reading(judged_turn.turn.gold, pixels)
        reason = "read by the released scripts alone"
        official = judged_turn.verdict("points", None, reason, detail=detail, reading=reading, variant=OFFICIAL_VARIANT)
        verdicts.append(official)
    return verdicts


def _format_grid(cells: grid.Grid) -> str:
    return " / ".join(map("".join, cells))


def _reference_images(judged_turn: JudgedTurn) -> list[ReferenceImage]:
    """Return the images that the model's image is judged against."""
    gold: PointsGold = judged_turn.turn.gold
    references: list[ReferenceImage] = []
    for reference in gold.references:
        if reference.kind == "recent":
            references += _most_recent_image(judged_turn)
        elif reference.kind == "output":
            own = judged_turn.image_of_turn(reference.turn - 1)
            if own:
                references.append((reference.turn, "made", own))
        else:
            for image in _prompt_images(judged_turn.sample.turns[reference.turn - 1]):
                references.append((reference.turn, "given", image))
    return references


def _most_recent_image(judged_turn: JudgedTurn) -> list[ReferenceImage]:
    """Return the last image before the model's own: of this turn's prompt, else of the latest turn that has one."""
    turn = judged_turn.turn
    images = _prompt_images(turn)
    if images:
        return [(turn.number + 1, "given", images[-1])]
    for earlier in reversed(judged_turn.sample.turns[: turn.number]):
        own = judged_turn.image_of_turn(earlier.number)
        if own:
            return [(earlier.number + 1, "made", own)]
        images = _prompt_images(earlier)
        if images:
            return [(earlier.number + 1, "given", images[-1])]
    return []


def _prompt_images(turn: Turn) -> list[Image]:
    return [part for part in turn.prompt if isinstance(part, Image)]
