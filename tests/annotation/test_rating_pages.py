"""`weft rate` as raters meet it: a real browser, a server that is killed, links that are nobody else's."""

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from browser import Watch, browser, wait_for_pictures
from waiting import HANGS
from weft.judge_eval.annotation.links import FILE
from weft.judge_eval.annotation.questions import StudySource
from weft.judge_eval.annotation.study import items_of, study_settings
from weft.store.annotations import Annotation, Annotations
from weft.store.blobs import Blobs

DESKTOP, PHONE = {"width": 1280, "height": 880}, {"width": 390, "height": 780}
Serving = Callable[..., Any]


def request(url: str, method: str = "GET", **options: Any) -> tuple[int, str]:
    async def go() -> tuple[int, str]:
        async with (
            aiohttp.ClientSession() as session,
            session.request(method, url, allow_redirects=False, **options) as response,
        ):
            return response.status, (await response.read()).decode("utf-8", "replace")

    return asyncio.run(go())


def fields_of(text: str) -> dict[str, str]:
    """What the page's form sends untouched."""
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', text))


def filled(text: str) -> dict[str, str]:
    """The first choice everywhere."""
    names = dict.fromkeys(re.findall(r'type="radio" name="(f\d+)"', text), "0")
    return {**fields_of(text), **names, **dict.fromkeys(re.findall(r'type="number" name="(f\d+)"', text), "0")}


# a whole study


