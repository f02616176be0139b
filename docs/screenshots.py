"""Takes the screenshots of the report that are in docs/screens: a real run of the tiny model, a real browser.

python docs/screenshots.py [--folder DIR] [--documents | --counts | --rating]"""

import argparse
import asyncio
import shutil
import tempfile
import threading
from pathlib import Path
from typing import Any

import weft
from weft import api
from weft.judge_eval.annotation.joint import single_study
from weft.judge_eval.annotation.questions import open_study_source
from weft.judge_eval.annotation.server import AnnotationServer
from weft.judge_eval.annotation.study import begin_study, study_settings
from weft.report.view.server import Viewer
from weft.store.annotations import Annotations
from weft.store.blobs import Blobs
from weft_tabletop.make import make

COUNTS = (1, 3, 8)
RIVALS: list[dict[str, Any]] = [
    {"model": "tabletop/tiny", "model_options": {"temperature": 2.0}},
    {"model": "tabletop/tiny"},
    {"model": "tabletop/tiny", "model_options": {"temperature": 2.0}, "strategy": "best-of:3"},
    {"model": "tabletop/tiny", "model_options": {"temperature": 3.0}},
    {"model": "tabletop/oracle", "model_options": {"error": 0.2}},
    {"model": "tabletop/oracle", "model_options": {"error": 0.4}},
    {"model": "cascade:reasoner=tabletop/oracle,painter=tabletop/tiny"},
    {"model": "copy"},
]
WOVEN = "weaver:planner=tabletop/oracle,visualizer=tabletop/tiny"
OUT = Path(__file__).parent / "screens"
FLAGS = ["--no-sandbox", "--disable-gpu", "--hide-scrollbars"]


def runs(folder: Path) -> list[weft.Run]:
    data = folder / "data"
    if not data.exists():
        make("tabletop-imug", data, samples=38, seed=0)

    def run(options: dict[str, float], strategy: str) -> weft.Run:
        job = {"data": data, "model": "tabletop/tiny", "judge": "tabletop/exact", "home": folder / "home"}
        return weft.evaluate("imug", model_options=options, strategy=strategy, **job)

    return [run({}, "none"), run({"temperature": 2.0}, "none"), run({"temperature": 2.0}, "best-of:3")]


def rover(folder: Path) -> list[weft.Run]:
    """Questions that an image helps with, answered from images that are more and more at random."""
    data = folder / "rover"
    if not data.exists():
        make("tabletop-rover", data, samples=24, seed=0)
    job = {
        "data": data,
        "model": "tabletop/tiny",
        "judge": "tabletop/exact",
        "home": folder / "home",
        "options": {"mode": "both"},
    }
    return [
        weft.evaluate("rover-tg", model_options={"temperature": heat} if heat else {}, **job)
        for heat in (0.0, 2.0, 3.0)
    ]


def planviz(folder: Path) -> list[weft.Run]:
    """Routes, layouts and panels, drawn carefully and carelessly."""
    data = folder / "planviz"
    if not data.exists():
        make("tabletop-planviz", data, samples=24, seed=0)
    job = {"data": data, "model": "tabletop/tiny", "judge": "tabletop/exact", "home": folder / "home"}
    return [weft.evaluate("planviz", model_options={"temperature": heat} if heat else {}, **job) for heat in (0.0, 2.0)]


def shoot(
    browser: Any, name: str, address: str, *, dark: bool = False, phone: bool = False, tall: int = 880, act: Any = None
) -> None:
    size = {"width": 390, "height": 780} if phone else {"width": 1280, "height": tall}
    page = browser.new_page(
        viewport=size, color_scheme="dark" if dark else "light", device_scale_factor=1.5 if phone else 1
    )
    page.goto(address)
    if act:
        act(page)
    page.wait_for_timeout(900)
    page.screenshot(path=OUT / f"{name}.png")
    page.close()


def open_first(page: Any) -> None:
    page.locator(".row").first.click()
    page.frame_locator("iframe").locator(".turn").first.wait_for()


def open_worst(page: Any) -> None:
    page.locator("[data-filter='run']").select_option("1")
    page.locator(".row").first.click()
    page.frame_locator("iframe").locator(".turn").first.wait_for()


def serve(home: Path) -> str:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    return asyncio.run_coroutine_threadsafe(Viewer(home).start(), loop).result(10)[1]


def reports(browser: Any, folder: Path) -> None:
    made = runs(folder)
    place = api.write_report(made, folder / "report", home=folder / "home").parent.absolute().as_uri()
    crossing = api.write_report(rover(folder), folder / "crossing", home=folder / "home").parent.absolute().as_uri()
    planning = api.write_report(planviz(folder), folder / "planning", home=folder / "home").parent.absolute().as_uri()
    address = serve(folder / "home")
    shoot(browser, "numbers", f"{place}/index.html", tall=800)
    shoot(browser, "plots", f"{place}/index.html#plots")
    shoot(browser, "compared", f"{place}/index.html#compared-1")
    shoot(browser, "dialogues", f"{place}/dialogues.html", act=open_worst)
    shoot(browser, "dialogues-dark", f"{place}/dialogues.html", dark=True, act=open_worst)
    shoot(browser, "phone-numbers", f"{place}/index.html", phone=True)
    shoot(browser, "phone-list", f"{place}/dialogues.html", phone=True)
    shoot(browser, "phone-dialogue", f"{place}/d/4.html", phone=True)
    shoot(browser, "rover", f"{crossing}/d/2.html")
    shoot(browser, "planviz", f"{planning}/d/1.html")
    shoot(browser, "view", address)


