"""Draws images to make jigsaw puzzles of: landscapes, shapes and tiles, with something to see in every part."""

import math
from collections.abc import Callable
from random import Random

import numpy as np
from PIL import Image as Pillow
from PIL import ImageDraw

Colour = tuple[int, int, int]

FINER = 2


def draw_subject(rng: Random, side: int) -> Pillow.Image:
    """Return an image of chance. The same generator makes the same image."""
    painter = rng.choice(PAINTERS)
    image = painter(rng, side * FINER)
    return image.resize((side, side), Pillow.Resampling.LANCZOS)


def _blend(first: Colour, second: Colour, side: int, angle: float) -> Pillow.Image:
    """Return a field that goes from one colour to another."""
    down, right = np.mgrid[0:side, 0:side] / max(side - 1, 1)
    share = right * math.cos(angle) + down * math.sin(angle)
    share = (share - share.min()) / max(float(np.ptp(share)), 1e-9)
    colours = np.array(first) * (1 - share[..., None]) + np.array(second) * share[..., None]
    return Pillow.fromarray(colours.round().astype(np.uint8), "RGB")


def _colour(rng: Random, low: int = 30, high: int = 235) -> Colour:
    return rng.randint(low, high), rng.randint(low, high), rng.randint(low, high)


def _darker(colour: Colour, share: float) -> Colour:
    return int(colour[0] * share), int(colour[1] * share), int(colour[2] * share)


def _draw_landscape(rng: Random, side: int) -> Pillow.Image:
    """Sky with sun and clouds, hills behind one another, trees and houses."""
    image = _blend(_colour(rng, 120, 230), _colour(rng, 170, 250), side, math.pi / 2)
    draw = ImageDraw.Draw(image)
    x, y, radius = rng.random() * side, side * rng.uniform(0.08, 0.25), side * rng.uniform(0.05, 0.1)
    draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=(255, rng.randint(200, 245), 120))
    for _ in range(rng.randint(3, 6)):
        _draw_cloud(draw, rng, side)
    ground = _colour(rng, 90, 200)
    for layer in range(4):
        height = side * (0.35 + 0.16 * layer)
        shade = _darker(ground, 1 - 0.16 * layer)
        _draw_hill(draw, rng, side, height, shade)
        for _ in range(3 + 2 * layer):
            thing = rng.choice((_draw_tree, _draw_tree, _draw_house))
            thing(draw, rng, rng.random() * side, height + side * rng.uniform(0.02, 0.14), side * (0.04 + 0.02 * layer))
    return image


def _draw_cloud(draw: ImageDraw.ImageDraw, rng: Random, side: int) -> None:
    x, y = rng.random() * side, rng.uniform(0.03, 0.3) * side
    for _ in range(4):
        wide, high = side * rng.uniform(0.04, 0.08), side * rng.uniform(0.02, 0.04)
        left, top = x + side * rng.uniform(-0.07, 0.07), y + side * rng.uniform(-0.02, 0.02)
        draw.ellipse((left - wide, top - high, left + wide, top + high), fill=(250, 250, 252))


def _draw_hill(draw: ImageDraw.ImageDraw, rng: Random, side: int, height: float, colour: Colour) -> None:
    phase, waves, lift = rng.random() * 6.3, rng.uniform(0.6, 2.2), side * rng.uniform(0.03, 0.08)
    edge = [(x, height + lift * math.sin(phase + waves * 2 * math.pi * x / side)) for x in range(0, side + 8, 8)]
    draw.polygon([*edge, (side, side), (0, side)], fill=colour)


def _draw_tree(draw: ImageDraw.ImageDraw, rng: Random, x: float, y: float, size: float) -> None:
    green = (rng.randint(20, 90), rng.randint(90, 170), rng.randint(30, 90))
    draw.rectangle((x - size * 0.08, y - size * 0.4, x + size * 0.08, y), fill=(94, 62, 38))
    if rng.random() < 0.5:
        draw.polygon(((x, y - size * 1.5), (x - size * 0.4, y - size * 0.35), (x + size * 0.4, y - size * 0.35)), green)
    else:
        draw.ellipse((x - size * 0.42, y - size * 1.2, x + size * 0.42, y - size * 0.35), fill=green)


def _draw_house(draw: ImageDraw.ImageDraw, rng: Random, x: float, y: float, size: float) -> None:
    wall = _colour(rng, 140, 250)
    draw.rectangle((x - size * 0.5, y - size * 0.7, x + size * 0.5, y), fill=wall)
    draw.polygon(
        ((x - size * 0.6, y - size * 0.7), (x, y - size * 1.2), (x + size * 0.6, y - size * 0.7)), _darker(wall, 0.5)
    )
    draw.rectangle((x - size * 0.12, y - size * 0.35, x + size * 0.12, y), fill=_darker(wall, 0.4))


def _draw_shapes(rng: Random, side: int) -> Pillow.Image:
    """Circles, boxes, rings and triangles, one over the other."""
    image = _blend(_colour(rng), _colour(rng), side, rng.random() * 6.3)
    draw = ImageDraw.Draw(image)
    for _ in range(90):
        x, y, size = rng.random() * side, rng.random() * side, side * rng.uniform(0.03, 0.13)
        colour, line = _colour(rng, 10, 250), _colour(rng, 10, 120)
        box = (x - size, y - size, x + size, y + size)
        kind = rng.randrange(4)
        if kind == 0:
            draw.ellipse(box, fill=colour)
        elif kind == 1:
            draw.rectangle(
                (box[0], y - size * 0.6, box[2], y + size * 0.6), fill=colour, outline=line, width=side // 200
            )
        elif kind == 2:
            draw.ellipse(box, outline=colour, width=max(side // 60, 1))
        else:
            turn = rng.random() * 6.3
            corners = [(x + size * math.cos(turn + k * 2.1), y + size * math.sin(turn + k * 2.1)) for k in range(3)]
            draw.polygon(corners, fill=colour)
    return image


def _draw_tiles(rng: Random, side: int) -> Pillow.Image:
    """A mosaic of uneven tiles in a few colours, crossed by curves."""
    colours = [_colour(rng, 20, 245) for _ in range(7)]
    count = rng.randint(11, 15)
    step = side / count
    corners = {
        (column, row): (
            column * step + (rng.uniform(-0.3, 0.3) * step if 0 < column < count else 0),
            row * step + (rng.uniform(-0.3, 0.3) * step if 0 < row < count else 0),
        )
        for column in range(count + 1)
        for row in range(count + 1)
    }
    image = Pillow.new("RGB", (side, side))
    draw = ImageDraw.Draw(image)
    for column in range(count):
        for row in range(count):
            around = ((column, row), (column + 1, row), (column + 1, row + 1), (column, row + 1))
            draw.polygon([corners[place] for place in around], fill=rng.choice(colours), outline=(40, 40, 40))
    for _ in range(5):
        phase, waves, height = rng.random() * 6.3, rng.uniform(0.5, 2), rng.random() * side
        curve = [(x, height + side * 0.12 * math.sin(phase + waves * 6.3 * x / side)) for x in range(0, side + 8, 8)]
        draw.line(curve, fill=_colour(rng, 10, 250), width=max(side // 50, 1))
    return image


PAINTERS: tuple[Callable[[Random, int], Pillow.Image], ...] = (_draw_landscape, _draw_shapes, _draw_tiles)
