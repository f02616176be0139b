"""`weave-derive`: alternatives are imagined from one image, compared, and the best one is chosen.

Chess positions and jigsaw puzzles are drawn by a program, so that every image and every answer is exact and no model is
needed. A writer may reword the requests; a rewording that loses a square, a piece or an image is not used.
"""

import asyncio
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Annotated, Any, Literal, cast

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace
from PIL import Image as Pillow

from weft.building.context import Context
from weft.building.draft import Row
from weft.building.gates.rules import find_draft_problem, find_text_problem
from weft.building.recipe import Dropped, Recipe, Role, Step
from weft.errors import ImageError, UserError
from weft.store.images import MAX_BYTES, decode, flatten, make_upright
from weft.types import Message, Reply, Request, Text, find_mentions
from weft.untrusted import read_file
from weft_recipes.derive.chess_board import choose_style, draw_board
from weft_recipes.derive.chess_dialogues import plan_chess
from weft_recipes.derive.jigsaw import NoPuzzle, make_puzzle, plan_jigsaw
from weft_recipes.derive.plan import DialoguePlan, PlannedTurn, to_draft
from weft_recipes.derive.puzzle_images import draw_subject
from weft_recipes.originals import IMAGE_SUFFIXES, digest_originals, list_originals
from weft_recipes.shares import DOMAIN, WEAVE_100K, choose

DOMAINS = {"chess": 2196, "jigsaw": 1286}  # dialogues of WEAVE-100k, Table 5
MAX_SUBJECTS = 20  # that are drawn in search of one that makes a puzzle
REWORD = """Here are the requests of a dialogue about images, one a line:

{requests}

Write each again in `requests`, in the same order, as another user might write it: other sentences, the same meaning. \
Keep every name of an image (such as Image #1), of a square (such as e4), of a side and of a piece, and every option's \
letter, exactly as they are. Add nothing, and leave nothing out."""


class DeriveOptions(Struct, frozen=True):
    domains: Annotated[
        Literal["both", "chess", "jigsaw"], Meta(description="What the dialogues are about; both as in WEAVE-100k.")
    ] = "both"
    alternatives: Annotated[
        int, Meta(ge=0, le=4, description="Images to compare, from 2; 0: three or four by chance.")
    ] = 0
    originals: Annotated[str, Meta(description="A folder of images for the puzzles; without one they are drawn.")] = ""
    side: Annotated[int, Meta(ge=128, le=2048, description="Pixels of a board or a puzzle's image.")] = 512


class Derive(Recipe):
    published = WEAVE_100K
    name = "weave-derive"
    version = "2"
    title = "Alternatives are imagined and compared: WEAVE's chess and jigsaw dialogues"
    roles = (
        Role("writer", "text", "rewords the requests; without one they are as the program writes them", optional=True),
    )
    Options = DeriveOptions
    rewords = True  # whether a writer is asked to

    def check(self, roles: Mapping[str, Sequence[str]]) -> None:
        if self.options.alternatives == 1:
            raise UserError("--alternatives 1: nothing can be compared; give 2 to 4, or 0 for three or four")
        if self.options.originals and not self._originals:
            raise UserError(f"--originals {self.options.originals}: it has no image ({', '.join(IMAGE_SUFFIXES)})")

    @cached_property
    def _originals(self) -> list[Path]:
        return list_originals(Path(self.options.originals))

    def source_digest(self) -> str:
        return digest_originals(self._originals) if self.options.originals else ""

    def seed(self, number: int) -> Row:
        rng = Random(f"{self.name} {number}")
        domains = DOMAINS if self.options.domains == "both" else {self.options.domains: 1}
        is_chess = choose(number, domains, DOMAIN) == "chess"
        facts: dict[str, Any] = {
            "domain": "chess" if is_chess else "jigsaw",
            "alternatives": self.options.alternatives or rng.choice((3, 4)),
        }
        if not is_chess and self.options.originals:
            facts["original"] = str(self._originals[number % len(self._originals)])
        return Row(number, facts)

    def steps(self) -> Sequence[Step]:
        return (
            Step("draw", self.draw, "a position or a puzzle, its alternatives, and the question that compares them"),
            Step("reword", self.reword, "the requests, if there is a writer", ("writer",)),
            Step("assemble", self.assemble, "input -> alternatives -> comparison -> what follows from the best"),
        )

    async def draw(self, row: Row, context: Context) -> Row:
        make = _make_chess if row.facts["domain"] == "chess" else _make_jigsaw
        rng = Random(f"{self.name} {row.number} {row.facts['domain']}")
        plan, drawn = await asyncio.to_thread(make, rng, row.facts, self.options.side)
        images = [await asyncio.to_thread(context.blobs.put_pil, image, durable=False) for image in drawn]
        if "original" in row.facts:
            context.origins.add_file(Path(row.facts["original"]).name, images)
        return replace(row, facts={"plan": plan, "images": images})

    async def reword(self, row: Row, context: Context) -> Row:
        plan: DialoguePlan = row.facts["plan"]
        texts = [turn.text for turn in plan.turns]
        # the question that compares stays: an answer is exact for its very words
        open_turns = [index for index, turn in enumerate(plan.turns) if turn.kind != "compare"]
        if not self.rewords or not context.has("writer"):
            return replace(row, facts={**row.facts, "texts": texts})
        requests = [texts[index] for index in open_turns]
        listed = "\n".join(f"{number}. {text}" for number, text in enumerate(requests, start=1))
        counts = dict(row.counts)
        try:
            written = await context.write(
                "writer",
                REWORD.format(requests=listed),
                _schema(len(requests)),
                task="reword requests",
                material={"requests": tuple(Text(text) for text in requests)},
            )
        except Dropped:
            counts["rewordings refused"] = len(requests)
            return replace(row, facts={**row.facts, "texts": texts}, counts=counts)
        for index, text in zip(open_turns, cast(list[str], written["requests"]), strict=True):
            result = "rewordings refused"
            if keeps_meaning(plan.turns[index], text, len(row.facts["images"])):
                texts[index] = text
                result = "requests reworded"
            counts[result] = counts.get(result, 0) + 1
        return replace(row, facts={**row.facts, "texts": texts}, counts=counts)

    async def assemble(self, row: Row, context: Context) -> Row:
        draft = to_draft(row.facts["plan"], row.facts["images"], row.facts["texts"])
        problem = find_draft_problem(draft)
        if problem:
            raise Dropped(problem)
        return replace(row, draft=draft, facts={})

    def stand_in(self, role: str, messages: tuple[Message, ...], request: Request) -> Reply | None:
        if request.question is None:
            return None
        requests = [part.text for part in request.question.material["requests"] if isinstance(part, Text)]
        return Reply("answered", (Text(msgspec.json.encode({"requests": requests}).decode()),))


