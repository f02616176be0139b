"""HTTP as no browser speaks it, to every route of weft's own servers: an answer, never an error of ours, and no way to
another host."""

import asyncio
import contextlib
import random
import re
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from aiohttp import web

import weft
from fuzz import Broken
from fuzz.spoil import spoil_bytes
from waiting import HANGS
from weft.benchmarks.data_format import load_format
from weft.datasets.browsed_images import BrowsedImages
from weft.datasets.record_index import RecordIndex
from weft.judge_eval.annotation.joint import single_study
from weft.judge_eval.annotation.questions import open_study_source
from weft.judge_eval.annotation.server import AnnotationServer
from weft.judge_eval.annotation.study import begin_study, study_settings
from weft.models.providers.served_card import ModelCard
from weft.report.view.data_server import DataViewer
from weft.report.view.loopback import LoopbackServer
from weft.report.view.server import Viewer
from weft.serving.app import ServingApp
from weft.serving.replica import ReplicaResponse
from weft.store.annotations import Annotations
from weft.store.blobs import Blobs
from weft.types import Gives, Takes
from weft_tabletop.make import make

TOKEN = "token-of-this-start"
TOGETHER = 25
PATIENCE = 0.5  # seconds for a server that waits for the rest of a request
HOSTS = [
    *("127.0.0.1", "localhost", "127.0.0.1:80", "127.0.0.1:99999", "127.0.0.1:", "[::1]", "[::1", "evil.com"),
    *("evil.com:80@127.0.0.1", "127.0.0.1 evil.com", "", "\xff", "a" * 5000, "127.0.0.1:-1", "127.0.0.1:²"),
]
VALUES = [
    *(
        "1",
        "9" * 5000,
        "-1",
        "²",
        "٣",
        "",
        "\0",
        "nan",
        "1e999",
        "../../etc/passwd",
        "//evil.com/",
        "\\\\evil.com",
        "=1+1",
    ),
    *("<script>", "\r\nX: y", "%", "%zz", "\ud800".encode("utf-8", "surrogatepass").decode("latin-1"), "a" * 3000),
]
TYPES = [
    *("application/x-www-form-urlencoded", "application/x-www-form-urlencoded; charset=klingon", "application/json"),
    *(
        "multipart/form-data; boundary=b",
        "multipart/form-data",
        "text/plain; charset=\xff",
        "",
        "application/json; charset=x",
    ),
]
BODIES = [
    *(b"", b"a=b&c", b"%ff=%ff", b"\xff\xfe", b"item=x&shown=" + b"9" * 5000, b"{}", b'{"messages": [{}]}', b"[" * 100_000),
    *(b"--b\r\n\r\nx", b"--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--", b"--b\r\n\xff: x\r\n\r\n", b"&" * 100_000),
]  # fmt: skip


class Silent:
    """A pool that answers every request with an error of the model."""

    card = ModelCard("m", {}, Takes(), Gives(), 4)

    async def answer(self, body: bytes) -> ReplicaResponse:
        return ReplicaResponse(422, b"{}")

    async def health(self) -> tuple[int, int]:
        return 1, 1

    async def close(self) -> None:
        return


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[dict[str, tuple[web.AppRunner, int]]]:
    """All servers of weft by name, each with its port."""
    home = folder / "home"
    data = make("tabletop-weave", folder / "data", samples=2, seed=0)
    run = await weft.evaluate_async("weave", data=data, model="copy", judge="constant/5", home=home)
    annotations = Annotations(home / "journal.sqlite")
    source = await open_study_source(run.id, home)
    study, _ = begin_study(source, study_settings("ann", 4, share=0.0), annotations, Blobs(home / "blobs"))
    rating = AnnotationServer(home, single_study(source, study), {"ann": TOKEN}, annotations)
    viewer = Viewer(home, TOKEN)
    viewer.cookie = "seen"
    images = BrowsedImages(folder / "browsed" / "blobs")
    index = RecordIndex(load_format("weave"), data, images)
    index.start()
    dataset = DataViewer(index, images, folder / "browsed", "data")
    dataset.cookie = "seen"
    dataset.token = TOKEN
    runners = {
        "view": (await viewer.start())[0],
        "data view": (await dataset.start())[0],
        "rate": (await rating.start())[0],
        "serve": (await ServingApp(Silent(), "m").start())[0],
    }
    try:
        yield {name: (runner, runner.addresses[0][1]) for name, runner in runners.items()}
    finally:
        for runner in runners.values():
            await runner.cleanup()
        index.stop()
        annotations.close()


def routes_of(runner: web.AppRunner) -> list[str]:
    """The addresses of a server's routes, as its router has them."""
    app = runner.app
    return [resource.canonical for resource in app.router.resources()]


