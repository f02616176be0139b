"""Benchmarks of a user's own that lie cost their own run, never the home or the command; each member that has done harm."""

import random
from pathlib import Path
from typing import Any

import pytest

import weft
from fuzz.lies import ATTRIBUTES, METHODS, OBJECTS, tell_lie
from weft.benchmarks.weave import Weave
from weft.errors import UserError, WeftError


@pytest.mark.parametrize("member", [*METHODS, *ATTRIBUTES, *OBJECTS])
def test_a_lie_is_told_in_one_line_or_scored_around(member: str, toy: Path, tmp_path: Path):
    assert tell_lie(member, random.Random(f"{member} 1"), toy, tmp_path / "home")


def test_a_version_that_is_no_text_is_refused_before_it_is_stored(toy: Path, tmp_path: Path):
    ends: dict[str, Any] = {"data": toy, "model": "copy", "judge": "constant/5", "home": tmp_path / "home"}
    weft.evaluate("weave", **ends)

    class Numbered(Weave):
        version: Any = 3

    with pytest.raises(UserError, match="Numbered cannot be used: version is 3: a short text is expected"):
        weft.evaluate(Numbered, **ends)
    assert weft.load("last", home=tmp_path / "home").record.state == "finished", "the home can still be read"


@pytest.mark.parametrize("member", ["questions", "tables", "headline", "merge_variants", "metrics_for"])
def test_a_generator_that_never_ends_is_given_up(member: str, toy: Path, tmp_path: Path):
    def endless(self: Weave, *arguments: Any) -> Any:
        while True:
            yield from getattr(super(Endless, self), member)(*arguments)

    Endless: Any = type("Endless", (Weave,), {member: endless})
    options: dict[str, Any] = {"data": toy, "model": "copy", "judge": "constant/5", "home": tmp_path / "home"}
    if member == "questions":
        run = weft.evaluate(Endless, **options)
        assert all("does it ever end?" in verdict.reason for verdict in run.verdicts if verdict.by != "failure")
        return
    with pytest.raises(WeftError, match="do they ever end|fewer than 10,000"):
        weft.evaluate(Endless, **options).report("md")


def test_tables_that_end_the_process_are_no_success(toy: Path, tmp_path: Path):
    class Leaving(Weave):
        def tables(self, runs: Any) -> Any:
            raise SystemExit(0)

    run = weft.evaluate(Leaving, data=toy, model="copy", judge="constant/5", home=tmp_path / "home")
    with pytest.raises(WeftError, match="its tables: SystemExit: 0"):
        run.report("md")
