"""IMUG-Bench's two questions to the judge as the released scripts ask them, defects included (docs/errata.md).

Their words are nowhere in weft: prompts and the texts that the scripts put together are read from the user's checkout,
the latter from the f-strings of two functions, which are parsed and never run. What follows from a reply is as the
scripts compute it."""

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
from weft.benchmarks.prompts import Rubrics, build_rubrics
from weft.judges.official_prompts import PromptFunction, read_files
from weft.types import Image, Message, Part, Question, Text, Turn

FOLDER = "scripts/auxiliary"
SYSTEM = {"dynamic": f"{FOLDER}/dynamic_prompt.txt", "points": f"{FOLDER}/eval_prompt.txt"}
SETTINGS = {"temperature": 0.1}
LARGEST = 1_000_000  # what is more is no score in any arithmetic
INSTRUCTION = "task['input'][0]['text']"
QUESTION = "target_task['input'][0]['text']"


def read_released_rubrics(checkout: Path) -> Rubrics:
    """Prompts by name; a text that is put together has slots."""
    found = read_files(checkout, SYSTEM.values())
    texts = {name: found[file] for name, file in SYSTEM.items()}
    picture = PromptFunction.read(checkout, f"{FOLDER}/score_image.py", "evaluate_task")
    texts["reference label"] = picture.find_template(
        {"index + 1": "number", "reference_turn": "turn", "reference['ref_type']": "kind"}
    )
    texts["target label"] = picture.find_template({"len(images) + 1": "number"})
    texts["listed picture"] = picture.find_template({"description": "label"})
    texts["listed point"] = picture.find_template({"index + 1": "number", "point": "point"})
    texts["pictures"] = picture.find_constant("image_text")
    texts["points message"] = picture.find_template(
        {"image_text": "pictures", INSTRUCTION: "instruction", "point_text": "points"}
    )
    key = PromptFunction.read(checkout, f"{FOLDER}/resolve_dynamic_answers.py", "resolve_answer")
    texts["turns"] = key.find_constant("reference_text")
    texts["no question"], texts["no answer"] = key.find_default("text"), key.find_default("answer")
    texts["see picture"] = key.find_template({"image_index": "number"})
    texts["turn"] = key.find_template({"reference_turn": "turn", "question": "question", "answer": "answer"})
    texts["several"], texts["single"] = key.find_alternatives("choice_type")
    texts["dynamic message"] = key.find_template(
        {"reference_text": "turns", "turn": "turn", QUESTION: "question", "choice_type": "type"}
    )
    return replace(build_rubrics(texts, f"official {FOLDER}"), settings=SETTINGS)


def build_key_question(
    answered: JudgedTurn, schema: dict[str, Any], accepts: dict[str, Any], more: Mapping[str, Any]
) -> Question:
    """One text, then the pictures of the turns that it is about. A reply in words is told as the benchmark's own
    answer."""
    gold: ChoiceGold = answered.turn.gold
    texts = answered.rubrics.texts
    images = list[Part]()
    told = texts["turns"]
    for number in sorted(gold.looks_at):
        turn = answered.sample.turns[number - 1]
        if turn.modality == "image":
            own = answered.image_of_turn(number - 1)
        else:
            own = None
        if own is not None:
            images.append(own)
            said = put(texts["see picture"], number=len(images))
        else:
            if isinstance(turn.gold, ChoiceGold):
                said = turn.gold.raw
            else:
                said = texts["no answer"]
        told += put(texts["turn"], turn=number, question=_first(turn, texts["no question"]), answer=said)
    several = answered.sample.groups["domain"] == "Botany" and answered.sample.groups["task"] == "natural_growth"
    kind = texts["several" if several else "single"]
    asked = put(
        texts["dynamic message"], turns=told, turn=answered.turn.number + 1, question=_first(answered.turn), type=kind
    )
    return _question("choice", answered, "dynamic", (Text(asked), *images), schema, {**more, "accepted_schema": accepts})


