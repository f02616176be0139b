"""What all fakes share: what they were sent, read as the service would read it, and the ways in which all of them
answer."""

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
    def words(self) -> str:
        """What it says: an object that fits the schema, if it was given one."""
        if not self.schema:
            return "hello"
        samples = {"string": "so", "boolean": True}
        fields: dict[str, Any] = self.schema.get("properties", {})
        return json.dumps({name: samples.get(field.get("type"), 5) for name, field in fields.items()})

    @property
    def coded(self) -> str:
        return base64.b64encode(self.drawing).decode()


def reply(body: Any, status: int = 200, **headers: str) -> web.Response:
    return web.json_response(body, status=status, headers=headers)


class Fake:
    """`says` is how it answers: ok, both, thoughts, wordy (words where a picture is due), nothing, refused, blocked,
    cut, broken (a picture that is none), rate, quota, denied, trouble, error in 200, no json. A service that cannot say
    a thing has no such answer."""

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
        asked = Asked(
            request.path, {name.lower(): value for name, value in request.headers.items()}, await request.json()
        )
        self.seen.append(asked)
        return asked

    def common(self) -> web.Response | None:
        """What all services of OpenAI's manner say of trouble."""
        errors: dict[str, tuple[int, dict[str, Any], dict[str, str]]] = {
            "blocked": (
                400,
                {"message": "rejected by the safety system", "code": "moderation_blocked", "type": "user_error"},
                {},
            ),
            "rate": (
                429,
                {"message": "slow down", "code": "rate_limit_exceeded", "type": "requests"},
                {"retry-after-ms": "10"},
            ),
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


class Batches:
    """What a place for batches has: files, batches by file, and how many looks a batch takes. `spoil` are lines that
    come to nothing, by their number; `ends` is how a batch ends."""

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
        self.waiting = 0  # requests to begin one that are held until then, also of clients that are gone

    def lines(self, file: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.files[file].splitlines()]


def listed(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content
