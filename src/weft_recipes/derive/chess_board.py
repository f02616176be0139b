"""Draws a chess position: five boards, three sets of pieces, either side at the bottom. Same position, same pixels."""

from collections.abc import Callable
from functools import lru_cache
from random import Random

from msgspec import Struct
from PIL import Image as Pillow
from PIL import ImageDraw, ImageFont

from weft_recipes.derive.chess_rules import EMPTY, Position

Colour = tuple[int, int, int]
Point = tuple[float, float]

FINER = 4  # pieces are drawn so many times larger, then scaled down
BOARDS: dict[str, tuple[Colour, Colour, Colour]] = {  # light squares, dark squares, frame
    "brown": ((240, 217, 181), (181, 136, 99), (92, 62, 40)),
    "green": ((238, 238, 210), (118, 150, 86), (54, 74, 38)),
    "blue": ((222, 227, 230), (140, 162, 173), (58, 74, 88)),
    "grey": ((225, 225, 225), (150, 150, 150), (60, 60, 60)),
    "red": ((245, 225, 210), (186, 92, 78), (96, 36, 30)),
}
PIECES: dict[str, tuple[Colour, Colour, Colour, Colour]] = {  # white and its line, black and its line
    "carved": ((250, 250, 245), (20, 20, 20), (40, 40, 40), (235, 235, 235)),
    "flat": ((255, 255, 255), (95, 95, 95), (25, 25, 28), (25, 25, 28)),
    "tokens": ((252, 248, 238), (60, 45, 30), (50, 42, 38), (245, 235, 220)),
}
BASE: tuple[Point, ...] = ((0.26, 0.86), (0.26, 0.76), (0.34, 0.70), (0.66, 0.70), (0.74, 0.76), (0.74, 0.86))
OUTLINES: dict[str, tuple[tuple[Point, ...], ...]] = {  # polygons in a square of side 1, y down
    "p": (((0.40, 0.44), (0.60, 0.44), (0.66, 0.72), (0.34, 0.72)),),
    "r": (
        ((0.36, 0.42), (0.64, 0.42), (0.66, 0.72), (0.34, 0.72)),
        (
            *((0.29, 0.22), (0.38, 0.22), (0.38, 0.29), (0.45, 0.29), (0.45, 0.22), (0.55, 0.22)),
            *((0.55, 0.29), (0.62, 0.29), (0.62, 0.22), (0.71, 0.22), (0.71, 0.42), (0.29, 0.42)),
        ),
    ),
    "n": (
        (
            *((0.34, 0.72), (0.38, 0.58), (0.50, 0.48), (0.36, 0.50), (0.27, 0.56), (0.22, 0.48)),
            *((0.36, 0.28), (0.42, 0.16), (0.50, 0.22), (0.66, 0.30), (0.74, 0.48), (0.70, 0.72)),
        ),
    ),
    "b": (((0.50, 0.20), (0.64, 0.40), (0.58, 0.54), (0.66, 0.72), (0.34, 0.72), (0.42, 0.54), (0.36, 0.40)),),
    "q": (
        (
            *((0.20, 0.28), (0.36, 0.46), (0.38, 0.20), (0.50, 0.42), (0.62, 0.20), (0.64, 0.46)),
            *((0.80, 0.28), (0.68, 0.72), (0.32, 0.72)),
        ),
    ),
    "k": (
        (
            *((0.46, 0.10), (0.54, 0.10), (0.54, 0.18), (0.62, 0.18), (0.62, 0.25), (0.54, 0.25)),
            *((0.54, 0.34), (0.46, 0.34), (0.46, 0.25), (0.38, 0.25), (0.38, 0.18), (0.46, 0.18)),
        ),
        ((0.24, 0.42), (0.36, 0.34), (0.50, 0.40), (0.64, 0.34), (0.76, 0.42), (0.68, 0.72), (0.32, 0.72)),
    ),
}
BALLS: dict[str, tuple[tuple[float, float, float], ...]] = {  # centre and radius, over the polygons
    "p": ((0.50, 0.34, 0.14),),
    "b": ((0.50, 0.17, 0.05),),
    "q": ((0.20, 0.26, 0.05), (0.38, 0.18, 0.05), (0.62, 0.18, 0.05), (0.80, 0.26, 0.05)),
}


