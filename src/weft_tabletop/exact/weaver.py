"""WeaverBench's eight scores from pixels, sentences and the sidecar. A document is compared with the one that is due,
step by step:

    prompt_adherence         the share of steps whose picture is exactly the one that is due, of as many as there are or
    should be
    narrative_coordination   the share of pictures with words of their own right before them
    intra_output             the share of pictures that show what the sentence before them says
    input_to_image           how much of each picture, cell by cell, is as it is due
    input_to_text            the share of due sentences that are there, in their order; of a question, whether the
    answer is right
    entity                   the share of pictures in which all things of the one before are still there, at the cell
    where they belong
    style                    the share of pictures that can be read and have the ground of the first
    completeness             the share of due pictures that are there in their order, wherever

A sentence that is none of the tabletop's own cannot be decided, and leaves open what depends on it."""

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any

from weft_tabletop.exact.weave import score_answer
from weft_tabletop.make.weaver import steps
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
Found = tuple[float | None, str]  # a share, or none where it cannot be decided; and why
STEP = re.compile(r"Step \d+: add an? (\w+ \w+) at ([a-d][1-4])\.", re.IGNORECASE)
AFTER = re.compile(r"After (\d+) steps?:", re.IGNORECASE)


def score_document(
    turn: Mapping[str, Any], given: Sequence[SceneReading], made: Sequence[str | SceneReading]
) -> dict[str, Found]:
    if given:
        base = given[0].scene
    else:
        base = None
    if "answer" in turn:
        return _answered(turn, made)
    due = steps(turn["kind"], turn["args"], base)
    shown: list[tuple[str, SceneReading]] = []  # each picture, with the words before it
    words: list[str] = []
    for part in made:
        if isinstance(part, str):
            words.append(part)
        else:
            shown.append((" ".join(" ".join(words).split()), part))
            words = []
    single = turn["kind"] == "draw"
    said = [text for text, _ in shown if text] + [text for text in [" ".join(" ".join(words).split())] if text]
    return {
        "prompt_adherence": _adherence(due, shown),
        "narrative_coordination": (float(bool(shown)), "one picture") if single else _coordination(due, shown),
        "intra_output": (None, "a single picture needs no words") if single else _coherence(turn, base, shown),
        "input_to_image": _fidelity(due, shown),
        "input_to_text": (None, "a single picture needs no words") if single else _told(due, said),
        "entity": _entities(turn, shown),
        "style": _style(shown),
        "completeness": _complete(due, shown),
    }


def _answered(turn: Mapping[str, Any], made: Sequence[str | SceneReading]) -> dict[str, Found]:
    score, why = score_answer(" ".join(part for part in made if isinstance(part, str)).strip(), turn["answer"])
    found = (score / 10, why)
    told = any(isinstance(part, str) and part.strip() for part in made)
    return {
        "prompt_adherence": found,
        "input_to_text": found,
        "completeness": (float(told), "an answer" if told else "no words"),
    }


Due = Sequence[tuple[str, Scene]]
Shown = Sequence[tuple[str, SceneReading]]


def is_right(reading: SceneReading, scene: Scene) -> bool:
    return reading.is_sure and reading.scene == scene


def _adherence(due: Due, shown: Shown) -> Found:
    right = [is_right(reading, scene) for (_, scene), (_, reading) in zip(due, shown, strict=False)]
    most = max(len(due), len(shown))
    return sum(right) / most, f"{sum(right)} of {most} steps are exactly as they are due"


def _coordination(due: Due, shown: Shown) -> Found:
    led = sum(bool(text) for text, _ in shown)
    most = max(len(due), len(shown))
    return led / most, f"{led} of {most} pictures have words of their own before them"


def _coherence(turn: Mapping[str, Any], base: Scene | None, shown: Shown) -> Found:
    if not shown:
        return 0.0, "there is no picture"
    right = 0
    for text, reading in shown:
        step = STEP.search(text)
        after = AFTER.search(text)
        if step:
            right += step[2] not in reading.unknown and str(reading.scene.at(step[2])) == step[1]
        elif after and base is not None:
            moved = Operation("drift", {"steps": after[1], "side": turn["args"].get("side", "right")}).apply(base)
            right += is_right(reading, moved)
        elif text:
            return None, "what is said is in other words than the tabletop's"
    return right / len(shown), f"{right} of {len(shown)} pictures show what is said before them"


def _fidelity(due: Due, shown: Shown) -> Found:
    shares = [_alike(reading, scene) for (_, scene), (_, reading) in zip(due, shown, strict=False)]
    most = max(len(due), len(shown))
    return sum(shares) / most, f"{100 * sum(shares) / most:.0f}% of cells and grounds are as they are due"


def _alike(reading: SceneReading, scene: Scene) -> float:
    same = [cell not in reading.unknown and reading.scene.at(cell) == scene.at(cell) for cell in CELLS]
    return (sum(same) + (reading.scene.background == scene.background)) / (len(CELLS) + 1)


def _told(due: Due, said: Sequence[str]) -> Found:
    if not said:
        return 0.0, "there are no words"
    if not all(STEP.search(text) or AFTER.search(text) for text in said):
        return None, "what is said is in other words than the tabletop's"
    right = sum(one.lower() == words.lower() for one, (words, _) in zip(said, due, strict=False))
    most = max(len(due), len(said))
    return right / most, f"{right} of {most} sentences are as they are due"


def _entities(turn: Mapping[str, Any], shown: Shown) -> Found:
    if len(shown) < 2:
        return 1.0, "one picture"
    kept = 0
    for (_, before), (_, after) in itertools.pairwise(shown):
        scene = before.scene
        if turn["kind"] == "film":
            scene = Operation("drift", {"steps": "1", "side": turn["args"]["side"]}).apply(scene)
        kept += all(cell not in after.unknown and after.scene.at(cell) == one for cell, one in scene.things().items())
    return kept / (len(shown) - 1), f"all things stay in {kept} of {len(shown) - 1} steps"


def _style(shown: Shown) -> Found:
    if not shown:
        return 0.0, "there is no picture"
    ground = shown[0][1].scene.background
    same = sum(reading.is_sure and reading.scene.background == ground for _, reading in shown)
    return same / len(shown), f"{same} of {len(shown)} pictures can be read and have the ground of the first"


def _complete(due: Due, shown: Shown) -> Found:
    """Return the longest part of the expected output that is there in its order."""
    best = [[0] * (len(shown) + 1) for _ in range(len(due) + 1)]
    for i, (_, scene) in enumerate(due, start=1):
        for j, (_, reading) in enumerate(shown, start=1):
            if is_right(reading, scene):
                best[i][j] = best[i - 1][j - 1] + 1
            else:
                best[i][j] = max(best[i - 1][j], best[i][j - 1])
    return best[-1][-1] / len(due), f"{best[-1][-1]} of {len(due)} due pictures are there in their order"
