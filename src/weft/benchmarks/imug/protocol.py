"""IMUG-Bench's protocol: the whole dialogue so far, with the model's own replies, in order; each reply is text or one
picture.

A turn that failed puts no words in the model's mouth: its request stays in the history, its reply is absent, and the
dialogue goes on. A static question is scored by its key, without a judge; a dynamic one by the key that the judge works
out from the model's own replies. Under `official` inputs are the released client's, and what is missing is judged as
its scripts do (docs/errata.md)."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from weft.benchmarks.base import Assessment, Benchmark, JudgedTurn, leave_unscored, score_zero
from weft.benchmarks.imug import agreement, data, grid, mcq, released, rubric, tables
from weft.benchmarks.imug.data import ChoiceGold, PointsGold
from weft.benchmarks.imug.facts import ChoiceFacts, PointsFacts, build_choice_facts, build_zero_points
from weft.benchmarks.imug.grid_official import MAX_PIXELS, read_grid_as_released
from weft.benchmarks.imug.official import OFFICIAL
from weft.benchmarks.imug.options import ImugOptions
from weft.benchmarks.imug.outputs import ImugOutputs
from weft.benchmarks.official import OFFICIAL_VARIANT
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


class ImugPresentation(Presentation, frozen=True):
    def describe_options(self, options: ImugOptions) -> list[str]:
        return [options.history, *(["official inputs"] if options.official else []), *_turns(options)]

    def describe_outputs(self, options: ImugOptions) -> list[str]:
        return [*(["official"] if options.official else []), *_turns(options)]

    def agreement_tables(self, found: PairedVerdicts) -> Iterable[Table]:
        return agreement.tables(found)

    def describe_gold(self, gold: Any) -> list[str]:
        facts = dict_or_empty(gold)
        if "points" in facts:
            return [str(point) for point in facts["points"]]
        if "raw" in facts:
            return [f"the key: {facts['raw']}"]
        return []


class ImugPreparation(Preparation, frozen=True):
    def rubrics(self, benchmark: Benchmark, prompts: str) -> Rubrics:
        if prompts.startswith("official:"):
            return released.read_released_rubrics(Path(prompts.removeprefix("official:")))
        return super().rubrics(benchmark, prompts)


class Imug(Benchmark):
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
    preparation = ImugPreparation(outputs=ImugOutputs)

    load = staticmethod(data.load)  # pyright: ignore[reportAssignmentType]
    tables = staticmethod(tables.tables)  # pyright: ignore[reportAssignmentType]

    def parse_options(self, given: Mapping[str, Any]) -> ImugOptions:
        options: ImugOptions = super().parse_options(given)
        if options.official and options.history == "none":
            raise UserError("official inputs are the whole dialogue: leave out history none, or official")
        return options

    def includes(self, turn: Turn, options: ImugOptions) -> bool:
        return options.turns == "all" or options.turns == turn.modality

    def build_messages(
        self, sample: Sample, turn: Turn, dialogue: Dialogue, options: ImugOptions
    ) -> tuple[Message, ...]:
        system = sample.system
        if not system.strip() and not options.official:
            system = self.preparation.rubrics(self, "weft").texts["system"].strip()
        messages = [Message("system", (Text(system),))] if system else []
        for earlier in sample.turns[: turn.number] if options.history != "none" else ():
            messages.append(Message("user", earlier.prompt))
            said = self._said(earlier, dialogue.get(earlier.number))
            if options.official and not said and self.includes(earlier, options):
                said = self._kept(earlier, dialogue.get(earlier.number))
            if said:
                messages.append(Message("assistant", said))
        return (*messages, Message("user", turn.prompt))

    def _said(self, turn: Turn, reply: Reply | None) -> tuple[Text | Image, ...]:
        """What stands in the history for a reply: the answer, or the picture that counts."""
        if reply is None:
            return ()
        if turn.modality == "image":
            if reply.last_image:
                return (reply.last_image,)
            return ()
        if reply.text and reply.outcome != "failed":
            return (Text(reply.raw_text),)
        return ()

    def _kept(self, turn: Turn, reply: Reply | None) -> tuple[Text, ...]:
        """What the released client keeps of a reply that has not what was due: blanks as they are, a word of its own
        for all else."""
        if reply is not None and turn.modality == "text" and reply.outcome == "empty":
            blank = reply.raw_text
        else:
            blank = ""
        return (Text(blank or "Error"),)

    def metrics_for(self, turn: Turn) -> tuple[str, ...]:
        if turn.modality == "text":
            return ("choice",)
        return ("points",)

    def _facts(self, turn: Turn, reply: Reply) -> ChoiceFacts | PointsFacts:
        gold: ChoiceGold | PointsGold = turn.gold
        if isinstance(gold, ChoiceGold):
            return build_choice_facts(gold, reply.raw_text)
        return build_zero_points(len(gold.points))

    def questions(self, answered: JudgedTurn) -> Iterable[Assessment]:
        if answered.turn.modality == "text":
            return self._choice(answered)
        gold: PointsGold = answered.turn.gold
        detail = self._facts(answered.turn, answered.reply)
        if gold.grid is not None:
            return [answered.check("points", lambda blobs: [self._grid(answered, blobs)], detail)]
        lost = [ref.turn for ref in gold.references if ref.kind == "output" and answered.is_unavailable(ref.turn - 1)]
        if lost:
            why = f"it is judged beside the picture of turn {lost[0]}, which has no reply through no fault of the model"
            return [
                answered.verdict("points", None, why, detail=detail),
                *(self._about_nothing(answered) if answered.is_precomputed else ()),
            ]
        return [self._about_points(answered)]

    def on_no_answer(self, answered: JudgedTurn) -> Iterable[Assessment]:
        """Zero, and what the scripts ask about a picture that is not there."""
        if answered.turn.modality == "text" and not answered.turn.gold.key and not answered.turn.gold.dynamic:
            return self._choice(answered)
        zeros = score_zero(answered, self.metrics_for(answered.turn), self._facts(answered.turn, answered.reply))
        return [*zeros, *self._about_nothing(answered)]

    def on_failed(self, answered: JudgedTurn) -> Iterable[Assessment]:
        lost = leave_unscored(answered, self.metrics_for(answered.turn), self._facts(answered.turn, answered.reply))
        return [*lost, *(self._about_nothing(answered) if answered.is_precomputed else ())]

    def _about_nothing(self, answered: JudgedTurn) -> list[Question]:
        """The scripts have the judge look at what is left."""
        if not answered.options.official or answered.turn.modality == "text":
            return []
        return [replace(self._about_points(answered), variant=OFFICIAL_VARIANT)]

    def _about_points(self, answered: JudgedTurn) -> Question:
        made = answered.reply.last_image
        due = len(answered.turn.gold.points)
        if answered.rubrics.official:
            more = {"gold": answered.turn.gold.points, "detail": build_zero_points(due)}
            return released.build_points_question(answered, made, rubric.points_schema(due), more)
        return rubric.build_points_question(answered, made, self._references(answered))

    def _grid(self, answered: JudgedTurn, blobs: Blobs) -> Verdict:
        """The cubes tasks are read from pixels, without a judge."""
        gold: PointsGold = answered.turn.gold
        assert gold.grid is not None
        with blobs.decode_within_memory(answered.image) as picture:
            known = picture.width * picture.height <= MAX_PIXELS
            found = grid.read_grid(picture)
            if known:
                theirs = read_grid_as_released(picture)
            else:
                theirs = None
        scores = grid.score_grid(found, gold.grid, len(gold.points))
        if found is None:
            seen = "no lattice"
        else:
            seen = " / ".join("".join(row) for row in found)
        why = f"{seen} was read, {' / '.join(''.join(row) for row in gold.grid)} is right"
        by_script = grid.score_grid(theirs, gold.grid, len(gold.points))
        reading = OfficialReading(sum(by_script) / len(by_script) if known else None)
        more: dict[str, Any] = {"detail": PointsFacts(tuple(scores)), "score": sum(scores), "reading": reading}
        return answered.verdict("points", sum(scores) / (5 * len(scores)), why, **more)

    def _choice(self, answered: JudgedTurn) -> list[Assessment]:
        gold: ChoiceGold = answered.turn.gold
        answer = answered.reply.text
        detail = self._facts(answered.turn, answered.reply)
        if not gold.dynamic and not gold.key:
            return [answered.verdict("choice", None, f"its key, {gold.raw!r}, names no option", detail=detail)]
        if not gold.dynamic:
            value = mcq.score_strict(answer, gold.key, mcq.find_options(gold.question))
            return [
                answered.verdict("choice", value, f"said {answer.strip()[:80]!r}; {gold.key} is right", detail=detail)
            ]
        lost = [number for number in gold.looks_at if answered.is_unavailable(number - 1)]
        if lost:
            asked = self.includes(answered.sample.turns[lost[0] - 1], answered.options)
            if asked:
                what = "has no reply through no fault of the model"
            else:
                what = f"is not asked in a run of {answered.options.turns} turns"
            why = f"its right answer depends on turn {lost[0]}, which {what}"
            asks = answered.options.official and answered.is_precomputed  # as the scripts do, of whatever is there
            by_script = [replace(rubric.build_key_question(answered), variant=OFFICIAL_VARIANT)] if asks else []
            return [answered.verdict("choice", None, why, detail=detail), *by_script]
        return [rubric.build_key_question(answered)]

    def _references(self, answered: JudgedTurn) -> list[tuple[int, str, Image]]:
        """What the picture is judged beside: turn (1-based), whether given or made there, and the picture."""
        gold: PointsGold = answered.turn.gold
        shown: list[tuple[int, str, Image]] = []
        for reference in gold.references:
            if reference.kind == "recent":
                shown += self._recent(answered)
            elif reference.kind == "output":
                own = answered.image_of_turn(reference.turn - 1)
                shown += [(reference.turn, "made", own)] if own else []
            else:
                shown += [
                    (reference.turn, "given", image) for image in _given(answered.sample.turns[reference.turn - 1])
                ]
        return shown

    def _recent(self, answered: JudgedTurn) -> list[tuple[int, str, Image]]:
        turn = answered.turn
        given = _given(turn)
        if given:
            return [(turn.number + 1, "given", given[-1])]
        for earlier in reversed(answered.sample.turns[: turn.number]):
            own = answered.image_of_turn(earlier.number)
            if own:
                return [(earlier.number + 1, "made", own)]
            given = _given(earlier)
            if given:
                return [(earlier.number + 1, "given", given[-1])]
        return []

    def to_scores(self, question: Question, found: dict[str, Any]) -> Sequence[Score]:
        return [
            rubric.score_choice(question, found)
            if "choice" in question.metrics
            else rubric.score_points(question, found)
        ]


def _turns(options: ImugOptions) -> list[str]:
    if options.turns != "all":
        return [f"{options.turns} turns"]
    return []


def _given(turn: Turn) -> list[Image]:
    return [part for part in turn.prompt if isinstance(part, Image)]
