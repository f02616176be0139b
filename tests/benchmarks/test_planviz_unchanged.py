"""When an edited picture is nearly its source: what servers do to a picture that they return is no edit; the smallest
edit that a person would look for is one."""

import io
import random
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageDraw

from weft.benchmarks.planviz.drawings import draw_flowchart, draw_form, draw_park, draw_settings, load_plain_font
from weft.benchmarks.planviz.template import PATHS, PLACES, SWITCHES
from weft.benchmarks.planviz.unchanged import is_unchanged, measure_change
from weft_tabletop.world.scenes import BACKGROUNDS, CELLS, COLOURS, Scene, Thing, draw

SOURCES = {
    "a map": draw_park(PLACES, PATHS),
    "a page": draw_form("Create an account", ["E-mail address", "Password", "Full name"], "Sign up"),
    "a workflow": draw_flowchart(["Enter the e-mail address", "Choose a password", "Press Sign up"]),
    "settings": draw_settings("Settings", SWITCHES),
    "a table": draw(Scene("mint").put({"a1": Thing("red", "circle"), "c3": Thing("blue", "star")})),
}
REAL = Path(__file__).parent.parent.parent.parent / "shared" / "data" / "weave"


def encoded(picture: Image.Image, kind: str, **options: Any) -> Image.Image:
    out = io.BytesIO()
    picture.convert("RGB").save(out, kind, **options)
    return Image.open(io.BytesIO(out.getvalue()))


NOT_EDITED = {
    "the same": lambda picture: picture.copy(),
    "as WebP without loss": lambda picture: encoded(picture, "WEBP", lossless=True),
    "as a palette": lambda picture: picture.quantize(256) if len(picture.getcolors(1 << 24)) <= 256 else picture.copy(),
    "a shade darker than anyone sees": lambda picture: Image.eval(
        picture.convert("RGB"), lambda value: max(0, value - 2)
    ),
    "with an alpha channel": lambda picture: picture.convert("RGBA"),
}


@pytest.mark.parametrize("how", NOT_EDITED)
@pytest.mark.parametrize("what", SOURCES)
def test_what_is_no_edit(what: str, how: str):
    assert is_unchanged(SOURCES[what], NOT_EDITED[how](SOURCES[what]))


def line(pen: ImageDraw.ImageDraw, width: int, height: int) -> None:
    pen.line((width * 0.2, height * 0.3, width * 0.3, height * 0.5), fill="red", width=2)


def digit(pen: ImageDraw.ImageDraw, width: int, height: int) -> None:
    pen.text((width * 0.4, height * 0.05), "7", font=load_plain_font(12), fill="#333333")


def dot(pen: ImageDraw.ImageDraw, width: int, height: int) -> None:
    pen.ellipse((width * 0.5, height * 0.5, width * 0.5 + 6, height * 0.5 + 6), fill="#1f5fd0")


@pytest.mark.parametrize("edit", [line, digit, dot])
@pytest.mark.parametrize("what", [name for name in SOURCES if name != "a table"])
def test_the_smallest_edits_are_edits(what: str, edit: object):
    made = SOURCES[what].copy()
    edit(ImageDraw.Draw(made), *made.size)  # type: ignore[operator]
    assert measure_change(SOURCES[what], made) > 1
    assert measure_change(SOURCES[what], encoded(made, "JPEG", quality=92)) > 1


@pytest.mark.parametrize(
    ("size", "print_size"),
    [((1920, 1080), 14), ((1280, 800), 16), ((1024, 768), 12), ((400, 4000), 14), ((3840, 2160), 20)],
)
@pytest.mark.parametrize("digits", ["38", "17", "56", "09"])
def test_one_digit_is_an_edit_whatever_the_size(size: tuple[int, int], print_size: int, digits: str):
    pages = [Image.new("RGB", size, "white") for _ in digits]
    for page, one in zip(pages, digits, strict=True):
        ImageDraw.Draw(page).text((101, 203), f"Total: 12{one} EUR", font=load_plain_font(print_size), fill="#222222")
    assert measure_change(*pages) > 1 and measure_change(pages[0], encoded(pages[1], "JPEG", quality=92)) > 1


@pytest.mark.parametrize(
    ("before", "after"),
    [("#5f6368", "#1a73e8"), ("#757575", "#2e7d32"), ("#666666", "#c62828"), ("#9e9e9e", "#4caf50")],
)
@pytest.mark.parametrize("print_size", [14, 18])
def test_a_label_in_another_colour_is_an_edit(before: str, after: str, print_size: int):
    pages = [Image.new("RGB", (1280, 800), "white") for _ in "12"]
    for page, colour in zip(pages, (before, after), strict=True):
        ImageDraw.Draw(page).text((400, 300), "Inbox", font=load_plain_font(print_size), fill=colour)
    assert measure_change(*pages) > 1


