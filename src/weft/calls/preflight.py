"""Before the first call of a run that is paid for, one small question to each endpoint: a key that is missing, an
address that nobody answers at, a model that is not there, a judge that cannot answer by a schema are found out before
an image is drawn.

Nobody is asked where all answers are cached already, in a dry run, or at endpoints that are no servers. What is asked
here is in the journal like any call, under no run. A model that answers such a question badly may still draw: only who
turns it away, or is not there, ends a run; a judge must answer it."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from weft.calls.caller import Caller, EndpointDown
from weft.calls.structured_output import UnusableReply, read_reply
from weft.models.endpoint import Endpoint, TaskEndpoint
from weft.models.reach import check_reachable
from weft.types import Message, Request, Text

READY = "Reply with the one word: ready"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"reasoning": {"type": "string"}, "score": {"type": "integer", "minimum": 0, "maximum": 10}},
    "required": ["reasoning", "score"],
    "additionalProperties": False,
}
JUDGED = (
    "Question: what is 2 + 3? Answer: 5. Score this answer from 0 (wrong) to 10 (right), with a reason of a few words. "
    "Reply with one JSON object that fits this schema, and nothing else:\n"
)
NO_PROBE = "--no-probe leaves this question out"


@dataclass
class Preflight:
    """Passed once every endpoint has been asked. `callers` may still grow until then."""

    callers: Mapping[str, Caller]
    task: asyncio.Task[None] | None = None

    async def ask_once(self) -> None:
        """Raises EndpointDown where a run would be pointless."""
        if self.task is None:
            self.task = asyncio.ensure_future(self._ask_all())
        await asyncio.shield(self.task)

    async def _ask_all(self) -> None:
        servers = {role: one for role, one in self.callers.items() if _is_server(one.endpoint)}
        asked = {role: one for role, one in servers.items() if _is_asked(one.endpoint)}
        silent = {role: one.endpoint.address for role, one in servers.items() if role not in asked}
        for role, caller in self.callers.items():
            if caller.endpoint.missing_key:
                raise EndpointDown(f"{role} {caller.name}: {caller.endpoint.missing_key} ({NO_PROBE})", user_fault=True)
        if silent:
            found = await asyncio.to_thread(check_reachable, silent.values())
        else:
            found = dict[str, str]()
        for role, url in silent.items():
            if found[url]:
                raise EndpointDown(
                    f"{role} {self.callers[role].name}: nobody answers at {url}: {found[url]} ({NO_PROBE})",
                    user_fault=True,
                )
        asking = (_try_out(caller, judge=role == "judge") for role, caller in asked.items())
        answers = await asyncio.gather(*asking, return_exceptions=True)
        raised = next((one for one in answers if isinstance(one, BaseException)), None)
        if raised is not None:
            raise raised


def _is_server(endpoint: Endpoint) -> bool:
    return endpoint.address.startswith("http") and endpoint.cacheable


def _is_asked(server: Endpoint) -> bool:
    """Servers are, as far as they answer at once and in words; of others only the address is tried."""
    return not isinstance(server, TaskEndpoint) and server.gives.text


async def _try_out(caller: Caller, *, judge: bool) -> None:
    """Whatever a model answers, it is there. A judge must give a verdict by the schema, and has a second try."""
    text, schema = (JUDGED + msgspec.json.encode(SCHEMA).decode(), SCHEMA) if judge else (READY, None)
    problem = ""
    for first in (True, False):
        now = int(time.time() * 1000)  # how things are now is what is asked
        reply = await caller.ask_uncached((Message("user", (Text(text),)),), Request("text", schema, draw=now))
        if not judge:
            return
        if first and reply.outcome == "failed":
            raise EndpointDown(
                f"the judge {caller.name} did not answer a small question: {reply.reason} ({NO_PROBE})", user_fault=True
            )
        try:
            read_reply(reply.text, SCHEMA, lambda: JUDGED)
            return
        except UnusableReply as error:
            said = " ".join(reply.text.split())
            problem = f"{error}; it said: {said[:120] or '(nothing)'}"
    raise EndpointDown(f"the judge {caller.name} cannot answer by a schema: {problem} ({NO_PROBE})", user_fault=True)
