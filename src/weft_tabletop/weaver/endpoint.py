"""Planner and visualizer as weft calls them.

    tabletop/planner, tabletop/planner-und    a request in; words, and orders in the form of `compose/imagine.py`, out
    tabletop/visualizer                       an order and the images that it names in; an image out

The visualizer reads an order through the states of the planner that it was trained on: its weights name that planner,
whose file stands beside them. The option `planner` reads through another one. Between the two pass only messages.
"""

import functools
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from weft.errors import UserError
from weft.models.compose.phrasing import English
from weft.models.endpoint import NO_RETRY, CallError, Endpoint, EndpointReply
from weft.models.function import run_in_thread
from weft.store.blobs import Blobs
from weft.types import Image, Message, Request, Text, Usage, outcome_of
from weft_tabletop.strategy_words import TablePhrasing
from weft_tabletop.tiny import prompt, vocab
from weft_tabletop.tiny.endpoint import MAX_LISTED_WORDS, digest_files, load
from weft_tabletop.tiny.endpoint import SHIPPED as TINY
from weft_tabletop.weaver import words
from weft_tabletop.weaver.files import PLANNER_FILE, SHIPPED, VISUALIZER_FILE, find_file, find_planner
from weft_tabletop.weaver.latents import NUMBERS, decode_cells, split_codes, to_numbers
from weft_tabletop.weaver.sizes import MAX_IMAGES
from weft_tabletop.weaver.world import TableWorld
from weft_tabletop.world.language import parse

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from weft_tabletop.weaver.infer import NumpyPlanner, NumpyVisualizer


class OrderPhrasing(TablePhrasing):
    """How the visualizer is asked: a planner's order, with the images that it names."""

    def image_request(self, order: str, images: Sequence[Image]) -> tuple[Message, ...]:
        request = parse(order)
        named = len(request.images) if request is not None else 0
        shown = images[-named:] if named else ()
        return (Message("user", (*shown, Text(order))),)


class ImageReader:
    """Images as numbers, each encoded once."""

    def __init__(self, blobs: Blobs, world: TableWorld, name: str) -> None:
        self._blobs = blobs
        self._world = world
        self._name = name
        self._codes: dict[str, list[int]] = {}  # by digest

    def read(self, images: Sequence[Image]) -> "NDArray[np.float32]":
        import numpy as np

        if len(images) > MAX_IMAGES:
            raise UserError(f"{self._name} takes {MAX_IMAGES} images at most; this request shows {len(images)}")
        shown = np.zeros((len(images), len(self._world.cells), NUMBERS), np.float32)
        for number, image in enumerate(images):
            shown[number] = to_numbers(split_codes(self._encode(image))[self._world.places()])
        return shown

    def _encode(self, image: Image) -> list[int]:
        side = vocab.SIDE
        if (image.width, image.height) != (side, side):
            raise UserError(f"{self._name} takes images of {side} x {side}; this one is {image.width} x {image.height}")
        if image.digest not in self._codes:
            self._codes[image.digest] = load(TINY, "talker").encode_image(self._blobs.decode(image))
        return self._codes[image.digest]


class PlannerEndpoint(Endpoint):
    """`weights` is a file, or a folder with `planner.safetensors`."""

    concurrency = 2
    phrasing = English()

    def __init__(self, blobs: Blobs, *, name: str = "tabletop/planner", weights: Path = SHIPPED) -> None:
        file = find_file(weights, PLANNER_FILE)
        digest = digest_files([file])
        self._planner = load_planner(file, digest)
        super().__init__(name, weights=digest, template=words.TEMPLATE)
        self._reader = ImageReader(blobs, self._planner.world, name)

    async def send(self, messages: tuple[Message, ...], request: Request) -> EndpointReply:
        try:
            text, usage = await run_in_thread(self._reply, messages)
        except UserError as error:
            raise CallError(str(error), NO_RETRY) from None
        parts = (Text(text),) if text else ()
        outcome, reason = outcome_of(parts, "text")
        return EndpointReply(parts, outcome, _join_notes(reason, messages), served_model=self.name, usage=usage)

    def _reply(self, messages: tuple[Message, ...]) -> tuple[str, Usage]:
        simple = prompt.simplify_messages(messages)
        tokens, images = words.encode_request(simple, len(self._planner.world.cells))
        written = self._planner.reply(tokens, self._reader.read(images))
        return words.decode_plan(written), Usage(len(tokens), len(written))