class Server:
    """`weft rate` as a process of its own."""

    def __init__(self, home: Path, run: str) -> None:
        words = ["rate", run, "--annotators", "ann,bob", "--sample", "20", "--home", str(home)]
        self.process = subprocess.Popen([sys.executable, "-m", "weft", *words], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.links: dict[str, str] = {}
        for line in self.process.stdout:
            if found := re.match(r"  (\w+)  (http://\S+)", line):
                self.links[found[1]] = found[2]
            if "Ctrl-C" in line:
                break

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(HANGS)


def left(page: Any, item: str) -> None:
    """Until another question is there, or none. (The page's own policy forbids the usual way to wait for this.)"""
    page.locator(f"input[name=item][value='{item}']").wait_for(state="detached")
    page.locator("main").wait_for()


def back(page: Any, item: str) -> None:
    page.locator(f"input[name=item][value='{item}']").wait_for(state="attached")


def choose(page: Any, wish: int, said: dict[str, float]) -> None:
    """Answer a question by mouse or finger, and remember what was form_value."""
    item = page.locator("input[name=item]").input_value()
    options = page.locator(".field input[type=radio]")
    option = options.nth(wish % options.count())
    said[item] = float(option.get_attribute("data-value"))
    option.click()
    page.get_by_role("button", name="Save and continue").click()
    left(page, item)


def type_it(page: Any, wish: int, said: dict[str, float]) -> None:
    """The same by keys alone."""
    item = page.locator("input[name=item]").input_value()
    values = [one.get_attribute("data-value") for one in page.locator(".field input[type=radio]").all()]
    value = values[wish % len(values)]
    page.keyboard.press("x" if value == "10" else value)
    half = page.locator(".half").count() > 0 and value != "10" and wish % 2 == 1
    if half:
        page.keyboard.press(".")
    said[item] = float(value) + (0.5 if half else 0.0)
    page.keyboard.press("Enter")
    left(page, item)


def test_two_people_rate_a_run_over_a_kill_and_the_journal_has_what_they_chose(
    house: Path, sources: dict[str, StudySource]
):
    run = sources["weave"].run.id
    ann: dict[str, float] = {}
    bob: dict[str, float] = {}
    with browser() as chromium:
        server = Server(house, run)
        try:
            desktop = chromium.new_page(viewport=DESKTOP)
            phone = chromium.new_context(viewport=PHONE, has_touch=True, is_mobile=True).new_page()
            inside = server.links["ann"].partition("/rate/")[0]
            watches = [Watch(desktop, inside), Watch(phone, inside)]
            desktop.goto(server.links["ann"])
            phone.goto(server.links["bob"])
            for number in range(8):
                assert desktop.locator(".count").inner_text() == f"{number + 1} of 22"
                type_it(desktop, number, ann)
            for number in range(5):
                wait_for_pictures(phone)
                assert phone.evaluate("document.documentElement.scrollWidth") <= 390, "nothing to scroll sideways"
                assert phone.locator(".option").first.bounding_box()["height"] >= 44, "a finger can hit it"
                choose(phone, number + 3, bob)
            before = server.links
            server.kill()
            server = Server(house, run)
            assert server.links == before, "the same command, the same study, the same links"
            desktop.goto(server.links["ann"])
            phone.goto(server.links["bob"])
            assert (
                desktop.locator(".count").inner_text() == "9 of 22"
                and phone.locator(".count").inner_text() == "6 of 22"
            )
            for number in range(14):
                type_it(desktop, number + 2, ann)
            for number in range(17):
                choose(phone, number, bob)
            assert (
                "Thank you" in desktop.locator("main").inner_text()
                and "Thank you" in phone.locator("main").inner_text()
            )
            assert [watch.wrong for watch in watches] == [[], []]
        finally:
            server.kill()
    ratings = Annotations(house / "journal.sqlite")
    study = ratings.studies(run)[-1]
    kept = {name: ratings.find(run, study.id, name) for name in ("ann", "bob")}
    assert {one.item: float(one.answer["score"]) for one in kept["ann"]} == ann and len(ann) == 22
    assert {one.item: float(one.answer["score"]) for one in kept["bob"]} == bob and len(bob) == 22
    judged = {(one.sample, one.turn, one.metric) for one in sources["weave"].run.verdicts}
    for one in (*kept["ann"], *kept["bob"]):
        (verdict,) = one.verdicts
        assert verdict.by == "person" and verdict.value == pytest.approx(verdict.score / 10) and one.seconds > 0
        assert (verdict.sample, verdict.turn, verdict.metric) in judged
    assert sum(one.is_attention_check for one in kept["ann"]) == 2
    assert (house / FILE).stat().st_mode & 0o777 == 0o600
    tokens = [link.rpartition("/")[2] for link in server.links.values()]
    assert all(token.encode() not in file.read_bytes() for token in tokens for file in house.glob("journal.sqlite*"))
    ratings.close()


def test_keys_of_a_form_with_many_fields_and_undo(house: Path, sources: dict[str, StudySource], serving: Serving):
    desk = serving(house, sources["imug"])
    with browser() as chromium:
        page = chromium.new_page(viewport=DESKTOP)
        watch = Watch(page, desk.links["ann"].partition("/rate/")[0])
        page.goto(desk.links["ann"])
        while page.locator(".group").count() < 2:
            page.locator(".field input").first.click()
            page.keyboard.press("Enter")
            page.wait_for_timeout(150)
        here = page.locator(".count").inner_text()
        many = page.locator(".field").count()
        item = page.locator("input[name=item]").input_value()
        page.keyboard.press("3")
        page.keyboard.press("Enter")
        assert page.locator(".count").inner_text() == here, "what is not form_value yet is missing"
        for digit in range(1, many):  # the first that is missing has the focus now
            page.keyboard.press(str(digit % 6))
            page.keyboard.press("Tab" if digit % 2 else "ArrowDown")
        page.keyboard.press("w")
        page.keyboard.type("u5? why not")
        page.keyboard.press("Enter")
        left(page, item)
        page.keyboard.press("u")
        back(page, item)
        form_value = [one.get_attribute("data-value") for one in page.locator(".field input:checked").all()]
        assert form_value == ["3", *(str(digit % 6) for digit in range(1, many))], "what was form_value is there again"
        assert page.locator(".group").last.locator("textarea").input_value() == "u5? why not"
        page.locator(".field input").first.focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("0")
        page.keyboard.press("Enter")
        left(page, item)
        page.keyboard.press("?")
        assert page.locator("#keys").is_visible() and "Backspace" in page.locator("#keys").inner_text()
        page.keyboard.press("Escape")
        page.keyboard.press("Backspace")
        back(page, item)
        page.locator("a.picture").first.click()
        assert page.locator("#large").is_visible() and page.url.startswith(desk.links["ann"])
        page.keyboard.press("Escape")
        assert not page.locator("#large").is_visible() and watch.wrong == []
    (rating,) = [one for one in desk.ratings.find(desk.study.run, desk.study.id, "ann") if one.item == item]
    scores = [entry["score"] for entry in rating.answer["evaluation_results"]]
    assert (
        scores == [0, *(digit % 6 for digit in range(1, many))]
        and rating.answer["evaluation_results"][-1]["reason"] == "u5? why not"
    )
    assert rating.verdicts[0].value == pytest.approx(sum(scores) / (5 * many))


@pytest.mark.parametrize("benchmark", ["rover-ig", "rover-tg", "planviz", "weaverbench"])
def test_every_benchmarks_form_can_be_sent_without_a_script(
    benchmark: str, house: Path, sources: dict[str, StudySource], serving: Serving
):
    desk = serving(house, sources[benchmark], study_settings("ann", 8, share=0.25))
    link, due = desk.links["ann"], len(desk.study.settings["orders"]["ann"])
    for number in range(due):
        status, text = request(link)
        assert status == 200 and f"{number + 1} of {due}" in text
        assert request(link, "POST", data={**fields_of(text)})[0] == 422, "nothing was form_value, and nothing is saved"
        assert request(link, "POST", data=filled(text))[0] == 303
    assert "Thank you" in request(link)[1]
    found: list[Annotation] = desk.ratings.find(desk.study.run, desk.study.id)
    assert len(found) == due and sum(one.is_attention_check for one in found) == len(desk.study.settings["known"]) > 0


# who may do what


def test_a_link_is_its_raters_alone_and_a_wrong_one_is_nothing(
    house: Path, sources: dict[str, StudySource], serving: Serving
):
    desk = serving(house, sources["weave"], study_settings("ann,bob", 10, 7, each=1, share=0.0))
    ann, bob = desk.links["ann"], desk.links["bob"]
    base = ann.rpartition("/")[0]
    assert base.startswith("http://127.0.0.1:")
    for wrong in (
        f"{base}/token-of-cem",
        f"{base}/",
        f"{base}/x/img/y.png",
        ann[:-1],
        base.removesuffix("/rate") + "/",
        f"{ann}/../..",
    ):
        assert request(wrong)[0] == 404, wrong
    assert request(f"{base}/token-of-cem", "POST", data={"item": "x"})[0] == 404
    mine, others = desk.study.settings["orders"]["ann"], desk.study.settings["orders"]["bob"]
    assert not set(mine) & set(others)
    text = request(ann)[1]
    assert "bob" not in text and "token-of-bob" not in text
    assert request(ann, "POST", data={**filled(text), "item": others[0]})[0] == 303
    assert desk.ratings.find(desk.study.run, desk.study.id) == [], "another's question is not mine to answer"
    assert request(ann, "POST", data={**filled(text), "item": mine[3]})[0] == 303
    assert desk.ratings.find(desk.study.run, desk.study.id) == [], "nor is one that was not shown yet"
    items = items_of(desk.source, desk.study, Blobs(house / "blobs"))
    only = {image.digest for one in others for image in items[one].images} - {
        image.digest for one in mine for image in items[one].images
    }
    for digest in only:
        assert request(f"{ann}/img/{digest}.png")[0] == 404 and request(f"{bob}/img/{digest}.png")[0] == 200
    for method in ("PUT", "DELETE", "PATCH"):
        assert request(ann, method)[0] == 405


def test_what_another_site_sends_is_refused_and_the_host_must_be_this_machine(
    house: Path, sources: dict[str, StudySource], serving: Serving
):
    desk = serving(house, sources["weave"], study_settings("eve", 10, share=0.0))
    link = desk.links["eve"]
    sent = filled(request(link)[1])
    here = link.partition("/rate/")[0]
    for headers in (
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": here.replace("127.0.0.1", "localhost")},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site", "Origin": here},
        {"Host": "evil.example"},
        {"Host": "evil.example", "Origin": "http://evil.example"},
    ):
        assert request(link, "POST", data=sent, headers=headers)[0] == 403, headers
    assert request(link, headers={"Host": "evil.example"})[0] == 403
    assert desk.ratings.find(desk.study.run, desk.study.id) == []
    assert request(link, "POST", data=sent, headers={"Origin": here, "Sec-Fetch-Site": "same-origin"})[0] == 303
    assert len(desk.ratings.find(desk.study.run, desk.study.id)) == 1


