"""Recipes and models whose code makes what no row can hold: it costs the row, and the build goes on."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from weft.building.build import BuildOutcome, run_build
from weft.building.draft import Row
from weft.building.parts import read_rows
from weft.building.request import BuildRequest
from weft.models.endpoint import Endpoint, EndpointReply
from weft.types import Image

HERE = Path(__file__).parent
RECIPE = """
import asyncio
from typing import Any
from building.recipes import Pairs
from msgspec.structs import replace
from weft.building.draft import Draft, DraftTurn, Row
from weft.building.recipe import Dropped

class Odd(Pairs):
    name = "odd"

    async def draw(self, row, context):
        if row.number == 3:
            {what}
        return await super().draw(row, context)
"""
ODD = [
    "raise SystemExit(0)", "raise KeyboardInterrupt", "raise GeneratorExit", "raise BaseException('base')", "raise asyncio.CancelledError",
    "return replace(row, facts={'a': object()})", "return replace(row, facts={'a': '\\ud800'}, draft=Draft('edit', (), ()))",
    "return replace(row, draft='a dialogue')", "return replace(row, draft=Draft('edit', (), (DraftTurn('Draw.', makes=7),)))",
    "raise Dropped(object())",
]  # fmt: skip


@pytest.fixture(autouse=True)
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_TEST_CALLS", str(tmp_path / "calls.txt"))


def build(out: Path, recipe: str = f"{HERE / 'recipes.py'}:Pairs", **models: Any) -> BuildOutcome:
    players = {"writer": f"{HERE / 'players.py'}:Writer", "painter": f"{HERE / 'players.py'}:Painter", **models}
    return asyncio.run(run_build(BuildRequest(recipe, out, players, seeds=6, part_size=3)))


def outcomes(out: Path) -> dict[int, str]:
    return {row.number: row.outcome for row in read_rows(out)}


@pytest.mark.parametrize("what", ODD)
def test_what_a_step_raises_or_returns_costs_its_row(what: str, tmp_path: Path):
    file = tmp_path / "odd.py"
    file.write_text(RECIPE.format(what=what))
    outcome = build(tmp_path / "out", f"{file}:Odd")
    assert outcome.reason is None and outcome.failed == 1
    assert outcomes(tmp_path / "out") == {0: "kept", 1: "kept", 2: "kept", 3: "failed", 4: "kept", 5: "kept"}
    (failed,) = [row for row in read_rows(tmp_path / "out") if row.number == 3]
    assert failed.step == "draw" and failed.reason and failed.detail


def test_a_reason_to_drop_a_row_may_come_with_odd_facts(tmp_path: Path):
    file = tmp_path / "odd.py"
    file.write_text(RECIPE.format(what="raise Dropped('no', detail=5, row='a row')"))
    assert build(tmp_path / "out", f"{file}:Odd").reason is None
    (dropped,) = [row for row in read_rows(tmp_path / "out") if row.number == 3]
    assert (dropped.outcome, dropped.reason, dropped.detail) == ("dropped", "no", "5")


class Forger(Endpoint):
    """Returns an image that it never stored."""

    digest = "f" * 64

    async def send(self, messages: Any, request: Any) -> EndpointReply:
        return EndpointReply((Image(self.digest, "image/png", 8, 8, 70),), "answered", served_model=self.name)


@pytest.mark.parametrize("digest", ["f" * 64, "../../../etc/passwd", ""])
def test_an_image_that_is_not_in_the_store_is_in_no_dialogue(digest: str, tmp_path: Path):
    painter = Forger("forger", version=1)
    painter.digest = digest
    outcome = build(tmp_path / "out", painter=painter)
    assert outcome.reason is None and outcome.failed == 6
    assert set(outcomes(tmp_path / "out").values()) == {"failed"}
    rows: list[Row] = list(read_rows(tmp_path / "out"))
    assert all("not in the image store" in row.detail for row in rows)
