"""A planner and a visualizer: one model writes a document with orders for its images between the text (in the form of
`imagine.py`); another draws each image, from its order and all that precedes it in the document.

An image waits for the images that it uses, and for no others, so that independent images are drawn at the same time. If
the planner's text is streamed, an image is begun as soon as its order is complete. The reply is one message of texts
and images in their order. An image that the visualizer refuses is missing from it, and a note says so; one that fails
for other reasons leaves the reply unscored. The prompts are part of cache keys: their words must not change.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar

from msgspec import Struct
from msgspec.structs import replace

from weft.errors import UserError
from weft.models.compose.base import Composition, join_replies
from weft.models.compose.imagine import CLOSING_TAG, MAX_IMAGES, DocumentPlan, ImageOrder, parse_plan
from weft.models.endpoint import TEXT_LISTENER
from weft.models.registry import REFERENCE
from weft.models.thinking import split_thinking
from weft.secrets import scrub
from weft.store.blobs import Blobs
from weft.types import Image, Message, Modality, Model, Part, Reply, Request, Text, Thought, outcome_of

PLANNER_PROMPT = """You answer with a document in which words and pictures take turns. You write the words. Each picture is drawn by a painter; right \
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
ONE_IMAGE_PROMPT = "\nThe reader wants one picture, and no words: write one block alone."
IMAGE_PROMPT = "Draw the next picture of this document, as a single picture and nothing else:\n{prompt}"
SIZE_PROMPT = "\nIt is {width} x {height} pixels."
DOCUMENT_HEADING = "The document so far:"
REQUEST_HEADING = "A document was asked for:"
TAIL = 40  # characters in which a closing tag is looked for while the planner writes
FEWER_IMAGES = "the dataset's reference has no image {} of a document: the visualizer `reference` has no reply"
USUAL_IMAGES = 3  # of a document, where a dry run must guess


class WeaverProgress(Struct, frozen=True):
    """How far a document is."""

    drawn: int  # images
    planned: int  # images
    seconds: float  # since the request


PROGRESS_LISTENER: ContextVar[Callable[[WeaverProgress], None] | None] = ContextVar("PROGRESS_LISTENER", default=None)


class Weaver(Composition):
    roles = ("planner", "visualizer")
    version = "2"
    dry_run_note = (
        f"images are counted as in the data's references, {USUAL_IMAGES} per document without one: planners may differ"
    )

    def __init__(self, name: str, models: Mapping[str, Model], blobs: Blobs) -> None:
        super().__init__(name, models, blobs)
        if models["planner"].name == REFERENCE:
            raise UserError(f"{name}: a reference has no orders for its images, so it cannot be the planner")

    async def reply(self, messages: tuple[Message, ...], request: Request) -> Reply:
        if request.modality == "text":
            return await self.ask("planner", messages, request)

        async def draw(plan: DocumentPlan, order: ImageOrder, used: Mapping[int, Reply]) -> Reply:
            image_request = self._image_request(messages, plan, order, used)
            drawn = await self.ask("visualizer", image_request, replace(request, modality="image", size=order.size))
            return self._choose_reference(drawn, plan, order)

        drawing = _Drawing(draw)
        try:
            return await self._weave(messages, request, drawing)
        except BaseException:
            await drawing.stop()
            raise

    def _choose_reference(self, drawn: Reply, plan: DocumentPlan, order: ImageOrder) -> Reply:
        """Return the image at the order's place, where the visualizer is the dataset's reference with all its images.

        The reply has failed if the reference has fewer images than the plan."""
        if self.models["visualizer"].name != REFERENCE or drawn.outcome != "answered" or "stand-in" in drawn.notes:
            return drawn
        place = next(index for index, other in enumerate(plan.images) if other is order)
        if place >= len(drawn.images):
            return replace(drawn, outcome="failed", parts=(), reason=FEWER_IMAGES.format(place + 1))
        return replace(drawn, parts=(drawn.images[place],))

    async def _weave(self, messages: tuple[Message, ...], request: Request, drawing: "_Drawing") -> Reply:
        token = TEXT_LISTENER.set(drawing.hear)
        try:
            planned = await self.ask(
                "planner", planner_request(messages, request.modality), replace(request, modality="text")
            )
        finally:
            TEXT_LISTENER.reset(token)
        if planned.outcome != "answered":
            return join_replies(planned, await drawing.stop())
        thinking, document = split_thinking(planned.text)
        if _is_stand_in(planned):
            plan = _guess_plan(planned, request)
        else:
            plan = parse_plan(document)
        drawn, wasted = await drawing.finish(plan)
        failed = next((reply for reply in drawn if reply.outcome == "failed"), None)
        if failed is not None:
            others = [reply for reply in drawn if reply is not failed]
            return replace(join_replies(failed, [planned, *wasted, *others]), parts=())
        parts, missing = _assemble(plan, drawn)
        thoughts = [Thought(text) for text in (planned.thoughts, thinking) if text]
        outcome, reason = outcome_of((*thoughts, *parts), request.modality)
        reasons = [text for text in (planned.reason, reason, *plan.notes, *missing) if text]
        final = Reply(outcome, (*thoughts, *parts), "; ".join(reasons))
        return join_replies(final, [planned, *wasted, *drawn])

    def _image_request(
        self, messages: tuple[Message, ...], plan: DocumentPlan, order: ImageOrder, used: Mapping[int, Reply]
    ) -> tuple[Message, ...]:
        """Return what the visualizer is sent: the request, the document so far with the images that are used, and the
        order."""
        used_images = {number: reply.last_image for number, reply in used.items()}
        if "visualizer" in self.phrasings:
            images = _images_in(messages)
            images += [image for image in used_images.values() if image is not None]
            own_request = self.phrasings["visualizer"].image_request(order.prompt, images)
            if own_request is not None:
                return own_request
        parts: list[Part] = [Text(REQUEST_HEADING)]
        for message in messages:
            if message.role != "system":
                parts += [_without_label(part) for part in message.parts if not isinstance(part, Thought)]
        document = _document_before(plan, order, used_images)
        if document:
            parts += [Text(DOCUMENT_HEADING), *document]
        prompt = IMAGE_PROMPT.format(prompt=order.prompt)
        if order.size:
            prompt += SIZE_PROMPT.format(width=order.size[0], height=order.size[1])
        return (Message("user", (*parts, Text(prompt))),)


