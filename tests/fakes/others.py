"""Everybody else."""

from typing import Any

from aiohttp import web

from fakes.base import Asked, Fake, listed, reply
from fakes.openai import Images


class VllmOmni(Fake):
    """It joins the user's texts, looks at one picture, and at nothing else. `content` is a list."""

    provider = "vllm-omni"

    def routes(self, router: web.UrlDispatcher) -> None:
        router.add_post("/v1/chat/completions", self.handle)

    async def handle(self, request: web.Request) -> web.Response:
        asked = await self.asked(request)
        parts = [part for m in asked.body["messages"] if m["role"] == "user" for part in listed(m["content"])]
        asked.text(" ".join(part["text"] for part in parts if part["type"] == "text"))
        for part in [part for part in parts if part["type"] == "image_url"][:1]:
            asked.picture(part["image_url"]["url"])
        asked.kind, asked.seed, asked.size = (
            asked.body["modalities"][0],
            asked.body.get("seed"),
            asked.body.get("size", ""),
        )
        errors = {"denied": 404, "trouble": 500}
        if self.says in errors:
            return reply(
                {"error": {"message": "no", "type": "BadRequestError", "param": None, "code": errors[self.says]}},
                errors[self.says],
            )
        if (trouble := self.common()) is not None:
            return trouble
        picture = {
            "type": "image_url",
            "image_url": {"url": f"data:image/png;base64,{asked.coded}"},
            "stage_durations": {},
        }
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
            for part in listed(message["content"]):
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
            return reply(
                {"type": "error", "error": {"type": kind, "message": said}, "request_id": "r"}, status, **headers
            )
        text = asked.words
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
        done: dict[str, Any] = {
            "task_id": task,
            "task_status": "SUCCEEDED",
            "results": [{"url": picture}] if picture else [],
        }
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
            return reply(
                {"output": {"task_id": request.match_info["task"], "task_status": "UNKNOWN"}, "request_id": "r"}
            )
        return reply(
            {"output": states.pop(0) if len(states) > 1 else states[0], "usage": {"image_count": 1}, "request_id": "r"}
        )


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
        state = {"refused": "Content Moderated", "blocked": "Request Moderated", "failed": "Error"}.get(
            self.says, "Ready"
        )
        return reply(
            {
                "id": task,
                "status": state,
                "result": {"sample": f"{self.url}/files/{task}"} if state == "Ready" else None,
            }
        )


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
        said = {"error in 200": {"error": "out of memory"}, "nothing": {}, "wordy": {"text": "imagine"}}.get(
            self.says, said
        )
        return reply({"response": said})
