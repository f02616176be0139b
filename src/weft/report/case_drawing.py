"""Dialogues of several models as a drawing for a paper: SVG, from which PNG and PDF are made.

Each turn is its prompt over the whole width, then the replies side by side, each over its scores. Columns that do not
fit into one row follow in a second one. All texts and images are untrusted: texts are escaped and cut after a number of
lines, which an ellipsis shows; images are decoded, downscaled and encoded anew."""

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from weft.report.case_figure import REFERENCE, Case, CaseReply, CaseScore, CaseTurn, build_case
from weft.report.figure_images import EmbedImage, image_embedder
from weft.report.plots import FAINT, FORMATS, INK, PAPER, SOFT, save_svg
from weft.report.series import PALETTE
from weft.report.svg_text import FONT, escape_xml, measure_text, render_lines, wrap_text
from weft.results.run import Run
from weft.store.blobs import Blobs
from weft.types import Image, Part, Thought
from weft.workspace import open_blobs

WIDTH = 502.0  # points; with margins seven inches
MARGIN = 1.0
MAX_COLUMNS = 4  # side by side
GAP = 8.0
PADDING = 5.0
TEXT = 7.0  # points of the letters
LINE = 8.8
HEAD = 8.0
HEAD_LINE = 10.0
NAME = 10.0  # of a sample's name over its turns
NAME_LINE = 12.0
PROMPT_IMAGE = 76.0  # height of an image in a prompt
MAX_IMAGE = 150.0  # height of an image in a reply
CHIP = 11.0  # height of a score
SHADE = "#f3f5f8"  # behind prompts
BAD = (246, 214, 205)  # behind a score of zero
GOOD = (203, 232, 216)  # behind full marks
PNG_SCALE = 3.0
MAX_PNG_PIXELS = 40_000_000
DEFAULT_LINES = 12
FIGURES = Path("figures")
MAX_SIDE = 1_000_000  # pixels that an image may claim
MAX_NAME = 100  # characters of a file's name


class Box(Struct, frozen=True):
    """A part of the drawing whose top left corner is at (0, 0), and its height."""

    height: float
    svg: str = ""


def write_case(
    runs: Sequence[Run],
    sample: str | Sequence[str],
    out: str | Path = "",
    *,
    max_lines: int = DEFAULT_LINES,
    columns: int = MAX_COLUMNS,
    **choices: Any,
) -> list[Path]:
    """Write a dialogue of these runs, or several one below another, as PDF, SVG and PNG; return the paths.

    `out`: the path without a suffix, or with one of the three, and then only that file; `figures/SAMPLE` without it.
    `max_lines`: of one text. `columns`: side by side. `choices`: turns, metrics, scores, titles, reference, thoughts,
    as for `build_case`."""
    samples = [sample] if isinstance(sample, str) else list(dict.fromkeys(sample))
    cases = [build_case(runs, name, **choices) for name in samples]
    stores = [open_blobs(home) for home in dict.fromkeys(run.home for run in runs)]
    return save_cases(cases, stores, out, max_lines=max_lines, columns=columns)


def save_cases(
    cases: Sequence[Case],
    stores: Sequence[Blobs],
    out: str | Path = "",
    *,
    max_lines: int = DEFAULT_LINES,
    columns: int = MAX_COLUMNS,
) -> list[Path]:
    """Write dialogues one below another, with the images of `stores`; return the paths. `out` as for `write_case`."""
    name = "+".join(case.sample for case in cases)
    stem = Path(out) if out else FIGURES / (re.sub(r"[^\w+-]+", "-", name).strip("-")[:MAX_NAME] or "figure")
    formats = FORMATS
    if stem.suffix.lower() in FORMATS:
        formats = (stem.suffix.lower(),)
        stem = stem.with_suffix("")
    text, height = draw_cases(cases, image_embedder(stores), max_lines=max_lines, columns=columns)
    scale = min(PNG_SCALE, math.sqrt(MAX_PNG_PIXELS / (WIDTH * height)))
    return save_svg(text, stem, scale=scale, formats=formats)


