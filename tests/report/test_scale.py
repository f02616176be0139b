"""One scale and one count for each benchmark, wherever a person looks: the paper's."""

import copy
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import weft
from browser import browser
from server import Provider, Seen, model_answer
from weft import api
from weft.report.charts import build_plots
from weft.report.compare import compare
from weft.report.grid import build_change_cells
from weft.report.listing import build_listing, dialogues_by_sample
from weft.report.scale import headline_difference
from weft.results.run import name_runs
from weft_tabletop.make import make

Serve = Callable[..., Provider]
SCALES = {"weave": (1.0, 3), "imug": (100.0, 1)}


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[weft.Run, weft.Run, Path]]:
    made: dict[str, tuple[weft.Run, weft.Run, Path]] = {}
    for name in SCALES:
        folder = tmp_path_factory.mktemp(name)
        job: dict[str, Any] = {
            "data": make(f"tabletop-{name}", folder / "data", samples=16, seed=0),
            "home": folder / "home",
        }
        good, bad = (
            weft.evaluate(name, model="tabletop/oracle", judge="tabletop/exact", model_options=options, **job)
            for options in ({}, {"error": 0.4})
        )
        made[name] = (good, bad, folder)
    return made


def without(run: weft.Run, metric: str) -> weft.Run:
    """The run as it is if its judge could score nothing of a metric."""
    changed = copy.copy(run)
    unscored: Any = {"value": None, "score": None, "merged_from": ()}
    changed.verdicts = [
        replace(verdict, **unscored) if verdict.metric == metric else verdict for verdict in run.verdicts
    ]
    return changed


def test_a_headline_score_is_not_compared_without_one_of_its_parts(
    pairs: dict[str, tuple[weft.Run, weft.Run, Path]],
):
    """WEAVE weighs its metrics otherwise where there are no text turns: not where a judge failed on them."""
    good, bad, _ = pairs["weave"]
    lost = without(bad, "accuracy")
    for first, second in ((good, lost), (lost, good)):
        found = compare(first, second)
        assert {row.name for row in found.rows} >= {"key_point", "image_quality"}
        assert all(row.name not in ("headline score", "accuracy") for row in found.rows)
        assert any("headline score is not compared" in note for note in found.notes)
        assert build_change_cells(first, second, "") == {} != build_change_cells(first, second, "key_point")
        with_text = {verdict.sample for verdict in lost.verdicts if verdict.metric == "accuracy"}
        assert with_text and not with_text & {gap.sample for gap in found.gaps}
        sample = min(with_text)
        own, other = ([v for v in run.verdicts if v.sample == sample] for run in (first, second))
        assert headline_difference(first.benchmark, own, other, first.groups) is None
    assert "headline score" in {row.name for row in compare(good, bad).rows}


@pytest.mark.parametrize("name", SCALES)
def test_pages_lists_plots_and_comparisons_count_as_the_paper_does(
    pairs: dict[str, tuple[weft.Run, weft.Run, Path]], name: str
):
    full, digits = SCALES[name]
    good, bad, folder = pairs[name]
    place = api.write_report([good, bad], folder / "report", home=folder / "home").parent
    shape = re.compile(rf"\d+\.\d{{{digits}}}")
    chips = re.findall(
        r'<span class="chip s\d+">([^<]+)</span>', "".join(file.read_text() for file in (place / "d").glob("*.html"))
    )
    assert chips and all(shape.fullmatch(chip) for chip in chips) and max(map(float, chips)) == full
    found = compare(good, bad)
    assert (found.max_score, found.digits) == (full, digits) and found.rows[0].first == pytest.approx(full)
    assert 0.1 * full < found.rows[0].difference.value < full and max(gap.first for gap in found.gaps) == pytest.approx(
        full
    )
    numbers = (place / "index.html").read_text()
    assert (
        re.search(rf">{full:.{digits}f}</(a|td)>", numbers)
        and f"Full marks: {full:g}. Turns that both runs have scored" in numbers
    )
    bins = [
        row
        for plot in build_plots({"a": good, "b": bad})
        for row in re.findall(r", ([\d.]+)-([\d.]+):", plot.description)
    ]
    assert bins and max(float(high) for _, high in bins) == full
    for plot in build_plots({"a": good, "b": bad}):
        values = [float(said) for said in re.findall(r": (\d+\.\d+)(?:;|$)", plot.description)]
        assert plot.name in ("dialogues", "spread-points") or (values and max(values) == full), plot.description
    listed = (place / "dialogues.html").read_text()
    assert f'max="{full:g}"' in listed and f'placeholder="{full:g}"' in listed


