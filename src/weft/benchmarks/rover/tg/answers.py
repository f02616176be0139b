"""Is a final answer right? The paper says exact match, and no more; these are the rules.

Taken is what stands after the last `Final Answer:`; without one, after the last `Answer:`; else the last line that says
something. Then, by what is due:

    a letter                 the one that is named, A to H; two different ones are none; it stands for the option's text
    as well
    left or right            the one that is named; counter-clockwise is left, clockwise right; what is denied is not
    named
    a number                 the one that is named, as a number: 12, 12.0, $12$, it is 12 cm; 1/2 and 0.5; a unit that
    is due must agree
    yes or no                the first word
    several                  the same items, in any order; numbers, and what stands in brackets, in their order
    a word or a formula      the same words, capitals, articles and punctuation aside
    points (embodied)        how far the path lies from the true one, and never a part of accuracy: see `paths.py`
"""

import re
from collections import Counter
from fractions import Fraction

FINAL_ANSWER_MARKER = re.compile(r"final\s+answer\b[\s*_`]*(?:is\b[\s*_`]*[:：]?|[:：])", re.IGNORECASE)
WEAK = re.compile(
    r"(?:^|\n)\W*(?:(?:the|my|so the)\s+)?(?:correct\s+)?answer\b[\s*_`]*(?:is\b[\s*_`]*[:：]?|[:：])", re.IGNORECASE
)
HYPHENS = str.maketrans(dict.fromkeys("‐‑‒–—―−", "-"))
LETTER = re.compile(r"(?<![A-Za-z])\(?([A-H])\)?(?![A-Za-z'’]|-[a-z])")
SMALL = re.compile(
    r"\b(?:option|choice|answer|piece)\s+\(?([a-h])\b|(?<![A-Za-z])\(([a-h])\)(?![A-Za-z])|^\W*([a-h])\W*$",
    re.IGNORECASE,
)
FIRST = re.compile(r"\W*(?:(?:option|choice|answer|piece)\s+)?\(?([A-H])\)?(?=$|[\s.,:;)*-])")
MORE = re.compile(r"\W*(?:or|and|/|&|,)?\s*(?:option\s+)?\(?([A-H])\)?(?![A-Za-z'’]|-[a-z])")
WITH_TEXT = re.compile(r"\(?([A-H])[).:]\)?\s+(\S.*)", re.DOTALL)
DENIED = re.compile(r"\b(?:not|rather than|instead of|isn't|never)\s+(?:to\s+)?(?:the\s+)?[\w-]+", re.IGNORECASE)
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
MORE_UNITS = (
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
KNOWN = {*UNITS.values(), *MORE_UNITS}
OTHER_SIZE = {"hundred", "thousand", "million", "billion", "dozen", "half", "times", "x"}
AGAINST = re.compile(r"\b(?:not|wrong|incorrect|isn't|except|unknown|cannot|can't|or)\b", re.IGNORECASE)
ARTICLES = re.compile(r"\b(?:the|an|a)\s+", re.IGNORECASE)
LATEX = (
    (re.compile(r"\\(?:d|t)?frac\s*\{([^{}]+)\}\s*\{([^{}]+)\}"), r"\1/\2"),
    (re.compile(r"\\sqrt\s*\{([^{}]+)\}|sqrt\s*\(([^()]+)\)"), r"√\1\2"),
    (re.compile(r"\\(?:text|mathrm|boxed|mathbf)\s*\{([^{}]*)\}"), r"\1"),
    (re.compile(r"\^\{\\circ\}|\^\\circ|\\circ|°|(?<=\d)\s*\bdegrees?\b", re.IGNORECASE), "°"),
    (re.compile(r"\\pi\b"), "π"),
    (re.compile(r"\\(?:times|cdot)\b"), "×"),
    (re.compile(r"\\[,;! ()\[\]]|\\left|\\right|\\approx|[$*`]"), " "),
)
ABOUT = re.compile(r"≈|~|\bapprox(?:imately|\.)?|\babout\b", re.IGNORECASE)
POWERS = str.maketrans("²³", "23")


def extract_final_answer(text: str) -> str:
    """What a reply gives as its answer: the rest of the line after its last mark, or the next line."""
    marks = list(FINAL_ANSWER_MARKER.finditer(text)) or list(WEAK.finditer(text))
    if marks:
        after = text[marks[-1].end() :]
    else:
        after = ""
    lines = [line for line in (after if marks else text).splitlines() if line.strip(" \t*_`")]
    if lines:
        return (lines[0] if marks else lines[-1]).strip()
    return ""


def extract_text_after_marker(text: str) -> str:
    """All that follows the last mark; the whole text where there is none."""
    marks = list(FINAL_ANSWER_MARKER.finditer(text)) or list(WEAK.finditer(text))
    if marks:
        return text[marks[-1].end() :].strip()
    return text


def is_correct(kind: str, reply: str, answer: str) -> bool:
    said = extract_final_answer(reply).translate(HYPHENS)
    due = answer.strip().translate(HYPHENS)
    if not said:
        return False
    if kind == "multi-view" and _side(due):
        return _side(said) == _side(due)
    option = WITH_TEXT.fullmatch(due)
    if option and _letter(said) is not None:
        return _letter(said) == option.group(1)
    if option:
        due = option.group(2).strip()
    letter = re.fullmatch(r"\(?([A-Ha-h])\)?\.?", due)
    if letter and (kind == "jigsaw" or due.strip("(). ").isupper()):
        return _letter(said) == letter.group(1).upper()
    if re.fullmatch(r"yes|no|true|false", due, re.IGNORECASE):
        return _words(said).split(" ")[0] == due.lower()
    number = _number(due)
    if number is not None and len(NUMBER.findall(_plain(due))) == 1:
        return _says(said, *number)
    return any(_same(one, due) for one in (said, *ABOUT.split(_plain(said))))


def _same(said: str, due: str) -> bool:
    if _words(said) == _words(due):
        return bool(_words(due))
    mine = _items(said)
    right = _items(due)
    ordered = bool(re.search(r"[\[(<]", due)) or all(NUMBER.fullmatch(item) for item in right)
    return len(right) > 1 and (mine == right if ordered else Counter(mine) == Counter(right))


def _letter(said: str) -> str | None:
    """The one letter that is named; nothing where there is none, or more than one."""
    plain = _plain(said)
    first = FIRST.match(plain)
    if first is not None:
        rest = plain[first.end() :]
        more = MORE.match(rest)
        is_article = first.group(1) == "A" and re.match(
            r"\s+(?!because|since|is\b|as\b|fits|matches|or\b|and\b)[a-z]", rest
        )
        if not is_article:
            if more is not None and more.group(1) != first.group(1):
                return None
            return first.group(1)
        plain = rest
    found = set(LETTER.findall(plain)) or {"".join(groups).upper() for groups in SMALL.findall(plain)}
    if len(found) == 1:
        return found.pop()
    return None


def _side(text: str) -> str:
    plain = DENIED.sub(" ", text)
    left = bool(LEFT.search(plain))
    right = bool(RIGHT.search(plain))
    if left == right:
        return ""
    if left:
        return "left"
    return "right"


def _number(text: str) -> tuple[Fraction, str] | None:
    """A number that stands alone, with its unit at most."""
    plain = _plain(text).strip(" .;:")
    match = NUMBER.match(plain)
    if match is None:
        return None
    rest = plain[match.end() :].strip(" .")
    if rest:
        unit = UNIT.fullmatch(rest)
    else:
        unit = None
    value = _value(match.group())
    if value is None or (rest and unit is None):
        return None
    return (value, _unit(rest))


def _says(said: str, due: Fraction, unit: str) -> bool:
    """Whether a reply names this number, and no other; what stands in brackets after it is a remark."""
    plain = _plain(said)
    plain = re.sub(r"(?<=\S)\s+\([^()]*\)", "", plain) or plain
    if plain.count("=") == 1:
        plain = plain.partition("=")[2]
    found = list(NUMBER.finditer(plain))
    if len({_value(one.group()) for one in found}) != 1 or "=" in plain or AGAINST.search(plain):
        return False
    rest = plain[found[0].end() :]
    before = plain[: found[0].start()].strip()
    after = UNIT.match(rest)
    if after:
        named = _unit(after.group(1))
    else:
        named = ""
    tight = after is not None and not after.group().startswith((" ", "\t"))
    left = rest[after.end() if after else 0 :]
    if (
        named in OTHER_SIZE
        or (tight and named not in KNOWN)
        or re.match(r"\s*[-+*/^²³]", left)
        or re.search("[√π<>^×±]", before + left)
    ):
        return False
    if before[-1:] in ("-", "+", "*", "/") or (named == "%" and unit != "%"):
        return False
    wrong_unit = bool(unit) and named in KNOWN and bool(named) and named != unit
    return _value(found[0].group()) == due and not wrong_unit


def _value(text: str) -> Fraction | None:
    top, _, bottom = text.replace(",", "").replace(" ", "").partition("/")
    try:
        return Fraction(top) / Fraction(bottom or "1")
    except (ValueError, ZeroDivisionError):
        return None


def _unit(text: str) -> str:
    plain = text.strip(" .").lower().translate(POWERS).replace("^", "")
    return UNITS.get(plain, plain)


def _plain(text: str) -> str:
    for pattern, by in LATEX:
        text = pattern.sub(by, text)
    text = " ".join(text.split())
    if re.fullmatch(r"\[[^\[\],]*\]", text):
        return text[1:-1].strip()
    return text


def _words(text: str) -> str:
    bare = ARTICLES.sub("", _plain(text).lower())
    return " ".join(re.sub(r"[^\w\s√π°/+<>≤≥=-]", " ", bare).split())


def _items(text: str) -> list[str]:
    return [words for part in re.split(r"[,;&]|\band\b", _plain(text)) if (words := _words(part))]
