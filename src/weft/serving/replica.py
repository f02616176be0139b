"""One model at work behind a door: a request's bytes in, an answer's bytes out."""

import asyncio
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from weft.models.adapt import adapt_messages_async
from weft.models.endpoint import CallError, Endpoint
from weft.models.registry import resolve_endpoint
from weft.secrets import scrub
from weft.serving.chat import InvalidRequest, ModelCard, format_completion, format_error, read_request
from weft.store.blobs import blobs_folder
from weft.store.memory_blobs import MemoryBlobs
from weft.untrusted import dict_or_empty


class ReplicaSpec(Struct, frozen=True):
    """What is served, as a user says it."""

    model: str
    options: Mapping[str, Any]
    served_name: str  # the name it has in answers
    home: str = ".weft"
    folder: str = ""  # that relative paths are of
    config: Mapping[str, Any] = {}


class ReplicaResponse(Struct, frozen=True):
    """`facts`: how much the replica has done so far, for those who measure."""

    status: int
    body: bytes
    replica: str = ""
    counters: Mapping[str, float] = {}


class Replica:
    def __init__(self, job: ReplicaSpec) -> None:
        if job.folder:
            os.chdir(job.folder)
        self._job = job
        self._blobs = MemoryBlobs(blobs_folder(Path(job.home).absolute()))
        self._endpoint: Endpoint = resolve_endpoint(job.model, self._blobs, job.options, job.config)
        self._lost = ""
        self._in_flight = 0
        self.replica_id = f"{socket.gethostname()}:{os.getpid()}"
        one = self._endpoint
        seed = dict_or_empty(one.identity.get("parameters")).get("seed", 0)
        at_once = one.concurrency or 1
        self.card = ModelCard(
            one.name, one.identity, one.takes, one.gives, at_once, seed if isinstance(seed, int) else 0
        )

    @property
    def status_line(self) -> str:
        return self._endpoint.status_line

    async def load(self) -> None:
        await self._endpoint.load()

    def check(self) -> None:
        """Raises where nothing works any more."""
        if self._lost:
            raise RuntimeError(self._lost)

    async def answer(self, body: bytes) -> ReplicaResponse:
        self._in_flight += 1
        try:
            status, made = await self._answered(body)
        finally:
            self._in_flight -= 1
        return ReplicaResponse(status, made, self.replica_id, self.counters)

    @property
    def counters(self) -> Mapping[str, float]:
        done: Any = getattr(self._endpoint, "batch_counts", None)
        told = {"in_flight": float(self._in_flight), "pictures_held": float(len(self._blobs))}
        if done is not None:
            told |= {
                "batches": done.batches,
                "batch_calls": done.calls,
                "largest_batch": done.largest,
                "busy_seconds": done.seconds,
            }
        return told

    async def _answered(self, body: bytes) -> tuple[int, bytes]:
        with self._blobs.hold():
            try:
                messages, want = await asyncio.to_thread(
                    read_request, body, self._blobs, self.card, self._job.served_name
                )
                if lacks := self.card.gives.unsupported_reason(want.modality):
                    raise InvalidRequest(lacks)
                messages = await adapt_messages_async(
                    messages, self.card.takes.for_modality(want.modality), self._blobs
                )
                sent = await self._endpoint.send(messages, want)
                return 200, await asyncio.to_thread(format_completion, sent, self._job.served_name, self._blobs)
            except InvalidRequest as refused:
                return 400, format_error(scrub(str(refused)), "invalid_request_error")
            except CallError as failed:
                if failed.retry.kind == "fatal":
                    self._lost = str(failed)
                    return 500, format_error(scrub(str(failed)), "model_lost")
                status = {"no": 422, "rate_limit": 429, "denied": 403}.get(failed.retry.kind, 500)
                return status, format_error(scrub(str(failed)), "model_error")
            except Exception as failed:
                return 422, format_error(scrub(f"{type(failed).__name__}: {failed}"), "model_error")

    async def close(self) -> None:
        await self._endpoint.close()