def counts(browser: Any, folder: Path) -> None:
    """Numbers, plots, the list, and what `weft view` lists, with one, three and eight runs, by day and in the dark."""
    data = folder / "counted"
    if not data.exists():
        make("tabletop-weave", data, samples=32, seed=0)
    for count in COUNTS:
        home = folder / f"home-{count}"
        made = [
            weft.evaluate("weave", data=data, judge="tabletop/exact", home=home, **rival) for rival in RIVALS[:count]
        ]
        place = api.write_report(made, folder / f"counted-{count}", home=home).parent.absolute().as_uri()
        address = serve(home)
        for dark in (False, True):
            night = "-dark" if dark else ""
            shoot(browser, f"numbers-{count}{night}", f"{place}/index.html", dark=dark, tall=800)
            shoot(browser, f"plots-{count}{night}", f"{place}/index.html#plots", dark=dark)
            shoot(
                browser,
                f"list-{count}{night}",
                f"{place}/dialogues.html",
                dark=dark,
                act=lambda page: page.locator(".row").first.click(),
            )
            shoot(browser, f"view-{count}{night}", address, dark=dark, tall=420)


def documents(browser: Any, folder: Path) -> None:
    """A document that two models made, and a battle between one that was drawn carefully and one that was not."""
    data, home = folder / "weaver", folder / "home"
    if not data.exists():
        make("tabletop-weaver", data, samples=12, seed=0)
    table = "Show in exactly 3 steps how to make a mint table with a red star at b2, a blue ring at c3, a green square at d4."
    weft.write(table, model=WOVEN, out=folder / "table.html", home=home)
    job = {"data": data, "judge": "tabletop/exact", "home": home}
    careful = weft.evaluate("weaverbench", model=WOVEN, **job)
    careless = weft.evaluate("weaverbench", model="tabletop/tiny", model_options={"temperature": 3.0}, **job)
    fought = weft.battle([careful, careless], judge="tabletop/exact", home=home)
    place = api.write_report([fought], folder / "battles", home=home).parent.absolute().as_uri()
    shoot(browser, "write", (folder / "table.html").absolute().as_uri())
    shoot(browser, "battle", f"{place}/d/0.html")


def at_points(page: Any) -> None:
    """The tenth question or a later one that is about an image's points, with some of them scored."""
    answered = 0
    while answered < 9 or page.locator(".group").count() < 2 or page.locator("a.picture").count() < 2:
        answered += 1
        for field in page.locator(".field").all():
            field.locator("input").first.click()
        page.keyboard.press("Enter")
        page.wait_for_timeout(200)
    for field, score in zip(page.locator(".field").all()[:2], (4, 5), strict=True):
        field.locator("input").nth(score).click()
    page.locator("a.picture").nth(1).scroll_into_view_if_needed()


def at_form(page: Any) -> None:
    at_points(page)
    page.locator(".group").first.evaluate("one => one.scrollIntoView({block: 'center'})")


def rating(browser: Any, folder: Path) -> None:
    """A question as annotators get it."""
    run = runs(folder)[1]
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()

    def here(work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result(60)

    source, people = here(open_study_source(run.id, folder / "home")), Annotations(folder / "home" / "journal.sqlite")
    study, _ = begin_study(source, study_settings("ann,bob,cem", 40), people, Blobs(folder / "home" / "blobs"))
    desk = AnnotationServer(
        folder / "home", single_study(source, study), {name: f"of-{name}" for name in study.settings["orders"]}, people
    )
    links = desk.links(here(desk.start())[1])
    shoot(browser, "rate", links["ann"], act=at_points)
    shoot(browser, "rate-dark", links["bob"], dark=True, act=at_points)
    shoot(browser, "rate-phone", links["cem"], phone=True, act=at_form)


def main() -> None:
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--documents", action="store_true", help="those of documents and battles alone")
    parser.add_argument("--counts", action="store_true", help="those of one, three and eight runs alone")
    parser.add_argument("--rating", action="store_true", help="those of `weft rate` alone")
    chosen = parser.parse_args()
    folder = chosen.folder or Path(tempfile.mkdtemp(prefix="weft-screens-"))
    OUT.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        alone = chosen.documents or chosen.counts or chosen.rating
        if not alone:
            reports(browser, folder)
        if chosen.documents or not alone:
            documents(browser, folder)
        if chosen.counts or not alone:
            counts(browser, folder)
        if chosen.rating or not alone:
            rating(browser, folder)
        browser.close()
    for file in sorted(OUT.glob("*.png")):
        print(f"{file} {file.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main()
