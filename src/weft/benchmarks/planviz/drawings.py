"""Draws small maps, flowcharts and interfaces: the images of the template, and test images for OCR."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from PIL import Image as Pil

Point = tuple[int, int]
Font = Callable[[int], Any]  # size in pixels -> font
INK = "#222222"
PAPER = "#ffffff"
SOFT = "#d9dde3"
BLUE = "#1f5fd0"
GREEN = "#2f9e57"


def load_plain_font(size: int) -> Any:
    from PIL import ImageFont

    return ImageFont.load_default(size)


def draw_park(
    places: Mapping[str, Point],
    paths: Sequence[Sequence[Point]],
    route: Sequence[Point] = (),
    font: Font = load_plain_font,
) -> "Pil.Image":
    """Draw a map: paths, places with their names, and a route along the paths."""
    image, pen = _sheet((720, 520), "#dcebd2")
    for path in paths:
        pen.line(list(path), fill="#f7efd9", width=16, joint="curve")
    if route:
        pen.line(list(route), fill=BLUE, width=6, joint="curve")
        _arrow(pen, route[-2], route[-1], BLUE)
    for name, (x, y) in places.items():
        pen.ellipse((x - 9, y - 9, x + 9, y + 9), fill="#b5432f", outline=PAPER, width=2)
        pen.text((x + 14, y - 12), name, font=font(20), fill=INK, stroke_width=3, stroke_fill="#dcebd2")
    return image


def draw_flowchart(steps: Sequence[str], font: Font = load_plain_font) -> "Pil.Image":
    """Draw boxes from top to bottom, with an arrow from each to the next."""
    image, pen = _sheet((520, 60 + 100 * len(steps)), PAPER)
    for index, step in enumerate(steps):
        top = 40 + 100 * index
        pen.rounded_rectangle((70, top, 450, top + 58), radius=10, fill="#eef3fb", outline=BLUE, width=2)
        pen.text((260, top + 29), step, font=font(20), fill=INK, anchor="mm")
        if index + 1 < len(steps):
            _arrow(pen, (260, top + 58), (260, top + 100), INK)
    return image


def draw_settings(title: str, switches: Mapping[str, bool], font: Font = load_plain_font) -> "Pil.Image":
    """Draw a page of settings, one switch a line."""
    image, pen = _sheet((520, 110 + 70 * len(switches)), PAPER)
    pen.text((36, 32), title, font=font(28), fill=INK)
    for index, (name, on) in enumerate(switches.items()):
        y = 116 + 70 * index
        pen.line((36, y - 22, 484, y - 22), fill=SOFT, width=1)
        pen.text((36, y), name, font=font(20), fill=INK)
        pen.rounded_rectangle((412, y - 2, 476, y + 30), radius=16, fill=GREEN if on else "#aab1bb")
        if on:
            left = 446
        else:
            left = 414
        pen.ellipse((left, y, left + 28, y + 28), fill=PAPER)
    return image


def draw_form(title: str, fields: Sequence[str], button: str, font: Font = load_plain_font) -> "Pil.Image":
    """Draw a page to fill in."""
    image, pen = _sheet((520, 180 + 84 * len(fields)), "#f5f6f8")
    pen.text((36, 30), title, font=font(28), fill=INK)
    for index, name in enumerate(fields):
        y = 90 + 84 * index
        pen.text((36, y), name, font=font(18), fill="#555555")
        pen.rectangle((36, y + 28, 484, y + 66), fill=PAPER, outline=SOFT, width=2)
    y = 100 + 84 * len(fields)
    pen.rounded_rectangle((36, y, 236, y + 48), radius=8, fill=BLUE)
    pen.text((136, y + 24), button, font=font(20), fill=PAPER, anchor="mm")
    return image


def _sheet(size: Point, ground: str) -> tuple["Pil.Image", Any]:
    from PIL import Image as Pil
    from PIL import ImageDraw

    image = Pil.new("RGB", size, ground)
    return image, ImageDraw.Draw(image)


def _arrow(pen: Any, start: Point, end: Point, colour: str) -> None:
    import math

    angle = math.atan2(end[1] - start[1], end[0] - start[0])
    back = [(end[0] - 16 * math.cos(angle + turn), end[1] - 16 * math.sin(angle + turn)) for turn in (-0.45, 0.45)]
    pen.line((*start, *end), fill=colour, width=3)
    pen.polygon([end, *back], fill=colour)
