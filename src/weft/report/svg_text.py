"""Text in a drawing: measured, wrapped into lines, and escaped. A drawing has no layout of its own, so lines are broken
here, by the widths of Helvetica, which Arial and Liberation Sans share."""

import re
import unicodedata
from collections.abc import Sequence
from html import escape, unescape

from weft.untrusted import escape_control_characters

FONT = "Helvetica, Arial, 'Liberation Sans', sans-serif"
FIRST = 32  # the character of the first width
WIDTHS = (  # of ASCII, in thousandths of an em
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556, 556, 556,
    556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833,
    722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556,
    556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334,
    260, 334, 584,
)  # fmt: skip
OTHER_WIDTH = 0.62  # em of a letter that is not ASCII
BOLD = 1.07  # times as wide
RESERVE = 1.02  # another font may be a little wider
ELLIPSIS = "…"
BREAKS = re.compile(r"(?<=[/:=,_\-])")  # where a long word is broken
CHART_TEXT = re.compile(r'<text((?=[^>]*font-size="([\d.]+)px")[^>]*)>(.*?)</text>', re.DOTALL)
CHART_LINE = re.compile(r"<tspan([^>]*[^>/])?>([^<]+)</tspan>")
ANY_FONT = 'font-family="sans-serif"'
NOT_IN_XML = re.compile("[\ufffe\uffff]")


def measure_text(text: str, size: float, *, bold: bool = False) -> float:
    """Return about how wide a text of one line is, in the unit of `size`."""
    ems = sum(map(_character_width, text))
    return RESERVE * size * ems * (BOLD if bold else 1.0)


def _character_width(char: str) -> float:
    index = ord(char) - FIRST
    if 0 <= index < len(WIDTHS):
        return WIDTHS[index] / 1000
    if unicodedata.east_asian_width(char) in "WF":
        return 1.0
    if unicodedata.combining(char):
        return 0.0
    return OTHER_WIDTH


def wrap_text(text: str, width: float, size: float, max_lines: int, *, bold: bool = False) -> list[str]:
    """Return a text in lines of at most `width`. A word that is wider is broken. Lines beyond `max_lines` are left out,
    and the last one then ends in an ellipsis."""
    lines: list[str] = []
    for paragraph in text.splitlines():
        readable = escape_control_characters(" ".join(paragraph.split()))
        if readable:
            lines += _wrap_paragraph(readable, width, size, max_lines + 1 - len(lines), bold)
        if len(lines) > max_lines:
            return [*lines[: max_lines - 1], _cut(lines[max_lines - 1], width, size, bold)]
    return lines


def _wrap_paragraph(text: str, width: float, size: float, max_lines: int, bold: bool) -> list[str]:
    """Return the first lines of a paragraph, at most `max_lines`."""
    lines: list[str] = []
    line = ""
    for word in text.split(" "):
        extended = f"{line} {word}" if line else word
        if measure_text(extended, size, bold=bold) <= width:
            line = extended
            continue
        if line:
            lines.append(line)
        *full, line = _break_word(word, width, size, bold)
        lines += full
        if len(lines) >= max_lines:
            return lines[:max_lines]
    return [*lines, line][:max_lines]


def _break_word(word: str, width: float, size: float, bold: bool) -> list[str]:
    """Return a word in pieces that fit, broken after punctuation where there is some."""
    pieces = [""]
    for part in BREAKS.split(word):
        if pieces[-1] and measure_text(pieces[-1] + part, size, bold=bold) > width:
            pieces.append("")
        used = measure_text(pieces[-1], size, bold=bold)
        for char in part:
            char_width = measure_text(char, size, bold=bold)
            if pieces[-1] and used + char_width > width:
                pieces.append("")
                used = 0.0
            pieces[-1] += char
            used += char_width
    return pieces


def _cut(line: str, width: float, size: float, bold: bool) -> str:
    """Return a line that ends in an ellipsis and still fits."""
    while line and measure_text(line + ELLIPSIS, size, bold=bold) > width:
        line = line[:-1]
    return line.rstrip() + ELLIPSIS


def render_lines(
    lines: Sequence[str], x: float, y: float, size: float, line_height: float, *, color: str, bold: bool = False
) -> str:
    """Return lines as SVG, the top of the first at `y`. No text becomes markup."""
    weight = ' font-weight="bold"' if bold else ""
    elements: list[str] = []
    for number, line in enumerate(lines):
        baseline = y + number * line_height + 0.8 * size
        place = f'x="{x:.2f}" y="{baseline:.2f}"'
        fit = _fit_width(line, size, bold)
        elements.append(f'<text {place} font-size="{size:g}" fill="{color}"{weight}{fit}>{escape_xml(line)}</text>')
    return "".join(elements)


def _fit_width(line: str, size: float, bold: bool) -> str:
    """Return the attributes that give a line the measured width in any font: a viewer without Helvetica has a wider
    one. Only where all widths are known."""
    if not line.isascii():
        return ""
    return f' textLength="{measure_text(line, size, bold=bold) / RESERVE:.2f}" lengthAdjust="spacingAndGlyphs"'


def fit_texts(svg: str) -> str:
    """Return a chart's SVG with the measured width on each of its texts, which has the same reason: a chart leaves just
    enough room for its names, and the browser's font may be wider than the one that measured them."""
    return CHART_TEXT.sub(_fit_chart_text, svg.replace(ANY_FONT, f'font-family="{FONT}"'))


def _fit_chart_text(match: re.Match[str]) -> str:
    attributes, size, content = match.groups()
    is_bold = 'font-weight="bold"' in attributes

    def fit(text: str) -> str:
        return _fit_width(unescape(text), float(size), is_bold)

    if "<" not in content:
        return f"<text{attributes}{fit(content)}>{content}</text>"
    lines = CHART_LINE.sub(lambda line: f"<tspan{line[1] or ''}{fit(line[2])}>{line[2]}</tspan>", content)
    return f"<text{attributes}>{lines}</text>"


def escape_xml(text: str) -> str:
    """Return a text for an element or an attribute of XML."""
    return escape(NOT_IN_XML.sub("\ufffd", escape_control_characters(text)), quote=True)
