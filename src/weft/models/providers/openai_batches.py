"""OpenAI's batches: a file of requests, a batch that works on it within a day, a file of answers and one of errors.

The lines of the result files come in any order.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from weft.models.endpoint import TRANSIENT, BatchStatus, CallError, EndpointReply
from weft.models.http import MAX_REPLY_BYTES, HttpResponse, JsonLinesFormBody
from weft.models.providers.batch_lines import build_answer, build_error, read_count, read_results
from weft.models.providers.openai_reply import list_of_dicts
from weft.secrets import scrub
from weft.types import Message, Request
from weft.untrusted import dict_or_empty

if TYPE_CHECKING:
    from weft.models.providers.openai_chat import OpenAIChat

ROUTE = "/v1/chat/completions"
FINAL_STATES = ("completed", "failed", "expired", "cancelled")
UNPROCESSED_CODES = ("batch_expired", "batch_cancelled")  # of a line that was never worked on
MAX_PAGES = 10  # of a hundred batches each


class OpenAIBatches:
    max_requests = 2000  # so that the answers fit in memory
    max_bytes = 150_000_000  # of 200 MB that a file may have

    def __init__(self, endpoint: "OpenAIChat") -> None:
        self._endpoint = endpoint

    def build_line(self, name: str, messages: tuple[Message, ...], request: Request) -> dict[str, Any]:
        return {"custom_id": name, "method": "POST", "url": ROUTE, "body": self._endpoint.payload(messages, request)}

    async def upload(self, lines: Sequence[Mapping[str, Any]]) -> str:
        body = JsonLinesFormBody(lines, self._endpoint.blobs, "batch")
        headers = {"Content-Type": f"multipart/form-data; boundary={body.boundary}"}
        return _read_id(await self._endpoint.upload("/files", body, headers))

    async def find_batch(self, file: str) -> str:
        after = ""
        for _ in range(MAX_PAGES):
            response = await self._endpoint.get_json(f"/batches?limit=100{after}")
            page = dict_or_empty(response.body)
            batches = list_of_dicts(page.get("data"))
            for batch in batches:
                if batch.get("input_file_id") == file:
                    return str(batch.get("id") or "")
            if not page.get("has_more") or not batches:
                return ""
            after = f"&after={batches[-1].get('id')}"
        return ""

    async def start_batch(self, file: str) -> str:
        payload = {"input_file_id": file, "endpoint": ROUTE, "completion_window": "24h"}
        return _read_id(await self._endpoint.post_json("/batches", payload))

    async def get_status(self, batch: str) -> BatchStatus:
        response = await self._endpoint.get_json(f"/batches/{batch}")
        body = dict_or_empty(response.body)
        state = str(body.get("status") or "")
        files = tuple(str(body[key]) for key in ("output_file_id", "error_file_id") if body.get(key))
        error = ""
        if state == "failed":
            error = scrub(_join_errors(body) or state)[:300]
        counts = dict_or_empty(body.get("request_counts"))
        completed = read_count(counts, "completed") + read_count(counts, "failed")
        return BatchStatus(state, state in FINAL_STATES, files, error, completed, read_count(counts, "total"))

    async def fetch_results(self, look: BatchStatus) -> Mapping[str, Any]:
        files = [await self._endpoint.download(f"/files/{file}/content", MAX_REPLY_BYTES) for file in look.result_files]
        return read_results(files, _read_line)

    async def parse_result(self, answer: Any, request: Request) -> EndpointReply:
        return await self._endpoint.read_response(answer, request)


def _read_line(line: dict[str, Any]) -> tuple[Any, HttpResponse | None]:
    name = line.get("custom_id")
    response = dict_or_empty(line.get("response"))
    if response:
        return name, build_answer(response.get("status_code"), response.get("body"))
    if dict_or_empty(line.get("error")).get("code") in UNPROCESSED_CODES:
        return name, None
    return name, build_error(line.get("error"))


def _join_errors(body: dict[str, Any]) -> str:
    errors: Any = dict_or_empty(body.get("errors")).get("data")
    if not isinstance(errors, list):
        return ""
    return "; ".join(str(dict_or_empty(error).get("message") or error) for error in cast(list[Any], errors))


def _read_id(response: HttpResponse) -> str:
    name = dict_or_empty(response.body).get("id")
    if not isinstance(name, str) or not name or " " in name or "/" in name:
        raise CallError("the server sent no valid `id` for a batch or its file", TRANSIENT)
    return name
