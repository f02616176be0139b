"""Gemini's batches: a file of requests under keys, a batch found again by its file's name, a file of responses."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from weft.models.endpoint import NO_RETRY, TRANSIENT, BatchStatus, CallError, EndpointReply
from weft.models.http import MAX_REPLY_BYTES, HttpResponse, JsonLinesBody
from weft.models.http_endpoint import parse_address
from weft.models.providers.batch_lines import build_answer, build_error, read_count, read_results
from weft.models.providers.openai_reply import list_of_dicts
from weft.secrets import scrub
from weft.types import Message, Request
from weft.untrusted import dict_or_empty

if TYPE_CHECKING:
    from weft.models.providers.gemini import Gemini

FAILED_STATES = ("FAILED", "CANCELLED", "EXPIRED")
FINAL_STATES = ("SUCCEEDED", *FAILED_STATES)
MAX_PAGES = 10  # of a hundred batches each


class GeminiBatches:
    max_requests = 2000
    max_bytes = 1_000_000_000  # half of what a file may have

    def __init__(self, endpoint: "Gemini") -> None:
        self._endpoint = endpoint

    def build_line(self, name: str, messages: tuple[Message, ...], request: Request) -> dict[str, Any]:
        return {"key": name, "request": self._endpoint.payload(messages, request)}

    async def upload(self, lines: Sequence[Mapping[str, Any]]) -> str:
        """Ask where the file is to go, then send it there. Only the first request has the key."""
        endpoint = self._endpoint
        body = JsonLinesBody(lines, endpoint.blobs, bare=True)
        start_headers = {
            "X-Goog-Upload-Protocol": "resumable",
            "X-Goog-Upload-Command": "start",
            "X-Goog-Upload-Header-Content-Length": str(body.length),
            "X-Goog-Upload-Header-Content-Type": "application/jsonl",
        }
        response = await endpoint.start_upload({"file": {"displayName": "weft"}}, start_headers)
        upload_url = response.headers.get("x-goog-upload-url", "")
        try:
            is_own_host = parse_address(upload_url).netloc == urlsplit(endpoint.address).netloc
        except ValueError as error:
            raise CallError(f"{endpoint.address} sent an invalid upload address: {error}", TRANSIENT) from None
        if not is_own_host:
            raise CallError(f"{endpoint.address} sent an upload address on another host", NO_RETRY)
        upload_headers = {
            "X-Goog-Upload-Command": "upload, finalize",
            "X-Goog-Upload-Offset": "0",
            "Content-Type": "application/jsonl",
        }
        response = await endpoint.finish_upload(upload_url, body, upload_headers)
        return _read_name(dict_or_empty(dict_or_empty(response.body).get("file")), "files/")

    async def find_batch(self, file: str) -> str:
        token = ""
        for _ in range(MAX_PAGES):
            response = await self._endpoint.get_json(f"/batches?pageSize=100{token}")
            page = dict_or_empty(response.body)
            for batch in list_of_dicts(page.get("operations") or page.get("batches")):
                metadata = dict_or_empty(batch.get("metadata")) or batch
                if metadata.get("displayName") == file:
                    return _read_name(batch, "batches/")
            if not page.get("nextPageToken"):
                return ""
            token = f"&pageToken={page['nextPageToken']}"
        return ""

    async def start_batch(self, file: str) -> str:
        payload = {"batch": {"displayName": file, "inputConfig": {"fileName": file}}}
        response = await self._endpoint.post_json(":batchGenerateContent", payload)
        return _read_name(dict_or_empty(response.body), "batches/")

    async def get_status(self, batch: str) -> BatchStatus:
        response = await self._endpoint.get_json(f"/{batch}", allow_body_error=True)
        body = dict_or_empty(response.body)
        metadata = dict_or_empty(body.get("metadata"))
        if not metadata and response.error_message:
            raise CallError(f"{self._endpoint.address}: {response.error_message[:300]}", TRANSIENT)
        metadata = metadata or body
        state = str(metadata.get("state") or "").removeprefix("BATCH_STATE_").removeprefix("JOB_STATE_")
        counts = dict_or_empty(metadata.get("batchStats"))
        total = read_count(counts, "requestCount")
        pending = read_count(counts, "pendingRequestCount")
        completed = 0
        if state == "SUCCEEDED":
            completed = max(0, total - pending)
        error = ""
        if state in FAILED_STATES:
            error = scrub(str(dict_or_empty(body.get("error")).get("message") or ""))[:300] or state
        files = _find_result_files(metadata, body)
        return BatchStatus(state.lower(), state in FINAL_STATES, files, error, completed, total)

    async def fetch_results(self, look: BatchStatus) -> Mapping[str, Any]:
        files: list[bytes] = []
        for file in look.result_files:
            if not file.startswith("files/") or ".." in file:
                raise CallError(f"{self._endpoint.address} sent an invalid file name", NO_RETRY)
            files.append(await self._endpoint.download(f"/{file}:download?alt=media", MAX_REPLY_BYTES))
        return read_results(files, _read_line)

    async def parse_result(self, answer: Any, request: Request) -> EndpointReply:
        return await self._endpoint.read_response(answer, request)


def _find_result_files(metadata: dict[str, Any], body: dict[str, Any]) -> tuple[str, ...]:
    output = dict_or_empty(metadata.get("output")) or dict_or_empty(metadata.get("dest"))
    output = output or dict_or_empty(body.get("response"))
    file = str(output.get("responsesFile") or output.get("fileName") or "")
    if not file:
        return ()
    return (file,)


def _read_line(line: dict[str, Any]) -> tuple[Any, HttpResponse]:
    name = line.get("key")
    error = dict_or_empty(line.get("error"))
    if not error:
        return name, build_answer(200, line.get("response"))
    code = error.get("code")
    if isinstance(code, int) and 400 <= code < 600:
        return name, build_answer(code, {"error": error})
    return name, build_error(error)


def _read_name(resource: dict[str, Any], prefix: str) -> str:
    name = resource.get("name")
    if not isinstance(name, str) or not name.startswith(prefix) or " " in name or ".." in name:
        raise CallError(f"the server sent no valid name ({prefix}...) for a batch or its file", TRANSIENT)
    return name
