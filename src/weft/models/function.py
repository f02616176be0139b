"""The user's own function or object as an endpoint.

It is called with a list of (role, [str | PIL.Image, ...]) and what is wanted ("text", "image" or "interleaved"), and
returns a str, a PIL.Image, a list of both, or a `Reply`. A judge is the same and returns a dict. Thoughts that belong
to a reply are `weft.Thought(text)` in the list.

    class Echo:
        name, version = "echo", "1"
        def __call__(self, messages, want):
            images = [part for _, parts in messages for part in parts if not isinstance(part, str)]
            return images[-1] if want == "image" and images else "I see " + str(len(images))

- Async functions are awaited; plain ones run in a thread, one at a time unless `concurrency` says more.
- Answers are cached under `name` and `version`. Without a name, under the file and the name there; without a version,
  under a digest of everything that decides them (`weft.models.versions`), so that an edit or other weights ask anew.
- What it raises is reported and leaves the turn unscored: never a score. So does a call that does not return within
  `timeout` seconds (an hour).
- It gets what it has a parameter for: `question` (a judge's question: its `metrics`, `schema`, and `material` as texts
  and PIL images), `size` (width and height of the image where somebody, such as a planner, chose them, else None),
  `draw` (the number of the draw), `seed` (--model-opt seed= plus the number of the draw). Other --model-opt go by name
  to the parameters of a class when it is created, or of the function when it is called, and are part of the cache key.
- A method `batch` gets calls of many dialogues at once, up to `batch_size` (8): a list of `FunctionRequest`. It returns
  as many replies. If there is no memory for so many, it gets half.
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
from typing import TYPE_CHECKING, Any, TypeGuard, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from weft.errors import ImageError, UserError, format_trace
from weft.models.batching import BatchCounts, BatchQueue
from weft.models.code_digest import CodeSource, read_source
from weft.models.converters import positive_seconds
from weft.models.declaration import (
    DECLARED_OPTIONS,
    Declaration,
    UserFunction,
    call_arguments,
    read_declaration,
    sort_options,
)
from weft.models.endpoint import FATAL, NO_RETRY, CallError, Endpoint, EndpointReply, Retry
from weft.models.object_digest import digest_roughly
from weft.models.opened import open_messages, open_question
from weft.models.versions import derive_version, identify_endpoint, is_derived
from weft.store.blobs import Blobs
from weft.types import Gives, Image, Message, Modality, Part, Question, Reply, Request, Takes, Text, Thought, outcome_of

if TYPE_CHECKING:
    from PIL import Image as Pil

DEFAULT_TIMEOUT_S = 3600.0
DEFAULT_BATCH_SIZE = 8
POLL_INTERVAL_S = 0.05
PLAIN_TYPES = (bool, int, float, str, bytes, type(None))


def is_pil_image(value: Any) -> "TypeGuard[Pil.Image]":
    """Return whether it is a PIL image, or can be used like one."""
    return hasattr(value, "save") and hasattr(value, "size")


class FunctionRequest(Struct, frozen=True):
    """One call of a batch, as a user's model gets it."""

    messages: "list[tuple[str, list[str | Pil.Image]]]"
    want: Modality
    size: tuple[int, int] | None = None  # of the image, if somebody chose one
    draw: int = 0
    question: Question | None = None  # for a judge
    seed: int = 0  # of this draw
    options: Mapping[str, Any] = {}  # the user's, without those that its class took


class BatchMethod(Struct, frozen=True):
    """A user's method `batch` as a worker of a batch queue."""

    batch: Callable[[list[FunctionRequest]], Sequence[Any]]

    def run_batch(self, batch: Sequence[FunctionRequest]) -> Sequence[Any]:
        return self.batch(list(batch))

    def is_out_of_memory(self, error: Exception) -> bool:
        if isinstance(error, MemoryError) or "OutOfMemory" in type(error).__name__:
            return True
        return "out of memory" in str(error).lower()

    def free_memory(self) -> None:
        torch = sys.modules.get("torch")
        if torch is not None and torch.cuda.is_available():
            torch.cuda.empty_cache()


