"""A worker: an actor of Ray that makes rows. It decodes images, runs gates, and plays the models that are programs; for
every answer it asks the keeper, and it writes nothing but images, by their digests."""

import importlib
import os
from collections.abc import Mapping
from typing import Any, cast

import msgspec
from msgspec import Struct

from weft.building.context import Tools
from weft.building.parts import encode_row
from weft.building.preparation import prepare
from weft.building.ray_keeper import MAX_ANSWER_BYTES, Answer, Failure, PlayerCard, is_program, to_portable
from weft.building.request import BuildRequest
from weft.building.rows import make_row
from weft.calls.sending import call_foreign, check_reply, scrub_message
from weft.errors import StoreError, UserError, WeftError, message_of, wrap_error
from weft.models.endpoint import NO_RETRY, CallError, Endpoint
from weft.ray_cluster import import_ray_errors
from weft.types import Message, Reply, Request, Takes

KEEPER_GONE = "the process that keeps the journal ended; run the same command again: nothing that was answered is lost"


class KeptModel:
    """A model that is asked through the keeper."""

    def __init__(self, role: str, card: PlayerCard, keeper: Any, worker: int) -> None:
        self.name = card.name
        self.takes: Takes = card.takes
        self._role = role
        self._keeper = keeper
        self._worker = worker

    async def reply(self, messages: tuple[Message, ...], request: Request) -> Reply:
        answer = await ask_keeper(self._keeper.reply.remote(self._role, messages, request, self._worker))
        if isinstance(answer, WeftError):
            raise answer
        return cast(Reply, answer)


class KeptFeatures(Struct, frozen=True):
    """Features in the keeper's journal."""

    keeper: Any

    async def find(self, digest: str, kind: str, version: str) -> str | None:
        return await ask_keeper(self.keeper.find_feature.remote(digest, kind, version))

    def keep(self, digest: str, kind: str, version: str, value: str) -> None:
        self.keeper.keep_feature.remote(digest, kind, version, value)


async def ask_keeper(result: Any) -> Any:
    """Await what the keeper returns. Raises StoreError if it is gone."""
    RayActorError, _ = import_ray_errors()

    try:
        return await result
    except RayActorError:
        raise StoreError(KEEPER_GONE) from None


class Worker:
    """A Ray actor that makes rows, one for each seed it is given, many at once."""

    def __init__(self, number: int, request: BuildRequest, folder: str, keeper: str) -> None:
        """`keeper` is its name: a handle of an actor would not outlive a restart of this one."""
        self._number = number
        self._keeper: Any = None
        self._keeper_name = keeper
        self._tools: Tools | None = None
        self._endpoints: Mapping[str, Endpoint] = {}
        self.problem: WeftError | None = None
        try:
            os.chdir(folder)
            self._recipe, self._workspace, self._endpoints, manifest = prepare(request)
            self._test_share = manifest.test_share
            self._tries = manifest.tries
        except OSError as error:
            self.problem = UserError(f"a worker cannot use {folder} ({error.strerror}): all machines must share it")
        except Exception as error:  # of a recipe's code as well
            self.problem = to_portable(wrap_error(request.recipe, error))

    async def is_ready(self) -> WeftError | None:
        """Return why it can make no row, if so."""
        return self.problem

    async def make(self, number: int, cards: Mapping[str, PlayerCard]) -> Any:
        """Return the row of a seed as JSON, or the error that ends the build."""
        if self._tools is None:
            try:
                self._keeper = importlib.import_module("ray").get_actor(self._keeper_name)
            except ValueError:  # there is no such actor
                return StoreError(KEEPER_GONE)
            models = {role: KeptModel(role, card, self._keeper, self._number) for role, card in cards.items()}
            features = KeptFeatures(self._keeper)
            self._tools = Tools(models, self._workspace.blobs, features, test_share=self._test_share, tries=self._tries)
            self._steps = self._recipe.steps()
        try:
            return encode_row(await make_row(self._recipe, self._steps, number, self._tools))
        except WeftError as error:
            return to_portable(error)

    async def answer(
        self, role: str, messages: tuple[Message, ...], request: Request, max_reply_tokens: int | None
    ) -> bytes:
        """Return what a model that is a program replies, or its failure: an `Answer` as JSON."""
        endpoint = self._endpoints[role]
        assert is_program(endpoint)
        endpoint.max_reply_tokens = max_reply_tokens
        try:
            reply = await check_reply(endpoint, await call_foreign(endpoint.name, endpoint.send, messages, request))
            return _encode(Answer(reply), endpoint.name)
        except CallError as error:
            return _encode_failure(error, endpoint.name)
        except WeftError as error:
            return msgspec.json.encode(Answer(disk=scrub_message(message_of(error)) or "the disk cannot be written"))


def _encode(answer: Answer, name: str) -> bytes:
    """Return an answer as JSON. Raises CallError for one that cannot be sent."""
    try:
        data = msgspec.json.encode(answer)
    except (msgspec.MsgspecError, UnicodeError, OverflowError, TypeError, RecursionError) as error:
        raise CallError(f"{name} returned an invalid reply: {message_of(error)}", NO_RETRY, billed=True) from None
    if len(data) > MAX_ANSWER_BYTES:
        problem = f"a reply of {len(data):,} bytes, more than the limit of {MAX_ANSWER_BYTES:,}"
        raise CallError(f"{name} returned {problem}", NO_RETRY, billed=True)
    return data


def _encode_failure(failure: CallError, name: str) -> bytes:
    try:
        return _encode(Answer(failure=Failure.of(failure)), name)
    except CallError as error:
        return _encode(Answer(failure=Failure.of(error)), name)
