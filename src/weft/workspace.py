"""A home folder: the journal, the images, the settings, and models by role. Whoever asks a model opens it here.

    roles = {"writer": "openai/gpt-4.1", "painter": "gemini/NAME"}
    async with Workspace("HOME").models(roles, Limits(budget=5.0), run="my-work") as models:
        reply = await models["writer"].reply((Message("user", (Text("Describe a garden."),)),), Want("text"))

Every answer is in the journal before it is returned, the same call is never paid for twice, and the budget is never
passed. A reply that failed has the outcome `failed`; what ends the work (no quota, the budget) is raised."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Generator, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from weft.calls.roles import Limits, ModelsByRole
from weft.models import registry
from weft.models.config import default_home, read_config
from weft.models.endpoint import Endpoint
from weft.store.annotations import Annotations
from weft.store.blobs import Blobs, blobs_folder
from weft.store.journal import Journal
from weft.store.schema import journal_file
from weft.types import Model

__all__ = [
    "Limits",
    "Workspace",
    "close_endpoints",
    "open_annotations",
    "open_blobs",
    "open_journal",
    "read_only_journal",
]


class Workspace:
    """Nothing is opened before it is used. `home` is absolute, whatever folder a model's code changes to."""

    def __init__(self, home: str | Path = "") -> None:
        self.home = Path(home or default_home()).absolute()

    @cached_property
    def blobs(self) -> Blobs:
        return Blobs(blobs_folder(self.home))

    @cached_property
    def settings(self) -> dict[str, Any]:
        """weft.toml."""
        return read_config()

    def endpoint(self, model: Any, options: Mapping[str, Any] | None = None, data: str = "", **more: Any) -> Endpoint:
        """A model by its name, or the user's own object, as an endpoint."""
        return registry.resolve_endpoint(model, self.blobs, options or {}, self.settings, data, **more)

    @contextlib.asynccontextmanager
    async def open(
        self,
        endpoints: Mapping[str, Endpoint],
        limits: Limits = Limits(),
        *,
        prices: Mapping[str, Any] | None = None,
        composed: bool = False,
    ) -> AsyncGenerator[ModelsByRole]:
        """Endpoints under their roles, with the journal open. At the end the endpoints and the journal are closed."""
        async with contextlib.AsyncExitStack() as closing:
            closing.push_async_callback(close_endpoints, endpoints.values())
            journal = open_journal(self.home, write=True)
            closing.callback(journal.close)
            known: Mapping[str, Any] = {**self.settings.get("prices", {}), **(prices or {})}
            yield ModelsByRole(limits, endpoints, known, journal, self.blobs, composed=composed)

    @contextlib.asynccontextmanager
    async def models(
        self, roles: Mapping[str, Any], limits: Limits = Limits(), *, run: str
    ) -> AsyncGenerator[Mapping[str, Model]]:
        """Models by role, for a program of its own. `roles` are names or the user's own objects; its calls are booked
        under `run`."""
        endpoints = {role: self.endpoint(model) for role, model in roles.items()}
        async with self.open(endpoints, limits, composed=True) as opened:
            for caller in opened.callers.values():
                caller.book_under(run, 1)
            yield dict(opened.callers)


def open_journal(home: str | Path, *, write: bool = False) -> Journal:
    """The journal of a home. To read it, it must be there."""
    return Journal(journal_file(home), readonly=not write)


@contextlib.contextmanager
def read_only_journal(home: str | Path) -> Generator[Journal]:
    """The journal of a home, open to be read."""
    journal = open_journal(home)
    try:
        yield journal
    finally:
        journal.close()


def open_blobs(home: str | Path) -> Blobs:
    return Blobs(blobs_folder(home))


def open_annotations(home: str | Path, *, write: bool = False) -> Annotations:
    return Annotations(journal_file(home), readonly=not write)


async def close_endpoints(endpoints: Iterable[Endpoint]) -> None:
    """Close endpoints. What a model raises when it is closed changes nothing any more."""
    for endpoint in endpoints:
        await _closed(endpoint)


async def _closed(endpoint: Endpoint) -> None:
    try:
        await endpoint.close()
    except (Exception, SystemExit, KeyboardInterrupt):
        return
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