def test_pages_allow_nothing_from_elsewhere_and_take_no_text_for_markup(tmp_path: Path, serving: Serving):
    import weft
    from weft.judge_eval.annotation.questions import open_study_source
    from weft_tabletop.make import make

    class Evil:
        name, version = "evil", "1"

        def __call__(self, messages: Any, want: Any) -> str:
            return "A <img src=x onerror=alert(1)> </script><script>alert(2)</script>"

    data = make("tabletop-weave", tmp_path / "data", samples=6, seed=0)
    run = weft.evaluate("weave", data=data, model=Evil(), judge="constant/max", home=tmp_path / "home")
    source = asyncio.run(open_study_source(run.id, tmp_path / "home"))
    desk = serving(tmp_path / "home", source, study_settings("ann", 30, share=0.0))
    text = request(desk.links["ann"])[1]
    assert "A &lt;img src=x onerror=alert(1)&gt;" in text and "<img src=x" not in text and text.count("<script") == 1
    assert "default-src &#x27;none&#x27;" in text and "http://" not in re.sub(
        r"<script>.*?</script>", "", text, flags=re.DOTALL
    )


def test_a_study_is_served_once_at_a_time(house: Path, sources: dict[str, StudySource]):
    run = sources["weave"].run.id
    server = Server(house, run)
    try:
        words = [
            sys.executable,
            "-m",
            "weft",
            "rate",
            run,
            "--annotators",
            "ann,bob",
            "--sample",
            "20",
            "--home",
            str(house),
        ]
        second = subprocess.run(words, capture_output=True, text=True, timeout=HANGS, env=dict(os.environ))
        assert second.returncode == 2 and "already going on" in second.stderr
    finally:
        server.kill()
