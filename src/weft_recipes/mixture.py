"""`weave-100k`: all pathways of WEAVE's training data in one build, in the paper's proportions or in others.

    weft build weave-100k --seeds 100000 --writer M --painter M,M --editor M --checker M --out DIR
    weft build weave-100k --mix fusion=1,recall=1,sequence=1,derive=1 ...

A seed's number decides its pathway, so a build that is extended keeps its proportions. What a pathway drops is missing
from them: `weft build status` and `weft data stats weave-100k` say how they came out.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property, partial
from random import Random
from typing import Annotated, Any

from msgspec import Meta
from msgspec.structs import asdict, fields

from weft.benchmarks.weave.training_names import TABLE_5
from weft.building.context import Context
from weft.building.draft import Row
from weft.building.recipe import Recipe, Role, Step
from weft.errors import UserError
from weft.types import Message, Reply, Request
from weft_recipes.derive.recipe import Derive
from weft_recipes.fusion import Captions, Fusion, Inputs, Originals
from weft_recipes.originals import digest_lines
from weft_recipes.recall import Recall
from weft_recipes.sequence import SequenceOptions, SequenceRecipe

PATHWAYS: Mapping[str, type[Recipe]] = {
    "fusion": Fusion,
    "recall": Recall,
    "sequence": SequenceRecipe,
    "derive": Derive,
}
DOMAINS = {  # of Table 5, by pathway
    "fusion": ("Multi-image Fusion",),
    "recall": ("Recall",),
    "sequence": ("Edit",),
    "derive": ("Visual Jigsaw", "Chess Game"),
}
PAPER = {pathway: sum(sum(TABLE_5[domain].values()) for domain in domains) for pathway, domains in DOMAINS.items()}
StepWork = Callable[[Row, Context], Awaitable[Row]]


class MixtureOptions(SequenceOptions, frozen=True):
    captions: Captions = ""
    originals: Originals = ""
    inputs: Inputs = 2
    mix: Annotated[
        str,
        Meta(description="Weights of the pathways, such as fusion=3,recall=1; empty: those of the paper's Table 5."),
    ] = ""


class Weave100k(Recipe):
    name = "weave-100k"
    version = "1." + ".".join(kind.version for kind in PATHWAYS.values())
    title = "All pathways of WEAVE's training data, in the paper's proportions"
    roles = (
        Role("writer", "text", "writes captions, scripts, edits, questions and rewordings", sees=True),
        Role("painter", "image", "draws; of several the best image stays", sees=True, several=True),
        Role("editor", "image", "fuses and edits images", sees=True),
        Role("mender", "image", "makes again what others got wrong", optional=True, sees=True, stands_in="editor"),
        Role("checker", "text", "filters scripts and scores images", optional=True, sees=True),
    )
    Options = MixtureOptions

    @cached_property
    def weights(self) -> dict[str, float]:
        """The weight of each pathway. Raises UserError for a mix that is none."""
        if not self.options.mix:
            return {name: float(count) for name, count in PAPER.items()}
        weights: dict[str, float] = {}
        for entry in self.options.mix.split(","):
            name, _, value = entry.strip().partition("=")
            if name not in PATHWAYS:
                raise UserError(f"--mix {entry}: there is no pathway {name!r}; there is {', '.join(PATHWAYS)}")
            try:
                weights[name] = float(value)
            except ValueError:
                raise UserError(f"--mix {entry}: give a weight, such as {name}=1") from None
            if not 0 <= weights[name] < float("inf"):
                raise UserError(f"--mix {entry}: a weight is a number from 0")
        if not 0 < sum(weights.values()) < float("inf"):
            raise UserError(f"--mix {self.options.mix}: no pathway has a weight, or they are too large")
        return weights

    @cached_property
    def recipes(self) -> dict[str, Recipe]:
        """The recipes that are mixed, each with those of the options that it has."""
        given = asdict(self.options)
        recipes: dict[str, Recipe] = {}
        for name, weight in self.weights.items():
            if weight:
                kind = PATHWAYS[name]
                own = {field.name: given[field.name] for field in fields(kind.Options) if field.name in given}
                recipes[name] = kind(kind.Options(**own))
        return recipes

    def check(self, roles: Mapping[str, Sequence[str]]) -> None:
        for recipe in self.recipes.values():
            recipe.check(roles)

    def source_digest(self) -> str:
        return digest_lines([digest for recipe in self.recipes.values() if (digest := recipe.source_digest())])

    def find_pathway(self, number: int) -> str:
        """Return the pathway of a seed."""
        names = list(self.recipes)
        return Random(f"{self.name} {number}").choices(names, [self.weights[name] for name in names])[0]

    def seed(self, number: int) -> Row:
        return self.recipes[self.find_pathway(number)].seed(number)

    def steps(self) -> Sequence[Step]:
        steps: list[Step] = []
        for name, recipe in self.recipes.items():
            for step in recipe.steps():
                work = partial(self._work, name, step.work)
                steps.append(Step(f"{name}: {step.name}", work, step.about, step.roles))
        return steps

    async def _work(self, pathway: str, work: StepWork, row: Row, context: Context) -> Row:
        """Do a step for a row of its pathway; other rows pass."""
        if self.find_pathway(row.number) != pathway:
            return row
        return await work(row, context)

    def stand_in(self, role: str, messages: tuple[Message, ...], request: Request) -> Reply | None:
        recipe: Any = self.recipes[self.find_pathway(int(request.turn_ref.sample))]
        return recipe.stand_in(role, messages, request)
