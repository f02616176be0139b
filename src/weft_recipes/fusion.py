"""`weave-fusion`: several images become one, after some of them had to be restored first.

Inputs are drawn from captions, or are the user's originals. They are fused. Then inputs are edited in one of five
kinds, and each edit gets an instruction that undoes it. The dialogue shows the edited inputs: a turn restores each,
and the last one fuses what earlier turns restored, so that later turns need earlier images.
"""

import asyncio
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Annotated, Any, cast

from msgspec import Meta, Struct
from msgspec.structs import replace

from weft.building.context import Context
from weft.building.draft import Attempt, Draft, DraftTurn, Row
from weft.building.gates.choose import GateOptions, choose_gates, has_level
from weft.building.gates.embeddings import check_embedder
from weft.building.gates.rules import MARKER, find_draft_problem, find_text_problem
from weft.building.orders import Gate, Order, add_attempts, make_image
from weft.building.recipe import Dropped, Recipe, Role, Step
from weft.building.references import renumber_text
from weft.errors import UserError
from weft.types import Image, Message, Reply, Request, Text
from weft.untrusted import read_text_file
from weft_recipes.comprehension import Comprehension
from weft_recipes.fusion_prompts import (
    EDIT_SCHEMA,
    KINDS,
    THEMES,
    FusionPrompts,
    script_schema,
)
from weft_recipes.originals import IMAGE_SUFFIXES, digest_lines, digest_originals, list_originals, load_original
from weft_recipes.shares import WEAVE_100K, Images, check_images, choose_images
from weft_recipes.stand_ins import fusion_reply

Captions = Annotated[str, Meta(description="A text file with one caption a line, of which inputs are drawn.")]
Originals = Annotated[str, Meta(description="A folder of images that are used as inputs; nothing is drawn.")]
Inputs = Annotated[int, Meta(ge=2, le=3, description="Inputs of a dialogue.")]


class FusionOptions(GateOptions, frozen=True):
    captions: Captions = ""
    originals: Originals = ""
    inputs: Inputs = 2
    images: Annotated[
        Images,
        Meta(description="Images of a dialogue: fixed, by --inputs, or paper, in the shares of WEAVE-100k's Figure 4."),
    ] = "fixed"
    questions: Annotated[float, Meta(ge=0, le=1, description="Share of dialogues with a question at the end.")] = 0.2


class Edit(Struct, frozen=True):
    """One edit that was made of an image, and how it is undone."""

    before: Image
    after: Image
    reverse: str
    requirement: str  # of the image that undoes it


