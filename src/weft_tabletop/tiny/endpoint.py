"""The tiny model as weft calls it: messages in, words or a picture out. It takes 64 x 64 pictures and a closed
vocabulary; a request with other words is answered as well as it can be, with a note on the reply that says which."""

import functools
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.errors import UserError
from weft.models.endpoint import NO_RETRY, CallError, Endpoint, EndpointReply
from weft.models.function import run_in_thread
from weft.store.blobs import Blobs
from weft.types import Image, Message, Part, Request, Text, outcome_of
from weft_tabletop.strategy_words import TablePhrasing
from weft_tabletop.tiny import prompt

if TYPE_CHECKING:
    from weft_tabletop.tiny.infer import Tiny

SHIPPED = Path(__file__).parent / "data"
SIDE = 64


class TinyEndpoint(Endpoint):
    """`temperature` is that of its pictures; what it says is always what it holds most likely."""

    concurrency = 2
    phrasing = TablePhrasing()

    def __init__(
        self, blobs: Blobs, *, single: bool = False, temperature: float = 0.0, seed: int = 0, weights: Path = SHIPPED
    ) -> None:
        self._blobs = blobs
        self._temperature = temperature
        self._seed = seed
        self._tiny = load(weights, "single" if single else "talker")
        if single:
            name = "tabletop/tiny-single"
        else:
            name = "tabletop/tiny"
        files = [weights / "pictures.safetensors", weights / f"{'single' if single else 'talker'}.safetensors"]
        digest = hashlib.sha256(b"".join(hashlib.sha256(file.read_bytes()).digest() for file in files)).hexdigest()[:16]
        if temperature:
            sampling: dict[str, Any] = {"temperature": temperature, "seed": seed}
        else:
            sampling = {}
        super().__init__(name, weights=digest, template=prompt.TEMPLATE, **sampling)
        self._codes: dict[str, list[int]] = {}

    async def send(self, messages: tuple[Message, ...], want: Request) -> EndpointReply:
        try:
            parts: tuple[Part, ...] = await run_in_thread(self._reply, messages, want)
        except UserError as error:
            raise CallError(str(error), NO_RETRY) from None
        outcome, reason = outcome_of(parts, want.modality)
        unknown = prompt.unknown_words(messages)
        if unknown:
            if reason:
                reason = f"{reason}; "
            else:
                reason = ""
            reason += f"outside its vocabulary: {', '.join(unknown[:8])}{' and more' if len(unknown) > 8 else ''}"
        return EndpointReply(parts, outcome, reason, served_model=self.name)

    def _reply(self, messages: tuple[Message, ...], want: Request) -> tuple[Part, ...]:
        items = [item if isinstance(item, int) else self._code(item) for item in prompt.prompt(messages)]
        said = self._tiny.reply(
            items,
            one_picture=want.modality != "interleaved",
            temperature=self._temperature,
            seed=self._seed + want.draw,
        )
        return tuple(Text(part) if isinstance(part, str) else self._draw(part) for part in said.parts)

    def _draw(self, codes: Sequence[int]) -> Image:
        return self._blobs.put_pil(self._tiny.picture(codes), durable=False)

    def _code(self, image: Image) -> Sequence[int]:
        if (image.width, image.height) != (SIDE, SIDE):
            raise UserError(
                f"{self.name} takes pictures of {SIDE} x {SIDE}; this one is {image.width} x {image.height}"
            )
        if image.digest not in self._codes:
            self._codes[image.digest] = self._tiny.codes(self._blobs.decode(image))
        return self._codes[image.digest]


@functools.cache
def load(weights: Path, talker: str) -> "Tiny":
    """The model, once a process. Its products are small: a second BLAS thread in each call would only get in the way of
    the others."""
    from threadpoolctl import threadpool_limits  # pyright: ignore[reportMissingTypeStubs]

    from weft_tabletop.tiny.infer import Tiny

    made = Tiny(weights, talker)
    threadpool_limits(limits=1, user_api="blas")
    return made
