"""`weft data view`: a dataset's records on pages, with filters and a search, whatever its texts and files are."""

import asyncio
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from msgspec.structs import replace
from PIL import Image as Pil
from typer.testing import CliRunner

from browser import Watch, browser, wait_for_pictures
from waiting import HANGS
from weft.benchmarks.data_format import load_format
from weft.cli.app import app
from weft.datasets.browsed_images import BrowsedImages
from weft.datasets.record_index import RecordIndex, Selection
from weft.report.view.data_server import DataViewer
from weft_tabletop.make import make

EVIL = "<script>alert(1)</script> \u202edoor"


def record(number: int, domain: str, texts: list[str], images: list[str]) -> dict[str, Any]:
    """A record whose every turn edits the first image into the next, and names it."""
    chats: list[dict[str, Any]] = []
    for place, text in enumerate(texts, start=2):
        points = {"Text": "A point."}
        chats.append({"role": "user", "type": "text", "content": text})
        chats.append({"role": "assistant", "type": "image", "content": f"Image #{place}", "key_point": points})
    return {"idx": number, "domain": domain, "images": images, "chats": chats}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    for name in "abcd":
        Pil.new("RGB", (300, 200), f"#{name * 6}").save(folder / f"{name}.png")
    whole = (folder / "a.png").read_bytes()
    (folder / "half.png").write_bytes(whole[: len(whole) // 2])
    (folder / "drawing.png").write_text("<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>")
    records = [
        record(1, "edit", ["Paint Image #1 green.", "Open the Door of Image #2."], ["a.png", "b.png", "c.png"]),
        record(2, "optics", [f"Mirror Image #1. {EVIL}"], ["b.png", "d.png"]),
        record(3, "edit", ["Use Image #1."], ["half.png", "d.png"]),
        record(4, "optics", ["Use Image #1."], ["drawing.png", "d.png"]),
    ]
    (folder / "test.json").write_text(json.dumps(records))
    return folder


def open_index(benchmark: str, data: Path, scratch: Path) -> tuple[RecordIndex, BrowsedImages]:
    images = BrowsedImages(scratch / "blobs")
    index = RecordIndex(load_format(benchmark), data, images)
    index.start()
    index.check_open(HANGS)
    assert index.wait(HANGS)
    return index, images


@pytest.fixture
def index(data: Path, tmp_path: Path) -> RecordIndex:
    return open_index("weave", data, tmp_path)[0]


@pytest.fixture
def address(data: Path, tmp_path: Path) -> Iterator[str]:
    index, images = open_index("weave", data, tmp_path)
    with served(DataViewer(index, images, tmp_path, "data")) as url:
        yield url


class served:
    """A server in a thread of its own."""

    def __init__(self, viewer: DataViewer) -> None:
        self._viewer = viewer
        self._loop = asyncio.new_event_loop()

    def __enter__(self) -> str:
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._runner, url = asyncio.run_coroutine_threadsafe(self._viewer.start(), self._loop).result(HANGS)
        return url

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result(HANGS)
        self._loop.call_soon_threadsafe(self._loop.stop)


def fetch(address: str, *paths: str) -> list[tuple[int, str, bytes]]:
    """Open the address, then read each path: status, media type, bytes."""

    async def go() -> list[tuple[int, str, bytes]]:
        answers: list[tuple[int, str, bytes]] = []
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
            await (await session.get(address)).read()
            for path in paths:
                async with session.get(address.partition("?")[0] + path) as response:
                    answers.append((response.status, response.content_type, await response.read()))
        return answers

    return asyncio.run(go())


def ids(index: RecordIndex, **selection: Any) -> list[str]:
    return [index.entries[number].id for number in index.select(Selection(**selection))]


def test_filters_search_and_orders_choose_records(index: RecordIndex):
    assert ids(index) == ["1", "2", "3"]
    assert ids(index, groups={"domain": "edit"}) == ["1", "3"]
    assert ids(index, find="DOOR") == ["1", "2"], "in any text, whatever its case"
    assert ids(index, find="a point") == ["1", "2", "3"], "expected outputs are searched too"
    assert ids(index, find="door", groups={"domain": "optics"}) == ["2"]
    assert ids(index, turns=2) == ids(index, images=3) == ["1"]
    assert ids(index, kind="text") == []
    assert ids(index, order="longest questions") == ["2", "1", "3"] and ids(index, find="door.*") == []
    assert index.choices()["domain"] == [("edit", 2), ("optics", 1)]


def test_nothing_is_shown_without_the_token(address: str):
    assert all(status == 403 for status, _, _ in fetch(address.partition("?")[0], "", "d/0", "problems"))


def test_texts_are_text_and_images_are_images(address: str):
    (_, _, listed), (_, _, shown), (_, _, problems) = fetch(address, "", "d/1", "problems")
    for page in (listed, shown):
        assert b"<script>alert" not in page and b"&lt;script&gt;alert" in page
    assert b"drawing.png" in problems and b"1 of 4 records cannot be used" in listed
    small = re.findall(rb'src="\.\./(small/[^"]+)"', listed)
    assert len(small) == 7
    for status, kind, content in fetch(address, *(name.decode() for name in small)):
        assert status == 200 and kind in ("image/png", "image/webp") and b"svg" not in content[:200]
    outside = ["small/journal.sqlite", "img/../../etc/passwd", "img/" + "0" * 64 + ".png", "d/99", "d/-1", "d/x"]
    assert {status for status, _, _ in fetch(address, *outside)} == {404}


def test_a_record_has_its_images_its_references_and_its_neighbours(address: str):
    ((_, _, page), (_, _, chosen)) = fetch(address, "d/0", "d/0?group.domain=edit")
    text = page.decode()
    first, second = re.findall(r'<section class="turn".*?</section>', text, re.DOTALL)
    assert re.findall(r"<figcaption>(.*?)<", first) == ["Image #1", "Image #2"]
    assert re.findall(r"<figcaption>(.*?)<", second) == ["Image #2", "Image #3"]
    assert "A point." in first and 'href="/d/1"' in text
    assert 'href="/d/2?group.domain=edit"' in chosen.decode(), "the next one of those that are chosen"


def test_in_a_browser(address: str):
    with browser() as chromium:
        page = chromium.new_page(viewport={"width": 390, "height": 800})
        watch = Watch(page, address.partition("?")[0])
        page.goto(address)
        page.locator("input[type=search]").fill("door")
        page.locator("input[type=search]").press("Enter")
        page.locator("mark").first.wait_for()
        assert page.locator("ul.records li").count() == 2
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        page.locator("ul.records a").first.click()
        page.locator(".turn").first.wait_for()
        wait_for_pictures(page)
        page.keyboard.press("j")
        page.wait_for_url("**/d/1?find=door")
        assert watch.wrong == []


def test_what_is_read_so_far_is_shown(data: Path, tmp_path: Path):
    opened = threading.Event()
    whole = load_format("weave")

    def load(folder: Path, images: Any) -> Any:
        opened.wait(HANGS)
        return whole.load(folder, images)

    images = BrowsedImages(tmp_path / "blobs")
    index = RecordIndex(replace(whole, load=load), data, images)
    index.start()
    with served(DataViewer(index, images, tmp_path, "data")) as address:
        ((_, _, before),) = fetch(address, "")
        opened.set()
        assert index.wait(HANGS)
        ((_, _, after),) = fetch(address, "")
    assert b"being opened" in before and b"1 to 3 of 3 records" in after
    index.stop()


def test_every_benchmark_can_be_looked_at(tmp_path: Path):
    for benchmark, name in (
        ("imug", "tabletop-imug"),
        ("rover-tg", "tabletop-rover"),
        ("weaverbench", "tabletop-weaver"),
    ):
        data = make(name, tmp_path / name, samples=4, seed=0)
        index, images = open_index(benchmark, data, tmp_path / f"{name}-scratch")
        with served(DataViewer(index, images, tmp_path, name)) as address:
            pages = fetch(address, "", *(f"d/{number}" for number in range(len(index.entries))))
        assert index.entries and {status for status, _, _ in pages} == {200}


def test_what_cannot_be_opened_is_named(tmp_path: Path):
    answer = CliRunner().invoke(app, ["data", "view", "weave", str(tmp_path)])
    assert "no test.json" in str(answer.exception) and "Traceback" not in answer.output
