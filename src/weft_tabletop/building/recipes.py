"""`tabletop-fusion`, `tabletop-recall`, `tabletop-sequence` and their mixture `tabletop-100k`: the recipes of WEAVE's
pathways with short prompts, since tabletop models read what a question is about, not its words; and with the sidecar by
which the exact judge knows every reference."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from weft.building.context import Context
from weft.building.draft import Draft, DraftTurn, Row
from weft.building.layouts.weave import TEST_FOLDER
from weft.building.recipe import Recipe, Step
from weft.types import Message, Reply, Request
from weft_recipes.comprehension import Comprehension
from weft_recipes.derive.recipe import Derive
from weft_recipes.fusion import Fusion
from weft_recipes.fusion_prompts import FusionPrompts
from weft_recipes.mixture import PAPER, Mixture
from weft_recipes.recall import Recall
from weft_recipes.recall_prompts import RecallPrompts
from weft_recipes.sequence import SequenceRecipe
from weft_recipes.sequence_prompts import SequencePrompts
from weft_tabletop.make.sidecar import stream_sidecar
from weft_tabletop.world.language import parse
from weft_tabletop.world.readings import read_image
from weft_tabletop.world.wordings import QUESTIONS


class ShortFusionPrompts(FusionPrompts):
    def script(self, number: int, theme: str, captions: Sequence[str], *, shown: int, count: int) -> str:
        return f"Write fusion script {number + 1}."

    def edit(self, number: int, kind: str) -> str:
        return f"Write an edit ({kind}) of Image #1 and its reverse, for dialogue {number + 1}."


class ShortComprehension(Comprehension):
    def question_prompt(self, number: int, kind: str) -> str:
        return f"Write a question about Image #1, for dialogue {number + 1}."

    def check_prompt(self, question: str, answer: str) -> str:
        return f"Check this answer about Image #1: {question} {answer}"


class ShortRecallPrompts(RecallPrompts):
    def script(self, number: int, subject: str, rounds: int) -> str:
        return f"Write recall script {number + 1} of {rounds} rounds."

    def check(self, script: str) -> str:
        return f"Check this script: {script}"


class ShortSequencePrompts(SequencePrompts):
    def script(self, number: int, subject: str, rounds: int, *, is_story: bool) -> str:
        return f"Write sequence script {number + 1} of {rounds} steps."

    def check(self, script: str) -> str:
        return f"Check this script: {script}"


class OnTabletop(Recipe):
    """What the pathways of the tabletop share: references for the exact judge, and models that answer dry runs."""

    def steps(self) -> Sequence[Step]:
        return (*super().steps(), Step("refer", add_references, "what the exact judge must know of each turn"))

    def write_extras(self, folder: Path, rows: Iterable[Row]) -> None:
        write_references(folder, rows)

    def stand_in(self, role: str, messages: tuple[Message, ...], request: Request) -> Reply | None:
        return None


class TabletopFusion(OnTabletop, Fusion):
    name = "tabletop-fusion"
    most_inputs = 2  # the oracle copies from one table to another
    title = "The fusion pathway on the tabletop, with exact references"
    prompts = ShortFusionPrompts()
    comprehension = ShortComprehension()


class TabletopRecall(OnTabletop, Recall):
    name = "tabletop-recall"
    title = "The recall pathway on the tabletop, with exact references"
    prompts = ShortRecallPrompts()
    comprehension = ShortComprehension()


class TabletopSequence(OnTabletop, SequenceRecipe):
    name = "tabletop-sequence"
    title = "The sequential pathway on the tabletop, with exact references"
    prompts = ShortSequencePrompts()
    comprehension = ShortComprehension()


class TabletopDerive(Derive):
    rewords = False  # the oracle writes about tables alone


class Tabletop100k(Mixture):
    name = "tabletop-100k"
    title = "All pathways on the tabletop, with chess and jigsaw dialogues, in the paper's proportions"
    pathways = {
        "fusion": TabletopFusion,
        "recall": TabletopRecall,
        "sequence": TabletopSequence,
        "derive": TabletopDerive,
    }
    version = "2." + ".".join(
        kind.version for kind in (TabletopFusion, TabletopRecall, TabletopSequence, TabletopDerive)
    )
    usual_weights = PAPER

    def write_extras(self, folder: Path, rows: Iterable[Row]) -> None:
        write_references(folder, (row for row in rows if row.group != "derive"))

    def stand_in(self, role: str, messages: tuple[Message, ...], request: Request) -> Reply | None:
        return None


async def add_references(row: Row, context: Context) -> Row:
    """Add to each turn what the sidecar says of it."""
    draft = row.draft
    if draft is None:
        return row
    turns = tuple(replace(turn, gold=find_reference(draft, turn, context)) for turn in draft.turns)
    return replace(row, draft=replace(draft, turns=turns))


def find_reference(draft: Draft, turn: DraftTurn, context: Context) -> dict[str, Any] | None:
    """Return what the sidecar says of a turn; None for one that is not in the tabletop's words."""
    request = parse(turn.text)
    if request is None:
        return None
    if request.kind in QUESTIONS or turn.makes is None:
        return {"kind": request.kind, "answer": turn.answer}
    base = int(request.images["image"].removeprefix("Image #"))
    before = read_image(draft.images[base - 1], context.blobs).scene
    after = read_image(draft.images[turn.makes - 1], context.blobs).scene
    points = [{"check": "done"}, *([{"check": "taken"}] if "source" in request.images else [])]
    return {"kind": request.kind, "args": dict(request.args), "points": points, "cells": before.changed_cells(after)}


def write_references(folder: Path, rows: Iterable[Row]) -> None:
    """Write the sidecar for the exact judge; that of the test part, which is a dataset of its own, once more there."""
    held_out: dict[str, Any] = {}

    def iterate() -> Iterator[tuple[str, Any]]:
        for row in rows:
            if row.draft is not None:
                name = str(row.number + 1)
                reference = {"turns": [turn.gold for turn in row.draft.turns]}
                if row.draft.split == "test":
                    held_out[name] = reference
                yield name, reference

    stream_sidecar(folder, iterate())
    if held_out:
        stream_sidecar(folder / TEST_FOLDER, held_out.items())
