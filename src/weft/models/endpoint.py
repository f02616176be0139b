"""The interface of anything that can be called: one model behind one wire protocol, one try at a time.

An endpoint knows nothing of memo, limits, retries or the journal; `weft.calls.caller` adds those. It answers with
`Sent`, or raises `CallError` with a typed retry decision. It never raises for what is the model's own doing (a refusal,
a missing picture): those are outcomes of `Sent`. Anything secret stays inside it: not in `identity`, not in a message.
"""

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Literal, Protocol
from urllib.parse import urlsplit

from msgspec import Struct

from weft.errors import UserError, WeftError
from weft.types import Gives, Message, Note, Outcome, Part, Request, StopCause, Takes, Usage


class Retry(Struct, frozen=True):
    """`no`: never again. `transient`: soon. `rate_limit`: after `delay` seconds if the endpoint said so. `denied`:
    turned away (a wrong key, no such model, not allowed): the request's own trouble where others are answered, else the
    endpoint's. `fatal`: every further call would fail as well (no quota), so the run stops."""

    kind: Literal["no", "transient", "rate_limit", "denied", "fatal"]
    delay: float | None = None


UNDECIDED = "undecided"  # the key of a judge's reply under which it lists what it left open
NO_RETRY = Retry("no")
TRANSIENT = Retry("transient")
DENIED = Retry("denied")
FATAL = Retry("fatal")


class CallError(WeftError):
    """`billed`: the request may have been worked on, and may have to be paid for. Unless it is said, that is so where
    another try is due soon: a reply that is cut or broken, none in time, an error of the server's. `timed_out`: it may
    have had too much to do."""

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
        if billed is None:
            self.billed = retry.kind == "transient" and not unreachable
        else:
            self.billed = billed
        self.usage = Usage()  # what it is taken to have used, once that is reckoned
        self.trace = ""  # the traceback of what a user's code raised


class EndpointReply(Struct, frozen=True):
    """One answer: its parts in order, its outcome, and the raw reply with picture bytes replaced by digests.
    `again` says that another try may well do better (an empty body, a picture cut short), so it is made before this
    counts."""

    parts: tuple[Part, ...]
    outcome: Outcome
    reason: str = ""
    raw: str = ""
    served_model: str = ""
    usage: Usage = Usage()
    retry_advised: bool = False
    stop_cause: StopCause = ""
    notes: tuple[Note, ...] = ()


# pieces of a text as they come, not scrubbed yet; None: it begins, or begins again
TextListener = Callable[[str | None], None]
# who wants a text while it is still being written
TEXT_LISTENER: "ContextVar[TextListener | None]" = ContextVar("LISTEN", default=None)


class Endpoint:
    """The base class: give it a name, and write `send`. Weights are loaded when the first call comes, not when it is
    made: a dry run, or a run whose answers are all in the journal, makes an endpoint and never calls it."""

    cacheable: bool = True  # whether answers may be taken from the journal; False for what is read afresh each time
    # whether what it is shown can change its reply: outputs made elsewhere do not wait for an earlier turn
    depends_on_input: bool = True
    concurrency: int | None = None  # the most calls it can take at once, if it knows
    initial_concurrency: int | None = None  # calls in flight to begin with, where many would only wait in the server
    wants_batches: bool = False  # whether it wants as many calls at once as it can take, to work on them together
    takes: Takes = Takes()
    gives: Gives = Gives()
    may_leave_undecided: bool = (
        # whether, as a judge, it may leave points undecided (`UNDECIDED` in its reply): a program that knows its limits
        False
    )
    output_checked: bool = True  # whether what it sends is checked; our own that are called very often need not be
    max_reply_tokens: int | None = (
        None  # the most tokens that a reply may have, where a budget needs that to be known; who sends it keeps to it
    )
    phrasing: Any = None  # how a strategy speaks to it, where that is not English (weft.models.compose.phrasing)
    previous_identities: tuple[
        Mapping[str, Any], ...
    ] = ()  # what the same model was kept under before: answers are looked for there as well
    code_digest: str = ""  # a digest of its code, where it is a user's own
    name: str
    address: str
    identity: Mapping[str, Any]

    def __init__(self, name: str, *, address: str = "", **identity: Any) -> None:
        """`name` is what the user calls it, `address` where it is. `identity` is everything about it that can change an
        answer: part of every call's key and of the run's manifest."""
        self.name = name
        self.address = address or f"local:{name}"
        self.identity = {"provider": "local", "model": name, **identity}

    async def send(self, messages: tuple[Message, ...], want: Request) -> EndpointReply:
        """One try."""
        raise CallError(f"{self.name} has no send", FATAL)

    async def load(self) -> None:
        """Whatever the first call would have to wait for."""

    def normalise_addresses(self) -> None:
        """Answers are cached under one spelling of an address; those that were cached under another are found as
        well."""
        written = self.identity
        kept: dict[str, Any] = {**written}
        if isinstance(written.get("url"), str):
            kept["url"] = normalise_address(written["url"])
        if isinstance(written.get("urls"), list):
            kept["urls"] = [normalise_address(str(url)) for url in written["urls"]]
        if kept != dict(written):
            self.identity, self.previous_identities = kept, (written, *self.previous_identities)

    def identify_as(self, called: str, version: str) -> None:
        """A model with a version of its own, and maybe a name, keeps its answers at any address: its user says which
        weights they are."""
        kept = {key: value for key, value in self.identity.items() if key not in ("url", "urls")}
        if "urls" in self.identity:  # it has no name but its address
            if not called:
                raise UserError(
                    f"{self.name}: a version needs a name as well: --model-opt name=NAME, or [models.NAME] in weft.toml"
                )
            kept["model"] = called
        self.identity = {**kept, "version": version, **({"called": called} if called else {})}
        self.previous_identities = ()

    usual_price_share: float = 1.0  # what `rate` says of most requests

    @property
    def missing_setup(self) -> str:
        """What it would need, and does not have, in a few words."""
        return self.missing_key

    @property
    def missing_key(self) -> str:
        """Which key it has not, where it answers nobody without one."""
        return ""

    @property
    def status_line(self) -> str:
        """Where it stands, in a line, for those who wait; nothing where there is nothing to say."""
        return ""

    def price_share(self, messages: tuple[Message, ...], want: Request) -> float:
        """The share of the usual price that this request costs."""
        return 1.0

    def batch_service(self) -> "BatchService | None":
        """Where many requests are handed in at once, for less; None where there is no such place."""
        return None

    async def close(self) -> None:
        return


