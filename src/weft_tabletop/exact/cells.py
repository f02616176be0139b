"""What the judge asks of an image for every benchmark: which cells are as expected, and how clean it is."""

from collections.abc import Iterable

from weft_tabletop.world.scenes import Scene, SceneReading


def is_expected_image(reading: SceneReading, expected: Scene) -> bool:
    """Whether every cell could be read, and the scene is the expected one."""
    return reading.is_sure and reading.scene == expected


def wrong_cells(reading: SceneReading, expected: Scene, cells: Iterable[str]) -> list[str]:
    """Those of the cells that cannot be read, or do not hold what is expected there."""
    return [cell for cell in cells if cell in reading.unknown or reading.scene.at(cell) != expected.at(cell)]


def describe_cell(reading: SceneReading, cell: str) -> str:
    if cell in reading.unknown:
        return "something that cannot be read"
    return str(reading.scene.at(cell) or "nothing")


def describe_wrong_cell(reading: SceneReading, expected: Scene, cell: str) -> str:
    return f"at {cell} is {describe_cell(reading, cell)}, not {expected.at(cell) or 'nothing'}"


def describe_losses(cells: Iterable[str]) -> str:
    """What a consistency score says of the cells that changed and should not have."""
    return f"changed without need: {', '.join(cells) or 'no cell'}"


def rate_quality(reading: SceneReading) -> int:
    """How clean an image is, out of ten: less by its distance from a clean drawing and for cells that cannot be
    read."""
    return max(0, 10 - round(reading.residual / 4) - len(reading.unknown))


def describe_distance(reading: SceneReading) -> str:
    return f"distance from a clean drawing {reading.residual:.1f}"