def draw_cases(
    cases: Sequence[Case], embed: EmbedImage, *, max_lines: int = DEFAULT_LINES, columns: int = MAX_COLUMNS
) -> tuple[str, float]:
    """Return the drawing and its height in points. Several dialogues have their names over them."""
    drawer = _Drawer(embed, max_lines, columns)
    drawn = [drawer.dialogue(case, is_named=len(cases) > 1) for case in cases]
    content = _stack(drawn, 3 * GAP)
    name = ", ".join(case.sample for case in cases)
    height = content.height + 2 * GAP
    size = f'width="{WIDTH + 2 * MARGIN:g}" height="{height:.2f}"'
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="-{MARGIN:g} 0 {WIDTH + 2 * MARGIN:g} {height:.2f}" '
        f'font-family="{escape_xml(FONT)}"><title>{escape_xml(name)}</title>'
        f'<rect x="-{MARGIN:g}" {size} fill="{PAPER}"/>{_move(content.svg, 0, GAP)}</svg>'
    )
    return svg, height


def _stack(boxes: Sequence[Box], gap: float) -> Box:
    """Return boxes one below another. Empty ones take no room."""
    top = 0.0
    pieces: list[str] = []
    for box in boxes:
        if not box.height:
            continue
        if pieces:
            top += gap
        pieces.append(_move(box.svg, 0, top))
        top += box.height
    return Box(top, "".join(pieces))


def _move(svg: str, x: float, y: float) -> str:
    return f'<g transform="translate({x:.2f} {y:.2f})">{svg}</g>'


def _rectangle(width: float, height: float, fill: str, stroke: str = "none") -> str:
    size = f'width="{width:.2f}" height="{height:.2f}"'
    return f'<rect {size} rx="3" fill="{fill}" stroke="{stroke}" stroke-width="0.6"/>'


