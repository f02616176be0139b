"""Paths: lists of points in a reply, however they are written, and how far one is from the reference."""

import itertools
import math
import re
from collections.abc import Sequence

from weft.benchmarks.rover.tg.answers import extract_text_after_marker

Points = list[tuple[float, float]]
NUMBER = r"(-?\d+(?:\.\d+)?)"
PAIR = re.compile(
    rf"""[\[(]\s*(?:x\s*[=:]\s*)?{NUMBER}\s*,\s*(?:y\s*[=:]\s*)?{NUMBER}\s*[\])]|["']?x["']?\s*[:=]\s*{NUMBER}\s*,\s*["']?y["']?\s*[:=]\s*{NUMBER}"""
)
NESTED_LIST = re.compile(rf"\[(?:\s*\[\s*{NUMBER}\s*,\s*{NUMBER}\s*\]\s*,?){{2,}}\s*\]")
BLANKS = r"[^\S\n]*"
PUNCTUATION = r"""[\s,;|\])}\[({"'*•:.=→>-]*"""
POINT_LINE = re.compile(
    rf"^{BLANKS}(?:[-*•|]{BLANKS})?(?:\w{{0,12}}[^\S\n]?\d{{0,3}}{BLANKS}[:.)|]{BLANKS})?{NUMBER}{BLANKS}[,;|\s]{BLANKS}{NUMBER}{BLANKS}\|?{BLANKS}$",
    re.MULTILINE,
)
LABEL_GAP = re.compile(
    rf"""{PUNCTUATION}(?:and\b)?{PUNCTUATION}(?:[A-Za-z_]{{1,12}}[ _-]?){{0,2}}\d{{0,3}}{PUNCTUATION}"""
)
JSON_GAP = re.compile(
    r"""[\s,}\]{\[]*(?:"\w{1,16}"\s*:\s*"[^"\n]{0,20}"\s*,?[\s}\]{\[,]*)*(?:"\w{1,16}"\s*:\s*)?[\s{\[]*"""
)
MAX_GAP = 48  # characters between two points of one path
ZERO_SCORE_DISTANCE = 0.25  # mean distance as a share of the diagonal: a path this far off scores 0
COMPARED_POINTS = 50  # of each path


def parse_points(text: str) -> Points:
    """Return the points of a path: the last list of lists; else the longest sequence of points, the last of equals.

    Between two points of a sequence there may be a label, a number, a bullet or an arrow; a sentence ends it. Lines of
    two numbers are points where there are no others.
    """
    lists = list(NESTED_LIST.finditer(text))
    if lists:
        pairs = re.findall(rf"\[\s*{NUMBER}\s*,\s*{NUMBER}\s*\]", lists[-1].group())
        return [(float(x), float(y)) for x, y in pairs]
    longest = max(reversed(_find_sequences(text)), key=len)
    if len(longest) < 2:
        lines = [(float(match.group(1)), float(match.group(2))) for match in POINT_LINE.finditer(text)]
        if len(lines) >= 2:
            return lines
    return longest


def _find_sequences(text: str) -> list[Points]:
    sequences: list[Points] = [[]]
    end = -1
    for match in PAIR.finditer(text):
        if end >= 0 and not _is_gap(text[end : match.start()]):
            sequences.append([])
        x, y = (float(number) for number in match.groups() if number is not None)
        sequences[-1].append((x, y))
        end = match.end()
    return sequences


def _is_gap(text: str) -> bool:
    """Whether a text may be between two points of one path."""
    return len(text) <= MAX_GAP and bool(LABEL_GAP.fullmatch(text) or JSON_GAP.fullmatch(text))


def score_path(reply: str, answer: str, width: int, height: int) -> tuple[float, float] | None:
    """Return a share of full marks, and the mean distance from the reference path as a share of the image's diagonal.

    Both paths are walked at an even pace, and compared at the same times. Returns None if the reply names no path; one
    that never moves is none.
    """
    path = parse_points(extract_text_after_marker(reply))
    if len(path) < 2:
        path = parse_points(reply)
    reference = parse_points(answer)
    if len(set(path)) < 2 or len(reference) < 2 or not all(map(_is_finite, path)):
        return None
    pairs = zip(_resample(path), _resample(reference), strict=True)
    total = sum(math.dist(point, other) for point, other in pairs)
    distance = total / COMPARED_POINTS / math.hypot(width, height)
    return max(0.0, 1 - distance / ZERO_SCORE_DISTANCE), distance


def _is_finite(point: tuple[float, float]) -> bool:
    return all(math.isfinite(coordinate) and abs(coordinate) < 1e6 for coordinate in point)


def _resample(path: Sequence[tuple[float, float]]) -> Points:
    """Return points at even distances along the path."""
    lengths = list(itertools.starmap(math.dist, itertools.pairwise(path)))
    total = sum(lengths)
    points: Points = []
    for number in range(COMPARED_POINTS):
        remaining = total * number / (COMPARED_POINTS - 1)
        segment = 0
        while segment < len(lengths) - 1 and remaining > lengths[segment]:
            remaining -= lengths[segment]
            segment += 1
        share = 0.0
        if lengths[segment]:
            share = min(1.0, remaining / lengths[segment])
        x, y = path[segment]
        next_x, next_y = path[segment + 1]
        points.append((x + (next_x - x) * share, y + (next_y - y) * share))
    return points
