"""WEAVEBench's protocol: what a model is shown (`weft.history`), and what its replies are judged on.

A refusal or a missing output scores zero on every metric of its turn, without a judge call. So do key points and consistency of a
picture whose reference is an own earlier picture that the model did not make. Where something of ours is missing, nothing is scored.
"""

from collections.abc import Sequence
from pathlib import Path

from weft import history
from weft.benchmarks import Finished, Rubrics
from weft.benchmarks.weave import data, rubric, tables
from weft.benchmarks.weave.data import KeyPoint
from weft.numbering import maker_of, own_picture
from weft.store.blobs import Blobs
from weft.types import Dataset, Dialogue, Image, Message, Place, Question, Sample, Table, Turn, Verdict, View


class Weave:
    name = "weave"
    version = "1"
    metrics = rubric.IMAGE_METRICS + rubric.TEXT_METRICS
    full_marks = 10.0
    published_judge = "gpt-4o"

    def load(self, data_folder: Path, blobs: Blobs) -> Dataset:
        return data.load(data_folder, blobs)

    def default_view(self) -> View:
        return View("partial")

    def see(self, sample: Sample, turn: Turn, dialogue: Dialogue, view: View) -> tuple[Message, ...]:
        return history.see(sample, turn, dialogue, view)

    def needs(self, sample: Sample, turn: Turn, view: View) -> set[int]:
        return history.needs(sample, turn, view)

    def rubrics(self, prompts: str) -> Rubrics:
        return rubric.rubrics(prompts)

    def tables(self, runs: Sequence[Finished]) -> list[Table]:
        return tables.tables(runs)

    def headline(self, verdicts: Sequence[Verdict]) -> list[tuple[float, Sequence[Verdict]]]:
        return tables.headline(verdicts)

    def questions(self, sample: Sample, turn: Turn, dialogue: Dialogue, view: View, rubrics: Rubrics) -> tuple[Question | Verdict, ...]:
        reply = dialogue[turn.number]
        metrics = rubric.TEXT_METRICS if turn.want == "text" else rubric.IMAGE_METRICS
        if reply.outcome == "failed":
            return tuple(_unscored(sample, turn, metric, reply.reason) for metric in metrics)
        if reply.outcome != "answered":
            why = f"{reply.outcome}: {reply.reason}" if reply.reason else reply.outcome
            return tuple(_zero(sample, turn, metric, why) for metric in metrics)
        place = Place(sample.id, turn.number, turn.file)
        if turn.want == "text":
            return (rubric.about_answer(rubrics, _reference(turn), reply.text, place),)
        made = own_picture(reply)
        assert made is not None, "an answered image turn has a picture"
        return tuple(self._about_picture(metric, sample, turn, dialogue, rubrics, made, place) for metric in metrics)

    def _about_picture(
        self, metric: str, sample: Sample, turn: Turn, dialogue: Dialogue, rubrics: Rubrics, made: Image, place: Place
    ) -> Question | Verdict:
        points: tuple[KeyPoint, ...] = turn.gold
        references: list[Image] = []
        if metric != "image_quality":
            for point in points:
                if point.number is None:
                    continue
                maker = maker_of(sample, point.number) if point.source == "Image" else None
                if maker is None:
                    references.append(sample.pictures[point.number - 1])
                    continue
                own = own_picture(dialogue.get(maker.number))
                if own is None:
                    what = f'its reference "Image #{point.number}" is the picture of turn {maker.number}'
                    if maker.number not in dialogue or dialogue[maker.number].outcome == "failed":
                        return _unscored(sample, turn, metric, f"{what}, which is missing through no fault of the model")
                    return _zero(sample, turn, metric, f"{what}, which the model did not make")
                references.append(own)
        return rubric.about_picture(metric, rubrics, made, points, references, place, points)


def _reference(turn: Turn) -> str:
    return "".join(part.text for part in turn.truth if not isinstance(part, Image))


def _zero(sample: Sample, turn: Turn, metric: str, reason: str) -> Verdict:
    return Verdict(sample.id, turn.number, metric, 0.0, reason, by="failure")


def _unscored(sample: Sample, turn: Turn, metric: str, reason: str) -> Verdict:
    return Verdict(sample.id, turn.number, metric, None, reason, by="rule")