class _Drawer:
    def __init__(self, embed: EmbedImage, max_lines: int, columns: int) -> None:
        self._embed = embed
        self._max_lines = max_lines
        self._columns = columns

    def dialogue(self, case: Case, *, is_named: bool) -> Box:
        """Return all turns, below the sample's name if it is shown. A single turn has the name in place of its own."""
        if not is_named:
            return _stack([self.turn(case, turn) for turn in case.turns], 1.5 * GAP)
        if len(case.turns) == 1:
            return self.turn(case, replace(case.turns[0], title=case.sample))
        name = self._text(case.sample, WIDTH, NAME, NAME_LINE, INK, bold=True)
        return _stack([name, *(self.turn(case, turn) for turn in case.turns)], 1.5 * GAP)

    def turn(self, case: Case, turn: CaseTurn) -> Box:
        """Return the prompt and all replies of a turn. Titles stand over the replies of every turn, since a figure may
        be cut between turns."""
        boxes = [self._prompt(turn)]
        rows = max(1, math.ceil(len(case.columns) / self._columns))
        per_row = max(1, math.ceil(len(case.columns) / rows))
        for start in range(0, len(case.columns), per_row):
            titles = case.columns[start : start + per_row]
            boxes.append(self._replies(titles, turn.replies[start : start + per_row], start, per_row))
        return _stack(boxes, GAP)

    def _prompt(self, turn: CaseTurn) -> Box:
        width = WIDTH - 2 * PADDING
        title = self._text(turn.title, width, HEAD, HEAD_LINE, INK, bold=True)
        body = _stack([title, *self._parts(turn.prompt, width, PROMPT_IMAGE)], 3)
        height = body.height + 2 * PADDING
        return Box(height, _rectangle(WIDTH, height, SHADE) + _move(body.svg, PADDING, PADDING))

    def _replies(self, titles: Sequence[str], replies: Sequence[CaseReply], first: int, per_row: int) -> Box:
        """Return one row of columns, all as high as the highest. Scores are at the bottom."""
        width = (WIDTH - GAP * (per_row - 1)) / per_row
        inner = width - 2 * PADDING
        heads = [self._text(title, inner, HEAD, HEAD_LINE, INK, bold=True) for title in titles]
        bodies = [self._reply(reply, inner) for reply in replies]
        scores = [_draw_scores(reply.scores, inner) for reply in replies]
        head_height = max(head.height for head in heads)
        body_height = max(body.height for body in bodies)
        score_height = max(score.height for score in scores)
        top = PADDING + head_height + 4
        bottom = top + body_height + (5 if score_height else 0)
        height = bottom + score_height + PADDING
        pieces: list[str] = []
        for index, (head, body, score) in enumerate(zip(heads, bodies, scores, strict=True)):
            color = SOFT if titles[index] == REFERENCE else PALETTE[(first + index) % len(PALETTE)]
            column = _rectangle(width, height, PAPER, FAINT)
            column += f'<rect width="{width:.2f}" height="2" fill="{color}"/>'
            column += _move(head.svg, PADDING, PADDING) + _move(body.svg, PADDING, top)
            column += _move(score.svg, PADDING, bottom)
            pieces.append(_move(column, index * (width + GAP), 0))
        return Box(height, "".join(pieces))

    def _reply(self, reply: CaseReply, width: float) -> Box:
        boxes = self._parts(reply.parts, width, MAX_IMAGE)
        if reply.note:
            boxes.append(self._text(reply.note, width, TEXT, LINE, SOFT))
        return _stack(boxes, 4)

    def _parts(self, parts: Sequence[Part], width: float, image_height: float) -> list[Box]:
        """Return texts and images in their order. Consecutive images share rows."""
        boxes: list[Box] = []
        row: list[Image] = []
        for part in parts:
            if isinstance(part, Image):
                row.append(part)
                continue
            boxes.append(self._images(row, width, image_height))
            row = []
            color = SOFT if isinstance(part, Thought) else INK
            boxes.append(self._text(part.text, width, TEXT, LINE, color))
        boxes.append(self._images(row, width, image_height))
        return boxes

    def _text(self, text: str, width: float, size: float, line: float, color: str, *, bold: bool = False) -> Box:
        lines = wrap_text(text, width, size, self._max_lines, bold=bold)
        return Box(len(lines) * line, render_lines(lines, 0, 0, size, line, color=color, bold=bold))

    def _images(self, images: Sequence[Image], width: float, height: float) -> Box:
        """Return images in rows, each as high as there is room for, and none higher than `height`."""
        rows: list[Box] = []
        pieces: list[str] = []
        left = 0.0
        row_height = 0.0
        for image in images:
            sides = [min(max(1, side), MAX_SIDE) for side in (image.width, image.height)]  # a record may say anything
            scale = min(width / sides[0], height / sides[1])
            image_width, image_height = scale * sides[0], scale * sides[1]
            if pieces and left + image_width > width + 0.01:
                rows.append(Box(row_height, "".join(pieces)))
                pieces, left, row_height = [], 0.0, 0.0
            drawn = self._image(image, image_width, image_height)
            pieces.append(_move(drawn.svg, left, 0))
            left += image_width + 4
            row_height = max(row_height, drawn.height)
        rows.append(Box(row_height, "".join(pieces)))
        return _stack(rows, 4)

    def _image(self, image: Image, width: float, height: float) -> Box:
        """Return an image with its number below; a box that says so where it cannot be read."""
        url = self._embed(image, max(width, height))
        if url is None:
            text = self._text("this image is not in the store", width - 4, TEXT, LINE, SOFT)
            height = max(height, text.height + 4)
            svg = _rectangle(width, height, SHADE, FAINT) + _move(text.svg, 2, 2)
        else:
            svg = f'<image href="{url}" width="{width:.2f}" height="{height:.2f}"/>'
        if image.label is None:
            return Box(height, svg)
        label = render_lines([f"Image #{image.label}"], 0, height + 2, TEXT - 1, LINE, color=SOFT)
        return Box(height + LINE + 1, svg + label)


def _draw_scores(scores: Sequence[CaseScore], width: float) -> Box:
    """Return the scores of a reply in rows; their color goes from zero to full marks."""
    rows: list[Box] = []
    pieces: list[str] = []
    left = 0.0
    for score in scores:
        text = wrap_text(f"{score.metric} {score.text}", width - 8, TEXT - 0.5, 1)[0]
        chip_width = min(width, measure_text(text, TEXT - 0.5) + 8)
        if pieces and left + chip_width > width:
            rows.append(Box(CHIP, "".join(pieces)))
            pieces, left = [], 0.0
        chip = _rectangle(chip_width, CHIP, _score_color(score.share))
        chip += render_lines([text], 4, 2.1, TEXT - 0.5, LINE, color=INK)
        pieces.append(_move(chip, left, 0))
        left += chip_width + 3
    if pieces:
        rows.append(Box(CHIP, "".join(pieces)))
    return _stack(rows, 3)


def _score_color(share: float | None) -> str:
    if share is None:
        return SHADE
    position = max(0.0, min(1.0, share))
    mixed = [round(bad + position * (good - bad)) for bad, good in zip(BAD, GOOD, strict=True)]
    return "#" + "".join(f"{value:02x}" for value in mixed)