class BoardStyle(Struct, frozen=True):
    """How a board looks. The same for all images of one dialogue."""

    board: str = "brown"
    pieces: str = "carved"
    is_flipped: bool = False  # Black is at the bottom
    side: int = 512  # pixels


def choose_style(rng: Random, side: int) -> BoardStyle:
    """Return one of the styles."""
    return BoardStyle(rng.choice(sorted(BOARDS)), rng.choice(sorted(PIECES)), rng.random() < 0.3, side)


def draw_board(position: Position, style: BoardStyle) -> Pillow.Image:
    """Return the position as an image, with the squares' letters and numbers at the frame."""
    light, dark, frame = BOARDS[style.board]
    image = Pillow.new("RGB", (style.side, style.side), frame)
    draw = ImageDraw.Draw(image)
    edge = max(style.side // 24, 8)
    cell = (style.side - 2 * edge) // 8
    start = (style.side - 8 * cell) // 2
    font = ImageFont.load_default(edge * 0.7)
    for square in range(64):
        file, rank = square % 8, square // 8
        column, row = (7 - file, rank) if style.is_flipped else (file, 7 - rank)
        left, top = start + column * cell, start + row * cell
        colour = dark if (file + rank) % 2 == 0 else light
        draw.rectangle((left, top, left + cell - 1, top + cell - 1), fill=colour)
        letter = position.board[square]
        if letter != EMPTY:
            sprite = _draw_piece(letter, style.pieces, cell)
            image.paste(sprite, (left, top), sprite)
    for index in range(8):
        letter = "abcdefgh"[7 - index if style.is_flipped else index]
        number = str(index + 1 if style.is_flipped else 8 - index)
        middle = start + index * cell + cell / 2
        draw.text((middle, style.side - start / 2), letter, fill=light, font=font, anchor="mm")
        draw.text((start / 2, middle), number, fill=light, font=font, anchor="mm")
    return image


@lru_cache(maxsize=256)
def _draw_piece(letter: str, pieces: str, cell: int) -> Pillow.Image:
    """Return a piece on nothing."""
    white, white_line, black, black_line = PIECES[pieces]
    fill, line = (white, white_line) if letter.isupper() else (black, black_line)
    size = cell * FINER
    sprite = Pillow.new("RGBA", (size, size), (0, 0, 0, 0))
    draw = ImageDraw.Draw(sprite)
    painter: Callable[[ImageDraw.ImageDraw, str, Colour, Colour, int], None] = _draw_figure
    if pieces == "tokens":
        painter = _draw_token
    painter(draw, letter.lower(), fill, line, size)
    return sprite.resize((cell, cell), Pillow.Resampling.LANCZOS)


def _draw_figure(draw: ImageDraw.ImageDraw, kind: str, fill: Colour, line: Colour, size: int) -> None:
    width = max(size // 40, 1)
    for polygon in (*OUTLINES[kind], BASE):
        points = [(x * size, y * size) for x, y in polygon]
        draw.polygon(points, fill=fill)
        draw.line([*points, points[0], points[1]], fill=line, width=width, joint="curve")
    for x, y, radius in BALLS.get(kind, ()):
        box = ((x - radius) * size, (y - radius) * size, (x + radius) * size, (y + radius) * size)
        draw.ellipse(box, fill=fill, outline=line, width=width)


def _draw_token(draw: ImageDraw.ImageDraw, kind: str, fill: Colour, line: Colour, size: int) -> None:
    """Draw a disc with the piece's letter."""
    draw.ellipse((size * 0.1, size * 0.1, size * 0.9, size * 0.9), fill=fill, outline=line, width=max(size // 24, 1))
    font = ImageFont.load_default(size * 0.5)
    draw.text((size / 2, size / 2), kind.upper(), fill=line, font=font, anchor="mm")