def planner_request(messages: tuple[Message, ...], modality: Modality) -> tuple[Message, ...]:
    """Return the request with one system message: how to write a document, then the benchmark's own system prompt."""
    system = PLANNER_PROMPT
    if modality == "image":
        system += ONE_IMAGE_PROMPT
    texts = [system]
    dialogue: list[Message] = []
    for message in messages:
        if message.role == "system":
            texts += [part.text for part in message.parts if isinstance(part, Text)]
        else:
            dialogue.append(message)
    return (Message("system", (Text("\n\n".join(texts)),)), *dialogue)


def _is_stand_in(planned: Reply) -> bool:
    """Return whether no planner was asked: in a dry run the reply is a reference of the dataset, or a stand-in."""
    return "stand-in" in planned.notes or (bool(planned.images) and not planned.keys)


def _guess_plan(planned: Reply, request: Request) -> DocumentPlan:
    """Return a plan with as many images as the reference has, for a dry run."""
    count = len(planned.images)
    if "stand-in" in planned.notes:
        count = USUAL_IMAGES
    if request.modality == "image":
        count = 1
    parts: list[str | ImageOrder] = []
    for number in range(1, count + 1):
        parts += [planned.text[:400], ImageOrder(f"picture {number} of a document. " * 20, uses=())]
    return DocumentPlan(tuple(parts))


