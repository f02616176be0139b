"""IMUG-Bench's two questions to the judge as the released scripts ask them, defects included
(docs/reference/errata.md).

Their words are nowhere in weft: prompts, and the texts that the scripts assemble, are read from the user's checkout.
The latter come from the f-strings of two functions, which are parsed and never run. Replies are read as the scripts
read them.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from msgspec.structs import replace

from weft.benchmarks.base import JudgedTurn
from weft.benchmarks.imug import mcq
from weft.benchmarks.imug.data import ChoiceGold, ImageReference, PointsGold
from weft.benchmarks.official import find_released_image
from weft.benchmarks.prompts import Rubrics, build_rubrics
from weft.judges.official_prompts import PromptFunction, read_files
from weft.types import Image, Message, OfficialReading, Part, Question, Text, Turn

FOLDER = "scripts/auxiliary"
SYSTEM = {"dynamic": f"{FOLDER}/dynamic_prompt.txt", "points": f"{FOLDER}/eval_prompt.txt"}
SETTINGS = {"temperature": 0.1}
MAX_SCORE = 1_000_000  # a larger number is not a score in either arithmetic
INSTRUCTION = "task['input'][0]['text']"
QUESTION = "target_task['input'][0]['text']"


def read_released_rubrics(checkout: Path) -> Rubrics:
    """Read the prompts by name. A text that the scripts assemble becomes a template with slots."""
    files = read_files(checkout, SYSTEM.values())
    texts = {name: files[file] for name, file in SYSTEM.items()}
    image = PromptFunction.read(checkout, f"{FOLDER}/score_image.py", "evaluate_task")
    texts["reference label"] = image.find_template(
        {"index + 1": "number", "reference_turn": "turn", "reference['ref_type']": "kind"}
    )
    texts["target label"] = image.find_template({"len(images) + 1": "number"})
    texts["listed picture"] = image.find_template({"description": "label"})
    texts["listed point"] = image.find_template({"index + 1": "number", "point": "point"})
    texts["pictures"] = image.find_constant("image_text")
    texts["points message"] = image.find_template(
        {"image_text": "pictures", INSTRUCTION: "instruction", "point_text": "points"}
    )
    key = PromptFunction.read(checkout, f"{FOLDER}/resolve_dynamic_answers.py", "resolve_answer")
    texts["turns"] = key.find_constant("reference_text")
    texts["no question"] = key.find_default("text")
    texts["no answer"] = key.find_default("answer")
    texts["see picture"] = key.find_template({"image_index": "number"})
    texts["turn"] = key.find_template({"reference_turn": "turn", "question": "question", "answer": "answer"})
    texts["several"], texts["single"] = key.find_alternatives("choice_type")
    texts["dynamic message"] = key.find_template(
        {"reference_text": "turns", "turn": "turn", QUESTION: "question", "choice_type": "type"}
    )
    return replace(build_rubrics(texts, f"official {FOLDER}"), settings=SETTINGS)


def build_key_question(
    judged_turn: JudgedTurn, schema: dict[str, Any], accepted_schema: dict[str, Any], more: Mapping[str, Any]
) -> Question:
    """Build the question for a dynamic key: one text, then the images of the turns that it is about.

    A text turn's reply is given as the dataset's own answer, not the model's.
    """
    gold: ChoiceGold = judged_turn.turn.gold
    texts = judged_turn.rubrics.texts
    images: list[Image] = []
    turns = texts["turns"]
    for number in sorted(gold.looks_at):
        turn = judged_turn.sample.turns[number - 1]
        answer = texts["no answer"]
        if isinstance(turn.gold, ChoiceGold):
            answer = turn.gold.raw
        image = find_released_image(judged_turn.dialogue.get(number - 1))
        if turn.modality == "image" and image is not None:
            images.append(image)
            answer = fill_text(texts["see picture"], number=len(images))
        question = _first_text(turn, texts["no question"])
        turns += fill_text(texts["turn"], turn=number, question=question, answer=answer)
    groups = judged_turn.sample.groups
    choice_type = texts["single"]
    if groups["domain"] == "Botany" and groups["task"] == "natural_growth":
        choice_type = texts["several"]
    message = fill_text(
        texts["dynamic message"],
        turns=turns,
        turn=judged_turn.turn.number + 1,
        question=_first_text(judged_turn.turn),
        type=choice_type,
    )
    parts = (Text(message), *images)
    return _build_question(
        "choice", judged_turn, "dynamic", parts, schema, {**more, "accepted_schema": accepted_schema}
    )


def build_points_question(
    judged_turn: JudgedTurn, judged_image: Image | None, schema: dict[str, Any], more: Mapping[str, Any]
) -> Question:
    """Build the question about an image: its references, then the image `judged_image`, then one text.

    As in the scripts, labels count missing references too, and if the image itself is missing, the last reference
    stands in its place.
    """
    gold: PointsGold = judged_turn.turn.gold
    texts = judged_turn.rubrics.texts
    labels: list[str] = []
    images: list[Image] = []
    for number, reference in enumerate(gold.references, start=1):
        image = _reference_image(judged_turn, reference)
        if image is not None:
            label = fill_text(texts["reference label"], number=number, turn=reference.turn, kind=reference.kind)
            labels.append(label)
            images.append(image)
    if judged_image is not None:
        labels.append(fill_text(texts["target label"], number=len(images) + 1))
        images.append(judged_image)
    image_list = texts["pictures"] + "".join(fill_text(texts["listed picture"], label=label) for label in labels)
    points: list[str] = []
    for number, point in enumerate(gold.points, start=1):
        points.append(fill_text(texts["listed point"], number=number, point=point))
    message = fill_text(
        texts["points message"],
        pictures=image_list,
        instruction=_first_text(judged_turn.turn),
        points="\n".join(points),
    )
    return _build_question("points", judged_turn, "points", (*images, Text(message)), schema, more)


def read_choice_as_released(question: Question, text: str) -> float | None:
    """Return the share that the scripts give the model's answer by the key in a judge's reply. None: they ask again.

    Any letter in the reply's key counts.
    """
    gold, answer = question.gold
    reply = _find_object(text)
    if reply is None:
        return None
    key = str(reply.get("determined_answer", "")).upper()
    certain = gold.raw.partition("<DYNAMIC>")[0]
    letters = set(re.findall("[A-G]", key)) | set(re.findall("[A-G]", certain))
    return mcq.score_as_released(answer, "".join(sorted(letters)))


def read_points_as_released(text: str) -> OfficialReading | None:
    """Read the mean of whatever points came back: from 0 to 5, if they keep to their scale.

    A reply without a point is stored without a score. None: the scripts ask again.
    """
    reply = _find_object(text)
    if reply is None:
        return None
    results: Any = reply.get("evaluation_results", [])
    if results in ([], {}, ""):
        return OfficialReading()
    if not isinstance(results, list):
        return None
    scores: list[float] = []
    for result in cast(list[Any], results):
        if not isinstance(result, dict):
            return None
        try:
            score = float(cast(dict[str, Any], result).get("score"))  # pyright: ignore[reportArgumentType]
        except (TypeError, ValueError, OverflowError):
            return None
        if math.isnan(score) or abs(score) > MAX_SCORE:
            return None
        scores.append(score)
    return OfficialReading(sum(scores) / len(scores))


def fill_text(text: str, **slots: object) -> str:
    """Fill a text's slots, all at once; what only looks like a slot stays."""
    return re.sub(r"\[\[(\w+)\]\]", lambda match: str(slots.get(match.group(1), match.group())), text)


