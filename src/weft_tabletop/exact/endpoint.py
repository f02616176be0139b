"""The exact judge: it answers a benchmark's questions in the benchmark's schema, from pixels and the dataset's sidecar.

It asks for the question's material by name, and reads none of its words; what is missing is an error, and leaves the
question unscored."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from weft.errors import UserError
from weft.models.baselines import UncachedEndpoint
from weft.models.endpoint import NO_RETRY, UNDECIDED, CallError, EndpointReply
from weft.store.blobs import Blobs
from weft.types import Image, Message, Part, Question, Request, Text
from weft.untrusted import dict_or_empty, read_json_file
from weft_tabletop.exact import imug, planviz, rover, weave, weaver
from weft_tabletop.make.sidecar import sidecar_path
from weft_tabletop.world.choices import ChoiceQuestion
from weft_tabletop.world.language import TableRequest
from weft_tabletop.world.readings import read_image
from weft_tabletop.world.scenes import SceneReading

Truth = Mapping[str, Any]  # of a turn, from the sidecar
Found = dict[str, Any]


class Exact(UncachedEndpoint):
    may_leave_undecided = True

    def __init__(self, data: Path, blobs: Blobs, name: str = "tabletop/exact", **identity: Any) -> None:
        path = sidecar_path(data)
        if not path.is_file():
            raise UserError(
                f"tabletop/exact judges tabletop data alone: there is no {path}; `weft data make` writes such data"
            )
        found = dict_or_empty(read_json_file(path)).get("samples")
        if not isinstance(found, dict):
            raise UserError(f"{path} cannot be read: it has no samples")
        self._truth: dict[str, Any] = dict_or_empty(found)
        super().__init__(name, version=1, **identity)
        self._blobs = blobs
        self._answers: dict[tuple[str, str], Callable[[Truth, Question], Found]] = {
            **{
                ("weave", metric): self._weave_picture
                for metric in ("key_point", "visual_consistency", "image_quality")
            },
            ("weave", "accuracy"): self._weave_answer,
            ("imug", "points"): self._imug_points,
            ("imug", "choice"): self._imug_choice,
            **{("rover-ig", metric): self._rover_task for metric in rover.TASK_METRICS},
            **{("rover-tg", metric): self._rover_puzzle for metric in rover.PUZZLE_METRICS},
            **{("planviz", metric): self._planviz for metric in planviz.METRICS},
            ("weaverbench", "separate"): self._separate,
            ("arena", "battle"): self._battle,
        }

    async def send(self, messages: tuple[Message, ...], want: Request) -> EndpointReply:
        question = want.question
        if question is None:
            raise CallError("tabletop/exact is a judge: it answers questions of benchmarks, and nothing else", NO_RETRY)
        said = msgspec.json.encode(self.answer(question)).decode()
        return EndpointReply((Text(said),), "answered", raw=said, served_model=self.name)

    def answer(self, question: Question) -> Found:
        """The answer to a question, in its schema."""
        found: Found = {}
        if question.turn_ref.benchmark == "weaverbench" and set(question.metrics) <= set(weaver.METRICS):
            found = self._document(self._turn(question), question)
        for metric in question.metrics if not found else ():
            answer = self._answers.get((question.turn_ref.benchmark, metric))
            if answer is None:
                raise CallError(
                    f"tabletop/exact does not know {metric} of {question.turn_ref.benchmark or 'this benchmark'}",
                    NO_RETRY,
                )
            found = {**found, **answer(self._turn(question), question)}
        return found

    def _turn(self, question: Question) -> Truth:
        try:
            if question.turn_ref.benchmark == "arena":
                own = str(getattr(question.gold, "item", ""))
            else:
                own = ""
            name = own or question.turn_ref.sample.partition("~")[0]  # what is said in other words is the same task
            return self._truth[name]["turns"][question.turn_ref.turn]
        except (KeyError, IndexError):
            raise CallError(
                f"the sidecar has no sample {question.turn_ref.sample}, turn {question.turn_ref.turn + 1}", NO_RETRY
            ) from None

    def _scene(self, image: Image) -> SceneReading:
        return read_image(image, self._blobs)

    def _weave_picture(self, turn: Truth, question: Question) -> Found:
        (metric,) = question.metrics
        names = sorted(
            (name for name in question.material if name.startswith("reference ")), key=lambda name: int(name.split()[1])
        )
        references = [self._scene(find_image(question, name)) for name in names]
        due = sum(point["check"] != "fact" for point in turn["points"])
        if question.variant and (
            not question.material["made"] or (metric != "image_quality" and len(references) < due)
        ):
            # a question as released scripts ask it
            return {"reasoning": "what is asked about is not there", "score": 0}
        if metric != "image_quality" and len(references) != due:
            raise CallError(f"the question shows {len(references)} references; its key points have {due}", NO_RETRY)
        score, why = weave.score_image(metric, turn, self._scene(find_image(question, "made")), references)
        return {"reasoning": why, "score": score}

    def _weave_answer(self, turn: Truth, question: Question) -> Found:
        said = "".join(part.text for part in find_material(question, "answer") if isinstance(part, Text))
        score, why = weave.score_answer(said, turn["answer"])
        return {"reasoning": why, "score": score}

    def _imug_points(self, turn: Truth, question: Question) -> Found:
        """A picture that the model never made is absent from the question, and nothing can have been done to it."""
        seen: dict[str, SceneReading] = {}
        for slot, origin in turn["origins"].items():
            shown = question.material.get(f"{'given' if origin['kind'] == 'input' else 'made'} {origin['turn']}", ())
            if origin["kind"] == "input" and origin["at"] >= len(shown):
                raise CallError(f"the question does not show the picture given in turn {origin['turn']}", NO_RETRY)
            pictures = [part for part in shown if isinstance(part, Image)]
            if origin["at"] < len(pictures):
                seen[slot] = self._scene(pictures[int(origin["at"])])
        scenes = {slot: reading.scene for slot, reading in seen.items()}
        if "image" in seen:
            unknown = seen["image"].unknown
        else:
            unknown = ()
        if question.variant and not question.material["made"]:  # as released scripts ask
            results = [(0, "there is no picture")] * len(question.gold)
        else:
            made = self._scene(find_image(question, "made"))
            results = imug.score_points(turn, made, scenes.get("image"), scenes.get("source"), unknown)
        return {
            "evaluation_results": [
                {"point_id": number, "reason": why, "score": score}
                for number, (score, why) in enumerate(results, start=1)
            ]
        }

    def _imug_choice(self, turn: Truth, question: Question) -> Found:
        if not any(name.startswith("reply ") for name in question.material):
            raise CallError("the question does not show the replies that it is about", NO_RETRY)
        pictures = [part for parts in question.material.values() for part in parts if isinstance(part, Image)]
        if pictures:
            scene = self._scene(pictures[-1]).scene
        else:
            scene = None
        choice = ChoiceQuestion(TableRequest(turn["asks"], turn["args"], {}), turn["options"])
        if scene is None:
            seen = "there is no picture"
        else:
            seen = f"the picture shows {scene}"
        return {"reasoning": seen, "determined_answer": choice.letters(scene)}

    def _rover_task(self, turn: Truth, question: Question) -> Found:
        (metric,) = question.metrics
        plan = "".join(part.text for part in find_material(question, "thinking") if isinstance(part, Text))
        if question.material["made"]:
            made = self._scene(find_image(question, "made"))
        else:
            made = None
        score, why = rover.score_task(metric, turn, self._scene(find_image(question, "source")), made, plan)
        return {"reasoning": why, f"{metric}_score": score}

    def _rover_puzzle(self, turn: Truth, question: Question) -> Found:
        (metric,) = question.metrics
        said = "".join(part.text for part in find_material(question, "reply") if isinstance(part, Text))
        source, made = (self._scene(find_image(question, name)) for name in ("source", "made"))
        score, why = rover.score_puzzle(metric, turn, source, made, said)
        return {"reasoning": why, f"{metric}_score": score}

    def _planviz(self, turn: Truth, question: Question) -> Found:
        (metric,) = question.metrics
        if question.material["source"]:
            source = self._scene(find_image(question, "source"))
        else:
            source = None
        made = self._scene(find_image(question, "made"))
        if metric != "correctness":
            alone = question.value_key == "Visual Coherence"
            score, why = (
                planviz.visual(turn, source, made, alone=alone)
                if metric == "visual"
                else planviz.efficiency(turn, source, made)
            )
            return {"explanation": why, question.value_key: score}
        met, extra = planviz.correctness(turn, source, made)
        if question.text_only:
            return {"explanation": "; ".join(why for _, why in met), question.value_key: sum(one for one, _ in met)}
        points = [{"point": at, "evidence": why, "satisfied": one} for at, (one, why) in enumerate(met, start=1)]
        again = source is not None and made.scene == source.scene
        return {
            "picture_is": "the source again" if again else "an answer",
            "unnecessary_steps": extra,
            "points": points,
        }

    def _document(self, turn: Truth, question: Question) -> Found:
        """All scores of a document, under the names that its question has for them."""
        given = [self._scene(part) for part in find_material(question, "input") if isinstance(part, Image)]
        made = [
            self._scene(part) if isinstance(part, Image) else part.text for part in find_material(question, "output")
        ]
        scored = weaver.score_document(turn, given, made)
        names = list(question.schema["properties"]["scores"]["properties"])
        told = {name: scored[metric] for name, metric in zip(names, question.metrics, strict=True)}
        left = [metric for metric in question.metrics if scored[metric][0] is None]
        scores = {
            name: {"Score": round(10 * (share or 0.0), 4), "Justification": why} for name, (share, why) in told.items()
        }
        return {"scores": scores, **({UNDECIDED: left} if left else {})}

    def _battle(self, turn: Truth, question: Question) -> Found:
        """Which of two documents has more of what is due, all that can be decided taken together."""
        if getattr(question.gold, "benchmark", "") != "weaverbench":
            raise CallError("tabletop/exact decides battles about documents of weaverbench alone", NO_RETRY)
        given = [self._scene(part) for part in find_material(question, "input") if isinstance(part, Image)]
        sums: list[float] = []
        for side in ("first", "second"):
            made = [
                self._scene(part) if isinstance(part, Image) else part.text for part in find_material(question, side)
            ]
            shares = [share for share, _ in weaver.score_document(turn, given, made).values() if share is not None]
            sums.append(sum(shares) / len(shares))
        gap = sums[0] - sums[1]
        near = abs(gap) < 0.05
        first, second = (msgspec.json.encode(find_material(question, side)) for side in ("first", "second"))
        lean = gap > 0 or (gap == 0 and first <= second)  # of two that are as good, whichever: but not by its place
        if near:
            if lean:
                winner = "Tie(A)"
            else:
                winner = "Tie(B)"
        else:
            if gap > 0:
                winner = "A"
            else:
                winner = "B"
        return {"reasoning": f"A has {100 * sums[0]:.0f}% of what is due, B {100 * sums[1]:.0f}%", "winner": winner}

    def _separate(self, turn: Truth, question: Question) -> Found:
        """A table is square, and most of it can be read."""
        made: list[dict[str, Any]] = []
        for at, part in enumerate(part for part in find_material(question, "output") if isinstance(part, Image)):
            reading = self._scene(part)
            one = part.width == part.height and len(reading.unknown) < len(reading.scene.cells) / 2
            made.append(
                {
                    "picture": at,
                    "seen": f"{part.width} x {part.height}, {len(reading.unknown)} cells unread",
                    "one_picture": one,
                }
            )
        return {"pictures": made}


def find_material(question: Question, name: str) -> tuple[Part, ...]:
    """What the question is about, by name."""
    if name not in question.material:
        raise CallError(
            f"the question about {', '.join(question.metrics)} has no material {name!r}; it has {', '.join(question.material)}",
            NO_RETRY,
        )
    return question.material[name]


def find_image(question: Question, name: str) -> Image:
    found = [part for part in find_material(question, name) if isinstance(part, Image)]
    if len(found) != 1:
        raise CallError(f"the question's material {name!r} is not one picture", NO_RETRY)
    return found[0]
