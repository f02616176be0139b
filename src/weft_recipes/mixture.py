"""`weave-100k`: all pathways of WEAVE's training data in one build, in the paper's proportions or in others.

    weft build weave-100k --seeds 100000 --writer M --painter M,M --editor M --checker M --out DIR
    weft build weave-100k --mix fusion=1,recall=1,sequence=1,derive=1 ...

A seed's number decides its pathway, and its number among those of its pathway all else, evenly over the seeds: a build
that is extended keeps its proportions, and a pathway's dialogues are those of its own recipe. A dialogue that is
dropped is tried again with the same pathway and category, so that pathways that pass few scripts keep their share.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated

from msgspec import Meta
from msgspec.structs import asdict, fields, replace

from weft.benchmarks.weave.training_names import TABLE_5
from weft.building.draft import Row
from weft.building.recipe import Recipe, Role, Step
from weft.errors import UserError
from weft.types import Message, Reply, Request
from weft_recipes.derive.recipe import Derive
from weft_recipes.fusion import Captions, Fusion, Inputs, Originals
from weft_recipes.originals import digest_lines
from weft_recipes.recall import Recall
from weft_recipes.sequence import SequenceOptions, SequenceRecipe
from weft_recipes.shares import PATHWAY, WEAVE_100K, Images, choose_ranked

DOMAINS = {  # of Table 5, by pathway
    "fusion": ("Multi-image Fusion",),
    "recall": ("Recall",),
    "sequence": ("Edit",),
    "derive": ("Visual Jigsaw", "Chess Game"),
}
PAPER = {pathway: sum(sum(TABLE_5[domain].values()) for domain in domains) for pathway, domains in DOMAINS.items()}


class MixtureOptions(SequenceOptions, frozen=True):
    captions: Captions = ""
    originals: Originals = ""
    inputs: Inputs = 2
    images: Annotated[
        Images,
        Meta(description="Images of a dialogue: paper, in the shares of Figure 4, or fixed, by --rounds and --inputs."),
    ] = "paper"
    mix: Annotated[
        str,
        Meta(description="Weights of the pathways, such as fusion=3,recall=1; empty: those of the paper's Table 5."),
    ] = ""


class Mixture(Recipe):
    """Recipes that are mixed by weight. A subclass says which."""

    tries = 8
    published = WEAVE_100K
    roles = (
        Role("writer", "text", "writes captions, scripts, edits, questions and rewordings", sees=True),
        Role("painter", "image", "draws; of several the best image stays", sees=True, several=True),
        Role("editor", "image", "fuses and edits images", sees=True),
        Role("mender", "image", "makes again what others got wrong", optional=True, sees=True, stands_in="editor"),
        Role("checker", "text", "filters scripts and scores images", optional=True, sees=True),
    )
    Options = MixtureOptions
    pathways: Mapping[str, type[Recipe]] = {}
    usual_weights: Mapping[str, float] = {}

    @cached_property
    def weights(self) -> dict[str, float]:
        """The weight of each pathway. Raises UserError for a mix that is none."""
        if not self.options.mix:
            return dict(self.usual_weights)
        weights: dict[str, float] = {}
        for entry in self.options.mix.split(","):
            name, _, value = entry.strip().partition("=")
            if name not in self.pathways:
                raise UserError(f"--mix {entry}: there is no pathway {name!r}; there is {', '.join(self.pathways)}")
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
                kind = self.pathways[name]
                own = {field.name: given[field.name] for field in fields(kind.Options) if field.name in given}
                recipes[name] = kind(kind.Options(**own))
        return recipes

    def check(self, roles: Mapping[str, Sequence[str]]) -> None:
        for recipe in self.recipes.values():
            recipe.check(roles)

    def source_digest(self) -> str:
        return digest_lines([digest for recipe in self.recipes.values() if (digest := recipe.source_digest())])

    def find_pathway(self, number: int) -> tuple[str, int]:
        """Return the pathway of a seed, and its number among the seeds of that pathway."""
        return choose_ranked(number, {name: self.weights[name] for name in self.recipes}, PATHWAY)

    def seed(self, number: int) -> Row:
        pathway, rank = self.find_pathway(number)
        return replace(self.recipes[pathway].seed(rank), group=pathway)

    def steps(self) -> Sequence[Step]:
        steps: list[Step] = []
        for name, recipe in self.recipes.items():
            steps += [replace(step, name=f"{name}: {step.name}", group=name) for step in recipe.steps()]
        return steps

    def stand_in(self, role: str, messages: tuple[Message, ...], request: Request) -> Reply | None:
        pathway, _ = self.find_pathway(int(request.turn_ref.sample))
        return self.recipes[pathway].stand_in(role, messages, request)


class Weave100k(Mixture):
    name = "weave-100k"
    title = "All pathways of WEAVE's training data, in the paper's proportions"
    pathways = {"fusion": Fusion, "recall": Recall, "sequence": SequenceRecipe, "derive": Derive}
    version = "3." + ".".join(kind.version for kind in (Fusion, Recall, SequenceRecipe, Derive))
    usual_weights = PAPER
