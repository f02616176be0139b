"""Requests that were submitted and not answered yet: task APIs and batches. A ticket is in the journal before anyone
waits for its answer, so that a kill between the two costs nothing: the next command finds the ticket under the cache
key, and collects the answer."""

import asyncio
import time
from collections.abc import Callable

from weft.models.endpoint import NO_RETRY, TRANSIENT, CallError, EndpointReply, TaskEndpoint, TicketExpired
from weft.secrets import scrub
from weft.store.journal import Journal
from weft.types import Message, Request


async def submit_and_collect(
    endpoint: TaskEndpoint,
    journal: Journal,
    key: str,
    messages: tuple[Message, ...],
    request: Request,
    check: Callable[[], None] = lambda: None,
) -> EndpointReply:
    """Return the answer to a request, submitting it unless it was submitted before.

    An error while waiting keeps the ticket, and costs nothing more; the record of the answer removes it. An error that
    ends the waiting may have been billed, unless it says that it was not. `check` raises if the run is ending: an
    answer that may take a day is not awaited then.
    """
    ticket = journal.find_ticket(key)
    if ticket is None and endpoint.answers_immediately(messages, request):
        return await endpoint.send(messages, request)
    if ticket is None:
        ticket = await endpoint.submit(messages, request)
        try:
            if scrub(ticket) != ticket:
                raise CallError(f"{endpoint.name} sent a key back with what it calls the task", NO_RETRY)
            await asyncio.shield(asyncio.wrap_future(journal.put_ticket(key, ticket, endpoint.address)))
        except BaseException:
            endpoint.release(ticket)
            raise
    try:
        reply = await _collect(endpoint, ticket, request, check)
    except CallError as error:
        error.assume_billed()
        if error.retry.kind == "no" or isinstance(error, TicketExpired):  # the request must be submitted again
            await asyncio.wrap_future(journal.drop_ticket(key))
        raise
    if reply.outcome == "failed" or reply.retry_advised:  # collecting again would give the same
        await asyncio.wrap_future(journal.drop_ticket(key))
    return reply


async def _collect(endpoint: TaskEndpoint, ticket: str, request: Request, check: Callable[[], None]) -> EndpointReply:
    """Poll until there is an answer. Raises CallError after the endpoint's `max_wait`."""
    began = time.monotonic()
    while True:
        if endpoint.max_wait is None:
            check()
        reply = await endpoint.collect(ticket, request)
        if reply is not None:
            return reply
        if endpoint.max_wait is not None and time.monotonic() - began > endpoint.max_wait:
            minutes = endpoint.max_wait / 60
            raise CallError(f"{endpoint.name}: the request is not done after {minutes:.0f} minutes", TRANSIENT)
        await asyncio.sleep(endpoint.poll_interval)
