"""Objects in an image, as a judge that is a program reports them: `weft.judges.detector`, `tabletop/exact`.

A question to such a judge has the image in its material as `output`, the classes to look for as `classes`, and those
whose colours are wanted as `colored`. The answer is an object with `objects`, each with `class`, `box` (left, top,
right, bottom, in pixels), `confidence` from 0 to 1 and, if wanted, `color`.
"""

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from weft.types import Image, Question, Text

COLORS = ("red", "orange", "yellow", "green", "blue", "purple", "pink", "brown", "black", "white")
NO_COLOR = "none"  # of an object whose colour is none of these, or is not wanted
MAX_OBJECTS = 16  # of one class
# The classes of COCO in the order of their numbers, under the names that GenEval's prompts use.
_NAMES = (
    "person bicycle car motorcycle airplane bus train truck boat traffic_light fire_hydrant stop_sign parking_meter "
    "bench bird cat dog horse sheep cow elephant bear zebra giraffe backpack umbrella handbag tie suitcase frisbee "
    "skis snowboard sports_ball kite baseball_bat baseball_glove skateboard surfboard tennis_racket bottle "
    "wine_glass cup fork knife spoon bowl banana apple sandwich orange broccoli carrot hot_dog pizza donut cake "
    "chair couch potted_plant bed dining_table toilet tv laptop computer_mouse tv_remote computer_keyboard "
    "cell_phone microwave oven toaster sink refrigerator book clock vase scissors teddy_bear hair_drier toothbrush"
)
COCO_CLASSES = tuple(name.replace("_", " ") for name in _NAMES.split())


class Detection(Struct, frozen=True):
    """An object in an image."""

    name: str  # of its class
    box: tuple[float, float, float, float]  # left, top, right, bottom, in pixels
    confidence: float
    color: str = NO_COLOR


def read_detections(answer: Any) -> list[Detection]:
    """Read the objects of an answer that fits the question's schema. Raises ValueError for a box that is none."""
    found: list[Detection] = []
    for entry in answer["objects"]:
        left, top, right, bottom = map(float, entry["box"])
        if right < left or bottom < top:
            raise ValueError(
                f"the box {entry['box']} of {entry['class']} ends before it begins: give left, top, right, bottom"
            )
        color = str(entry.get("color", NO_COLOR))
        found.append(Detection(entry["class"], (left, top, right, bottom), float(entry["confidence"]), color))
    return found


def build_answer(found: Iterable[Detection], question: Question) -> dict[str, Any]:
    """Build the answer to a question, in its schema."""
    wants_colors = bool(list_colored(question))
    objects: list[dict[str, Any]] = []
    for one in found:
        entry: dict[str, Any] = {"class": one.name, "box": list(one.box), "confidence": one.confidence}
        if wants_colors:
            entry["color"] = one.color
        objects.append(entry)
    return {"reasoning": "", "objects": objects}


def find_images(question: Question) -> list[Image]:
    """Return the images that are to be looked at: one, in a question for a detector."""
    return [part for part in question.material.get("output", ()) if isinstance(part, Image)]


def list_classes(question: Question) -> list[str]:
    """Return the classes to look for; none if the question is not for a detector."""
    return [part.text for part in question.material.get("classes", ()) if isinstance(part, Text)]


def list_colored(question: Question) -> list[str]:
    """Return the classes whose colours are wanted."""
    return [part.text for part in question.material.get("colored", ()) if isinstance(part, Text)]
