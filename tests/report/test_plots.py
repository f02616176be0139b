"""Plots: all runs of eight, one legend, whole names, and dark where the page is dark."""

import copy
import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

import weft
from browser import Watch, browser, wait_for_pictures
from weft import api
from weft.report import plots, series
from weft.report.charts import build_plots
from weft_tabletop.make import make

LONG = "weaver:planner=openai-chat/Qwen/Qwen3-VL-32B-Instruct,visualizer=openai-images/Qwen/Qwen-Image-Edit-25{:02}"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[weft.Run, weft.Run, Path]:
    folder = tmp_path_factory.mktemp("plots")
    data = make("tabletop-weave", folder / "data", samples=16, seed=0)
    job: dict[str, Any] = {"data": data, "judge": "tabletop/exact", "home": folder / "home"}
    plain = weft.evaluate("weave", model="tabletop/oracle", model_options={"error": 0.4}, **job)
    return plain, weft.evaluate("weave", model="tabletop/oracle", strategy="best-of:2", **job), folder


def many(made: tuple[weft.Run, weft.Run, Path], count: int) -> dict[str, weft.Run]:
    return {LONG.format(at): copy.copy(made[at % 2]) for at in range(count)}


def told(drawn: str) -> str:
    """All texts of a drawing, without what breaks them into lines."""
    return "".join(unescape(text) for text in re.findall(r">([^<>]+)<", drawn)).replace(" ", "")


def test_a_plot_of_eight_runs_has_them_all_in_one_legend_with_their_whole_names(made: tuple[weft.Run, weft.Run, Path]):
    found = build_plots(many(made, 8))
    assert {plot.name.partition("-")[0] for plot in found} == {"by", "dialogues", "against"}
    for plot in found:
        drawn = plots.render_svg(plot.chart)
        assert drawn.count("role-legend ") + drawn.count('role-legend"') == 1, plot.name
        named = (
            [LONG.format(at) for at in range(8)]
            if plot.name != "against-calls"
            else ["tabletop/oracle: best of N =", "the model alone"]
        )
        symbols = len(re.findall(r'class="mark-symbol role-legend-symbol', drawn))
        if "-map" not in plot.name:  # a heat map has its runs beside its cells
            assert symbols == (8 if plot.name != "against-calls" else 2), plot.name
        for name in named:
            assert name.replace(" ", "") in told(drawn), f"{plot.name}: {name} is cut"
        assert "…" not in drawn and "of 8 runs" not in plot.title


def test_titles_and_axes_are_in_words(made: tuple[weft.Run, weft.Run, Path]):
    for runs in ({"one": made[0]}, {"one": made[0], "two": made[1]}):
        for plot in build_plots(runs):
            assert "_" not in plot.title and "_" not in told(plots.render_svg(plot.chart)), plot.name
    assert "Score by turn: key point" in [plot.title for plot in build_plots({"one": made[0], "two": made[1]})]


def test_more_runs_than_can_be_told_apart_are_told(made: tuple[weft.Run, weft.Run, Path]):
    found = build_plots(many(made, 9))
    colored = [plot for plot in found if plot.name != "against-calls" and "-map" not in plot.name]
    assert colored and all("the first 8 of 9" in plot.title for plot in colored)
    assert all(LONG.format(8) not in plot.description for plot in colored)


def test_a_heat_map_has_more_runs_than_there_are_colors(made: tuple[weft.Run, weft.Run, Path]):
    maps = [plot for plot in build_plots(many(made, 9)) if "-map" in plot.name]
    assert maps and all("of 9" not in plot.title and LONG.format(8) in plot.description for plot in maps)
    assert all("the first 24 of 25 runs" in plot.title for plot in build_plots(many(made, 25)) if "-map" in plot.name)


def test_eight_series_differ_in_colour_mark_and_dash(made: tuple[weft.Run, weft.Run, Path]):
    for some in (series.PALETTE, plots.DARK, series.SHAPES, [tuple(dash) for dash in series.DASHES]):
        assert len(set(some)) == 8


def test_a_run_has_one_color_in_all_plots_also_where_another_has_no_bars():
    names = ["one", "two", "three"]
    rows = [{"group": "a", "series": name, "score": 0.5, "low": 0.4, "high": 0.6} for name in ("one", "three")]
    columns = plots.grouped_bar_chart(rows, x="group", y="score", series="series", title="", order=names)
    lying = [{**row, "text": "0.5"} for row in rows]
    bars = plots.horizontal_bar_chart(lying, name="group", x="score", series="series", title="", order=names)
    colors = json.dumps({"domain": ["one", "three"], "range": [series.PALETTE[0], series.PALETTE[2]]})
    for chart in (columns, bars):
        assert colors in json.dumps(chart.to_dict())


