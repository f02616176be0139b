"""A planner and a visualizer: one model writes the document, with orders for its pictures between the words
(`imagine.py` has their form); another draws each, from the order and all that comes before it in the document, words
and pictures, as far as it can take them.

A picture waits for those that it uses, and for no other, so that what does not depend on each other is drawn at the
same time; where the planner's words come as a stream, it is begun as soon as its order is whole. The reply is one
message, words and pictures in their order. What a visualizer will not draw is missing from it, and told; what it cannot
draw through no fault of its own leaves the reply unscored."""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from weft.models.compose.base import Composition, join_replies
from weft.models.compose.imagine import MAX_IMAGES, DocumentPlan, ImageOrder, parse_plan
from weft.models.endpoint import TEXT_LISTENER
from weft.models.thinking import split_thinking
from weft.secrets import scrub
from weft.types import Image, Message, Part, Reply, Request, Text, Thought, outcome_of

HOW = """You answer with a document in which words and pictures take turns. You write the words. Each picture is drawn by a painter; right \
where it belongs you give the order for it:

<imagine size="1024x768" uses="none">what the picture shows</imagine>

- One block is one picture. Several pictures are several blocks, each at its place in the text: never a grid or a collage, unless the \
reader asks for one.
- The order is all that the painter is told: name every person and thing with its looks, the place, what happens, the point of view, \
light, colours, technique, and word for word any writing that is to be seen. Sixty to a hundred and fifty words. Whoever appears again is \
described again in the same words.
- size: width and height in pixels, as the picture needs it: wide for landscapes, high for portraits and posters.
- uses: the numbers of earlier pictures of this document that this one must agree with (1 is the first), because the same person, thing \
or place comes back, or because it shows the next step; none where it stands for itself. What does not use each other is drawn at once.
- If the reader says how many pictures, write exactly so many blocks. If a picture alone is asked for, write one block and no words. If \
a question needs no picture, answer it in words, without any block.
- Never speak of blocks, orders or the painter in your words, and do not describe a picture twice."""
ORDER = "Draw the next picture of this document, as a single picture and nothing else:\n{prompt}"
SIZE = "\nIt is {wide} x {high} pixels."
SO_FAR = "The document so far:"
REQUEST = "A document was asked for:"
CLOSING = "</imagine>"
USUAL = 3  # pictures of a document, for who must guess
ONE = "\nThe reader wants one picture, and no words: write one block alone."


class WeaverProgress(Struct, frozen=True):
    """Where a document stands, for those who wait for it."""

    drawn: int
    planned: int
    seconds: float  # since it was asked for


PROGRESS_LISTENER: ContextVar[Callable[[WeaverProgress], None] | None] = ContextVar("WATCH", default=None)


