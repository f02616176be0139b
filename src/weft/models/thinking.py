"""Thinking that a model writes into its text between tags: `<think>`, `<thinking>`. One pass, whatever the text: a
model that goes round in circles writes thousands of them."""

import re

TAG = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)


def split_thinking(text: str) -> tuple[str, str]:
    """What stands between tags, and the rest. A tag that is never closed, cut off by a picture or by the end, reaches
    to the end; one that closes what was never opened, because the model's own template opened it, begins at the
    beginning."""
    inside: list[str] = []
    outside: list[str] = []
    at = 0
    depth = 0
    seen = False
    for match in TAG.finditer(text):
        piece = text[at : match.start()]
        at = match.end()
        if match.group(1):
            if depth or not seen:
                inside.append(piece)
            else:
                outside.append(piece)
            depth = 0
        else:
            (inside if depth else outside).append(piece)
            depth = 1
        seen = True
    (inside if depth else outside).append(text[at:])
    return "\n".join(one.strip() for one in inside if one.strip()), "\n".join(
        one.strip() for one in outside if one.strip()
    )
