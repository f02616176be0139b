"""The judge `detector/mask2former`: objects by transformers' Mask2Former and their colours by CLIP (extra `local`).

It answers questions for a detector (`weft.judges.detections`) from the image alone. Its architecture is that of
GenEval's released detector; its weights are others, so that its numbers stand for themselves. Images that are asked
about together run in one batch. A class that the weights do not know leaves its question unscored.

    weft run geneval --data prompts --model MODEL                                  # the judge where none is named
    weft run geneval --data prompts --model MODEL --judge detector/FOLDER --judge-opt clip=FOLDER
"""

import importlib.metadata
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from weft.errors import UserError
from weft.judges.detections import (
    COCO_CLASSES,
    COLORS,
    NO_COLOR,
    Detection,
    build_answer,
    find_images,
    list_classes,
    list_colored,
)
from weft.models.converters import positive_int
from weft.models.endpoint import NO_RETRY, CallError, EndpointReply
from weft.models.local.endpoint import LocalCall, LocalEndpoint, LocalOutput
from weft.models.local.weights import ReportProgress, Weights, import_extra, locate_weights
from weft.models.registry import ModelSpec, provider_info, provider_options
from weft.store.blobs import Blobs
from weft.store.images import flatten
from weft.types import Gives, Image, Message, Question, Request, Takes

NAMED_WEIGHTS = {"mask2former": "facebook/mask2former-swin-small-coco-instance"}
CLIP_WEIGHTS = "openai/clip-vit-large-patch14"
BATCH = 8
GIVES = Gives(image=False, interleaved=False, ordered=False)
MIN_CONFIDENCE = 0.01  # of an object that is reported: far below every threshold


class DetectorEndpoint(LocalEndpoint):
    """A detector as a judge. What it cannot be asked is refused before anything is loaded."""

    async def send(self, messages: tuple[Message, ...], request: Request) -> EndpointReply:
        question = request.question
        if question is None or not list_classes(question) or len(find_images(question)) != 1:
            raise CallError(f"{self.name} finds objects in one image, and does nothing else", NO_RETRY)
        unknown = [name for name in list_classes(question) if name not in COCO_CLASSES]
        if unknown:
            raise CallError(f"{self.name} does not know the class {unknown[0]!r}", NO_RETRY)
        return await super().send(messages, request)


class DetectorWorker:
    """Runs batches of questions on loaded weights. CLIP is loaded for the first colour."""

    def __init__(self, weights: Weights, clip: Weights, blobs: Blobs, device: str, tell: ReportProgress) -> None:
        self._blobs = blobs
        self._clip = clip
        self._device = device
        self._tell = tell
        self._run = import_extra("weft.models.local.run.detect")
        self._detector = self._run.ObjectDetector(weights.ensure_local(tell), device)
        self._colors: Any = None
        count = self._detector.class_count
        if count != len(COCO_CLASSES):
            raise UserError(f"{weights.name} knows {count} classes; GenEval needs the {len(COCO_CLASSES)} of COCO")

    def run_batch(self, batch: Sequence[LocalCall]) -> Sequence[LocalOutput]:
        questions = [_question_of(call) for call in batch]
        images = [self._decode(find_images(question)[0]) for question in questions]
        wanted = [{COCO_CLASSES.index(name) for name in list_classes(question)} for question in questions]
        found = self._detector.find(images, wanted)
        return [self._answer(*each) for each in zip(questions, images, found, strict=True)]

    def is_out_of_memory(self, error: Exception) -> bool:
        return import_extra("weft.models.local.run.device").is_out_of_memory(error)

    def free_memory(self) -> None:
        import_extra("weft.models.local.run.device").free_memory()

    def _decode(self, image: Image) -> Any:
        with self._blobs.decode_within_memory(image) as decoded:
            return flatten(decoded).copy()

    def _answer(self, question: Question, image: Any, instances: Sequence[Any]) -> LocalOutput:
        detections: list[Detection] = []
        for name in list_classes(question):
            own = [one for one in instances if COCO_CLASSES[one[0]] == name and _is_reported(one)]
            colors = [NO_COLOR] * len(own)
            if own and name in list_colored(question):
                colors = self._name_colors(image, own, name)
            for (_, box, confidence, _), color in zip(own, colors, strict=True):
                detections.append(Detection(name, box, confidence, color))
        return LocalOutput((msgspec.json.encode(build_answer(detections, question)).decode(),))

    def _name_colors(self, image: Any, instances: Sequence[Any], name: str) -> list[str]:
        if self._colors is None:
            self._tell("loading weights of CLIP")
            self._colors = self._run.ColorNamer(self._clip.ensure_local(self._tell), COLORS, self._device)
            self._tell("")
        return self._colors.name(image, [(box, mask) for _, box, _, mask in instances], name)


def _question_of(call: LocalCall) -> Question:
    question = call.request.question
    assert question is not None  # `send` refuses others
    return question


def _is_reported(instance: Any) -> bool:
    """Whether an instance has pixels, and some confidence."""
    _, (left, top, right, bottom), confidence, _ = instance
    return confidence >= MIN_CONFIDENCE and right > left and bottom > top


@provider_info(Takes(), GIVES, extra="local", key="")
@provider_options(clip=str, device=str, batch=positive_int, revision=str, version=str)
def from_spec(spec: ModelSpec, blobs: Blobs, **options: Any) -> DetectorEndpoint:
    """Build the judge `detector/mask2former`, or `detector/FOLDER` with weights of the same classes."""
    for library in ("torch", "transformers"):
        import_extra(library)
    source = NAMED_WEIGHTS.get(spec.model, spec.model)
    own = {name: options[name] for name in ("revision", "version") if name in options}
    weights = locate_weights(source, "config.json", blobs, **own)
    clip = locate_weights(options.get("clip", CLIP_WEIGHTS), "config.json", blobs)
    device, _ = import_extra("weft.models.local.run.device").resolve_device(options.get("device", ""), "float32")
    name = f"detector/{spec.model if spec.model in NAMED_WEIGHTS else weights.name.rstrip('/').rpartition('/')[2]}"
    return DetectorEndpoint(
        name,
        blobs,
        lambda tell: DetectorWorker(weights, clip, blobs, device, tell),
        takes=Takes(),
        gives=GIVES,
        identity=_describe(name, weights, clip, device),
        seed=0,
        batch_sizes={"text": options.get("batch", BATCH)},
    )


def _describe(name: str, weights: Weights, clip: Weights, device: str) -> Mapping[str, Any]:
    """Return what can change an answer."""
    versions = {library: importlib.metadata.version(library) for library in ("torch", "transformers")}
    return {
        "provider": "detector",
        "model": name,
        "weights": dict(weights.identity),
        "clip": dict(clip.identity),
        "device": device.partition(":")[0],
        "versions": versions,
        "reader": 1,
    }
