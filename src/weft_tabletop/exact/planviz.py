"""PlanScore from pixels and the sidecar.

    correctness    each key point by its check: an object in its cell, a way without a gap, the shortest one, switches,
                   counts
    visual         without the source: how near the image is to a clean drawing; beside its source: the share of what
                   had to stay and did
    efficiency     one point off for each object that the task has no use for

A way may be any of the shortest: the dots that are there are followed."""

from collections.abc import Mapping, Sequence
from typing import Any

from weft_tabletop.exact.cells import describe_cell, describe_distance, describe_losses, rate_quality, wrong_cells
from weft_tabletop.world.operations import SWITCH_OFF, SWITCH_ON, Operation, neighbours, shortest_paths
from weft_tabletop.world.scenes import CELLS, COLUMNS, Scene, SceneReading

METRICS = ("correctness", "visual", "efficiency")
ROUTES = ("route", "draw route")
STEPS = ("steps", "draw steps")
Reference = Mapping[str, Any]  # of a turn, from the sidecar
Check = Mapping[str, str]
Score = tuple[int, str]  # points, and the reason
Decision = tuple[bool, str]  # whether a key point is met, and the reason


def check_points(reference: Reference, source: SceneReading | None, output: SceneReading) -> tuple[list[Decision], int]:
    """Decide each key point, and count the steps that the task does not need."""
    base = _find_base(reference, source, output.scene)
    decisions = [_decide(check, base, source, output) for check in reference["checks"]]
    extra = 0
    if reference["kind"] in STEPS:
        extra = len(_extra_cells(reference, source, output))
    return decisions, extra


