"""HTML from Python, with one rule: a `str` is text and is escaped, only `Html` is markup. Everything from models,
datasets and judges comes in as `str`, so nothing of theirs can become markup, whoever builds the page.

A page allows nothing from anywhere but itself: its own script and style by their digests, pictures from beside it.
"""

import base64
import functools
import hashlib
import html
import importlib.resources
import re
from collections.abc import Iterable
from typing import Any, cast


class Html(str):
    """Markup. Made by `tag` and `page` alone."""

    __slots__ = ()


LONG = 16  # characters of a word that fits on a line anywhere
JOINTS = re.compile(r"(?<=[/=,:+_])(?=[^\s/=,:+_])")
VOID = {"meta", "img", "input", "br", "link", "source", "wbr"}


def tag(element: str, /, *children: Any, **attributes: Any) -> Html:
    """`tag("a", "text", href="x")`. Attributes end in _ where Python has the word; None and False leave one out, True
    has no value."""
    made: list[str] = [element]
    for key, value in attributes.items():
        if value is not None and value is not False:
            plain = key.rstrip("_").replace("_", "-")
            made.append(plain if value is True else f'{plain}="{html.escape(str(value))}"')
    if element in VOID:
        return Html(f"<{' '.join(made)}>")
    return Html(f"<{' '.join(made)}>{_inside(children)}</{element}>")


def join(*children: Any) -> Html:
    return Html(_inside(children))


def _inside(children: Iterable[Any]) -> str:
    made: list[str] = []
    for child in children:
        if child is None:
            continue
        if isinstance(child, Html):
            made.append(child)
        elif isinstance(child, str):
            made.append(html.escape(child, quote=False))
        elif isinstance(child, Iterable):
            made.append(_inside(cast(Iterable[Any], child)))
        else:
            made.append(html.escape(str(child), quote=False))
    return "".join(made)


def text_block(text: str, class_: str = "words") -> Html:
    """Text of a model, a dataset or a judge: line breaks kept, its direction its own and shut in."""
    return tag("div", text, class_=class_, dir="auto")


def inline_text(text: str) -> Html:
    """A short text of theirs inside ours. A long word of it may break at its joints."""
    words = re.split(r"(\s+)", text)
    return tag("bdi", [_jointed(word) if len(word) > LONG else word for word in words])


def _jointed(word: str) -> list[str]:
    first, *rest = JOINTS.split(word)
    return [first, *(piece for one in rest for piece in (tag("wbr"), one))]


@functools.cache
def read_asset(file: str) -> str:
    return importlib.resources.files("weft.report").joinpath("assets", file).read_text(encoding="utf-8")


def content_security_policy(*scripts: str, forms: bool = False, style: str = "style.css") -> str:
    """The content security policy of a page with these scripts and this style of ours (several: with spaces between
    them)."""
    allowed = " ".join(_digest(read_asset(script)) for script in scripts) or "'none'"
    rules = {
        "default-src": "'none'",
        "script-src": allowed,
        "style-src": " ".join(_digest(read_asset(one)) for one in style.split()),
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
    """A whole page. A `live` one is served, and its script looks again from time to time. One whose forms are sent
    tells its own server where from (`referrer`), and nobody else."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag(
            "meta",
            http_equiv="Content-Security-Policy",
            content=content_security_policy(*([script] if script else []), forms=forms, style=style),
        ),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content=referrer),
        tag("meta", name="color-scheme", content="light dark"),
        tag("link", rel="icon", href="data:,"),
        tag("title", title),
        [tag("style", Html(read_asset(one))) for one in style.split()],
    )
    if script:
        code = tag("script", Html(read_asset(script)))
    else:
        code = None
    whole = tag("html", head, tag("body", *body, code, class_=kind or None, data_live=live), lang="en")
    return f"<!doctype html>\n{whole}\n"


def data_island(id_: str, json: str) -> Html:
    """Data for the script, inert: `<` cannot end it."""
    return tag(
        "script",
        Html(json.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")),
        id=id_,
        type="application/json",
    )


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
