"""Gemini's own protocol, with its batches."""

import base64
import hashlib
import json
from typing import Any

from aiohttp import web

from fakes.base import SIGNED, Asked, Batches, Fake, reply
from server import drawn


class Gemini(Fake):
    """Gemini's own protocol. It remembers which signature it gave to which part, and turns away a turn of its own that
    has none."""

    provider = "gemini"
    prefix = "/v1beta"

    def __init__(self, says: str = "ok") -> None:
        super().__init__(says)
        self.signed: dict[str, set[str]] = {}

        self.batches = Batches()

    def routes(self, router: web.UrlDispatcher) -> None:
        router.add_post("/v1beta/models/{model}:generateContent", self.handle)
        router.add_post("/upload/v1beta/files", self.place)
        router.add_post("/upload/here", self.take)
        router.add_post("/v1beta/models/{model}:batchGenerateContent", self.begin)
        router.add_get("/v1beta/batches", self.listed)
        router.add_get("/v1beta/batches/{batch}", self.look)
        router.add_get("/v1beta/files/{file}:download", self.content)

    async def place(self, request: web.Request) -> web.Response:
        assert (
            request.headers["X-Goog-Upload-Protocol"] == "resumable"
            and request.headers["X-Goog-Upload-Command"] == "start"
        )
        return reply({}, **{"X-Goog-Upload-URL": f"{self.url}/upload/here", "X-Goog-Upload-Status": "active"})

    async def take(self, request: web.Request) -> web.Response:
        assert "finalize" in request.headers["X-Goog-Upload-Command"] and "x-goog-api-key" not in request.headers
        name = f"files/in{len(self.batches.files) + 1}"
        self.batches.files[name] = await request.read()
        return reply({"file": {"name": name, "mimeType": "application/jsonl"}}, **{"X-Goog-Upload-Status": "final"})

    async def begin(self, request: web.Request) -> web.Response:
        batch = (await request.json())["batch"]
        file = batch["inputConfig"]["fileName"]
        assert file not in self.batches.by_file, "paid for twice"
        self.batches.by_file[file] = batch.get("displayName") or batch["display_name"]
        return reply(self.batch(file, "PENDING"))

    def batch(self, file: str, state: str) -> dict[str, Any]:
        about: dict[str, Any] = {
            "model": "models/m",
            "displayName": self.batches.by_file[file],
            "state": f"BATCH_STATE_{state}",
        }
        if state == "SUCCEEDED":
            about["output"] = {"responsesFile": f"files/out{file.removeprefix('files/in')}"}
        return {"name": f"batches/b{file.removeprefix('files/in')}", "metadata": about, "done": state == "SUCCEEDED"}

    async def listed(self, request: web.Request) -> web.Response:
        return reply({"operations": [self.batch(file, "RUNNING") for file in self.batches.by_file]})

    async def look(self, request: web.Request) -> web.Response:
        name = request.match_info["batch"]
        file = f"files/in{name.removeprefix('b')}"
        self.batches.looks[name] += 1
        if self.batches.ends == "failed":
            failed = self.batch(file, "FAILED")
            return reply({**failed, "done": True, "error": {"code": 13, "message": "line 1 is no request"}})
        return reply(self.batch(file, "RUNNING" if self.batches.looks[name] < self.batches.patience else "SUCCEEDED"))

    async def content(self, request: web.Request) -> web.Response:
        assert request.query["alt"] == "media"
        made: list[dict[str, Any]] = []
        for number, line in enumerate(self.batches.lines(f"files/in{request.match_info['file'].removeprefix('out')}")):
            spoilt = self.batches.spoil.get(number)
            asked = Asked("", {}, line["request"])
            assert not self.read(asked)
            answer = {"error": {"code": 503, "message": "overloaded"}} if spoilt else {"response": self.answer(asked)}
            made += [] if spoilt == "missing" else [{"key": line["key"], **answer}]
        return web.Response(
            body="\n".join(json.dumps(one) for one in made).encode(), content_type="application/octet-stream"
        )

    def read(self, asked: Asked) -> str:
        """What is wrong with it, if anything."""
        for place, content in enumerate(asked.body["contents"]):
            for at, part in enumerate(content["parts"]):
                data = part.get("inlineData") or part.get("inline_data")
                if data:
                    asked.picture(data["data"])
                else:
                    asked.text(part["text"])
                if content["role"] != "model":
                    continue
                signature = part.get("thoughtSignature", part.get("thought_signature", "")).replace("-", "+")
                due = self.signed.get(asked.flow[-1], {""})
                if signature not in due and not ("" in due and signature == "skip_thought_signature_validator"):
                    kind = "Image" if data else "Text"
                    return f"{kind} part is missing a thought_signature in content position {place}, part position {at}"
        config = asked.body.get("generationConfig") or {}
        asked.kind = "both" if "IMAGE" in (config.get("responseModalities") or ()) else "text"
        asked.seed, asked.size = config.get("seed"), (config.get("imageConfig") or {}).get("aspectRatio", "")
        asked.schema = config.get("responseJsonSchema")
        return ""

    async def handle(self, request: web.Request) -> web.Response:
        asked = await self.asked(request)
        wrong = self.read(asked)
        if wrong:
            return reply({"error": {"code": 400, "message": wrong, "status": "INVALID_ARGUMENT"}}, 400)
        trouble = self.trouble()
        return trouble if trouble is not None else reply(self.answer(asked))

    def trouble(self) -> web.Response | None:
        def quota(of: str) -> list[Any]:
            failure = {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": of}]}
            return [failure, {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.01s"}]

        errors = {
            "rate": (429, "RESOURCE_EXHAUSTED", quota("GenerateRequestsPerMinutePerProject")),
            "quota": (429, "RESOURCE_EXHAUSTED", quota("GenerateRequestsPerDayPerProject")),
            "denied": (403, "PERMISSION_DENIED", []),
            "trouble": (500, "INTERNAL", []),
            "overloaded": (503, "UNAVAILABLE", []),
            "error in 200": (200, "UNAVAILABLE", []),
        }
        if self.says == "no json":
            return web.Response(text="<html>")
        if self.says not in errors:
            return None
        status, code, details = errors[self.says]
        return reply(
            {"error": {"code": 503 if status == 200 else status, "message": "no", "status": code, "details": details}},
            status,
        )

    def answer(self, asked: Asked) -> dict[str, Any]:
        text = asked.words
        parts: list[dict[str, Any]] = (
            [{"text": text}] if asked.kind == "text" else [{"text": "one "}, _inline(asked.coded)]
        )
        if self.says == "both":
            parts = [
                {"text": "one "},
                _inline(asked.coded),
                {"text": "two "},
                _inline(base64.b64encode(drawn("other")).decode()),
            ]
        for number, part in enumerate(parts):
            if (asked.kind != "text" and number % 2 == 0) or "inlineData" in part:
                part["thoughtSignature"] = base64.b64encode(f"{SIGNED}{len(self.seen)}-{number}".encode()).decode()
            self.signed.setdefault(_of(part), set()).add(part.get("thoughtSignature", ""))
        if self.says == "thoughts":
            parts = [
                {"text": "let me see", "thought": True},
                {**_inline(base64.b64encode(drawn("draft")).decode()), "thought": True},
                *parts,
            ]
        finish = {
            "nothing": "NO_IMAGE", "filtered": "IMAGE_SAFETY", "refused": "PROHIBITED_CONTENT", "cut": "MAX_TOKENS", "other": "IMAGE_OTHER",
        }.get(self.says, "STOP")  # fmt: skip
        content: dict[str, Any] = {"role": "model", "parts": parts}
        if self.says == "wordy":
            content["parts"] = [{"text": "imagine a picture"}]
        if self.says == "broken":
            content["parts"] = [_inline("AAAA")]
        if self.says in ("nothing", "filtered", "refused", "other"):
            content = {"role": "model"}
        usage = {"promptTokenCount": 11, "candidatesTokenCount": 7, "thoughtsTokenCount": 2, "totalTokenCount": 20}
        if self.says == "blocked":
            return {
                "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},
                "usageMetadata": usage,
                "modelVersion": "m-1",
            }
        candidate = {"content": content, "finishReason": finish, "index": 0}
        return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "m-1", "responseId": "r"}


def _inline(coded: str) -> dict[str, Any]:
    return {"inlineData": {"mimeType": "image/jpeg", "data": coded}}  # which it is not: bytes tell


def _of(part: dict[str, Any]) -> str:
    data = part.get("inlineData")
    return hashlib.sha256(base64.b64decode(data["data"])).hexdigest() if data else part["text"]
