"""Finds out what works with a model by asking: text, text by a schema, an image, an edit, and a second turn about its
own image.

Each probe is one call, as a run would make it: adapted to what the model accepts, journalled before it is used,
scrubbed. What a model declares that it cannot produce is not asked for. Nothing is answered from the cache.
"""

import asyncio
import time
import uuid
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from weft.calls.budget import Budget
from weft.calls.caller import Caller, EndpointDown, RetryPolicy
from weft.calls.prices import Price
from weft.calls.structured_output import UnusableReply, read_reply
from weft.errors import WeftError
from weft.models.adapt import adapt_messages_async
from weft.models.endpoint import Endpoint
from weft.store.blobs import Blobs
from weft.store.journal import Journal
from weft.types import Image, Message, Modality, Reply, Request, Text, finish_reason_of

RETRY_POLICY = RetryPolicy(
    tries=2, rate_limit_tries=2, empty_tries=1, unreachable_tries=1, base=0.2, cap=1.0, max_wait=10
)
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"colour": {"type": "string"}, "sure": {"type": "boolean"}},
    "required": ["colour", "sure"],
    "additionalProperties": False,
}
TEXT = "text"
JSON = "text by a schema"
IMAGE = "an image"
EDIT = "an edit"
SECOND_TURN = "its own image, a turn later"
PROBES = (TEXT, JSON, IMAGE, EDIT, SECOND_TURN)
JSON_PROMPT = (
    "Which colour has the disc? Reply with one JSON object that fits this schema, and nothing else:\n"
    + msgspec.json.encode(SCHEMA).decode()
)
DRAW = "Draw one red apple on a plain white ground."
MAX_QUOTED = 60  # characters of a reply in a summary


class ProbeResult(Struct, frozen=True):
    """What one probe found."""

    name: str  # one of PROBES
    works: bool | None  # None: not asked for, since the model cannot do it
    summary: str  # one line
    seconds: float = 0.0
    reply: Reply | None = None


async def probe_endpoint(
    endpoint: Endpoint,
    blobs: Blobs,
    journal: Journal,
    price: Price | None = None,
    tell: Callable[[ProbeResult], None] | None = None,
) -> list[ProbeResult]:
    """Run all probes, independent ones at the same time, and close endpoint and journal. `tell` gets each result."""
    caller = Caller(
        endpoint,
        role="model",
        journal=journal,
        budget=Budget(),
        price=price,
        retry_policy=RETRY_POLICY,
        blobs=blobs,
        run=f"try-{uuid.uuid4().hex[:8]}",
    )
    prober = _Prober(caller, blobs, int(time.time()), tell or (lambda _: None))
    try:
        return await prober.run_all()
    finally:
        await endpoint.close()
        journal.close()


class _Prober:
    def __init__(self, caller: Caller, blobs: Blobs, draw: int, tell: Callable[[ProbeResult], None]) -> None:
        """`draw` makes these calls differ from all earlier ones."""
        self._caller = caller
        self._blobs = blobs
        self._draw = draw
        self._tell = tell

    async def run_all(self) -> list[ProbeResult]:
        disc = await asyncio.to_thread(self._draw_disc)
        question = _user(disc, "Which colour has the disc in this picture? One word.")
        json_question = _user(disc, JSON_PROMPT)
        edit_request = _user(disc, "Make the disc in this picture green. Change nothing else.")
        text, by_schema, (image, second_turn), edit = await asyncio.gather(
            self._probe(TEXT, (question,), "text"),
            self._probe(JSON, (json_question,), "text", SCHEMA),
            self._probe_two_turns(),
            self._probe(EDIT, (edit_request,), "image"),
        )
        return [text, by_schema, image, edit, second_turn]

    async def _probe_two_turns(self) -> tuple[ProbeResult, ProbeResult]:
        """Ask for an image, and for a change to it."""
        first = await self._probe(IMAGE, (_user(DRAW),), "image")
        if first.works is None:
            second = ProbeResult(SECOND_TURN, None, "it generates no images")
        elif first.reply is None or first.reply.last_image is None:
            second = ProbeResult(SECOND_TURN, False, "there was no image to continue from")
        else:
            history = (_user(DRAW), Message("assistant", first.reply.parts))
            messages = (*history, _user("Now put a small blue hat on it."))
            return first, await self._probe(SECOND_TURN, messages, "image")
        self._tell(second)
        return first, second

    async def _probe(
        self, name: str, messages: tuple[Message, ...], modality: Modality, schema: dict[str, Any] | None = None
    ) -> ProbeResult:
        reason = self._unsupported_reason(messages, modality, schema)
        if reason:
            result = ProbeResult(name, None, reason)
        else:
            result = await self._ask(name, messages, modality, schema)
        self._tell(result)
        return result

    def _unsupported_reason(
        self, messages: tuple[Message, ...], modality: Modality, schema: dict[str, Any] | None
    ) -> str:
        gives = self._caller.endpoint.gives
        reason = gives.unsupported_reason(modality)
        if reason:
            return reason
        if schema is not None and not gives.json:
            return "it accepts no schema"
        has_image = any(isinstance(part, Image) for message in messages for part in message.parts)
        if modality != "text" and has_image and self._caller.takes.for_modality(modality).images == "none":
            return "it accepts no images when it generates one"
        return ""

    async def _ask(
        self, name: str, messages: tuple[Message, ...], modality: Modality, schema: dict[str, Any] | None
    ) -> ProbeResult:
        began = time.monotonic()
        try:
            adapted = await adapt_messages_async(messages, self._caller.takes.for_modality(modality), self._blobs)
            reply = await self._caller.reply(adapted, Request(modality, schema, draw=self._draw))
        except EndpointDown as error:
            return ProbeResult(name, False, f"would end a run: {error}", time.monotonic() - began)
        except WeftError as error:
            return ProbeResult(name, False, str(error), time.monotonic() - began)
        works = reply.outcome == "answered"
        summary = _summarize(reply, modality)
        if works and schema is not None:
            try:
                read_reply(reply.text, schema, lambda: JSON_PROMPT)
            except UnusableReply as error:
                works = False
                summary = f"{error}: {reply.text[:MAX_QUOTED]!r}"
        return ProbeResult(name, works, summary, time.monotonic() - began, reply)

    def _draw_disc(self) -> Image:
        """Store an image of a red disc on white."""
        from PIL import Image as Pil
        from PIL import ImageDraw

        image = Pil.new("RGB", (256, 256), "white")
        ImageDraw.Draw(image).ellipse((64, 64, 192, 192), fill="red")
        return self._blobs.put_pil(image)


def _summarize(reply: Reply, modality: Modality) -> str:
    """Return what came, in one line."""
    finish_reason = finish_reason_of(reply, modality)
    if reply.outcome != "answered":
        if reply.reason:
            return f"{finish_reason}: {reply.reason}"
        return finish_reason
    words = [f"{image.width} x {image.height} {image.media_type.partition('/')[2]}" for image in reply.images]
    if finish_reason != "ok":
        words.append(finish_reason)
    text = " ".join(reply.text.split())
    if len(text) > MAX_QUOTED:
        text = f"{text[: MAX_QUOTED - 1]}…"
    if text:
        words.append(repr(text))
    return ", ".join(words)


def _user(*parts: Image | str) -> Message:
    return Message("user", tuple(Text(part) if isinstance(part, str) else part for part in parts))
