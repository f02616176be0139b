"""A local model as an endpoint: calls are gathered into batches, pictures go into the store, and what a class cannot do
is an outcome."""

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from weft.errors import UserError
from weft.models.batching import BatchQueue, BatchWorker
from weft.models.endpoint import FATAL, NO_RETRY, CallError, Endpoint, EndpointReply
from weft.models.thinking import split_thinking
from weft.store.blobs import Blobs
from weft.types import Gives, Image, Message, Part, Request, Takes, Text, Thought, Usage, outcome_of

if TYPE_CHECKING:
    from PIL import Image as Pil

LOST = ("CUDA error", "device-side assert")  # after these nothing on a GPU works any more


class LocalCall(Struct, frozen=True):
    messages: tuple[Message, ...]
    want: Request
    seed: int
    modality: Literal["text", "image"]

    @property
    def images(self) -> tuple[Image, ...]:
        return tuple(part for message in self.messages for part in message.parts if isinstance(part, Image))

    @property
    def text(self) -> str:
        return "\n".join(part.text for message in self.messages for part in message.parts if isinstance(part, Text))


class LocalOutput(Struct, frozen=True):
    """What came of one call. `blocked`: why a filter of the model's own let nothing through."""

    parts: "tuple[str | Pil.Image, ...]"
    usage: Usage = Usage()
    truncated: bool = False
    blocked: str = ""
    note: str = ""  # what a reader of the answer must know


class LocalEndpoint(Endpoint):
    output_checked = False

    def __init__(
        self,
        name: str,
        blobs: Blobs,
        make: "Callable[[Callable[[str], None]], BatchWorker[LocalCall, LocalOutput]]",
        *,
        takes: Takes,
        gives: Gives,
        identity: Mapping[str, Any],
        seed: int,
        most: Mapping[str, int],
        needs: str = "",
        note: str = "",
    ) -> None:
        """`make` loads the weights, and tells how far it is. `most`: calls in a batch, by what is wanted. `needs`: why
        it can draw nothing where there is no picture, if so. `note`: what a user should know before a run."""
        super().__init__(name)
        self.identity = identity
        self.takes = takes
        self.gives = gives
        self._blobs = blobs
        self._seed = seed
        self._most = most
        self._needs = needs
        self._told = ""
        self._note = note
        self._gatherer: BatchQueue[LocalCall, LocalOutput] = BatchQueue(name, lambda: self._loaded(make))
        # while one batch is at work, the next one comes together
        self.wants_batches = True
        self.concurrency = 2 * max(most.values())

    def _loaded(
        self, make: "Callable[[Callable[[str], None]], BatchWorker[LocalCall, LocalOutput]]"
    ) -> "BatchWorker[LocalCall, LocalOutput]":
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
    def missing_setup(self) -> str:
        return self._note

    @property
    def status_line(self) -> str:
        done = self._gatherer.counts
        smaller = self._gatherer.fitting_sizes
        words = [self._told] if self._told else []
        words += (
            [f"{done.batches} batches of {done.calls / done.batches:.1f}"]
            if done.batches and max(self._most.values()) > 1
            else []
        )
        words += [f"no more than {min(smaller.values())} at once fit in memory"] if smaller else []
        return ", ".join(words)

    @property
    def batch_counts(self) -> Any:
        return self._gatherer.counts

    async def load(self) -> None:
        await self._gatherer.wait_until_loaded()

    async def send(self, messages: tuple[Message, ...], want: Request) -> EndpointReply:
        if want.modality == "text" or not self.gives.image:
            wanted = "text"
        else:
            wanted = "image"
        asked = LocalCall(messages, want, self._seed + want.draw, wanted)
        if wanted == "image" and self._needs and not asked.images:
            return EndpointReply((), "empty", self._needs, served_model=self.name)
        try:
            made = await self._gatherer.call(asked, (wanted, bool(asked.images), want.size), self._most.get(wanted, 1))
        except CallError:
            raise
        except Exception as error:
            if any(word in str(error) for word in LOST):
                raise CallError(
                    f"{self.name}: the GPU cannot be used any more by this process: {error}", FATAL
                ) from error
            raise CallError(f"{self.name} raised {type(error).__name__}: {error}", NO_RETRY) from error
        if made.blocked:
            return EndpointReply(
                (), "refused", made.blocked, served_model=self.name, usage=made.usage, stop_cause="blocked"
            )
        parts = await asyncio.to_thread(self._kept, made)
        outcome, reason = outcome_of(parts, want.modality)
        if made.truncated:
            cut = "the reply was cut at the token limit (option max_tokens)"
        else:
            cut = ""
        return EndpointReply(
            parts,
            outcome,
            reason or cut or made.note,
            "",
            self.name,
            made.usage,
            stop_cause="truncated" if made.truncated else "",
        )

    def _kept(self, made: LocalOutput) -> tuple[Part, ...]:
        parts: list[Part] = []
        for part in made.parts:
            if isinstance(part, str):
                thought, said = split_thinking(part)
                parts += [Thought(thought)] if thought else []
                parts += [Text(said if thought else part)] if said else []
            else:
                parts.append(self._blobs.put_pil(part))
        return tuple(parts)

    async def close(self) -> None:
        await self._gatherer.close()
