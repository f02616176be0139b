"""The user's own function or object as an endpoint.

It is called with a list of (role, [str | PIL.Image, ...]) and what is wanted ("text", "image" or "interleaved"), and
returns a str, a PIL.Image, a list of both, or a `Reply`. Async ones are awaited; plain ones run in a thread, one at a
time unless the object has `concurrency` or the option says more. Answers are kept under its `name` and `version`;
without a name, under its file and its name there; without a version, under a digest of the source of its module, so
that an edit asks anew. What it raises is reported and leaves the turn unscored: never a score; so does a call that does
not come back within `timeout` seconds (an hour). Thoughts that belong to a reply are `weft.Thought(text)` in the list.
A judge is the same and returns a dict; one with a parameter `question` is given the question itself, with its
`metrics`, `schema` and `material`. One with a parameter `size` is given width and height of the picture, where somebody
(a planner) chose them, or None; one with a parameter `draw` the number of the draw; one with a parameter `seed` the
seed of this draw, which is --model-opt seed= and the number of the draw. Other --model-opt go by name to the parameters
of a class when it is made, or of the function when it is called, and are part of what answers are kept under.

An object with a method `batch` is given calls of many dialogues at once, up to `batch_size` (8): a list of requests,
each with `messages`, `want`, `size` and `draw`; it returns a list of as many replies. If there is no memory for so
many, it is given half.

    class Echo:
        name, version = "echo", "1"
        def __call__(self, messages, want):
            pictures = [p for _, parts in messages for p in parts if not isinstance(p, str)]
            return pictures[-1] if want == "image" and pictures else "I see " + str(len(pictures))
"""

import asyncio
import contextlib
import functools
import inspect
import os
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard, cast

import msgspec
from msgspec import Struct

from weft.errors import ImageError, UserError, format_trace
from weft.models.batching import BatchCounts, BatchQueue
from weft.models.code_digest import PLAIN_TYPES, CodeSource, read_source, version_of
from weft.models.converters import boolean, positive_seconds
from weft.models.endpoint import FATAL, NO_RETRY, CallError, Endpoint, EndpointReply, Retry
from weft.store.blobs import Blobs
from weft.store.images import open_lazily
from weft.types import Gives, Image, Message, Modality, Part, Question, Reply, Request, Takes, Text, Thought, outcome_of

if TYPE_CHECKING:
    from PIL import Image as Pil

UserFunction = Callable[..., Any]
KINDS: dict[str, type] = {"int": int, "float": float, "bool": bool, "Path": Path, "str": str}
NUMBERS: dict[type, str] = {int: "a whole number", float: "a number", bool: "true or false"}
GIVEN = ("self", "messages", "want", "question", "size", "draw", "blobs")  # what weft calls it with
DECLARED_OPTIONS = (
    "name",
    "version",
    "concurrency",
    "timeout",
    "batch_size",
    "images",
    "own_images",
    "max_side",
    "max_images",
    "drawing",
)
HOUR = 3600.0
BATCH = 8


class Declaration(Struct, frozen=True):
    """What an object of the user's says of itself, by attributes that it may lack: `declared_by` is the one place that
    looks."""

    called: str  # its own name, or that of its class
    options: Mapping[str, Any]  # those of OPTIONS that it has
    batch: Callable[..., Any] | None  # its method for many calls at once
    close: Callable[[], Any] | None
    roles: tuple[str, ...] | None  # of a class that is a composition
    sends: bool  # whether it has `send`, as endpoints have


def read_declaration(thing: Any) -> Declaration:
    options = {name: value for name in DECLARED_OPTIONS if (value := getattr(thing, name, None)) is not None}
    batch, close, roles = (getattr(thing, name, None) for name in ("batch", "close", "roles"))
    return Declaration(
        called=getattr(thing, "__name__", type(thing).__name__),
        options=options,
        batch=batch if callable(batch) else None,
        close=close if callable(close) else None,
        roles=cast(tuple[str, ...], roles) if inspect.isclass(thing) and isinstance(roles, tuple) else None,
        sends=hasattr(thing, "send"),
    )


def is_pil_image(made: Any) -> "TypeGuard[Pil.Image]":
    """Whether it is one of PIL's images, or is used like one."""
    return hasattr(made, "save") and hasattr(made, "size")


