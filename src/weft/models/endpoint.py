"""The interface of every model that can be called: one model behind one protocol, one attempt per call.

An endpoint does not cache, limit, retry or journal; `weft.calls.caller` adds those. `send` returns an `EndpointReply`,
or raises `CallError` with a typed retry decision. It never raises for what the model itself did (a refusal, a missing
image): those are outcomes of the reply. Secrets stay inside the endpoint: never in `identity`, never in a message.

    class Echo(Endpoint):
        def __init__(self) -> None:
            super().__init__("echo", version=1)

        async def send(self, messages, request):
            return EndpointReply((Text("hello"),), "answered", served_model=self.name)
"""

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Literal, Protocol
from urllib.parse import urlsplit

from msgspec import Struct

from weft.errors import UserError, WeftError
from weft.types import Gives, Message, Note, Outcome, Part, Request, StopCause, Takes, Usage


class Retry(Struct, frozen=True):
    """Whether a failed request may be tried again.

    `no`: never. `transient`: soon. `rate_limit`: after `delay` seconds, if the endpoint gave a delay. `denied`: a wrong
    key, no such model or no permission; this concerns the request alone if other requests succeed, else the endpoint.
    `fatal`: every further call would fail too (no quota left), so the run stops.
    """

    kind: Literal["no", "transient", "rate_limit", "denied", "fatal"]
    delay: float | None = None  # seconds that the endpoint asked to wait


UNDECIDED = "undecided"  # the key under which a judge's reply lists the points it left undecided
NO_RETRY = Retry("no")
TRANSIENT = Retry("transient")
DENIED = Retry("denied")
FATAL = Retry("fatal")


class CallError(WeftError):
    """A call that brought no reply, and what that means for the next attempt.

    `billed`: the provider may charge for the request. By default this is assumed for transient errors (a broken reply,
    a timeout, a server error) unless the server could not be reached. `timed_out`: the server may be overloaded.
    """

    def __init__(
        self,
        message: str,
        retry: Retry,
        *,
        unreachable: bool = False,
        billed: bool | None = None,
        timed_out: bool = False,
    ) -> None:
        super().__init__(message)
        self.retry = retry
        self.unreachable = unreachable
        self.timed_out = timed_out
        self._billed = billed
        self.usage = Usage()  # the estimated usage of a billed request; set by the caller
        self.trace = ""  # the traceback, if a user's own code raised

    @property
    def billed(self) -> bool:
        if self._billed is None:
            return self.retry.kind == "transient" and not self.unreachable
        return self._billed

    @billed.setter
    def billed(self, billed: bool) -> None:
        self._billed = billed

    def assume_billed(self) -> None:
        """Take the request as billed, unless the error says otherwise: the server had accepted it."""
        self._billed = self._billed is not False


class EndpointReply(Struct, frozen=True):
    """One reply of an endpoint."""

    parts: tuple[Part, ...]  # text, images and thoughts in order
    outcome: Outcome
    reason: str = ""  # why it is no answer, or what a reader must know about it
    raw: str = ""  # the raw reply, with image bytes replaced by digests
    served_model: str = ""  # the model that the server says has answered
    usage: Usage = Usage()
    retry_advised: bool = (
        False  # another attempt may do better (an empty body, a truncated image), so one is made first
    )
    stop_cause: StopCause = ""
    notes: tuple[Note, ...] = ()


# Receives pieces of a text as they arrive, before secrets are removed; None means that the text begins (again).
TextListener = Callable[[str | None], None]
# The listener of the current task, if somebody wants to read a text while it is being written.
TEXT_LISTENER: "ContextVar[TextListener | None]" = ContextVar("TEXT_LISTENER", default=None)


