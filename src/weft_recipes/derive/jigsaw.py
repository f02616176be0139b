"""Jigsaw puzzles: an image with a gap, and pieces of which one fits. Every filled image and the answer are exact.

puzzle = make_puzzle(draw_subject(rng, 384), rng, alternatives=4)
puzzle.shown        # the image with its gap, and the pieces under their letters
puzzle.filled       # the image with each of the pieces in the gap
puzzle.answer       # the letter of the piece that fits
"""

from random import Random

import numpy as np
from msgspec import Struct
from PIL import Image as Pillow
from PIL import ImageDraw, ImageFont, ImageOps

from weft_recipes.derive.plan import DialoguePlan, PlannedTurn

LETTERS = "ABCDEF"
GAP = (128, 128, 128)
PAPER = (255, 255, 255)
MARGIN = 0.05  # of the image's side, around the pieces
LEAST_DIFFERENCE = 9.0  # of 255, of two pieces on average: whoever looks can tell them apart
WORSE_SEAM = 6.0  # of 255: by so much a wrong piece fits its neighbours worse than the right one
MAX_TRIES = 40
POINT = "The gap of <image> is filled with the piece of option {letter} from it, and everything else is as it was."


class NoPuzzle(ValueError):
    """An image of which no puzzle can be made: its parts look alike."""


class Puzzle(Struct, frozen=True):
    """One puzzle with everything that its dialogue shows."""

    shown: Pillow.Image
    filled: tuple[Pillow.Image, ...]  # by letter
    answer: str
    pieces_across: int
    gap: tuple[int, int]  # column and row


def make_puzzle(subject: Pillow.Image, rng: Random, alternatives: int) -> Puzzle:
    """Return a puzzle of a square image. Raises NoPuzzle if no part of it can be told from its other parts."""
    for _ in range(MAX_TRIES):
        across = rng.choice((3, 4))
        cell = subject.width // across
        whole = subject.crop((0, 0, cell * across, cell * across))
        gap = (rng.randrange(across), rng.randrange(across))
        right = _cut(whole, gap, cell)
        limit = measure_seam(whole, right, gap, cell) + WORSE_SEAM
        wrong = _find_wrong_pieces(whole, right, gap, cell, rng)
        wrong = [piece for piece in wrong if measure_seam(whole, piece, gap, cell) >= limit]
        chosen = _choose_distinct(right, wrong, alternatives - 1)
        if chosen is None:
            continue
        pieces = [right, *chosen]
        order = list(range(alternatives))
        rng.shuffle(order)
        ordered = [pieces[index] for index in order]
        filled = tuple(_paste(whole, piece, gap, cell) for piece in ordered)
        return Puzzle(_lay_out(whole, ordered, gap, cell), filled, LETTERS[order.index(0)], across, gap)
    raise NoPuzzle("its parts look alike")


def plan_jigsaw(puzzle: Puzzle) -> DialoguePlan:
    """Return the dialogue: each piece is tried, then the right one is named."""
    turns: list[PlannedTurn] = []
    letters = LETTERS[: len(puzzle.filled)]
    for number, letter in enumerate(letters, start=2):
        turns.append(
            PlannedTurn(
                f"Fill the gap of Image #1 with the piece of option {letter}. Show the picture alone, without the "
                "options.",
                "alternative",
                number,
                key_points={"GT #1": POINT.format(letter=letter)},
                words=(f"option {letter}",),
                gold={"option": letter, "fits": letter == puzzle.answer},
            )
        )
    listed = f"{', '.join(letters[:-1])} or {letters[-1]}"
    numbers = range(2, len(letters) + 2)
    images = f"{', '.join(f'Image #{number}' for number in numbers[:-1])} and Image #{numbers[-1]}"
    turns.append(
        PlannedTurn(
            f"Compare {images}. Which option of Image #1 completes the picture? Answer with {listed}.",
            "compare",
            answer=puzzle.answer,
            words=(f"{letters[-2]} or {letters[-1]}",),
            gold={"question": "jigsaw", "option": puzzle.answer},
        )
    )
    return DialoguePlan("visual_jigsaw", tuple(turns))


