"""A local model as an endpoint: calls are gathered into batches, pictures go into the store, and what a class cannot do is an outcome."""

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from weft.errors import UserError
from weft.models.batching import Gatherer, Work
from weft.models.endpoint import FATAL, NO, CallError, Endpoint, Sent
from weft.models.thinking import parted
from weft.store.blobs import Blobs
from weft.types import Gives, Image, Message, Part, Takes, Text, Thought, Usage, Want, outcome_of

if TYPE_CHECKING:
    from PIL import Image as Pil

LOST = ("CUDA error", "device-side assert")  # after these nothing on a GPU works any more


class Asked(Struct, frozen=True):
    messages: tuple[Message, ...]
    want: Want
    seed: int
    wanted: Literal["text", "image"]

    @property
    def images(self) -> tuple[Image, ...]:
        return tuple(part for message in self.messages for part in message.parts if isinstance(part, Image))

    @property
    def text(self) -> str:
        return "\n".join(part.text for message in self.messages for part in message.parts if isinstance(part, Text))


class Made(Struct, frozen=True):
    """What came of one call. `blocked`: why a filter of the model's own let nothing through."""

    parts: "tuple[str | Pil.Image, ...]"
    usage: Usage = Usage()
    cut: bool = False
    blocked: str = ""
    note: str = ""  # what a reader of the answer must know


class LocalEndpoint(Endpoint):
    foreign = False

    def __init__(
        self,
        name: str,
        blobs: Blobs,
        make: "Callable[[Callable[[str], None]], Work[Asked, Made]]",
        *,
        takes: Takes,
        gives: Gives,
        identity: Mapping[str, Any],
        seed: int,
        most: Mapping[str, int],
        needs: str = "",
        note: str = "",
    ) -> None:
        """`make` loads the weights, and tells how far it is. `most`: calls in a batch, by what is wanted. `needs`: why it can draw nothing
        where there is no picture, if so. `note`: what a user should know before a run."""
        super().__init__(name)
        self.identity, self.takes, self.gives = identity, takes, gives
        self._blobs, self._seed, self._most, self._needs = blobs, seed, most, needs
        self._told, self._note = "", note
        self._gatherer: Gatherer[Asked, Made] = Gatherer(name, lambda: self._loaded(make))
        self.gathers, self.concurrency = True, 2 * max(most.values())  # while one batch is at work, the next one comes together

    def _loaded(self, make: "Callable[[Callable[[str], None]], Work[Asked, Made]]") -> "Work[Asked, Made]":
        self._say("loading weights")
        try:
            return make(self._say)
        except UserError as error:
            raise CallError(str(error), FATAL) from None
        except Exception as error:
            raise CallError(f"{self.name} could not be loaded: {type(error).__name__}: {error}", FATAL) from error
        finally:
            self._say("")

    def _say(self, told: str) -> None:
        self._told = told

    @property
    def missing(self) -> str:
        return self._note

    @property
    def standing(self) -> str:
        done, smaller = self._gatherer.done, self._gatherer.smaller
        words = [self._told] if self._told else []
        words += [f"{done.batches} batches of {done.calls / done.batches:.1f}"] if done.batches and max(self._most.values()) > 1 else []
        words += [f"no more than {min(smaller.values())} at once fit in memory"] if smaller else []
        return ", ".join(words)

    @property
    def measured(self) -> Any:
        return self._gatherer.done

    async def load(self) -> None:
        await self._gatherer.begin()

    async def send(self, messages: tuple[Message, ...], want: Want) -> Sent:
        wanted = "text" if want.kind == "text" or not self.gives.image else "image"
        asked = Asked(messages, want, self._seed + want.draw, wanted)
        if wanted == "image" and self._needs and not asked.images:
            return Sent((), "empty", self._needs, served=self.name)
        try:
            made = await self._gatherer.ask(asked, (wanted, bool(asked.images), want.size), self._most.get(wanted, 1))
        except CallError:
            raise
        except Exception as error:
            if any(word in str(error) for word in LOST):
                raise CallError(f"{self.name}: the GPU cannot be used any more by this process: {error}", FATAL) from error
            raise CallError(f"{self.name} raised {type(error).__name__}: {error}", NO) from error
        if made.blocked:
            return Sent((), "refused", made.blocked, served=self.name, usage=made.usage, ended="blocked")
        parts = await asyncio.to_thread(self._kept, made)
        outcome, reason = outcome_of(parts, want.kind)
        cut = "the reply was cut at the token limit (option max_tokens)" if made.cut else ""
        return Sent(parts, outcome, reason or cut or made.note, "", self.name, made.usage, ended="truncated" if made.cut else "")

    def _kept(self, made: Made) -> tuple[Part, ...]:
        parts: list[Part] = []
        for part in made.parts:
            if isinstance(part, str):
                thought, said = parted(part)
                parts += [Thought(thought)] if thought else []
                parts += [Text(said if thought else part)] if said else []
            else:
                parts.append(self._blobs.put_picture(part))
        return tuple(parts)

    async def close(self) -> None:
        await self._gatherer.close()