class FunctionRequest(Struct, frozen=True):
    """One call of a batch, as a model of the user's gets it."""

    messages: "list[tuple[str, list[str | Pil.Image]]]"
    want: Modality
    size: tuple[int, int] | None = None
    draw: int = 0
    question: Question | None = None
    seed: int = 0  # moves on with the draw
    options: Mapping[str, Any] = {}  # that the user gave, and its class did not take when it was made


class BatchMethod(Struct, frozen=True):
    """A method `batch` at work."""

    batch: Callable[[list[FunctionRequest]], Sequence[Any]]

    def run_batch(self, batch: Sequence[FunctionRequest]) -> Sequence[Any]:
        return self.batch(list(batch))

    def is_out_of_memory(self, error: Exception) -> bool:
        return (
            isinstance(error, MemoryError)
            or "OutOfMemory" in type(error).__name__
            or "out of memory" in str(error).lower()
        )

    def free_memory(self) -> None:
        torch = sys.modules.get("torch")
        if torch is not None and torch.cuda.is_available():
            torch.cuda.empty_cache()


class FunctionEndpoint(Endpoint):
    """`make` gives the function, or the object that is called: at once where it is there already, a class when the
    first call comes."""

    gives = Gives(json=False)

    def __init__(
        self,
        make: Callable[[], UserFunction],
        blobs: Blobs,
        *,
        name: str,
        where: str,
        version: str,
        takes: Takes,
        concurrency: int,
        timeout: float,
        guessed: bool,
        batch_size: int = 0,
        source: CodeSource | None = None,
        options: Mapping[str, Any] | None = None,
        seed: int | None = None,
    ) -> None:
        """`batch_size`: how many it is given at once, if it has a method for that. `options` are what it is called with
        besides, `seed` what its seed is to begin with."""
        super().__init__(name, address=f"python:{name}")
        chosen: dict[str, Any] = {**(options or {}), **({"seed": seed} if seed is not None else {})}
        told = (
            {"options": {key: value if isinstance(value, PLAIN_TYPES) else str(value) for key, value in chosen.items()}}
            if chosen
            else {}
        )
        self.identity = {"provider": "python", "model": name, "version": version, "where": where, **told}
        if source is not None and where and source.previous_location:
            self.previous_identities = ({**self.identity, "where": source.previous_location},)
        self.code_digest, self.undigested_names = (
            (source.digest, source.undigested_names) if source is not None else ("", ())
        )
        self._options = options or {}
        self._seed = seed or 0
        self._make = make
        self._blobs = blobs
        self._made: UserFunction | None = None
        self._says: Declaration | None = None  # once it is made
        self._making = threading.Lock()
        self._at_work: set[int] = set()  # threads that are inside the function
        self.takes = takes
        self.concurrency = concurrency
        self._timeout = timeout
        self.version = version
        self.version_is_derived = guessed
        self._batch_size = batch_size
        self._gatherer = BatchQueue[FunctionRequest, Any](name, self._batching)
        if batch_size:
            self.wants_batches = True
            if concurrency == 1:
                self.concurrency = max(concurrency, 2 * batch_size)
            else:
                self.concurrency = concurrency

    async def load(self) -> None:
        if self._made is None:
            await (self._gatherer.wait_until_loaded() if self._batch_size else run_in_thread(self._function))

    def _batching(self) -> BatchMethod:
        self._function()
        if self._says is not None:
            batch = self._says.batch
        else:
            batch = None
        if batch is None:
            raise CallError(f"{self.name} has no method `batch` once it is made", FATAL)
        return BatchMethod(batch)

    @property
    def batch_counts(self) -> BatchCounts | None:
        if self._batch_size:
            return self._gatherer.counts
        return None

    async def send(self, messages: tuple[Message, ...], want: Request) -> EndpointReply:
        shown = await run_in_thread(self._show_all, messages)
        await self.load()
        limit = asyncio.timeout(self._timeout)
        try:
            if self._batch_size:
                async with limit:
                    made = await self._gatherer.call(
                        FunctionRequest(
                            shown,
                            want.modality,
                            want.size,
                            want.draw,
                            want.question,
                            self._seed + want.draw,
                            self._options,
                        ),
                        (want.modality, want.size),
                        self._batch_size,
                    )
            else:
                function = self._function()
                more, told = _wanted(function, want, self._options, self._seed)
                await self._free()
                limit = asyncio.timeout(self._timeout)
                async with limit:
                    made = await self._called(function, told, shown, want.modality, *more)
        except CallError:
            raise
        except TimeoutError as error:
            if limit.expired():
                why = f"did not come back within {self._timeout:g} s"
            else:
                why = f"raised TimeoutError: {error}"
            raise CallError(f"{self.name} {why}", NO_RETRY) from None
        except Exception as error:
            raise _raised(f"{self.name} raised {type(error).__name__}: {error}", NO_RETRY, error) from error
        if isinstance(made, Reply):
            return EndpointReply(
                self._convert(made.parts), made.outcome, made.reason, served_model=self.name, usage=made.usage
            )
        parts = self._convert(made)
        outcome, reason = outcome_of(parts, want.modality)
        return EndpointReply(parts, outcome, reason, served_model=self.name)

    async def _called(self, function: UserFunction, told: Mapping[str, Any], *arguments: Any) -> Any:
        if told:
            call = functools.partial(function, **told)
        else:
            call = function
        if _is_async(function):
            return await cast(Awaitable[Any], call(*arguments))
        made = await run_in_thread(self._noted, call, *arguments)
        if inspect.isawaitable(made):
            return await made
        return made

    def _noted(self, function: UserFunction, *arguments: Any) -> Any:
        """In its thread: who is given up on stays at work, and is counted until it comes back."""
        me = threading.get_ident()
        self._at_work.add(me)
        try:
            return function(*arguments)
        finally:
            self._at_work.discard(me)

    async def _free(self) -> None:
        """Wait for calls that were given up on, as long again: a model that takes one at a time is not asked while it
        is still at one. What has not come back then never will."""
        until = time.monotonic() + self._timeout
        while len(self._at_work) >= (self.concurrency or 1) and time.monotonic() < until:  # noqa: ASYNC110 (threads tell nobody)
            await asyncio.sleep(0.05)
        if len(self._at_work) >= (self.concurrency or 1):
            self._at_work.clear()

    def _function(self) -> UserFunction:
        """Made once, however many calls come first. What it says of itself then must be what answers are kept under."""
        with self._making:
            if self._made is None:
                try:
                    made = self._make()
                except Exception as error:
                    raise _raised(
                        f"{self.name} could not be made: {type(error).__name__}: {error}", FATAL, error
                    ) from error
                says = read_declaration(made)
                for name, due in (("name", self.name), ("version", self.version)):
                    told = says.options.get(name)
                    if (
                        told is not None
                        and str(told) != due
                        and not (name == "version" and not self.version_is_derived)
                    ):
                        raise CallError(
                            f"{self.name} calls its {name} {told} once it is made; answers are kept under {due}: "
                            f"set {name} on the class, or with --model-opt {name}={told}",
                            FATAL,
                        )
                self._made = made
                self._says = says
            return self._made

    async def close(self) -> None:
        await self._gatherer.close()
        if self._says is not None and self._says.close is not None:
            made = self._says.close()
            if inspect.isawaitable(made):
                await made

    def _show_all(self, messages: tuple[Message, ...]) -> list[tuple[str, list[Any]]]:
        return [(message.role, [self._show(part) for part in message.parts]) for message in messages]

    def _show(self, part: Part) -> "str | Pil.Image":
        if isinstance(part, Image):
            return open_lazily(self._blobs.read(part))
        return part.text

    def _convert(self, made: Any) -> tuple[Part, ...]:
        if isinstance(made, dict):
            return (Text(msgspec.json.encode(made).decode()),)
        if isinstance(made, (list, tuple)):
            return tuple(part for one in cast(list[Any], made) for part in self._convert(one))
        if isinstance(made, str):
            # of a class of its own (numpy.str_) as well
            if made:
                return (Text("".join((made,))),)
            return ()
        if isinstance(made, (Text, Image, Thought)):
            return (made,)
        try:
            if isinstance(made, bytes):
                return (self._blobs.put(made),)
            if is_pil_image(made):
                return (self._blobs.put_pil(made),)
        except ImageError as error:
            raise CallError(f"{self.name} returned a picture that {error}", NO_RETRY) from None
        raise CallError(
            f"{self.name} returned {type(made).__name__}; it may return str, PIL.Image, or a list of both (a judge: a dict)",
            NO_RETRY,
        )