def keeps_meaning(turn: PlannedTurn, text: str, images: int) -> bool:
    """Return whether a rewording has the same images in it, every word that it must keep, and the order of some."""
    if find_text_problem(text, images=images):
        return False
    if sorted(set(find_mentions(turn.text))) != sorted(set(find_mentions(text))):
        return False
    lowered = text.lower()
    places = [lowered.find(word.lower()) for word in turn.order]
    return all(word.lower() in lowered for word in turn.words) and places == sorted(places)


def _make_chess(rng: Random, facts: Mapping[str, Any], side: int) -> tuple[DialoguePlan, list[Pillow.Image]]:
    planned = plan_chess(rng, facts["alternatives"])
    style = choose_style(rng, side)
    return planned.plan, [draw_board(position, style) for position in planned.positions]


def _make_jigsaw(rng: Random, facts: Mapping[str, Any], side: int) -> tuple[DialoguePlan, list[Pillow.Image]]:
    """Return a puzzle's dialogue and its images. Raises Dropped for an original of which none can be made."""
    if "original" in facts:
        try:
            puzzle = make_puzzle(_read_square(Path(facts["original"]), side), rng, facts["alternatives"])
        except NoPuzzle as error:
            raise Dropped("no puzzle can be made of an original", f"{facts['original']}: {error}") from None
        return plan_jigsaw(puzzle), [puzzle.shown, *puzzle.filled]
    for _ in range(MAX_SUBJECTS):
        try:
            puzzle = make_puzzle(draw_subject(rng, side), rng, facts["alternatives"])
        except NoPuzzle:
            continue
        return plan_jigsaw(puzzle), [puzzle.shown, *puzzle.filled]
    raise Dropped("no puzzle was found")


def _read_square(file: Path, side: int) -> Pillow.Image:
    """Return the middle of an original as a square."""
    try:
        image = flatten(make_upright(decode(read_file(file, MAX_BYTES, ImageError))))
    except (ImageError, OSError) as error:
        raise Dropped("an original cannot be read", f"{file}: {error}") from None
    edge = min(image.size)
    left, top = (image.width - edge) // 2, (image.height - edge) // 2
    return image.crop((left, top, left + edge, top + edge)).resize((side, side), Pillow.Resampling.LANCZOS)


def _schema(count: int) -> dict[str, Any]:
    requests = {"type": "array", "minItems": count, "maxItems": count, "items": {"type": "string"}}
    return {
        "type": "object",
        "properties": {"requests": requests},
        "required": ["requests"],
        "additionalProperties": False,
    }