@pytest.mark.parametrize("ground", ["aliceblue", "ivory", "#f5f5f5", "honeydew", "#fffde7", "#f0f4ff"])
def test_a_page_of_another_colour_is_an_edit(ground: str):
    pages = [Image.new("RGB", (800, 600), colour) for colour in ("white", ground)]
    for page in pages:
        ImageDraw.Draw(page).text((100, 100), "Some words on a page", font=load_plain_font(16), fill="black")
    assert measure_change(*pages) > 1


def test_faint_lines_are_edits():
    page = Image.new("RGB", (1280, 800), "white")
    for colour, width in (("#888888", 1), ("#e0e0e0", 1), ("#ffcc00", 2), ("orange", 1)):
        made = page.copy()
        ImageDraw.Draw(made).line((100, 300, 700, 300), fill=colour, width=width)
        assert measure_change(page, made) > 1
    dark = Image.new("RGB", (1280, 800), "#121212")
    row = dark.copy()
    row.paste("#1c1c1c", (0, 100, 1280, 124))
    assert measure_change(dark, row) > 1


def test_a_faint_row_a_tick_and_a_bar_at_the_edge_are_edits():
    page = Image.new("RGB", (1023, 700), "white")
    for box, colour in (
        ((0, 100, 1023, 120), "#f5f5f5"),
        ((400, 300, 412, 312), "#2f9e57"),
        ((1017, 0, 1023, 700), "red"),
    ):
        made = page.copy()
        made.paste(colour, box)
        assert measure_change(page, made) > 1


def test_what_is_transparent_is_looked_at_on_two_grounds():
    clear = Image.new("RGBA", (300, 300), (0, 0, 0, 0))
    inked = clear.copy()
    ImageDraw.Draw(inked).line((10, 10, 200, 200), fill=(0, 0, 0, 255), width=6)
    hole = Image.new("RGBA", (300, 300), "white")
    hole.paste((0, 0, 0, 0), (100, 100, 150, 150))
    assert (
        measure_change(clear, inked) > 1
        and measure_change(Image.new("RGBA", (300, 300), "white"), hole) > 1
        and is_unchanged(inked, inked.copy())
    )


def test_sixteen_bits_are_not_cut_off():
    light, dark = (Image.new("I;16", (100, 100), value) for value in (40000, 10000))
    assert measure_change(light, dark) > 1 and is_unchanged(light, light.copy())


def test_a_switch_that_moved_is_an_edit():
    assert measure_change(SOURCES["settings"], draw_settings("Settings", {**SWITCHES, "Bluetooth": True})) > 2


def test_one_dot_on_a_table_is_an_edit():
    """In every colour on every ground, but where one cannot be told from the other."""
    least = min(
        measure_change(draw(Scene(ground)), draw(Scene(ground).put({cell: Thing(colour, "dot")})))
        for ground in BACKGROUNDS
        for colour in COLOURS
        for cell in CELLS[::5]
    )
    assert least > 1


def test_another_format_and_another_colour_are_left_to_the_judge():
    page = SOURCES["a page"]
    assert measure_change(page, page.resize((page.width, page.width))) == 255.0
    assert measure_change(page, Image.eval(page, lambda value: 255 - value)) > 1
    assert measure_change(Image.new("RGB", (300, 300), "white"), Image.new("RGB", (300, 300), "#ccddee")) > 1


def test_pictures_of_any_size_can_be_compared():
    chance = random.Random(0)
    for _ in range(60):
        size = (
            chance.choice((1, 2, 3, 7, 8, 9, 255, 256, 257, 1500)),
            chance.choice((1, 2, 3, 7, 8, 9, 255, 256, 257, 1500)),
        )
        assert is_unchanged(Image.new("RGB", size, "grey"), Image.new("L", size, 128))


def test_the_real_pictures_are_told_from_one_another():
    """A photograph is itself as a fine JPEG too; what JPEG does to coloured print is left to the judge."""
    files = sorted([*REAL.rglob("*.jpg"), *REAL.rglob("*.png")])[:12]
    if not files:
        pytest.skip(f"the real WEAVE samples are not here ({REAL})")
    for file in files:
        picture = Image.open(file)
        assert is_unchanged(picture, encoded(picture, "WEBP", lossless=True))
    pairs = [(a, b) for a in files for b in files if a < b]
    assert not any(is_unchanged(Image.open(a), Image.open(b)) for a, b in pairs)