class Weaver(Composition):
    roles = ("planner", "visualizer")
    version = "1"
    dry_run_note = f"pictures are counted as the data's references have them, {USUAL} a document where there is none: planners may differ"

    async def reply(self, messages: tuple[Message, ...], want: Request) -> Reply:
        if want.modality == "text":
            return await self.ask("planner", messages, want)

        async def draw(plan: DocumentPlan, order: ImageOrder, before: Mapping[int, Reply]) -> Reply:
            return await self.ask(
                "visualizer",
                self._order(messages, plan, order, before),
                replace(want, modality="image", size=order.size),
            )

        drawing = _Drawing(draw)
        try:
            return await self._woven(messages, want, drawing)
        except BaseException:
            await drawing.over()
            raise

    async def _woven(self, messages: tuple[Message, ...], want: Request, drawing: "_Drawing") -> Reply:
        listening = TEXT_LISTENER.set(drawing.hear)
        try:
            planned = await self.ask("planner", _asked(messages, want), replace(want, modality="text"))
        finally:
            TEXT_LISTENER.reset(listening)
        if planned.outcome != "answered":
            return join_replies(planned, await drawing.over())
        thinking, said = split_thinking(planned.text)
        if not _is_guess(planned):
            plan = parse_plan(said)
        else:
            plan = _guessed(planned, want)
        drawn, wasted = await drawing.all_of(plan)
        behind = [planned, *wasted]
        failed = next((reply for reply in drawn if reply.outcome == "failed"), None)
        if failed is not None:
            return replace(join_replies(failed, [*behind, *(one for one in drawn if one is not failed)]), parts=())
        parts, notes = _put_together(plan, drawn)
        thoughts = tuple(Thought(one) for one in (planned.thoughts, thinking) if one)
        outcome, reason = outcome_of((*thoughts, *parts), want.modality)
        told = [planned.reason, reason, *plan.notes, *notes]
        final = Reply(outcome, (*thoughts, *parts), "; ".join(one for one in told if one))
        return join_replies(final, [*behind, *drawn])

    def _order(
        self, messages: tuple[Message, ...], plan: DocumentPlan, order: ImageOrder, before: Mapping[int, Reply]
    ) -> tuple[Message, ...]:
        """What the visualizer is told: the request, the document up to here with the pictures that this one uses, and
        the order."""
        made = {number: reply.last_image for number, reply in before.items()}
        if "visualizer" in self.phrasings:  # a language of its own
            given = [part for message in messages for part in message.parts if isinstance(part, Image)]
            own = self.phrasings["visualizer"].image_request(
                order.prompt, [*given, *(image for image in made.values() if image is not None)]
            )
            if own is not None:
                return own
        so_far = _so_far(plan, order, made)
        asked = [
            part
            for message in messages
            if message.role != "system"
            for part in message.parts
            if not isinstance(part, Thought)
        ]
        if order.size:
            size = SIZE.format(wide=order.size[0], high=order.size[1])
        else:
            size = ""
        told = Text(ORDER.format(prompt=order.prompt) + size)
        parts: list[Part] = [Text(REQUEST), *(_plain(part) for part in asked)]
        parts += [Text(SO_FAR), *so_far] if so_far else []
        return (Message("user", (*parts, told)),)


def _is_guess(planned: Reply) -> bool:
    """Whether nobody was asked, and the reply only stands in for a plan: a document of the data, or nothing of any
    use."""
    return "stand-in" in planned.notes or (bool(planned.images) and not planned.keys)


def _guessed(planned: Reply, want: Request) -> DocumentPlan:
    if want.modality == "image":
        count = 1
    else:
        if "stand-in" not in planned.notes:
            count = len(planned.images)
        else:
            count = USUAL
    return DocumentPlan(
        tuple(
            part
            for at in range(count)
            for part in (planned.text[:400], ImageOrder(f"picture {at + 1} of a document. " * 20, uses=()))
        )
    )


