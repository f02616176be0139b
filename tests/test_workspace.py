"""A program that asks three roles through a workspace: the code of docs/how-to/call-models.md as it stands, with models of its
own."""

import asyncio
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pil

from weft.errors import UserError
from weft.store.blobs import BLOBS
from weft.store.schema import JOURNAL
from weft.types import Message, Request, Text
from weft.workspace import Limits, Workspace, read_only_journal

PAGE = Path(__file__).parent.parent / "docs" / "how-to" / "call-models.md"
SOURCE = Path(__file__).parent.parent / "src" / "weft"


class Player:
    """One of the three roles; counts what it is asked."""

    version = "1"

    def __init__(self, name: str, asked: Counter[str], broken: bool = False) -> None:
        self.name, self._asked, self._broken = name, asked, broken

    def __call__(self, messages: Any, want: str) -> Any:
        self._asked[self.name] += 1
        if self._broken:
            raise RuntimeError("the brush is lost")
        text = "".join(part for part in messages[-1][1] if isinstance(part, str))
        return Pil.new("RGB", (16, 16), "green") if want == "image" else f"yes: {text[:40]}"


@pytest.fixture
def program() -> dict[str, Any]:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    space: dict[str, Any] = {"__name__": "calling"}
    exec(compile(code, str(PAGE), "exec"), space)
    return space


def run(program: dict[str, Any], folder: Path, asked: Counter[str], **players: Any) -> None:
    program["ROLES"] = {role: players.get(role) or Player(role, asked) for role in ("writer", "painter", "checker")}
    program["Limits"] = lambda **_: Limits()  # models of one's own have no price
    program["Workspace"] = lambda _: Workspace(folder)
    asyncio.run(program["main"]())


def test_every_role_is_asked_once_and_never_again(
    program: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    asked: Counter[str] = Counter()
    run(program, tmp_path, asked)
    assert capsys.readouterr().out.count(": yes: Does") == 10 and asked == {"writer": 10, "painter": 10, "checker": 10}
    run(program, tmp_path, asked)
    assert capsys.readouterr().out.count(": yes: Does") == 10 and sum(asked.values()) == 30, (
        "the second run is answered from the journal"
    )
    with read_only_journal(tmp_path) as journal:
        assert {total.role: total.calls for total in journal.totals("gardens")} == {
            "writer": 10,
            "painter": 10,
            "checker": 10,
        }


def test_what_fails_is_told_and_asked_again_the_next_time(
    program: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    asked: Counter[str] = Counter()
    run(program, tmp_path, asked, painter=Player("painter", asked, broken=True))
    assert capsys.readouterr().out.count("the brush is lost") == 10 and asked == {"writer": 10, "painter": 10}
    run(program, tmp_path, asked)
    assert capsys.readouterr().out.count(": yes: Does") == 10 and asked == {"writer": 10, "painter": 20, "checker": 10}


def test_a_budget_needs_prices(tmp_path: Path):
    async def work() -> None:
        async with Workspace(tmp_path).models({"writer": "openai/unknown"}, Limits(budget=1.0), run="x"):
            pass

    with pytest.raises(UserError, match="needs a price for unknown"):
        asyncio.run(work())


def test_the_same_question_under_another_role_is_answered_from_the_journal(tmp_path: Path):
    asked: Counter[str] = Counter()

    async def work(role: str) -> str:
        async with Workspace(tmp_path).models({role: Player("one", asked)}, run=role) as models:
            return (await models[role].reply((Message("user", (Text("Hello"),)),), Request("text"))).text

    assert asyncio.run(work("writer")) == asyncio.run(work("checker")) == "yes: Hello" and asked == {"one": 1}
    with read_only_journal(tmp_path) as journal:
        assert journal.totals("writer")[0].calls == 1 and not journal.totals("checker")


def test_only_the_store_and_the_workspace_name_what_lies_in_a_home():
    """`weft.workspace` opens it, so that a home can change its layout in one place."""
    names = re.compile(rf'"{re.escape(JOURNAL)}"|/ "{BLOBS}"')
    found = [str(file.relative_to(SOURCE)) for file in SOURCE.rglob("*.py") if names.search(file.read_text())]
    assert found == ["store/schema.py"]