def _raised(told: str, retry: Retry, error: Exception) -> CallError:
    made = CallError(told, retry)
    made.trace = format_trace(error)
    return made


def endpoint_from_object(thing: Any, blobs: Blobs, options: Mapping[str, Any], source: str = "") -> Endpoint:
    """Wrap a function, an object with `__call__`, or a class of such, which is made when it is first called. An
    `Endpoint` is taken as it is; a class of one is made with the options, and with `blobs=` if it has that parameter
    (the store that its pictures go into)."""
    says = read_declaration(thing)
    called = source or says.called
    if isinstance(thing, Endpoint):
        if options:
            raise UserError(f"{called} is made already: it takes no options")
        return thing
    if inspect.isclass(thing) and issubclass(thing, Endpoint):
        try:
            made: Endpoint = cast(Any, thing)(**options, **_store(thing, blobs))
        except Exception as error:
            raise UserError(f"{called} could not be made: {type(error).__name__}: {error}") from error
        missing = [name for name in ("name", "address", "identity") if not hasattr(made, name)]
        if missing:
            raise UserError(f"{called} lacks {', '.join(missing)}: its __init__ must call super().__init__(name)")
        return made
    if says.sends:
        raise UserError(f"{called} has `send` but is no endpoint: make its class one of weft.models.endpoint.Endpoint")
    if says.roles is not None:
        example = ",".join(f"{role}=MODEL" for role in says.roles)
        raise UserError(f"{called} is a composition: give its roles models, as in {called}:{example}")
    if (
        inspect.isclass(thing)
        and says.batch is None
        and not any("__call__" in vars(base) for base in thing.__mro__[:-1])
    ):
        raise UserError(
            f"{called} is no model: its objects must be callable with (messages, want), or have a method `batch`"
        )
    if not callable(thing) and says.batch is None:
        raise UserError(f"{called} is no model: it must be callable with (messages, want)")
    return _wrapped(thing, says, blobs, options, called)


