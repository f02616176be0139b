"""One model that answers requests: the bytes of a chat completion request in, the bytes of an answer out."""

import asyncio
import os
import socket
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct

from weft.calls.sending import call_foreign, check_reply, scrub_message
from weft.errors import message_of
from weft.models.adapt import adapt_messages_async
from weft.models.batching import BatchCounts
from weft.models.call_settings import OWN_SETTINGS, AdjustableEndpoint, CallSettings
from weft.models.endpoint import FATAL, CallError, Endpoint, EndpointReply
from weft.models.providers.served_card import ModelCard
from weft.models.registry import resolve_endpoint
from weft.secrets import scrub
from weft.serving.chat import InvalidRequest, format_completion, format_error, read_request
from weft.store.blobs import blobs_folder
from weft.store.memory_blobs import MemoryBlobs
from weft.types import Message, Request
from weft.untrusted import dict_or_empty

STATUS_BY_RETRY = {"no": 422, "rate_limit": 429, "denied": 403}  # HTTP status of a failed call; else 500


class ReplicaSpec(Struct, frozen=True):
    """The model to serve, as the user named it; sent to the processes of replicas."""

    model: str
    options: Mapping[str, Any]
    served_name: str  # the model's name in requests and answers
    home: str = ".weft"
    folder: str = ""  # the folder that relative paths are resolved in
    config: Mapping[str, Any] = {}  # of weft.toml
    ignored_settings: tuple[str, ...] = ()  # that a request may have and that change nothing


class ReplicaResponse(Struct, frozen=True):
    """An HTTP answer of a replica."""

    status: int
    body: bytes
    replica: str = ""  # which replica answered; empty if none did
    counters: Mapping[str, float] = {}  # what that replica has done so far, by name


class Replica:
    def __init__(self, spec: ReplicaSpec) -> None:
        if spec.folder:
            os.chdir(spec.folder)
        self._spec = spec
        self._blobs = MemoryBlobs(blobs_folder(Path(spec.home).absolute()))
        self._endpoint: Endpoint = resolve_endpoint(spec.model, self._blobs, spec.options, spec.config)
        self._fatal_error = ""
        self._in_flight = 0
        self.replica_id = f"{socket.gethostname()}:{os.getpid()}"
        self.card = _build_card(self._endpoint, spec.ignored_settings)

    @property
    def status_line(self) -> str:
        return self._endpoint.status_line

    async def load(self) -> None:
        """Load the weights. What only a program's end raises, such as SystemExit, becomes a CallError."""
        task = asyncio.current_task()
        try:
            await self._endpoint.load()
        except Exception:
            raise
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise
            problem = f"{self._endpoint.name} raised {type(error).__name__}: {message_of(error)}"
            raise CallError(scrub_message(problem), FATAL) from None

    def check(self) -> None:
        """Raise RuntimeError if the model cannot answer any more."""
        if self._fatal_error:
            raise RuntimeError(self._fatal_error)

    async def answer(self, body: bytes) -> ReplicaResponse:
        self._in_flight += 1
        try:
            status, answer = await self._answer(body)
        finally:
            self._in_flight -= 1
        return ReplicaResponse(status, answer, self.replica_id, self.counters)

    @property
    def counters(self) -> Mapping[str, float]:
        """What this replica does and has done, by name, for `/metrics`."""
        counters = {"in_flight": float(self._in_flight), "images_held": float(len(self._blobs))}
        batches: Any = getattr(self._endpoint, "batch_counts", None)
        if isinstance(batches, BatchCounts):
            counters |= {
                "batches": batches.batches,
                "batch_calls": batches.calls,
                "largest_batch": batches.largest,
                "busy_seconds": batches.seconds,
            }
        return counters

    async def _answer(self, body: bytes) -> tuple[int, bytes]:
        """Return status and body. Every error becomes an answer; a fatal one also makes `check` fail."""
        name = self._spec.served_name
        with self._blobs.hold():
            try:
                served = await asyncio.to_thread(read_request, body, self._blobs, self.card, name)
                request = served.request
                unsupported = self.card.gives.unsupported_reason(request.modality)
                if unsupported:
                    raise InvalidRequest(unsupported)
                takes = self.card.takes.for_modality(request.modality)
                messages = await adapt_messages_async(served.messages, takes, self._blobs)
                reply = await self._send(messages, request, served.settings)
                formatting = partial(format_completion, reply, name, self._blobs, text_content=served.text_content)
                return 200, await asyncio.to_thread(formatting)
            except InvalidRequest as error:
                return 400, format_error(scrub(str(error)), "invalid_request_error")
            except CallError as error:
                if error.retry.kind == "fatal":
                    self._fatal_error = str(error)
                    return 500, format_error(str(error), "model_lost")
                status = STATUS_BY_RETRY.get(error.retry.kind, 500)
                return status, format_error(str(error), "model_error")
            except Exception as error:
                problem = f"{type(error).__name__}: {message_of(error)}"
                return 422, format_error(scrub_message(problem), "model_error")

    async def _send(self, messages: tuple[Message, ...], request: Request, settings: CallSettings) -> EndpointReply:
        """Return a reply whose fields have their types. Raises CallError, without secrets, for all else."""
        name = self._endpoint.name
        if settings == OWN_SETTINGS or not isinstance(self._endpoint, AdjustableEndpoint):
            reply = await call_foreign(name, self._endpoint.send, messages, request)
        else:
            reply = await call_foreign(name, self._endpoint.send_with, messages, request, settings)
        return await check_reply(self._endpoint, reply)

    async def close(self) -> None:
        await self._endpoint.close()


def _build_card(endpoint: Endpoint, ignored_settings: tuple[str, ...]) -> ModelCard:
    seed = dict_or_empty(endpoint.identity.get("parameters")).get("seed", 0)
    if not isinstance(seed, int):
        seed = 0
    concurrency = endpoint.concurrency or 1
    request_settings: tuple[str, ...] = ()
    if isinstance(endpoint, AdjustableEndpoint):
        request_settings = tuple(name for name in endpoint.request_settings if name not in ignored_settings)
    return ModelCard(
        endpoint.name,
        endpoint.identity,
        endpoint.takes,
        endpoint.gives,
        concurrency,
        seed,
        request_settings=request_settings,
        ignored_settings=ignored_settings,
    )