def score_visual(reference: Reference, source: SceneReading | None, output: SceneReading, *, alone: bool) -> Score:
    """Score 0 to 5. With `alone`, or without a source, the image is rated by itself."""
    if alone or source is None:
        return rate_quality(output) // 2, f"{describe_distance(output)}, {len(output.unknown)} cells unread"
    before = source.scene
    changeable = _changeable_cells(reference, before)
    stable = [cell for cell in CELLS if cell not in changeable and cell not in source.unknown]
    lost = wrong_cells(output, before, stable)
    kept = len(stable) - len(lost) + (output.scene.background == before.background)
    total = len(stable) + 1
    score = 5 if kept == total else min(4, 5 * kept // total)
    return score, describe_losses(lost)


def score_efficiency(reference: Reference, source: SceneReading | None, output: SceneReading) -> Score:
    """Score 0 to 5: less for each object that was not asked for."""
    extra = _extra_cells(reference, source, output)
    if not extra:
        return 5, "all that is new was asked for"
    return max(0, 5 - len(extra)), f"not asked for: what is at {', '.join(extra)}"


def _find_base(reference: Reference, source: SceneReading | None, output: Scene) -> Scene:
    """The table that a way goes over: the given one, or the one that was to be drawn."""
    if source is not None:
        return source.scene
    if reference["kind"] == "draw route":
        return Operation("draw", reference["args"]).apply(output)
    return Scene(output.background)


def _decide(check: Check, base: Scene, source: SceneReading | None, output: SceneReading) -> Decision:
    kind = check["check"]
    if kind == "ground":
        background = output.scene.background
        return background == check["background"], f"the background is {background}"
    if kind == "thing":
        return _decide_cell(check["cell"], check["thing"], output)
    if kind == "switch":
        switch = SWITCH_ON if check["state"] == "on" else SWITCH_OFF
        return _decide_cell(check["cell"], str(switch), output)
    if kind == "count":
        number = sum(thing.shape == check["shape"] for thing in output.scene.things().values())
        return number == int(check["number"]) and output.is_sure, f"there are {number} of that shape"
    if kind in ("others", "kept"):
        assert source is not None
        return _decide_kept(check, source.scene, output)
    return _decide_route(check, base, output)


def _decide_cell(cell: str, thing: str, output: SceneReading) -> Decision:
    is_met = cell not in output.unknown and str(output.scene.at(cell)) == thing
    return is_met, f"at {cell} is {describe_cell(output, cell)}"


def _decide_kept(check: Check, before: Scene, output: SceneReading) -> Decision:
    """Whether all objects are as they were, except in the cells that the check names."""
    exceptions = check.get("cells", "").split(", ")
    changed = wrong_cells(output, before, [cell for cell in before.things() if cell not in exceptions])
    if changed:
        return False, f"changed: {', '.join(changed)}"
    return True, "all that was there is as it was"


def _decide_route(check: Check, base: Scene, output: SceneReading) -> Decision:
    path = _follow_dots(base, output, check["from"], check["to"])
    if not path:
        return False, f"the dots do not lead from {check['from']} to {check['to']}"
    dots = path[1:-1]
    if check["check"] == "colour":
        colours = {thing.colour for cell, thing in output.scene.things().items() if cell in dots}
        return colours == {check["colour"]}, f"the dots are {', '.join(sorted(colours))}"
    least = len(shortest_paths(base, check["from"], check["to"])[0])
    is_met = check["check"] == "way" or len(path) == least
    return is_met, f"the way goes over {', '.join(dots)}; {least - 2} dots would do"


def _follow_dots(base: Scene, output: SceneReading, start: str, end: str) -> list[str]:
    """The shortest way over dots from one object to another, where nothing was before; empty if there is a gap."""
    scene = output.scene
    if scene.at(start) is None or scene.at(end) is None:
        return []
    dots: set[str] = set()
    for cell, thing in scene.things().items():
        if thing.shape == "dot" and base.at(cell) is None and cell not in output.unknown:
            dots.add(cell)
    paths = [[start]]
    seen = {start}
    while paths:
        for path in paths:
            if path[-1] == end:
                return path
        longer: list[list[str]] = []
        for path in paths:
            for cell in neighbours(path[-1]):
                is_end = cell == end and len(path) > 1  # two neighbours need at least one dot
                if cell not in seen and (cell in dots or is_end):
                    longer.append([*path, cell])
        seen |= {path[-1] for path in longer if path[-1] != end}
        paths = longer
    return []


def _changeable_cells(reference: Reference, before: Scene) -> Sequence[str]:
    """The cells that an answer may change."""
    args = reference["args"]
    if reference["kind"] == "switch":
        return args["cells"].split(", ")
    if reference["kind"] == "steps":
        return [args["row"] + column for column in COLUMNS]
    return [cell for cell in CELLS if before.at(cell) is None]


def _extra_cells(reference: Reference, source: SceneReading | None, output: SceneReading) -> list[str]:
    """The cells with something new that the task has no use for."""
    scene = output.scene
    before = Scene(scene.background) if source is None else source.scene
    new = [cell for cell, thing in scene.things().items() if thing != before.at(cell) or cell in output.unknown]
    useful = _useful_cells(reference, source, output, new)
    return [cell for cell in new if cell not in useful]


def _useful_cells(
    reference: Reference, source: SceneReading | None, output: SceneReading, new: Sequence[str]
) -> Sequence[str]:
    """The cells that the task asks for, among those with something new."""
    kind = reference["kind"]
    args = reference["args"]
    if kind in ROUTES:
        base = _find_base(reference, source, output.scene)
        path = _follow_dots(base, output, args["cell"], args["to"])
        if source is not None:
            return path
        return [*path, *base.things()]  # the objects around which the way leads are drawn too
    if kind in ("draw any", "add any"):
        fitting = [cell for cell, thing in output.scene.things().items() if thing.shape == args["shape"]]
        number = int(args["number"]) if kind == "draw any" else 1
        return [cell for cell in new if cell in fitting][:number]
    if kind in STEPS:
        things = args["things"].split(", ")
        return [args["row"] + column for column in COLUMNS[: len(things)]]
    if kind == "panel":
        return args["switches"].split(", ")
    return args["cells"].split(", ")
