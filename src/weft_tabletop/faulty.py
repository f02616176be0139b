"""A model whose answers have known faults: the oracle's answers, spoilt in one of eight ways (`faults.py`), drawn at
any size."""

import asyncio
import hashlib
from collections.abc import Sequence
from random import Random
from typing import Any

import msgspec

from weft.models.baselines import UncachedEndpoint
from weft.models.endpoint import EndpointReply
from weft.store.blobs import Blobs
from weft.types import Image, Message, Part, Request, Text, outcome_of
from weft_tabletop.faults import (
    FAULTS,
    LINES,
    Fault,
    blur,
    build_rng,
    fault_of,
    restyle,
    spoil_scene,
    spoil_text,
    stamp_line,
)
from weft_tabletop.oracle import Oracle
from weft_tabletop.world.large import add_camera_noise, draw_large
from weft_tabletop.world.listening import answer_style, read_request
from weft_tabletop.world.readings import read_image
from weft_tabletop.world.scenes import SIDE, Scene

# faults that all images of a document have; of other faults one image has them
WHOLE_DOCUMENT: tuple[Fault, ...] = ("half", "all", "blurred", "blank")
WRAPPERS = (("<think> ", " </think>"), ("Final Answer: ", ""))


class Faulty(UncachedEndpoint):
    """The fault of an answer depends on `seed` and on the turn. With a `rate`, that share of the answers has one,
    whatever the turn is: it depends on `seed` and on the request.

    `stamp` and `says` add a line to images and to texts: one that asks for full marks (`obey`), or one that does not
    (`neutral`). `says` may also be `long` or `markdown`."""

    def __init__(
        self,
        blobs: Blobs,
        seed: int = 0,
        side: int = SIDE,
        stamp: str = "",
        says: str = "",
        rate: float | None = None,
    ) -> None:
        identity: dict[str, Any] = {name: value for name, value in (("stamp", stamp), ("says", says)) if value}
        if rate is not None:
            identity["rate"] = rate
        super().__init__("tabletop/faulty", version=1, seed=seed, side=side, **identity)
        self._rate = rate
        self._oracle = Oracle(blobs)
        self._blobs = blobs
        self._seed = seed
        self._side = side
        self._stamp = stamp
        self._says = says

    async def send(self, messages: tuple[Message, ...], request: Request) -> EndpointReply:
        reply = await self._oracle.send(messages, request)
        if reply.outcome != "answered":
            return reply
        fault, rng = self._choose_fault(messages, request)
        parts = await asyncio.to_thread(self._spoil, reply.parts, messages, fault, rng)
        outcome, reason = outcome_of(parts, request.modality)
        return EndpointReply(parts, outcome, reason, raw=f"fault: {fault}", served_model=self.name)

    def _choose_fault(self, messages: tuple[Message, ...], request: Request) -> tuple[Fault, Random]:
        """The fault of an answer, and the generator of what it changes."""
        turn_ref = request.turn_ref
        if self._rate is None:
            return fault_of(self._seed, turn_ref.sample, turn_ref.turn), build_rng(
                self._seed, turn_ref.sample, turn_ref.turn
            )
        content = msgspec.json.encode([messages, request.modality, request.draw, self._seed])
        rng = Random(hashlib.sha256(content).digest())
        if rng.random() >= self._rate:
            return "none", rng
        return rng.choice([fault for fault in FAULTS if fault != "none"]), rng

    def _spoil(
        self, parts: Sequence[Part], messages: tuple[Message, ...], fault: Fault, rng: Random
    ) -> tuple[Part, ...]:
        prompt, images = read_request(messages)
        before = images[max(images)] if images else None
        spoils_text, spoils_images = _choose_modalities(parts, messages, rng)
        image_indices = [index for index, part in enumerate(parts) if isinstance(part, Image)]
        chosen = rng.choice(image_indices) if image_indices else -1
        spoilt: list[Part] = []
        for index, part in enumerate(parts):
            if isinstance(part, Image):
                is_spoilt = spoils_images and (fault in WHOLE_DOCUMENT or index == chosen)
                spoilt.append(self._redraw(part, before, fault if is_spoilt else "none", rng))
            elif isinstance(part, Text):
                text = _spoil_inner(fault if spoils_text else "none", part.text, prompt, rng)
                spoilt.append(Text(restyle(text, self._says)))
        return tuple(spoilt)

    def _redraw(self, image: Image, before: Image | None, fault: Fault, rng: Random) -> Image:
        """The image with a fault, at this model's size. `before` is the last image that the model was shown."""
        if fault == "input" and before is not None and not self._stamp:
            return before
        if before is not None:
            before_scene = read_image(before, self._blobs).scene
        else:
            before_scene = None
        scene: Scene = spoil_scene(fault, read_image(image, self._blobs).scene, before_scene, rng)
        noise_seed = rng.getrandbits(32)
        drawing = draw_large(scene, self._side)
        if fault == "blurred":
            drawing = blur(drawing)
        drawing = add_camera_noise(drawing, noise_seed)
        if self._stamp:
            drawing = stamp_line(drawing, LINES[self._stamp])
        return self._blobs.put_pil(drawing, durable=False)


def _choose_modalities(parts: Sequence[Part], messages: tuple[Message, ...], rng: Random) -> tuple[bool, bool]:
    """Whether texts and whether images are spoilt: where an answer has to have both, either or both."""
    has_images = any(isinstance(part, Image) for part in parts)
    has_texts = any(isinstance(part, Text) for part in parts)
    if not (has_images and has_texts and answer_style(messages)):
        return True, True
    choice = rng.choice(("texts", "images", "both"))
    return choice != "images", choice != "texts"


def _spoil_inner(fault: Fault, expected: str, prompt: str, rng: Random) -> str:
    """Spoil a text; the markers around an answer stay, since they say what the answer is."""
    for opening, closing in WRAPPERS:
        if expected.startswith(opening) and expected.endswith(closing):
            inner = expected.removeprefix(opening).removesuffix(closing)
            return f"{opening}{spoil_text(fault, inner, prompt, rng)}{closing}"
    return spoil_text(fault, expected, prompt, rng)
