"""Requests that were handed in and are not back yet: task APIs and batches. A ticket is in the journal before anyone
waits for its answer, so that a kill between the two costs nothing: the next command finds the ticket under the call's
key, and collects."""

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
    want: Request,
    check: Callable[[], None] = lambda: None,
) -> EndpointReply:
    """One try: the answer to a request that was handed in before, or is now. What goes wrong while waiting leaves the
    ticket, and costs nothing more; an answer takes it away with the call's record. `check` raises where the run is
    ending: what takes a day is not waited for then."""
    ticket = journal.find_ticket(key)
    if ticket is None and endpoint.answers_immediately(messages, want):
        return await endpoint.send(messages, want)
    if ticket is None:
        ticket = await endpoint.submit(messages, want)
        try:
            if scrub(ticket) != ticket:
                raise CallError(f"{endpoint.name} sent a key back with what it calls the task", NO_RETRY)
            await asyncio.shield(asyncio.wrap_future(journal.put_ticket(key, ticket, endpoint.address)))
        except BaseException:
            endpoint.release(ticket)
            raise
    try:
        sent = await _waited(endpoint, ticket, want, check)
    except CallError as error:
        error.billed = False
        if error.retry.kind == "no" or isinstance(
            error, TicketExpired
        ):  # it leads nowhere: the next try, or the next command, hands in anew
            await asyncio.wrap_future(journal.drop_ticket(key))
        raise
    if sent.outcome == "failed" or sent.retry_advised:  # another look would find the same
        await asyncio.wrap_future(journal.drop_ticket(key))
    return sent


async def _waited(endpoint: TaskEndpoint, ticket: str, want: Request, check: Callable[[], None]) -> EndpointReply:
    began = time.monotonic()
    while True:
        if endpoint.max_wait is None:
            check()
        sent = await endpoint.collect(ticket, want)
        if sent is not None:
            return sent
        if endpoint.max_wait is not None and time.monotonic() - began > endpoint.max_wait:
            minutes = endpoint.max_wait / 60
            raise CallError(f"{endpoint.name}: what was handed in is not done after {minutes:.0f} minutes", TRANSIENT)
        await asyncio.sleep(endpoint.poll_interval)
