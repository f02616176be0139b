"""The user's own function or object as an endpoint.

It is called with a list of (role, [str | PIL.Image, ...]) and what is wanted ("text", "image" or "interleaved"), and returns a str, a
PIL.Image, a list of both, or a `Reply`. Async ones are awaited; plain ones run in a thread, one at a time unless the object
has `concurrency` or the option says more. Answers are kept under its `name` and `version`; without a version, under a digest of
the source of its module, so that an edit asks anew. What it raises is reported and leaves the turn unscored: never a score.

    class Echo:
        name, version = "echo", "1"
        def __call__(self, messages, want):
            pictures = [p for _, parts in messages for p in parts if not isinstance(p, str)]
            return pictures[-1] if want == "image" and pictures else "I see " + str(len(pictures))
"""

import asyncio
import hashlib
import inspect
import threading
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, cast

from weft.errors import PictureError, UserError
from weft.models.endpoint import NO, CallError, Endpoint, Sent, judged
from weft.store.blobs import Blobs
from weft.types import Message, Part, Reply, Takes, Text, Want

if TYPE_CHECKING:
    from PIL import Image as Pil

OwnFunction = Callable[[list[tuple[str, list[Any]]], str], Any]
OPTIONS = ("name", "version", "concurrency", "images", "own_images", "max_side")


class FunctionEndpoint:
    memo = True

    def __init__(
        self, function: OwnFunction, blobs: Blobs, *, name: str, version: str, takes: Takes, concurrency: int, guessed: bool
    ) -> None:
        self._function, self._blobs = function, blobs
        self.name, self.takes, self.concurrency = name, takes, concurrency
        self.version, self.version_is_guessed = version, guessed
        self.address = f"python:{name}"
        self.identity: Mapping[str, Any] = {"provider": "python", "model": name, "version": version}

    async def send(self, messages: tuple[Message, ...], want: Want) -> Sent:
        shown = [(message.role, [self._show(part) for part in message.parts]) for message in messages]
        try:
            if _is_async(self._function):
                made = await cast(Awaitable[Any], self._function(shown, want.kind))
            else:
                made = await in_thread(self._function, shown, want.kind)
                if inspect.isawaitable(made):
                    made = await made
        except Exception as error:
            raise CallError(f"{self.name} raised {type(error).__name__}: {error}", NO) from error
        if isinstance(made, Reply):
            return Sent(made.parts, made.outcome, made.reason, served=self.name, usage=made.usage)
        parts = self._convert(made)
        outcome, reason = judged(parts, want.kind)
        return Sent(parts, outcome, reason, served=self.name)

    async def close(self) -> None:
        close = getattr(self._function, "close", None)
        if callable(close):
            made = close()
            if inspect.isawaitable(made):
                await made

    def _show(self, part: Part) -> "str | Pil.Image":
        return part.text if isinstance(part, Text) else self._blobs.open(part)

    def _convert(self, made: Any) -> tuple[Part, ...]:
        if made is None:
            return ()
        if isinstance(made, (list, tuple)):
            return tuple(part for one in cast(list[Any], made) for part in self._convert(one))
        if isinstance(made, str):
            return (Text(made),) if made else ()
        try:
            if isinstance(made, bytes):
                return (self._blobs.put(made),)
            if hasattr(made, "save") and hasattr(made, "size"):
                return (self._blobs.put_picture(made),)
        except PictureError as error:
            raise CallError(f"{self.name} returned a picture that {error}", NO) from None
        raise CallError(f"{self.name} returned {type(made).__name__}; it may return str, PIL.Image, or a list of both", NO)


def endpoint_from_object(thing: Any, blobs: Blobs, options: Mapping[str, Any], source: str = "") -> Endpoint:
    """Wrap a function, an object with `__call__` or `reply`, or a class of either; an `Endpoint` is taken as it is."""
    if inspect.isclass(thing):
        thing = thing()
    if hasattr(thing, "send") and hasattr(thing, "identity"):
        return thing
    function = thing if callable(thing) else getattr(thing, "reply", None)
    if not callable(function):
        raise UserError(f"{source or repr(thing)} is no model: it must be callable, or have a method `reply`, with (messages, want)")
    for name in options:
        if name not in OPTIONS:
            raise UserError(f"{source or 'the model'}: unknown option {name!r}; a Python model knows {', '.join(OPTIONS)}")

    def setting(name: str, default: Any) -> Any:
        return options.get(name, getattr(thing, name, default))

    called = setting("name", getattr(thing, "__name__", type(thing).__name__))
    version = setting("version", None)
    takes = Takes(
        images=setting("images", "interleaved"), own_images=setting("own_images", "assistant"), max_side=setting("max_side", None)
    )
    return FunctionEndpoint(
        cast(OwnFunction, function),
        blobs,
        name=str(called),
        version=str(version) if version is not None else _source_digest(thing),
        takes=takes,
        concurrency=int(setting("concurrency", 1)),
        guessed=version is None,
    )


def _is_async(function: OwnFunction) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def _source_digest(thing: Any) -> str:
    target = cast(Any, thing if inspect.isroutine(thing) else type(thing))
    try:
        module = inspect.getmodule(target)
        source = inspect.getsource(module) if module and getattr(module, "__file__", None) else inspect.getsource(target)
    except (OSError, TypeError):
        raise UserError("the model has no version, and its source cannot be read to tell one; give it an attribute `version`") from None
    return "source:" + hashlib.sha256(source.encode()).hexdigest()[:16]


async def in_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    """Run in a daemon thread of its own, so that Ctrl-C need not wait for a picture that takes a minute."""
    done: Future[Any] = Future()

    def work() -> None:
        try:
            done.set_result(function(*arguments))
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=work, name="model", daemon=True).start()
    return await asyncio.wrap_future(done)
