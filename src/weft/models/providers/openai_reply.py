"""What a reply in OpenAI's shape holds: from one choice of a chat completion to ordered parts, whatever shape the
server chose, and the tokens that it tells of. Image data inside the choice is replaced by `blob:DIGEST` as it is
stored, so that the raw reply can be journalled without a copy of the bytes."""

import base64
import binascii
import re
from typing import Any, cast

from msgspec import Struct

from weft.errors import ImageError
from weft.store.blobs import Blobs
from weft.types import Image, Part, Text, Thought, Usage
from weft.untrusted import dict_or_empty

INLINE = re.compile(r"!\[[^\]]*\]\(\s*(data:image/[^)\s]+)\s*\)|(data:image/[a-z+.-]+;base64,[A-Za-z0-9+/=]+)")
PICTURE_KEYS = ("image_url", "image", "b64_json", "image_base64", "data", "source", "inline_data", "inlineData")


class ReplyContent(Struct, frozen=True):
    """`links`: (position among the parts, address) of pictures that came as addresses. `broken`: why a picture is
    unusable."""

    parts: tuple[Part, ...]
    refusal: str = ""
    image_error: str = ""
    truncated: bool = False
    blocked: bool = False
    image_links: tuple[tuple[int, str], ...] = ()


def read_choice(choice: dict[str, Any], blobs: Blobs) -> ReplyContent:
    """Changes `choice`: picture data becomes `blob:DIGEST`."""
    message = dict_or_empty(choice.get("message"))
    finish = choice.get("finish_reason")
    reader = _Reader(blobs)
    reader.thought(message.get("reasoning_content") or message.get("reasoning"))
    message["content"] = reader.content(message.get("content"))
    if isinstance(message.get("images"), list):
        message["images"] = [reader.picture(one) for one in cast(list[Any], message["images"])]
    refusal = message.get("refusal")
    blocked = not refusal and finish == "content_filter"
    if blocked:
        refusal = "stopped by the content filter"
    return ReplyContent(
        tuple(reader.parts), str(refusal or ""), reader.broken, finish == "length", blocked, tuple(reader.links)
    )


class _Reader:
    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs
        self.parts: list[Part] = []
        self.links: list[tuple[int, str]] = []
        self.broken = ""

    def content(self, content: Any) -> Any:
        if isinstance(content, str):
            return self._text(content)
        if isinstance(content, list):
            return [self._part(one) for one in cast(list[Any], content)]
        return content

    def thought(self, text: Any) -> None:
        """What a model shows of its thinking, whole in the raw reply or apart from it."""
        if isinstance(text, str) and text.strip():
            self.parts.append(Thought(text.strip()))

    def picture(self, thing: Any) -> Any:
        """A picture in any shape: returns the same shape with the data replaced."""
        if isinstance(thing, str):
            return self._data(thing)
        shape = dict_or_empty(thing)
        for key in (*PICTURE_KEYS, "url"):
            if shape.get(key):
                return {**shape, key: self.picture(shape[key])}
        return thing

    def _part(self, part: Any) -> Any:
        if isinstance(part, str):
            return self._text(part)
        shape = dict_or_empty(part)
        # drafts of thinking models are not output
        if shape.get("thought") is True or shape.get("type") in ("thinking", "reasoning"):
            self.thought(shape.get("text") or shape.get("thinking") or shape.get("reasoning"))
            return {"type": "thought"}
        if isinstance(shape.get("text"), str) and not any(shape.get(key) for key in PICTURE_KEYS):
            if shape.get("type", "text") in ("text", "output_text"):
                return {**shape, "text": self._text(shape["text"])}
            return shape
        return self.picture(part)

    def _text(self, text: str) -> str:
        kept: list[str] = []
        end = 0
        for match in INLINE.finditer(text):
            self._add_text(text[end : match.start()])
            kept.append(text[end : match.start()])
            kept.append(self._data(match.group(1) or match.group(2)))
            end = match.end()
        self._add_text(text[end:])
        return "".join([*kept, text[end:]])

    def _add_text(self, text: str) -> None:
        if text.strip():
            self.parts.append(Text(text))

    def _data(self, data: str) -> str:
        if data.startswith(("http://", "https://")):
            self.links.append((len(self.parts), data))
            return data
        if data.startswith("data:"):
            encoded = data.partition(",")[2]
        else:
            encoded = data
        try:
            image: Image = self._blobs.put(base64.b64decode(encoded, validate=False))
        except (ImageError, binascii.Error) as error:
            self.broken = str(error)
            return f"[a picture that {error}]"
        self.parts.append(image)
        return f"blob:{image.digest}"


def read_usage(body: Any) -> Usage:
    """Tokens and costs as OpenAI reports them, and most others do."""
    numbers = dict_or_empty(dict_or_empty(body).get("usage"))
    cost = numbers.get("cost")
    return Usage(
        tokens_in=read_token_count(numbers.get("prompt_tokens") or numbers.get("input_tokens")),
        tokens_out=read_token_count(numbers.get("completion_tokens") or numbers.get("output_tokens")),
        cost=float(cost) if isinstance(cost, (int, float)) and 0 <= cost < 1e6 else None,
    )


def read_token_count(value: Any) -> int:
    """A number of tokens, as far as it can be one."""
    if isinstance(value, (int, float)) and 0 <= value < 1e12:
        return int(value)
    return 0
