"""How a strategy speaks to a model. `English` is for models that read English; a model with a language of its own
brings its own words."""

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from weft.types import Image, Message, Modality, Part, Reply, Text

AskModel = Callable[[tuple[Message, ...]], Awaitable[Reply]]
Candidate = tuple[Part, ...]  # what was made: one picture, or texts and pictures


class Phrasing(Protocol):
    def plan_request(self, messages: tuple[Message, ...], kind: Modality) -> tuple[Message, ...] | None:
        """Ask for a plan in words; None where there is nothing to plan."""
        ...

    def with_plan(self, messages: tuple[Message, ...], plan: str, kind: Modality) -> tuple[Message, ...]: ...

    def image_request(self, order: str, images: Sequence[Image]) -> tuple[Message, ...] | None:
        """Ask for the image that a planner ordered, with those at hand; None where the order is told as it is."""
        ...

    def review_request(self, messages: tuple[Message, ...], made: Candidate) -> tuple[Message, ...] | None:
        """Ask whether what was made does what was asked; None where that cannot be asked."""
        ...

    def is_approval(self, review: str) -> bool: ...

    def redraw_request(self, messages: tuple[Message, ...], made: Candidate, review: str) -> tuple[Message, ...]: ...

    async def pick(
        self, ask: AskModel, messages: tuple[Message, ...], made: Sequence[Candidate]
    ) -> tuple[int, list[Reply]]:
        """Which is best, and the replies that say so."""
        ...


class English:
    """What is asked of the model besides the benchmark's own requests (a plan, a review, a pick) is asked without the
    benchmark's system prompt, which may allow only letters, or only pictures."""

    def plan_request(self, messages: tuple[Message, ...], kind: Modality) -> tuple[Message, ...] | None:
        if kind == "interleaved":
            return _and(
                _unbound(messages),
                Text(
                    "Do not answer yet. First say in a few sentences what the answer tells, which pictures it shows, and where."
                ),
            )
        return _and(
            _unbound(messages),
            Text(
                "Do not draw yet. First say in a few sentences what the picture must show, what changes and what stays as it is."
            ),
        )

    def with_plan(self, messages: tuple[Message, ...], plan: str, kind: Modality) -> tuple[Message, ...]:
        return _and(messages, Text(f"{'Answer' if kind == 'interleaved' else 'Draw it'} now, by this plan:\n{plan}"))

    def image_request(self, order: str, images: Sequence[Image]) -> tuple[Message, ...] | None:
        return None

    def review_request(self, messages: tuple[Message, ...], made: Candidate) -> tuple[Message, ...] | None:
        picture = _is_picture(made)
        return _and(
            _unbound(messages),
            Text(
                "This picture was made for the last request:"
                if picture
                else "This answer was given to the last request:"
            ),
            *made,
            Text(
                "Does it do all that the request asks, and keep the style and the details of what came before? Begin with YES or NO; "
                "after NO say what is wrong, and how it should be improved."
            ),
        )

    def is_approval(self, review: str) -> bool:
        return re.match(r"\W*yes\b", review, re.IGNORECASE) is not None

    def redraw_request(self, messages: tuple[Message, ...], made: Candidate, review: str) -> tuple[Message, ...]:
        if _is_picture(made):
            again = "Draw it again, improved in this way."
        else:
            again = "Answer again, improved in this way."
        return _and(messages, Text("A first try was this:"), *made, Text(f"A review of it says: {review}\n{again}"))

    async def pick(
        self, ask: AskModel, messages: tuple[Message, ...], made: Sequence[Candidate]
    ) -> tuple[int, list[Reply]]:
        pictures = all(map(_is_picture, made))
        parts: list[Part] = [
            Text(f"These {'pictures were made for' if pictures else 'answers were given to'} the last request:")
        ]
        for number, candidate in enumerate(made, start=1):
            parts += [Text(f"Candidate {number}:"), *candidate]
        parts.append(Text("Which candidate does best what was asked? Answer with its number alone."))
        reply = await ask(_and(_unbound(messages), *parts))
        found = re.search(r"\d+", reply.text)
        if found:
            number = int(found.group()[:4])
        else:
            number = 1
        return (number if 1 <= number <= len(made) else 1) - 1, [reply]


def _is_picture(made: Candidate) -> bool:
    return len(made) == 1 and isinstance(made[0], Image)


def _unbound(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Without what a system prompt allows and forbids."""
    return tuple(message for message in messages if message.role != "system")


def _and(messages: tuple[Message, ...], *parts: Part) -> tuple[Message, ...]:
    """The dialogue with more said in its last message."""
    last = messages[-1]
    return (*messages[:-1], Message(last.role, (*last.parts, *parts)))
