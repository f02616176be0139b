"""The interface of anything that can be called: one model behind one wire protocol, one try at a time.

An endpoint knows nothing of memo, limits, retries or the journal; `weft.engine.call` adds those. It answers with `Sent`, or
raises `CallError` with a typed retry decision. It never raises for what is the model's own doing (a refusal, a missing
picture): those are outcomes of `Sent`. Anything secret stays inside it: not in `identity`, not in a message.
"""

from collections.abc import Mapping
from typing import Any, Literal, Protocol

from msgspec import Struct

from weft.errors import WeftError
from weft.types import Kind, Message, Outcome, Part, Takes, Text, Usage, Want


class Retry(Struct, frozen=True):
    """`no`: never again. `transient`: soon. `rate_limit`: after `delay` seconds if the endpoint said so. `fatal`: every further
    call would fail as well (wrong key, no such model, no quota), so the run stops."""

    kind: Literal["no", "transient", "rate_limit", "fatal"]
    delay: float | None = None


NO, TRANSIENT, FATAL = Retry("no"), Retry("transient"), Retry("fatal")


class CallError(WeftError):
    def __init__(self, message: str, retry: Retry, *, unreachable: bool = False) -> None:
        super().__init__(message)
        self.retry = retry
        self.unreachable = unreachable


class Sent(Struct, frozen=True):
    """One answer: its parts in order, its outcome, and the raw reply with picture bytes replaced by digests.
    `again` says that another try may well do better (an empty body, a picture cut short), so it is made before this counts."""

    parts: tuple[Part, ...]
    outcome: Outcome
    reason: str = ""
    raw: str = ""
    served: str = ""
    usage: Usage = Usage()
    again: bool = False


class Endpoint(Protocol):
    @property
    def name(self) -> str:
        """What the user called it."""
        ...

    @property
    def address(self) -> str:
        """Where it is. Model and judge have a limiter each, even at one address."""
        ...

    @property
    def identity(self) -> Mapping[str, Any]:
        """Everything about it that can change an answer. Part of every call's key and of the run's manifest."""
        ...

    @property
    def takes(self) -> Takes: ...

    @property
    def memo(self) -> bool:
        """Whether answers may be taken from the journal; False for what is read afresh each time."""
        ...

    @property
    def concurrency(self) -> int | None:
        """The most calls it can take at once, if it knows."""
        ...

    async def send(self, messages: tuple[Message, ...], want: Want) -> Sent: ...

    async def close(self) -> None: ...


class EndpointBase:
    """Defaults for an endpoint of your own: give it a name, and write `send`."""

    memo = True
    sees = True  # whether what it is shown can change its reply: outputs made elsewhere do not wait for an earlier turn
    concurrency: int | None = None
    takes = Takes()

    def __init__(self, name: str, **identity: Any) -> None:
        self.name, self.address = name, f"local:{name}"
        self.identity: Mapping[str, Any] = {"provider": "local", "model": name, **identity}

    async def close(self) -> None:
        return


def outcome_of(parts: tuple[Part, ...], kind: Kind) -> tuple[Outcome, str]:
    """The outcome of a reply from what it holds and what was due."""
    has_text = any(isinstance(part, Text) and part.text.strip() for part in parts)
    has_image = any(not isinstance(part, Text) for part in parts)
    if kind == "text":
        return ("answered", "") if has_text else ("empty", "a picture where text was due" if has_image else "an empty reply")
    if has_image or (kind == "interleaved" and has_text):
        return "answered", ""
    if has_text:
        said = " ".join(part.text for part in parts if isinstance(part, Text)).split()
        return "empty", "text where a picture was due: " + _shorten(" ".join(said), 160)
    return "empty", "an empty reply"


def _shorten(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
