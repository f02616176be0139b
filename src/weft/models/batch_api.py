"""A judge whose requests go through a batch API, at half the price: same model, same requests, same answers, later.

Requests are gathered until none has come for a while or a file is full. The file is uploaded, which costs nothing;
every ticket is journalled; only then is the batch started. A command that follows a killed one finds the batch by its
file, or uploads again if there is none: nothing is paid for twice.

Some requests are sent live at the full price, because they must not wait for another batch: the very first request (so
that a wrong key or an unknown field shows at once; with a budget, until one has said what it costs), follow-ups to an
answer, and what a batch answered with an error. A request has the same cache key either way, so live and batch answers
share one cache.
"""

import asyncio
import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from weft.errors import UserError
from weft.models.endpoint import NO_RETRY, BatchService, CallError, Endpoint, EndpointReply, TaskEndpoint, TicketExpired
from weft.models.http import base64_size
from weft.types import Image, Message, Request

BATCH_PRICE_SHARE = 0.5  # at OpenAI and at Google
QUIET_PERIOD_S = 60.0  # upload after this long without a new request
FINAL_QUIET_PERIOD_S = 1.0  # the same once no more requests are expected
POLL_INTERVAL_S = 20.0
MAX_IN_FLIGHT = 20_000  # requests
MAX_LIVE = 16  # requests in flight that are sent live
MAX_POLL_TROUBLE_S = 3600.0  # give a batch up after its status could not be read for this long
PART_OVERHEAD = 4000  # bytes around a text or an image in a line, at most


