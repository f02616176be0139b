"""WeaverBench's eight scores from pixels, sentences and the sidecar. A document is compared with the expected one, step
by step:

    prompt_adherence         the share of steps whose image is exactly the expected one, of as many as there are or
                             should be
    narrative_coordination   the share of images with a text of their own right before them
    intra_output             the share of images that show what the sentence before them says
    input_to_image           the share of cells and backgrounds that are as expected
    input_to_text            the share of expected sentences that are there, in their order; of a question, whether the
                             answer is right
    entity                   the share of images in which all objects of the one before are still there, in the cell
                             where they belong
    style                    the share of images that can be read and have the background of the first
    completeness             the share of expected images that are there in their order, wherever

A sentence that is not one of the tabletop's own cannot be decided, and leaves undecided what depends on it."""

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from weft_tabletop.exact.cells import is_expected_image, wrong_cells
from weft_tabletop.exact.weave import score_answer
from weft_tabletop.make.weaver import expected_steps
from weft_tabletop.world.operations import Operation
from weft_tabletop.world.scenes import CELLS, Scene, SceneReading

METRICS = (
    "prompt_adherence",
    "narrative_coordination",
    "intra_output",
    "input_to_image",
    "input_to_text",
    "entity",
    "style",
    "completeness",
)
Reference = Mapping[str, Any]  # of a turn, from the sidecar
Share = tuple[float | None, str]  # None where it cannot be decided; and the reason
ExpectedSteps = Sequence[tuple[str, Scene]]
STEP = re.compile(r"Step \d+: add an? (\w+ \w+) at ([a-d][1-4])\.", re.IGNORECASE)
AFTER = re.compile(r"After (\d+) steps?:", re.IGNORECASE)
OTHER_WORDS: Share = (None, "the text is not in the tabletop's own sentences")
NO_TEXT_NEEDED: Share = (None, "a single image needs no words")


class Document(Struct, frozen=True):
    """A model's output as images, each with the text before it. `texts` are all texts, the one after the last image
    included."""

    images: list[SceneReading]
    captions: list[str]
    texts: list[str]


def score_document(
    reference: Reference, inputs: Sequence[SceneReading], output: Sequence[str | SceneReading]
) -> dict[str, Share]:
    """Score a document by metric. An answer to a question has only some of the metrics."""
    if "answer" in reference:
        return _score_answer_document(reference["answer"], output)
    base = inputs[0].scene if inputs else None
    expected = expected_steps(reference["kind"], reference["args"], base)
    document = _split_document(output)
    shares = {
        "prompt_adherence": _score_adherence(expected, document),
        "narrative_coordination": _score_coordination(expected, document),
        "intra_output": _score_coherence(reference, base, document),
        "input_to_image": _score_fidelity(expected, document),
        "input_to_text": _score_texts(expected, document),
        "entity": _score_entities(reference, document),
        "style": _score_style(document),
        "completeness": _score_completeness(expected, document),
    }
    if reference["kind"] == "draw":
        shares["narrative_coordination"] = (float(bool(document.images)), "one image")
        shares["intra_output"] = NO_TEXT_NEEDED
        shares["input_to_text"] = NO_TEXT_NEEDED
    return shares


def _split_document(output: Sequence[str | SceneReading]) -> Document:
    document = Document([], [], [])
    texts: list[str] = []  # since the last image
    for part in output:
        if isinstance(part, str):
            texts.append(part)
            continue
        document.images.append(part)
        document.captions.append(_join_texts(texts))
        texts = []
    document.texts.extend(text for text in [*document.captions, _join_texts(texts)] if text)
    return document


def _join_texts(texts: Sequence[str]) -> str:
    return " ".join(" ".join(texts).split())


def _score_answer_document(expected: str, output: Sequence[str | SceneReading]) -> dict[str, Share]:
    texts = [part for part in output if isinstance(part, str)]
    points, reason = score_answer(" ".join(texts).strip(), expected)
    has_text = any(text.strip() for text in texts)
    return {
        "prompt_adherence": (points / 10, reason),
        "input_to_text": (points / 10, reason),
        "completeness": (float(has_text), "an answer" if has_text else "no words"),
    }


