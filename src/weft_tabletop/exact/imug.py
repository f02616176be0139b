"""IMUG-Bench's evaluation points, each 0 to 5, read from pixels.

Points are relative to the images that the judge is shown: a model that edits its own wrong image rightly is right.

    done    the share of cells that the request changes, and of the background if it does, that are as expected
    kept    the share of all other cells that are as they were
    fact    what the request says by itself: cells by name, or the background
    new     an object of the requested shape is where nothing was
    only    the table has so many of the shape and nothing else
    clean   how near the image is to a clean drawing
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgspec import Struct

from weft_tabletop.exact.cells import describe_cell, describe_distance, describe_wrong_cell, wrong_cells
from weft_tabletop.world.operations import Operation
from weft_tabletop.world.scenes import CELLS, Scene, SceneReading, scene_from_text
from weft_tabletop.world.wordings import OPEN

Reference = Mapping[str, Any]  # of a turn, from the sidecar
Check = Mapping[str, Any]
Score = tuple[int, str]  # points out of five, and the reason


class ExpectedChange(Struct, frozen=True):
    """What a request does to the image that it is about. `unknown` are cells that could not be read before it."""

    base: Scene
    expected: Scene
    unknown: Collection[str]


def score_points(
    reference: Reference,
    output: SceneReading,
    base: Scene | None,
    source: Scene | None,
    unknown: Collection[str] = (),
) -> list[Score]:
    """Score each check of a turn of the sidecar.

    Without the image that it is relative to, a request cannot have been done. Cells `unknown` in that image do not
    count against the output.
    """
    change: ExpectedChange | None = None
    expected = _find_expected(reference, output, base, source)
    if base is not None and expected is not None:
        change = ExpectedChange(base, expected, unknown)
    return [_score(check, reference, output, change) for check in reference["points"]]


def _find_expected(
    reference: Reference, output: SceneReading, base: Scene | None, source: Scene | None
) -> Scene | None:
    operation = Operation(reference["kind"], reference["args"])
    if base is None or operation.kind == "draw any":
        return None
    if operation.kind in OPEN:
        return _nearest_addition(output, base, operation.args["shape"])
    return operation.apply(base, source)


def _nearest_addition(output: SceneReading, base: Scene, shape: str) -> Scene:
    """Of all right results of an open addition, the one nearest to the output; the base if nothing was added."""
    for cell, thing in output.scene.things().items():
        if base.at(cell) is None and thing.shape == shape:
            return base.put({cell: thing})
    return base


def _score(check: Check, reference: Reference, output: SceneReading, change: ExpectedChange | None) -> Score:
    kind = check["check"]
    if kind == "clean":
        points = 5 - round(output.residual / 8) - len(output.unknown)
        return max(0, points), describe_distance(output)
    if kind == "fact":
        return _score_fact(check, output)
    if kind == "only":
        return _score_only(reference["args"], output)
    if change is None:
        return 0, "there is no image that it could have been made from"
    if kind == "new":
        if change.expected == change.base:
            return 0, "no empty cell got one"
        return 5, "it is there"
    return _score_change(kind, output, change)


def _score_only(args: Mapping[str, str], output: SceneReading) -> Score:
    """Two less for each object too many, missing or unreadable."""
    shapes = [thing.shape for thing in output.scene.things().values()]
    right = shapes.count(args["shape"])
    expected = int(args["number"])
    others = len(shapes) - right
    errors = abs(right - expected) + others + len(output.unknown)
    return max(0, 5 - 2 * errors), f"{right} of the {expected} and {others} others are there"


def _score_change(kind: str, output: SceneReading, change: ExpectedChange) -> Score:
    """`done`: the cells that change. `kept`: those that do not."""
    changed = set(change.base.changed_cells(change.expected))
    is_background_changed = change.expected.background != change.base.background
    if kind == "done":
        cells = [cell for cell in CELLS if cell in changed]
        return _score_share(cells, output, change.expected, with_background=is_background_changed)
    cells = [cell for cell in CELLS if cell not in changed and cell not in change.unknown]
    return _score_share(cells, output, change.expected, with_background=not is_background_changed)


def _score_share(cells: Sequence[str], output: SceneReading, expected: Scene, *, with_background: bool) -> Score:
    """5 for all; else two less for each that is wrong, and no more than the share that is right."""
    wrong = wrong_cells(output, expected, cells)
    is_background_wrong = with_background and output.scene.background != expected.background
    errors = len(wrong) + is_background_wrong
    total = len(cells) + with_background
    if not errors:
        return 5, "all of it"
    if wrong:
        first = describe_wrong_cell(output, expected, wrong[0])
    else:
        first = "the background is another"
    points = min(5 - 2 * errors, int(5 * (total - errors) / total))
    return max(0, points), f"{errors} of {total} are wrong: {first}"


def _score_fact(check: Check, output: SceneReading) -> Score:
    if "background" in check:
        is_right = output.scene.background == check["background"]
        return 5 * is_right, f"the background is {output.scene.background}"
    if "scene" in check:
        return _score_share(CELLS, output, scene_from_text(check["scene"]), with_background=True)
    for cell, thing in check["cells"].items():
        if cell in output.unknown or str(output.scene.at(cell) or "") != thing:
            return 0, f"at {cell} is {describe_cell(output, cell)}, not {thing}"
    return 5, "as stated"