class Fusion(Recipe):
    published = WEAVE_100K
    name = "weave-fusion"
    version = "3"
    title = "Inputs are restored from their edits, then fused: WEAVE's fusion pathway"
    roles = (
        Role("writer", "text", "writes captions, the fusion, edits and what undoes them", sees=True),
        Role("painter", "image", "draws inputs; the second one those of the first that are weak", several=True),
        Role("editor", "image", "fuses and edits images", sees=True),
        Role("mender", "image", "edits again what the editor got wrong", optional=True, sees=True, stands_in="editor"),
        Role("checker", "text", "scores images; without one only rules and pixels decide", optional=True, sees=True),
    )
    Options = FusionOptions
    prompts = FusionPrompts()
    comprehension = Comprehension()
    most_inputs = 3

    def check(self, roles: Mapping[str, Sequence[str]]) -> None:
        options = self.options
        check_embedder(options.embedder)
        check_images(options.images, "inputs", options.inputs, FusionOptions().inputs)
        if options.captions and options.originals:
            raise UserError("--captions and --originals: give one of the two")
        needed = self.most_inputs if options.images == "paper" else options.inputs
        if options.captions and len(self._captions) < needed:
            raise UserError(f"{options.captions} has {len(self._captions)} captions, and needs {needed}")
        if options.originals and len(self._originals) < needed:
            raise UserError(
                f"{options.originals} has {len(self._originals)} images ({', '.join(IMAGE_SUFFIXES)}), "
                f"and needs {needed}"
            )

    @cached_property
    def _captions(self) -> list[str]:
        file = Path(self.options.captions)
        try:
            lines = read_text_file(file).splitlines()
        except UserError as error:
            raise UserError(f"--captions {error}") from None
        return list(dict.fromkeys(line.strip() for line in lines if line.strip()))

    @cached_property
    def _originals(self) -> list[Path]:
        return list_originals(Path(self.options.originals))

    def source_digest(self) -> str:
        if self.options.originals:
            return digest_originals(self._originals)
        return digest_lines(self._captions) if self.options.captions else ""

    def seed(self, number: int) -> Row:
        rng = Random(f"{self.name} {number}")
        count, edits = self.count_inputs(number)
        facts: dict[str, Any] = {
            "theme": rng.choice(THEMES),
            "kinds": [[rng.choice(KINDS) for _ in range(index, edits, count)] for index in range(count)],
            "asks": rng.random() < self.options.questions,
        }
        if self.options.captions:
            facts["captions"] = _take(self._captions, number, count)
        if self.options.originals:
            facts["originals"] = [str(file) for file in _take(self._originals, number, count)]
        return Row(number, facts)

    def count_inputs(self, number: int) -> tuple[int, int]:
        """Return how many inputs the dialogue of a seed has, and how many edits of them are undone: with the fusion,
        they are its images. Where there are more edits than inputs, some inputs are edited again."""
        if self.options.images != "paper":
            return self.options.inputs, self.options.inputs
        images = choose_images(number)
        inputs = min(self.most_inputs, max(2, images // 2))
        return inputs, images - 1 - inputs

    def steps(self) -> Sequence[Step]:
        return (
            Step("write", self.write, "captions of the inputs, and how they are fused", ("writer",)),
            Step("draw", self.draw, "the inputs, from their captions or from the folder", ("painter", "checker")),
            Step("fuse", self.fuse, "the inputs into one image", ("editor", "mender", "checker")),
            Step(
                "edit",
                self.edit,
                "inputs, each with the instruction that undoes it",
                ("writer", "editor", "mender", "checker"),
            ),
            Step("assemble", self.assemble, "edited inputs -> restored -> fused"),
            Step("ask", self.ask, "a question about one of the images, in some dialogues", ("writer", "checker")),
        )

    def gates(self, context: Context) -> list[Gate]:
        return choose_gates(self.options, has_checker=context.has("checker"))

    def makers(self, context: Context) -> list[str]:
        """Who edits: the editor, then the mender as often as it may."""
        mender = "mender" if context.has("mender") else "editor"
        return ["editor", *[mender] * self.options.mends]

    async def write(self, row: Row, context: Context) -> Row:
        count = len(row.facts["kinds"])
        images = await asyncio.gather(*(load_original(Path(path), context) for path in row.facts.get("originals", ())))
        captions: list[str] = row.facts.get("captions", [])
        prompt = self.prompts.script(row.number, row.facts["theme"], captions, shown=len(images), count=count)
        script = await context.write(
            "writer",
            prompt,
            script_schema(count),
            images=images,
            task="fusion script",
            material={"seed": (Text(str(row.number)),)},
        )
        if has_level(self.options, "rules"):
            _check_script(script, count)
        facts = {**row.facts, "script": {**script, "captions": captions or script["captions"]}}
        return replace(row, facts={**facts, "inputs": list(images)})

    async def draw(self, row: Row, context: Context) -> Row:
        if row.facts["inputs"]:
            return row
        makers = context.players("painter")
        orders = [
            Order(f"input {index}", caption) for index, caption in enumerate(row.facts["script"]["captions"], start=1)
        ]
        row, images = await self._make_all(row, orders, makers, context)
        if None in images:
            raise Dropped("an input could not be drawn", row=row)
        return replace(row, facts={**row.facts, "inputs": images})

    async def fuse(self, row: Row, context: Context) -> Row:
        order = Order("fusion", row.facts["script"]["fusion"], tuple(row.facts["inputs"]), "fuse")
        row, images = await self._make_all(row, [order], self.makers(context), context)
        if images[0] is None:
            raise Dropped("the fusion could not be made", row=row)
        return replace(row, facts={**row.facts, "fused": images[0]})

    async def edit(self, row: Row, context: Context) -> Row:
        inputs: list[Image] = row.facts["inputs"]
        results = await asyncio.gather(
            *(
                self._edit_input(row, index, kinds, image, context)
                for index, (kinds, image) in enumerate(zip(row.facts["kinds"], inputs, strict=True), start=1)
            )
        )
        chains: list[list[Edit]] = []
        attempts: list[Attempt] = []
        for chain, tried in results:
            chains.append(chain)
            attempts += tried
        row = add_attempts(row, attempts)
        if not any(chains):
            raise Dropped("no edit could be made", row=row)
        return replace(row, facts={**row.facts, "chains": chains})

    async def _edit_input(
        self, row: Row, index: int, kinds: Sequence[str], image: Image, context: Context
    ) -> tuple[list["Edit"], list[Attempt]]:
        """Edit an input as often as there are kinds, each time what the last edit made, until one cannot be made."""
        chain: list[Edit] = []
        attempts: list[Attempt] = []
        for depth, kind in enumerate(kinds):
            written = await self._write_edit(row, index, depth, kind, image, context)
            if written is None:
                break
            item = f"edit {index}" if not depth else f"edit {index}, step {depth + 1}"
            order = Order(item, written["instruction"], (image,), "edit")
            edited, tried = await make_image(order, self.makers(context), self.gates(context), context)
            attempts += tried
            if edited is None:
                break
            chain.append(Edit(image, edited, written["reverse"], written["requirement"]))
            image = edited
        return chain, attempts

    async def _write_edit(
        self, row: Row, index: int, depth: int, kind: str, image: Image, context: Context
    ) -> dict[str, Any] | None:
        """Return an edit of an image with its reverse; None if the writer's does not obey the rules."""
        seed = f"{row.number} {index}"
        if depth:
            seed += f" {depth}"
        try:
            edit = await context.write(
                "writer",
                self.prompts.edit(row.number, kind),
                EDIT_SCHEMA,
                images=[image],
                task="edit",
                material={"seed": (Text(seed),), "kind": (Text(kind),), "image": (image,)},
            )
        except Dropped:
            return None
        if has_level(self.options, "rules"):
            problems = [find_text_problem(edit[name], images=1, needs=(1,)) for name in ("instruction", "reverse")]
            if any(problems) or edit["requirement"].count(MARKER) != 1:
                return None
        return edit

    async def assemble(self, row: Row, context: Context) -> Row:
        draft = assemble_fusion(row.facts)
        if has_level(self.options, "rules"):
            problem = find_draft_problem(draft)
            if problem:
                raise Dropped(problem)
        return replace(row, draft=draft, facts={"asks": row.facts["asks"]})

    async def ask(self, row: Row, context: Context) -> Row:
        asks = row.facts["asks"]
        row = replace(row, facts={})
        return await self.comprehension.add(row, context, self.options) if asks else row

    async def _make_all(
        self, row: Row, orders: Sequence[Order], makers: Sequence[str], context: Context
    ) -> tuple[Row, list[Image | None]]:
        """Have several images made at once."""
        gates = self.gates(context)
        results = await asyncio.gather(*(make_image(order, makers, gates, context) for order in orders))
        attempts: list[Attempt] = []
        for _, tried in results:
            attempts += tried
        return add_attempts(row, attempts), [image for image, _ in results]

    def stand_in(self, role: str, messages: tuple[Message, ...], request: Request) -> Reply | None:
        return fusion_reply(request)


def assemble_fusion(facts: Mapping[str, Any]) -> Draft:
    """Return the dialogue: images that come first are inputs as their last edit left them; each turn undoes an edit."""
    inputs = cast(list[Image], facts["inputs"])
    chains = cast(list[list[Edit]], facts["chains"])
    shown = [chain[-1].after if chain else image for chain, image in zip(chains, inputs, strict=True)]
    images = list(shown)
    places: dict[int, int] = {}  # number among the inputs -> number in the dialogue
    turns: list[DraftTurn] = []
    for index, chain in enumerate(chains, start=1):
        places[index] = index
        for edit in reversed(chain):
            before = places[index]
            images.append(edit.before)
            places[index] = len(images)
            source = "Image" if before > len(shown) else "GT"
            turns.append(
                DraftTurn(
                    renumber_text(edit.reverse, {1: before}),
                    "reverse",
                    len(images),
                    key_points={f"{source} #{before}": edit.requirement},
                )
            )
    images.append(facts["fused"])
    points: dict[str, str] = {}
    for point in facts["script"]["points"]:
        number = places[point["image"]]
        source = "Image" if number > len(shown) else "GT"
        points[f"{source} #{number}"] = point["requirement"]
    turns.append(DraftTurn(renumber_text(facts["script"]["fusion"], places), "fuse", len(images), key_points=points))
    return Draft("fusion", tuple(images), tuple(turns))


def _check_script(script: Mapping[str, Any], count: int) -> None:
    """Raise Dropped for a script that breaks a rule."""
    problem = find_text_problem(script["fusion"], images=count, needs=tuple(range(1, count + 1)))
    if problem:
        raise Dropped(problem, script["fusion"])
    captions = [str(caption).strip().lower() for caption in script["captions"]]
    if "" in captions or len(set(captions)) < count:
        raise Dropped("two inputs are the same, or one is empty")
    compared = [point["image"] for point in script["points"]]
    if len(set(compared)) < len(compared):
        raise Dropped("two key points compare with one image", script["fusion"])
    for point in script["points"]:
        if point["image"] > count or point["requirement"].count(MARKER) != 1:
            raise Dropped("a key point's image marker is missing, or its image is", point["requirement"])


def _take(items: Sequence[Any], number: int, count: int) -> list[Any]:
    """Return the items of one seed: the next ones each time, and other company each time round."""
    start = number * count
    rounds = start // len(items)
    chosen: list[Any] = []
    for index in range(count):
        place = (start + index * (1 + rounds)) % len(items)
        while items[place] in chosen:
            place = (place + 1) % len(items)
        chosen.append(items[place])
    return chosen
