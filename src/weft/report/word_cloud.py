"""A cloud of words: the more often a word occurs, the larger it is drawn and the nearer to the middle."""

import math
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from weft.report.plots import PALETTE, base_chart, with_style

WIDTH = 640
HEIGHT = 360
SMALLEST = 11  # pixels of a letter's height
LARGEST = 46
MIN_SIZE = 7  # of letters, where many words share the room
FILLED = 0.5  # share of the room that words may fill
LETTER = 0.62  # width of a letter, as a share of its height
LINE = 1.25  # height of a line, as a share of a letter's height
STEPS = 1400  # of the spiral on which a place is looked for
ANGLE = 0.2  # radians of a step
GROWTH = 1.1  # pixels that the spiral grows in a radian
MAX_LETTERS = 24  # of a word that is drawn


class Place(Struct, frozen=True):
    """Where a word is drawn: its middle, and the size of its letters."""

    word: str
    x: float
    y: float
    size: float

    @property
    def width(self) -> float:
        return LETTER * self.size * len(self.word)

    @property
    def height(self) -> float:
        return LINE * self.size

    def overlaps(self, other: "Place") -> bool:
        is_beside = abs(self.x - other.x) * 2 >= self.width + other.width
        is_above = abs(self.y - other.y) * 2 >= self.height + other.height
        return not (is_beside or is_above)

    @property
    def is_inside(self) -> bool:
        return 2 * abs(self.x) + self.width <= WIDTH and 2 * abs(self.y) + self.height <= HEIGHT


def place_words(words: Sequence[tuple[str, int]]) -> list[Place]:
    """Return places for words with their frequencies, the most frequent first. A word without room is left out."""
    if not words:
        return []
    most = words[0][1]
    shown = [(word[:MAX_LETTERS], SMALLEST + (LARGEST - SMALLEST) * math.sqrt(count / most)) for word, count in words]
    area = sum(Place(word, 0, 0, size).width * Place(word, 0, 0, size).height for word, size in shown)
    scale = min(1.0, math.sqrt(FILLED * WIDTH * HEIGHT / area))
    places: list[Place] = []
    for word, size in shown:
        place = _find_place(word, max(scale * size, MIN_SIZE), places)
        if place is not None:
            places.append(place)
    return places


def _find_place(word: str, size: float, others: Sequence[Place]) -> Place | None:
    """Return the first free place on a spiral around the middle."""
    for step in range(STEPS):
        angle = ANGLE * step
        distance = GROWTH * angle
        place = Place(word, distance * math.cos(angle) * WIDTH / HEIGHT, distance * math.sin(angle), size)
        if place.is_inside and not any(map(place.overlaps, others)):
            return place
    return None


def word_cloud(words: Sequence[tuple[str, int]], title: str) -> Any:
    """Return the drawing of words with their frequencies."""
    import altair as alt

    rows: list[dict[str, Any]] = []
    for number, place in enumerate(place_words(words)):
        color = PALETTE[number % len(PALETTE)]
        rows.append({"word": place.word, "x": place.x, "y": place.y, "size": round(place.size), "color": color})
    base = base_chart(rows, title, WIDTH, HEIGHT)
    across = alt.Scale(domain=[-WIDTH / 2, WIDTH / 2], nice=False)
    down = alt.Scale(domain=[HEIGHT / 2, -HEIGHT / 2], nice=False)
    marks = base.mark_text(baseline="middle").encode(
        alt.X("x:Q", axis=None, scale=across),
        alt.Y("y:Q", axis=None, scale=down),
        alt.Text("word:N"),
        alt.Size("size:Q", scale=None, legend=None),
        alt.Color("color:N", scale=None, legend=None),
    )
    return with_style(marks)
