"""Asks each endpoint one small question before the first paid call of a run, so that a missing key, a wrong address, an
unknown model or a judge that cannot follow a schema is found before an image is generated.

Nothing is asked if all answers are cached, in a dry run, or of endpoints that are not servers. The questions are
journalled like any call, under no run. A model's answer does not matter; a judge must answer by the schema.
"""

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
JUDGE_PROMPT = (
    "Question: what is 2 + 3? Answer: 5. Score this answer from 0 (wrong) to 10 (right), with a reason of a few words. "
    "Reply with one JSON object that fits this schema, and nothing else:\n"
)
TO_SKIP = "--no-preflight skips this check"


@dataclass
class Preflight:
    """Checks every endpoint once. `callers` may still grow until then."""

    callers: Mapping[str, Caller]
    task: asyncio.Task[None] | None = None

    async def ask_once(self) -> None:
        """Wait until every endpoint was asked. Raises EndpointDown if a run would be pointless."""
        if self.task is None:
            self.task = asyncio.ensure_future(self._ask_all())
        await asyncio.shield(self.task)

    async def _ask_all(self) -> None:
        to_ask: dict[str, Caller] = {}
        to_reach: dict[str, str] = {}  # role -> address
        for role, caller in self.callers.items():
            if not _is_server(caller.endpoint):
                continue
            if _is_askable(caller.endpoint):
                to_ask[role] = caller
            else:
                to_reach[role] = caller.endpoint.address
        for role, caller in self.callers.items():
            if caller.endpoint.missing_key:
                raise EndpointDown(f"{role} {caller.name}: {caller.endpoint.missing_key} ({TO_SKIP})", user_fault=True)
        await self._check_addresses(to_reach)
        questions = [_ask_judge(caller) if role == "judge" else _ask_model(caller) for role, caller in to_ask.items()]
        results = await asyncio.gather(*questions, return_exceptions=True)
        error = next((result for result in results if isinstance(result, BaseException)), None)
        if error is not None:
            raise error

    async def _check_addresses(self, addresses: Mapping[str, str]) -> None:
        if not addresses:
            return
        problems = await asyncio.to_thread(check_reachable, addresses.values())
        for role, address in addresses.items():
            if problems[address]:
                name = self.callers[role].name
                raise EndpointDown(
                    f"{role} {name}: nobody answers at {address}: {problems[address]} ({TO_SKIP})", user_fault=True
                )


def _is_server(endpoint: Endpoint) -> bool:
    return endpoint.address.startswith("http") and endpoint.cacheable


def _is_askable(server: Endpoint) -> bool:
    """Return whether a server answers at once and in text; of others only the address is checked."""
    return not isinstance(server, TaskEndpoint) and server.gives.text


async def _ask_model(caller: Caller) -> None:
    """Ask for one word. Any answer will do."""
    await caller.ask_uncached((Message("user", (Text(READY),)),), Request("text", draw=_now()))


async def _ask_judge(caller: Caller) -> None:
    """Ask for a verdict. Raises EndpointDown if the judge fails, or twice does not follow the schema."""
    prompt = JUDGE_PROMPT + msgspec.json.encode(SCHEMA).decode()
    problem = ""
    for is_first in (True, False):
        reply = await caller.ask_uncached((Message("user", (Text(prompt),)),), Request("text", SCHEMA, draw=_now()))
        if is_first and reply.outcome == "failed":
            raise EndpointDown(
                f"the judge {caller.name} did not answer a small question: {reply.reason} ({TO_SKIP})",
                user_fault=True,
            )
        try:
            read_reply(reply.text, SCHEMA, lambda: JUDGE_PROMPT)
            return
        except UnusableReply as error:
            text = " ".join(reply.text.split())
            problem = f"{error}; it said: {text[:120] or '(nothing)'}"
    raise EndpointDown(f"the judge {caller.name} cannot answer by a schema: {problem} ({TO_SKIP})", user_fault=True)


def _now() -> int:
    """Return a draw number that makes this call differ from all earlier ones."""
    return int(time.time() * 1000)
