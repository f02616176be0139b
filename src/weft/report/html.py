"""HTML from Python, with one rule: a `str` is text and is escaped, only `Html` is markup.

Everything from models, datasets and judges arrives as `str`, so none of it can become markup, whoever builds the page.
A page allows nothing from outside: its own script and style by their digests, images from its own folder."""

import base64
import functools
import hashlib
import html
import importlib.resources
import re
from collections.abc import Iterable
from typing import Any, cast


class Html(str):
    """Markup. Only this module creates it from text."""

    __slots__ = ()


MAX_WORD = 16  # characters of a word that fits on a line anywhere
WORD_BREAKS = re.compile(r"(?<=[/=,:+_])(?=[^\s/=,:+_])")
VOID_ELEMENTS = {"meta", "img", "input", "br", "link", "source", "wbr"}


def tag(element: str, /, *children: Any, **attributes: Any) -> Html:
    """Return an element: `tag("a", "text", href="x")`.

    An attribute that is a Python keyword ends in `_`. None and False leave an attribute out; True gives it no value."""
    parts: list[str] = [element]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        attribute = key.rstrip("_").replace("_", "-")
        if value is not True:
            attribute += f'="{html.escape(str(value))}"'
        parts.append(attribute)
    opening = f"<{' '.join(parts)}>"
    if element in VOID_ELEMENTS:
        return Html(opening)
    return Html(f"{opening}{_render_children(children)}</{element}>")


def join(*children: Any) -> Html:
    """Return texts, markup and nested sequences of them as one piece of markup. None is left out."""
    return Html(_render_children(children))


def _render_children(children: Iterable[Any]) -> str:
    pieces: list[str] = []
    for child in children:
        if child is None:
            continue
        if isinstance(child, Html):
            pieces.append(child)
        elif isinstance(child, str):
            pieces.append(html.escape(child, quote=False))
        elif isinstance(child, Iterable):
            pieces.append(_render_children(cast(Iterable[Any], child)))
        else:
            pieces.append(html.escape(str(child), quote=False))
    return "".join(pieces)


def text_block(text: str, class_: str = "words") -> Html:
    """Return a block of untrusted text. Line breaks stay; its writing direction does not affect the page."""
    return tag("div", text, class_=class_, dir="auto")


def inline_text(text: str) -> Html:
    """Return a short untrusted text for use inside a sentence. Long words may break after their punctuation."""
    children: list[str] = []
    for word in re.split(r"(\s+)", text):
        if len(word) <= MAX_WORD:
            children.append(word)
            continue
        first, *rest = WORD_BREAKS.split(word)
        children.append(first)
        for piece in rest:
            children += [tag("wbr"), piece]
    return tag("bdi", children)


@functools.cache
def read_asset(name: str) -> str:
    """Return the text of a file in `assets/`."""
    return importlib.resources.files("weft.report").joinpath("assets", name).read_text(encoding="utf-8")


def content_security_policy(*scripts: str, forms: bool = False, style: str = "style.css") -> str:
    """Return the policy of a page with these scripts and styles of ours; several styles are separated by spaces."""
    script_digests = " ".join(_source_digest(read_asset(script)) for script in scripts)
    style_digests = " ".join(_source_digest(read_asset(name)) for name in style.split())
    rules = {
        "default-src": "'none'",
        "script-src": script_digests or "'none'",
        "style-src": style_digests,
        "img-src": "'self' file: data:",
        "frame-src": "'self' file:",
        "connect-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'self'" if forms else "'none'",
    }
    return "; ".join(f"{rule} {value}" for rule, value in rules.items())


def build_page(
    title: str,
    *body: Any,
    script: str | None = None,
    kind: str = "",
    forms: bool = False,
    live: bool = False,
    style: str = "style.css",
    referrer: str = "no-referrer",
) -> str:
    """Return a whole page.

    `live`: the page is served, and its script asks for news from time to time. `referrer`: what a page with forms tells
    its own server about where it comes from; nobody else is told anything."""
    if script:
        policy = content_security_policy(script, forms=forms, style=style)
        script_element = tag("script", Html(read_asset(script)))
    else:
        policy = content_security_policy(forms=forms, style=style)
        script_element = None
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content=referrer),
        tag("meta", name="color-scheme", content="light dark"),
        tag("link", rel="icon", href="data:,"),
        tag("title", title),
        [tag("style", Html(read_asset(name))) for name in style.split()],
    )
    page_body = tag("body", *body, script_element, class_=kind or None, data_live=live)
    document = tag("html", head, page_body, lang="en")
    return f"<!doctype html>\n{document}\n"


def data_island(id_: str, json: str) -> Html:
    """Return inert data for the page's script. No text inside can end the element."""
    escaped = json.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return tag("script", Html(escaped), id=id_, type="application/json")


def _source_digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
