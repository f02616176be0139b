"""Every image and sentence of a dialogue knows its call, its model and its terms, whatever recipe made it."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pil

from building.papers_models import PapersModels
from building.test_pathways import build, request
from weft.building.build import run_build
from weft.building.draft import Draft, Origin, Row
from weft.building.export import export
from weft.building.manifest import read_manifest
from weft.building.parts import read_rows
from weft.building.provenance import Origins, find_words
from weft.building.request import BuildRequest
from weft.building.terms import spread_terms
from weft.errors import UserError
from weft.types import Image, Reply, Text
from weft.workspace import open_journal

TABLETOP = {
    "writer": "tabletop/oracle",
    "painter": "tabletop/oracle",
    "editor": "tabletop/oracle",
    "checker": "tabletop/exact",
}


def sentences(row: Row) -> Iterator[tuple[str, Origin]]:
    """Each sentence of a dialogue with its origin."""
    assert row.draft is not None and row.provenance is not None
    for turn, words in zip(row.draft.turns, row.provenance.turns, strict=True):
        yield turn.text, words["text"]
        if turn.makes is None:
            yield turn.answer, words["answer"]
        for name, text in turn.key_points.items():
            yield text, words[name]


def images(row: Row) -> Iterator[tuple[Image, Origin]]:
    assert row.draft is not None and row.provenance is not None
    yield from zip(row.draft.images, row.provenance.images, strict=True)


@pytest.mark.parametrize("recipe", ["weave-fusion", "weave-recall", "weave-sequence"])
def test_what_models_made_leads_to_the_very_call_that_has_it(tmp_path: Path, recipe: str):
    _, rows = build(recipe, tmp_path, PapersModels(returns_input=0.2), seeds=6, options={"questions": 1.0})
    journal = open_journal(tmp_path)
    seen = 0
    for row in (row for row in rows if row.draft is not None):
        for image, origin in images(row):
            assert image in find_call(journal, origin.call).parts
            assert origin.role.partition("-")[0] in ("painter", "editor", "mender")
            seen += 1
        for text, origin in sentences(row):
            assert origin.role == "writer"
            written = json.loads(strip_fence(find_call(journal, origin.call).text))
            assert find_words(text) in find_words(json.dumps(written, ensure_ascii=False))
    journal.close()
    assert seen > 10


def find_call(journal: Any, key: str) -> Reply:
    found = journal.find_reply(key, "", 0)
    assert found is not None
    return found[1]


def strip_fence(text: str) -> str:
    return text.removeprefix("```json").removesuffix("```").strip()


def test_what_a_program_draws_and_says_is_the_programs(tmp_path: Path):
    asyncio.run(run_build(BuildRequest("weave-derive", tmp_path, {}, 4, options={"side": 128})))
    for row in read_rows(tmp_path):
        assert all(origin == Origin() for _, origin in (*images(row), *sentences(row)))


def test_puzzles_of_a_users_images_come_from_their_files_and_export_asks_for_their_terms(tmp_path: Path):
    folder = tmp_path / "mine"
    folder.mkdir()
    Pil.effect_noise((256, 256), 90).convert("RGB").save(folder / "noise.png")
    out = tmp_path / "out"
    options = {"side": 128, "domains": "jigsaw", "originals": str(folder)}
    asyncio.run(run_build(BuildRequest("weave-derive", out, {}, 2, options=options)))
    for row in read_rows(out):
        assert {origin for _, origin in images(row)} == {Origin(file="noise.png")}
        assert {origin for _, origin in sentences(row)} == {Origin()}
    with pytest.raises(UserError, match="the terms of files are unknown"):
        export(out, "weave", tmp_path / "copy")
    asyncio.run(run_build(BuildRequest("weave-derive", out, {}, 2, options=options, terms={"files": "CC0-1.0"})))
    export(out, "weave", tmp_path / "copy")
    lines = [json.loads(line) for line in (tmp_path / "copy" / "provenance.jsonl").read_text().splitlines()]
    assert all(image["file"] == "noise.png" and image["terms"] == "CC0-1.0" for one in lines for image in one["images"])


def test_an_export_refuses_what_nobody_stated_the_terms_of(tmp_path: Path):
    out = tmp_path / "out"
    models = PapersModels()

    async def work(**more: Any) -> None:
        async with models.up():
            await run_build(request("weave-fusion", out, models, 3, **more))

    asyncio.run(work())
    with pytest.raises(
        UserError, match=r"the terms of editor \(openai-chat/editor\), painter .*, writer .* are unknown"
    ):
        export(out, "parquet", tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
    assert export(out, "parquet", tmp_path / "copy", accept_unknown_terms=True) == 3
    stated = {"writer": "by their terms", "painter": "Apache-2.0", "editor": "Apache-2.0"}
    manifest = read_manifest(out)
    assert manifest.known_terms["program"] == "Apache-2.0" and "checker" not in manifest.known_terms
    with pytest.raises(UserError, match="the terms of checker"):
        export(out, "pairs", tmp_path / "pairs")

    async def again() -> None:
        async with models.up():
            same = request("weave-fusion", out, models, 3, terms=stated)
            await run_build(same)

    models.url = ""
    with pytest.raises(UserError, match="another build"):  # another address is another model
        asyncio.run(again())


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({"drawer": "CC0"}, "there is no such role; there is writer, painter, editor, mender, checker, files, program"),
        ({"painter": " "}, "give one line"),
        ({"painter": "two\nlines"}, "give one line"),
    ],
)
def test_terms_of_nobody_are_one_line(tmp_path: Path, terms: dict[str, str], message: str):
    with pytest.raises(UserError, match="--terms") as caught:
        asyncio.run(run_build(BuildRequest("tabletop-recall", tmp_path, TABLETOP, 1, terms=terms)))
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_the_terms_of_a_role_are_those_of_all_who_play_it_unless_they_have_their_own():
    models = {
        "painter": {"model": "a"},
        "painter-2": {"model": "b"},
        "writer": {"model": "c"},
        "mender": {"model": "a"},
    }
    assert spread_terms({"painter": "A", "painter-2": "B"}, models) == {"painter": "A", "painter-2": "B", "mender": "A"}
    assert spread_terms({"painter": "A", "files": "C", "mender": "M"}, models) == {
        "painter": "A",
        "painter-2": "A",
        "files": "C",
        "mender": "M",
    }


def test_of_two_calls_with_one_sentence_it_is_not_chance_which_counts():
    first, second = (Reply("answered", (Text("As in the first image."),), keys=(key,)) for key in ("a", "b"))
    for replies in ((first, second), (second, first)):
        origins = Origins()
        for reply in replies:
            origins.add_reply("writer", reply)
            origins.add_object("writer", reply, {"text": reply.text})
        assert origins.of_text("As in the first image.") == Origin("writer", "a")


def test_a_sentence_of_the_program_around_a_models_words_is_the_models():
    origins = Origins()
    reply = Reply("answered", (Text('{"name": "an old oak on a hill"}'),), keys=("k",))
    origins.add_object("writer", reply, {"name": "an old oak on a hill", "also": ["oak"]})
    assert origins.of_text("Draw An old oak on a hill in winter.") == Origin("writer", "k")
    assert origins.of_text("Draw an oak tree.") == Origin()  # too short to tell
    assert origins.of_text("an old oak on a") == Origin("writer", "k"), "a part of what a model wrote"
    assert origins.of_text("oak") == Origin("writer", "k")
    assert origins.of_text("") == Origin()


def test_numbers_of_images_do_not_change_whose_sentence_it_is():
    origins = Origins()
    origins.add_object("writer", Reply("answered", (), keys=("k",)), {"text": "Paint the cup of Image #1 red."})
    assert origins.of_text("Paint the cup of Image #12 red.") == Origin("writer", "k")


def test_of_two_calls_with_one_image_the_chosen_one_counts(tmp_path: Path):
    roles = {**TABLETOP, "painter": "tabletop/oracle,tabletop/oracle"}
    asyncio.run(run_build(BuildRequest("tabletop-recall", tmp_path, roles, 3)))
    for row in read_rows(tmp_path):
        chosen = {(one.role, one.key) for one in row.attempts if one.chosen}
        assert isinstance(row.draft, Draft)
        assert {(origin.role, origin.call) for _, origin in images(row)} <= chosen