class Endpoint:
    """The base class of all models: pass a name to `__init__` and implement `send`.

    Weights are loaded by the first call (or `load`), not by `__init__`: a dry run, or a run whose answers are all
    cached, creates an endpoint and never calls it.
    """

    cacheable: bool = True  # False: answers are never taken from the journal
    depends_on_input: bool = True  # False (outputs from elsewhere): a turn need not wait for earlier turns
    concurrency: int | None = None  # the maximum number of calls at once, if the endpoint knows it
    initial_concurrency: int | None = None  # calls in flight at the start, if more would only queue in the server
    wants_batches: bool = False  # whether it works best with as many calls at once as it can take
    takes: Takes = Takes()
    gives: Gives = Gives()
    may_leave_undecided: bool = False  # whether, as a judge, it may list points under `UNDECIDED`
    licence: str = ""  # under which what it makes may be used, if the model itself says so
    output_checked: bool = True  # False: weft's own endpoints, called so often that checking them is skipped
    max_reply_tokens: int | None = None  # set by a budget that must know the longest possible reply; `send` obeys it
    phrasing: Any = None  # how strategies phrase requests to it, if not in English (weft.models.compose.phrasing)
    previous_identities: tuple[Mapping[str, Any], ...] = ()  # older identities, under which answers may be cached
    code_digest: str = ""  # a digest of its code, if that is the user's own
    version_note: str = ""  # what is assumed about its version, if the user set none
    usual_price_share: float = 1.0  # what `price_share` returns for most requests
    name: str
    address: str
    identity: Mapping[str, Any]

    def __init__(self, name: str, *, address: str = "", **identity: Any) -> None:
        """Store the name that the user uses, the address, and the identity.

        `identity` is everything about the model that can change an answer: it is part of every cache key and of the
        run's manifest.
        """
        self.name = name
        self.address = address or f"local:{name}"
        self.identity = {"provider": "local", "model": name, **identity}

    async def send(self, messages: tuple[Message, ...], request: Request) -> EndpointReply:
        """Make one attempt to answer the messages."""
        raise CallError(f"{self.name} has no send", FATAL)

    async def load(self) -> None:
        """Do now what the first call would have to wait for, such as loading weights."""

    def normalise_addresses(self) -> None:
        """Cache answers under one spelling of the address; those cached under the old spelling are still found."""
        original = self.identity
        normalised: dict[str, Any] = {**original}
        if isinstance(original.get("url"), str):
            normalised["url"] = normalise_address(original["url"])
        if isinstance(original.get("urls"), list):
            normalised["urls"] = [normalise_address(str(url)) for url in original["urls"]]
        if normalised != dict(original):
            self.identity = normalised
            self.previous_identities = (original, *self.previous_identities)

    def identify_as(self, called: str, version: str) -> None:
        """Identify the model by the user's version (and name) instead of its address.

        Its answers are then reused at any address: the user vouches that the weights are the same.
        """
        identity = {key: value for key, value in self.identity.items() if key not in ("url", "urls")}
        if "urls" in self.identity:  # the address is its only name
            if not called:
                raise UserError(
                    f"{self.name}: a version needs a name as well: --model-opt name=NAME, or [models.NAME] in weft.toml"
                )
            identity["model"] = called
        identity["version"] = version
        if called:
            identity["called"] = called
        self.identity = identity
        self.previous_identities = ()

    @property
    def missing_setup(self) -> str:
        """What the endpoint needs and does not have, in a few words; "" if nothing is missing."""
        return self.missing_key

    @property
    def missing_key(self) -> str:
        """Which API key is not set although the address requires one; "" if none is missing."""
        return ""

    @property
    def status_line(self) -> str:
        """One line about its current state for those who wait; "" if there is nothing to report."""
        return ""

    def price_share(self, messages: tuple[Message, ...], request: Request) -> float:
        """Return the share of the usual price that this request costs."""
        return 1.0

    def batch_service(self) -> "BatchService | None":
        """Return the provider's batch API for this model; None if it has none."""
        return None

    async def close(self) -> None:
        return


def normalise_address(url: str) -> str:
    """Return the address as it is used in cache keys: `localhost` becomes `127.0.0.1`."""
    parts = urlsplit(url)
    if (parts.hostname or "") != "localhost":
        return url
    return parts._replace(netloc=parts.netloc.lower().replace("localhost", "127.0.0.1")).geturl()


class TaskEndpoint(Endpoint):
    """An endpoint that takes a request now and has the answer later: a task API, or a batch API.

    The ticket that `submit` returns is journalled before anyone waits for it, so that a later command can collect what
    a killed command submitted.
    """

    poll_interval: float = 2.0  # seconds between two polls
    max_wait: float | None = 1800.0  # seconds until an unfinished task is left to the next command; None: no limit

    def answers_immediately(self, messages: tuple[Message, ...], request: Request) -> bool:
        """Return whether this request goes through `send` instead of `submit`."""
        return False

    def release(self, ticket: str) -> None:
        """Forget a ticket that could not be journalled: nobody will collect its answer."""

    def flush_soon(self) -> None:
        """Submit what has been gathered: no more requests will come for a while."""

    async def submit(self, messages: tuple[Message, ...], request: Request) -> str:
        """Submit a request and return the ticket with which its answer is collected."""
        raise CallError(f"{self.name} has no submit", FATAL)

    async def collect(self, ticket: str, request: Request) -> EndpointReply | None:
        """Return the answer, or None while there is none.

        Raises TicketExpired if the ticket leads nowhere any more; the request is then submitted again.
        """
        raise CallError(f"{self.name} has no collect", FATAL)


class BatchService(Protocol):
    """A provider's batch API: a file of requests, one named line each; a batch that runs it; results by line name."""

    max_requests: int  # lines of one file
    max_bytes: int  # of one file

    def build_line(self, name: str, messages: tuple[Message, ...], request: Request) -> dict[str, Any]:
        """Return a request as one line of a file; images stand in it as `Image` objects."""
        ...

    async def upload(self, lines: Sequence[Mapping[str, Any]]) -> str:
        """Upload a file and return its name. This costs nothing and starts no work."""
        ...

    async def find_batch(self, file: str) -> str:
        """Return the batch that runs or has run this file; "" if there is none."""
        ...

    async def start_batch(self, file: str) -> str:
        """Start a batch for this file and return its id."""
        ...

    async def get_status(self, batch: str) -> "BatchStatus":
        """Return how far the batch is."""
        ...

    async def fetch_results(self, status: "BatchStatus", /) -> Mapping[str, Any]:
        """Return the results of a finished batch by line name; None for a line that was never worked on."""
        ...

    async def parse_result(self, result: Any, request: Request, /) -> EndpointReply:
        """Return one result as the reply that `send` would have returned."""
        ...


class BatchStatus(Struct, frozen=True):
    """How far a batch is."""

    state: str  # the provider's word for it
    is_finished: bool  # no more results will come; all there are is in `result_files`
    result_files: tuple[str, ...] = ()
    error: str = ""  # why the batch as a whole failed
    completed: int = 0  # requests that have a result
    total: int = 0  # requests of the batch


class TicketExpired(CallError):
    """The ticket's answer cannot be had any more; the request may be submitted again."""

    def __init__(self, message: str, *, billed: bool = True) -> None:
        super().__init__(message, TRANSIENT, billed=billed)
