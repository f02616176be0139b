"""Gemini's batches: a file of requests under keys, a batch that is found again by its file's name, a file of responses."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from weft.models.endpoint import NO, TRANSIENT, CallError, Look, Sent
from weft.models.http import MAX_REPLY, Lines
from weft.models.http_endpoint import address_of
from weft.models.providers.openai_batches import answer_of, lines_of
from weft.secrets import scrub
from weft.types import Message, Want
from weft.untrusted import fields

if TYPE_CHECKING:
    from weft.models.providers.gemini import Gemini

OVER = ("SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED")
PAGES = 10


class GeminiBatches:
    most_lines = 2000
    most_bytes = 1_000_000_000  # of 2 GB that a file may have

    def __init__(self, endpoint: "Gemini") -> None:
        self._endpoint = endpoint

    def line(self, name: str, messages: tuple[Message, ...], want: Want) -> dict[str, Any]:
        return {"key": name, "request": self._endpoint.payload(messages, want)}

    async def hand_in(self, lines: Sequence[Mapping[str, Any]]) -> str:
        """Google's way: ask where to, then send it there. The key goes with the first alone."""
        body = Lines(lines, self._endpoint.blobs, bare=True)
        began = {
            "X-Goog-Upload-Protocol": "resumable",
            "X-Goog-Upload-Command": "start",
            "X-Goog-Upload-Header-Content-Length": str(body.length),
            "X-Goog-Upload-Header-Content-Type": "application/jsonl",
        }
        place = (await self._endpoint.begun({"file": {"displayName": "weft"}}, began)).headers.get("x-goog-upload-url", "")
        try:
            ours = address_of(place).netloc == urlsplit(self._endpoint.address).netloc
        except ValueError as error:
            raise CallError(f"{self._endpoint.address} did not say where a file goes: {error}", TRANSIENT) from None
        if not ours:
            raise CallError(f"{self._endpoint.address} wants a file sent to another host", NO)
        sent = {"X-Goog-Upload-Command": "upload, finalize", "X-Goog-Upload-Offset": "0", "Content-Type": "application/jsonl"}
        came = await self._endpoint.uploaded(place, body, sent)
        return _named(fields(fields(came.body).get("file")), "files/")

    async def find(self, file: str) -> str:
        token = ""
        for _ in range(PAGES):
            page = fields((await self._endpoint.looked(f"/batches?pageSize=100{token}")).body)
            listed: Any = page.get("operations") or page.get("batches")
            for one in map(fields, cast(list[Any], listed) if isinstance(listed, list) else []):
                if (fields(one.get("metadata")) or one).get("displayName") == file:
                    return _named(one, "batches/")
            if not page.get("nextPageToken"):
                return ""
            token = f"&pageToken={page['nextPageToken']}"
        return ""

    async def start(self, file: str) -> str:
        told = {"batch": {"displayName": file, "inputConfig": {"fileName": file}}}
        return _named(fields((await self._endpoint.posted(":batchGenerateContent", told)).body), "batches/")

    async def look(self, batch: str) -> Look:
        came = await self._endpoint.looked(f"/{batch}", told=True)
        whole = fields(came.body)
        if not fields(whole.get("metadata")) and came.said:
            raise CallError(f"{self._endpoint.address}: {came.said[:300]}", TRANSIENT)
        about = fields(whole.get("metadata")) or whole
        state = str(about.get("state") or "").removeprefix("BATCH_STATE_").removeprefix("JOB_STATE_")
        output = fields(about.get("output")) or fields(about.get("dest")) or fields(whole.get("response"))
        file = str(output.get("responsesFile") or output.get("fileName") or "")
        counts = fields(about.get("batchStats"))
        told = scrub(str(fields(whole.get("error")).get("message") or ""))[:300]
        due, left = int(counts.get("requestCount") or 0), int(counts.get("pendingRequestCount") or 0)
        trouble = told or state if state in ("FAILED", "CANCELLED", "EXPIRED") else ""
        return Look(state.lower(), state in OVER, (file,) if file else (), trouble, max(0, due - left) if state == "SUCCEEDED" else 0, due)

    async def answers(self, look: Look) -> Mapping[str, Any]:
        made: dict[str, Any] = {}
        for file in look.files:
            if not file.startswith("files/") or ".." in file:
                raise CallError(f"{self._endpoint.address} named a file that is none", NO)
            for line in lines_of(await self._endpoint.file(f"/{file}:download?alt=media", MAX_REPLY)):
                error = fields(line.get("error"))
                code = error.get("code")
                status = code if isinstance(code, int) and 400 <= code < 600 else 502
                made[str(line.get("key"))] = answer_of(status, {"error": error}) if error else answer_of(200, line.get("response"))
        return made

    async def read(self, answer: Any, want: Want) -> Sent:
        return await self._endpoint.answered(answer, want)


def _named(thing: dict[str, Any], of: str) -> str:
    name = thing.get("name")
    if not isinstance(name, str) or not name.startswith(of) or " " in name or ".." in name:
        raise CallError("what was handed in as a batch got no name", TRANSIENT)
    return name
