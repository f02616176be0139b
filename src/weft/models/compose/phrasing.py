"""How a strategy phrases its requests to a model.

`English` is for models that read English; a model with a language of its own brings its own `Phrasing`. All texts are
part of prompts, and so of cache keys: their words must not change.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from weft.types import Image, Message, Modality, Part, Reply, Text

AskModel = Callable[[tuple[Message, ...]], Awaitable[Reply]]
Candidate = tuple[Part, ...]  # an output: one image, or texts and images
PLAN_IMAGE = (
    "Do not draw yet. First say in a few sentences what the picture must show, what changes and what stays as it is."
)
PLAN_ANSWER = (
    "Do not answer yet. First say in a few sentences what the answer tells, which pictures it shows, and where."
)
REVIEW = (
    "Does it do all that the request asks, and keep the style and the details of what came before? "
    "Begin with YES or NO; "
    "after NO say what is wrong, and how it should be improved."
)
PICK = "Which candidate does best what was asked? Answer with its number alone."


class Phrasing(Protocol):
    """Builds the requests of strategies, and reads the replies to them."""

    def plan_request(self, messages: tuple[Message, ...], modality: Modality, /) -> tuple[Message, ...] | None:
        """Ask for a plan in words; None if there is nothing to plan."""
        ...

    def with_plan(self, messages: tuple[Message, ...], plan: str, modality: Modality, /) -> tuple[Message, ...]:
        """Ask for the output by a plan."""
        ...

    def image_request(self, order: str, images: Sequence[Image], /) -> tuple[Message, ...] | None:
        """Ask for the image that a planner ordered, with the images so far; None: the order is sent as it is."""
        ...

    def review_request(self, messages: tuple[Message, ...], output: Candidate, /) -> tuple[Message, ...] | None:
        """Ask whether the output does what was requested; None if that cannot be asked."""
        ...

    def is_approval(self, review: str, /) -> bool:
        """Return whether a review has no objection."""
        ...

    def redraw_request(self, messages: tuple[Message, ...], output: Candidate, review: str, /) -> tuple[Message, ...]:
        """Ask for the output again, improved after a review."""
        ...

    async def pick(
        self, ask: AskModel, messages: tuple[Message, ...], candidates: Sequence[Candidate], /
    ) -> tuple[int, list[Reply]]:
        """Return the index of the best candidate, and the replies that say so."""
        ...


class English:
    """Asks in English.

    Plans, reviews and picks are requested without the benchmark's system prompt, which may allow only letters, or only
    images.
    """

    def plan_request(self, messages: tuple[Message, ...], modality: Modality) -> tuple[Message, ...] | None:
        question = PLAN_ANSWER if modality == "interleaved" else PLAN_IMAGE
        return _append(_without_system(messages), Text(question))

    def with_plan(self, messages: tuple[Message, ...], plan: str, modality: Modality) -> tuple[Message, ...]:
        order = "Answer" if modality == "interleaved" else "Draw it"
        return _append(messages, Text(f"{order} now, by this plan:\n{plan}"))

    def image_request(self, order: str, images: Sequence[Image]) -> tuple[Message, ...] | None:
        return None

    def review_request(self, messages: tuple[Message, ...], output: Candidate) -> tuple[Message, ...] | None:
        introduction = "This answer was given to the last request:"
        if _is_image(output):
            introduction = "This picture was made for the last request:"
        return _append(_without_system(messages), Text(introduction), *output, Text(REVIEW))

    def is_approval(self, review: str) -> bool:
        return re.match(r"\W*yes\b", review, re.IGNORECASE) is not None

    def redraw_request(self, messages: tuple[Message, ...], output: Candidate, review: str) -> tuple[Message, ...]:
        order = "Answer again, improved in this way."
        if _is_image(output):
            order = "Draw it again, improved in this way."
        return _append(
            messages, Text("A first try was this:"), *output, Text(f"A review of it says: {review}\n{order}")
        )

    async def pick(
        self, ask: AskModel, messages: tuple[Message, ...], candidates: Sequence[Candidate]
    ) -> tuple[int, list[Reply]]:
        introduction = "These answers were given to the last request:"
        if all(map(_is_image, candidates)):
            introduction = "These pictures were made for the last request:"
        parts: list[Part] = [Text(introduction)]
        for number, candidate in enumerate(candidates, start=1):
            parts += [Text(f"Candidate {number}:"), *candidate]
        parts.append(Text(PICK))
        reply = await ask(_append(_without_system(messages), *parts))
        return _read_choice(reply.text, len(candidates)) - 1, [reply]


def _read_choice(text: str, count: int) -> int:
    """Return the first number in a text; 1 if there is none between 1 and `count`."""
    match = re.search(r"\d+", text)
    if match is None:
        return 1
    number = int(match.group()[:4])
    if 1 <= number <= count:
        return number
    return 1


def _is_image(output: Candidate) -> bool:
    return len(output) == 1 and isinstance(output[0], Image)


def _without_system(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    return tuple(message for message in messages if message.role != "system")


def _append(messages: tuple[Message, ...], *parts: Part) -> tuple[Message, ...]:
    """Return the dialogue with more parts in its last message."""
    last = messages[-1]
    return (*messages[:-1], Message(last.role, (*last.parts, *parts)))
