"""The server behind `weft data view`: a dataset's records, read while they are looked at."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from aiohttp import web

from weft.datasets.browsed_images import BrowsedImages
from weft.datasets.record_index import RecordIndex
from weft.report.gallery import ImageFiles, Thumbnails
from weft.report.view.data_pages import build_list_page, build_problems_page, build_record_page, parse_address
from weft.report.view.loopback import Handler, LoopbackServer, html_response, image_response

LIST_SIDE = 256  # pixels of the longer side of an image in the list
FIRST_WAIT_S = 1.0  # a page waits so long for the last record, so that small datasets are whole at once


class DataViewer(LoopbackServer):
    """Serves one dataset."""

    home_name = "Records"

    def __init__(self, index: RecordIndex, images: BrowsedImages, folder: Path, source: str) -> None:
        """`folder`: for small copies of images. `source`: the dataset's folder, as the user named it."""
        super().__init__()
        self._index = index
        self._source = source
        self._images = ImageFiles(Thumbnails(folder, blobs=images))
        self._small_images = ImageFiles(Thumbnails(folder, LIST_SIDE, images), "small")

    def routes(self) -> Mapping[str, Handler]:
        return {
            "/": self._list,
            "/problems": self._problems,
            "/d/{number:[0-9]{1,9}}": self._record,
            "/img/{name}": self._image,
            "/small/{name}": self._small_image,
        }

    async def _list(self, request: web.Request) -> web.Response:
        address = parse_address(request.query)

        def build() -> str:
            self._index.wait(FIRST_WAIT_S)
            return build_list_page(self._index, address, self._small_images, self._source)

        return html_response(await asyncio.to_thread(build))

    async def _record(self, request: web.Request) -> web.Response:
        number = int(request.match_info["number"])
        if number >= len(self._index.entries):
            raise web.HTTPNotFound
        address = parse_address(request.query)
        page = await asyncio.to_thread(build_record_page, self._index, number, address, self._images)
        return html_response(page)

    async def _problems(self, request: web.Request) -> web.Response:
        return html_response(await asyncio.to_thread(build_problems_page, self._index, self._source))

    async def _image(self, request: web.Request) -> web.Response:
        return await asyncio.to_thread(image_response, self._images, request.match_info["name"])

    async def _small_image(self, request: web.Request) -> web.Response:
        return await asyncio.to_thread(image_response, self._small_images, request.match_info["name"])