def _store(kind: type, blobs: Blobs) -> dict[str, Blobs]:
    if "blobs" in inspect.signature(kind).parameters:
        return {"blobs": blobs}
    return {}


def _wrapped(thing: Any, says: Declaration, blobs: Blobs, options: Mapping[str, Any], called: str) -> FunctionEndpoint:
    making, calling, seed = _own_options(thing, says, options, called)
    if inspect.iscoroutinefunction(says.batch):
        raise UserError(f"{called}: its method `batch` must not be async: it is called in a thread of its own")
    given = {
        name: value for name in DECLARED_OPTIONS if (value := options.get(name, says.options.get(name))) is not None
    }
    many = given.pop("batch_size", None)
    if many is not None and says.batch is None:
        raise UserError(f"{called} has a batch_size and no method `batch`")
    source = read_source(thing, blobs.root.parent.absolute().parent)
    # two files may each have a `model`
    if "name" in given:
        where = ""
    else:
        where = source.location
    name = str(given.pop("name", source.name))
    version = given.pop("version", None)
    try:
        concurrency = max(1, int(given.pop("concurrency", 1)))
        timeout = positive_seconds(given.pop("timeout", HOUR))
        if says.batch is None:
            batch_size = 0
        else:
            if many is not None:
                batch_size = int(many)
            else:
                batch_size = BATCH
        if says.batch is not None and batch_size < 1:
            raise ValueError(f"batch_size is {many}: give a number from 1 up")
        takes = msgspec.convert(given, Takes, strict=False)
    except (ValueError, TypeError, OverflowError, msgspec.ValidationError) as error:
        raise UserError(f"{called}: {error}") from None
    return FunctionEndpoint(
        (lambda: cast(Any, thing)(**_store(cast(type, thing), blobs), **making))
        if inspect.isclass(thing)
        else (lambda: thing),
        blobs,
        name=name,
        where=where,
        version=version_of(source, called) if version is None else str(version),
        takes=takes,
        concurrency=concurrency,
        timeout=timeout,
        guessed=version is None,
        batch_size=batch_size,
        source=source,
        options={**making, **calling},
        seed=seed,
    )


