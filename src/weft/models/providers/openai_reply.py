"""Read replies in OpenAI's shape: the ordered parts of one choice of a chat completion, and the tokens it reports.

Servers put images into a choice in many shapes; `read_choice` accepts all of them. Image data inside the choice is
replaced by `blob:DIGEST` as it is stored, so that the raw reply can be journalled without a copy of the bytes.
"""

import base64
import binascii
import re
from typing import Any, cast

from msgspec import Struct

from weft.errors import ImageError
from weft.store.blobs import Blobs
from weft.types import Image, Part, Text, Thought, Usage
from weft.untrusted import dict_or_empty

INLINE_IMAGE = re.compile(r"!\[[^\]]*\]\(\s*(data:image/[^)\s]+)\s*\)|(data:image/[a-z+.-]+;base64,[A-Za-z0-9+/=]+)")
IMAGE_KEYS = ("image_url", "image", "b64_json", "image_base64", "data", "source", "inline_data", "inlineData")


class ReplyContent(Struct, frozen=True):
    """What one choice holds."""

    parts: tuple[Part, ...]  # in the order in which they came
    refusal: str = ""  # why the model, or a filter, refused; empty if neither did
    image_error: str = ""  # why an image is unusable
    truncated: bool = False  # cut at the token limit
    blocked: bool = False  # refused by a content filter, and not by the model
    image_links: tuple[tuple[int, str], ...] = ()  # (position among the parts, address) of images that came as links
    images: int = 0  # that it had, usable or not


def list_of_dicts(value: Any) -> list[dict[str, Any]]:
    """Return a JSON list of objects as such: entries that are no objects become empty ones, no list an empty list."""
    if not isinstance(value, list):
        return []
    return [dict_or_empty(entry) for entry in cast(list[Any], value)]


def first_dict(value: Any) -> dict[str, Any]:
    """Return the first object of a JSON list; an empty one where there is none."""
    if not isinstance(value, list) or not value:
        return {}
    return dict_or_empty(cast(list[Any], value)[0])


def first_choice(body: Any) -> dict[str, Any]:
    """Return the first of a completion's `choices`; an empty one where there is none."""
    return first_dict(dict_or_empty(body).get("choices"))


def read_choice(choice: dict[str, Any], blobs: Blobs) -> ReplyContent:
    """Read one choice and store its images. Changes `choice`: image data becomes `blob:DIGEST`."""
    message = dict_or_empty(choice.get("message"))
    finish_reason = choice.get("finish_reason")
    collector = _PartCollector(blobs)
    collector.add_thought(message.get("reasoning_content") or message.get("reasoning"))
    message["content"] = collector.add_content(message.get("content"))
    if isinstance(message.get("images"), list):
        message["images"] = [collector.add_image(image) for image in cast(list[Any], message["images"])]
    refusal = message.get("refusal")
    blocked = not refusal and finish_reason == "content_filter"
    if blocked:
        refusal = "stopped by the content filter"
    return ReplyContent(
        tuple(collector.parts),
        str(refusal or ""),
        collector.image_error,
        finish_reason == "length",
        blocked,
        tuple(collector.image_links),
        collector.images,
    )


class _PartCollector:
    """Collects parts in order. Each `add_...` method returns its argument with image data replaced by `blob:DIGEST`."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs
        self.parts: list[Part] = []
        self.image_links: list[tuple[int, str]] = []
        self.image_error = ""
        self.images = 0

    def add_content(self, content: Any) -> Any:
        if isinstance(content, str):
            return self._add_text(content)
        if isinstance(content, list):
            return [self._add_part(part) for part in cast(list[Any], content)]
        return content

    def add_thought(self, text: Any) -> None:
        """Add reasoning that the server reports separately from the content."""
        if isinstance(text, str) and text.strip():
            self.parts.append(Thought(text.strip()))

    def add_image(self, image: Any) -> Any:
        """Add an image in any shape: a string, or an object with the data under one of many keys."""
        if isinstance(image, str):
            return self._add_image_data(image)
        shape = dict_or_empty(image)
        for key in (*IMAGE_KEYS, "url"):
            if shape.get(key):
                return {**shape, key: self.add_image(shape[key])}
        return image

    def _add_part(self, part: Any) -> Any:
        if isinstance(part, str):
            return self._add_text(part)
        shape = dict_or_empty(part)
        # drafts of thinking models are not output
        if shape.get("thought") is True or shape.get("type") in ("thinking", "reasoning"):
            self.add_thought(shape.get("text") or shape.get("thinking") or shape.get("reasoning"))
            return {"type": "thought"}
        if isinstance(shape.get("text"), str) and not any(shape.get(key) for key in IMAGE_KEYS):
            if shape.get("type", "text") in ("text", "output_text"):
                return {**shape, "text": self._add_text(shape["text"])}
            return shape
        return self.add_image(part)

    def _add_text(self, text: str) -> str:
        """Add a text, and the images that stand in it as data URLs."""
        pieces: list[str] = []
        end = 0
        for match in INLINE_IMAGE.finditer(text):
            before = text[end : match.start()]
            self._add_text_part(before)
            pieces.append(before)
            pieces.append(self._add_image_data(match.group(1) or match.group(2)))
            end = match.end()
        self._add_text_part(text[end:])
        return "".join([*pieces, text[end:]])

    def _add_text_part(self, text: str) -> None:
        if text.strip():
            self.parts.append(Text(text))

    def _add_image_data(self, data: str) -> str:
        self.images += 1
        if data.startswith(("http://", "https://")):
            self.image_links.append((len(self.parts), data))
            return data
        encoded = data
        if data.startswith("data:"):
            encoded = data.partition(",")[2]
        try:
            image: Image = self._blobs.put(base64.b64decode(encoded, validate=False))
        except (ImageError, binascii.Error) as error:
            self.image_error = str(error)
            return f"[an image that {error}]"
        self.parts.append(image)
        return f"blob:{image.digest}"


def read_usage(body: Any) -> Usage:
    """Read tokens and cost as OpenAI reports them, and most others do."""
    numbers = dict_or_empty(dict_or_empty(body).get("usage"))
    cost = numbers.get("cost")
    if not isinstance(cost, (int, float)) or not 0 <= cost < 1e6:
        cost = None
    return Usage(
        tokens_in=read_token_count(numbers.get("prompt_tokens") or numbers.get("input_tokens")),
        tokens_out=read_token_count(numbers.get("completion_tokens") or numbers.get("output_tokens")),
        cost=None if cost is None else float(cost),
    )


def read_token_count(value: Any) -> int:
    """Return a number of tokens; 0 for what cannot be one."""
    if isinstance(value, (int, float)) and 0 <= value < 1e12:
        return int(value)
    return 0