def _score_adherence(expected: ExpectedSteps, document: Document) -> Share:
    right = 0
    for (_, scene), reading in zip(expected, document.images, strict=False):
        right += is_expected_image(reading, scene)
    total = max(len(expected), len(document.images))
    return right / total, f"{right} of {total} steps are exactly as expected"


def _score_coordination(expected: ExpectedSteps, document: Document) -> Share:
    captioned = sum(bool(caption) for caption in document.captions)
    total = max(len(expected), len(document.images))
    return captioned / total, f"{captioned} of {total} images have words of their own before them"


def _score_coherence(reference: Reference, base: Scene | None, document: Document) -> Share:
    if not document.images:
        return 0.0, "there is no image"
    right = 0
    for caption, reading in zip(document.captions, document.images, strict=True):
        step = STEP.search(caption)
        after = AFTER.search(caption)
        if step:
            thing, cell = step.groups()
            right += cell not in reading.unknown and str(reading.scene.at(cell)) == thing
        elif after and base is not None:
            args = {"steps": after[1], "side": reference["args"].get("side", "right")}
            right += is_expected_image(reading, Operation("drift", args).apply(base))
        elif caption:
            return OTHER_WORDS
    total = len(document.images)
    return right / total, f"{right} of {total} images show what is said before them"


def _score_fidelity(expected: ExpectedSteps, document: Document) -> Share:
    shares = [_compare_scene(reading, scene) for (_, scene), reading in zip(expected, document.images, strict=False)]
    share = sum(shares) / max(len(expected), len(document.images))
    return share, f"{100 * share:.0f}% of cells and backgrounds are as expected"


def _compare_scene(reading: SceneReading, expected: Scene) -> float:
    right = len(CELLS) - len(wrong_cells(reading, expected, CELLS))
    right += reading.scene.background == expected.background
    return right / (len(CELLS) + 1)


def _score_texts(expected: ExpectedSteps, document: Document) -> Share:
    if not document.texts:
        return 0.0, "there are no words"
    if not all(STEP.search(text) or AFTER.search(text) for text in document.texts):
        return OTHER_WORDS
    right = 0
    for text, (sentence, _) in zip(document.texts, expected, strict=False):
        right += text.lower() == sentence.lower()
    total = max(len(expected), len(document.texts))
    return right / total, f"{right} of {total} sentences are as expected"


def _score_entities(reference: Reference, document: Document) -> Share:
    steps = len(document.images) - 1
    if steps < 1:
        return 1.0, "one image"
    kept = 0
    for before, after in itertools.pairwise(document.images):
        scene = before.scene
        if reference["kind"] == "film":
            scene = Operation("drift", {"steps": "1", "side": reference["args"]["side"]}).apply(scene)
        kept += not wrong_cells(after, scene, scene.things())
    return kept / steps, f"all things stay in {kept} of {steps} steps"


def _score_style(document: Document) -> Share:
    if not document.images:
        return 0.0, "there is no image"
    background = document.images[0].scene.background
    same = sum(reading.is_sure and reading.scene.background == background for reading in document.images)
    total = len(document.images)
    return same / total, f"{same} of {total} images can be read and have the background of the first"


def _score_completeness(expected: ExpectedSteps, document: Document) -> Share:
    """Count the longest common subsequence of the expected images and those that are there."""
    longest = [[0] * (len(document.images) + 1) for _ in range(len(expected) + 1)]
    for row, (_, scene) in enumerate(expected, start=1):
        for column, reading in enumerate(document.images, start=1):
            if is_expected_image(reading, scene):
                longest[row][column] = longest[row - 1][column - 1] + 1
            else:
                longest[row][column] = max(longest[row - 1][column], longest[row][column - 1])
    present = longest[-1][-1]
    return present / len(expected), f"{present} of {len(expected)} expected images are there in their order"