def _own_options(
    thing: Any, says: Declaration, options: Mapping[str, Any], called: str
) -> tuple[dict[str, Any], dict[str, Any], int | None]:
    """What a user gave that is not weft's own: for the making of a class, for each call, and the seed. Raises UserError
    for what nobody takes. A value is read as what the parameter is: by its annotation, or by its default."""
    making = _parameters(thing.__init__, ("self", "blobs")) if inspect.isclass(thing) else {}
    calling = _parameters(_call_of(thing))
    batches = says.batch is not None
    made = dict[str, Any]()
    kept = dict[str, Any]()
    seed = None
    for name, value in options.items():
        if name in DECLARED_OPTIONS:
            continue
        if name == "seed" and (name in calling or batches) and name not in making:
            seed = _as(inspect.Parameter("seed", inspect.Parameter.KEYWORD_ONLY, annotation=int), value, called)
        elif name in making:
            made[name] = _as(making[name], value, called)
        elif name in calling or batches:
            if name in calling:
                kept[name] = _as(calling[name], value, called)
            else:
                kept[name] = value
        else:
            has = ", ".join(dict.fromkeys((*making, *calling))) or "none"
            raise UserError(
                f"{called}: unknown option {name!r}; its own parameters are {has}; weft knows {', '.join(DECLARED_OPTIONS)}"
            )
    return made, kept, seed


def _call_of(thing: Any) -> Any:
    if inspect.isclass(thing):
        return next((vars(base)["__call__"] for base in thing.__mro__ if "__call__" in vars(base)), None)
    return thing


def _parameters(function: Any, without: tuple[str, ...] = GIVEN) -> dict[str, inspect.Parameter]:
    """What a user may choose of a function's parameters."""
    try:
        known = inspect.signature(function, eval_str=False).parameters
    except (TypeError, ValueError):
        return {}
    given = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {name: one for name, one in known.items() if one.kind in given and name not in without}


def _as(parameter: inspect.Parameter, value: Any, called: str) -> Any:
    if not isinstance(value, str):
        return value
    told = parameter.annotation
    kind = KINDS.get(told if isinstance(told, str) else told.__name__ if isinstance(told, type) else "") or type(
        parameter.default
    )
    try:
        if kind is bool:
            return boolean(value)
        if kind in (int, float, Path):
            return kind(value)
        return value
    except ValueError:
        raise UserError(
            f"{called}: option {parameter.name}={value!r}: give {NUMBERS.get(kind, 'another value')}"
        ) from None


def _wanted(
    function: UserFunction, want: Request, options: Mapping[str, Any], seed: int
) -> tuple[list[Any], dict[str, Any]]:
    """What it asks for besides, by place and by name: a judge the `question` itself, its metrics, schema and material
    by name; a painter the `size`, where one was chosen, or where it cannot be called without; the number of the `draw`,
    and the `seed`, which moves on with it; and the options that the user gave."""
    try:
        known = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return [], {}
    has = {"question": want.question, "size": want.size, "draw": want.draw, "seed": seed + want.draw}
    asked = [name for name in has if name in known]
    asked = [
        name
        for name in asked
        if name != "size" or want.size is not None or known[name].default is inspect.Parameter.empty
    ]
    by_place = [name for name in asked if known[name].kind is inspect.Parameter.POSITIONAL_ONLY]
    by_name = {name: has[name] for name in asked if name not in by_place}
    return [has[name] for name in by_place], {
        **by_name,
        **{name: value for name, value in options.items() if name in known},
    }


def _is_async(function: UserFunction) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


async def run_in_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    """Run in a daemon thread of its own, so that Ctrl-C need not wait for a picture that takes a minute. Whatever it
    raises comes back as an ordinary exception: sys.exit() in a model must not end weft, and a StopIteration would stop
    what waits for it. If the function forks and both return, the other process ends here."""
    done: Future[tuple[Any, BaseException | None]] = Future()
    process = os.getpid()

    def work() -> None:
        made: tuple[Any, BaseException | None]
        try:
            made = (function(*arguments), None)
        except BaseException as error:
            made = (None, error)
        if os.getpid() != process:
            os._exit(0)
        with contextlib.suppress(InvalidStateError):  # nobody waits any more
            done.set_result(made)

    threading.Thread(target=work, name="model", daemon=True).start()
    made, error = await asyncio.wrap_future(done)
    if error is None:
        return made
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        raise error
    raise RuntimeError(f"{type(error).__name__}: {error}") from error
