"""Matches of a search, with the text around them."""

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from weft.report.html import Html, tag

MAX_EXCERPTS = 3  # of one prompt, reply, verdict or record
CONTEXT = 80  # characters on each side of a match


class Excerpt(Struct, frozen=True):
    """A match of a search, with the text around it."""

    before: str
    hit: str
    after: str


def excerpts_of(texts: Iterable[str], wanted: str) -> tuple[list[Excerpt], int]:
    """Return the first matches in some texts, whatever their case, and how many more there are."""
    pattern = re.compile(re.escape(wanted), re.IGNORECASE)
    excerpts: list[Excerpt] = []
    count = 0
    for text in texts:
        for match in pattern.finditer(text):
            count += 1
            if count <= MAX_EXCERPTS:
                excerpts.append(_build_excerpt(text, match))
    return excerpts, count - len(excerpts)


def _build_excerpt(content: str, match: re.Match[str]) -> Excerpt:
    start = max(0, match.start() - CONTEXT)
    end = min(len(content), match.end() + CONTEXT)
    before = content[start : match.start()]
    after = content[match.end() : end]
    if start > 0:
        before = "…" + before
    if end < len(content):
        after += "…"
    return Excerpt(before, match.group(), after)


def render_excerpts(excerpts: Sequence[Excerpt], more: int) -> list[Html]:
    """Return the matches, marked, and how many more there are."""
    pieces: list[Html] = []
    for excerpt in excerpts:
        quotation = tag("bdi", excerpt.before, tag("mark", excerpt.hit), excerpt.after)
        pieces.append(tag("p", quotation, class_="words small"))
    if more:
        pieces.append(tag("p", f"and {more} more here", class_="soft small"))
    return pieces