def test_the_command_compares_on_the_papers_scale(pairs: dict[str, tuple[weft.Run, weft.Run, Path]]):
    for name, (full, digits) in SCALES.items():
        good, bad, folder = pairs[name]
        said = subprocess.run(
            [sys.executable, "-m", "weft", "compare", good.id, bad.id, "--home", str(folder / "home")],
            capture_output=True,
            text=True,
        ).stdout
        assert f"of {full:g};" in said and re.search(rf"headline score\s+{full:.{digits}f} ", said), said
        worst = re.search(r"where they differ most, by the headline score:\n  \S+: (\S+) and (\S+)\n", said)
        assert worst is not None and worst[1] == f"{full:.{digits}f}" and len(worst[2].partition(".")[2]) == digits


def without_every_third(run: weft.Run) -> weft.Run:
    """The same run, as if its judge had failed now and then."""
    made = copy.copy(run)
    made.verdicts = [replace(one, value=None) if at % 3 == 0 else one for at, one in enumerate(run.verdicts)]
    return made


def test_a_difference_in_the_list_is_over_what_both_have_scored(pairs: dict[str, tuple[weft.Run, weft.Run, Path]]):
    bad = pairs["weave"][1]
    runs = {"whole": bad, "gaps": without_every_third(bad)}
    samples = build_listing(runs, dialogues_by_sample(runs))["samples"]
    assert any(one["s"][0] != one["s"][1] for one in samples), "their own numbers are over different verdicts"
    assert {one["d"][1] for one in samples} <= {0.0, None} and any(one["d"][1] == 0.0 for one in samples)
    assert {turn["d"] for one in samples for turn in one["r"][1]} <= {0.0, None}
    other = {"whole": bad, "good": pairs["weave"][0]}
    assert any(one["d"][1] > 0 for one in build_listing(other, dialogues_by_sample(other))["samples"])


def test_the_list_says_against_whom_a_difference_is(pairs: dict[str, tuple[weft.Run, weft.Run, Path]]):
    good, bad, folder = pairs["weave"]
    place = api.write_report([good, bad], folder / "against", home=folder / "home").parent
    with browser() as chromium:
        page = chromium.new_page()
        page.goto((place / "dialogues.html").as_uri())
        page.locator("[data-filter='run']").select_option("1")
        page.wait_for_timeout(200)
        assert next(iter(name_runs([good, bad]))) in page.locator("#versus").inner_text()
        score, gap = re.fullmatch(
            r"(\d\.\d{3}) \(([+-]\d\.\d{3})\)", page.locator(".row .score").first.inner_text()
        ).groups()  # pyright: ignore
        assert float(score) - 1 == pytest.approx(float(gap), abs=0.0011), "the other has full marks"
        for metric in ("key_point", ""):
            page.locator("[data-filter='metric']").select_option(metric)
            page.locator("[data-filter='run']").select_option("0")
            page.locator("[data-filter='sort']").select_option("gap")
            page.wait_for_timeout(200)
            assert list(name_runs([good, bad]))[1] in page.locator("#versus").inner_text()
            assert page.locator(".row .gap").first.inner_text().startswith("(+")


def test_a_judges_own_scale_is_named(toy: Path, tmp_path: Path, serve: Serve):
    def answer(seen: Seen) -> dict[str, Any]:
        return (
            model_answer(seen)
            if not seen.is_judge
            else {"role": "assistant", "content": '{"reasoning": "so so", "score": 5}'}
        )

    provider = serve(answer=answer)
    home = tmp_path / "home"
    names: dict[str, Any] = {"model": f"openai-chat/model@{provider.url}", "judge": f"openai-chat/judge@{provider.url}"}
    run = weft.evaluate("weave", data=toy, home=home, **names)
    pages = api.write_report([run], tmp_path / "report", home=home).parent / "d"
    text = "".join(file.read_text() for file in pages.glob("*.html"))
    assert (
        '<span class="chip s5">0.500</span>' in text and "(the judge said 5 of 10)" in text and "scored 5" not in text
    )


def test_the_main_number_of_a_list_is_the_one_of_the_main_table(pairs: dict[str, tuple[weft.Run, weft.Run, Path]]):
    for name, (_, bad, _) in pairs.items():
        gist, cell = bad.gist, bad.table().run_rows[0].cells["Avg"]
        for ours, theirs in ((gist.value, cell.value), (gist.low, cell.low), (gist.high, cell.high)):
            assert ours == pytest.approx(theirs, abs=0.06 if name == "imug" else 0.0006), name
