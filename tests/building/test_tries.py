"""A seed whose dialogue was dropped is tried again, as another dialogue of the same seed and kind."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from PIL import Image as Pil

from weft.building.build import run_build
from weft.building.context import Context
from weft.building.draft import Draft, DraftTurn, EarlierTry, Row
from weft.building.layouts.pairs import find_pairs
from weft.building.orders import Order, add_attempts, make_image
from weft.building.parts import read_rows
from weft.building.recipe import SEED_SPACE, Dropped, Recipe, Role, Step
from weft.building.request import BuildRequest
from weft.building.status import read_status
from weft.errors import UserError
from weft_recipes.categories import RECALL
from weft_recipes.shares import CATEGORY, FIGURE_4, PATHWAY, choose, choose_images, choose_ranked

THIS = str(Path(__file__))


class Stubborn(Recipe):
    """The dialogue of an even seed is dropped at its first two tries. Odd seeds are of another group."""

    name = "stubborn"
    roles = (Role("painter", "image"),)
    tries = 3

    def seed(self, number: int) -> Row:
        return Row(number, {}, group="odd" if number % 2 else "even")

    def steps(self) -> Sequence[Step]:
        return (
            Step("draw", self.draw),
            Step("judge", self.judge, group="even"),
            Step("pass", self.keep, group="odd"),
            Step("assemble", self.assemble),
        )

    async def draw(self, row: Row, context: Context) -> Row:
        image, attempts = await make_image(Order("image 1", f"Draw {row.number}."), ["painter"], [], context)
        return replace(add_attempts(row, attempts), facts={"image": image})

    async def judge(self, row: Row, context: Context) -> Row:
        if row.number < 2 * SEED_SPACE:
            raise Dropped("too early", row=row)
        return row

    async def keep(self, row: Row, context: Context) -> Row:
        return row

    async def assemble(self, row: Row, context: Context) -> Row:
        turn = DraftTurn("Draw it again.", "draw", 1, key_points={"Text": "it is there"})
        question = DraftTurn(f"What is in Image #1, number {row.number}?", "question", answer="a thing")
        return replace(row, draft=Draft("edit", (row.facts["image"],), (turn, question)), facts={})


def paint(messages: Any, want: str) -> Any:
    number = int("".join(letter for letter in str(messages[-1][1][-1]) if letter.isdigit()))
    return Pil.effect_noise((16, 16), 40 + number % 50).convert("RGB").rotate(90 * (number // SEED_SPACE))


paint.version = "1"  # type: ignore[attr-defined]


def build(out: Path, **more: Any) -> list[Row]:
    asked = BuildRequest(
        f"{THIS}:Stubborn", out, {"painter": f"{THIS}:paint"}, **{"seeds": 4, "duplicates": (), **more}
    )
    outcome = asyncio.run(run_build(asked))
    assert outcome.reason is None, outcome.reason
    return list(read_rows(out))


def test_a_seed_is_tried_again_until_a_dialogue_is_kept(tmp_path: Path):
    rows = build(tmp_path)
    assert [row.outcome for row in rows] == ["kept"] * 4 and [row.number for row in rows] == [0, 1, 2, 3]
    assert rows[0].earlier == (EarlierTry("judge", "too early"),) * 2 and rows[1].earlier == ()
    assert [one.prompt for one in rows[0].attempts] == [f"Draw {number * SEED_SPACE}." for number in range(3)]
    assert len(rows[0].calls) == 3 and len(rows[1].calls) == 1
    assert not list(find_pairs(rows[0].attempts)), "another try is another order"
    assert rows[0].counts["images ordered"] == 3


def test_yields_count_each_try_and_a_step_of_a_group_only_its_rows(tmp_path: Path):
    build(tmp_path)
    status = read_status(tmp_path)
    assert [(step.step, step.entered, step.left, step.reasons) for step in status.steps] == [
        ("draw", 8, 8, {}),
        ("judge", 6, 2, {"too early": 4}),
        ("pass", 2, 2, {}),
        ("assemble", 4, 4, {}),
    ]
    assert status.outcomes == {"kept": 4}


def test_the_user_may_ask_for_fewer_tries_and_that_is_another_build(tmp_path: Path):
    rows = build(tmp_path, tries=2)
    assert [row.outcome for row in rows] == ["dropped", "kept", "dropped", "kept"]
    assert rows[0].reason == "too early" and len(rows[0].earlier) == 1
    with pytest.raises(UserError, match="each of its seeds has 2 tries, not 3"):
        build(tmp_path)
    with pytest.raises(UserError, match="--tries 0: give 1 to 100"):
        build(tmp_path / "other", tries=0)


def test_every_stretch_of_seeds_has_its_shares():
    shares = {"a": 72348, "b": 1369, "c": 20, "d": 0}
    total = sum(shares.values())
    for start in (0, 777, 50_000):
        counts = Counter(choose(number, shares, PATHWAY) for number in range(start, start + 20_000))
        assert all(abs(counts[name] - 20_000 * share / total) < 6 for name, share in shares.items())


def test_a_seeds_rank_is_how_many_before_it_got_the_same():
    shares = {"a": 0.7, "b": 0.2, "c": 0.1}
    counts: Counter[str] = Counter()
    for number in range(3000):
        name, rank = choose_ranked(number, shares, PATHWAY)
        assert rank == counts[name]
        assert choose_ranked(number + 5 * SEED_SPACE, shares, PATHWAY) == (name, rank + 5 * SEED_SPACE)
        counts[name] += 1
    name, late = choose_ranked(SEED_SPACE - 1, shares, PATHWAY)
    assert late / SEED_SPACE == pytest.approx(shares[name], abs=1e-5)


def test_categories_of_a_small_pathway_are_spread_as_evenly():
    counts: Counter[str] = Counter()
    for number in range(10_000):
        pathway, rank = choose_ranked(number, {"large": 98.64, "small": 1.36}, PATHWAY)
        if pathway == "small":
            counts[choose(rank, RECALL, CATEGORY)] += 1
    assert abs(counts.total() - 136) < 3
    assert all(abs(counts[name] - 136 * count / 1369) < 3 for name, count in RECALL.items())


def test_numbers_of_images_follow_figure_4_with_its_mean():
    counts = Counter(choose_images(number) for number in range(50_000))
    for least, share in ((4, 100_584), (5, 60_361), (6, 31_571)):
        found = sum(count for images, count in counts.items() if images >= least) / 50_000
        assert found == pytest.approx(share / 100_584, abs=0.001)
    assert sum(FIGURE_4) == 30 and sum(n * c for n, c in counts.items()) / 50_000 == pytest.approx(5.01, abs=0.02)