class VisualizerEndpoint(Endpoint):
    """`weights` is a folder with `visualizer.safetensors`. `planner`, a file or a folder, reads the orders in place of
    the planner that the weights name."""

    concurrency = 2
    phrasing = OrderPhrasing()

    def __init__(
        self,
        blobs: Blobs,
        *,
        name: str = "tabletop/visualizer",
        weights: Path = SHIPPED,
        planner: Path | None = None,
        seed: int = 0,
    ) -> None:
        file = find_file(weights, VISUALIZER_FILE)
        self._visualizer = load_visualizer(file, digest_files([file]))
        if planner is None:
            reader = find_planner(file, self._visualizer.planner_digest)
        else:
            reader = find_file(planner, PLANNER_FILE)
        self._planner = load_planner(reader, digest_files([reader]))
        world = self._visualizer.world
        if self._planner.world != world or self._planner.width != self._visualizer.planner_width:
            raise UserError(f"{reader}: this planner is not of the size or the world of {file}")
        super().__init__(name, weights=digest_files([file, reader]), template=words.TEMPLATE, seed=seed)
        self._world = world
        self._seed = seed
        self._blobs = blobs
        self._reader = ImageReader(blobs, world, name)

    async def send(self, messages: tuple[Message, ...], request: Request) -> EndpointReply:
        if request.modality == "text":
            return EndpointReply((), "empty", "a visualizer writes no words", served_model=self.name)
        try:
            image = await run_in_thread(self._draw, messages, request)
        except UserError as error:
            raise CallError(str(error), NO_RETRY) from None
        usage = Usage(0, len(self._world.cells))
        return EndpointReply((image,), "answered", _join_notes("", messages), served_model=self.name, usage=usage)

    def _draw(self, messages: tuple[Message, ...], request: Request) -> Image:
        import numpy as np

        order, images = _read_order(prompt.simplify_messages(messages))
        cells = len(self._world.cells)
        shown = self._reader.read(images)
        tokens = words.encode_order(order, len(images), cells)
        states = self._planner.states(tokens, shown)[words.find_order(len(images), cells) :]
        content = zlib.crc32(np.array(tokens, np.int32).tobytes())
        rng = np.random.default_rng([self._seed, request.draw, content])
        noise = rng.standard_normal((cells, NUMBERS), dtype=np.float32)
        numbers = self._visualizer.draw(noise, shown, states)
        return self._blobs.put_pil(decode_cells(load(TINY, "talker"), self._world, numbers), durable=False)


def _read_order(messages: tuple[Message, ...]) -> tuple[str, list[Image]]:
    """The words of the last message, and its images."""
    parts = messages[-1].parts if messages else ()
    images = [part for part in parts if isinstance(part, Image)]
    return " ".join(part.text for part in parts if isinstance(part, Text)), images


def _join_notes(reason: str, messages: tuple[Message, ...]) -> str:
    unknown = prompt.unknown_words(messages)
    notes = [reason] if reason else []
    if unknown:
        more = " and more" if len(unknown) > MAX_LISTED_WORDS else ""
        notes.append(f"outside its vocabulary: {', '.join(unknown[:MAX_LISTED_WORDS])}{more}")
    return "; ".join(notes)


@functools.cache
def load_planner(file: Path, digest: str) -> "NumpyPlanner":
    """Load a planner, once a process; a file with another digest is loaded again."""
    from weft_tabletop.weaver.infer import NumpyPlanner

    return NumpyPlanner(file)


@functools.cache
def load_visualizer(file: Path, digest: str) -> "NumpyVisualizer":
    """Load a visualizer, once a process; a file with another digest is loaded again."""
    from weft_tabletop.weaver.infer import NumpyVisualizer

    return NumpyVisualizer(file)