class _Drawing:
    """Draws the images of a document.

    Each is begun as soon as its order is complete and the images that it uses are there, also while the planner is
    still writing. All are awaited, even if one fails: each may have to be paid for.
    """

    def __init__(self, draw: Callable[[DocumentPlan, ImageOrder, Mapping[int, Reply]], Awaitable[Reply]]) -> None:
        self._draw = draw
        self._listener = PROGRESS_LISTENER.get()
        self._start = time.monotonic()
        self._drawn = 0
        # by the whole document up to the image, which is what its prompt is made of
        self._tasks: dict[tuple[str | ImageOrder, ...], asyncio.Task[Reply]] = {}
        self._requested: set[asyncio.Task[Reply] | None] = set()  # tasks that wait for no other image any more
        self._pieces: list[str] = []
        self._tail = ""
        self._parses = 0
        self._report(0)

    def hear(self, piece: str | None) -> None:
        """Read what the planner writes while it writes, and begin images whose orders are closed: those are final.

        The number of parses is limited, because a model may write nothing but tags.
        """
        if piece is None:
            self._pieces.clear()
            self._tail = ""
            return
        self._pieces.append(piece)
        self._tail = (self._tail + piece)[-max(TAIL, len(piece)) :]
        if CLOSING_TAG.search(self._tail) is None or self._parses >= 2 * MAX_IMAGES:
            return
        self._tail = ""
        self._parses += 1
        text = scrub("".join(self._pieces))
        ends = [match.end() for match in CLOSING_TAG.finditer(text)]
        if ends:
            self._begin(parse_plan(split_thinking(text[: ends[-1]])[1]))

    def _begin(self, plan: DocumentPlan) -> list[asyncio.Task[Reply]]:
        """Return the tasks of a plan's images in their order; begin those that are not begun yet."""
        tasks: list[asyncio.Task[Reply]] = []
        for index, part in enumerate(plan.parts):
            if isinstance(part, ImageOrder):
                key = plan.parts[: index + 1]
                if key not in self._tasks:
                    self._tasks[key] = asyncio.ensure_future(self._draw_image(plan, part, tuple(tasks)))
                tasks.append(self._tasks[key])
        self._report(len(tasks))
        return tasks

    async def _draw_image(
        self, plan: DocumentPlan, order: ImageOrder, earlier: tuple[asyncio.Task[Reply], ...]
    ) -> Reply:
        TEXT_LISTENER.set(None)
        numbers = range(1, len(earlier) + 1) if order.uses is None else order.uses
        used = {number: await asyncio.shield(earlier[number - 1]) for number in numbers}
        failed = next((reply for reply in used.values() if reply.outcome == "failed"), None)
        if failed is not None:
            return Reply("failed", reason=f"image {len(earlier) + 1} uses one that failed: {failed.reason}")
        self._requested.add(asyncio.current_task())
        reply = await self._draw(plan, order, used)
        self._drawn += 1
        self._report(len(self._tasks))
        return reply

    async def finish(self, plan: DocumentPlan) -> tuple[list[Reply], list[Reply]]:
        """Return the images of the final plan in their order, and those that were begun for earlier versions of it."""
        tasks = self._begin(plan)
        wasted = await self._give_up([task for task in self._tasks.values() if task not in tasks])
        await asyncio.gather(*tasks, return_exceptions=True)
        return [task.result() for task in tasks], wasted

    async def stop(self) -> list[Reply]:
        """Draw nothing more, and return what was requested: it may have to be paid for.

        If the command itself is being cancelled, nothing is awaited.
        """
        current = asyncio.current_task()
        if current is not None and current.cancelling():
            self._requested.clear()
        return await self._give_up(list(self._tasks.values()))

    async def _give_up(self, tasks: Sequence[asyncio.Task[Reply]]) -> list[Reply]:
        """Cancel the tasks that have not sent their request yet, and return the replies of the others."""
        for task in tasks:
            if task not in self._requested:
                task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        return [result for result in results if isinstance(result, Reply)]

    def _report(self, planned: int) -> None:
        if self._listener is not None:
            self._listener(WeaverProgress(self._drawn, planned, time.monotonic() - self._start))


def _images_in(messages: Sequence[Message]) -> list[Image]:
    return [part for message in messages for part in message.parts if isinstance(part, Image)]


def _without_label(part: Part) -> Part:
    if isinstance(part, Image):
        return replace(part, label=None)
    return part


def _document_before(plan: DocumentPlan, order: ImageOrder, used: Mapping[int, Image | None]) -> list[Part]:
    """Return the document up to an order, with the images that it uses; others are named by their number."""
    parts: list[Part] = []
    number = 0
    for part in plan.parts:
        if part is order:
            break
        if isinstance(part, str):
            parts.append(Text(part.strip()))
            continue
        number += 1
        image = used.get(number)
        if image is None:
            parts.append(Text(f"[picture {number}]"))
        else:
            parts.append(_without_label(image))
    return parts


def _assemble(plan: DocumentPlan, drawn: Sequence[Reply]) -> tuple[list[Part], list[str]]:
    """Return texts and images in their order, and notes about missing images."""
    parts: list[Part] = []
    notes: list[str] = []
    number = 0
    for part in plan.parts:
        if isinstance(part, str):
            parts.append(Text(part))
            continue
        reply = drawn[number]
        number += 1
        if reply.last_image is not None:
            parts.append(_without_label(reply.last_image))
        else:
            notes.append(f"image {number} is missing ({reply.outcome}: {reply.reason})")
    return parts, notes
