"""A local model as an endpoint: calls run in batches, images go into the store, and what a class cannot do is an
outcome."""

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from weft.errors import UserError
from weft.models.batching import BatchQueue, BatchWorker
from weft.models.call_settings import OWN_SETTINGS, CallSettings
from weft.models.endpoint import FATAL, NO_RETRY, CallError, Endpoint, EndpointReply
from weft.models.thinking import split_thinking
from weft.store.blobs import Blobs
from weft.types import Gives, Image, Message, Part, Request, StopCause, Takes, Text, Thought, Usage, outcome_of

if TYPE_CHECKING:
    from PIL import Image as Pil

GPU_LOST = ("CUDA error", "device-side assert")  # after these errors nothing works on a GPU any more
TRUNCATED = "the reply was cut at the token limit (option max_tokens)"


class LocalCall(Struct, frozen=True):
    """One call as an engine gets it."""

    messages: tuple[Message, ...]
    request: Request
    seed: int  # of this draw
    modality: Literal["text", "image"]
    settings: CallSettings = OWN_SETTINGS

    @property
    def images(self) -> tuple[Image, ...]:
        return tuple(part for message in self.messages for part in message.parts if isinstance(part, Image))

    @property
    def text(self) -> str:
        return "\n".join(part.text for message in self.messages for part in message.parts if isinstance(part, Text))


class LocalOutput(Struct, frozen=True):
    """The result of one call."""

    parts: "tuple[str | Pil.Image, ...]"
    usage: Usage = Usage()
    truncated: bool = False  # at the token limit
    blocked: str = ""  # why the model's own filter let nothing through
    note: str = ""  # what a reader of the answer must know


LoadEngine = Callable[[Callable[[str], None]], BatchWorker[LocalCall, LocalOutput]]


class LocalEndpoint(Endpoint):
    output_checked = False

    def __init__(
        self,
        name: str,
        blobs: Blobs,
        make: LoadEngine,
        *,
        takes: Takes,
        gives: Gives,
        identity: Mapping[str, Any],
        seed: int,
        batch_sizes: Mapping[str, int],
        needs: str = "",
        note: str = "",
        request_settings: tuple[str, ...] = (),
        licence: str = "",
    ) -> None:
        """`make` loads the weights, and reports its progress to the function it is given.

        `batch_sizes`: calls in a batch by modality. `needs`: why a request without an image cannot be drawn, if so.
        `note`: what a user should know before a run. `request_settings`: the settings that a call may bring along.
        """
        super().__init__(name)
        self.identity = identity
        self.takes = takes
        self.gives = gives
        self._blobs = blobs
        self._seed = seed
        self._batch_sizes = batch_sizes
        self._needs = needs
        self._progress = ""
        self._note = note
        self.licence = licence
        self.request_settings = request_settings
        self._queue: BatchQueue[LocalCall, LocalOutput] = BatchQueue(name, lambda: self._load_engine(make))
        self.wants_batches = True
        self.concurrency = 2 * max(batch_sizes.values())  # while one batch runs, the next is gathered

    def _load_engine(self, make: LoadEngine) -> BatchWorker[LocalCall, LocalOutput]:
        self._set_progress("loading weights")
        try:
            return make(self._set_progress)
        except UserError as error:
            raise CallError(str(error), FATAL) from None
        except Exception as error:
            raise CallError(f"{self.name} could not be loaded: {type(error).__name__}: {error}", FATAL) from error
        finally:
            self._set_progress("")

    def _set_progress(self, text: str) -> None:
        self._progress = text

    @property
    def missing_setup(self) -> str:
        return self._note

    @property
    def status_line(self) -> str:
        counts = self._queue.counts
        fitting_sizes = self._queue.fitting_sizes
        phrases: list[str] = []
        if self._progress:
            phrases.append(self._progress)
        if counts.batches and max(self._batch_sizes.values()) > 1:
            phrases.append(f"{counts.batches} batches of {counts.calls / counts.batches:.1f}")
        if fitting_sizes:
            phrases.append(f"no more than {min(fitting_sizes.values())} at once fit in memory")
        return ", ".join(phrases)

    @property
    def batch_counts(self) -> Any:
        return self._queue.counts

    async def load(self) -> None:
        await self._queue.wait_until_loaded()

    async def send(self, messages: tuple[Message, ...], request: Request) -> EndpointReply:
        return await self.send_with(messages, request, OWN_SETTINGS)

    async def send_with(self, messages: tuple[Message, ...], request: Request, settings: CallSettings) -> EndpointReply:
        """Answer with settings of this call's own."""
        modality = "image"
        if request.modality == "text" or not self.gives.image:
            modality = "text"
        call = LocalCall(messages, request, self._seed + request.draw, modality, settings)
        if modality == "image" and self._needs and not call.images:
            return EndpointReply((), "empty", self._needs, served_model=self.name)
        output = await self._run(call)
        if output.blocked:
            return EndpointReply(
                (), "refused", output.blocked, served_model=self.name, usage=output.usage, stop_cause="blocked"
            )
        parts = await asyncio.to_thread(self._store, output)
        outcome, reason = outcome_of(parts, request.modality)
        stop_cause: StopCause = ""
        if output.truncated:
            stop_cause = "truncated"
            reason = reason or TRUNCATED
        return EndpointReply(
            parts,
            outcome,
            reason or output.note,
            served_model=self.name,
            usage=output.usage,
            stop_cause=stop_cause,
        )

    async def _run(self, call: LocalCall) -> LocalOutput:
        """Run a call in a batch of calls with the same modality, size, settings, and presence of images."""
        kind = (call.modality, bool(call.images), call.request.size, call.settings)
        try:
            return await self._queue.call(call, kind, self._batch_sizes.get(call.modality, 1))
        except CallError:
            raise
        except Exception as error:
            if any(text in str(error) for text in GPU_LOST):
                raise CallError(
                    f"{self.name}: the GPU cannot be used any more by this process: {error}", FATAL
                ) from error
            raise CallError(f"{self.name} raised {type(error).__name__}: {error}", NO_RETRY) from error

    def _store(self, output: LocalOutput) -> tuple[Part, ...]:
        """Return the output as parts: images go into the store, thinking becomes thoughts."""
        parts: list[Part] = []
        for part in output.parts:
            if not isinstance(part, str):
                parts.append(self._blobs.put_pil(part))
                continue
            thinking, text = split_thinking(part)
            if thinking:
                parts.append(Thought(thinking))
            if text:
                parts.append(Text(text if thinking else part))
        return tuple(parts)

    async def close(self) -> None:
        await self._queue.close()