def request(chance: random.Random, routes: list[str]) -> bytes:
    values = [*VALUES, TOKEN, TOKEN, TOKEN]
    path = re.sub(
        r"\{[^}]+\}", lambda _: quote(chance.choice(values), safe=chance.choice(["", "/\\%"])), chance.choice(routes)
    )
    if chance.random() < 0.2:
        path = (
            chance.choice(["//evil.com", "/\\evil.com", "/%5Cevil.com", "/%2Fevil.com", "//evil.com:99999", "*", ""])
            + path
        )
    if chance.random() < 0.6:
        name = chance.choice(
            [
                "token",
                "at",
                "q",
                "run",
                "since",
                "benchmark",
                "model",
                "state",
                "x",
                "page",
                "sort",
                "find",
                "least",
                "group",
                "domain",
            ]
        )
        path += f"?{name}={quote(chance.choice(values), safe='')}"
    method = chance.choice(["GET", "GET", "POST", "POST", "HEAD", "PUT", "OPTIONS", "X"])
    body = chance.choice(BODIES) if method in ("POST", "PUT") else b""
    headers = {"Host": chance.choice(HOSTS) if chance.random() < 0.4 else "127.0.0.1", "Connection": "close"}
    headers["Cookie"] = chance.choice([f"seen={TOKEN}"] * 5 + ["seen=", "=;=", "\xff=\xff", "a" * 5000])
    if body or chance.random() < 0.2:
        headers["Content-Type"] = chance.choice(TYPES)
        headers["Content-Length"] = chance.choice([str(len(body))] * 8 + ["-1", "x", "9" * 30])
    if chance.random() < 0.1:
        headers[chance.choice(["Content-Encoding", "Transfer-Encoding", "Origin", "Sec-Fetch-Site"])] = chance.choice(
            ["gzip", "deflate", "br", "chunked", "http://evil.com", "null", "cross-site"]
        )
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    whole = "\r\n".join(lines).encode("utf-8", "replace") + b"\r\n\r\n" + body
    return spoil_bytes(whole, chance) if chance.random() < 0.1 else whole


async def answer_to(port: int, sent: bytes, patience: float = HANGS) -> bytes:
    """What a server says until it closes the connection. One that waits for the rest of a request is not waited for
    beyond `patience`."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    said = b""
    try:
        writer.write(sent)
        while piece := await asyncio.wait_for(reader.read(1 << 16), patience):
            said += piece
    except (OSError, TimeoutError):
        pass
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
    return said


def check(name: str, sent: bytes, said: bytes) -> str:
    """The status of an answer. Raises Broken for an error of ours, or a way to another host."""
    if not said:
        return "nothing"
    status = said.split(b" ", 2)[1].decode("latin-1")
    if status.startswith("5"):
        raise Broken(f"{name} answered {said[:100]!r} to {sent[:400]!r}")
    location = re.search(rb"\r\nLocation: ([^\r\n]*)", said.partition(b"\r\n\r\n")[0], re.IGNORECASE)
    if location is not None:
        target = location[1].decode("latin-1").replace("\\", "/")
        if urlsplit(target).netloc or not target.startswith("/"):
            raise Broken(f"{name} leads to {target!r} after {sent[:400]!r}")
    return status


def _check_servers() -> None:
    """Raise Broken if a server of pages is not attacked."""
    missing = {kind.__name__ for kind in LoopbackServer.__subclasses__()} - {Viewer.__name__, DataViewer.__name__}
    if missing:
        raise Broken(f"these servers are not attacked: {', '.join(sorted(missing))}")


def attack(chance: random.Random, count: int, folder: Path) -> Counter[str]:
    _check_servers()

    async def go() -> Counter[str]:
        done: Counter[str] = Counter()
        async with served(folder) as servers:
            for name, (runner, port) in servers.items():
                routes = routes_of(runner)
                for start in range(0, count, TOGETHER):
                    some = [request(chance, routes) for _ in range(start, min(count, start + TOGETHER))]
                    said = await asyncio.gather(*(answer_to(port, sent, PATIENCE) for sent in some))
                    done.update(f"{name}: {check(name, *both)}" for both in zip(some, said, strict=True))
        return done

    return asyncio.run(go())


def answers(folder: Path, requests: dict[str, list[bytes]]) -> dict[str, list[Any]]:
    """What the servers say to requests of one's own, by the server's name."""

    async def go() -> dict[str, list[Any]]:
        async with served(folder) as servers:
            return {name: [await answer_to(servers[name][1], sent) for sent in some] for name, some in requests.items()}

    return asyncio.run(go())
