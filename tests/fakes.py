"""A fake of every wire that weft speaks, on a real loopback socket: what it was sent, read as the service would read it; and every way in
which such a service answers. What it draws follows from the request alone.

The providers' own libraries talk to the same fakes (test_sdks.py), so that a fake that speaks nonsense is found out.
"""

import asyncio
import base64
import hashlib
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from server import drawn

SIGNED = "signed-"


@dataclass
class Asked:
    """A request as the service understands it: `flow` has texts and digests of pictures in their order."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    flow: list[str] = field(default_factory=list)
    pictures: list[str] = field(default_factory=list)
    kind: str = "image"  # what it asks for: text, image, both
    seed: int | None = None
    size: str = ""
    schema: Any = None

    def text(self, said: Any) -> None:
        self.flow.append(str(said))

    def picture(self, coded: str) -> None:
        plain = (coded.rpartition(",")[2] if coded.startswith("data:") else coded).replace("-", "+").replace("_", "/")
        data = base64.b64decode(plain, validate=True)
        self.pictures.append(hashlib.sha256(data).hexdigest())
        self.flow.append(self.pictures[-1])

    @property
    def drawing(self) -> bytes:
        return drawn(json.dumps([self.flow, self.seed, self.size]), 48)

    @property
    def coded(self) -> str:
        return base64.b64encode(self.drawing).decode()


def reply(body: Any, status: int = 200, **headers: str) -> web.Response:
    return web.json_response(body, status=status, headers=headers)


class Fake:
    """`says` is how it answers: ok, both, thoughts, wordy (words where a picture is due), nothing, refused, blocked, cut, broken (a picture
    that is none), rate, quota, denied, trouble, error in 200, no json. A service that cannot say a thing has no such answer."""

    provider = ""
    prefix = "/v1"
    pictures_out = True

    def __init__(self, says: str = "ok") -> None:
        self.says, self.url = says, ""
        self.seen: list[Asked] = []
        self.files: dict[str, bytes] = {}
        self.middlewares: list[Any] = []

    @asynccontextmanager
    async def up(self) -> AsyncIterator["Fake"]:
        app = web.Application(client_max_size=256 << 20, middlewares=self.middlewares)
        self.routes(app.router)
        app.router.add_get("/files/{name}", self._file)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}"  # type: ignore[union-attr]
        try:
            yield self
        finally:
            await runner.cleanup()

    @property
    def name(self) -> str:
        return f"{self.provider}/m@{self.url}{self.prefix}"

    def routes(self, router: web.UrlDispatcher) -> None:
        raise NotImplementedError

    async def _file(self, request: web.Request) -> web.Response:
        return web.Response(body=self.files[request.match_info["name"]], content_type="application/octet-stream")

    def link(self, data: bytes) -> str:
        name = hashlib.sha256(data).hexdigest()
        self.files[name] = data
        return f"{self.url}/files/{name}"

    async def asked(self, request: web.Request) -> Asked:
        asked = Asked(request.path, {name.lower(): value for name, value in request.headers.items()}, await request.json())
        self.seen.append(asked)
        return asked

    def common(self) -> web.Response | None:
        """What all services of OpenAI's manner say of trouble."""
        errors: dict[str, tuple[int, dict[str, Any], dict[str, str]]] = {
            "blocked": (400, {"message": "rejected by the safety system", "code": "moderation_blocked", "type": "user_error"}, {}),
            "rate": (429, {"message": "slow down", "code": "rate_limit_exceeded", "type": "requests"}, {"retry-after-ms": "10"}),
            "quota": (429, {"message": "nothing left", "code": "insufficient_quota", "type": "insufficient_quota"}, {}),
            "denied": (401, {"message": "no such key", "code": "invalid_api_key", "type": "invalid_request_error"}, {}),
            "trouble": (500, {"message": "oh no", "type": "server_error"}, {}),
            "error in 200": (200, {"message": "overloaded", "code": 503}, {}),
        }
        if self.says == "no json":
            return web.Response(text="<html>502 Bad Gateway</html>", content_type="text/html")
        if self.says not in errors:
            return None
        status, error, headers = errors[self.says]
        return reply({"error": {"param": None, **error}}, status, **headers)


