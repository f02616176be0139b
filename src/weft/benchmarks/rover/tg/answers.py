"""Whether a final answer is correct. The paper says exact match, and no more; these are the rules.

The answer is what follows the last `Final Answer:`; without one, the last `Answer:`; else the last line with text. By
the expected answer:

    a letter                 the one that is named, A to H; two different ones are none; it stands for the option's text
    left or right            the one that is named and not negated; counter-clockwise is left, clockwise right
    a number                 the one that is named, as a number: 12, 12.0, $12$, it is 12 cm; 1/2 and 0.5; an expected
                             unit must agree
    yes or no                the first word
    several                  the same items, in any order; numbers, and lists in brackets, in their order
    a word or a formula      the same words, ignoring capitals, articles and punctuation
    points (embodied)        the distance from the reference path, which is no part of accuracy: see `paths.py`
"""

import re
from collections import Counter
from fractions import Fraction

FINAL_ANSWER_MARKER = re.compile(r"final\s+answer\b[\s*_`]*(?:is\b[\s*_`]*[:：]?|[:：])", re.IGNORECASE)
ANSWER_MARKER = re.compile(
    r"(?:^|\n)\W*(?:(?:the|my|so the)\s+)?(?:correct\s+)?answer\b[\s*_`]*(?:is\b[\s*_`]*[:：]?|[:：])", re.IGNORECASE
)
HYPHENS = str.maketrans(dict.fromkeys("‐‑‒–—―−", "-"))
LETTER = re.compile(r"(?<![A-Za-z])\(?([A-H])\)?(?![A-Za-z'’]|-[a-z])")
SMALL_LETTER = re.compile(
    r"\b(?:option|choice|answer|piece)\s+\(?([a-h])\b|(?<![A-Za-z])\(([a-h])\)(?![A-Za-z])|^\W*([a-h])\W*$",
    re.IGNORECASE,
)
FIRST_LETTER = re.compile(r"\W*(?:(?:option|choice|answer|piece)\s+)?\(?([A-H])\)?(?=$|[\s.,:;)*-])")
NEXT_LETTER = re.compile(r"\W*(?:or|and|/|&|,)?\s*(?:option\s+)?\(?([A-H])\)?(?![A-Za-z'’]|-[a-z])")
OPTION_WITH_TEXT = re.compile(r"\(?([A-H])[).:]\)?\s+(\S.*)", re.DOTALL)
NEGATION = re.compile(r"\b(?:not|rather than|instead of|isn't|never)\s+(?:to\s+)?(?:the\s+)?[\w-]+", re.IGNORECASE)
LEFT = re.compile(r"\bleft(?:wards?)?\b|\b(?:counter|anti)[\s-]*clockwise\b|\bccw\b", re.IGNORECASE)
RIGHT = re.compile(
    r"\bright(?:wards?)?\b|(?<!counter)(?<!anti)(?<!counter[\s-])(?<!anti[\s-])\bclockwise\b|\bcw\b", re.IGNORECASE
)
NUMBER = re.compile(r"(?<![\w.^])-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:\s*/\s*\d+(?:\.\d+)?)?|(?<![\w.^])-?\.\d+")
UNIT = re.compile(r"\s*([a-zA-Z°%µΩ$€£][a-zA-Z°]*(?:/[a-zA-Z]+)?(?:\^?-?[23²³])?)")
UNITS = {
    **dict.fromkeys(("centimeter", "centimeters", "centimetre", "centimetres"), "cm"),
    **dict.fromkeys(("millimeter", "millimeters", "millimetre", "millimetres"), "mm"),
    **dict.fromkeys(("meter", "meters", "metre", "metres"), "m"),
    **dict.fromkeys(("kilometer", "kilometers", "kilometre", "kilometres"), "km"),
    **dict.fromkeys(("second", "seconds", "sec", "secs"), "s"),
    **dict.fromkeys(("minute", "minutes", "mins"), "min"),
    **dict.fromkeys(("hour", "hours", "hr", "hrs"), "h"),
    **dict.fromkeys(("degree", "degrees", "deg"), "°"),
    **dict.fromkeys(("gram", "grams"), "g"),
    **dict.fromkeys(("kilogram", "kilograms", "kgs"), "kg"),
    **dict.fromkeys(("newton", "newtons"), "n"),
    **dict.fromkeys(("joule", "joules"), "j"),
    **dict.fromkeys(("liter", "liters", "litre", "litres"), "l"),
    **dict.fromkeys(("percent", "per cent"), "%"),
    **dict.fromkeys(("unit", "units"), ""),
}
OTHER_UNITS = (
    "cm2",
    "m2",
    "mm2",
    "km2",
    "cm3",
    "m3",
    "m/s",
    "m/s2",
    "km/h",
    "ml",
    "w",
    "v",
    "a",
    "hz",
    "pa",
    "c",
    "k",
    "°c",
    "$",
    "€",
)
KNOWN_UNITS = {*UNITS.values(), *OTHER_UNITS}
MULTIPLIERS = {"hundred", "thousand", "million", "billion", "dozen", "half", "times", "x"}
CONTRADICTION = re.compile(r"\b(?:not|wrong|incorrect|isn't|except|unknown|cannot|can't|or)\b", re.IGNORECASE)
ARTICLES = re.compile(r"\b(?:the|an|a)\s+", re.IGNORECASE)
LATEX_REPLACEMENTS = (
    (re.compile(r"\\(?:d|t)?frac\s*\{([^{}]+)\}\s*\{([^{}]+)\}"), r"\1/\2"),
    (re.compile(r"\\sqrt\s*\{([^{}]+)\}|sqrt\s*\(([^()]+)\)"), r"√\1\2"),
    (re.compile(r"\\(?:text|mathrm|boxed|mathbf)\s*\{([^{}]*)\}"), r"\1"),
    (re.compile(r"\^\{\\circ\}|\^\\circ|\\circ|°|(?<=\d)\s*\bdegrees?\b", re.IGNORECASE), "°"),
    (re.compile(r"\\pi\b"), "π"),
    (re.compile(r"\\(?:times|cdot)\b"), "×"),
    (re.compile(r"\\[,;! ()\[\]]|\\left|\\right|\\approx|[$*`]"), " "),
)
APPROXIMATELY = re.compile(r"≈|~|\bapprox(?:imately|\.)?|\babout\b", re.IGNORECASE)
SUPERSCRIPTS = str.maketrans("²³", "23")
ARTICLE_CONTEXT = re.compile(r"\s+(?!because|since|is\b|as\b|fits|matches|or\b|and\b)[a-z]")  # after an `A`


