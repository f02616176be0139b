"""The exact judge: it answers a benchmark's questions in the benchmark's schema, from pixels and the dataset's sidecar.

It asks for the question's material by name and reads none of its prompt; missing material is an error, which leaves the
question unscored."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from weft.errors import UserError
from weft.models.baselines import UncachedEndpoint
from weft.models.endpoint import FATAL, NO_RETRY, UNDECIDED, CallError, EndpointReply
from weft.store.blobs import Blobs
from weft.types import Image, Message, Part, Question, Request, Text
from weft.untrusted import dict_or_empty, read_json_file
from weft_tabletop.exact import building, detections, edits, geneval2, imug, mmvet, planviz, rover, weave, weaver
from weft_tabletop.exact.collages import is_collage
from weft_tabletop.make.sidecar import sidecar_path
from weft_tabletop.world.choices import ChoiceQuestion
from weft_tabletop.world.language import TableRequest
from weft_tabletop.world.readings import read_image
from weft_tabletop.world.scenes import SceneReading

Reference = Mapping[str, Any]  # of a turn, from the sidecar
Answer = dict[str, Any]  # in the question's schema
NEAR = 0.05  # two documents whose shares differ by less are a tie


class Exact(UncachedEndpoint):
    may_leave_undecided = True

    def __init__(self, data: Path | None, blobs: Blobs, name: str = "tabletop/exact", **identity: Any) -> None:
        """Without `data` it can only answer a recipe's questions, which hold all that they are about."""
        self._samples: dict[str, Any] | None = None
        if data is not None:
            self._samples = _read_samples(data)
        super().__init__(name, version=1, **identity)
        self._blobs = blobs
        self._answers: dict[tuple[str, str], Callable[[Reference, Question], Answer]] = {
            ("weave", "key_point"): self._weave_image,
            ("weave", "visual_consistency"): self._weave_image,
            ("weave", "image_quality"): self._weave_image,
            ("weave", "accuracy"): self._weave_answer,
            ("imug", "points"): self._imug_points,
            ("imug", "choice"): self._imug_choice,
            **{("rover-ig", metric): self._rover_task for metric in rover.TASK_METRICS},
            **{("rover-tg", metric): self._rover_puzzle for metric in rover.PUZZLE_METRICS},
            **{("planviz", metric): self._planviz for metric in planviz.METRICS},
            **{("gedit", metric): self._gedit for metric in edits.GEDIT_METRICS},
            **{("imgedit", metric): self._imgedit for metric in edits.IMGEDIT_METRICS},
            **{("kris", metric): self._kris for metric in edits.KRIS_METRICS},
            **{("risebench", metric): self._risebench for metric in edits.RISE_METRICS},
            ("geneval", "correct"): self._detections,
            ("geneval2", "am"): self._atom,
            ("mmvet", "correctness"): self._correctness,
            ("weaverbench", "separate"): self._separate,
            ("arena", "battle"): self._battle,
        }

    async def send(self, messages: tuple[Message, ...], request: Request) -> EndpointReply:
        question = request.question
        if question is None:
            raise CallError("tabletop/exact is a judge: it answers questions of benchmarks, and nothing else", NO_RETRY)
        text = msgspec.json.encode(self.answer(question)).decode()
        return EndpointReply((Text(text),), "answered", raw=text, served_model=self.name)

    def answer(self, question: Question) -> Answer:
        """The answer to a question, in its schema. Raises CallError for a question that it does not know."""
        benchmark = question.turn_ref.benchmark
        if benchmark == building.BENCHMARK:
            return building.answer(question, self._read)
        if benchmark == "weaverbench" and set(question.metrics) <= set(weaver.METRICS):
            answer = self._document(self._reference(question), question)
            if answer:
                return answer
        answer: Answer = {}
        for metric in question.metrics:
            answer_metric = self._answers.get((benchmark, metric))
            if answer_metric is None:
                raise CallError(f"tabletop/exact does not know {metric} of {benchmark or 'this benchmark'}", NO_RETRY)
            answer |= answer_metric(self._reference(question), question)
        return answer

    def _reference(self, question: Question) -> Reference:
        """What the sidecar has about the turn. A reworded sample (`7~1`) has the reference of its original."""
        turn_ref = question.turn_ref
        if self._samples is None:
            raise CallError(f"{self.name} is a judge: it needs the dataset it is to judge", FATAL)
        item = ""
        if turn_ref.benchmark == "arena":
            item = str(getattr(question.gold, "item", ""))
        try:
            return self._samples[item or turn_ref.sample.partition("~")[0]]["turns"][turn_ref.turn]
        except (KeyError, IndexError):
            raise CallError(
                f"the sidecar has no sample {turn_ref.sample}, turn {turn_ref.turn + 1}", NO_RETRY
            ) from None

    def _read(self, image: Image) -> SceneReading:
        return read_image(image, self._blobs)

    def _read_one(self, question: Question, name: str) -> SceneReading:
        """The scene in the one image of this material."""
        return self._read(find_image(question, name))

    def _read_document(self, question: Question, name: str) -> list[str | SceneReading]:
        """The texts and scenes of a document."""
        parts = find_material(question, name)
        return [self._read(part) if isinstance(part, Image) else part.text for part in parts]

    def _weave_image(self, reference: Reference, question: Question) -> Answer:
        (metric,) = question.metrics
        names = [name for name in question.material if name.startswith("reference ")]
        names.sort(key=lambda name: int(name.split()[1]))
        shown = [self._read_one(question, name) for name in names]
        expected = sum(point["check"] != "fact" for point in reference["points"])
        if question.variant:
            # Released scripts ask even where the images that the question is about are missing.
            is_missing = metric != "image_quality" and len(shown) < expected
            if is_missing or not question.material["output"]:
                return {"reasoning": "what is asked about is not there", "score": 0}
        if metric != "image_quality" and len(shown) != expected:
            raise CallError(f"the question shows {len(shown)} references; its key points have {expected}", NO_RETRY)
        score, reason = weave.score_image(metric, reference, self._read_one(question, "output"), shown)
        return {"reasoning": reason, "score": score}

    def _weave_answer(self, reference: Reference, question: Question) -> Answer:
        score, reason = weave.score_answer(find_text(question, "answer"), reference["answer"])
        return {"reasoning": reason, "score": score}

    def _imug_points(self, reference: Reference, question: Question) -> Answer:
        """An image that the model never made is absent from the question, and nothing can have been done to it."""
        readings: dict[str, SceneReading] = {}
        for slot, origin in reference["origins"].items():
            image = _find_origin(question, origin)
            if image is not None:
                readings[slot] = self._read(image)
        scenes = {slot: reading.scene for slot, reading in readings.items()}
        if question.variant and not question.material["output"]:  # as released scripts ask
            results = [(0, "there is no image")] * len(question.gold)
        else:
            unknown = readings["image"].unknown if "image" in readings else ()
            output = self._read_one(question, "output")
            results = imug.score_points(reference, output, scenes.get("image"), scenes.get("source"), unknown)
        points: list[Answer] = []
        for number, (score, reason) in enumerate(results, start=1):
            points.append({"point_id": number, "reason": reason, "score": score})
        return {"evaluation_results": points}

    def _imug_choice(self, reference: Reference, question: Question) -> Answer:
        if not any(name.startswith("reply ") for name in question.material):
            raise CallError("the question does not show the replies that it is about", NO_RETRY)
        images: list[Image] = []
        for parts in question.material.values():
            images += _images(parts)
        scene = self._read(images[-1]).scene if images else None
        reason = "there is no image" if scene is None else f"the image shows {scene}"
        choice = ChoiceQuestion(TableRequest(reference["asks"], reference["args"], {}), reference["options"])
        return {"reasoning": reason, "determined_answer": choice.letters(scene)}

    def _rover_task(self, reference: Reference, question: Question) -> Answer:
        (metric,) = question.metrics
        plan = find_text(question, "thinking")
        source = self._read_one(question, "source")
        if question.material["output"]:
            output = self._read_one(question, "output")
        else:
            output = None
        score, reason = rover.score_task(metric, reference, source, output, plan)
        return {"reasoning": reason, f"{metric}_score": score}

    def _rover_puzzle(self, reference: Reference, question: Question) -> Answer:
        (metric,) = question.metrics
        reply = find_text(question, "reply")
        source = self._read_one(question, "source")
        output = self._read_one(question, "output")
        score, reason = rover.score_puzzle(metric, reference, source, output, reply)
        return {"reasoning": reason, f"{metric}_score": score}

    def _planviz(self, reference: Reference, question: Question) -> Answer:
        (metric,) = question.metrics
        if question.material["source"]:
            source = self._read_one(question, "source")
        else:
            source = None
        output = self._read_one(question, "output")
        if metric == "visual":
            alone = question.value_key == "Visual Coherence"
            score, reason = planviz.score_visual(reference, source, output, alone=alone)
            return {"explanation": reason, question.value_key: score}
        if metric == "efficiency":
            score, reason = planviz.score_efficiency(reference, source, output)
            return {"explanation": reason, question.value_key: score}
        decisions, extra = planviz.check_points(reference, source, output)
        if question.text_only:
            explanation = "; ".join(reason for _, reason in decisions)
            return {"explanation": explanation, question.value_key: sum(is_met for is_met, _ in decisions)}
        points: list[Answer] = []
        for number, (is_met, reason) in enumerate(decisions, start=1):
            points.append({"point": number, "evidence": reason, "satisfied": is_met})
        is_source = source is not None and output.scene == source.scene
        return {
            "picture_is": "the source again" if is_source else "an answer",
            "unnecessary_steps": extra,
            "points": points,
        }

    def _gedit(self, reference: Reference, question: Question) -> Answer:
        return edits.answer_gedit(reference, question, self._read_one)

    def _imgedit(self, reference: Reference, question: Question) -> Answer:
        return edits.answer_imgedit(reference, question, self._read_one)

    def _kris(self, reference: Reference, question: Question) -> Answer:
        return edits.answer_kris(reference, question, self._read_one)

    def _risebench(self, reference: Reference, question: Question) -> Answer:
        return edits.answer_risebench(reference, question, self._read_one)

    def _detections(self, reference: Reference, question: Question) -> Answer:
        image = find_image(question, "output")
        return detections.answer_geneval(question, image, self._read(image))

    def _atom(self, reference: Reference, question: Question) -> Answer:
        return geneval2.answer_geneval2(reference, question, self._read_one(question, "output"))

    def _correctness(self, reference: Reference, question: Question) -> Answer:
        tenths, reason = mmvet.score_elements(find_text(question, "answer"), reference["answer"])
        return {"reasoning": reason, "tenths": tenths}

    def _document(self, reference: Reference, question: Question) -> Answer:
        """All scores of a document, under the names that the question has for them."""
        inputs = [self._read(image) for image in _images(find_material(question, "input"))]
        shares = weaver.score_document(reference, inputs, self._read_document(question, "output"))
        names = list(question.schema["properties"]["scores"]["properties"])
        scores: Answer = {}
        undecided: list[str] = []
        for name, metric in zip(names, question.metrics, strict=True):
            share, reason = shares[metric]
            scores[name] = {"Score": round(10 * (share or 0.0), 4), "Justification": reason}
            if share is None:
                undecided.append(metric)
        if undecided:
            return {"scores": scores, UNDECIDED: undecided}
        return {"scores": scores}

    def _battle(self, reference: Reference, question: Question) -> Answer:
        """Which of two documents has more of what is expected, over all metrics that can be decided."""
        if getattr(question.gold, "benchmark", "") != "weaverbench":
            raise CallError("tabletop/exact decides battles about documents of weaverbench alone", NO_RETRY)
        inputs = [self._read(image) for image in _images(find_material(question, "input"))]
        first = self._mean_share(reference, inputs, question, "first")
        second = self._mean_share(reference, inputs, question, "second")
        gap = first - second
        leans_to_first = gap > 0 or (gap == 0 and _is_first_by_content(question))
        winner = "A" if leans_to_first else "B"
        if abs(gap) < NEAR:
            winner = f"Tie({winner})"
        reason = f"A has {100 * first:.0f}% of what is expected, B {100 * second:.0f}%"
        return {"reasoning": reason, "winner": winner}

    def _mean_share(self, reference: Reference, inputs: Sequence[SceneReading], question: Question, side: str) -> float:
        scored = weaver.score_document(reference, inputs, self._read_document(question, side))
        shares = [share for share, _ in scored.values() if share is not None]
        return sum(shares) / len(shares)

    def _separate(self, reference: Reference, question: Question) -> Answer:
        """An image is a single table if it is square, most of it can be read, and its parts are no tables."""
        images: list[Answer] = []
        for index, image in enumerate(_images(find_material(question, "output"))):
            reading = self._read(image)
            is_single = not is_collage(image, self._blobs)
            seen = f"{image.width} x {image.height}, {len(reading.unknown)} cells unread"
            images.append({"picture": index, "seen": seen, "one_picture": is_single})
        return {"pictures": images}


