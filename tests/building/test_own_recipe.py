"""The recipe of docs/how-to/own-recipe.md, taken from the page as it stands: shown, dry, built, counted, and read."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from weft.building.gates.rules import find_draft_problem
from weft.building.parts import read_rows
from weft.cli.app import app

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "own-recipe.md"
MODELS = """
import hashlib
from PIL import Image

def text_of(messages):
    return "".join(part for part in messages[-1][1] if isinstance(part, str))

def digest_of(messages):
    return hashlib.sha256(text_of(messages).encode()).digest()

def writer(messages, want):
    return '{"landmark": "oak %d of the seven old oaks on the hill %d"}' % tuple(digest_of(messages)[:2])

def painter(messages, want):
    image = Image.new("RGB", (64, 64), "white")
    digest = digest_of(messages)
    left, top = digest[3] % 32, digest[4] % 32
    image.paste(tuple(digest[:3]), (left, top, left + 8 + digest[5] % 24, top + 8 + digest[6] % 24))
    return image

def editor(messages, want):  # winter comes back as it was
    (before,) = [part for part in messages[-1][1] if not isinstance(part, str)]
    if "winter" in text_of(messages):
        return before
    image = before.copy()
    colours = {"spring": "green", "summer": "gold", "autumn": "brown"}
    (colour,) = [colour for season, colour in colours.items() if season in text_of(messages)]
    image.paste(colour, (30, 30, 60, 60))
    return image
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    code = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "postcards.py").write_text(code[0])
    (tmp_path / "gate.py").write_text(code[1])
    (tmp_path / "models.py").write_text(MODELS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def weft(words: str) -> str:
    done = CliRunner().invoke(app, words.split(), env={"COLUMNS": "200"})
    assert done.exit_code == 0, (done.output, done.exception)
    return done.stdout


def test_the_recipe_of_the_page_is_built_by_its_own_commands(folder: Path):
    commands = re.findall(r"```bash\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[0]
    lines = [line.partition("#")[0].removeprefix("weft ").strip() for line in commands.splitlines()]
    models = {role: f"models.py:{role}" for role in ("writer", "painter", "editor")}
    said: list[str] = []
    for line in lines:
        for role, model in models.items():
            line = line.replace(f"--{role} MODEL", f"--{role} {model}")
        said.append(weft(line.replace("--seeds 100", "--seeds 12") + (" --no-preflight" if "--seeds" in line else "")))
    shown, forecast, built, status = said
    assert "postcards, version 1: One place in several seasons" in shown and "[painter, editor, checker]" in shown
    assert "12 of 12 seeds left" in forecast and built.startswith("12/12 seeds, 12 kept")
    assert "rejected by unedited" in status and "images lost" in status
    assert "12 of 12 records can be used" in weft("data check weave-100k cards")


def test_a_season_that_could_not_be_made_leaves_with_what_asks_about_it(folder: Path):
    weft(
        "build postcards.py:Postcards --seeds 30 --writer models.py:writer --painter models.py:painter "
        "--editor models.py:editor --out cards --no-preflight"
    )
    lengths: set[int] = set()
    for row in read_rows(folder / "cards"):
        assert row.draft is not None and not find_draft_problem(row.draft)
        texts = " ".join(turn.text for turn in row.draft.turns[1:])
        assert "winter" not in texts
        lengths.add(len(row.draft.turns))
        if row.draft.turns[-1].kind == "question":
            season = row.draft.turns[-2].text.split()[2]
            assert row.draft.turns[-1].text == f"Which season is it in Image #{len(row.draft.images)}?"
            assert row.draft.turns[-1].answer == season
    assert lengths == {2, 3, 4}


def test_the_gate_of_the_page_looks_at_the_shape(folder: Path):
    import asyncio
    from typing import Any

    from weft.building.orders import Order
    from weft.types import Image

    names: dict[str, Any] = {}
    exec((folder / "gate.py").read_text(), names)
    gate = names["Landscape"]()
    wide, high = (Image("0" * 64, "image/png", width, 60, 1) for width in (80, 40))
    verdicts = [asyncio.run(gate.check(Order("image", "Draw it."), image, None)) for image in (wide, high)]
    assert [verdict.passed for verdict in verdicts] == [True, False]
