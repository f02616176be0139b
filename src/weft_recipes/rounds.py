"""What recipes share whose writer scripts rounds: each round changes an earlier image and makes the next one.

Most scripts fail the filter. The images of those that pass are made by all painters at once, and the best one stays;
where there are editors, they make all images but the first. An image that nobody could make leaves with every turn that
sees it.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from weft.building.context import Context, Schema
from weft.building.draft import Attempt, Draft, DraftTurn, Row
from weft.building.gates.choose import GateOptions, choose_gates, has_level
from weft.building.gates.embeddings import check_embedder
from weft.building.gates.rules import MARKER, find_draft_problem, find_text_problem
from weft.building.orders import Gate, Order, add_attempts, make_best_image, make_image
from weft.building.recipe import Dropped, Recipe, Role, Step
from weft.building.references import drop, renumber_text
from weft.errors import UserError
from weft.types import Image, Text, find_mentions
from weft_recipes.comprehension import Comprehension
from weft_recipes.schemas import CHECK_SCHEMA
from weft_recipes.shares import WEAVE_100K, Images, check_images, choose_images


class RoundsOptions(GateOptions, frozen=True):
    rounds: Annotated[int, Meta(ge=2, le=7, description="Edits of a dialogue.")] = 4
    images: Annotated[
        Images,
        Meta(description="Images of a dialogue: fixed, by --rounds, or paper, in the shares of WEAVE-100k's Figure 4."),
    ] = "fixed"
    questions: Annotated[
        float, Meta(ge=0, le=1, description="Share of dialogues with a question about one of their images.")
    ] = 0.2


class RoundsRecipe(Recipe):
    """The steps. A subclass says what is scripted, which rules a script obeys, and what dialogue it becomes."""

    roles = (
        Role("writer", "text", "scripts the rounds"),
        Role("painter", "image", "draws and edits; of several the best image stays", sees=True, several=True),
        Role("editor", "image", "edits instead of the painters", optional=True, sees=True, several=True),
        Role("mender", "image", "makes again what all others got wrong", optional=True, sees=True),
        Role("checker", "text", "filters scripts and scores images", optional=True, sees=True),
    )
    Options = RoundsOptions
    published = WEAVE_100K
    script_task = "script"  # of the writer's calls, for writers that are programs
    script_about = "a script of rounds"
    comprehension = Comprehension()
    min_rounds = 2

    def check(self, roles: Mapping[str, Sequence[str]]) -> None:
        check_embedder(self.options.embedder)
        check_images(self.options.images, "rounds", self.options.rounds, RoundsOptions().rounds)
        if self.options.rounds < self.min_rounds:
            raise UserError(f"--rounds {self.options.rounds}: {self.name} needs {self.min_rounds} at least")

    def count_rounds(self, number: int) -> int:
        """Return how many rounds the dialogue of a seed has. Each makes an image, after the first."""
        if self.options.images == "paper":
            return choose_images(number) - 1
        return self.options.rounds

    def script_prompt(self, row: Row) -> str:
        """Return what the writer is asked."""
        raise NotImplementedError

    def check_prompt(self, script: str) -> str:
        """Return what the checker is asked about a script."""
        raise NotImplementedError

    def script_schema(self, rounds: int) -> Schema:
        """Return the schema of a script; it has a `caption` and `rounds`."""
        raise NotImplementedError

    def find_problem(self, script: Mapping[str, Any]) -> str:
        """Return what is wrong with a script, as far as rules can tell; empty if nothing is."""
        raise NotImplementedError

    def find_orphans(self, script: Mapping[str, Any], lost: Collection[int]) -> Collection[int]:
        """Return the rounds (from 1) that make no sense without the images (from 1) that were lost."""
        return ()

    def finish(self, row: Row, draft: Draft) -> Draft:
        """Return the dialogue with its domain; `draft` has lost what could not be made."""
        return draft

    def steps(self) -> Sequence[Step]:
        return (
            Step("write", self.write, self.script_about, ("writer",)),
            Step("filter", self.filter, "scripts whose rounds do not fit together are dropped", ("checker",)),
            Step("draw", self.draw, "the first image, by all painters", ("painter", "mender", "checker")),
            Step(
                "edit",
                self.edit,
                "one image for each round, by all painters or editors",
                ("painter", "editor", "mender", "checker"),
            ),
            Step("assemble", self.assemble, "what lost its images leaves, the rest is renumbered"),
            Step("ask", self.ask, "a question about one of the images, in some dialogues", ("writer", "checker")),
        )

    def gates(self, context: Context) -> list[Gate]:
        return choose_gates(self.options, has_checker=context.has("checker"))

    def makers(self, context: Context) -> list[str]:
        """Who makes the images of the rounds, all at once."""
        return context.players("editor") or context.players("painter")

    async def write(self, row: Row, context: Context) -> Row:
        rounds = row.facts["rounds"]
        script = await context.write(
            "writer",
            self.script_prompt(row),
            self.script_schema(rounds),
            task=self.script_task,
            material={"seed": (Text(str(row.number)),), "rounds": (Text(str(rounds)),)},
        )
        return replace(row, facts={**row.facts, "script": script})

    async def filter(self, row: Row, context: Context) -> Row:
        script = row.facts["script"]
        if has_level(self.options, "rules"):
            problem = self.find_problem(script)
            if problem:
                raise Dropped(problem)
        if has_level(self.options, "judge") and context.has("checker"):
            text = msgspec.json.format(msgspec.json.encode(script), indent=1).decode()
            verdict = await context.write(
                "checker",
                self.check_prompt(text),
                CHECK_SCHEMA,
                task="check script",
                material={"script": (Text(text),)},
            )
            if verdict["asked_score"] < self.options.least_score:
                raise Dropped("the checker found the script inconsistent", verdict["reasoning"])
        return row

    async def first_order(self, row: Row, context: Context) -> Order:
        """Return the order for the image with which the dialogue begins."""
        return Order("image 1", row.facts["script"]["caption"])

    async def draw(self, row: Row, context: Context) -> Row:
        order = await self.first_order(row, context)
        image, attempts = await self._make(order, context.players("painter"), context)
        row = add_attempts(row, attempts)
        if image is None:
            raise Dropped("the first image could not be drawn", row=row)
        return replace(row, facts={**row.facts, "images": [image]})

    async def edit(self, row: Row, context: Context) -> Row:
        images: list[Image | None] = list(row.facts["images"])
        all_attempts: list[Attempt] = []
        for index, one in enumerate(row.facts["script"]["rounds"], start=2):
            order = _build_order(f"image {index}", one["instruction"], images)
            if order is None:  # it is about an image that could not be made
                images.append(None)
                continue
            image, attempts = await self._make(order, self.makers(context), context)
            all_attempts += attempts
            images.append(image)
        row = add_attempts(row, all_attempts)
        lost = images.count(None)
        return replace(row, facts={**row.facts, "images": images}, counts={**row.counts, "turns lost": lost})

    async def assemble(self, row: Row, context: Context) -> Row:
        draft = assemble_rounds(row.facts, self.find_orphans)
        if draft is None:
            raise Dropped("fewer than two turns are left")
        if has_level(self.options, "rules"):
            problem = find_draft_problem(draft)
            if problem:
                raise Dropped(problem)
        return replace(row, draft=self.finish(row, draft), facts={"asks": row.facts.get("asks", False)})

    async def ask(self, row: Row, context: Context) -> Row:
        asks = row.facts["asks"]
        row = replace(row, facts={})
        return await self.comprehension.add(row, context, self.options) if asks else row

    async def _make(self, order: Order, makers: Sequence[str], context: Context) -> tuple[Image | None, list[Attempt]]:
        """Have all makers make an image; if none of theirs is good enough, the mender."""
        gates = self.gates(context)
        image, attempts = await make_best_image(order, makers, gates, context)
        must_mend = image is None or context.is_flagging
        if must_mend and context.has("mender") and self.options.mends:
            menders = ["mender"] * self.options.mends
            image, mended = await make_image(order, menders, gates, context, after=attempts)
            attempts += mended
        return image, attempts


def find_round_problem(rounds: Sequence[Mapping[str, Any]]) -> str:
    """Return what is wrong with a script's rounds, whatever they are about; empty if nothing is."""
    for index, one in enumerate(rounds, start=1):
        compared = [point["image"] for point in one["points"]]
        if len(set(compared)) < len(compared):
            return "two key points of a round compare with one image"
        problem = find_text_problem(one["instruction"], images=index)
        if problem:
            return problem
        if not find_mentions(one["instruction"]):
            return "a round does not say which image it changes"
        for point in one["points"]:
            if point["image"] > index or point["requirement"].count(MARKER) != 1:
                return "a key point's image marker is missing, or its image is"
    return ""