class FunctionEndpoint(Endpoint):
    """A user's function or object. `make` returns it; a class is instantiated when the first call comes."""

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
        version_is_derived: bool = False,
        version_note: str = "",
        batch_size: int = 0,
        source: CodeSource | None = None,
        options: Mapping[str, Any] | None = None,
        seed: int | None = None,
    ) -> None:
        """`version_note` says on what the version rests if the user set none. `batch_size` is 0 without a method
        `batch`. `options` are arguments of each call, `seed` that of draw 0."""
        super().__init__(name, address=f"python:{name}")
        self.identity = {
            "provider": "python",
            "model": name,
            "version": version,
            "where": where,
            **_options_identity(options or {}, seed),
        }
        if source is not None:
            self.code_digest = source.digest
            if where and source.previous_location:
                self.previous_identities = ({**self.identity, "where": source.previous_location},)
        self._options = options or {}
        self._seed = seed or 0
        self._make = make
        self._blobs = blobs
        self._function: UserFunction | None = None
        self._declaration: Declaration | None = None  # of the instance
        self._make_lock = threading.Lock()
        self._busy_threads: set[int] = set()  # threads that are inside the function
        self.takes = takes
        self.concurrency = concurrency
        self._timeout = timeout
        self.version = version
        self.version_is_derived = version_is_derived
        self.version_note = version_note
        self._batch_size = batch_size
        self._queue = BatchQueue[FunctionRequest, Any](name, self._make_worker)
        if batch_size:
            self.wants_batches = True
            if concurrency == 1:
                self.concurrency = 2 * batch_size  # while one batch runs, the next is gathered

    async def load(self) -> None:
        if self._function is not None:
            return
        if self._batch_size:
            await self._queue.wait_until_loaded()
        else:
            await run_in_thread(self._instance)

    def _make_worker(self) -> BatchMethod:
        self._instance()
        if self._declaration is None or self._declaration.batch is None:
            raise CallError(f"{self.name} has no method `batch` once it is created", FATAL)
        return BatchMethod(self._declaration.batch)

    @property
    def batch_counts(self) -> BatchCounts | None:
        if self._batch_size:
            return self._queue.counts
        return None

    async def send(self, messages: tuple[Message, ...], request: Request) -> EndpointReply:
        shown = await run_in_thread(open_messages, messages, self._blobs)
        request = await run_in_thread(open_question, request, self._blobs)
        await self.load()
        result = await self._call(shown, request)
        if isinstance(result, Reply):
            parts = self._convert(result.parts)
            return EndpointReply(parts, result.outcome, result.reason, served_model=self.name, usage=result.usage)
        parts = self._convert(result)
        outcome, reason = outcome_of(parts, request.modality)
        return EndpointReply(parts, outcome, reason, served_model=self.name)

    async def _call(self, shown: list[tuple[str, list[Any]]], request: Request) -> Any:
        """Return what the user's code returns; whatever it raises becomes a CallError."""
        limit = asyncio.timeout(self._timeout)
        try:
            if self._batch_size:
                async with limit:
                    return await self._queue.call(
                        self._build_request(shown, request), (request.modality, request.size), self._batch_size
                    )
            function = self._instance()
            positional, named = call_arguments(function, request, self._options, self._seed)
            await self._wait_for_free_thread()
            limit = asyncio.timeout(self._timeout)
            async with limit:
                return await self._call_function(function, named, shown, request.modality, *positional)
        except CallError:
            raise
        except TimeoutError as error:
            problem = f"raised TimeoutError: {error}"
            if limit.expired():
                problem = f"did not come back within {self._timeout:g} s"
            raise CallError(f"{self.name} {problem}", NO_RETRY) from None
        except Exception as error:
            message = f"{self.name} raised {type(error).__name__}: {error}"
            raise _error_with_trace(message, NO_RETRY, error) from error

    def _build_request(self, shown: list[tuple[str, list[Any]]], request: Request) -> FunctionRequest:
        seed = self._seed + request.draw
        return FunctionRequest(
            shown, request.modality, request.size, request.draw, request.question, seed, self._options
        )

    async def _call_function(self, function: UserFunction, named: Mapping[str, Any], *arguments: Any) -> Any:
        call = functools.partial(function, **named) if named else function
        if _is_async(function):
            return await cast(Awaitable[Any], call(*arguments))
        result = await run_in_thread(self._run_counted, call, *arguments)
        if inspect.isawaitable(result):
            return await result
        return result

    def _run_counted(self, function: UserFunction, *arguments: Any) -> Any:
        """Run in the current thread, which counts as busy until the function returns, even after a timeout."""
        thread = threading.get_ident()
        self._busy_threads.add(thread)
        try:
            return function(*arguments)
        finally:
            self._busy_threads.discard(thread)

    async def _wait_for_free_thread(self) -> None:
        """Wait for calls that have timed out but still run, for another timeout: then they will never return.

        A model that takes one call at a time must not get a second one meanwhile.
        """
        deadline = time.monotonic() + self._timeout
        limit = self.concurrency or 1
        while len(self._busy_threads) >= limit and time.monotonic() < deadline:  # noqa: ASYNC110 (threads send no event)
            await asyncio.sleep(POLL_INTERVAL_S)
        if len(self._busy_threads) >= limit:
            self._busy_threads.clear()

    def _instance(self) -> UserFunction:
        """Return the function or object; it is created once, however many calls come first."""
        with self._make_lock:
            if self._function is None:
                try:
                    function = self._make()
                except Exception as error:
                    message = f"{self.name} could not be created: {type(error).__name__}: {error}"
                    raise _error_with_trace(message, FATAL, error) from error
                declaration = read_declaration(function)
                self._check_declaration(declaration)
                self._function = function
                self._declaration = declaration
            return self._function

    def _check_declaration(self, declaration: Declaration) -> None:
        """Raise CallError if the instance declares another name or version than the class, under which it is cached."""
        expected = {"name": self.name}
        if self.version_is_derived:
            expected["version"] = self.version
        for name, value in expected.items():
            declared = declaration.options.get(name)
            if declared is not None and str(declared) != value:
                raise CallError(
                    f"{self.name} calls its {name} {declared} once it is created; answers are cached under {value}: "
                    f"set {name} on the class, or with --model-opt {name}={declared}",
                    FATAL,
                )

    async def close(self) -> None:
        await self._queue.close()
        if self._declaration is not None and self._declaration.close is not None:
            result = self._declaration.close()
            if inspect.isawaitable(result):
                await result

    def _convert(self, value: Any) -> tuple[Part, ...]:
        """Return what the user's code returned as parts. Raises CallError for what is none."""
        if isinstance(value, dict):
            return (Text(msgspec.json.encode(value).decode()),)
        if isinstance(value, (list, tuple)):
            parts: list[Part] = []
            for item in cast(list[Any], value):
                parts += self._convert(item)
            return tuple(parts)
        if isinstance(value, str):
            return (Text("".join((value,))),) if value else ()  # "".join: a plain str also of numpy.str_
        if isinstance(value, (Text, Image, Thought)):
            return (value,)
        try:
            if isinstance(value, bytes):
                return (self._blobs.put(value),)
            if is_pil_image(value):
                return (self._blobs.put_pil(value),)
        except ImageError as error:
            raise CallError(f"{self.name} returned an image that {error}", NO_RETRY) from None
        raise CallError(
            f"{self.name} returned {type(value).__name__}; "
            "it may return str, PIL.Image, or a list of both (a judge: a dict)",
            NO_RETRY,
        )


