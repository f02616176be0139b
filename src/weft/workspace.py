"""A home folder: the journal, the images, the settings, and models by role.

    roles = {"writer": "openai/gpt-4.1", "painter": "gemini/NAME"}
    async with Workspace("HOME").models(roles, Limits(budget=5.0), run="my-work") as models:
        reply = await models["writer"].reply((Message("user", (Text("Describe a garden."),)),), Request("text"))

Every answer is in the journal before it is returned, the same call is never paid for twice, and the budget is never
exceeded. A call that failed returns a reply with the outcome `failed`; what ends all work (no quota, the budget) is
raised.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Generator, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from weft.calls.budget import Budget
from weft.calls.roles import Limits, ModelsByRole
from weft.errors import UserError
from weft.models import registry
from weft.models.config import default_home, read_config
from weft.models.endpoint import Endpoint
from weft.plugins import imported_file
from weft.store.annotations import Annotations
from weft.store.blobs import Blobs, blobs_folder
from weft.store.journal import Journal
from weft.store.locks import use_home
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
    """A home folder by its absolute path. Nothing is opened before it is used."""

    def __init__(self, home: str | Path = "") -> None:
        self.home = Path(home or default_home()).absolute()  # a model's code may change the working directory
        self.blobs = Blobs(blobs_folder(self.home))  # the image store

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The contents of weft.toml."""
        return read_config()

    def endpoint(self, model: Any, options: Mapping[str, Any] | None = None, data: str = "", **more: Any) -> Endpoint:
        """Return the endpoint of a model: a name, or the user's own object."""
        return registry.resolve_endpoint(model, self.blobs, options or {}, self.settings, data, **more)

    @contextlib.asynccontextmanager
    async def open(
        self,
        endpoints: Mapping[str, Endpoint],
        limits: Limits = Limits(),
        *,
        prices: Mapping[str, Any] | None = None,
        composed: bool = False,
        budget: Budget | None = None,
    ) -> AsyncGenerator[ModelsByRole]:
        """Open the journal and yield callers for these endpoints; close all of them at the end.

        Nobody removes, merges or repairs anything in this home meanwhile. Raises UserError while weft imports a file.
        """
        if imported_file.get():  # its calls would be paid for, even in a dry run
            raise UserError(
                f"importing {imported_file.get()} must not start a run: "
                'put what calls a model under `if __name__ == "__main__":`'
            )
        async with contextlib.AsyncExitStack() as closing:
            closing.push_async_callback(close_endpoints, endpoints.values())
            closing.enter_context(use_home(self.home))
            journal = Journal(journal_file(self.home))
            closing.callback(journal.close)
            all_prices: Mapping[str, Any] = {**self.settings.get("prices", {}), **(prices or {})}
            yield ModelsByRole(limits, endpoints, all_prices, journal, self.blobs, composed=composed, budget=budget)

    @contextlib.asynccontextmanager
    async def models(
        self, roles: Mapping[str, Any], limits: Limits = Limits(), *, run: str
    ) -> AsyncGenerator[Mapping[str, Model]]:
        """Yield models by role, for a program of the user's own.

        `roles` are model names or the user's own objects. The calls are journalled under `run`.
        """
        endpoints = {role: self.endpoint(model) for role, model in roles.items()}
        async with self.open(endpoints, limits, composed=True) as models:
            for caller in models.callers.values():
                caller.book_under(run, 1)
            yield dict(models.callers)


def open_journal(home: str | Path, *, write: bool = False) -> Journal:
    """Open the journal of a home. Without `write` it must exist, and is not changed."""
    return Journal(journal_file(home), readonly=not write)


@contextlib.contextmanager
def read_only_journal(home: str | Path) -> Generator[Journal]:
    """Open the journal of a home for reading, and close it at the end."""
    journal = open_journal(home)
    try:
        yield journal
    finally:
        journal.close()


def open_blobs(home: str | Path) -> Blobs:
    """Return the image store of a home."""
    return Blobs(blobs_folder(home))


def open_annotations(home: str | Path, *, write: bool = False) -> Annotations:
    """Open the annotations of a home. Without `write` they are not changed."""
    return Annotations(journal_file(home), readonly=not write)


async def close_endpoints(endpoints: Iterable[Endpoint]) -> None:
    """Close endpoints. What a model raises while it is closed is ignored: its work is done."""
    for endpoint in endpoints:
        await _close_endpoint(endpoint)


async def _close_endpoint(endpoint: Endpoint) -> None:
    try:
        await endpoint.close()
    except (Exception, SystemExit, KeyboardInterrupt):
        return
    except asyncio.CancelledError:  # raised by the model itself, unless weft cancels this task
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