def _read_samples(data: Path) -> dict[str, Any]:
    """The references of a dataset, from its sidecar."""
    path = sidecar_path(data)
    if not path.is_file():
        raise UserError(
            f"tabletop/exact judges tabletop data alone: there is no {path}; `weft data make` writes such data"
        )
    samples = dict_or_empty(read_json_file(path)).get("samples")
    if not isinstance(samples, dict):
        raise UserError(f"{path} cannot be read: it has no samples")
    return dict_or_empty(samples)


def _is_first_by_content(question: Question) -> bool:
    """Breaks a tie between equal documents by their content, so that their order does not decide it."""
    first = msgspec.json.encode(find_material(question, "first"))
    return first <= msgspec.json.encode(find_material(question, "second"))


def _find_origin(question: Question, origin: Mapping[str, Any]) -> Image | None:
    """The image that a request was about, from the turn that gave or made it; None if the model never made it."""
    is_input = origin["kind"] == "input"
    parts = question.material.get(f"{'given' if is_input else 'made'} {origin['turn']}", ())
    if is_input and origin["at"] >= len(parts):
        raise CallError(f"the question does not show the image given in turn {origin['turn']}", NO_RETRY)
    images = _images(parts)
    if origin["at"] < len(images):
        return images[int(origin["at"])]
    return None


def _images(parts: Sequence[Part]) -> list[Image]:
    return [part for part in parts if isinstance(part, Image)]


def find_material(question: Question, name: str) -> tuple[Part, ...]:
    """What the question is about, by name. Raises CallError where it is missing."""
    if name not in question.material:
        metrics = ", ".join(question.metrics)
        raise CallError(
            f"the question about {metrics} has no material {name!r}; it has {', '.join(question.material)}", NO_RETRY
        )
    return question.material[name]


def find_text(question: Question, name: str) -> str:
    """The texts of a question's material, joined."""
    return "".join(part.text for part in find_material(question, name) if isinstance(part, Text))


def find_image(question: Question, name: str) -> Image:
    """The one image of a question's material. Raises CallError where it is not one."""
    images = _images(find_material(question, name))
    if len(images) != 1:
        raise CallError(f"the question's material {name!r} is not one image", NO_RETRY)
    return images[0]