def _options_identity(options: Mapping[str, Any], seed: int | None) -> dict[str, Any]:
    """Return the part of the identity that the user's options are."""
    values = dict(options)
    if seed is not None:
        values["seed"] = seed
    for name, value in values.items():
        if not isinstance(value, PLAIN_TYPES):
            values[name] = str(value)
    if values:
        return {"options": values}
    return {}


def _error_with_trace(message: str, retry: Retry, error: Exception) -> CallError:
    call_error = CallError(message, retry)
    call_error.trace = format_trace(error)
    return call_error


def endpoint_from_object(thing: Any, blobs: Blobs, options: Mapping[str, Any], source: str = "") -> Endpoint:
    """Wrap a function, an object with `__call__` or `batch`, or a class of such.

    An `Endpoint` is returned as it is. A class of endpoints is instantiated with the options, and with `blobs=` (the
    store for its images) if it has that parameter. Raises UserError for anything else.
    """
    declaration = read_declaration(thing)
    called = source or declaration.called
    if isinstance(thing, Endpoint):
        if options:
            raise UserError(f"{called} is created already: it takes no options")
        return identify_endpoint(thing, blobs.root.parent, from_file=bool(source))
    if inspect.isclass(thing) and issubclass(thing, Endpoint):
        endpoint = _instantiate_endpoint(thing, blobs, options, called)
        return identify_endpoint(endpoint, blobs.root.parent, from_file=bool(source))
    if declaration.sends:
        raise UserError(f"{called} has `send` but is no endpoint: make its class one of weft.models.endpoint.Endpoint")
    if declaration.roles is not None:
        example = ",".join(f"{role}=MODEL" for role in declaration.roles)
        raise UserError(f"{called} is a composition: give its roles models, as in {called}:{example}")
    if declaration.batch is None:
        _check_callable(thing, called)
    return _build_function_endpoint(thing, declaration, blobs, options, called, from_file=bool(source))


def _instantiate_endpoint(kind: type[Endpoint], blobs: Blobs, options: Mapping[str, Any], called: str) -> Endpoint:
    try:
        endpoint: Endpoint = cast(Any, kind)(**options, **_blobs_argument(kind, blobs))
    except Exception as error:
        raise UserError(f"{called} could not be created: {type(error).__name__}: {error}") from error
    missing = [name for name in ("name", "address", "identity") if not hasattr(endpoint, name)]
    if missing:
        raise UserError(f"{called} lacks {', '.join(missing)}: its __init__ must call super().__init__(name)")
    return endpoint


