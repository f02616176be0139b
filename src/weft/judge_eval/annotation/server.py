"""The server behind `weft rate`. A rater is whoever has the link: every address begins with its token, and shows and
changes nothing of any other rater's. What is sent is saved before the next question is shown. The Host must be this
server, and what changes something must come from a page of this server, so that no page elsewhere can have a browser do
it; pages allow nothing from anywhere else."""

import asyncio
import hmac
import ipaddress
import socket
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from aiohttp import web

from weft.calls.structured_output import UnusableReply
from weft.errors import UserError
from weft.judge_eval.annotation.form import MissingAnswer, answer_of
from weft.judge_eval.annotation.page import PagePosition, done_page, pictures_of, question_page
from weft.judge_eval.annotation.questions import StudySource
from weft.judge_eval.annotation.study import AnnotationItem, annotation_of, items_of
from weft.report.gallery import ImageFiles, Thumbnails
from weft.store.annotations import Annotation, Annotations, Study
from weft.types import Image
from weft.workspace import open_blobs

HEADERS = {
    "Content-Security-Policy": "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
TYPES = {"png": "image/png", "jpg": "image/jpeg", "webp": "image/webp", "gif": "image/gif"}
LOOPBACK = ("127.0.0.1", "localhost", "::1")
SIDE = 1600  # of a picture that can be enlarged
LARGEST = 1_000_000  # bytes of a filled-in form
LONGEST = 3600.0  # seconds that a question can have taken: who goes home in between does not think
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class AnnotatorPage:
    """One person's questions in their order."""

    def __init__(self, name: str, token: str, items: list[AnnotationItem], shown: Thumbnails) -> None:
        self.name = name
        self.token = token
        self.items = items
        self.pictures = ImageFiles(shown)
        for image in pictures_of(items):
            self.pictures.href(image)

    @property
    def address(self) -> str:
        return f"/rate/{self.token}"

    def href(self, image: Image) -> str | None:
        place = self.pictures.href(image)
        return place and f"{self.address}/img/{place.rpartition('/')[2]}"


class AnnotationServer:
    def __init__(
        self, home: Path, source: StudySource, study: Study, tokens: Mapping[str, str], ratings: Annotations
    ) -> None:
        items = items_of(source, study, open_blobs(home))
        shown = Thumbnails(home, SIDE)
        self._source = source
        self._study = study
        self._ratings = ratings
        self.raters = [
            AnnotatorPage(name, tokens[name], [items[one] for one in order], shown)
            for name, order in study.settings["orders"].items()
        ]
        self._host = "127.0.0.1"

    def app(self) -> web.Application:
        app = web.Application(middlewares=[self._guard], client_max_size=LARGEST)
        app.router.add_get("/rate/{token}", self._question)
        app.router.add_post("/rate/{token}", self._save)
        app.router.add_get("/rate/{token}/img/{name}", self._picture)
        return app

    async def start(self, port: int = 0, host: str = "127.0.0.1") -> tuple[web.AppRunner, int]:
        """Serve; gives the port."""
        self._host = host
        runner = web.AppRunner(self.app(), access_log=None)
        await runner.setup()
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            await runner.cleanup()
            raise UserError(
                f"{host}:{port} cannot be used: {error.strerror or error}; is this study served already? --port N for another"
            ) from None
        return runner, runner.addresses[0][1]

    def links(self, port: int) -> dict[str, str]:
        if self._host in ("0.0.0.0", "::"):
            shown = socket.gethostname()
        else:
            shown = self._host
        if ":" in shown:
            shown = f"[{shown}]"
        return {rater.name: f"http://{shown}:{port}{rater.address}" for rater in self.raters}

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if not self._is_here(request.url.host or ""):
            return web.Response(status=403, text="this server does not answer to that name\n", headers=HEADERS)
        if request.method not in ("GET", "HEAD") and not _is_same_origin(request):
            return web.Response(status=403, text="this was sent from another page\n", headers=HEADERS)
        try:
            response = await handler(request)
        except web.HTTPException as error:
            error.headers.update(HEADERS)
            raise
        response.headers.update(
            {**HEADERS, **({"Cache-Control": kept} if (kept := response.headers.get("Cache-Control")) else {})}
        )
        return response

    def _is_here(self, host: str) -> bool:
        """A name that another site could have pointed to this machine is none of ours; a number cannot be."""
        if self._host in LOOPBACK:
            return host in LOOPBACK
        names = {self._host, socket.gethostname(), socket.gethostname().partition(".")[0], "localhost"}
        return host in names or _is_number(host)

    def _rater(self, request: web.Request) -> AnnotatorPage:
        given = request.match_info["token"].encode("utf-8", "replace")
        found = [rater for rater in self.raters if hmac.compare_digest(given, rater.token.encode())]
        if not found:
            raise web.HTTPNotFound(text="there is nothing here: open the whole link that you were given\n")
        return found[0]

    async def _said(self, rater: AnnotatorPage) -> dict[str, Annotation]:
        found = await asyncio.to_thread(self._ratings.find, self._study.run, self._study.id, rater.name)
        return {one.item: one for one in found}

    async def _question(self, request: web.Request) -> web.Response:
        rater = self._rater(request)
        said = await self._said(rater)
        first = _first(rater, said)
        asked = request.query.get("at", "")
        if asked.isdecimal() and 0 < int(asked) <= len(rater.items):
            at = min(int(asked) - 1, first)
        else:
            at = first
        if at == len(rater.items):
            return _html(done_page(PagePosition(rater.address, at + 1, at, at)))
        item = rater.items[at]
        before = said.get(item.id)
        place = PagePosition(rater.address, at + 1, len(rater.items), _count(rater, said))
        return _html(question_page(item, place, rater.href, before.answer if before else {}, {}))

    async def _save(self, request: web.Request) -> web.StreamResponse:
        rater = self._rater(request)
        sent = await request.post()
        given = {name: value for name, value in sent.items() if isinstance(value, str)}
        said = await self._said(rater)
        at = next((number for number, item in enumerate(rater.items) if item.id == given.get("item")), None)
        if at is None or at > _first(rater, said):
            raise web.HTTPSeeOther(rater.address)  # a page of long ago
        item = rater.items[at]
        before = said.get(item.id)
        try:
            answer = answer_of(item.form, given)
            seconds = _seconds(given.get("shown", "")) + (before.seconds if before else 0.0)
            rating = annotation_of(self._source, self._study.id, item, rater.name, answer, seconds=seconds)
        except (MissingAnswer, UnusableReply) as error:
            place = PagePosition(rater.address, at + 1, len(rater.items), _count(rater, said))
            return _html(question_page(item, place, rater.href, {}, given, str(error)), status=422)
        await asyncio.to_thread(self._ratings.add, rating)
        raise web.HTTPSeeOther(rater.address)

    async def _picture(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        data = await asyncio.to_thread(self._rater(request).pictures.data, name)
        if data is None:
            raise web.HTTPNotFound
        kept = {"Cache-Control": "private, max-age=86400, immutable"}
        return web.Response(body=data, content_type=TYPES[name.rpartition(".")[2]], headers=kept)


def _first(rater: AnnotatorPage, said: Mapping[str, Any]) -> int:
    """The first question that is not answered; one after the last where all are."""
    return next((at for at, item in enumerate(rater.items) if item.id not in said), len(rater.items))


def _count(rater: AnnotatorPage, said: Mapping[str, Any]) -> int:
    return sum(item.id in said for item in rater.items)


def _seconds(shown: str) -> float:
    try:
        return round(min(max(0.0, time.time() - float(shown)), LONGEST), 2)
    except ValueError:
        return 0.0


def _is_same_origin(request: web.Request) -> bool:
    """Browsers say where a form was sent from; what is no browser says nothing, and has to have the token."""
    if request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
        return False
    origin = request.headers.get("Origin")
    return origin is None or origin == f"{request.scheme}://{request.host}"


def _is_number(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _html(text: str, status: int = 200) -> web.Response:
    return web.Response(text=text, content_type="text/html", status=status)
