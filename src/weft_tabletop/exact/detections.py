"""Objects on a table as a detector reports them, for GenEval: a class is a shape, a box is a cell.

What can be read is certain; a cell that cannot is an object that hardly counts."""

from typing import Any

from weft.judges.detections import Detection, build_answer, list_classes
from weft.types import Image, Question
from weft_tabletop.world.scenes import CELLS, COLUMNS, ROWS, SceneReading

SURE = 1.0
UNSURE = 0.2  # below every threshold


def answer_geneval(question: Question, image: Image, reading: SceneReading) -> dict[str, Any]:
    """Answer a question for a detector."""
    wanted = set(list_classes(question))
    found: list[Detection] = []
    for cell, thing in reading.scene.things().items():
        if thing.shape in wanted:
            confidence = UNSURE if cell in reading.unknown else SURE
            found.append(Detection(thing.shape, locate_cell(cell, image), confidence, thing.colour))
    return build_answer(found, question)


def locate_cell(cell: str, image: Image) -> tuple[float, float, float, float]:
    """Return the box of a cell in an image of a table."""
    row, column = divmod(CELLS.index(cell), len(COLUMNS))
    width = image.width / len(COLUMNS)
    height = image.height / len(ROWS)
    return column * width, row * height, (column + 1) * width, (row + 1) * height
