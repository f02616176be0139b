"""The pathways on the tabletop: with a checker that is never wrong, every kept dialogue is wholly right."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from weft.building.build import run_build
from weft.building.draft import Row
from weft.building.parts import read_rows
from weft.building.request import BuildRequest
from weft.store.blobs import Blobs
from weft_tabletop.building.check_build import find_faults, is_right_attempt
from weft_tabletop.exact.building import check_script

FUSION = {
    "writer": "tabletop/oracle",
    "painter": "tabletop/oracle",
    "editor": "tabletop/faulty",
    "mender": "tabletop/oracle",
    "checker": "tabletop/exact",
}
RECALL = {"writer": "tabletop/oracle", "painter": "tabletop/faulty,tabletop/oracle", "checker": "tabletop/exact"}


def build(out: Path, recipe: str, models: dict[str, str], seeds: int = 15, **more: Any) -> list[Row]:
    outcome = asyncio.run(run_build(BuildRequest(recipe, out, models, seeds, **more)))
    assert outcome.reason is None and not outcome.failed
    return list(read_rows(out))


@pytest.mark.parametrize(
    ("recipe", "models", "options"),
    [
        ("tabletop-fusion", FUSION, {"editor.rate": "0.4"}),
        ("tabletop-recall", RECALL, {"painter.rate": "0.4", "painter-2.error": "0.2"}),
        ("tabletop-sequence", RECALL, {"painter.rate": "0.4", "painter-2.error": "0.2"}),
    ],
)
def test_with_an_exact_checker_every_kept_dialogue_is_wholly_right(
    tmp_path: Path, recipe: str, models: dict[str, str], options: dict[str, str]
):
    rows = build(tmp_path, recipe, models, model_options=options)
    blobs = Blobs(tmp_path / "blobs")
    kept = [row for row in rows if row.draft is not None]
    assert len(kept) >= 8
    assert not [fault for row in kept if row.draft for fault in find_faults(row.draft, blobs)]
    attempts = [attempt for row in rows for attempt in row.attempts]
    assert all(is_right_attempt(attempt, blobs) for attempt in attempts if attempt.chosen)
    rejected = [attempt for attempt in attempts if not attempt.passed]
    assert rejected and not any(is_right_attempt(attempt, blobs) for attempt in rejected)


def test_without_gates_faults_get_through_and_mending_raises_the_yield(tmp_path: Path):
    options = {"editor.rate": "0.4"}
    ungated = build(tmp_path / "ungated", "tabletop-fusion", FUSION, options={"gates": "none"}, model_options=options)
    blobs = Blobs(tmp_path / "ungated" / "blobs")
    assert all(row.outcome == "kept" for row in ungated)
    assert any(find_faults(row.draft, blobs) for row in ungated if row.draft)
    unmended = build(tmp_path / "unmended", "tabletop-fusion", FUSION, options={"mends": 0}, model_options=options)
    mended = build(tmp_path / "mended", "tabletop-fusion", FUSION, model_options=options)
    kept = [sum(row.outcome == "kept" for row in rows) for rows in (unmended, mended)]
    assert kept[0] < kept[1] == 15


def test_an_editor_that_mends_itself_keeps_its_settings_and_draws_anew(tmp_path: Path):
    alone = {role: model for role, model in FUSION.items() if role != "mender"}
    rows = build(tmp_path, "tabletop-fusion", alone, seeds=30, model_options={"editor.rate": "0.5"})
    mended = [attempt for row in rows for attempt in row.attempts if attempt.role == "mender"]
    assert 0.25 < sum(attempt.chosen for attempt in mended) / len(mended) < 0.75
    assert len(mended) > 20


def test_two_painters_that_are_one_model_draw_twice_and_the_mender_once_more(tmp_path: Path):
    models = {**RECALL, "painter": "tabletop/faulty,tabletop/faulty", "mender": "tabletop/faulty"}
    options = {f"{player}.rate": "0.5" for player in ("painter", "painter-2", "mender")}
    rows = build(tmp_path, "tabletop-recall", models, seeds=8, model_options=options)
    keys = [attempt.key for row in rows for attempt in row.attempts]
    assert len(set(keys)) == len(keys) and any(attempt.role == "mender" for row in rows for attempt in row.attempts)


def test_editors_edit_instead_of_the_painters_and_the_better_image_stays(tmp_path: Path):
    models = {**RECALL, "painter": "tabletop/oracle", "editor": "tabletop/faulty,tabletop/oracle"}
    rows = build(tmp_path, "tabletop-recall", models, seeds=8, model_options={"editor.rate": "0.5"})
    makers = {(attempt.item == "image 1", attempt.role) for row in rows for attempt in row.attempts}
    assert makers == {(True, "painter"), (False, "editor"), (False, "editor-2")}
    chosen = [attempt.role for row in rows for attempt in row.attempts if attempt.chosen]
    assert chosen.count("editor") >= 8 and chosen.count("editor-2") >= 8
    assert all(row.outcome == "kept" for row in rows)


def test_scripts_that_do_not_fit_together_are_filtered(tmp_path: Path):
    models = {**RECALL, "painter": "tabletop/oracle"}
    rows = build(tmp_path, "tabletop-recall", models, seeds=30, model_options={"writer.error": "0.75"})
    reasons = {(row.step, row.reason) for row in rows if row.outcome == "dropped"}
    assert reasons == {("filter", "the checker found the script inconsistent")}
    kept = [row for row in rows if row.draft is not None]
    assert 3 <= len(kept) <= 13
    blobs = Blobs(tmp_path / "blobs")
    assert not [fault for row in kept if row.draft for fault in find_faults(row.draft, blobs)]


def test_what_nobody_could_draw_leaves_with_what_sees_it(tmp_path: Path):
    models = {"writer": "tabletop/oracle", "painter": "tabletop/faulty", "checker": "tabletop/exact"}
    rows = build(tmp_path, "tabletop-recall", models, seeds=40, model_options={"painter.rate": "0.15"})
    blobs = Blobs(tmp_path / "blobs")
    shorter = [row.draft for row in rows if row.draft and len(row.draft.turns) < 4]
    assert shorter and {draft.domain for draft in shorter} <= {"edit", "recall"}
    assert not [fault for draft in shorter for fault in find_faults(draft, blobs)]
    assert {row.reason for row in rows if row.outcome == "dropped"} <= {
        "fewer than two turns are left",
        "the first image could not be drawn",
        "two of its images are the same",
    }


def test_attempts_at_one_item_are_kept_with_their_verdicts(tmp_path: Path):
    rows = build(tmp_path, "tabletop-fusion", FUSION, model_options={"editor.rate": "1.0"})
    for row in rows:
        by_item: dict[str, list[str]] = {}
        for attempt in row.attempts:
            by_item.setdefault(attempt.item, []).append(f"{attempt.role} {attempt.chosen}")
        for item, tried in by_item.items():
            if tried[0] == "editor False":
                assert tried[1:] == ["mender True"], (item, tried)


def test_the_exact_checker_finds_a_script_that_restores_nothing():
    caption = "Draw a white table with a red star at a1, a blue ring at b2."
    rounds: list[dict[str, Any]] = [
        {"kind": "remove", "instruction": "Remove the red star at a1 from Image #1.", "points": []},
        {"kind": "background", "instruction": "Give Image #2 a mint background.", "points": []},
        {"kind": "restore", "instruction": "Put back into Image #3 what it lost since Image #1.", "points": []},
    ]
    script: dict[str, Any] = {"caption": caption, "rounds": rounds, "removed_in": 1, "restored_in": 3}
    assert check_script(msgspec.json.encode(script).decode())["asked_score"] == 10
    rounds[1]["instruction"] = "Add a red star at a1 in Image #2."
    assert check_script(msgspec.json.encode(script).decode()) == {
        "reasoning": "round 3 changes nothing",
        "asked_score": 0,
    }