def normalise_address(url: str) -> str:
    """An address as answers are cached under it: `localhost` and `127.0.0.1` are one."""
    parts = urlsplit(url)
    if (parts.hostname or "") != "localhost":
        return url
    return parts._replace(netloc=parts.netloc.lower().replace("localhost", "127.0.0.1")).geturl()


class TaskEndpoint(Endpoint):
    """An endpoint that takes a request now and has the answer later: a task API, or a batch. What `submit` gives is in
    the journal before anyone waits for it; a command that was killed in between is followed by one that collects."""

    poll_interval: float = 2.0  # seconds between two looks
    # seconds until a task that is never done is left to the next command; None: as long as it takes
    max_wait: float | None = 1800.0

    def answers_immediately(self, messages: tuple[Message, ...], want: Request) -> bool:
        """Whether this request is sent and answered like any other, and not handed in."""
        return False

    def release(self, ticket: str) -> None:
        """This ticket could not be kept: nobody will come for its answer."""

    def flush_soon(self) -> None:
        """Nothing more will come for a while: what was gathered can be handed in."""

    async def submit(self, messages: tuple[Message, ...], want: Request) -> str:
        """Hand a request in; gives the ticket to collect its answer with."""
        raise CallError(f"{self.name} has no submit", FATAL)

    async def collect(self, ticket: str, want: Request) -> EndpointReply | None:
        """The answer, or None while there is none. A ticket that leads nowhere any more raises `Expired`: it is handed
        in again."""
        raise CallError(f"{self.name} has no collect", FATAL)


class BatchService(Protocol):
    """A provider's place for batches: a file of requests, one a line under a name; then a batch that works on it; then
    answers by name."""

    max_requests: int
    max_bytes: int

    def build_line(self, name: str, messages: tuple[Message, ...], want: Request) -> dict[str, Any]:
        """A request as a line of a file; pictures stand in it as themselves."""
        ...

    async def upload(self, lines: Sequence[Mapping[str, Any]]) -> str:
        """Keep these lines; gives the file's name. It costs nothing: no work is begun."""
        ...

    async def find_batch(self, file: str) -> str:
        """The batch that works on this file, or has; nothing if there is none."""
        ...

    async def start_batch(self, file: str) -> str:
        """Let the work begin; gives the batch."""
        ...

    async def get_status(self, batch: str) -> "BatchStatus":
        """How far it is."""
        ...

    async def fetch_results(self, look: "BatchStatus") -> Mapping[str, Any]:
        """What came of it, by the names of its lines."""
        ...

    async def parse_result(self, answer: Any, want: Request) -> EndpointReply:
        """One of those, as if it had been answered at once."""
        ...


class BatchStatus(Struct, frozen=True):
    """`over`: nothing more will come, whatever has come is in `files`. `trouble`: why the whole of it failed."""

    state: str
    is_finished: bool
    result_files: tuple[str, ...] = ()
    error: str = ""
    completed: int = 0
    total: int = 0


class TicketExpired(CallError):
    def __init__(self, message: str) -> None:
        super().__init__(message, TRANSIENT)