def extract_final_answer(text: str) -> str:
    """Return what a reply gives as its answer: the rest of the line after its last marker, or the next line; without a
    marker, the last line."""
    end = _find_marker_end(text)
    answer = text
    if end is not None:
        answer = text[end:]
    lines = [line for line in answer.splitlines() if line.strip(" \t*_`")]
    if not lines:
        return ""
    if end is not None:
        return lines[0].strip()
    return lines[-1].strip()


def extract_text_after_marker(text: str) -> str:
    """Return all that follows the last marker; the whole text where there is none."""
    end = _find_marker_end(text)
    if end is None:
        return text
    return text[end:].strip()


def _find_marker_end(text: str) -> int | None:
    """Return where the last `Final Answer:` ends; without one, where the last `Answer:` does."""
    matches = list(FINAL_ANSWER_MARKER.finditer(text)) or list(ANSWER_MARKER.finditer(text))
    if not matches:
        return None
    return matches[-1].end()


def is_correct(kind: str, reply: str, answer: str) -> bool:
    """Whether a reply to a question of this type gives the correct answer."""
    actual = extract_final_answer(reply).translate(HYPHENS)
    expected = answer.strip().translate(HYPHENS)
    if not actual:
        return False
    if kind == "multi-view" and _find_side(expected):
        return _find_side(actual) == _find_side(expected)
    option = OPTION_WITH_TEXT.fullmatch(expected)
    if option:
        letter = _find_letter(actual)
        if letter is not None:
            return letter == option.group(1)
        expected = option.group(2).strip()
    letter_match = re.fullmatch(r"\(?([A-Ha-h])\)?\.?", expected)
    if letter_match and (kind == "jigsaw" or expected.strip("(). ").isupper()):
        return _find_letter(actual) == letter_match.group(1).upper()
    if re.fullmatch(r"yes|no|true|false", expected, re.IGNORECASE):
        return _normalize_words(actual).split(" ")[0] == expected.lower()
    number = _parse_number(expected)
    if number is not None and len(NUMBER.findall(_strip_markup(expected))) == 1:
        return _names_number(actual, *number)
    candidates = (actual, *APPROXIMATELY.split(_strip_markup(actual)))
    return any(_is_same_text(candidate, expected) for candidate in candidates)


