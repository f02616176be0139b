"""What works with a model, found out by asking: words, words by a schema, a picture, an edit, and a second turn about
its own picture.

Each is one call, as a run would make it: fitted to what the model takes, journalled before it is used, scrubbed. What a
model says that it cannot send is not asked for. Nothing is remembered from before: who tries a model wants to know how
it is now."""

import asyncio
import time
import uuid
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from weft.calls.caller import Caller, EndpointDown, RetryPolicy
from weft.calls.prices import Budget, Price
from weft.errors import WeftError
from weft.models.adapt import adapt_messages_async
from weft.models.endpoint import Endpoint
from weft.store.blobs import Blobs
from weft.store.journal import Journal
from weft.types import Image, Message, Modality, Reply, Request, Text, finish_reason_of

PATIENCE = RetryPolicy(tries=2, rate_limit_tries=2, empty_tries=1, unreachable_tries=1, base=0.2, cap=1.0, max_wait=10)
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"colour": {"type": "string"}, "sure": {"type": "boolean"}},
    "required": ["colour", "sure"],
    "additionalProperties": False,
}
PROBES = ("words", "words by a schema", "a picture", "an edit", "its own picture, a turn later")
DRAW = "Draw one red apple on a plain white ground."


class ProbeResult(Struct, frozen=True):
    """One thing that was tried. `works` is None where it was not asked for, since the model cannot do it."""

    name: str
    works: bool | None
    summary: str
    seconds: float = 0.0
    reply: Reply | None = None


async def probe_endpoint(
    endpoint: Endpoint,
    blobs: Blobs,
    journal: Journal,
    price: Price | None = None,
    tell: Callable[[ProbeResult], None] | None = None,
) -> list[ProbeResult]:
    """All of them, the independent ones at once; `tell` hears of each as it is done."""
    run = f"try-{uuid.uuid4().hex[:8]}"
    caller = Caller(
        endpoint,
        role="model",
        journal=journal,
        budget=Budget(),
        price=price,
        retry_policy=PATIENCE,
        blobs=blobs,
        run=run,
    )
    trying = _Trying(caller, blobs, int(time.time()), tell or (lambda _: None))
    try:
        return await trying.all()
    finally:
        await endpoint.close()
        journal.close()


class _Trying:
    def __init__(self, caller: Caller, blobs: Blobs, draw: int, tell: Callable[[ProbeResult], None]) -> None:
        """`draw` tells these calls apart from those of any other time."""
        self._caller = caller
        self._blobs = blobs
        self._draw = draw
        self._tell = tell

    async def all(self) -> list[ProbeResult]:
        given = await asyncio.to_thread(self._given)
        question = _user(given, "Which colour has the disc in this picture? One word.")
        found = await asyncio.gather(
            self._ask("words", (question,), "text"),
            self._ask(
                "words by a schema", (_user(given, "Which colour has the disc? Answer in JSON."),), "text", SCHEMA
            ),
            self._drawn(),
            self._ask("an edit", (_user(given, "Make the disc in this picture green. Change nothing else."),), "image"),
        )
        words, by_schema, (picture, second), edit = found
        return [words, by_schema, picture, edit, second]

    async def _drawn(self) -> tuple[ProbeResult, ProbeResult]:
        """A picture, and a second turn about it."""
        first = await self._ask("a picture", (_user(DRAW),), "image")
        if first.reply is not None:
            made = first.reply.last_image
        else:
            made = None
        if first.reply is None or made is None:
            if first.works is None:
                why = "it makes no pictures"
            else:
                why = "there was no picture to go on from"
            second = ProbeResult("its own picture, a turn later", None if first.works is None else False, why)
            self._tell(second)
            return first, second
        past = (_user(DRAW), Message("assistant", first.reply.parts))
        return first, await self._ask(
            "its own picture, a turn later", (*past, _user("Now put a small blue hat on it.")), "image"
        )

    async def _ask(
        self, what: str, messages: tuple[Message, ...], kind: Modality, schema: dict[str, Any] | None = None
    ) -> ProbeResult:
        began = time.monotonic()
        gives = self._caller.endpoint.gives
        lacks = gives.unsupported_reason(kind) or (
            "it takes no schema" if schema is not None and not gives.json else ""
        )
        shown = any(isinstance(part, Image) for message in messages for part in message.parts)
        if kind != "text" and shown and self._caller.takes.for_modality(kind).images == "none":
            lacks = lacks or "it is not shown pictures when it draws"
        if lacks:
            made = ProbeResult(what, None, lacks)
        else:
            try:
                seen = await adapt_messages_async(messages, self._caller.takes.for_modality(kind), self._blobs)
                reply = await self._caller.reply(seen, Request(kind, schema, draw=self._draw))
                told = _told(reply, kind, schema is not None)
                made = ProbeResult(
                    what,
                    reply.outcome == "answered" and not told.startswith("no JSON"),
                    told,
                    time.monotonic() - began,
                    reply,
                )
            except EndpointDown as error:
                made = ProbeResult(what, False, f"would end a run: {error}", time.monotonic() - began)
            except WeftError as error:
                made = ProbeResult(what, False, str(error), time.monotonic() - began)
        self._tell(made)
        return made

    def _given(self) -> Image:
        """A red disc on white."""
        from PIL import Image as Pil
        from PIL import ImageDraw

        picture = Pil.new("RGB", (256, 256), "white")
        ImageDraw.Draw(picture).ellipse((64, 64, 192, 192), fill="red")
        return self._blobs.put_pil(picture)


def _told(reply: Reply, kind: Modality, by_schema: bool) -> str:
    """What came, in a line."""
    ending = finish_reason_of(reply, kind)
    if reply.outcome != "answered":
        if reply.reason:
            return f"{ending}: {reply.reason}"
        return ending
    if by_schema and not reply.text.lstrip().startswith("{"):
        return f"no JSON: {reply.text[:60]!r}"
    shown = [f"{image.width} x {image.height} {image.media_type.partition('/')[2]}" for image in reply.images]
    said = " ".join(reply.text.split())
    shown += [ending] if ending != "ok" else []
    return ", ".join([*shown, *([repr(said if len(said) <= 60 else f"{said[:59]}…")] if said else [])])


def _user(*parts: Image | str) -> Message:
    return Message("user", tuple(Text(part) if isinstance(part, str) else part for part in parts))
