"""Before the first call of a run that is paid for, one small question to each endpoint: a key that is missing, an address that nobody
answers at, a model that is not there, a judge that cannot answer by a schema are found out before a picture is drawn.

Nobody is asked where all answers are in the journal already, in a dry run, or at endpoints that are no servers. What is asked here is in
the journal like any call, under no run. A model that answers such a question badly may still draw: only who turns it away, or is not
there, ends a run; a judge must answer it.
"""

import asyncio
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from weft.calls.structured_output import Unusable, read_reply
from weft.models.endpoint import Endpoint, TaskEndpoint
from weft.models.reach import reached
from weft.types import Message, Reply, Text, Want

if TYPE_CHECKING:
    from weft.calls.caller import Caller

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


class Gate:
    """Open once every endpoint has been asked. `callers` may still grow until then."""

    def __init__(self, callers: "Mapping[str, Caller]") -> None:
        self._callers = callers
        self._asking: asyncio.Task[None] | None = None

    async def passed(self) -> None:
        """Raises what makes a run pointless."""
        if self._asking is None:
            self._asking = asyncio.ensure_future(self._ask_all())
        await asyncio.shield(self._asking)

    async def _ask_all(self) -> None:
        for caller in self._callers.values():
            if caller.endpoint.keyless:
                raise caller.down(f"{caller.endpoint.keyless} ({NO_PROBE})")
        silent = {
            role: one.endpoint.address for role, one in self._callers.items() if _is_server(one.endpoint) and not is_asked(one.endpoint)
        }
        if silent:
            found = await asyncio.to_thread(reached, silent.values())
            for role, url in silent.items():
                if found[url]:
                    raise self._callers[role].down(f"nobody answers at {url}: {found[url]} ({NO_PROBE})")
        asked = [caller.try_out(role == "judge") for role, caller in self._callers.items() if is_asked(caller.endpoint)]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        raised = next((one for one in answers if isinstance(one, BaseException)), None)
        if raised is not None:
            raise raised


def _is_server(endpoint: Endpoint) -> bool:
    return endpoint.address.startswith("http") and endpoint.memo


def is_asked(endpoint: Endpoint) -> bool:
    """Servers are, as far as they answer at once and in words; of others only the address is tried."""
    return _is_server(endpoint) and not isinstance(endpoint, TaskEndpoint) and endpoint.gives.text


def small_question(judge: bool) -> tuple[tuple[Message, ...], Want]:
    """It is never remembered: how things are now is what is asked."""
    told = JUDGED + msgspec.json.encode(SCHEMA).decode() if judge else READY
    return (Message("user", (Text(told),)),), Want("text", SCHEMA if judge else None, draw=int(time.time() * 1000))


def unfit(reply: Reply) -> str:
    """Why a reply to a judge's question is no judgement; nothing if it is one."""
    try:
        read_reply(reply.text, SCHEMA, lambda: JUDGED)
    except Unusable as error:
        said = " ".join(reply.text.split())
        return f"{error}; it said: {said[:120] or '(nothing)'}"
    return ""
