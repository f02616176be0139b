"""IMUG-Bench's protocol: the whole dialogue so far, with the model's own replies, in order; each reply is text or one picture.

A turn that failed puts no words in the model's mouth: its request stays in the history, its reply is absent, and the dialogue goes on.
A static question is scored by its key, without a judge; a dynamic one by the key that the judge works out from the model's own replies.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from weft.benchmarks import Finished, Rubrics
from weft.benchmarks.imug import data, grid, mcq, rubric, tables
from weft.benchmarks.imug.data import Choice, Points
from weft.errors import UserError
from weft.models.endpoint import Endpoint
from weft.numbering import own_picture
from weft.store.blobs import Blobs
from weft.types import Dataset, Dialogue, Image, Message, Place, Question, Reply, Sample, Table, Text, Turn, Verdict, View


class Imug:
    name = "imug"
    version = "1"
    metrics = ("choice", "points")
    published_judge = "qwen3-vl-235b-a22b-thinking"

    def load(self, data_folder: Path, blobs: Blobs) -> Dataset:
        self._blobs = blobs
        return data.load(data_folder, blobs)

    def default_view(self) -> View:
        return View("dialogue", "front")

    def check_view(self, view: View) -> None:
        """The protocol has one history, the dialogue with the model's own replies; `none` shows what it is worth."""
        if view.history not in ("dialogue", "none") or view.placement != "front":
            raise UserError("imug shows the whole dialogue in its own order: --history dialogue, or none; there is no --placement")
        if view.past != "own" or view.official:
            raise UserError("imug has no true pictures: the past is the model's own, and there are no official inputs beside ours")

    def needs(self, sample: Sample, turn: Turn, view: View) -> set[int]:
        return set()

    def see(self, sample: Sample, turn: Turn, dialogue: Dialogue, view: View) -> tuple[Message, ...]:
        system = sample.system.strip() or rubric.rubrics("weft").texts["system"].strip()
        messages = [Message("system", (Text(system),))]
        for earlier in sample.turns[: turn.number] if view.history != "none" else ():
            messages.append(Message("user", earlier.ask))
            said = self._said(earlier, dialogue.get(earlier.number))
            if said:
                messages.append(Message("assistant", said))
        return (*messages, Message("user", turn.ask))

    def _said(self, turn: Turn, reply: Reply | None) -> tuple[Text | Image, ...]:
        """What stands in the history for a reply: the answer, or the picture that counts."""
        made = own_picture(reply)
        if turn.want == "image":
            return (made,) if made else ()
        return (Text(reply.text),) if reply is not None and reply.text else ()

    def rubrics(self, prompts: str) -> Rubrics:
        return rubric.rubrics(prompts)

    def read(self, question: Question, found: dict[str, Any]) -> tuple[float, str, Any]:
        return rubric.read(question, found)

    def tables(self, runs: Sequence[Finished]) -> list[Table]:
        return tables.tables(runs)

    def outputs(self, folder: Path, blobs: Blobs) -> Endpoint:
        from weft.benchmarks.imug.outputs import Outputs

        return Outputs(folder, blobs)

    def questions(self, sample: Sample, turn: Turn, dialogue: Dialogue, view: View, rubrics: Rubrics) -> tuple[Question | Verdict, ...]:
        reply = dialogue[turn.number]
        metric = "choice" if turn.want == "text" else "points"
        detail = self._detail(turn, reply)
        if reply.outcome == "failed":
            return (Verdict(sample.id, turn.number, metric, None, reply.reason, "rule", detail=detail),)
        if reply.outcome != "answered":
            why = f"{reply.outcome}: {reply.reason}" if reply.reason else reply.outcome
            return (Verdict(sample.id, turn.number, metric, 0.0, why, "failure", detail=detail),)
        place = Place(sample.id, turn.number, turn.file)
        if turn.want == "text":
            return (self._choice(sample, turn, dialogue, rubrics, place, reply.text),)
        made = own_picture(reply)
        assert made is not None, "an answered image turn has a picture"
        gold: Points = turn.gold
        if gold.grid is not None:
            return (self._grid(sample, turn, gold, made),)
        lost = [ref.turn for ref in gold.references if ref.kind == "output" and self._is_lost(dialogue.get(ref.turn - 1))]
        if lost:
            why = f"it is judged beside the picture of turn {lost[0]}, which has no reply through no fault of the model"
            return (Verdict(sample.id, turn.number, metric, None, why, "rule", detail=detail),)
        return (self._points(sample, turn, dialogue, rubrics, place, made),)

    def _is_lost(self, reply: Reply | None) -> bool:
        return reply is None or reply.outcome == "failed"

    def _grid(self, sample: Sample, turn: Turn, gold: Points, made: Image) -> Verdict:
        """The cubes tasks are read from pixels, without a judge."""
        assert gold.grid is not None
        found = grid.read_grid(self._blobs.open(made))
        scores = grid.points(found, gold.grid, len(gold.points))
        seen = "no lattice" if found is None else " / ".join("".join(row) for row in found)
        why = f"{seen} was read, {' / '.join(''.join(row) for row in gold.grid)} is right"
        value = sum(scores) / (5 * len(scores))
        return Verdict(sample.id, turn.number, "points", value, why, "rule", detail={"points": scores})

    def _detail(self, turn: Turn, reply: Reply) -> dict[str, Any]:
        """What tables need to know of a turn whatever became of it."""
        gold: Choice | Points = turn.gold
        if isinstance(gold, Choice):
            return {"response": reply.text, "key": gold.raw, "dynamic": gold.dynamic}
        return {"points": [0] * len(gold.points)}

    def _choice(self, sample: Sample, turn: Turn, dialogue: Dialogue, rubrics: Rubrics, place: Place, answer: str) -> Question | Verdict:
        gold: Choice = turn.gold
        if not gold.dynamic:
            value = mcq.score(answer, gold.key, mcq.options(gold.question))
            why = f"said {answer.strip()[:80]!r}; {gold.key} is right"
            return Verdict(sample.id, turn.number, "choice", value, why, "rule", detail=self._detail(turn, dialogue[turn.number]))
        earlier = [(sample.turns[number - 1], dialogue[number - 1]) for number in gold.looks_at if number - 1 in dialogue]
        failed = [other.number + 1 for other, reply in earlier if reply.outcome == "failed"]
        if failed or len(earlier) < len(gold.looks_at):
            turn_missing = failed[0] if failed else gold.looks_at[0]
            why = f"its right answer depends on turn {turn_missing}, which has no reply through no fault of the model"
            return Verdict(sample.id, turn.number, "choice", None, why, "rule", detail=self._detail(turn, dialogue[turn.number]))
        return rubric.about_key(rubrics, turn, earlier, answer, place)

    def _points(self, sample: Sample, turn: Turn, dialogue: Dialogue, rubrics: Rubrics, place: Place, made: Image) -> Question:
        gold: Points = turn.gold
        shown: list[tuple[str, Image]] = []
        for reference in gold.references:
            if reference.kind == "recent":
                shown += self._recent(sample, turn, dialogue)
            elif reference.kind == "output":
                own = own_picture(dialogue.get(reference.turn - 1))
                shown += [(f"made by the model in turn {reference.turn}", own)] if own else []
            else:
                given = [part for part in sample.turns[reference.turn - 1].ask if isinstance(part, Image)]
                shown += [(f"given in turn {reference.turn}", image) for image in given]
        return rubric.about_points(rubrics, turn, shown, made, gold.points, place)

    def _recent(self, sample: Sample, turn: Turn, dialogue: Dialogue) -> list[tuple[str, Image]]:
        given = [part for part in turn.ask if isinstance(part, Image)]
        if given:
            return [(f"given in turn {turn.number + 1}", given[-1])]
        for earlier in reversed(sample.turns[: turn.number]):
            own = own_picture(dialogue.get(earlier.number))
            if own:
                return [(f"made by the model in turn {earlier.number + 1}", own)]
            given = [part for part in earlier.ask if isinstance(part, Image)]
            if given:
                return [(f"given in turn {earlier.number + 1}", given[-1])]
        return []