def difference(first: Pillow.Image, second: Pillow.Image) -> float:
    """Return the mean absolute difference of two pieces, of 255."""
    return float(np.abs(np.asarray(first, np.int16) - np.asarray(second, np.int16)).mean())


def measure_seam(whole: Pillow.Image, piece: Pillow.Image, gap: tuple[int, int], cell: int) -> float:
    """Return how far a piece's edges are from the pixels next to them, on average, of 255."""
    around = np.asarray(whole, np.int16)
    inside = np.asarray(piece, np.int16)
    left, top = gap[0] * cell, gap[1] * cell
    right, bottom = left + cell, top + cell
    sides: list[float] = []
    if left > 0:
        sides.append(float(np.abs(inside[:, 0] - around[top:bottom, left - 1]).mean()))
    if top > 0:
        sides.append(float(np.abs(inside[0] - around[top - 1, left:right]).mean()))
    if right < whole.width:
        sides.append(float(np.abs(inside[:, -1] - around[top:bottom, right]).mean()))
    if bottom < whole.height:
        sides.append(float(np.abs(inside[-1] - around[bottom, left:right]).mean()))
    return sum(sides) / len(sides)


def _cut(whole: Pillow.Image, place: tuple[int, int], cell: int) -> Pillow.Image:
    column, row = place
    return whole.crop((column * cell, row * cell, (column + 1) * cell, (row + 1) * cell))


def _paste(whole: Pillow.Image, piece: Pillow.Image, gap: tuple[int, int], cell: int) -> Pillow.Image:
    filled = whole.copy()
    filled.paste(piece, (gap[0] * cell, gap[1] * cell))
    return filled


def _find_wrong_pieces(
    whole: Pillow.Image, right: Pillow.Image, gap: tuple[int, int], cell: int, rng: Random
) -> list[Pillow.Image]:
    """Return pieces that do not fit, in an order of chance: other parts, turned and mirrored ones."""
    across = whole.width // cell
    places = [(column, row) for column in range(across) for row in range(across) if (column, row) != gap]
    pieces = [_cut(whole, place, cell) for place in places]
    pieces += [right.transpose(turn) for turn in (Pillow.Transpose.ROTATE_90, Pillow.Transpose.ROTATE_180)]
    pieces += [ImageOps.mirror(right), ImageOps.flip(right)]
    rng.shuffle(pieces)
    return pieces


def _choose_distinct(right: Pillow.Image, wrong: list[Pillow.Image], count: int) -> list[Pillow.Image] | None:
    """Return so many pieces that differ from the right one and from each other; None if there are too few."""
    chosen: list[Pillow.Image] = []
    for piece in wrong:
        if all(difference(piece, one) >= LEAST_DIFFERENCE for one in (right, *chosen)):
            chosen.append(piece)
        if len(chosen) == count:
            return chosen
    return None


def _lay_out(whole: Pillow.Image, pieces: list[Pillow.Image], gap: tuple[int, int], cell: int) -> Pillow.Image:
    """Return the image with its gap, and below it the pieces with their letters."""
    margin = max(round(whole.width * MARGIN), 8)
    label = max(cell // 4, 14)
    width = max(whole.width, len(pieces) * cell + (len(pieces) - 1) * margin) + 2 * margin
    height = whole.height + cell + label + 3 * margin
    image = Pillow.new("RGB", (width, height), PAPER)
    shown = _paste(whole, Pillow.new("RGB", (cell, cell), GAP), gap, cell)
    image.paste(shown, ((width - whole.width) // 2, margin))
    draw = ImageDraw.Draw(image)
    font = ImageFont.load_default(label * 0.8)
    left = (width - len(pieces) * cell - (len(pieces) - 1) * margin) // 2
    top = whole.height + 2 * margin
    for index, piece in enumerate(pieces):
        x = left + index * (cell + margin)
        image.paste(piece, (x, top + label))
        draw.text((x + cell / 2, top + label / 2), LETTERS[index], fill=(0, 0, 0), font=font, anchor="mm")
    return image
