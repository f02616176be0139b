"""Stand-ins for Ray's actors, which need no Ray that runs: what goes in and comes out is pickled, as between processes,
and what a method raises comes as Ray raises it. And models whose code does whatever code can do."""

import asyncio
import logging
import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fuzz import Broken
from weft.models.endpoint import NO_RETRY, TRANSIENT, CallError, Endpoint, EndpointReply, Retry
from weft.types import Image, Text, Thought, Usage

MARK = "WEFT_ATTACK_MARK"  # a file: a line for each object of a model that was unpickled
SHARE = "WEFT_ATTACK_SHARE"  # of the replies that are lies
SEED = "WEFT_ATTACK_SEED"

logging.getLogger("ray").setLevel(logging.CRITICAL)  # it remarks on causes of errors that are no errors

Lie = Callable[[str, Any], Any]  # a method's name and its result -> what is sent, or raised


class Actor:
    """An object behind pickles. `lie` may send something else than its methods return."""

    everyone: list["Actor"] = []

    def __init__(self, thing: Any, lie: Lie | None = None) -> None:
        self._thing = thing
        self._lie = lie
        self._number = len(Actor.everyone)
        Actor.everyone.append(self)

    def __reduce__(self) -> Any:
        return _find_actor, (self._number,)

    def __getattr__(self, name: str) -> "_Method":
        if name.startswith("_"):
            raise AttributeError(name)
        return _Method(self, name)


class _Method:
    def __init__(self, actor: Actor, name: str) -> None:
        self._actor = actor
        self._name = name

    def remote(self, *arguments: Any) -> "asyncio.Future[Any]":
        sent = asyncio.ensure_future(self._call(dumps(arguments)))
        sent.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody need look
        return sent

    async def _call(self, arguments: bytes) -> Any:
        from ray import exceptions

        try:
            method: Any = getattr(self._actor._thing, self._name)
            result = method(*loads(arguments))
            if asyncio.iscoroutine(result):
                result = await result
            if self._actor._lie is not None:
                result = self._actor._lie(self._name, result)
            data = dumps(result)
        except exceptions.RayActorError:
            raise
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            raise raised_by_ray(self._name, error) from None
        return loads(data)


def raised_by_ray(function: str, error: BaseException) -> BaseException:
    """What the other process gets where this is raised."""
    from ray import exceptions

    if isinstance(error, (SystemExit, KeyboardInterrupt)):
        return exceptions.ActorDiedError()
    where = {"proctitle": "ray::attack", "pid": os.getpid(), "ip": "127.0.0.1"}
    try:
        text = f"Traceback (most recent call last):\n{type(error).__name__}: {error}"
    except Exception:
        text = type(error).__name__
    try:
        cause = loads(dumps(error))
    except Exception as problem:
        return exceptions.RaySystemError(str(problem), text)
    return exceptions.RayTaskError(function, text, cause, **where).as_instanceof_cause()


def _find_actor(number: int) -> Actor:
    return Actor.everyone[number]


def dumps(value: Any) -> bytes:
    from ray import cloudpickle

    return cloudpickle.dumps(value)


def loads(data: bytes) -> Any:
    from ray import cloudpickle

    return cloudpickle.loads(data)


class Trap:
    """Code runs where this is unpickled."""

    def __reduce__(self) -> Any:
        return exec, (f"import traceback; open({os.environ[MARK]!r}, 'a').write(''.join(traceback.format_stack()))",)


class TrapError(Exception):
    def __reduce__(self) -> Any:
        return Trap().__reduce__()


class StubbornError(Exception):
    """Nobody can unpickle it."""

    def __init__(self, one: Any, two: Any) -> None:
        super().__init__("stubborn\x1b[31m\nin two lines")


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


class Words(str):
    """A text that is more than one."""

    __slots__ = ()

    def __reduce__(self) -> Any:
        return Trap().__reduce__()


def lies() -> list[Any]:
    """What a model's code returns or, where it is an exception, raises."""
    odd: Any = Trap()

    def say(*parts: Any, outcome: Any = "answered", **more: Any) -> EndpointReply:
        return EndpointReply(parts, outcome, **more)

    untrue = CallError("no", NO_RETRY)
    untrue.trace = odd
    return [
        None, 7, "text", b"\xff", object(), odd, [odd], {"a": odd}, lambda: None, EndpointReply, say(), say(odd),
        say(Text(odd)), say(Text(Words("words"))), say(Text("\ud800")), say(Text("\0\x1b[31m")), say(Text("x" * 3_000_000)),
        say(Text("{" * 3000)), say(Text('{"a":' * 3000)), say(Text("a"), raw=odd), say(Text("a"), raw=5), say(Text("a"), raw="x" * 300_000),
        say(Text("a"), reason=odd), say(Text("a"), outcome=odd), say(Text("a"), outcome="forged"), say(outcome="refused"),
        say(Text("a"), usage=Usage(tokens_in=-5)), say(Text("a"), usage=Usage(cost=float("nan"))), say(Text("a"), usage=odd),
        say(Text("a"), notes=(odd,)), say(Text("a"), served_model=odd), say(Thought(odd)), say(Thought("hm")),
        say(Image("../../../etc/passwd", "image/png", 8, 8, 8)), say(Image("f" * 64, "image/png", 8, 8, 8)),
        say(Image("f" * 64, odd, 8, 8, 8)), say(Image("f" * 64, "image/png", 10**30, 8, -8)),
        TrapError(), StubbornError(1, 2), UnprintableError(), SystemExit(0), SystemExit(odd), KeyboardInterrupt(), GeneratorExit(),
        asyncio.CancelledError(), StopIteration(odd), RecursionError(), MemoryError(), TimeoutError(), BaseException(odd),
        BaseExceptionGroup("several", [SystemExit(0), TrapError()]), CallError("no", NO_RETRY), CallError("later", TRANSIENT),
        CallError(odd, NO_RETRY), CallError("no", odd), CallError("no", "transient"), CallError("\ud800", NO_RETRY),  # type: ignore[arg-type]
        CallError("no", Retry("rate_limit", odd)), CallError("no", Retry(odd)), CallError("no", NO_RETRY, billed=odd), untrue,
    ]  # fmt: skip


class Liar(Endpoint):
    """A model that says the truth or, for a share of the requests that its environment names, anything else.

    The same request is the same lie in every process.
    """

    async def send(self, messages: Any, request: Any) -> EndpointReply:
        text = "".join(part.text for message in messages for part in message.parts if isinstance(part, Text))
        chance = random.Random(f"{os.environ.get(SEED)} {self.name} {text}")
        if chance.random() < float(os.environ.get(SHARE, "0")):
            lie = chance.choice(lies())
            if isinstance(lie, BaseException):
                raise lie
            return lie
        return self.honest(text, request)

    def honest(self, text: str, request: Any) -> EndpointReply:
        return EndpointReply((Text(f"I read {len(text)} letters."),), "answered", served_model=self.name)


@contextmanager
def lying(seed: int, share: float, mark: Path, *, watched: bool = True) -> Iterator[None]:
    """Let `Liar` lie here and in processes that are started here. Where it is watched, no object of a model may be
    unpickled meanwhile."""
    settings = {SEED: str(seed), SHARE: str(share), MARK: str(mark)}
    earlier = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in earlier.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
    if watched and mark.exists():
        raise Broken(f"seed {seed}: an object of a model got into another process: {mark.read_text()[-1500:]}")
