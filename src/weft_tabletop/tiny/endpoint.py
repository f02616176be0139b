"""The tiny model as weft calls it: messages in, words or an image out. It takes images of 64 x 64 pixels and a closed
vocabulary. A request with other words is answered as well as it can be, with a note on the reply that says which."""

import functools
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.errors import UserError
from weft.models.endpoint import NO_RETRY, CallError, Endpoint, EndpointReply
from weft.models.function import run_in_thread
from weft.store.blobs import Blobs
from weft.types import Image, ImageInput, Message, Part, Request, Takes, Text, Usage, outcome_of
from weft_tabletop.strategy_words import TablePhrasing
from weft_tabletop.tiny import prompt, vocab
from weft_tabletop.tiny.rows import unroll_row
from weft_tabletop.tiny.weights import IMAGE_NETWORK_FILE
from weft_tabletop.weaver.latents import complete_codes
from weft_tabletop.weaver.world import WORLDS

if TYPE_CHECKING:
    from weft_tabletop.tiny.infer import Tiny

SHIPPED = Path(__file__).parent / "data"
MAX_LISTED_WORDS = 8


class TinyEndpoint(Endpoint):
    """`temperature` is that of its images; its words are always the most likely ones. `single` is the model that was
    trained on single turns alone."""

    concurrency = 2
    phrasing = TablePhrasing()

    def __init__(
        self,
        blobs: Blobs,
        *,
        single: bool = False,
        temperature: float = 0.0,
        seed: int = 0,
        weights: Path = SHIPPED,
        images: ImageInput = "interleaved",
    ) -> None:
        talker = "single" if single else "talker"
        name = "tabletop/tiny-single" if single else "tabletop/tiny"
        sampling: dict[str, Any] = {"temperature": temperature, "seed": seed} if temperature else {}
        files = [weights / IMAGE_NETWORK_FILE, weights / f"{talker}.safetensors"]
        for file in files:
            if not file.is_file():
                raise UserError(f"{file}: there are no weights; `weft train tiny` makes them")
        digest = digest_files(files)
        self._tiny = load(weights, talker, digest)
        if self._tiny.world not in WORLDS:
            raise UserError(
                f"{weights}: these weights are of a world {self._tiny.world!r}, which this weft does not know"
            )
        super().__init__(name, weights=digest, template=prompt.TEMPLATE, **sampling)
        self.takes = Takes(images=images)
        self._blobs = blobs
        self._temperature = temperature
        self._seed = seed
        self._codes: dict[str, list[int]] = {}  # by image digest

    async def send(self, messages: tuple[Message, ...], request: Request) -> EndpointReply:
        if self.takes.images == "strip":
            messages = unroll_row(messages, self._blobs)
        try:
            parts, usage = await run_in_thread(self._reply, messages, request)
        except UserError as error:
            raise CallError(str(error), NO_RETRY) from None
        outcome, reason = outcome_of(parts, request.modality)
        notes = [reason] if reason else []
        unknown = prompt.unknown_words(messages)
        if unknown:
            more = " and more" if len(unknown) > MAX_LISTED_WORDS else ""
            notes.append(f"outside its vocabulary: {', '.join(unknown[:MAX_LISTED_WORDS])}{more}")
        return EndpointReply(parts, outcome, "; ".join(notes), served_model=self.name, usage=usage)

    def _reply(self, messages: tuple[Message, ...], request: Request) -> tuple[tuple[Part, ...], Usage]:
        items = [item if isinstance(item, int) else self._encode(item) for item in prompt.build_prompt(messages)]
        reply = self._tiny.reply(
            items,
            one_image=request.modality != "interleaved",
            temperature=self._temperature,
            seed=self._seed + request.draw,
        )
        parts = tuple(Text(part) if isinstance(part, str) else self._decode(part) for part in reply.parts)
        return parts, Usage(reply.tokens_in, reply.tokens_out)

    def _decode(self, codes: Sequence[int]) -> Image:
        if len(codes) < vocab.PLACES:
            codes = complete_codes(WORLDS[self._tiny.world], codes)
        return self._blobs.put_pil(self._tiny.decode_image(codes), durable=False)

    def _encode(self, image: Image) -> Sequence[int]:
        side = vocab.SIDE
        if (image.width, image.height) != (side, side):
            raise UserError(f"{self.name} takes images of {side} x {side}; this one is {image.width} x {image.height}")
        if image.digest not in self._codes:
            codes = self._tiny.encode_image(self._blobs.decode(image))
            self._codes[image.digest] = [codes[place] for place in WORLDS[self._tiny.world].places()]
        return self._codes[image.digest]


def digest_files(files: Sequence[Path]) -> str:
    digests = b"".join(hashlib.sha256(file.read_bytes()).digest() for file in files)
    return hashlib.sha256(digests).hexdigest()[:16]


@functools.cache
def load(weights: Path, talker: str, digest: str = "") -> "Tiny":
    """Load the model, once a process; weights with another digest are loaded again.

    Its matrix products are small: a second BLAS thread in each call would only get in the way of other calls.
    """
    from threadpoolctl import threadpool_limits  # pyright: ignore[reportMissingTypeStubs]

    from weft_tabletop.tiny.infer import Tiny

    tiny = Tiny(weights, talker)
    threadpool_limits(limits=1, user_api="blas")
    return tiny
