"""Gemini's batches: a file of requests under keys, a batch that is found again by its file's name, a file of
responses."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from weft.models.endpoint import NO_RETRY, TRANSIENT, BatchStatus, CallError, EndpointReply
from weft.models.http import MAX_REPLY_BYTES, JsonLinesBody
from weft.models.http_endpoint import parse_address
from weft.models.providers.openai_batches import build_answer, parse_json_lines
from weft.secrets import scrub
from weft.types import Message, Request
from weft.untrusted import dict_or_empty

if TYPE_CHECKING:
    from weft.models.providers.gemini import Gemini

OVER = ("SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED")
PAGES = 10


class GeminiBatches:
    max_requests = 2000
    max_bytes = 1_000_000_000  # of 2 GB that a file may have

    def __init__(self, endpoint: "Gemini") -> None:
        self._endpoint = endpoint

    def build_line(self, name: str, messages: tuple[Message, ...], want: Request) -> dict[str, Any]:
        return {"key": name, "request": self._endpoint.payload(messages, want)}

    async def upload(self, lines: Sequence[Mapping[str, Any]]) -> str:
        """Google's way: ask where to, then send it there. The key goes with the first alone."""
        body = JsonLinesBody(lines, self._endpoint.blobs, bare=True)
        began = {
            "X-Goog-Upload-Protocol": "resumable",
            "X-Goog-Upload-Command": "start",
            "X-Goog-Upload-Header-Content-Length": str(body.length),
            "X-Goog-Upload-Header-Content-Type": "application/jsonl",
        }
        place = (await self._endpoint.start_upload({"file": {"displayName": "weft"}}, began)).headers.get(
            "x-goog-upload-url", ""
        )
        try:
            ours = parse_address(place).netloc == urlsplit(self._endpoint.address).netloc
        except ValueError as error:
            raise CallError(f"{self._endpoint.address} did not say where a file goes: {error}", TRANSIENT) from None
        if not ours:
            raise CallError(f"{self._endpoint.address} wants a file sent to another host", NO_RETRY)
        sent = {
            "X-Goog-Upload-Command": "upload, finalize",
            "X-Goog-Upload-Offset": "0",
            "Content-Type": "application/jsonl",
        }
        came = await self._endpoint.finish_upload(place, body, sent)
        return _named(dict_or_empty(dict_or_empty(came.body).get("file")), "files/")

    async def find_batch(self, file: str) -> str:
        token = ""
        for _ in range(PAGES):
            page = dict_or_empty((await self._endpoint.get_json(f"/batches?pageSize=100{token}")).body)
            listed: Any = page.get("operations") or page.get("batches")
            for one in map(dict_or_empty, cast(list[Any], listed) if isinstance(listed, list) else []):
                if (dict_or_empty(one.get("metadata")) or one).get("displayName") == file:
                    return _named(one, "batches/")
            if not page.get("nextPageToken"):
                return ""
            token = f"&pageToken={page['nextPageToken']}"
        return ""

    async def start_batch(self, file: str) -> str:
        told = {"batch": {"displayName": file, "inputConfig": {"fileName": file}}}
        return _named(dict_or_empty((await self._endpoint.post_json(":batchGenerateContent", told)).body), "batches/")

    async def get_status(self, batch: str) -> BatchStatus:
        came = await self._endpoint.get_json(f"/{batch}", told=True)
        whole = dict_or_empty(came.body)
        if not dict_or_empty(whole.get("metadata")) and came.error_message:
            raise CallError(f"{self._endpoint.address}: {came.error_message[:300]}", TRANSIENT)
        about = dict_or_empty(whole.get("metadata")) or whole
        state = str(about.get("state") or "").removeprefix("BATCH_STATE_").removeprefix("JOB_STATE_")
        output = (
            dict_or_empty(about.get("output"))
            or dict_or_empty(about.get("dest"))
            or dict_or_empty(whole.get("response"))
        )
        file = str(output.get("responsesFile") or output.get("fileName") or "")
        counts = dict_or_empty(about.get("batchStats"))
        told = scrub(str(dict_or_empty(whole.get("error")).get("message") or ""))[:300]
        due = int(counts.get("requestCount") or 0)
        left = int(counts.get("pendingRequestCount") or 0)
        if state in ("FAILED", "CANCELLED", "EXPIRED"):
            trouble = told or state
        else:
            trouble = ""
        return BatchStatus(
            state.lower(),
            state in OVER,
            (file,) if file else (),
            trouble,
            max(0, due - left) if state == "SUCCEEDED" else 0,
            due,
        )

    async def fetch_results(self, look: BatchStatus) -> Mapping[str, Any]:
        made: dict[str, Any] = {}
        for file in look.result_files:
            if not file.startswith("files/") or ".." in file:
                raise CallError(f"{self._endpoint.address} named a file that is none", NO_RETRY)
            for line in parse_json_lines(await self._endpoint.download(f"/{file}:download?alt=media", MAX_REPLY_BYTES)):
                error = dict_or_empty(line.get("error"))
                code = error.get("code")
                if isinstance(code, int) and 400 <= code < 600:
                    status = code
                else:
                    status = 502
                if error:
                    made[str(line.get("key"))] = build_answer(status, {"error": error})
                else:
                    made[str(line.get("key"))] = build_answer(200, line.get("response"))
        return made

    async def parse_result(self, answer: Any, want: Request) -> EndpointReply:
        return await self._endpoint.read_batch_line(answer, want)


def _named(thing: dict[str, Any], of: str) -> str:
    name = thing.get("name")
    if not isinstance(name, str) or not name.startswith(of) or " " in name or ".." in name:
        raise CallError("what was handed in as a batch got no name", TRANSIENT)
    return name