class BatchEndpoint(TaskEndpoint):
    """An endpoint behind its provider's batch API."""

    def __init__(self, endpoint: Endpoint, service: BatchService) -> None:
        self._inner = endpoint
        self._service = service
        self.name = endpoint.name
        self.address = endpoint.address
        self.identity = endpoint.identity
        self.takes = endpoint.takes
        self.gives = endpoint.gives
        self.may_leave_undecided = endpoint.may_leave_undecided
        self.phrasing = endpoint.phrasing
        self.concurrency = MAX_IN_FLIGHT
        self.poll_interval = POLL_INTERVAL_S
        self.usual_price_share = BATCH_PRICE_SHARE
        self.max_wait = None
        self._quiet_period = QUIET_PERIOD_S
        self._queue: list[_QueuedRequest] = []
        self._timer: asyncio.TimerHandle | None = None
        self._uploads: set[asyncio.Task[None]] = set()
        self._batches: dict[str, _Batch] = {}  # by file
        self._send_live: set[str] = set()  # names of requests that a batch did not answer
        self._scout = ""  # the first request, sent live: an error it meets, all others would meet
        self._scout_done = asyncio.Event()
        self._live_slots = asyncio.Semaphore(MAX_LIVE)

    # live requests

    def answers_immediately(self, messages: tuple[Message, ...], request: Request) -> bool:
        """Return whether this is the first request, a follow-up, or one that a batch did not answer."""
        name = _request_name(messages, request)
        self._scout = self._scout or name
        if name == self._scout or name in self._send_live:
            return True
        return any(message.role == "assistant" for message in messages)

    def answer_soon(self, messages: tuple[Message, ...], request: Request) -> None:
        """Send this request live: others wait until it has said what it costs."""
        self._send_live.add(_request_name(messages, request))

    def price_share(self, messages: tuple[Message, ...], request: Request) -> float:
        if not self._scout or self.answers_immediately(messages, request):
            return 1.0
        return BATCH_PRICE_SHARE

    async def send(self, messages: tuple[Message, ...], request: Request) -> EndpointReply:
        self._pass_on_token_limit()
        async with self._live_slots:
            try:
                return await self._inner.send(messages, request)
            finally:
                self._scout_done.set()

    def _pass_on_token_limit(self) -> None:
        """Apply a budget's limit to the inner endpoint, unless that has a lower one of its own."""
        inner_limit = self._inner.max_reply_tokens
        if inner_limit is None or self.max_reply_tokens is None:
            self._inner.max_reply_tokens = self.max_reply_tokens
        else:
            self._inner.max_reply_tokens = min(inner_limit, self.max_reply_tokens)

    # submitting

    def flush_soon(self) -> None:
        self._quiet_period = min(self._quiet_period, FINAL_QUIET_PERIOD_S)
        if self._queue:
            self._restart_timer()

    async def submit(self, messages: tuple[Message, ...], request: Request) -> str:
        size = _line_size(messages)
        if self._queue and sum(queued.size for queued in self._queue) + size > self._service.max_bytes:
            self._flush()
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        queued_request = _QueuedRequest(_request_name(messages, request), messages, request, size, future)
        self._queue.append(queued_request)
        if len(self._queue) >= self._service.max_requests:
            self._flush()
        else:
            self._restart_timer()
        return f"{await future} {queued_request.name}"

    def _restart_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(self._quiet_period, self._flush)

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        requests = [queued for queued in self._queue if not queued.future.done()]
        self._queue = []
        self._timer = None
        if requests:
            task = asyncio.get_running_loop().create_task(self._upload(requests))
            self._uploads.add(task)
            task.add_done_callback(self._uploads.discard)

    async def _upload(self, requests: "list[_QueuedRequest]") -> None:
        """Upload a file of requests, once the first request is back and its unknown fields are known."""
        await self._scout_done.wait()
        self._pass_on_token_limit()
        try:
            lines = [self._service.build_line(queued.name, queued.messages, queued.request) for queued in requests]
            file = await self._service.upload(lines)
        except Exception as error:
            if not isinstance(error, CallError):
                error = CallError(f"{self.name}: {error}", NO_RETRY)
            error.billed = False  # no batch was started
            for request in requests:
                if not request.future.done():
                    request.future.set_exception(error)
            return
        waiting = [request for request in requests if not request.future.done()]
        self._batches[file] = _Batch(file, self._service, {request.name for request in waiting})
        for request in waiting:
            request.future.set_result(file)

    # collecting

    async def collect(self, ticket: str, request: Request) -> EndpointReply | None:
        file, _, name = ticket.rpartition(" ")
        batch = self._batches.setdefault(file, _Batch(file, self._service))
        results = await batch.results(name, self.poll_interval)
        if results is None:
            return None
        if results.get(name) is None:
            billed = name not in results  # its line may be one that cannot be read
            if batch.state == "cancelled":
                message = f"{self.name}: the batch was cancelled before this was answered"
                raise CallError(message, NO_RETRY, billed=billed)
            if batch.state != "expired":  # an expired batch only had too little time: another may do
                self._send_live.add(name)
            message = f"{self.name}: the batch ended ({batch.state}) without an answer to this"
            raise TicketExpired(message, billed=billed)
        try:
            reply = await self._service.parse_result(results[name], request)
        except CallError as error:  # the result is in a file and will never change, so the retry decision is void
            self._send_live.add(name)
            raise TicketExpired(str(error), billed=error.billed) from None
        if reply.retry_advised:
            self._send_live.add(name)
        return reply

    def release(self, ticket: str) -> None:
        file, _, name = ticket.rpartition(" ")
        if file in self._batches:
            self._batches[file].release(name)

    @property
    def missing_setup(self) -> str:
        return self._inner.missing_setup

    @property
    def missing_key(self) -> str:
        return self._inner.missing_key

    @property
    def status_line(self) -> str:
        active = [batch for batch in self._batches.values() if not batch.is_finished]
        return ", ".join(f"batch {batch.state} {batch.completed}/{batch.total}" for batch in active)

    async def close(self) -> None:
        for task in self._uploads:
            task.cancel()
        await self._inner.close()


@dataclass
class _QueuedRequest:
    """A request that is to be uploaded."""

    name: str
    messages: tuple[Message, ...]
    request: Request
    size: int  # bytes of its line, at most
    future: "asyncio.Future[str]"  # the file that it was uploaded in