def _check_callable(thing: Any, called: str) -> None:
    if inspect.isclass(thing):
        if not any("__call__" in vars(base) for base in thing.__mro__[:-1]):
            raise UserError(
                f"{called} is no model: its objects must be callable with (messages, want), or have a method `batch`"
            )
    elif not callable(thing):
        raise UserError(f"{called} is no model: it must be callable with (messages, want)")


def _blobs_argument(kind: type, blobs: Blobs) -> dict[str, Blobs]:
    if "blobs" in inspect.signature(kind).parameters:
        return {"blobs": blobs}
    return {}


def _build_function_endpoint(
    thing: Any, declaration: Declaration, blobs: Blobs, options: Mapping[str, Any], called: str, *, from_file: bool
) -> FunctionEndpoint:
    user_options = sort_options(thing, declaration, options, called)
    if inspect.iscoroutinefunction(declaration.batch):
        raise UserError(f"{called}: its method `batch` must not be async: it is called in a thread of its own")
    declared: dict[str, Any] = {}  # an option of the user overrides the attribute
    for option in DECLARED_OPTIONS:
        value = options.get(option, declaration.options.get(option))
        if value is not None:
            declared[option] = value
    source = read_source(thing, blobs.root.parent.absolute().parent)
    # without a name of its own the location is part of the identity: two files may each have a `model`
    where = "" if "name" in declared else source.location
    name = str(declared.pop("name", source.name))
    version = declared.pop("version", None)
    try:
        concurrency = max(1, int(declared.pop("concurrency", 1)))
        timeout = positive_seconds(declared.pop("timeout", DEFAULT_TIMEOUT_S))
        batch_size = _read_batch_size(declared.pop("batch_size", None), declaration, called)
        takes = msgspec.convert(declared, Takes, strict=False)
    except (ValueError, TypeError, OverflowError, msgspec.ValidationError) as error:
        raise UserError(f"{called}: {error}") from None

    version_note = ""
    if version is None:
        given = {**user_options.init, **user_options.call}
        given.pop("seed", None)  # is in the identity: runs that differ only in their seed are of one version
        derived = derive_version(thing, blobs.root.parent, given, from_file=from_file)
        version = derived.version
        version_note = derived.assumption(name, from_file=from_file)
    elif not from_file and not inspect.isclass(thing):
        source = replace(source, digest=f"{source.digest} {digest_roughly(thing)}")

    def make() -> Any:
        if inspect.isclass(thing):
            return cast(Any, thing)(**_blobs_argument(cast(type, thing), blobs), **user_options.init)
        return thing

    return FunctionEndpoint(
        make,
        blobs,
        name=name,
        where=where,
        version=str(version),
        takes=takes,
        concurrency=concurrency,
        timeout=timeout,
        version_is_derived=is_derived(str(version)),
        version_note=version_note,
        batch_size=batch_size,
        source=source,
        options={**user_options.init, **user_options.call},
        seed=user_options.seed,
    )


def _read_batch_size(value: Any, declaration: Declaration, called: str) -> int:
    """Return the batch size; 0 without a method `batch`. Raises ValueError, or UserError if there is no such method."""
    if declaration.batch is None:
        if value is not None:
            raise UserError(f"{called} has a batch_size and no method `batch`")
        return 0
    if value is None:
        return DEFAULT_BATCH_SIZE
    size = int(value)
    if size < 1:
        raise ValueError(f"batch_size is {value}: give a number from 1 up")
    return size


def _is_async(function: UserFunction) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


async def run_in_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    """Run a function in a daemon thread of its own, so that Ctrl-C need not wait for it.

    Whatever it raises comes back as an ordinary exception: sys.exit() in a model must not end weft, and a StopIteration
    would stop whoever awaits it. If the function forks and both processes return, the child ends here.
    """
    done: Future[tuple[Any, BaseException | None]] = Future()
    process = os.getpid()

    def work() -> None:
        result: tuple[Any, BaseException | None]
        try:
            result = (function(*arguments), None)
        except BaseException as error:
            result = (None, error)
        if os.getpid() != process:
            os._exit(0)
        with contextlib.suppress(InvalidStateError):  # the caller has given up
            done.set_result(result)

    threading.Thread(target=work, name="model", daemon=True).start()
    result, error = await asyncio.wrap_future(done)
    if error is None:
        return result
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        raise error
    raise RuntimeError(f"{type(error).__name__}: {error}") from error