def build_points_question(
    answered: JudgedTurn, made: Image | None, schema: dict[str, Any], more: Mapping[str, Any]
) -> Question:
    """References, then the picture, then one text. Labels count references that are not there; a picture that is not
    there leaves the last reference in its place."""
    gold: PointsGold = answered.turn.gold
    texts = answered.rubrics.texts
    shown: list[tuple[str, Image]] = []
    for at, reference in enumerate(gold.references):
        image = _picture(answered, reference)
        if image is not None:
            label = put(texts["reference label"], number=at + 1, turn=reference.turn, kind=reference.kind)
            shown.append((label, image))
    if made is not None:
        shown.append((put(texts["target label"], number=len(shown) + 1), made))
    listed = texts["pictures"] + "".join(put(texts["listed picture"], label=label) for label, _ in shown)
    points = "\n".join(
        put(texts["listed point"], number=number, point=point) for number, point in enumerate(gold.points, start=1)
    )
    asked = put(texts["points message"], pictures=listed, instruction=_first(answered.turn), points=points)
    parts = (*(image for _, image in shown), Text(asked))
    return _question("points", answered, "points", parts, schema, more)


def read_choice_as_released(question: Question, text: str) -> float | None:
    """The share that the scripts give the model's answer by the key in a judge's reply: any letter of it counts. None:
    they ask again."""
    gold, answer = question.gold
    found = _object(text)
    if found is None:
        return None
    said = str(found.get("determined_answer", "")).upper()
    letters = set(re.findall("[A-G]", said)) | set(re.findall("[A-G]", gold.raw.partition("<DYNAMIC>")[0]))
    return mcq.score_as_released(answer, "".join(sorted(letters)))


def read_points_as_released(text: str) -> float | None:
    """The mean of the points that came back, whatever they are: from 0 to 5, if they keep to their scale. None: they
    ask again."""
    found = _object(text)
    if found is not None:
        results: Any = found.get("evaluation_results", [])
    else:
        results = []
    if not isinstance(results, list) or not all(isinstance(one, dict) for one in cast(list[Any], results)):
        return None
    try:
        scores = [float(one.get("score")) for one in cast(list[dict[str, Any]], results)]  # pyright: ignore[reportArgumentType]
    except (TypeError, ValueError, OverflowError):
        return None
    if not scores or any(math.isnan(score) or abs(score) > LARGEST for score in scores):
        return None
    return sum(scores) / len(scores)


def put(text: str, **slots: object) -> str:
    """The text with its slots filled, all at once; what only looks like one stays."""
    return re.sub(r"\[\[(\w+)\]\]", lambda match: str(slots.get(match.group(1), match.group())), text)


def _question(
    metric: str,
    answered: JudgedTurn,
    system: str,
    parts: Sequence[Part],
    schema: dict[str, Any],
    more: Mapping[str, Any],
) -> Question:
    messages = (Message("system", (Text(answered.rubrics.texts[system]),)), Message("user", tuple(parts)))
    return Question((metric,), messages, schema, answered.turn_ref, text_only=True, **more)


def _picture(answered: JudgedTurn, reference: ImageReference) -> Image | None:
    """Of a turn's input, the first picture alone."""
    if reference.kind == "output":
        return answered.image_of_turn(reference.turn - 1)
    if reference.turn:
        turn = answered.sample.turns[reference.turn - 1]
    else:
        turn = answered.turn
    return next((part for part in turn.prompt if isinstance(part, Image)), None)


def _first(turn: Turn, otherwise: str = "") -> str:
    """The words of the first item of a request: the scripts look at no other."""
    gold: ChoiceGold | PointsGold = turn.gold
    if gold.first is None:
        return otherwise
    return gold.first


def _object(text: str) -> dict[str, Any] | None:
    """From the first brace to the last."""
    match = re.search(r"\{.*\}", text, re.DOTALL)
    try:
        if match:
            found: Any = json.loads(match.group())
        else:
            found = None
    except (ValueError, RecursionError):
        return None
    if isinstance(found, dict):
        return cast(dict[str, Any], found)
    return None
