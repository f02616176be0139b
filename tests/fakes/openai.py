"""OpenAI's services, and those that speak like them."""

import asyncio
import base64
import hashlib
import json
from typing import Any

from aiohttp import web

from fakes.base import SIGNED, Asked, Batches, Fake, reply


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
        asked.seed, asked.size = (
            body.get("seed"),
            body.get("size") or (body.get("image_config") or {}).get("aspect_ratio", ""),
        )
        asked.schema = ((body.get("response_format") or {}).get("json_schema") or {}).get("schema")

    def message(self, asked: Asked) -> tuple[dict[str, Any], str]:
        image = {"type": "image_url", "index": 0, "image_url": {"url": f"data:image/png;base64,{asked.coded}"}}
        said: dict[str, Any] = {
            "role": "assistant",
            "refusal": None,
            "content": asked.words,
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
        self.batches.waiting += 1
        while not self.batches.open:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        self.batches.waiting -= 1
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
            errors = {
                "object": "list",
                "data": [{"code": "invalid_json_line", "message": "line 1 is no request", "line": 1}],
            }
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
                response = {
                    "status_code": 500,
                    "request_id": "r",
                    "body": {"error": {"message": "oh no", "type": "server_error"}},
                }
            if spoilt == "quota":
                response = {
                    "status_code": 429,
                    "request_id": "r",
                    "body": {"error": {"message": "no", "code": "insufficient_quota"}},
                }
            error = {"code": f"batch_{self.batches.ends}", "message": "too late"} if unanswered else None
            made.append(
                {
                    "id": f"r{number}",
                    "custom_id": line["custom_id"],
                    "response": None if error else response,
                    "error": error,
                }
            )
        return web.Response(
            body="\n".join(json.dumps(one) for one in made).encode(), content_type="application/octet-stream"
        )


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
            if message["role"] == "assistant" and any(
                image["image_url"]["url"] in self.own for image in message.get("images", ())
            ):
                assert message["reasoning_details"][0]["data"].startswith(SIGNED)


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
                    {
                        "error": {
                            "message": f"Previous response with id '{before}' not found.",
                            "code": "previous_response_not_found",
                        }
                    },
                    400,
                )
            asked.flow += self.kept[before]
            asked.pictures += [one for one in self.kept[before] if len(one) == 64]
        given = body["input"]
        for item in [{"role": "user", "content": given}] if isinstance(given, str) else given:
            for part in (
                [{"type": "input_text", "text": item["content"]}]
                if isinstance(item["content"], str)
                else item["content"]
            ):
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
        text = asked.words
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
            output = [
                {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "let me see"}]},
                *output,
            ]
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
            whole |= {
                "status": "failed",
                "output": [],
                "error": {"code": "image_content_policy_violation", "message": "not this"},
            }
        if self.says in ("cut", "filtered"):
            whole |= {
                "status": "incomplete",
                "incomplete_details": {"reason": {"cut": "max_output_tokens"}.get(self.says, "content_filter")},
            }
        if keeps:
            made = [
                hashlib.sha256(asked.drawing).hexdigest() if item["type"] == "image_generation_call" else "hello"
                for item in output
            ]
            self.kept[name] = [*asked.flow, *made]
        return reply(whole)
