"""Spelled-out names of columns and metrics: on hover, and in a legend below each table.

`Presentation.glossary` has them, as in `{"KP": "Key Point: whether the image meets the listed requirements"}`."""

from collections.abc import Iterable, Mapping

from weft.report.html import Html, join, tag

Glossary = Mapping[str, str]


def find_term(name: str, glossary: Glossary) -> str:
    """Return the glossary's term for a column: the name itself, or its end or beginning, as `RP` in `Science RP` and
    `Cor` in `Cor mean`. An empty text if it has none."""
    if name in glossary:
        return name
    words = name.split(" ")
    for index in range(1, len(words)):
        ending = " ".join(words[index:])
        if ending in glossary:
            return ending
    for index in range(len(words) - 1, 0, -1):
        beginning = " ".join(words[:index])
        if beginning in glossary:
            return beginning
    return ""


def explain_name(name: str, glossary: Glossary) -> Html:
    """Return a name that shows its meaning on hover, if the glossary has it."""
    term = find_term(name, glossary)
    if not term:
        return join(name)
    return tag("abbr", name, title=glossary[term])


def find_terms(names: Iterable[str], glossary: Glossary) -> dict[str, str]:
    """Return the meanings of the names that the glossary has, by its terms, each once."""
    terms = dict.fromkeys(find_term(name, glossary) for name in names)
    return {term: glossary[term] for term in terms if term}


def build_legend(names: Iterable[str], glossary: Glossary) -> Html | None:
    """Return the meanings of the names that the glossary has; None if it has none of them."""
    terms = find_terms(names, glossary)
    if not terms:
        return None
    items = [tag("div", tag("dt", term), " ", tag("dd", meaning)) for term, meaning in terms.items()]
    return tag("dl", items, class_="legend soft small")
