"""Paths: lists of points in a reply, however they are written, and how far one lies from the true one."""

import itertools
import math
import re
from collections.abc import Sequence

from weft.benchmarks.rover.tg.answers import extract_text_after_marker

Points = list[tuple[float, float]]
N = r"(-?\d+(?:\.\d+)?)"
PAIR = re.compile(
    rf"""[\[(]\s*(?:x\s*[=:]\s*)?{N}\s*,\s*(?:y\s*[=:]\s*)?{N}\s*[\])]|["']?x["']?\s*[:=]\s*{N}\s*,\s*["']?y["']?\s*[:=]\s*{N}"""
)
NESTED = re.compile(rf"\[(?:\s*\[\s*{N}\s*,\s*{N}\s*\]\s*,?){{2,}}\s*\]")
BLANK = r"[^\S\n]*"
MARKS = r"""[\s,;|\])}\[({"'*•:.=→>-]*"""
LINE = re.compile(
    rf"^{BLANK}(?:[-*•|]{BLANK})?(?:\w{{0,12}}[^\S\n]?\d{{0,3}}{BLANK}[:.)|]{BLANK})?{N}{BLANK}[,;|\s]{BLANK}{N}{BLANK}\|?{BLANK}$",
    re.MULTILINE,
)
LABEL = re.compile(rf"""{MARKS}(?:and\b)?{MARKS}(?:[A-Za-z_]{{1,12}}[ _-]?){{0,2}}\d{{0,3}}{MARKS}""")
JSON = re.compile(
    r"""[\s,}\]{\[]*(?:"\w{1,16}"\s*:\s*"[^"\n]{0,20}"\s*,?[\s}\]{\[,]*)*(?:"\w{1,16}"\s*:\s*)?[\s{\[]*"""
)
GAP = 48  # characters between two points of one path, at most
FAR = 0.25  # of the picture's diagonal: a path that is so far off on average, or farther, has nothing of the true one
STOPS = 50  # moments at which two paths are compared


def parse_points(text: str) -> Points:
    """The last list of lists; else the longest row of points, the last of those that are as long. Between two points of
    a row there may be a label, a number, a bullet or an arrow; a sentence ends it. Lines of two numbers are points
    where there are no others."""
    written = list(NESTED.finditer(text))
    if written:
        return [(float(x), float(y)) for x, y in re.findall(rf"\[\s*{N}\s*,\s*{N}\s*\]", written[-1].group())]
    runs: list[Points] = [[]]
    end = -1
    for match in PAIR.finditer(text):
        if end >= 0:
            gap = text[end : match.start()]
        else:
            gap = ""
        if end >= 0 and (len(gap) > GAP or not (LABEL.fullmatch(gap) or JSON.fullmatch(gap))):
            runs.append([])
        x, y = (float(one) for one in match.groups() if one is not None)
        runs[-1].append((x, y))
        end = match.end()
    longest = max(reversed(runs), key=len)
    if len(longest) < 2:
        lines = [(float(match.group(1)), float(match.group(2))) for match in LINE.finditer(text)]
        if len(lines) >= 2:
            return lines
        return longest
    return longest


def score_path(reply: str, answer: str, width: int, height: int) -> tuple[float, float] | None:
    """How near a path lies to the true one: a share of full marks, and the mean distance as a share of the picture's
    diagonal. Both paths are walked at an even pace, and compared where they are at the same time. None where the reply
    names no path; standing still is none."""
    after = parse_points(extract_text_after_marker(reply))
    if len(after) > 1:
        said = after
    else:
        said = parse_points(reply)
    due = parse_points(answer)
    if len(said) < 2 or len(due) < 2 or not all(math.isfinite(x) and abs(x) < 1e6 for point in said for x in point):
        return None
    if len(set(said)) < 2:
        return None
    pairs = zip(_walked(said), _walked(due), strict=True)
    away = sum(math.dist(one, other) for one, other in pairs) / STOPS / math.hypot(width, height)
    return max(0.0, 1 - away / FAR), away


def _walked(path: Sequence[tuple[float, float]]) -> Points:
    """Where one is at even intervals, going along it."""
    lengths = [math.dist(a, b) for a, b in itertools.pairwise(path)]
    total = sum(lengths)
    made: Points = []
    for stop in range(STOPS):
        left = total * stop / (STOPS - 1)
        at = 0
        while at < len(lengths) - 1 and left > lengths[at]:
            left -= lengths[at]
            at += 1
        if lengths[at]:
            part = min(1.0, left / lengths[at])
        else:
            part = 0.0
        (x, y), (u, v) = path[at], path[at + 1]
        made.append((x + (u - x) * part, y + (v - y) * part))
    return made
