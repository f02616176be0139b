"""OpenAI's batches: a file of requests, a batch that works on it within a day, a file of answers and one of errors, in any order."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import msgspec

from weft.models.endpoint import TRANSIENT, CallError, Look, Sent
from weft.models.http import MAX_REPLY, Answer, LinesFile, error_facts
from weft.secrets import scrub
from weft.types import Message, Want
from weft.untrusted import fields

if TYPE_CHECKING:
    from weft.models.providers.openai_chat import OpenAIChat

ROUTE = "/v1/chat/completions"
OVER = ("completed", "failed", "expired", "cancelled")
UNANSWERED = ("batch_expired", "batch_cancelled")  # how a line says that it was never worked on
PAGES = 10  # of a hundred batches each, in which one is looked for


class OpenAIBatches:
    most_lines = 2000  # whose answers fit in memory
    most_bytes = 150_000_000  # of 200 MB that a file may have

    def __init__(self, endpoint: "OpenAIChat") -> None:
        self._endpoint = endpoint

    def line(self, name: str, messages: tuple[Message, ...], want: Want) -> dict[str, Any]:
        return {"custom_id": name, "method": "POST", "url": ROUTE, "body": self._endpoint.payload(messages, want)}

    async def hand_in(self, lines: Sequence[Mapping[str, Any]]) -> str:
        body = LinesFile(lines, self._endpoint.blobs, "batch")
        headers = {"Content-Type": f"multipart/form-data; boundary={body.boundary}"}
        came = await self._endpoint.upload("/files", body, headers)
        return _named(came)

    async def find(self, file: str) -> str:
        after = ""
        for _ in range(PAGES):
            page = fields((await self._endpoint.looked(f"/batches?limit=100{after}")).body)
            data: Any = page.get("data")
            found = [fields(one) for one in cast(list[Any], data)] if isinstance(data, list) else []
            for one in found:
                if one.get("input_file_id") == file:
                    return str(one.get("id") or "")
            if not page.get("has_more") or not found:
                return ""
            after = f"&after={found[-1].get('id')}"
        return ""

    async def start(self, file: str) -> str:
        told = {"input_file_id": file, "endpoint": ROUTE, "completion_window": "24h"}
        return _named(await self._endpoint.posted("/batches", told))

    async def look(self, batch: str) -> Look:
        one = fields((await self._endpoint.looked(f"/batches/{batch}")).body)
        state, counts = str(one.get("status") or ""), fields(one.get("request_counts"))
        files = tuple(str(one[key]) for key in ("output_file_id", "error_file_id") if one.get(key))
        errors: Any = fields(one.get("errors")).get("data")
        why = "; ".join(str(fields(error).get("message") or error) for error in cast(list[Any], errors)) if isinstance(errors, list) else ""
        trouble = (why or state) if state == "failed" else ""
        done = int(counts.get("completed") or 0) + int(counts.get("failed") or 0)
        return Look(state, state in OVER, files, scrub(trouble)[:300], done, int(counts.get("total") or 0))

    async def answers(self, look: Look) -> Mapping[str, Any]:
        made: dict[str, Any] = {}
        for file in look.files:
            for line in lines_of(await self._endpoint.file(f"/files/{file}/content", MAX_REPLY)):
                response = fields(line.get("response"))
                if not response and fields(line.get("error")).get("code") in UNANSWERED:
                    continue
                body = response.get("body") if response else {"error": line.get("error")}
                status = int(response.get("status_code") or 502) if response else 502
                made[str(line.get("custom_id"))] = answer_of(status, body)
        return made

    async def read(self, answer: Any, want: Want) -> Sent:
        return await self._endpoint.answered(answer, want)


def answer_of(status: int, body: Any) -> Answer:
    """A line of a file, as if it had come over the wire."""
    said, codes = error_facts(body)
    return Answer(status, {}, msgspec.json.encode(body), body, scrub(said), codes)


def lines_of(data: bytes) -> list[dict[str, Any]]:
    try:
        return [fields(msgspec.json.decode(line)) for line in data.splitlines() if line.strip()]
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise CallError("the answers of a batch came broken", TRANSIENT) from None


def _named(came: Answer) -> str:
    name = fields(came.body).get("id")
    if not isinstance(name, str) or not name or " " in name or "/" in name:
        raise CallError("what was handed in as a batch got no name", TRANSIENT)
    return name
