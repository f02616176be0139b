"""Thinking that a model writes into its text between tags: `<think>` or `<thinking>`."""

import re

TAG = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)


def split_thinking(text: str) -> tuple[str, str]:
    """Return what stands between the tags, and the rest.

    A tag that is never closed (cut off by an image or by the end) reaches to the end. A closing tag that was never
    opened, because the model's own chat template opened it, begins at the beginning. The text is read in one pass, also
    when it contains thousands of tags.
    """
    inside: list[str] = []
    outside: list[str] = []
    position = 0
    is_open = False
    seen_tag = False
    for tag in TAG.finditer(text):
        piece = text[position : tag.start()]
        position = tag.end()
        is_closing = bool(tag.group(1))
        if is_open or (is_closing and not seen_tag):
            inside.append(piece)
        else:
            outside.append(piece)
        is_open = not is_closing
        seen_tag = True
    if is_open:
        inside.append(text[position:])
    else:
        outside.append(text[position:])
    return _join(inside), _join(outside)


def _join(pieces: list[str]) -> str:
    return "\n".join(piece.strip() for piece in pieces if piece.strip())