def assemble_rounds(
    facts: Mapping[str, Any], find_orphans: Callable[[Mapping[str, Any], Collection[int]], Collection[int]]
) -> Draft | None:
    """Return the dialogue without the images that could not be made; None if fewer than two turns are left."""
    images: Sequence[Image | None] = facts["images"]
    first = images[0]
    assert first is not None
    lost = [number for number, image in enumerate(images, start=1) if image is None]
    turns: list[DraftTurn] = []
    for number, one in enumerate(facts["script"]["rounds"], start=2):
        points: dict[str, str] = {}
        for point in one["points"]:
            source = "GT" if point["image"] == 1 else "Image"
            points[f"{source} #{point['image']}"] = point["requirement"]
        turns.append(DraftTurn(one["instruction"], one["kind"], number, key_points=points))
    orphans = [number - 1 for number in find_orphans(facts["script"], lost)]
    return drop(Draft("edit", tuple(image or first for image in images), tuple(turns)), lost, orphans)


def _build_order(item: str, instruction: str, images: Sequence[Image | None]) -> Order | None:
    """Return the order of a round with the images that it mentions, numbered from 1; None if one of them is lost."""
    mentioned = sorted(set(find_mentions(instruction)))
    shown: list[Image] = []
    for number in mentioned:
        image = images[number - 1] if 1 <= number <= len(images) else None
        if image is None:
            return None
        shown.append(image)
    numbers = {number: place for place, number in enumerate(mentioned, start=1)}
    kind = "edit" if len(shown) == 1 else "fuse"
    return Order(item, renumber_text(instruction, numbers), tuple(shown), kind)
