"""What planner and visualizer are trained on, and how much: recipes. Nothing here needs torch. `memory_recipes.py` has
those of models that are to remember."""

from typing import Any

import msgspec
from msgspec import Struct

from weft.errors import UserError
from weft.training.mix import Mix, Source, parse_mix
from weft_tabletop.weaver.tasks import IMAGES
from weft_tabletop.weaver.world import TableWorld, find_world

DRAWN = "drawn "  # before the name of a kind of images, as a source of a joint mix
STAGES = ("planner", "visualizer", "joint")
KINDS_OF = {  # the parts of a mix, as the paper names them, and the kinds of rows that they stand for
    "und": {"words": 0.5, "image": 0.5},
    "t2i": {"draw": 1.0},
    "i2i": {"edit": 0.7, "copy": 0.3},
    "doc": {"build": 0.5, "film": 0.5},
}


class Amount(Struct, frozen=True):
    """How much a stage trains unless told otherwise."""

    steps: int
    batch: int
    rate: float
    rows: int  # of each kind


AMOUNTS = {  # the full world wants a GPU; a stage in the micro world takes a core less than a minute
    ("micro", "planner"): Amount(800, 64, 3e-3, 6000),
    ("micro", "tuned planner"): Amount(150, 64, 1e-3, 6000),
    ("micro", "visualizer"): Amount(1000, 64, 3e-3, 6000),
    ("micro", "tuned visualizer"): Amount(300, 64, 1e-3, 6000),
    ("micro", "joint"): Amount(800, 64, 3e-3, 6000),
    ("full", "planner"): Amount(4000, 512, 1.5e-3, 200_000),
    ("full", "tuned planner"): Amount(250, 512, 5e-4, 200_000),
    ("full", "visualizer"): Amount(4500, 512, 1.5e-3, 200_000),
    ("full", "tuned visualizer"): Amount(600, 512, 5e-4, 200_000),
    ("full", "joint"): Amount(4000, 512, 1.5e-3, 200_000),
}


class StageRecipe(Struct, frozen=True):
    """Everything that decides the weights."""

    stage: str
    world: str = "full"
    mix: str = ""
    steps: int = 2000
    batch: int = 512
    rate: float = 1e-3
    seed: int = 0
    rows: int = 60_000  # of each kind
    every: int = 200
    rank: int = 0  # of the adapters; 0: all weights are trained


def plan_recipe(
    stage: str, world: str, mix: str, *, tuned: bool, seed: int = 0, rank: int = 0, **given: Any
) -> StageRecipe:
    """A recipe with the usual amount of training, but for what is `given`: steps, batch, rate, rows. Raises UserError
    for names that there are not, and for a mix that a stage cannot learn from."""
    if stage not in STAGES:
        raise UserError(f"--stage {stage}: there is {', '.join(STAGES)}")
    table = find_world(world)
    if tuned and stage == "joint":
        raise UserError("--start: both networks are trained from nothing when they are trained jointly")
    if rank and stage != "planner":
        raise UserError("--rank: only a planner is trained through adapters")
    if rank and not tuned:
        raise UserError("--rank: adapters need weights to adapt: give --start")
    amount = AMOUNTS[world, f"tuned {stage}" if tuned else stage]
    chosen: dict[str, Any] = {
        **msgspec.structs.asdict(amount),
        **{name: value for name, value in given.items() if value is not None},
    }
    every = max(1, int(chosen["steps"]) // 10)
    recipe = StageRecipe(stage=stage, world=world, mix=mix, seed=seed, rank=rank, every=every, **chosen)
    find_mix(recipe, table)
    return recipe


def find_mix(recipe: StageRecipe, world: TableWorld) -> Mix:
    """The mix of a recipe by kinds of rows."""
    if recipe.stage == "planner":
        return planner_mix(recipe.mix or "und", world, recipe.seed)
    if recipe.stage == "visualizer":
        return visualizer_mix(recipe.mix, recipe.seed)
    return joint_mix(recipe.mix or "5g1u", world, recipe.seed)


def parse_weaver_mix(text: str) -> dict[str, float]:
    """A mix by its parts: `und`, `5g1u`, `5g1u-no-documents`, or `und=3,t2i=5`."""
    name, _, rest = text.partition("-")
    if name.endswith("g1u") and name[:-3].isdigit() and int(name[:-3]) > 0 and rest in ("", "no-documents"):
        share = float(name[:-3])
        if rest:
            return {"und": 2.0, "t2i": share, "i2i": share}
        return {"und": 3.0, "t2i": share, "i2i": share, "doc": share}
    if "=" not in text and text not in KINDS_OF:
        raise UserError(
            f"--mix {text}: there is und, 1g1u, 3g1u, 5g1u, 5g1u-no-documents, and weights of "
            f"{', '.join(KINDS_OF)}, as in und=3,t2i=5"
        )
    return {source.data: source.weight for source in parse_mix(text, tuple(KINDS_OF)).sources}


def planner_mix(text: str, world: TableWorld, seed: int) -> Mix:
    """The mix by kinds of rows."""
    weights: dict[str, float] = {}
    for part, weight in parse_weaver_mix(text).items():
        kinds = {kind: share for kind, share in KINDS_OF[part].items() if part != "doc" or kind in world.documents}
        total = sum(kinds.values())
        weights |= {kind: weight * share / total for kind, share in kinds.items()}
    return Mix(tuple(Source(kind, weight) for kind, weight in weights.items()), seed)


def visualizer_mix(text: str, seed: int) -> Mix:
    """What of a mix is drawn: single images and those of documents are drawn from words, the others from images."""
    if not text:
        return Mix(tuple(Source(kind, weight) for kind, weight in zip(IMAGES, (1.0, 1.0, 0.5), strict=True)), seed)
    parts = parse_weaver_mix(text)
    weights = {"draw": parts.get("t2i", 0.0) + parts.get("doc", 0.0)}
    weights |= {kind: parts.get("i2i", 0.0) * share for kind, share in KINDS_OF["i2i"].items()}
    sources = [Source(kind, weight) for kind, weight in weights.items() if weight]
    if not sources:
        raise UserError(f"--mix {text}: nothing in it is drawn; a visualizer learns from t2i, i2i and doc")
    return Mix(tuple(sources), seed)


def joint_mix(text: str, world: TableWorld, seed: int) -> Mix:
    """Half of the rows are a planner's, half a visualizer's."""
    planner = planner_mix(text, world, seed)
    sources = [Source(one.data, share / 2) for one, share in zip(planner.sources, planner.shares(), strict=True)]
    visualizer = visualizer_mix("", seed)
    for one, share in zip(visualizer.sources, visualizer.shares(), strict=True):
        sources.append(Source(DRAWN + one.data, share / 2))
    return Mix(tuple(sources), seed)
