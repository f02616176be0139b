"""A score card says which of its numbers do not compare, and shows what was run last."""

from pathlib import Path
from typing import Any

import weft
from toy import more_records, write_weave
from weft.evaluation.session import Session
from weft.evaluation.suite import ScoreCard, build_score_card
from weft.workspace import open_journal


class Ours:
    name = "ours"

    def __init__(self, version: str) -> None:
        self.version = version

    def __call__(self, messages: Any, want: str) -> str:
        return "x"


def run(home: Path, section: str, **settings: Any) -> weft.Run:
    def name_section(session: Session) -> None:
        session.names["suite"] = section

    data = home.parent / "data"
    if not data.exists():
        write_weave(data, more_records(3))
    given: dict[str, Any] = {"model": "copy", "judge": "constant/5", **settings}
    return weft.evaluate("weave", data=data, home=home, on_start=name_section, **given)


def card(home: Path) -> ScoreCard:
    journal = open_journal(home)
    try:
        return build_score_card(journal)
    finally:
        journal.close()


def test_rows_of_other_samples_or_options_are_told(tmp_path: Path):
    home = tmp_path / "home"
    run(home, "weave")
    run(home, "weave", model="tabletop/tiny")
    assert card(home).notes == ()
    run(home, "weave", limit=1)
    (note,) = card(home).notes
    assert note.startswith("weave: its runs differ in limit (") and note in card(home).scores.note
    run(home, "weave", history="none")
    assert any("differ in history (" in note for note in card(home).notes)


def test_a_row_of_several_versions_of_one_model_is_told(tmp_path: Path):
    home = tmp_path / "home"
    run(home, "first", model=Ours("1000"))
    run(home, "second", model=Ours("1000"), history="none")
    assert card(home).notes == ()
    run(home, "first", model=Ours("2000"))
    assert card(home).notes == ("ours: its runs are of several versions (first; second): run the suite again for one.",)


def test_the_card_has_what_was_run_last_even_if_it_was_run_before(tmp_path: Path):
    home = tmp_path / "home"
    first = run(home, "weave", judge="constant/5")
    second = run(home, "weave", judge="constant/10")
    assert card(home).runs == {"copy": {"weave": second.id}}
    run(home, "weave", judge="constant/5")
    assert card(home).runs == {"copy": {"weave": first.id}}
