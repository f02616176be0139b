"""Parts of messages as markup: texts, images in rows, thoughts folded; and the expected output of a turn."""

from collections.abc import Sequence
from typing import Any, cast

from weft.benchmarks.presentation import Presentation
from weft.report.gallery import Gallery
from weft.report.html import Html, inline_text, tag, text_block
from weft.types import Image, Part, Thought

TINY = 128  # pixels: images up to this side are enlarged without blur


class PartsWriter:
    """Builds the markup of parts. `gallery` gives images their addresses."""

    def __init__(self, gallery: Gallery) -> None:
        self._gallery = gallery

    def parts(self, parts: Sequence[Part]) -> list[Html]:
        """Return texts and images in their order. Consecutive images share a row."""
        pieces: list[Html] = []
        row: list[Html] = []
        for part in parts:
            if isinstance(part, Image):
                row.append(self.image(part))
                continue
            if row:
                pieces.append(tag("div", row, class_="images"))
                row = []
            if isinstance(part, Thought):
                if part.text:
                    thought = text_block(part.text.strip(), "words small")
                    pieces.append(tag("details", tag("summary", "thoughts"), thought, class_="thought"))
            elif part.text.strip():
                pieces.append(text_block(part.text.strip()))
        if row:
            pieces.append(tag("div", row, class_="images"))
        return pieces

    def image(self, image: Image) -> Html:
        """Return an image with a link to its file; a warning if it is missing from the store."""
        href = self._gallery.href(image)
        if href is None:
            return tag("p", f"image {image.digest[:12]} is not in the store", class_="warning")
        size = f"{image.width} x {image.height}"
        is_inline = href.startswith("#")
        element = tag(
            "img",
            src=None if is_inline else href,
            data_image=href[1:] if is_inline else None,
            alt=f"image {image.digest[:8]}, {size}",
            title=size,
            class_="shown tiny" if max(image.width, image.height) <= TINY else "shown",
            loading="lazy",
            decoding="async",
            width=image.width,
            height=image.height,
        )
        if not is_inline:
            element = tag("a", element, href=href, target="_blank", rel="noopener")
        caption = None
        if image.label is not None:
            caption = tag("figcaption", f"Image #{image.label}")
        return tag("figure", element, caption)


def render_expected(presentation: Presentation, gold: Any) -> Html:
    """Return a turn's gold data, decoded from JSON: as the benchmark describes them, or all of them, folded."""
    lines = presentation.describe_gold(gold)
    if not lines:
        return tag("details", tag("summary", "expected output"), _render_nested(gold), class_="expected small")
    items = tag("ol", [tag("li", inline_text(line)) for line in lines])
    return tag("div", tag("span", "expected output", class_="soft small"), items, class_="expected small")


def _render_nested(value: Any) -> Html:
    """Return gold data of any form as nested lists. Empty values are left out."""
    if isinstance(value, dict):
        items: list[Html] = []
        for key, child in cast(dict[str, Any], value).items():
            is_empty = child is None or child is False or child in ("", [])
            if key != "type" and not is_empty:
                items.append(tag("li", tag("b", inline_text(str(key))), " ", _render_nested(child)))
        return tag("ul", items)
    if isinstance(value, list):
        return tag("ol", [tag("li", _render_nested(child)) for child in cast(list[Any], value)])
    return tag("span", str(value), class_="words", dir="auto")