class _Batch:
    """One file and the batch that runs it.

    If this command uploaded the file, the batch is started only after all of `names` have been asked for: by then all
    their tickets are journalled.
    """

    def __init__(self, file: str, service: BatchService, names: set[str] | None = None) -> None:
        self._file = file
        self._service = service
        self._unclaimed = set(names or ())
        self._is_ours = names is not None  # uploaded by this command
        self._id = ""
        self._was_started = False
        self._lock = asyncio.Lock()
        self._polled_at = 0.0
        self._trouble_since = 0.0
        self._results: Mapping[str, Any] | None = None
        self._failure: CallError | None = None  # why there will be no results at all
        self.state = "waiting"
        self.completed = 0
        self.total = len(self._unclaimed)
        self.is_finished = False

    async def results(self, name: str, poll_interval: float) -> Mapping[str, Any] | None:
        """Return all results by name, or None while there are none; a failure of the batch is raised for every name."""
        self._unclaimed.discard(name)
        async with self._lock:
            if self._failure is not None:
                if isinstance(self._failure, TicketExpired):
                    raise TicketExpired(str(self._failure), billed=self._failure.billed)
                raise CallError(str(self._failure), self._failure.retry, billed=self._failure.billed)
            if self._results is not None or (self._is_ours and self._unclaimed):
                return self._results
            if self._polled_at and time.monotonic() - self._polled_at < poll_interval * 0.9:
                return None
            try:
                return await self._poll()
            except CallError as error:
                if error.retry.kind == "no" or isinstance(error, TicketExpired):
                    error.assume_billed()
                    self._failure = error
                    self.is_finished = True
                raise

    async def _poll(self) -> Mapping[str, Any] | None:
        """Read the batch's status, and its results once it is finished; transient trouble only delays the next poll."""
        self._polled_at = time.monotonic()
        try:
            if not self._id:
                self._id = await self._find_or_start()
            status = await self._service.get_status(self._id)
            self.state = status.state
            self.completed = status.completed
            self.total = status.total or self.total
            failed_entirely = status.error and not status.result_files
            if status.is_finished and not failed_entirely:
                self._results = await self._service.fetch_results(status)
        except CallError as error:
            self._trouble_since = self._trouble_since or self._polled_at
            if self._is_lasting(error) or time.monotonic() - self._trouble_since > MAX_POLL_TROUBLE_S:
                if not self._id:
                    error.billed = False  # no batch was started
                raise
            self.state = f"status cannot be read ({str(error)[:100]})"
            return None
        self._trouble_since = 0.0
        self.is_finished = status.is_finished
        if status.is_finished and self._results is None:
            raise CallError(f"the batch {self._id} failed: {status.error}", NO_RETRY, billed=False)
        return self._results

    def _is_lasting(self, error: CallError) -> bool:
        """Return whether polling again cannot help."""
        if isinstance(error, TicketExpired) or error.retry.kind in ("denied", "fatal"):
            return True
        return error.retry.kind == "no" and not self._id

    def release(self, name: str) -> None:
        self._unclaimed.discard(name)

    async def _find_or_start(self) -> str:
        """Return the batch of the file; start one only if this command uploaded it, so that nobody else can have."""
        batch = ""
        if self._was_started or not self._is_ours:
            batch = await self._service.find_batch(self._file)
        if not batch and not self._is_ours:
            raise TicketExpired("the requests were uploaded, but no batch was started for them", billed=False)
        self._was_started = True
        return batch or await self._service.start_batch(self._file)


def _line_size(messages: Sequence[Message]) -> int:
    """Return how many bytes a request takes in a file, at most."""
    size = PART_OVERHEAD
    for message in messages:
        for part in message.parts:
            if isinstance(part, Image):
                size += base64_size(part) + PART_OVERHEAD
            else:
                size += len(part.text.encode()) + PART_OVERHEAD
    return size


def _request_name(messages: tuple[Message, ...], request: Request) -> str:
    """Return the name of a request's line: the same request has the same name in every command."""
    content: list[Any] = [messages, request.modality, request.schema, request.draw]
    if request.size:
        content.append(request.size)
    return hashlib.sha256(msgspec.json.encode(content, order="deterministic")).hexdigest()[:40]


def build_batch_endpoint(endpoint: Endpoint) -> BatchEndpoint:
    """Wrap an endpoint in its provider's batch API. Raises UserError if the provider has none."""
    service = endpoint.batch_service()
    if service is None:
        raise UserError(f"{endpoint.name} has no batch API; openai/NAME, openai-chat/NAME@URL and gemini/NAME have one")
    return BatchEndpoint(endpoint, service)
