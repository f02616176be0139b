"""`weft view`: who may read, what is read, and that it goes on with a run."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest

import weft
from browser import Watch, browser, wait_for_pictures
from waiting import HANGS, until_in_loop
from weft.report.view.server import Viewer
from weft.store.journal import Journal
from weft_tabletop.make import make


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("view")
    data = make("tabletop-imug", folder / "data", samples=20, seed=0)
    for options in ({}, {"error": 0.5}):
        weft.evaluate(
            "imug",
            data=data,
            model="tabletop/oracle",
            judge="tabletop/exact",
            home=folder / "home",
            model_options=options,
        )
    return folder / "home"


@pytest.fixture
def address(home: Path) -> Iterator[str]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    viewer = Viewer(home)
    viewer.cookie = "weft_view"
    runner, url = asyncio.run_coroutine_threadsafe(viewer.start(), loop).result(HANGS)
    yield url
    asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(HANGS)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(HANGS)
    loop.close()


def get(url: str, *, method: str = "GET", **options: Any) -> tuple[int, str]:
    async def go() -> tuple[int, str]:
        async with (
            aiohttp.ClientSession() as session,
            session.request(method, url, allow_redirects=False, **options) as response,
        ):
            return response.status, await response.text()

    return asyncio.run(go())


def test_without_the_token_there_is_nothing_and_the_host_must_be_this_machine(address: str):
    base, token = address.split("?token=")
    cookie = {"Cookie": f"weft_view={token}"}
    assert (
        get(base)[0] == 403
        and get(f"{base}?token=wrong")[0] == 403
        and get(base, headers={"Cookie": "weft_view=x"})[0] == 403
    )
    assert get(address)[0] == 302 and get(base, headers=cookie)[0] == 200
    assert get(base, headers={**cookie, "Host": "evil.example"})[0] == 403, (
        "another name for this address is another site's doing"
    )
    assert get(base, method="POST", headers=cookie)[0] == 405
    assert urlsplit(base).hostname == "127.0.0.1"
    for path in (
        "r/nothing/",
        "r/../../etc/passwd",
        "r/nothing/img/x.png",
        "r/%2e%2e/img/%2e%2e%2fjournal.sqlite",
        "r/nothing/d/0.html",
    ):
        assert get(base + path, headers=cookie)[0] == 404, path


def test_runs_numbers_dialogues_and_search_in_a_browser(address: str):
    base = address.partition("?")[0]
    with browser() as chromium:
        page = chromium.new_page()
        watch = Watch(page, base)
        page.goto(address)
        assert "token" not in page.url
        boxes = page.locator("input[type=checkbox]")
        assert boxes.count() == 2
        for at in range(2):
            boxes.nth(at).check()
        page.get_by_role("button", name="Open selected runs together").click()
        page.locator("h2", has_text="Compared").wait_for()
        wait_for_pictures(page)
        page.get_by_role("link", name="Dialogues", exact=True).click()
        page.locator(".row").first.click()
        frame = page.frame_locator("iframe")
        frame.locator(".turn").first.wait_for()
        assert frame.locator("img.shown").first.evaluate("one => one.decode().then(() => one.naturalWidth)") == 64
        page.goto(base)
        page.locator("input[type=search]").fill("any colour")
        page.locator("input[type=search]").press("Enter")
        page.locator("li a").first.click()
        page.locator(".turn").first.wait_for()
        assert "/d/" in page.url and "any colour" in page.locator("main").inner_text()
        assert watch.wrong == []


def test_a_run_that_was_run_again_is_shown_anew(tmp_path: Path):
    from weft.report.view.library import Library, find_excerpts

    data = make("tabletop-imug", tmp_path / "data", samples=6, seed=0)
    broken = True

    class Judge:
        name, version = "judge", "1"

        def __call__(self, messages: Any, want: Any) -> str:
            if broken:
                raise RuntimeError("not today")
            return '{"reasoning": "", "determined_answer": "A", "evaluation_results": []}'

    job: dict[str, Any] = {"data": data, "model": "tabletop/oracle", "judge": Judge(), "home": tmp_path / "home"}
    run = weft.evaluate("imug", **job)
    library = Library(tmp_path / "home")
    before = library.contents((run.id,))
    stamp = library.stamp((run.id,))
    broken = False
    weft.evaluate("imug", **job)
    assert library.stamp((run.id,)) != stamp and library.contents((run.id,)) is not before
    assert library.search("the table") and not library.search("determined_answer") and not library.search("answered")
    found, more = find_excerpts('[{"parts": [{"type": "text", "text": "A Star"}]}]', "a star")
    assert [(one.before, one.hit, one.after) for one in found] == [("", "A Star", "")] and more == 0
    assert find_excerpts('[{"parts": []}]', "parts") == ([], 0), "the journal's own names are nobody's words"


def test_pages_are_called_by_their_dialogue_not_by_their_place(home: Path):
    from weft.report.listing import key_by_name
    from weft.report.view.library import Library

    library = Library(home)
    ids = (library.runs()[0].record.id,)
    for sample in library.listing(ids)["samples"]:
        found = library.dialogue(ids, sample["k"])
        assert found is not None and found[0] == sample["id"] and sample["k"] == key_by_name(99, sample["id"])


def test_a_list_grows_while_its_run_goes_on(tmp_path: Path):
    data = make("tabletop-imug", tmp_path / "data", samples=12, seed=0)
    gate = threading.Event()

    class Slow:
        """The first calls come at once, the others when they may."""

        name = "slow"
        calls = 0

        def __call__(self, messages: Any, want: Any) -> str:
            Slow.calls += 1
            if Slow.calls > 6:
                gate.wait(HANGS)
            return "A"

    def work() -> None:
        weft.evaluate("imug", data=data, model=Slow(), judge="constant/max", home=tmp_path / "home", concurrency=1)

    running = threading.Thread(target=work, daemon=True)
    running.start()

    def kept() -> tuple[int, int]:
        journal = Journal(tmp_path / "home" / "journal.sqlite", readonly=True)
        try:
            return journal.count_done(journal.runs()[0].id)
        finally:
            journal.close()

    async def counts() -> tuple[int, int]:
        await until_in_loop(
            "six turns in the journal, judged, and a seventh call in flight",
            lambda: Slow.calls > 6 and kept() == (6, 6),
        )
        viewer = Viewer(tmp_path / "home")
        viewer.cookie = "weft_view"
        runner, url = await viewer.start()
        base, token = url.split("?token=")
        async with aiohttp.ClientSession(
            cookies={"weft_view": token}, cookie_jar=aiohttp.CookieJar(unsafe=True)
        ) as session:
            run = (await (await session.get(f"{base}runs.json")).json())[0]
            assert run["state"] == "running"
            first = await (await session.get(f"{base}r/{run['id']}/list.json")).json()
            assert (
                await (await session.get(f"{base}r/{run['id']}/list.json", params={"since": first["stamp"]})).json()
                == {}
            )
            gate.set()
            await asyncio.to_thread(running.join, HANGS)
            later = await (await session.get(f"{base}r/{run['id']}/list.json", params={"since": first["stamp"]})).json()
        await runner.cleanup()
        return len(first["samples"]), len(later["samples"])

    before, after = asyncio.run(counts())
    assert before < after == 12


def test_a_search_shows_the_words_found_and_takes_none_for_markup(tmp_path: Path):
    data = make("tabletop-imug", tmp_path / "data", samples=4, seed=0)

    class Evil:
        name, version = "evil", "1"

        def __call__(self, messages: Any, want: Any) -> str:
            return "A before <img src=x onerror=alert(1)> after & <IMG> and <img> and <img> again" + " and on" * 50

    weft.evaluate("imug", data=data, model=Evil(), judge="constant/max", home=tmp_path / "home")

    async def found(words: str) -> str:
        viewer = Viewer(tmp_path / "home")
        viewer.cookie = "weft_view"
        runner, url = await viewer.start()
        base, token = url.split("?token=")
        async with aiohttp.ClientSession(
            cookies={"weft_view": token}, cookie_jar=aiohttp.CookieJar(unsafe=True)
        ) as session:
            text = await (await session.get(f"{base}search", params={"q": words})).text()
        await runner.cleanup()
        return text

    text = asyncio.run(found("<img"))
    assert "A before <mark>&lt;img</mark> src=x onerror=alert(1)&gt; after &amp; &lt;IMG&gt;" in text
    assert "<mark>&lt;IMG</mark>&gt;" in text and "and 1 more here" in text and "again and on" in text and "…" in text
    assert "<img" not in text and "0 found" in asyncio.run(found("nobody said this"))
