"""The report in a real browser: the way to the worst dialogue, two runs side by side, hostile texts, one file, a
phone."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import weft
from browser import Watch, browser, wait_for_pictures
from server import Provider, Seen, drawn, model_answer
from toy import toy_records, write_weave
from weft import api
from weft.errors import UserError
from weft.report import html
from weft.results.run import name_runs
from weft_tabletop.make import make

Serve = Callable[..., Provider]
EVIL = (
    '</script><script>alert(1)</script><img src=x onerror="alert(2)">\'"`&lt; \u202e\u2067 ${alert(3)} <!-- --> '
    "</template><style>*{display:none}</style>"
)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as made:
        yield made


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[weft.Run, weft.Run, Path]:
    folder = tmp_path_factory.mktemp("tables")
    data = make("tabletop-weave", folder / "data", samples=48, seed=0)
    runs = [
        weft.evaluate(
            "weave",
            data=data,
            model="tabletop/oracle",
            judge="tabletop/exact",
            home=folder / "home",
            model_options=options,
        )
        for options in ({}, {"error": 0.4})
    ]
    return runs[0], runs[1], folder


def test_from_the_numbers_to_the_worst_recall_dialogue_in_three_clicks(
    chromium: Any, tables: tuple[weft.Run, weft.Run, Path]
):
    _, bad, folder = tables
    page_file = api.write_report([bad], folder / "one", home=folder / "home")
    page = chromium.new_page()
    watch = Watch(page, folder.as_uri())
    page.goto(page_file.as_uri())
    assert page.locator("table").count() > 4 and page.locator("figure img").count() >= 4
    wait_for_pictures(page)
    page.get_by_role("link", name="Dialogues", exact=True).click()
    page.locator("[data-filter='group:domain']").select_option("recall")
    assert page.locator("#count").inner_text() == "3 of 48 dialogues"
    scores = [float(text) for text in page.locator(".row .score").all_inner_texts()]
    assert scores == sorted(scores), "worst first"
    page.locator(".row").first.click()
    frame = page.frame_locator("iframe")
    frame.locator(".turn").first.wait_for()
    assert frame.locator(".turn img.shown").count() >= 2 and frame.locator(".chip").count() >= 3
    reasons = frame.locator(".verdict .words").all_inner_texts()
    assert all(reasons) and any(
        re.search(r", not |expected |changed without need: [a-d]", reason) for reason in reasons
    ), reasons
    shown = frame.locator("img.shown").first
    shown.scroll_into_view_if_needed()
    assert shown.evaluate("one => one.decode().then(() => one.naturalWidth)") == 64
    before = frame.locator("h1").inner_text()
    page.locator("#rows").press("j")
    frame.locator(f"h1:not(:text-is('{before}'))").wait_for()
    assert "open=" in page.url, "the choice is in the address"
    assert watch.wrong == []


def test_a_number_opens_the_dialogues_behind_it(chromium: Any, tables: tuple[weft.Run, weft.Run, Path]):
    good, bad, folder = tables
    page_file = api.write_report([good, bad], folder / "cells", home=folder / "home")
    page = chromium.new_page()
    watch = Watch(page, folder.as_uri())
    page.goto(page_file.as_uri())
    table = page.locator("#table-2")  # a class: its columns are metrics
    table.locator("tr", has_text="oracle-0.4").first.locator("a.behind").nth(1).click()  # after the average
    page.locator("#behind").wait_for()
    named = page.locator("#behind bdi").inner_text()
    assert "Science" in named and "oracle-0.4" in named and "/ KP: " in named, named
    assert page.locator("[data-filter='run']").input_value() == "1"
    assert page.locator("[data-filter='metric']").input_value() == "key_point"
    count = page.locator("#count")
    science = {sample for sample, groups in bad.groups.items() if groups["class"] == "Science"}
    assert count.inner_text() == f"{len(science)} of 48 dialogues"
    page.reload()
    assert count.inner_text() == f"{len(science)} of 48 dialogues", "the address keeps the number"
    page.get_by_role("button", name="show all").click()
    assert count.inner_text() == "48 of 48 dialogues" and not page.locator("#behind").is_visible()
    assert watch.wrong == []


def test_a_link_from_a_tables_row_leads_to_its_dialogues(chromium: Any, tables: tuple[weft.Run, weft.Run, Path]):
    _, bad, folder = tables
    page_file = api.write_report([bad], folder / "linked", home=folder / "home")
    page = chromium.new_page()
    page.goto(page_file.as_uri())
    page.locator("summary", has_text="by domain").first.click()
    page.get_by_role("link", name="maze").first.click()
    page.locator(".row").first.wait_for()
    assert (
        page.locator("#count").inner_text() == "3 of 48 dialogues"
        and page.locator("[data-filter='group:domain']").input_value() == "maze"
    )


def test_two_runs_stand_side_by_side_and_are_compared(chromium: Any, tables: tuple[weft.Run, weft.Run, Path]):
    good, bad, folder = tables
    page_file = api.write_report([good, bad], folder / "two", home=folder / "home")
    page = chromium.new_page()
    watch = Watch(page, folder.as_uri())
    page.goto(page_file.as_uri())
    compared = page.locator("h2", has_text="Compared")
    assert compared.count() == 1 and "headline score" in page.locator("main").inner_text()
    page.get_by_role("link", name="Dialogues", exact=True).click()
    page.locator("[data-filter='sort']").select_option("gap")
    page.locator("[data-filter='run']").select_option("1")
    page.locator(".row").first.click()
    frame = page.frame_locator("iframe")
    frame.locator(".turn").first.wait_for()
    heads = frame.locator(".turn").first.locator(".column > h3").all_inner_texts()
    assert heads[:2] == list(name_runs([good, bad])) and "reference" in heads
    assert watch.wrong == []


def test_filters_by_turn_score_outcome_and_words(chromium: Any, toy: Path, tmp_path: Path, serve: Serve):
    def lazy(seen: Seen) -> dict[str, Any]:
        if not seen.is_judge and "hat" in " ".join(seen.texts):
            return {"role": "assistant", "content": "I will not"}
        return (
            model_answer(seen)
            if not seen.is_judge
            else {"role": "assistant", "content": '{"reasoning": "so so", "score": 5}'}
        )

    provider = serve(answer=lazy)
    run = run_on(toy, tmp_path / "home", provider)
    page = chromium.new_page()
    page.goto((api.write_report([run], tmp_path / "report", home=tmp_path / "home").parent / "dialogues.html").as_uri())

    def count() -> str:
        page.wait_for_timeout(200)
        return page.locator("#count").inner_text().partition(" of")[0]

    everything = count()
    page.locator("[data-filter='outcome']").select_option("empty")
    assert count() == "1"
    page.locator("[data-filter='outcome']").select_option("")
    page.locator("[data-filter='search']").fill("chess board")
    assert count() == "1"
    page.locator("[data-filter='search']").fill("")
    page.locator("[data-filter='most']").fill("0.4")
    assert 0 < int(count()) < int(everything)


def run_on(data: Path, home: Path, provider: Provider) -> weft.Run:
    return weft.evaluate(
        "weave",
        data=data,
        home=home,
        model=f"openai-chat/model@{provider.url}",
        judge=f"openai-chat/judge@{provider.url}",
    )


def test_texts_full_of_markup_change_nothing(chromium: Any, tmp_path: Path, serve: Serve):
    records = toy_records()
    for record in records:
        for chat in record["chats"]:
            if chat["type"] == "text":
                chat["content"] = f"{chat['content']} {EVIL}"

    def answer(seen: Seen) -> dict[str, Any]:
        if seen.is_judge:
            return {"role": "assistant", "content": json.dumps({"reasoning": EVIL, "score": 5})}
        return model_answer(seen) if "modalities" in seen.body else {"role": "assistant", "content": EVIL}

    run = run_on(write_weave(tmp_path / "evil", records), tmp_path / "home", serve(answer=answer))
    for single in (False, True):
        out = tmp_path / ("one.html" if single else "folder")
        page_file = api.write_report([run], out, home=tmp_path / "home", single_file=single)
        page = chromium.new_page()
        watch = Watch(page, tmp_path.as_uri())
        page.goto(page_file.as_uri())
        assert page.locator("body").is_visible() and page.locator("h1").first.is_visible()
        if not single:
            page.goto((page_file.parent / "dialogues.html").as_uri())
        page.locator("[data-filter='search']").fill("<script>")
        page.wait_for_timeout(200)
        page.locator(".row").first.click()
        place: Any = page.locator("#pane") if single else page.frame_locator("iframe")
        place.locator(".turn").first.wait_for()
        assert EVIL.partition("\u202e")[0].strip() in place.locator(".verdict .words").first.inner_text(), (
            "it is shown as the text it is"
        )
        for summary in place.locator("summary").all()[:6]:
            summary.click()
        assert page.locator("img[src='x']").count() == 0 and place.locator("img[src='x']").count() == 0
        assert watch.wrong == []


def test_one_file_holds_everything_and_a_large_run_is_refused(
    chromium: Any, tables: tuple[weft.Run, weft.Run, Path], monkeypatch: Any
):
    _, bad, folder = tables
    page_file = api.write_report([bad], folder / "mail.html", home=folder / "home", single_file=True)
    moved = folder / "elsewhere" / "mail.html"
    moved.parent.mkdir()
    page_file.rename(moved)
    page = chromium.new_page()
    watch = Watch(page, moved.parent.as_uri())
    page.goto(moved.as_uri())
    page.locator(".row").first.click()
    page.locator("#pane .turn img").first.wait_for()
    assert (
        page.locator("#pane .turn img").first.evaluate("one => one.decode().then(() => one.naturalWidth)") == 64
        and watch.wrong == []
    )
    text = moved.read_text()
    assert text.count("data:image/png;base64") == len(set(re.findall(r"data:image/png;base64,[^\"\\]+", text))), (
        "each picture once"
    )
    monkeypatch.setattr("weft.report.site.MAX_SINGLE_FILE_BYTES", 1000)
    with pytest.raises(UserError, match="too much for one page"):
        api.write_report([bad], folder / "no.html", home=folder / "home", single_file=True)


def test_on_a_phone_nothing_is_wider_than_the_screen(chromium: Any, tables: tuple[weft.Run, weft.Run, Path]):
    good, bad, folder = tables
    page_file = api.write_report([good, bad], folder / "phone", home=folder / "home")
    page = chromium.new_page(viewport={"width": 380, "height": 780})
    for place in ("index.html", "dialogues.html", "d/0.html"):
        page.goto((page_file.parent / place).as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= 380, place
    page.goto((page_file.parent / "dialogues.html").as_uri())
    page.locator(".row").first.click()
    page.locator(".turn").first.wait_for()
    assert "/d/" in page.url, "there is no room beside the list: the dialogue is a page"
    page.go_back()
    page.locator(".row").first.wait_for()
    page.wait_for_timeout(300)
    assert "/dialogues.html" in page.url, "Back leads back"


def test_the_marked_row_is_the_dialogue_that_is_shown_whatever_the_order(
    chromium: Any, tables: tuple[weft.Run, weft.Run, Path]
):
    good, bad, folder = tables
    page_file = api.write_report([good, bad], folder / "marked", home=folder / "home")
    page = chromium.new_page()
    page.goto((page_file.parent / "dialogues.html").as_uri())
    page.locator("[data-filter='run']").select_option("1")
    page.locator(".row").nth(2).click()
    shown = page.frame_locator("iframe").locator("h1").inner_text()
    for order in ("gap", "best", "order"):
        page.locator("[data-filter='sort']").select_option(order)
        page.wait_for_timeout(100)
        marked = page.locator(".row[aria-selected='true'] .id").first
        assert marked.count() == 0 or marked.inner_text() == shown, "a row in view that is marked is the one shown"
    page.locator("[data-filter='sort']").select_option("worst")
    assert page.locator(".row[aria-selected='true'] .id").first.inner_text() == shown
    page.reload()
    page.frame_locator("iframe").locator("h1", has_text=shown).wait_for()


def test_a_report_points_nowhere_outside_itself(tables: tuple[weft.Run, weft.Run, Path]):
    good, bad, folder = tables
    page_file = api.write_report([good, bad], folder / "inside", home=folder / "home")
    for file in page_file.parent.rglob("*.html"):
        text = file.read_text(encoding="utf-8")
        for target in re.findall(r'(?:href|src)="([^"]*)"', text):
            if target == "data:,":
                continue
            assert not re.match(r"[a-z]+:|//", target), f"{file}: {target}"
            path = (file.parent / target.partition("#")[0]).resolve() if target.partition("#")[0] else file
            assert path.is_relative_to(page_file.parent) and path.exists(), f"{file}: {target}"
        assert "Content-Security-Policy" in text and "unsafe" not in text


def test_a_picture_that_left_the_store_is_told_not_broken(tables: tuple[weft.Run, weft.Run, Path], tmp_path: Path):
    import shutil

    _, bad, folder = tables
    shutil.copytree(folder / "home", tmp_path / "home")
    shutil.rmtree(tmp_path / "home" / "blobs")
    page_file = api.write_report([bad], tmp_path / "report", home=tmp_path / "home")
    assert "is not in the store" in (page_file.parent / "d" / "0.html").read_text()


def test_a_picture_whose_file_is_damaged_is_told(tables: tuple[weft.Run, weft.Run, Path], tmp_path: Path):
    import shutil

    from weft.report.gallery import damaged_placeholder

    _, bad, folder = tables
    shutil.copytree(folder / "home", tmp_path / "home")
    victim = next(turn.reply.images[0] for turn in bad.turns if turn.reply.images)
    path = tmp_path / "home" / "blobs" / victim.digest[:2] / victim.digest
    path.write_bytes(bytes(path.stat().st_size))
    page_file = api.write_report([bad], tmp_path / "report", home=tmp_path / "home")
    assert (page_file.parent / "img" / f"{victim.digest}.png").read_bytes() == damaged_placeholder()


def test_a_folder_of_the_users_is_not_overwritten(tables: tuple[weft.Run, weft.Run, Path], tmp_path: Path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    (tmp_path / "mine" / "index.html").write_text("my own site")
    with pytest.raises(UserError, match=r"not part of a report \(index.html\)"):
        api.write_report([tables[0]], tmp_path / "mine", home=tables[2] / "home")
    assert (tmp_path / "mine" / "thesis.tex").exists()
    twice = [api.write_report([tables[0]], tmp_path / "twice", home=tables[2] / "home") for _ in range(2)]
    assert twice[0] == twice[1] and not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
    (tmp_path / "twice" / "notes.txt").write_text("what I saw")
    with pytest.raises(UserError, match="notes.txt"):
        api.write_report([tables[0]], tmp_path / "twice", home=tables[2] / "home")
    with pytest.raises(UserError, match="is a file"):
        api.write_report([tables[0]], tmp_path / "twice" / "notes.txt", home=tables[2] / "home")


def test_large_pictures_are_made_smaller_once(tmp_path: Path):
    from weft.report.gallery import Thumbnails
    from weft.store.blobs import Blobs

    image = Blobs(tmp_path / "blobs").put(drawn("big", 1500))
    shown = Thumbnails(tmp_path)
    data = shown.data(image)
    assert data is not None and data[8:12] == b"WEBP" and (tmp_path / "shown" / shown.name(image)).read_bytes() == data
    small = Blobs(tmp_path / "blobs").put(drawn("small", 64))
    assert shown.data(small) == Blobs(tmp_path / "blobs").read(small)


def test_text_is_text_and_only_our_tags_are_tags():
    made = html.tag("p", "<b>", html.tag("i", "a & b"), ["<x>", None, 3], title='"><script>', hidden=True, id=None)
    assert made == '<p title="&quot;&gt;&lt;script&gt;" hidden>&lt;b&gt;<i>a &amp; b</i>&lt;x&gt;3</p>'
    assert "</script>" not in html.data_island("d", '{"x": "</script>"}').removesuffix("</script>")
