"""Is a final answer right? The paper says exact match, and no more; these are the rules.

Taken is what stands after the last `Final Answer:`; without one, the last line that says something. Then, by what is due:

    a letter (jigsaw)        the one letter that is named; two different ones are none
    left or right            the one that is named; counter-clockwise is left, clockwise right
    a number                 equal as a number: 12, 12.0, $12$, 12 cm; 1/2 and 0.5 are the same
    several, or a word       the same words, in any order where commas or `and` part them; capitals, articles and punctuation aside
    points (embodied)        how far the path lies from the true one, and never a part of accuracy: see `track`
"""

import itertools
import math
import re
from collections.abc import Sequence
from fractions import Fraction

Points = list[tuple[float, float]]
MARK = re.compile(r"final\s+answer\b[\s*_`]*(?:is\b)?[\s*_`]*[:：]?", re.IGNORECASE)
LETTER = re.compile(r"(?<![A-Za-z])\(?([A-D])\)?(?![A-Za-z'’])")
SMALL = re.compile(r"(?<![A-Za-z])\(([a-d])\)(?![A-Za-z])|^\W*([a-d])\W*$", re.IGNORECASE)
LEFT = re.compile(r"\bleft(?:wards?)?\b|\b(?:counter|anti)[\s-]*clockwise\b|\bccw\b", re.IGNORECASE)
RIGHT = re.compile(r"\bright(?:wards?)?\b|(?<!counter)(?<!anti)(?<!counter[\s-])(?<!anti[\s-])\bclockwise\b|\bcw\b", re.IGNORECASE)
NUMBER = r"[-+−]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?"
PAIR = re.compile(r"[\[(]\s*(-?\d+(?:\.\d+)?)\s*,\s*(-?\d+(?:\.\d+)?)\s*[\])]")
ARTICLES = re.compile(r"\b(?:the|an|a)\s+", re.IGNORECASE)
LATEX = (
    (re.compile(r"\\(?:d|t)?frac\s*\{([^{}]+)\}\s*\{([^{}]+)\}"), r"\1/\2"),
    (re.compile(r"\\sqrt\s*\{([^{}]+)\}|sqrt\s*\(([^()]+)\)"), r"√\1\2"),
    (re.compile(r"\\(?:text|mathrm|boxed|mathbf)\s*\{([^{}]*)\}"), r"\1"),
    (re.compile(r"\^?\\circ|\^\{\\circ\}|°|\bdegrees?\b", re.IGNORECASE), "°"),
    (re.compile(r"\\(?:pi)\b"), "π"),
    (re.compile(r"\\[,;! ]|\\left|\\right|[$*`]"), ""),
)
FAR = 0.25  # of the picture's diagonal: a path that is so far off on average, or farther, has nothing of the true one
STOPS = 50  # points at which two paths are compared


def final(text: str) -> str:
    """What a reply gives as its answer."""
    marks = list(MARK.finditer(text))
    if marks:
        after = text[marks[-1].end() :].strip()
        lines = [line for line in after.splitlines() if line.strip(" *_`")]
        return (after if PAIR.search(after) else lines[0] if lines else "").strip()
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else ""


def is_right(kind: str, reply: str, answer: str) -> bool:
    said = final(reply)
    if kind == "jigsaw" and re.fullmatch(r"\(?[A-Da-d]\)?\.?", answer.strip()):
        return _letters(said) == {answer.strip(" ().").upper()}
    if kind == "multi-view" and _side(answer):
        return _side(said) == _side(answer)
    if re.fullmatch(r"\(?[A-H]\)?\.?", answer.strip()) and _letters(said):
        return _letters(said) == {answer.strip(" ().")}
    if _number(answer) is not None:
        return _number(said, like=answer) == _number(answer)
    return _words(said) == _words(answer) or (len(_items(answer)) > 1 and _items(said) == _items(answer))


def _letters(said: str) -> set[str]:
    """The letters that are named. An `A` that begins a phrase (`A star, so B`) is an article where another letter is there."""
    found = set(LETTER.findall(said)) or {(one or other).upper() for one, other in SMALL.findall(said)}
    if len(found) > 1 and not re.search(r"\bA\b(?!\s+(?!or\b|and\b)[a-z])", said):
        found.discard("A")
    return found


def _side(text: str) -> str:
    left, right = bool(LEFT.search(text)), bool(RIGHT.search(text))
    return "" if left == right else "left" if left else "right"


def _number(text: str, like: str = "") -> Fraction | None:
    """A number that stands alone, with a unit at most, or as what something equals: `x = 12`. In a reply a unit does no harm that the true
    answer leaves out; where it has one, it must be the same."""
    plain = _plain(text).strip(" .;:")
    plain = plain.rpartition("=")[2].strip() if "=" in plain else plain
    match = re.fullmatch(rf"({NUMBER})(?:\s*/\s*({NUMBER}))?\s*([^\d\s,;√π][^\d]*)?", plain)
    if match is None or not re.search(r"\d", match.group(1) or ""):
        return None
    unit, due = (match.group(3) or "").strip(" ."), ""
    if like:
        due = re.sub(rf"^\s*{NUMBER}(?:\s*/\s*{NUMBER})?", "", _plain(like).strip(" .;:")).strip(" .")
    if (due and unit and unit.lower() != due.lower()) or len(unit) > 24:
        return None
    try:
        top, bottom = (Fraction((part or "1").replace(",", "").replace("−", "-")) for part in match.groups()[:2])
        return top / bottom
    except (ValueError, ZeroDivisionError):
        return None


def _plain(text: str) -> str:
    for pattern, by in LATEX:
        text = pattern.sub(by, text)
    return " ".join(text.split())


def _words(text: str) -> str:
    bare = ARTICLES.sub("", _plain(text).lower())
    return " ".join(re.sub(r"[^\w\s√π°/+-]", " ", bare).split())


def _items(text: str) -> set[str]:
    return {words for part in re.split(r"[,;&]|\band\b", _plain(text)) if (words := _words(part))}


# paths


def points_in(text: str) -> Points:
    """The last list of points in a text."""
    found = [(match.start(), match.end(), (float(match.group(1)), float(match.group(2)))) for match in PAIR.finditer(text)]
    made: Points = []
    end = -1
    for start, stop, point in found:
        if end >= 0 and not re.fullmatch(r"[\s,;]*(?:->|→)?[\s,;]*", text[end:start]):
            made = []
        made.append(point)
        end = stop
    return made


def track(reply: str, answer: str, width: int, height: int) -> tuple[float, float] | None:
    """How near a path lies to the true one: a share of full marks, and the mean distance as a share of the picture's diagonal. Both paths
    are walked at an even pace, and compared where they are at the same time. None where the reply names no path."""
    said, due = points_in(final(reply)) or points_in(reply), points_in(answer)
    if len(said) < 2 or len(due) < 2 or not all(math.isfinite(x) and abs(x) < 1e6 for point in said for x in point):
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
        left, at = total * stop / (STOPS - 1), 0
        while at < len(lengths) - 1 and left > lengths[at]:
            left -= lengths[at]
            at += 1
        part = min(1.0, left / lengths[at]) if lengths[at] else 0.0
        (x, y), (u, v) = path[at], path[at + 1]
        made.append((x + (u - x) * part, y + (v - y) * part))
    return made
