"""Names that are markup or steer a terminal, in what a notebook's cell shows of runs, tables and progress."""

import re
from pathlib import Path
from typing import Any

import weft
from weft.evaluation.progress import NotebookProgress

HOSTILE = "</td><script>alert(1)</script><img src=x onerror='alert(2)'>\x1b[31m\u202e"
TAG = re.compile(r"</?([a-z]+)")


class Model:
    name, version = HOSTILE, "1"

    def __call__(self, messages: Any, want: str) -> str:
        return HOSTILE


class Judge:
    name, version = HOSTILE, "1"

    def __call__(self, messages: Any, want: str) -> dict[str, Any]:
        return {"score": 5, "reasoning": HOSTILE}


def test_what_a_cell_shows_is_text(toy: Path, tmp_path: Path):
    shown: list[str] = []

    def note(session: Any) -> None:
        shown.append(NotebookProgress(session)._repr_html_())

    home = tmp_path / "home"
    run = weft.evaluate("weave", data=toy, model=Model(), judge=Judge(), home=home, on_start=note)
    shown += [run._repr_html_(), weft.runs(home=home)._repr_html_()]
    shown += [table._repr_html_() for table in run.tables()]
    printed = [repr(run), str(run.table())]
    assert any("alert(1)" in page for page in shown)
    for page in shown:
        assert not set(TAG.findall(page)) & {"script", "img"}
    for text in [*shown, *printed]:
        assert "\x1b" not in text and "\u202e" not in text
