"""Requests that were handed in and are not back yet: task APIs and batches. A ticket is in the journal before anyone waits for its answer,
so that a kill between the two costs nothing: the next command finds the ticket under the call's key, and collects."""

import asyncio

from weft.models.endpoint import CallError, Expired, Sent, TaskEndpoint
from weft.store.journal import Journal
from weft.types import Message, Want


async def collected(endpoint: TaskEndpoint, journal: Journal, key: str, messages: tuple[Message, ...], want: Want) -> Sent:
    """One try: the answer to a request that was handed in before, or is now. What goes wrong while waiting leaves the ticket; an answer
    takes it away with the call's record."""
    ticket = journal.ticket(key)
    if ticket is None and endpoint.at_once(messages, want):
        return await endpoint.send(messages, want)
    if ticket is None:
        ticket = await endpoint.submit(messages, want)
        await asyncio.shield(asyncio.wrap_future(journal.put_ticket(key, ticket, endpoint.address)))
    try:
        while (sent := await endpoint.collect(ticket, want)) is None:  # noqa: ASYNC110 (nobody here is told when it is there)
            await asyncio.sleep(endpoint.poll)
    except CallError as error:
        if error.retry.kind == "no" or isinstance(error, Expired):  # it leads nowhere: the next try, or the next command, hands in anew
            await asyncio.wrap_future(journal.drop_ticket(key))
        raise
    if sent.outcome == "failed" or sent.again:  # another look would find the same
        await asyncio.wrap_future(journal.drop_ticket(key))
    return sent
