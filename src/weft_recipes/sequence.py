"""`weave-sequence`: steps that each need an image, follow from each other, and share a character that is known again.

Stories need people to look at them: they go to the test part of the dataset. Edits of several steps are training data.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Annotated, Any

from msgspec import Meta
from msgspec.structs import replace

from weft.building.context import Context, Schema
from weft.building.draft import Draft, Row
from weft.building.orders import Order
from weft.errors import UserError
from weft.types import Message, Reply, Request, find_mentions
from weft_recipes.categories import EDIT, SUBJECTS, choose_category
from weft_recipes.originals import IMAGE_SUFFIXES, digest_originals, list_originals, load_original
from weft_recipes.rounds import RoundsOptions, RoundsRecipe, find_round_problem
from weft_recipes.sequence_prompts import SequencePrompts, script_schema
from weft_recipes.stand_ins import sequence_reply

STYLED_SHARE = 0.5  # of the dialogues, if there are images of styles


class SequenceOptions(RoundsOptions, frozen=True):
    stories: Annotated[
        float, Meta(ge=0, le=1, description="Share of stories; they go to the test part, for people to check.")
    ] = 0.05
    styles: Annotated[
        str, Meta(description="A folder of images; half of the dialogues begin in the style of one of them.")
    ] = ""


class SequenceRecipe(RoundsRecipe):
    name = "weave-sequence"
    version = "2"
    title = "Steps that follow from each other, with a character that comes back: WEAVE's sequential pathway"
    Options = SequenceOptions
    prompts = SequencePrompts()
    script_task = "sequence script"
    script_about = "a script of steps that share a character"

    def check(self, roles: Mapping[str, Sequence[str]]) -> None:
        super().check(roles)
        if self.options.styles and not self._styles:
            raise UserError(f"--styles {self.options.styles}: it has no image ({', '.join(IMAGE_SUFFIXES)})")

    @cached_property
    def _styles(self) -> list[Path]:
        return list_originals(Path(self.options.styles), "--styles")

    def source_digest(self) -> str:
        return digest_originals(self._styles) if self.options.styles else ""

    def seed(self, number: int) -> Row:
        rng = Random(f"{self.name} {number}")
        facts: dict[str, Any] = {
            "category": choose_category(number, EDIT),
            "rounds": self.count_rounds(number),
            "is_story": rng.random() < self.options.stories,
            "asks": rng.random() < self.options.questions,
        }
        is_styled = rng.random() < STYLED_SHARE
        if self.options.styles and is_styled:
            facts["style"] = str(rng.choice(self._styles))
        return Row(number, facts)

    def script_prompt(self, row: Row) -> str:
        subject = SUBJECTS[row.facts["category"]]
        return self.prompts.script(row.number, subject, row.facts["rounds"], is_story=row.facts["is_story"])

    def check_prompt(self, script: str) -> str:
        return self.prompts.check(script)

    def script_schema(self, rounds: int) -> Schema:
        return script_schema(rounds)

    def find_problem(self, script: Mapping[str, Any]) -> str:
        return find_sequence_problem(script)

    async def first_order(self, row: Row, context: Context) -> Order:
        caption = row.facts["script"]["caption"]
        if "style" not in row.facts:
            return Order("image 1", caption)
        style = await load_original(Path(row.facts["style"]), context)
        return Order("image 1", self.prompts.in_style(caption), (style,))

    def finish(self, row: Row, draft: Draft) -> Draft:
        if row.facts["is_story"]:
            return replace(draft, domain="story", split="test")
        return replace(draft, subdomain=row.facts["category"])

    def stand_in(self, role: str, messages: tuple[Message, ...], request: Request) -> Reply | None:
        return sequence_reply(request)


def find_sequence_problem(script: Mapping[str, Any]) -> str:
    """Return what is wrong with a script, as far as rules can tell; empty if nothing is."""
    rounds: list[Mapping[str, Any]] = script["rounds"]
    problem = find_round_problem(rounds)
    if problem:
        return problem
    character = " ".join(str(script["character"]).lower().split())
    if not character or character not in " ".join(str(script["caption"]).lower().split()):
        return "the first image's caption does not have the character"
    named = sum(character in " ".join(one["instruction"].lower().split()) for one in rounds)
    if 2 * named < len(rounds):
        return "fewer than half of the steps name the character"
    if not any(_looks_back(one["instruction"], latest) for latest, one in enumerate(rounds, start=1)):
        return "every step sees the latest image alone"
    if any(not _is_linked(number, rounds) for number in range(2, len(rounds) + 1)):
        return "no later step needs the image of a step"
    return ""


def _looks_back(instruction: str, latest: int) -> bool:
    """Whether a step needs an image that is not the latest one."""
    return any(number < latest for number in find_mentions(instruction))


def _is_linked(number: int, rounds: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a later step needs Image #number. Image #number is made by step number - 1."""
    return any(number in find_mentions(one["instruction"]) for one in rounds[number - 1 :])
