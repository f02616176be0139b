"""The server behind `weft rate`.

Whoever has a link is the annotator that it belongs to: every address begins with the annotator's token, and shows and
changes nothing of anybody else's. An answer is saved before the next question is shown. Against pages of other sites:
the Host must be this server, changes must come from a page of this server, and pages load nothing from elsewhere."""

import asyncio
import hmac
import ipaddress
import socket
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from aiohttp import web

from weft.calls.structured_output import UnusableReply
from weft.errors import UserError
from weft.judge_eval.annotation.form import MissingAnswer, parse_answer
from weft.judge_eval.annotation.joint import JointStudy
from weft.judge_eval.annotation.page import PagePosition, done_page, images_of, question_page
from weft.judge_eval.annotation.study import AnnotationItem, annotation_of
from weft.report.gallery import ImageFiles, Thumbnails
from weft.store.annotations import Annotation, Annotations
from weft.types import Image
from weft.untrusted import read_host
from weft.workspace import open_blobs

HEADERS = {
    "Content-Security-Policy": "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
MEDIA_TYPES = {"png": "image/png", "jpg": "image/jpeg", "webp": "image/webp", "gif": "image/gif"}
LOOPBACK = ("127.0.0.1", "localhost", "::1")
IMAGE_SIDE = 1600  # pixels of an image that can be enlarged
MAX_FORM_BYTES = 1_000_000
MAX_FORM_FIELDS = 10_000
MAX_NUMBER_DIGITS = 9
MAX_SECONDS = 3600.0  # for one question: an annotator who comes back the next day did not think all night
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class AnnotatorPage:
    """One annotator's questions in their order, and the images that their pages may show."""

    def __init__(self, name: str, token: str, items: list[AnnotationItem], thumbnails: Thumbnails) -> None:
        self.name = name
        self.token = token
        self.items = items
        self.images = ImageFiles(thumbnails)
        for image in images_of(items):
            self.images.href(image)

    @property
    def address(self) -> str:
        return f"/rate/{self.token}"

    def href(self, image: Image) -> str | None:
        path = self.images.href(image)
        return path and f"{self.address}/img/{path.rpartition('/')[2]}"

    def first_open(self, annotations: Mapping[str, Any]) -> int:
        """The index of the first question without an annotation; one past the last where all have one."""
        for index, item in enumerate(self.items):
            if item.id not in annotations:
                return index
        return len(self.items)

    def position(self, index: int, annotations: Mapping[str, Any]) -> PagePosition:
        done = sum(item.id in annotations for item in self.items)
        return PagePosition(self.address, index + 1, len(self.items), done)


class AnnotationServer:
    """Serves a study to its annotators and stores their answers."""

    def __init__(self, home: Path, study: JointStudy, tokens: Mapping[str, str], annotations: Annotations) -> None:
        items = study.items(open_blobs(home))
        thumbnails = Thumbnails(home, IMAGE_SIDE)
        self._study = study
        self._parts = {name: part for name, (part, _) in items.items()}
        self._store = annotations
        self._host = "127.0.0.1"
        self.annotators: list[AnnotatorPage] = []
        for name, order in study.orders.items():
            own_items = [items[item][1] for item in order]
            self.annotators.append(AnnotatorPage(name, tokens[name], own_items, thumbnails))

    def app(self) -> web.Application:
        app = web.Application(middlewares=[self._guard], client_max_size=MAX_FORM_BYTES)
        app.router.add_get("/rate/{token}", self._show_question)
        app.router.add_post("/rate/{token}", self._save_answer)
        app.router.add_get("/rate/{token}/img/{name}", self._send_image)
        return app

    async def start(self, port: int = 0, host: str = "127.0.0.1") -> tuple[web.AppRunner, int]:
        """Start serving; return the runner and the port. Raises UserError where the address cannot be used."""
        self._host = host
        runner = web.AppRunner(self.app(), access_log=None)
        await runner.setup()
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            await runner.cleanup()
            raise UserError(
                f"{host}:{port} cannot be used: {error.strerror or error}; is this study being served already? "
                "--port N chooses another port"
            ) from None
        return runner, runner.addresses[0][1]

    def links(self, port: int) -> dict[str, str]:
        """The link of each annotator."""
        host = self._host
        if host in ("0.0.0.0", "::"):
            host = socket.gethostname()
        if ":" in host:
            host = f"[{host}]"
        return {annotator.name: f"http://{host}:{port}{annotator.address}" for annotator in self.annotators}

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if not self._is_own_host(read_host(request.host)):
            return web.Response(status=403, text="this server does not answer to that name\n", headers=HEADERS)
        if request.method not in ("GET", "HEAD") and not _is_same_origin(request):
            return web.Response(status=403, text="this was sent from another page\n", headers=HEADERS)
        try:
            response = await handler(request)
        except web.HTTPException as error:
            error.headers.update(HEADERS)
            raise
        for name, value in HEADERS.items():
            if name == "Cache-Control":
                response.headers.setdefault(name, value)
            else:
                response.headers[name] = value
        return response

    def _is_own_host(self, host: str) -> bool:
        """Another site can point a name of its own to this machine; an IP address it cannot."""
        if self._host in LOOPBACK:
            return host in LOOPBACK
        full_name = socket.gethostname()
        return host in {self._host, full_name, full_name.partition(".")[0], "localhost"} or _is_ip_address(host)

    def _annotator(self, request: web.Request) -> AnnotatorPage:
        token = request.match_info["token"].encode("utf-8", "replace")
        # Every token is compared, so that the time that it takes says nothing about them.
        matching = [page for page in self.annotators if hmac.compare_digest(token, page.token.encode())]
        if not matching:
            raise web.HTTPNotFound(text="there is nothing here: open the whole link that you were given\n")
        return matching[0]

    async def _annotations(self, annotator: AnnotatorPage) -> dict[str, Annotation]:
        """What the annotator has answered so far, by item."""
        found: dict[str, Annotation] = {}
        for part in self._study.parts:
            stored = await asyncio.to_thread(self._store.find, part.study.run, part.study.id, annotator.name)
            found.update({annotation.item: annotation for annotation in stored})
        return found

    async def _show_question(self, request: web.Request) -> web.Response:
        annotator = self._annotator(request)
        annotations = await self._annotations(annotator)
        total = len(annotator.items)
        index = annotator.first_open(annotations)
        index = min(_index_in(request.query.get("at", ""), total), index)
        if index == total:
            return _html(done_page(annotator.position(index, annotations)))
        item = annotator.items[index]
        answer: Mapping[str, Any] = {}
        if item.id in annotations:
            answer = annotations[item.id].answer
        return _html(question_page(item, annotator.position(index, annotations), annotator.href, answer, {}))

    async def _save_answer(self, request: web.Request) -> web.StreamResponse:
        annotator = self._annotator(request)
        sent = await _read_form(request)
        annotations = await self._annotations(annotator)
        items = [item.id for item in annotator.items]
        name = sent.get("item", "")
        if name not in items or items.index(name) > annotator.first_open(annotations):
            raise web.HTTPSeeOther(annotator.address)  # an outdated page
        index = items.index(name)
        item = annotator.items[index]
        seconds = _seconds_since(sent.get("shown", ""))
        if name in annotations:
            seconds += annotations[name].seconds
        try:
            answer = parse_answer(item.form, sent)
            part = self._parts[name]
            annotation = annotation_of(part.source, part.study.id, item, annotator.name, answer, seconds=seconds)
        except (MissingAnswer, UnusableReply) as error:
            position = annotator.position(index, annotations)
            return _html(question_page(item, position, annotator.href, {}, sent, str(error)), status=422)
        await asyncio.to_thread(self._store.add, annotation)
        raise web.HTTPSeeOther(annotator.address)

    async def _send_image(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        data = await asyncio.to_thread(self._annotator(request).images.data, name)
        if data is None:
            raise web.HTTPNotFound
        headers = {"Cache-Control": "private, max-age=86400, immutable"}
        return web.Response(body=data, content_type=MEDIA_TYPES[name.rpartition(".")[2]], headers=headers)


def _index_in(number: str, total: int) -> int:
    """Return the index of the question that an address names by its number; `total` if it names none."""
    if number.isdecimal() and len(number) <= MAX_NUMBER_DIGITS and 0 < int(number) <= total:
        return int(number) - 1
    return total


async def _read_form(request: web.Request) -> dict[str, str]:
    """Return the fields of a form as browsers send those of our pages."""
    if request.content_type != "application/x-www-form-urlencoded":
        raise web.HTTPUnsupportedMediaType(text="this is not a form of this server\n")
    try:
        text = (await request.read()).decode()
        return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=MAX_FORM_FIELDS))
    except (web.RequestPayloadError, ValueError):
        raise web.HTTPBadRequest(text="this form cannot be read\n") from None


def _seconds_since(shown: str) -> float:
    """The time since a question was shown, limited to what an annotator can have thought about it."""
    try:
        return round(min(max(0.0, time.time() - float(shown)), MAX_SECONDS), 2)
    except ValueError:
        return 0.0


def _is_same_origin(request: web.Request) -> bool:
    """Browsers say where a form was sent from; other programs say nothing, and must have the token."""
    if request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
        return False
    origin = request.headers.get("Origin")
    return origin is None or origin == f"{request.scheme}://{request.host}"


def _is_ip_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _html(text: str, status: int = 200) -> web.Response:
    return web.Response(text=text, content_type="text/html", status=status)