def test_texts_keep_the_width_that_the_chart_has_room_for(made: tuple[weft.Run, weft.Run, Path]):
    heat = next(plot for plot in build_plots(many(made, 2)) if plot.name == "by-class-map")
    drawn = plots.render_svg(heat.chart)
    whole = re.findall(r"<text[^>]*textLength[^>]*>Science<", drawn)
    lines = re.findall(r"<tspan[^>]*textLength[^>]*>[^<]+<", drawn)
    assert whole and lines
    assert "sans-serif" in drawn and 'font-family="sans-serif"' not in drawn


def test_names_break_at_their_joints_and_lose_nothing():
    lines = series.wrap_name(LONG.format(9), 48)
    assert (
        "".join(lines) == LONG.format(9) and max(map(len, lines)) <= 48 and all(line[-1] in "/=,:9" for line in lines)
    )
    assert series.wrap_name("tabletop/tiny [partial, best-of:2, temperature 2]", 48) == [
        "tabletop/tiny [partial,",
        "best-of:2, temperature 2]",
    ]
    assert series.wrap_name("x" * 100, 48) == ["x" * 48, "x" * 48, "xxxx"]
    assert series.wrap_name("a model [partial, temperature 2]", 20) == [
        "a model [partial,",
        "temperature 2]",
    ] and series.wrap_name("") == [""]


def test_a_plot_in_the_dark_has_dark_colours_and_the_same_words(made: tuple[weft.Run, weft.Run, Path]):
    runs = {"#0072B2": made[0], "#1b1f24": made[1]}
    for plot in build_plots(runs):
        day, night = plots.render_svg(plot.chart), plots.render_svg(plot.chart, dark=True)
        assert f'fill="{plots.PAPER}"' in day and f'fill="{plots.NIGHT[plots.PAPER]}"' in night
        assert not re.findall(
            r'(?:fill|stroke)="(?:#ffffff|white|black|#000|#000000|#0072B2|#1b1f24|#ddd|#888)"', night
        )
        assert told(day) == told(night), "a name that looks like a colour stays a name"


def test_pages_in_the_dark_show_dark_plots_served_or_not(made: tuple[weft.Run, weft.Run, Path]):
    plain, best, folder = made
    place = api.write_report([plain, best], folder / "report", home=folder / "home")
    single = api.write_report([plain, best], folder / "one.html", home=folder / "home", single_file=True)
    with browser() as chromium:
        for scheme in ("light", "dark"):
            page = chromium.new_page(color_scheme=scheme)
            watch = Watch(page, folder.as_uri())
            page.goto(place.as_uri())
            wait_for_pictures(page)
            shown = page.evaluate("[...document.querySelectorAll('.plots img')].map(one => one.currentSrc)")
            assert shown and all(source.endswith("-dark.svg") == (scheme == "dark") for source in shown)
            page.goto(single.as_uri())
            wait_for_pictures(page)
            own = page.evaluate("[...document.querySelectorAll('.plots img')].map(one => one.currentSrc === one.src)")
            assert len(own) == len(shown) and all(one == (scheme == "light") for one in own)
            assert watch.wrong == []


def test_the_table_of_contents_leads_everywhere_and_is_folded_on_a_phone(made: tuple[weft.Run, weft.Run, Path]):
    plain, best, folder = made
    place = api.write_report([plain, best], folder / "contents", home=folder / "home")
    with browser() as chromium:
        page = chromium.new_page(viewport={"width": 1280, "height": 800})
        page.goto(place.as_uri())
        aside = page.locator("nav.toc")
        targets = [link.get_attribute("href") for link in aside.locator("a").all()]
        assert len(targets) == len(set(targets)) and {
            "#runs",
            "#table-1",
            "#compared-1",
            "#plots",
            "#breakdown",
            "#settings",
        } <= set(targets)
        assert all(page.locator(target).count() == 1 for target in targets)
        aside.get_by_role("link", name="Settings").click()
        page.wait_for_timeout(200)
        assert aside.bounding_box()["y"] >= 0 and page.locator("#settings").bounding_box()["y"] < 800, (
            "it stays in sight"
        )
        page.set_viewport_size({"width": 390, "height": 780})
        assert (
            not aside.is_visible()
            and page.locator("details.toc").is_visible()
            and not page.locator("details.toc a").first.is_visible()
        )


def test_a_wide_table_keeps_its_first_column_in_sight(made: tuple[weft.Run, weft.Run, Path]):
    plain, best, folder = made
    place = api.write_report([plain, best], folder / "wide", home=folder / "home")
    with browser() as chromium:
        page = chromium.new_page(viewport={"width": 390, "height": 780})
        page.goto(place.as_uri())
        first = page.locator("#table-1 tbody th").first
        before = first.bounding_box()
        page.locator("#table-1 .scroll").evaluate("one => { one.scrollLeft = 150; }")
        page.wait_for_timeout(100)
        assert page.locator("#table-1 .scroll").evaluate("one => one.scrollLeft") > 0, "there is something to scroll"
        assert first.bounding_box() == before and before["width"] < 200
        assert first.evaluate("one => getComputedStyle(one).backgroundColor") == "rgb(255, 255, 255)", (
            "nothing shows through"
        )
