"""One model at work behind a door: a request's bytes in, an answer's bytes out."""

import asyncio
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from weft.models.adapt import fitted
from weft.models.endpoint import CallError, Endpoint
from weft.models.registry import resolve
from weft.secrets import scrub
from weft.serving.chat import Card, Refused, error, read, written
from weft.store.blobs import blobs_folder
from weft.store.passing import Passing
from weft.untrusted import fields


class Job(Struct, frozen=True):
    """What is served, as a user says it."""

    model: str
    options: Mapping[str, Any]
    called: str  # the name it has in answers
    home: str = ".weft"
    folder: str = ""  # that relative paths are of
    config: Mapping[str, Any] = {}


class Answer(Struct, frozen=True):
    """`facts`: how much the replica has done so far, for those who measure."""

    status: int
    body: bytes
    replica: str = ""
    facts: Mapping[str, float] = {}


class Replica:
    def __init__(self, job: Job) -> None:
        if job.folder:
            os.chdir(job.folder)
        self._job, self._blobs = job, Passing(blobs_folder(Path(job.home).absolute()))
        self._endpoint: Endpoint = resolve(job.model, self._blobs, job.options, job.config)
        self._lost = ""
        self._in_flight = 0
        self.place = f"{socket.gethostname()}:{os.getpid()}"
        one = self._endpoint
        seed = fields(one.identity.get("parameters")).get("seed", 0)
        at_once = one.concurrency or 1
        self.card = Card(one.name, one.identity, one.takes, one.gives, at_once, seed if isinstance(seed, int) else 0)

    @property
    def standing(self) -> str:
        return self._endpoint.standing

    async def load(self) -> None:
        await self._endpoint.load()

    def check(self) -> None:
        """Raises where nothing works any more."""
        if self._lost:
            raise RuntimeError(self._lost)

    async def answer(self, body: bytes) -> Answer:
        self._in_flight += 1
        try:
            status, made = await self._answered(body)
        finally:
            self._in_flight -= 1
        return Answer(status, made, self.place, self.facts)

    @property
    def facts(self) -> Mapping[str, float]:
        done: Any = getattr(self._endpoint, "measured", None)
        told = {"in_flight": float(self._in_flight), "pictures_held": float(len(self._blobs))}
        if done is not None:
            told |= {"batches": done.batches, "batch_calls": done.calls, "largest_batch": done.largest, "busy_seconds": done.seconds}
        return told

    async def _answered(self, body: bytes) -> tuple[int, bytes]:
        with self._blobs.held():
            try:
                messages, want = await asyncio.to_thread(read, body, self._blobs, self.card, self._job.called)
                if lacks := self.card.gives.lacks(want.kind):
                    raise Refused(lacks)
                messages = await fitted(messages, self.card.takes.of(want.kind), self._blobs)
                sent = await self._endpoint.send(messages, want)
                return 200, await asyncio.to_thread(written, sent, self._job.called, self._blobs)
            except Refused as refused:
                return 400, error(scrub(str(refused)), "invalid_request_error")
            except CallError as failed:
                if failed.retry.kind == "fatal":
                    self._lost = str(failed)
                    return 500, error(scrub(str(failed)), "model_lost")
                status = {"no": 422, "rate_limit": 429, "denied": 403}.get(failed.retry.kind, 500)
                return status, error(scrub(str(failed)), "model_error")
            except Exception as failed:
                return 422, error(scrub(f"{type(failed).__name__}: {failed}"), "model_error")

    async def close(self) -> None:
        await self._endpoint.close()
