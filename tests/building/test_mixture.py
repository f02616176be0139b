"""`weave-100k`: seeds go to the pathways by weight, and every pathway makes what it makes alone."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from building.papers_models import PapersModels
from building.test_pathways import request
from weft.building.build import forecast_build, run_build
from weft.building.draft import Row
from weft.building.parts import read_rows
from weft.building.recipe import load_recipe, open_recipe
from weft.building.status import read_status
from weft.errors import UserError

EQUAL = "fusion=1,recall=1,sequence=1,derive=1"


def pathways(seeds: int, **options: Any) -> Counter[str]:
    recipe: Any = open_recipe(load_recipe("weave-100k"), "weave-100k", options)
    return Counter(recipe.find_pathway(number)[0] for number in range(seeds))


def test_seeds_follow_table_5_or_the_weights_that_are_given():
    found = pathways(20_000)
    paper = {"fusion": 75996, "recall": 1369, "sequence": 19903, "derive": 3482}
    for name, count in paper.items():
        assert found[name] == pytest.approx(20_000 * count / 100750, abs=5)
    assert [*pathways(50, mix="recall=2,fusion=0")] == ["recall"]
    some = pathways(4000, mix=EQUAL)
    assert all(995 < some[name] < 1005 for name in paper)


@pytest.mark.parametrize(
    ("mix", "message"),
    [
        ("fusion=1,chess=2", "there is no pathway 'chess'; there is fusion, recall, sequence, derive"),
        ("fusion", "give a weight, such as fusion=1"),
        ("fusion=-1", "a weight is a number from 0"),
        ("fusion=nan", "a weight is a number from 0"),
        ("fusion=0", "no pathway has a weight"),
        ("fusion=1e308,recall=1e308", "or they are too large"),
    ],
)
def test_a_mix_that_is_none_is_one_line(mix: str, message: str):
    with pytest.raises(UserError, match="--mix") as caught:
        pathways(1, mix=mix)
    assert message in str(caught.value)


def test_what_the_papers_numbers_of_images_overrule_is_one_line():
    for option in ("rounds", "inputs"):
        recipe = open_recipe(load_recipe("weave-100k"), "weave-100k", {option: 3})
        with pytest.raises(UserError, match=f"--{option} 3: with --images paper it follows from Figure 4"):
            recipe.check({})
        open_recipe(load_recipe("weave-100k"), "weave-100k", {option: 3, "images": "fixed"}).check({})


def test_all_pathways_are_made_by_one_command_and_extended_later(tmp_path: Path):
    models = PapersModels()
    found: list[list[Row]] = []

    async def work() -> Any:
        async with models.up():
            asked = request(
                "weave-100k", tmp_path, models, 20, options={"mix": EQUAL, "stories": 0.0, "images": "fixed"}
            )
            forecast = await forecast_build(asked)
            assert not any(models.asked.values()), "a dry run asks nobody"
            for seeds in (10, 20):
                outcome = await run_build(replace(asked, seeds=seeds))
                assert outcome.reason is None
                found.append(list(read_rows(tmp_path)))
            return forecast

    forecast = asyncio.run(work())
    assert forecast.seeds == 20 and set(forecast.roles) >= {"writer", "painter", "editor"}
    first, rows = found
    assert rows[:10] == first and all(row.draft for row in rows)
    domains = {row.draft.domain for row in rows if row.draft}
    assert domains == {"fusion", "recall", "edit", "chess_game", "visual_jigsaw"}
    status = read_status(tmp_path)
    assert {step.step.partition(":")[0] for step in status.steps} == {"fusion", "recall", "sequence", "derive"}