def _is_same_text(actual: str, expected: str) -> bool:
    expected_words = _normalize_words(expected)
    if _normalize_words(actual) == expected_words:
        return bool(expected_words)
    actual_items = _split_items(actual)
    expected_items = _split_items(expected)
    if len(expected_items) < 2:
        return False
    is_ordered = bool(re.search(r"[\[(<]", expected)) or all(NUMBER.fullmatch(item) for item in expected_items)
    if is_ordered:
        return actual_items == expected_items
    return Counter(actual_items) == Counter(expected_items)


def _find_letter(text: str) -> str | None:
    """Return the one letter that is named; None where there is none, or more than one."""
    text = _strip_markup(text)
    first = FIRST_LETTER.match(text)
    if first is not None:
        rest = text[first.end() :]
        is_article = first.group(1) == "A" and ARTICLE_CONTEXT.match(rest)
        if not is_article:
            another = NEXT_LETTER.match(rest)
            if another is not None and another.group(1) != first.group(1):
                return None
            return first.group(1)
        text = rest
    letters: set[str] = set(LETTER.findall(text))
    if not letters:
        letters = {"".join(groups).upper() for groups in SMALL_LETTER.findall(text)}
    if len(letters) == 1:
        return letters.pop()
    return None


def _find_side(text: str) -> str:
    """Return `left` or `right`; empty if neither or both are named."""
    text = NEGATION.sub(" ", text)
    has_left = bool(LEFT.search(text))
    has_right = bool(RIGHT.search(text))
    if has_left == has_right:
        return ""
    if has_left:
        return "left"
    return "right"


def _parse_number(text: str) -> tuple[Fraction, str] | None:
    """Return a number that is alone, with its unit at most."""
    text = _strip_markup(text).strip(" .;:")
    match = NUMBER.match(text)
    if match is None:
        return None
    value = _parse_value(match.group())
    rest = text[match.end() :].strip(" .")
    if value is None or (rest and UNIT.fullmatch(rest) is None):
        return None
    return (value, _normalize_unit(rest))


def _names_number(text: str, expected: Fraction, unit: str) -> bool:
    """Whether a reply names this number, and no other. What is in brackets after it is a remark."""
    text = _strip_markup(text)
    text = re.sub(r"(?<=\S)\s+\([^()]*\)", "", text) or text
    if text.count("=") == 1:
        text = text.partition("=")[2]
    matches = list(NUMBER.finditer(text))
    values = {_parse_value(match.group()) for match in matches}
    if values != {expected} or "=" in text or CONTRADICTION.search(text):
        return False
    before = text[: matches[0].start()].strip()
    rest = text[matches[0].end() :]
    named_unit = ""
    is_attached = False
    unit_match = UNIT.match(rest)
    if unit_match:
        named_unit = _normalize_unit(unit_match.group(1))
        is_attached = not unit_match.group().startswith((" ", "\t"))
        rest = rest[unit_match.end() :]
    if named_unit in MULTIPLIERS or (is_attached and named_unit not in KNOWN_UNITS):
        return False
    if re.match(r"\s*[-+*/^²³]", rest) or re.search("[√π<>^×±]", before + rest):
        return False
    if before[-1:] in ("-", "+", "*", "/") or (named_unit == "%" and unit != "%"):
        return False
    has_wrong_unit = bool(unit) and bool(named_unit) and named_unit in KNOWN_UNITS and named_unit != unit
    return not has_wrong_unit


def _parse_value(text: str) -> Fraction | None:
    numerator, _, denominator = text.replace(",", "").replace(" ", "").partition("/")
    try:
        return Fraction(numerator) / Fraction(denominator or "1")
    except (ValueError, ZeroDivisionError):
        return None


def _normalize_unit(text: str) -> str:
    unit = text.strip(" .").lower().translate(SUPERSCRIPTS).replace("^", "")
    return UNITS.get(unit, unit)


def _strip_markup(text: str) -> str:
    """Replace LaTeX by plain characters, and remove brackets around a single item."""
    for pattern, replacement in LATEX_REPLACEMENTS:
        text = pattern.sub(replacement, text)
    text = " ".join(text.split())
    if re.fullmatch(r"\[[^\[\],]*\]", text):
        return text[1:-1].strip()
    return text


def _normalize_words(text: str) -> str:
    """Return lower-case words without articles and punctuation."""
    words = ARTICLES.sub("", _strip_markup(text).lower())
    return " ".join(re.sub(r"[^\w\s√π°/+<>≤≥=-]", " ", words).split())


def _split_items(text: str) -> list[str]:
    parts = re.split(r"[,;&]|\band\b", _strip_markup(text))
    return list(filter(None, map(_normalize_words, parts)))