class _Drawing:
    """The pictures of a document: each is begun as soon as its order is whole and those that it uses are there, also
    while the planner is still writing. All come back, whatever one does: each may have been paid for."""

    def __init__(self, draw: Callable[[DocumentPlan, ImageOrder, Mapping[int, Reply]], Awaitable[Reply]]) -> None:
        self._draw = draw
        self._told = PROGRESS_LISTENER.get()
        self._began = time.monotonic()
        self._drawn = 0
        # by all of the document up to the picture
        self._tasks: dict[tuple[str | ImageOrder, ...], asyncio.Task[Reply]] = {}
        self._sent: set[asyncio.Task[Reply] | None] = set()  # those that wait for nobody any more
        self._heard: list[str] = []
        self._tail = ""
        self._looks = 0
        self._say(0)

    def hear(self, piece: str | None) -> None:
        """What the planner writes, as it comes. Blocks that are closed stay as they are, whatever comes; only then is
        it looked at, and not for ever: a model may write nothing but tags."""
        if piece is None:
            self._heard.clear()
            self._tail = ""
            return
        self._heard.append(piece)
        self._tail = (self._tail + piece)[-4 * len(CLOSING) :]
        if CLOSING not in self._tail.lower() or self._looks >= 2 * MAX_IMAGES:
            return
        self._tail, self._looks = "", self._looks + 1
        text = scrub("".join(self._heard))
        ends = [match.end() for match in re.finditer(CLOSING, text, re.IGNORECASE)]
        if ends:
            self.begin(parse_plan(split_thinking(text[: ends[-1]])[1]))

    def begin(self, plan: DocumentPlan) -> list[asyncio.Task[Reply]]:
        """Those of a plan in their order; what was begun is not begun again."""
        made: list[asyncio.Task[Reply]] = []
        for at, part in enumerate(plan.parts):
            if isinstance(part, ImageOrder):
                key = plan.parts[: at + 1]
                if key not in self._tasks:
                    self._tasks[key] = asyncio.ensure_future(self._one(plan, part, tuple(made)))
                made.append(self._tasks[key])
        self._say(len(made))
        return made

    async def _one(self, plan: DocumentPlan, order: ImageOrder, earlier: tuple[asyncio.Task[Reply], ...]) -> Reply:
        TEXT_LISTENER.set(None)
        if order.uses is None:
            uses = range(1, len(earlier) + 1)
        else:
            uses = order.uses
        before = {used: await asyncio.shield(earlier[used - 1]) for used in uses}
        failed = next((reply for reply in before.values() if reply.outcome == "failed"), None)
        if failed is not None:
            return Reply("failed", reason=f"picture {len(earlier) + 1} waits for one that failed: {failed.reason}")
        self._sent.add(asyncio.current_task())
        made = await self._draw(plan, order, before)
        self._drawn += 1
        self._say(len(self._tasks))
        return made

    async def all_of(self, plan: DocumentPlan) -> tuple[list[Reply], list[Reply]]:
        """The pictures of a plan in their order; and those that were begun for a plan that the planner did not keep
        to."""
        due = self.begin(plan)
        others = await self._given_up([task for task in self._tasks.values() if task not in due])
        await asyncio.gather(*due, return_exceptions=True)
        return [task.result() for task in due], others

    async def over(self) -> list[Reply]:
        """Nothing more is drawn: what was sent is waited for, since it may have been paid for, unless everything is
        given up."""
        current = asyncio.current_task()
        if current is not None and current.cancelling():
            self._sent.clear()
        return await self._given_up(list(self._tasks.values()))

    async def _given_up(self, tasks: Sequence[asyncio.Task[Reply]]) -> list[Reply]:
        for task in tasks:
            if task not in self._sent:
                task.cancel()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        return [one for one in found if isinstance(one, Reply)]

    def _say(self, planned: int) -> None:
        if self._told is not None:
            self._told(WeaverProgress(self._drawn, planned, time.monotonic() - self._began))


def _asked(messages: tuple[Message, ...], want: Request) -> tuple[Message, ...]:
    """The request, with how to answer before it, and whatever a benchmark's own system prompt says after that."""
    how = HOW + (ONE if want.modality == "image" else "")
    own = [
        part.text
        for message in messages
        if message.role == "system"
        for part in message.parts
        if isinstance(part, Text)
    ]
    rest = tuple(message for message in messages if message.role != "system")
    return (Message("system", (Text("\n\n".join([how, *own])),)), *rest)


def _plain(part: Part) -> Part:
    if isinstance(part, Image):
        return replace(part, label=None)
    return part


def _so_far(plan: DocumentPlan, order: ImageOrder, made: Mapping[int, Image | None]) -> list[Part]:
    parts: list[Part] = []
    number = 0
    for part in plan.parts:
        if part is order:
            break
        if isinstance(part, str):
            parts.append(Text(part.strip()))
            continue
        number += 1
        shown = made.get(number)
        parts.append(Text(f"[picture {number}]") if shown is None else _plain(shown))
    return parts


def _put_together(plan: DocumentPlan, drawn: Sequence[Reply]) -> tuple[list[Part], list[str]]:
    """Words and pictures in their order, and which pictures are missing."""
    parts: list[Part] = []
    notes: list[str] = []
    replies: Any = iter(enumerate(drawn, start=1))
    for part in plan.parts:
        if isinstance(part, str):
            parts.append(Text(part))
            continue
        number, reply = next(replies)
        if reply.last_image is not None:
            parts.append(_plain(reply.last_image))
        else:
            notes.append(f"picture {number} is missing ({reply.outcome}: {reply.reason})")
    return parts, notes
