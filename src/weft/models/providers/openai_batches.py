"""OpenAI's batches: a file of requests, a batch that works on it within a day, a file of answers and one of errors, in
any order."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import msgspec

from weft.models.endpoint import TRANSIENT, BatchStatus, CallError, EndpointReply
from weft.models.http import MAX_REPLY_BYTES, HttpResponse, JsonLinesFormBody, parse_error
from weft.secrets import scrub
from weft.types import Message, Request
from weft.untrusted import dict_or_empty

if TYPE_CHECKING:
    from weft.models.providers.openai_chat import OpenAIChat

ROUTE = "/v1/chat/completions"
OVER = ("completed", "failed", "expired", "cancelled")
UNANSWERED = ("batch_expired", "batch_cancelled")  # how a line says that it was never worked on
PAGES = 10  # of a hundred batches each, in which one is looked for


class OpenAIBatches:
    max_requests = 2000  # whose answers fit in memory
    max_bytes = 150_000_000  # of 200 MB that a file may have

    def __init__(self, endpoint: "OpenAIChat") -> None:
        self._endpoint = endpoint

    def build_line(self, name: str, messages: tuple[Message, ...], want: Request) -> dict[str, Any]:
        return {"custom_id": name, "method": "POST", "url": ROUTE, "body": self._endpoint.payload(messages, want)}

    async def upload(self, lines: Sequence[Mapping[str, Any]]) -> str:
        body = JsonLinesFormBody(lines, self._endpoint.blobs, "batch")
        headers = {"Content-Type": f"multipart/form-data; boundary={body.boundary}"}
        came = await self._endpoint.upload("/files", body, headers)
        return _named(came)

    async def find_batch(self, file: str) -> str:
        after = ""
        for _ in range(PAGES):
            page = dict_or_empty((await self._endpoint.get_json(f"/batches?limit=100{after}")).body)
            data: Any = page.get("data")
            found = [dict_or_empty(one) for one in cast(list[Any], data)] if isinstance(data, list) else []
            for one in found:
                if one.get("input_file_id") == file:
                    return str(one.get("id") or "")
            if not page.get("has_more") or not found:
                return ""
            after = f"&after={found[-1].get('id')}"
        return ""

    async def start_batch(self, file: str) -> str:
        told = {"input_file_id": file, "endpoint": ROUTE, "completion_window": "24h"}
        return _named(await self._endpoint.post_json("/batches", told))

    async def get_status(self, batch: str) -> BatchStatus:
        one = dict_or_empty((await self._endpoint.get_json(f"/batches/{batch}")).body)
        state = str(one.get("status") or "")
        counts = dict_or_empty(one.get("request_counts"))
        files = tuple(str(one[key]) for key in ("output_file_id", "error_file_id") if one.get(key))
        errors: Any = dict_or_empty(one.get("errors")).get("data")
        if isinstance(errors, list):
            why = "; ".join(str(dict_or_empty(error).get("message") or error) for error in cast(list[Any], errors))
        else:
            why = ""
        if state == "failed":
            trouble = why or state
        else:
            trouble = ""
        done = int(counts.get("completed") or 0) + int(counts.get("failed") or 0)
        return BatchStatus(state, state in OVER, files, scrub(trouble)[:300], done, int(counts.get("total") or 0))

    async def fetch_results(self, look: BatchStatus) -> Mapping[str, Any]:
        made: dict[str, Any] = {}
        for file in look.result_files:
            for line in parse_json_lines(await self._endpoint.download(f"/files/{file}/content", MAX_REPLY_BYTES)):
                response = dict_or_empty(line.get("response"))
                if not response and dict_or_empty(line.get("error")).get("code") in UNANSWERED:
                    continue
                if response:
                    body = response.get("body")
                else:
                    body = {"error": line.get("error")}
                if response:
                    status = int(response.get("status_code") or 502)
                else:
                    status = 502
                made[str(line.get("custom_id"))] = build_answer(status, body)
        return made

    async def parse_result(self, answer: Any, want: Request) -> EndpointReply:
        return await self._endpoint.read_batch_line(answer, want)


def build_answer(status: int, body: Any) -> HttpResponse:
    """A line of a file, as if it had come over the wire."""
    said, codes = parse_error(body)
    return HttpResponse(status, {}, msgspec.json.encode(body), body, scrub(said), codes)


def parse_json_lines(data: bytes) -> list[dict[str, Any]]:
    try:
        return [dict_or_empty(msgspec.json.decode(line)) for line in data.splitlines() if line.strip()]
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise CallError("the answers of a batch came broken", TRANSIENT) from None


def _named(came: HttpResponse) -> str:
    name = dict_or_empty(came.body).get("id")
    if not isinstance(name, str) or not name or " " in name or "/" in name:
        raise CallError("what was handed in as a batch got no name", TRANSIENT)
    return name
