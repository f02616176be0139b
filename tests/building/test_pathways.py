"""WEAVE's pathways against servers that behave as the papers' models do: slow, refusing, drawing the input back."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from building.papers_models import PapersModels, recall_script, sequence_script
from weft.benchmarks.weave.data import load
from weft.building.build import BuildOutcome, forecast_build, run_build
from weft.building.draft import Row
from weft.building.gates.rules import find_draft_problem
from weft.building.parts import read_rows
from weft.building.recipe import load_recipe, open_recipe
from weft.building.request import BuildRequest
from weft.building.status import read_status
from weft.calls.sending import RetryPolicy
from weft.errors import BudgetReached
from weft.store.blobs import Blobs
from weft.types import Image
from weft_recipes.categories import EDIT
from weft_recipes.fusion import Edit as FusionEdit
from weft_recipes.fusion import assemble_fusion
from weft_recipes.recall import Recall, find_script_problem
from weft_recipes.rounds import assemble_rounds
from weft_recipes.sequence import find_sequence_problem
from weft_recipes.shares import choose_images

QUICK = RetryPolicy(base=0.001)
ROLES = {
    "weave-fusion": ("writer", "painter", "editor", "checker"),
    "weave-recall": ("writer", "painter", "editor", "checker"),
    "weave-sequence": ("writer", "painter", "editor", "checker"),
}


def request(recipe: str, out: Path, models: PapersModels, seeds: int = 24, **more: Any) -> BuildRequest:
    roles = {role: models.name(role) for role in ("writer", "painter", "editor", "checker")}
    if recipe in ("weave-recall", "weave-sequence"):  # two painters, of which the better image stays
        roles = {**roles, "painter": f"{models.name('painter')},{models.name('editor')}"}
        del roles["editor"]
    # these servers write the same words again and again
    return BuildRequest(recipe, out, roles, seeds, retry_policy=QUICK, duplicates=(), **more)


def build(recipe: str, out: Path, models: PapersModels, **more: Any) -> tuple[BuildOutcome, list[Row]]:
    async def work() -> BuildOutcome:
        async with models.up():
            return await run_build(request(recipe, out, models, **more))

    return asyncio.run(work()), list(read_rows(out))


@pytest.mark.parametrize("recipe", ["weave-fusion", "weave-recall"])
def test_a_pathway_is_built_end_to_end(tmp_path: Path, recipe: str):
    models = PapersModels(writes_badly=0.1, returns_input=0.3, refuses=0.03)
    outcome, rows = build(recipe, tmp_path, models)
    assert outcome.reason is None and outcome.failed == 0 and len(rows) == 24
    kept = [row for row in rows if row.draft is not None]
    assert len(kept) >= 10
    returned = [verdict for row in rows for one in row.attempts for verdict in one.verdicts if not verdict.passed]
    assert returned and {verdict.gate for verdict in returned} == {"unedited"}
    chosen = [one for row in kept for one in row.attempts if one.chosen]
    assert all(one.image is not None and one.image not in one.shown for one in chosen)
    dropped = {row.reason for row in rows if row.outcome == "dropped"}
    assert dropped <= {
        "the writer refused",
        "the writer's reply cannot be used",
        "the checker refused",
        "an input could not be drawn",
        "the fusion could not be made",
        "no edit could be made",
        "the first image could not be drawn",
        "fewer than two turns are left",
    }
    samples = load(tmp_path, Blobs(tmp_path / "read")).load_all()
    assert len(samples.samples) == len(kept) and not samples.problems


def test_fusion_shows_edited_inputs_and_later_turns_need_earlier_images(tmp_path: Path):
    _, rows = build("weave-fusion", tmp_path, PapersModels(), seeds=3, options={"questions": 1.0})
    for row in rows:
        assert row.draft is not None and row.draft.domain == "fusion" and len(row.draft.images) == 5
        assert [(turn.kind, turn.makes) for turn in row.draft.turns] == [
            ("reverse", 3),
            ("reverse", 4),
            ("fuse", 5),
            ("question", None),
        ]
        assert [turn.text for turn in row.draft.turns[:3]] == [
            "In Image #1, make the tall object on the left red again.",
            "In Image #2, make the tall object on the left red again.",
            "Put the vases of Image #3 and Image #4 side by side.",
        ]
        assert re.fullmatch(r"What stands in the middle of Image #[1-5]\?", row.draft.turns[3].text)
        assert [*row.draft.turns[2].key_points] == ["Image #3", "Image #4"]


def test_recall_restores_from_an_image_far_back(tmp_path: Path):
    _, rows = build("weave-recall", tmp_path, PapersModels(), seeds=3, options={"questions": 0.0})
    for row in rows:
        assert row.draft is not None and row.draft.domain == "recall"
        assert row.draft.turns[-1].text == "In Image #4, bring back the cup that Image #1 has."
        assert dict(row.draft.turns[-1].key_points) == {
            "Image #4": "All else is as in <image>.",
            "GT #1": "The cup is that of <image>.",
        }
        by_item = {one.item: [other.role for other in row.attempts if other.item == one.item] for one in row.attempts}
        assert all(roles == ["painter", "painter-2"] for roles in by_item.values())


def test_what_was_not_removed_is_not_wanted_back():
    script = recall_script("")
    image = Image("a" * 64, "image/png", 8, 8, 100)
    images = [replace(image, digest=f"{number:064d}") for number in range(5)]
    whole = assemble_rounds({"script": script, "images": images}, find_orphans)
    assert whole is not None and [turn.kind for turn in whole.turns] == ["remove", "colour", "add", "restore"]
    for round_ in script["rounds"][1:3]:
        round_["instruction"] = round_["instruction"].replace("Image #2", "Image #1").replace("Image #3", "Image #1")
        round_["points"] = [{**round_["points"][0], "image": 1}]
    assert find_script_problem(script) == "the restoring round does not follow from the removing one"
    left = assemble_rounds({"script": script, "images": [images[0], None, *images[2:]]}, find_orphans)
    assert left is not None and [turn.kind for turn in left.turns] == ["colour", "add"]


def find_orphans(script: Any, lost: Any) -> Any:
    return Recall(Recall.Options()).find_orphans(script, lost)


def test_two_key_points_about_one_image_are_refused():
    script = sequence_script("")
    script["rounds"][1]["points"] *= 2
    assert find_sequence_problem(script) == "two key points of a round compare with one image"


def test_a_sequence_has_steps_that_share_a_character_and_stories_are_for_the_test_part(tmp_path: Path):
    _, rows = build("weave-sequence", tmp_path, PapersModels(), seeds=8, options={"questions": 0.0, "stories": 0.4})
    drafts = [row.draft for row in rows if row.draft is not None]
    assert len(drafts) == 8
    assert {(draft.domain, draft.split) for draft in drafts} == {("edit", "train"), ("story", "test")}
    for draft in drafts:
        assert draft.turns[-1].text == "The red fox of Image #1 comes back to the place of Image #4."
        assert (draft.subdomain in EDIT) == (draft.split == "train")
    records = [
        *json.loads((tmp_path / "train.json").read_text()),
        *json.loads((tmp_path / "test/test.json").read_text()),
    ]
    named = {record["idx"]: record.get("sub_domain") for record in records}
    assert named == {row.number + 1: row.draft.subdomain or None for row in rows if row.draft}


def test_half_of_the_sequences_begin_in_the_style_of_an_image_that_is_no_part_of_them(tmp_path: Path):
    from PIL import Image as Pil

    folder = tmp_path / "styles"
    folder.mkdir()
    Pil.effect_noise((80, 80), 60).convert("RGB").save(folder / "brush.png")
    _, rows = build("weave-sequence", tmp_path / "out", PapersModels(), seeds=8, options={"styles": str(folder)})
    style = Blobs(tmp_path / "read").put_file(folder / "brush.png")
    styled = [row for row in rows if any(image.size == style.size for one in row.attempts for image in one.shown)]
    assert 0 < len(styled) < 8
    for row in styled:
        assert row.attempts[0].prompt.startswith("Draw the following in the style of Image #1")
        assert row.draft and row.attempts[0].shown[0] not in row.draft.images


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({}, ""),
        ({"character": ""}, "the first image's caption does not have the character"),
        ({"caption": "A wolf."}, "the first image's caption does not have the character"),
        (
            {0: "The wolf of Image #1 runs.", 1: "It leaves the place of Image #2."},
            "fewer than half of the steps name the character",
        ),
        ({3: "The red fox of Image #4 sleeps there."}, "every step sees the latest image alone"),
        (
            {2: "The wolf of Image #1 enters the place.", 3: "The red fox of Image #2 joins Image #4."},
            "no later step needs",
        ),
        ({2: "The red fox of Image #9 is gone."}, "a request mentions an image that is not there"),
    ],
)
def test_scripts_of_sequences_obey_rules(change: dict[Any, str], problem: str):
    script = sequence_script("")
    for key, text in change.items():
        if isinstance(key, int):
            script["rounds"][key]["instruction"] = text
        else:
            script[key] = text
    found = find_sequence_problem(script)
    assert found.startswith(problem) if problem else not found


def test_originals_are_used_as_they_are(tmp_path: Path):
    from PIL import Image as Pil

    folder = tmp_path / "photos"
    folder.mkdir()
    for number in range(5):
        Pil.effect_noise((80, 80), 60 + 20 * number).convert("RGB").save(folder / f"{number}.jpg")
    models = PapersModels()
    outcome, rows = build("weave-fusion", tmp_path / "out", models, seeds=4, options={"originals": str(folder)})
    assert outcome.reason is None and models.asked["painter"] == 0
    inputs = [row.draft.images[2:4] for row in rows if row.draft is not None]
    assert len(inputs) == 4 and all(image.media_type == "image/jpeg" for pair in inputs for image in pair)
    assert len({tuple(image.digest for image in pair) for pair in inputs}) == 4


def test_the_budget_is_never_passed_and_the_same_command_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    prices = [f'[prices."{role}"]\nin = 1000\nout = 1000\nimage = 0.1\n' for role in ROLES["weave-fusion"]]
    (tmp_path / "weft.toml").write_text("".join(prices))
    models = PapersModels()
    options = {"model_options": {f"{role}.max_tokens": "60" for role in ("writer", "painter", "editor", "checker")}}

    async def work() -> tuple[BuildOutcome, BuildOutcome]:
        async with models.up():
            some = await run_build(request("weave-fusion", tmp_path / "out", models, seeds=6, budget=14.0, **options))
            rest = await run_build(request("weave-fusion", tmp_path / "out", models, seeds=6, **options))
            return some, rest

    some, rest = asyncio.run(work())
    assert isinstance(some.reason, BudgetReached) and 0 < some.progress.cost <= 14.0
    assert rest.reason is None and rest.progress.outcomes["kept"] == 6
    status = read_status(tmp_path / "out")
    assert status.cost == pytest.approx(some.progress.cost + rest.progress.cost)
    assert status.cost_per_kept == pytest.approx((status.cost or 0) / 6)


def test_a_dry_run_after_a_trial_goes_by_what_its_seeds_cost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    prices = [f'[prices."{role}"]\nin = 100\nout = 100\nimage = 0.1\n' for role in ROLES["weave-recall"]]
    (tmp_path / "weft.toml").write_text("".join(prices))
    models = PapersModels(returns_input=0.3, refuses=0.05)

    async def work() -> None:
        async with models.up():
            await run_build(request("weave-recall", tmp_path / "out", models, seeds=6))
            cost = read_status(tmp_path / "out").cost
            measured = (await forecast_build(request("weave-recall", tmp_path / "out", models, seeds=10))).measured
            assert measured is not None and cost
            assert (measured.seeds, measured.left) == (6, 4)
            assert measured.rest == pytest.approx(cost / 6 * 4)

    asyncio.run(work())


def test_fusion_has_as_many_images_as_the_paper(tmp_path: Path):
    _, rows = build("weave-fusion", tmp_path, PapersModels(), seeds=14, options={"questions": 0.0, "images": "paper"})
    drafts = [row.draft for row in rows if row.draft is not None]
    assert [len(draft.images) for draft in drafts] == [choose_images(row.number) for row in rows if row.draft]
    assert {len(draft.images) for draft in drafts} >= {4, 5, 6, 7}
    for draft in drafts:
        made = [turn.makes for turn in draft.turns]
        inputs = len(draft.images) - len(made)
        assert made == [*range(inputs + 1, len(draft.images) + 1)] and draft.turns[-1].kind == "fuse"
        assert not find_draft_problem(draft)


def test_an_input_that_was_edited_twice_is_restored_in_two_turns(tmp_path: Path):
    recipe: Any = open_recipe(load_recipe("weave-fusion"), "weave-fusion", {"images": "paper"})
    recipe.most_inputs = 2
    image = Image("a" * 64, "image/png", 8, 8, 100)
    images = [replace(image, digest=f"{number:064d}") for number in range(5)]
    edit = FusionEdit(images[0], images[1], "In Image #1, paint it red again.", "Compared with <image>, it is red.")
    again = replace(edit, before=images[1], after=images[2], reverse="In Image #1, put the cup back.")
    script = {"fusion": "Put Image #1 beside Image #2.", "points": [{"image": 1, "requirement": "it is <image>'s"}]}
    facts = {"inputs": [images[0], images[3]], "chains": [[edit, again], []], "script": script, "fused": images[4]}
    draft = assemble_fusion(facts)
    assert [one.digest[-1] for one in draft.images] == ["2", "3", "1", "0", "4"]
    assert [(turn.text, turn.makes, *turn.key_points) for turn in draft.turns] == [
        ("In Image #1, put the cup back.", 3, "GT #1"),
        ("In Image #3, paint it red again.", 4, "Image #3"),
        ("Put Image #4 beside Image #2.", 5, "Image #4"),
    ]
    assert recipe.count_inputs(next(n for n in range(99) if choose_images(n) == 7)) == (2, 4)


@pytest.mark.parametrize("returns_input", [0.0, 0.3])
@pytest.mark.parametrize("recipe", ["weave-fusion", "weave-recall"])
def test_a_dry_run_says_what_is_called_if_all_is_right_and_at_most(tmp_path: Path, recipe: str, returns_input: float):
    models = PapersModels(returns_input=returns_input)

    async def work() -> dict[str, tuple[int, int]]:
        async with models.up():
            forecast = await forecast_build(request(recipe, tmp_path / "out", models, seeds=8))
            assert not (tmp_path / "out").exists() and not models.asked
            outcome = await run_build(request(recipe, tmp_path / "out", models, seeds=8))
            assert outcome.reason is None
            left = await forecast_build(request(recipe, tmp_path / "out", models, seeds=8))
            assert left.seeds == 0 and all(one.calls == (0, 0) for one in left.roles.values())
            return {role: one.calls for role, one in forecast.roles.items()}

    calls = asyncio.run(work())
    made = {total.role: total.calls for total in read_status(tmp_path / "out").calls}
    for role, (low, high) in calls.items():
        assert low <= high and made.get(role, 0) <= high, role
        assert returns_input or made.get(role, 0) == low, role