class Chat(Fake):
    """OpenAI's chat completions."""

    provider = "openai-chat"
    pictures_out = False

    def routes(self, router: web.UrlDispatcher) -> None:
        router.add_post(f"{self.prefix}/chat/completions", self.handle)

    def read(self, asked: Asked) -> None:
        body = asked.body
        for message in body["messages"]:
            content = message["content"]
            for part in [{"type": "text", "text": content}] if isinstance(content, str) else content:
                if part["type"] == "text":
                    asked.text(part["text"])
                else:
                    asked.picture(part["image_url"]["url"])
            for image in message.get("images", ()):
                asked.picture(image["image_url"]["url"])
        asked.kind = "both" if "image" in (body.get("modalities") or ()) else "text"
        asked.seed, asked.size = body.get("seed"), body.get("size") or (body.get("image_config") or {}).get("aspect_ratio", "")
        asked.schema = ((body.get("response_format") or {}).get("json_schema") or {}).get("schema")

    def message(self, asked: Asked) -> tuple[dict[str, Any], str]:
        image = {"type": "image_url", "index": 0, "image_url": {"url": f"data:image/png;base64,{asked.coded}"}}
        said: dict[str, Any] = {
            "role": "assistant",
            "refusal": None,
            "content": json.dumps({"score": 5, "reasoning": "so"}) if asked.schema else "hello",
        }
        if asked.kind != "text":
            said |= {"content": "here it is", "images": [image]}
        if self.says == "thoughts":
            said["reasoning"] = "let me see"
        if self.says == "refused":
            return {**said, "content": None, "images": [], "refusal": "I would rather not"}, "stop"
        if self.says == "wordy":
            return {"role": "assistant", "content": "imagine a picture"}, "stop"
        if self.says == "nothing":
            return {"role": "assistant", "content": ""}, "stop"
        if self.says == "broken":
            return {**said, "content": "", "images": [{"image_url": {"url": "data:image/png;base64,AAAA"}}]}, "stop"
        return said, {"cut": "length", "filtered": "content_filter"}.get(self.says, "stop")

    async def handle(self, request: web.Request) -> web.Response:
        asked = await self.asked(request)
        self.read(asked)
        if (trouble := self.common()) is not None:
            return trouble
        message, finish = self.message(asked)
        usage: dict[str, Any] = {"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16}
        usage |= {"cost": 0.03} if (asked.body.get("usage") or {}).get("include") else {}
        choice = {"index": 0, "finish_reason": finish, "message": message, "logprobs": None}
        whole = {"id": "c1", "object": "chat.completion", "created": 1, "model": "m-1", "system_fingerprint": "fp"}
        return reply({**whole, "choices": [choice], "usage": usage})


class Batches:
    """What a place for batches has: files, batches by file, and how many looks a batch takes. `spoil` are lines that come to nothing, by
    their number; `ends` is how a batch ends."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.by_file: dict[str, str] = {}
        self.looks: Counter[str] = Counter()
        self.answers: dict[str, list[dict[str, Any]]] = {}
        self.spoil: dict[int, str] = {}
        self.ends = "ok"
        self.patience = 2
        self.outage = 0  # looks that meet trouble
        self.open = True  # whether a batch can be begun

    def lines(self, file: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.files[file].splitlines()]


class OpenAI(Chat):
    """With batches."""

    provider = "openai"

    def __init__(self, says: str = "ok") -> None:
        super().__init__(says)
        self.batches = Batches()

    def routes(self, router: web.UrlDispatcher) -> None:
        super().routes(router)
        router.add_post("/v1/files", self.take)
        router.add_post("/v1/batches", self.begin)
        router.add_get("/v1/batches", self.listed)
        router.add_get("/v1/batches/{batch}", self.look)
        router.add_get("/v1/files/{file}/content", self.content)

    async def take(self, request: web.Request) -> web.Response:
        form = await request.post()
        file = form["file"]
        assert form["purpose"] == "batch" and not isinstance(file, str) and file.filename.endswith(".jsonl")
        name = f"file-{len(self.batches.files) + 1}"
        self.batches.files[name] = file.file.read()
        size = len(self.batches.files[name])
        return reply(
            {
                "id": name,
                "object": "file",
                "bytes": size,
                "created_at": 1,
                "filename": "weft.jsonl",
                "purpose": "batch",
                "status": "processed",
            }
        )

    async def begin(self, request: web.Request) -> web.Response:
        body = await request.json()
        assert body["endpoint"] == "/v1/chat/completions" and body["completion_window"] == "24h"
        file = body["input_file_id"]
        while not self.batches.open:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        assert file not in self.batches.by_file, "paid for twice"
        self.batches.by_file[file] = f"batch_{file}"
        return reply(self.batch(file, "validating"))

    def batch(self, file: str, state: str) -> dict[str, Any]:
        total = len(self.batches.lines(file))
        made = {
            "id": f"batch_{file}",
            "object": "batch",
            "endpoint": "/v1/chat/completions",
            "input_file_id": file,
            "completion_window": "24h",
            "created_at": 1,
        }
        counts = {"total": total, "completed": total if state == "completed" else 0, "failed": 0}
        return {**made, "status": state, "request_counts": counts}

    async def listed(self, request: web.Request) -> web.Response:
        found = [self.batch(file, "in_progress") for file in self.batches.by_file]
        return reply({"object": "list", "data": found, "has_more": False})

    async def look(self, request: web.Request) -> web.Response:
        name = request.match_info["batch"]
        file = name.removeprefix("batch_")
        self.batches.looks[name] += 1
        self.batches.outage -= 1
        if self.batches.outage >= 0:
            return web.Response(status=502, text="<html>")
        if self.batches.looks[name] < self.batches.patience:
            return reply(self.batch(file, "in_progress"))
        if self.batches.ends == "failed":
            errors = {"object": "list", "data": [{"code": "invalid_json_line", "message": "line 1 is no request", "line": 1}]}
            return reply({**self.batch(file, "failed"), "errors": errors})
        state = {"ok": "completed"}.get(self.batches.ends, self.batches.ends)
        return reply({**self.batch(file, state), "output_file_id": f"out-{file}", "error_file_id": f"err-{file}"})

    async def content(self, request: web.Request) -> web.Response:
        kind, _, file = request.match_info["file"].partition("-")
        made: list[dict[str, Any]] = []
        for number, line in reversed(list(enumerate(self.batches.lines(file)))):  # in no order that anyone may count on
            assert line["method"] == "POST" and line["url"] == "/v1/chat/completions"
            spoilt = self.batches.spoil.get(number)
            unanswered = spoilt == "missing" and self.batches.ends in ("expired", "cancelled")
            if (spoilt == "missing" and not unanswered) or (kind == "err") != (spoilt is not None):
                continue
            asked = Asked(line["url"], {}, line["body"])
            self.read(asked)
            message, finish = self.message(asked)
            usage = {"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16}
            body: dict[str, Any] = {
                "id": "c",
                "model": "m-1",
                "choices": [{"index": 0, "finish_reason": finish, "message": message}],
                "usage": usage,
            }
            response: Any = {"status_code": 200, "request_id": "r", "body": body}
            if spoilt == "error":
                response = {"status_code": 500, "request_id": "r", "body": {"error": {"message": "oh no", "type": "server_error"}}}
            if spoilt == "quota":
                response = {"status_code": 429, "request_id": "r", "body": {"error": {"message": "no", "code": "insufficient_quota"}}}
            error = {"code": f"batch_{self.batches.ends}", "message": "too late"} if unanswered else None
            made.append({"id": f"r{number}", "custom_id": line["custom_id"], "response": None if error else response, "error": error})
        return web.Response(body="\n".join(json.dumps(one) for one in made).encode(), content_type="application/octet-stream")


class SGLang(Chat):
    provider = "sglang"


class AnyChat(Chat):
    """A server of chat completions that draws as well."""

    pictures_out = True


class OpenRouter(AnyChat):
    provider = "openrouter"
    prefix = "/api/v1"

    def __init__(self, says: str = "ok") -> None:
        super().__init__(says)
        self.own: set[str] = set()

    def message(self, asked: Asked) -> tuple[dict[str, Any], str]:
        message, finish = super().message(asked)
        if asked.kind != "text" and self.says in ("ok", "thoughts"):
            message["reasoning_details"] = [{"type": "reasoning.encrypted", "data": SIGNED + asked.flow[-1][:8]}]
            self.own.add(f"data:image/png;base64,{asked.coded}")
        return message, finish

    def read(self, asked: Asked) -> None:
        super().read(asked)
        for message in asked.body["messages"]:
            if message["role"] == "assistant" and any(image["image_url"]["url"] in self.own for image in message.get("images", ())):
                assert message["reasoning_details"][0]["data"].startswith(SIGNED)


class VllmOmni(Fake):
    """It joins the user's texts, looks at one picture, and at nothing else. `content` is a list."""

    provider = "vllm-omni"

    def routes(self, router: web.UrlDispatcher) -> None:
        router.add_post("/v1/chat/completions", self.handle)

    async def handle(self, request: web.Request) -> web.Response:
        asked = await self.asked(request)
        parts = [part for m in asked.body["messages"] if m["role"] == "user" for part in _listed(m["content"])]
        asked.text(" ".join(part["text"] for part in parts if part["type"] == "text"))
        for part in [part for part in parts if part["type"] == "image_url"][:1]:
            asked.picture(part["image_url"]["url"])
        asked.kind, asked.seed, asked.size = asked.body["modalities"][0], asked.body.get("seed"), asked.body.get("size", "")
        errors = {"denied": 404, "trouble": 500}
        if self.says in errors:
            return reply(
                {"error": {"message": "no", "type": "BadRequestError", "param": None, "code": errors[self.says]}}, errors[self.says]
            )
        if (trouble := self.common()) is not None:
            return trouble
        picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{asked.coded}"}, "stage_durations": {}}
        content: Any = "hello" if asked.kind == "text" else [picture]
        if self.says in ("wordy", "nothing"):
            content = "Image generation completed but no images were produced."
        metrics = {"think_text": "let me see"} if self.says == "thoughts" else {}
        choice = {
            "index": 0,
            "finish_reason": "length" if self.says == "cut" else "stop",
            "message": {"role": "assistant", "content": content},
        }
        return reply({"id": "o1", "model": "m", "choices": [choice], "usage": {"prompt_tokens": 3}, "metrics": metrics})


def _listed(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


class Images(Fake):
    """OpenAI's image API, as JSON and as files."""

    provider = "openai-images"

    def routes(self, router: web.UrlDispatcher) -> None:
        router.add_post(f"{self.prefix}/images/generations", self.handle)
        router.add_post(f"{self.prefix}/images/edits", self.handle)

    async def asked(self, request: web.Request) -> Asked:
        if request.content_type == "application/json":
            return await super().asked(request)
        form = await request.post()
        body = {name: value for name, value in form.items() if isinstance(value, str)}
        asked = Asked(request.path, {name.lower(): value for name, value in request.headers.items()}, body)
        for name, value in form.items():
            if not isinstance(value, str):
                assert name in ("image", "image[]") and value.content_type.startswith("image/")
                asked.picture(base64.b64encode(value.file.read()).decode())
        self.seen.append(asked)
        return asked

    def read(self, asked: Asked) -> None:
        for image in asked.body.get("images", ()):
            asked.picture(image["image_url"])
        asked.text(asked.body["prompt"])
        asked.seed, asked.size = int(asked.body["seed"]) if "seed" in asked.body else None, asked.body.get("size", "")
        assert asked.body["model"] == "m" and bool(asked.pictures) == asked.path.endswith("/edits")

    def data(self, asked: Asked) -> list[dict[str, Any]]:
        return {"nothing": [], "broken": [{"b64_json": "AAAA"}], "linked": [{"url": self.link(asked.drawing)}]}.get(
            self.says, [{"b64_json": asked.coded}]
        )

    async def handle(self, request: web.Request) -> web.Response:
        asked = await self.asked(request)
        self.read(asked)
        if (trouble := self.common()) is not None:
            return trouble
        usage = {
            "input_tokens": 20,
            "output_tokens": 30,
            "total_tokens": 50,
            "input_tokens_details": {"text_tokens": 20, "image_tokens": 0},
        }
        return reply({"created": 1, "data": self.data(asked), "usage": usage})


class Ark(Images):
    provider = "ark"
    prefix = "/api/v3"

    def read(self, asked: Asked) -> None:
        image = asked.body.get("image") or []
        for one in [image] if isinstance(image, str) else image:
            asked.picture(one)
        asked.text(asked.body["prompt"])
        asked.seed, asked.size = asked.body.get("seed"), asked.body.get("size", "")
        assert asked.path.endswith("/generations") and asked.body["watermark"] is False

    def data(self, asked: Asked) -> list[dict[str, Any]]:
        error = {"code": "OutputImageSensitiveContentDetected", "message": "not shown"}
        return [{"error": error}] if self.says == "refused" else super().data(asked)


class XAI(Images):
    provider = "xai"

    def read(self, asked: Asked) -> None:
        images = [asked.body["image"]] if "image" in asked.body else asked.body.get("images", [])
        for image in images:
            asked.picture(image["url"])
        asked.text(asked.body["prompt"])
        asked.size = asked.body.get("aspect_ratio", "")
        assert bool(images) == asked.path.endswith("/edits")

    def data(self, asked: Asked) -> list[dict[str, Any]]:
        if self.says == "refused":
            return [{"b64_json": "", "respect_moderation": False}]
        return [{"b64_json": f"data:image/png;base64,{asked.coded}"}] if self.says == "ok" else super().data(asked)


class Responses(Fake):
    """OpenAI's Responses: it keeps what it said under a name, and knows no other."""

    provider = "openai-responses"

    def __init__(self, says: str = "ok") -> None:
        super().__init__(says)
        self.kept: dict[str, list[str]] = {}

    def routes(self, router: web.UrlDispatcher) -> None:
        router.add_post("/v1/responses", self.handle)

    async def handle(self, request: web.Request) -> web.Response:
        asked = await self.asked(request)
        body = asked.body
        before = body.get("previous_response_id")
        if before is not None:
            if before not in self.kept:
                return reply(
                    {"error": {"message": f"Previous response with id '{before}' not found.", "code": "previous_response_not_found"}}, 400
                )
            asked.flow += self.kept[before]
            asked.pictures += [one for one in self.kept[before] if len(one) == 64]
        given = body["input"]
        for item in [{"role": "user", "content": given}] if isinstance(given, str) else given:
            for part in [{"type": "input_text", "text": item["content"]}] if isinstance(item["content"], str) else item["content"]:
                if part["type"] == "input_image":
                    assert item["role"] == "user", "assistant messages cannot carry pictures"
                    asked.picture(part["image_url"])
                else:
                    asked.text(part["text"])
        tool = next((one for one in body.get("tools", ()) if one["type"] == "image_generation"), None)
        asked.kind, asked.size = "both" if tool else "text", (tool or {}).get("size", "")
        asked.schema = ((body.get("text") or {}).get("format") or {}).get("schema")
        if (trouble := self.common()) is not None:
            return trouble
        return self.answer(asked, body.get("store", True))

    def answer(self, asked: Asked, keeps: bool) -> web.Response:
        name = f"resp_{len(self.seen)}"
        text = json.dumps({"score": 5, "reasoning": "so"}) if asked.schema else "hello"
        said: dict[str, Any] = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
        if self.says == "refused":
            said = {"type": "refusal", "refusal": "I would rather not"}
        message = {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": [said]}
        call = {
            "type": "image_generation_call",
            "id": "ig_1",
            "status": "completed",
            "result": asked.coded,
            "revised_prompt": "a nicer one",
        }
        if self.says == "broken":
            call["result"] = "AAAA"
        output: list[Any] = [message] if asked.kind == "text" or self.says in ("wordy", "refused") else [call, message]
        output = [] if self.says == "nothing" else output
        if self.says == "both":
            output = [message, call, {**message, "id": "msg_2"}]
        if self.says == "thoughts":
            output = [{"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "let me see"}]}, *output]
        whole: dict[str, Any] = {
            "id": name, "object": "response", "created_at": 1, "status": "completed", "error": None, "incomplete_details": None,
            "model": "m-1", "output": output, "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
            "instructions": None, "metadata": {}, "temperature": 1.0, "top_p": 1.0,
            "usage": {"input_tokens": 9, "output_tokens": 4, "total_tokens": 13,
                      "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0}, 
                      "output_tokens_details": {"reasoning_tokens": 0}},
        }  # fmt: skip
        if self.says == "failed":
            whole |= {"status": "failed", "output": [], "error": {"code": "server_error", "message": "it broke"}}
        if self.says == "policy":
            whole |= {"status": "failed", "output": [], "error": {"code": "image_content_policy_violation", "message": "not this"}}
        if self.says in ("cut", "filtered"):
            whole |= {
                "status": "incomplete",
                "incomplete_details": {"reason": {"cut": "max_output_tokens"}.get(self.says, "content_filter")},
            }
        if keeps:
            made = [hashlib.sha256(asked.drawing).hexdigest() if item["type"] == "image_generation_call" else "hello" for item in output]
            self.kept[name] = [*asked.flow, *made]
        return reply(whole)


class Gemini(Fake):
    """Gemini's own protocol. It remembers which signature it gave to which part, and turns away a turn of its own that has none."""

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
        assert request.headers["X-Goog-Upload-Protocol"] == "resumable" and request.headers["X-Goog-Upload-Command"] == "start"
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
        about: dict[str, Any] = {"model": "models/m", "displayName": self.batches.by_file[file], "state": f"BATCH_STATE_{state}"}
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
        return web.Response(body="\n".join(json.dumps(one) for one in made).encode(), content_type="application/octet-stream")

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
        return reply({"error": {"code": 503 if status == 200 else status, "message": "no", "status": code, "details": details}}, status)

    def answer(self, asked: Asked) -> dict[str, Any]:
        text = json.dumps({"score": 5, "reasoning": "so"}) if asked.schema else "hello"
        parts: list[dict[str, Any]] = [{"text": text}] if asked.kind == "text" else [{"text": "one "}, _inline(asked.coded)]
        if self.says == "both":
            parts = [{"text": "one "}, _inline(asked.coded), {"text": "two "}, _inline(base64.b64encode(drawn("other")).decode())]
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
            return {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": usage, "modelVersion": "m-1"}
        candidate = {"content": content, "finishReason": finish, "index": 0}
        return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "m-1", "responseId": "r"}


def _inline(coded: str) -> dict[str, Any]:
    return {"inlineData": {"mimeType": "image/jpeg", "data": coded}}  # which it is not: bytes tell


def _of(part: dict[str, Any]) -> str:
    data = part.get("inlineData")
    return hashlib.sha256(base64.b64decode(data["data"])).hexdigest() if data else part["text"]


class Anthropic(Fake):
    provider = "anthropic"
    pictures_out = False

    def routes(self, router: web.UrlDispatcher) -> None:
        router.add_post("/v1/messages", self.handle)

    async def handle(self, request: web.Request) -> web.Response:
        asked = await self.asked(request)
        body = asked.body
        assert body["max_tokens"] > 0 and asked.headers["anthropic-version"]
        for message in body["messages"]:
            assert message["role"] in ("user", "assistant")
            for part in _listed(message["content"]):
                if part["type"] == "image":
                    assert message["role"] == "user" and part["source"]["media_type"].startswith("image/")
                    asked.picture(part["source"]["data"])
                else:
                    asked.text(part["text"])
        asked.kind, asked.schema = "text", ((body.get("output_config") or {}).get("format") or {}).get("schema")
        errors = {
            "rate": (429, "rate_limit_error", {"retry-after": "0"}), "trouble": (529, "overloaded_error", {}),
            "denied": (401, "authentication_error", {}), "quota": (400, "invalid_request_error", {}),
        }  # fmt: skip
        if self.says == "no json":
            return web.Response(text="<html>")
        if self.says in errors:
            status, kind, headers = errors[self.says]
            said = "Your credit balance is too low to access the API" if self.says == "quota" else "no"
            return reply({"type": "error", "error": {"type": kind, "message": said}, "request_id": "r"}, status, **headers)
        text = json.dumps({"score": 5, "reasoning": "so"}) if asked.schema else "hello"
        content: list[dict[str, Any]] = [] if self.says == "nothing" else [{"type": "text", "text": text}]
        if self.says == "thoughts":
            content = [{"type": "thinking", "thinking": "let me see", "signature": "x"}, *content]
        stop = {"refused": "refusal", "cut": "max_tokens"}.get(self.says, "end_turn")
        usage = {"input_tokens": 12, "output_tokens": 3}
        whole = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m-1", "content": content}
        return reply({**whole, "stop_reason": stop, "stop_sequence": None, "usage": usage})


class DashScope(Fake):
    """Qwen-Image at once, Wan as tasks that are ready at the second look."""

    provider = "dashscope"
    prefix = "/api/v1"

    def __init__(self, says: str = "ok") -> None:
        super().__init__(says)
        self.tasks: dict[str, list[Any]] = {}

    def routes(self, router: web.UrlDispatcher) -> None:
        router.add_post("/api/v1/services/aigc/multimodal-generation/generation", self.handle)
        router.add_post("/api/v1/services/aigc/{what}/image-synthesis", self.handle)
        router.add_post("/api/v1/services/aigc/image-generation/generation", self.handle)
        router.add_get("/api/v1/tasks/{task}", self.task)

    def trouble(self) -> web.Response | None:
        errors = {
            "blocked": (400, "DataInspectionFailed"), "rate": (429, "Throttling.RateQuota"), "quota": (400, "Arrearage"),
            "denied": (401, "InvalidApiKey"), "trouble": (500, "InternalError"), "error in 200": (200, "InternalError"),
        }  # fmt: skip
        if self.says == "no json":
            return web.Response(text="<html>")
        if self.says not in errors:
            return None
        status, code = errors[self.says]
        return reply({"code": code, "message": "no", "request_id": "r"}, status)

    async def handle(self, request: web.Request) -> web.Response:
        asked = await self.asked(request)
        given, parameters = asked.body["input"], asked.body["parameters"]
        content = (
            given["messages"][0]["content"]
            if "messages" in given
            else [*({"image": one} for one in given.get("images", ())), {"text": given["prompt"]}]
        )
        for part in content:
            if "image" in part:
                asked.picture(part["image"])
            else:
                asked.text(part["text"])
        asked.seed, asked.size = parameters.get("seed"), parameters.get("size", "")
        assert parameters.get("prompt_extend") in (False, None) or self.says == "sdk"
        if (trouble := self.trouble()) is not None:
            return trouble
        picture = {"nothing": None, "broken": self.link(b"no picture")}.get(self.says, self.link(asked.drawing))
        usage = {"image_count": 1, "width": 48, "height": 48}
        choices: list[Any] = []
        if "messages" in given:
            shown = [{"image": picture}] if picture else []
            choice = {"finish_reason": "stop", "message": {"role": "assistant", "content": shown}}
            choices = [choice]
            if asked.path.endswith("multimodal-generation/generation"):
                return reply({"output": {"choices": choices}, "usage": usage, "request_id": "r"})
        assert asked.headers["x-dashscope-async"] == "enable"
        task = f"task-{len(self.seen)}"
        done: dict[str, Any] = {"task_id": task, "task_status": "SUCCEEDED", "results": [{"url": picture}] if picture else []}
        done |= {"choices": choices, "results": []} if choices else {}
        if self.says == "refused":
            done = {"task_id": task, "task_status": "FAILED", "code": "DataInspectionFailed", "message": "not shown"}
        if self.says == "failed":
            done = {"task_id": task, "task_status": "FAILED", "code": "InternalError", "message": "it broke"}
        self.tasks[task] = [{"task_id": task, "task_status": "RUNNING"}, done]
        return reply({"output": {"task_id": task, "task_status": "PENDING"}, "request_id": "r"})

    async def task(self, request: web.Request) -> web.Response:
        states = self.tasks.get(request.match_info["task"])
        if states is None:
            return reply({"output": {"task_id": request.match_info["task"], "task_status": "UNKNOWN"}, "request_id": "r"})
        return reply({"output": states.pop(0) if len(states) > 1 else states[0], "usage": {"image_count": 1}, "request_id": "r"})


class Wan(DashScope):
    """The same, as tasks."""


class BFL(Fake):
    """A task is ready at the second look; the key must come with each."""

    provider = "bfl"

    def __init__(self, says: str = "ok") -> None:
        super().__init__(says)
        self.looks: dict[str, int] = {}
        self.polled: list[dict[str, str]] = []

    def routes(self, router: web.UrlDispatcher) -> None:
        router.add_post("/v1/{model}", self.handle)
        router.add_get("/v1/get_result", self.poll)

    async def handle(self, request: web.Request) -> web.Response:
        asked = await self.asked(request)
        for number in range(1, 5):
            if coded := asked.body.get(f"input_image_{number}" if number > 1 else "input_image"):
                asked.picture(coded)
        asked.text(asked.body["prompt"])
        asked.seed, asked.size = asked.body.get("seed"), asked.body.get("aspect_ratio", "")
        errors = {
            "rate": (429, "too many active tasks"),
            "quota": (402, "no credits left"),
            "denied": (403, "no such key"),
            "trouble": (500, "oh no"),
        }
        if self.says == "no json":
            return web.Response(text="<html>")
        if self.says in errors:
            return reply({"detail": errors[self.says][1]}, errors[self.says][0])
        task = str(len(self.seen))
        self.looks[task] = 0
        self.files[task] = b"no picture" if self.says == "broken" else asked.drawing
        return reply({"id": task, "polling_url": f"{self.url}/v1/get_result?id={task}"})

    async def poll(self, request: web.Request) -> web.Response:
        task = request.query["id"]
        self.polled.append({name.lower(): value for name, value in request.headers.items()})
        self.looks[task] = self.looks.get(task, 0) + 1
        if self.looks[task] < 2:
            return reply({"id": task, "status": "Pending", "result": None})
        state = {"refused": "Content Moderated", "blocked": "Request Moderated", "failed": "Error"}.get(self.says, "Ready")
        return reply({"id": task, "status": state, "result": {"sample": f"{self.url}/files/{task}"} if state == "Ready" else None})


class Infer(Fake):
    """The protocol of IMUG-Bench's authors: words or one picture."""

    provider = "infer"
    prefix = "/infer"

    @property
    def name(self) -> str:
        return f"infer/{self.url}/infer"

    def routes(self, router: web.UrlDispatcher) -> None:
        router.add_post("/infer", self.handle)

    async def handle(self, request: web.Request) -> web.Response:
        asked = await self.asked(request)
        for message in asked.body["history"]:
            for part in message["content"]:
                if part["type"] == "image":
                    asked.picture(part["image"])
                else:
                    asked.text(part["text"])
        asked.kind, asked.seed = asked.body["output_mode"].partition("_")[0], asked.body.get("seed")
        if self.says in ("trouble", "rate"):
            return reply({"detail": "no"}, 500 if self.says == "trouble" else 429)
        if self.says == "no json":
            return web.Response(text="<html>")
        said: dict[str, Any] = {"text": "hello"} if asked.kind == "text" else {"image": asked.coded}
        said = {"error in 200": {"error": "out of memory"}, "nothing": {}, "wordy": {"text": "imagine"}}.get(self.says, said)
        return reply({"response": said})


FAKES: dict[str, type[Fake]] = {
    kind.provider: kind
    for kind in (OpenAI, AnyChat, Images, Responses, Gemini, OpenRouter, Anthropic, VllmOmni, SGLang, DashScope, Ark, BFL, XAI, Infer)
}