def _build_question(
    metric: str,
    judged_turn: JudgedTurn,
    system: str,
    parts: Sequence[Part],
    schema: dict[str, Any],
    more: Mapping[str, Any],
) -> Question:
    messages = (Message("system", (Text(judged_turn.rubrics.texts[system]),)), Message("user", tuple(parts)))
    return Question((metric,), messages, schema, judged_turn.turn_ref, text_only=True, **more)


def _reference_image(judged_turn: JudgedTurn, reference: ImageReference) -> Image | None:
    """Return a reference's image. Of a turn's prompt, the scripts show only the first image."""
    if reference.kind == "output":
        return find_released_image(judged_turn.dialogue.get(reference.turn - 1))
    turn = judged_turn.turn
    if reference.turn:
        turn = judged_turn.sample.turns[reference.turn - 1]
    return next((part for part in turn.prompt if isinstance(part, Image)), None)


def _first_text(turn: Turn, default: str = "") -> str:
    """Return the text of a prompt's first item, the only one that the scripts look at."""
    gold: ChoiceGold | PointsGold = turn.gold
    if gold.first is None:
        return default
    return gold.first


def _find_object(text: str) -> dict[str, Any] | None:
    """Parse the JSON object from the first brace to the last; None if there is none."""
    match = re.search(r"\{.*\}", text, re.DOTALL)
    if match is None:
        return None
    try:
        parsed: Any = json.loads(match.group())
    except (ValueError, RecursionError):
        return None
    if isinstance(parsed, dict):
        return cast(dict[str, Any], parsed)
    return None
