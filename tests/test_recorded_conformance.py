"""Weft's official rows beside what the papers' released scripts made of the same generated inputs, which is recorded in
conformance/recorded. `make conformance CHECKOUTS=DIR` records it anew."""

import importlib
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
sys.path.append(str(ROOT))  # conformance is no package that is installed

from conformance.recording import (  # noqa: E402
    FOLDER,
    SYSTEMS,
    Explained,
    Facts,
    Recording,
    as_recorded,
    compare,
    path_of,
    read_recording,
)

MAX_BYTES = 300_000  # of all recordings
ERRATA = (ROOT / "docs" / "reference" / "errata-differences.md").read_text()


@pytest.mark.parametrize("system", SYSTEMS)
def test_weft_makes_what_the_released_scripts_made(
    system: str, tmp_path: Path, record_property: Callable[[str, object], None]
):
    generated: Any = importlib.import_module(f"conformance.generated.{system}")
    found = compare(read_recording(system).facts, as_recorded(generated.weft_facts(tmp_path)), generated.EXPLAINED)
    record_property("conformance", f"{system}: {found.totals()}\n{found.table()}")
    assert not found.unexplained, f"{found.table()}\nnot explained: {len(found.unexplained)}"
    assert not found.unused, "what explains nothing is to go"
    assert all(row[3] for row in found.rows), "every part has facts"


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_explained_difference_is_an_entry_of_the_errata(system: str):
    generated: Any = importlib.import_module(f"conformance.generated.{system}")
    ids = {one.erratum for one in generated.EXPLAINED}
    assert ids <= set(re.findall(r'<a id="([\w-]+)"></a>', ERRATA))


def test_recordings_are_small_and_hold_facts_alone():
    """No text of a request, of a reply or of a script: keys and values are names, numbers and digests."""
    paths = [path_of(system) for system in SYSTEMS]
    assert sorted(FOLDER.iterdir()) == sorted(paths) and sum(path.stat().st_size for path in paths) < MAX_BYTES
    for path in paths:
        for part, facts in read_recording(path.stem).facts.items():
            strings = [text for text in json.dumps([part, facts]).split('"') if re.search("[a-z]", text)]
            assert all(len(re.findall(r"[a-z]{3,}", text)) <= 12 for text in strings), (path, part)


FACTS: Facts = {"scores": {"a": 1, "b": 2, "c": [1, 2, 3]}, "requests": {"x": "asked"}}


def test_a_difference_counts_and_is_shown():
    ours: Facts = {"scores": {"a": 1, "b": 3, "c": [1, 2, 4]}, "requests": {"y": "asked"}}
    found = compare(FACTS, ours)
    assert found.rows == [("scores", 3, 0, 5), ("requests", 0, 0, 2)]
    assert "  scores: b: released 2, weft 3" in found.table().splitlines() and len(found.unexplained) == 4


def test_a_reason_covers_only_what_it_says():
    ours: Facts = {"scores": {"b": 3, "c": [1, 2, 3]}, "requests": {"x": "asked"}}
    reason = Explained("why", "scores", released=2, weft=3)
    found = compare(FACTS, ours, [reason, Explained("other", "requests")])
    assert found.rows[0] == ("scores", 3, 1, 5) and [one.erratum for one in found.unused] == ["other"]
    assert found.unexplained == ["  scores: a: released 1, weft 'nothing'"]


def test_a_recording_is_read_as_it_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("conformance.recording.FOLDER", tmp_path)
    Recording("owner/name", "abc", FACTS).write(path_of("weave"))
    assert read_recording("weave") == Recording("owner/name", "abc", FACTS)


def test_a_checkout_that_is_missing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    record: Any = importlib.import_module("conformance.record")
    (tmp_path / "rover").mkdir()
    monkeypatch.setattr(sys, "argv", ["record", str(tmp_path)])
    before = [path.stat().st_mtime_ns for path in sorted(FOLDER.iterdir())]
    assert record.main() == 2, "there was nothing to compare"
    said = capsys.readouterr().out
    assert said.count("SKIPPED") == len(SYSTEMS) and "rover has no base_metric.py" in said
    assert [path.stat().st_mtime_ns for path in sorted(FOLDER.iterdir())] == before
