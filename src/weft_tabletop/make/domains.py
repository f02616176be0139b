"""Which requests and questions make up a dialogue of each WEAVE domain and of each IMUG-Bench task on the tabletop."""

from collections.abc import Mapping

from msgspec import Struct


class RequestKinds(Struct, frozen=True):
    """The kinds of requests and of questions to draw from, and how many images a dialogue starts with."""

    kinds: tuple[str, ...]
    questions: tuple[str, ...]
    inputs: int = 1


WEAVE: Mapping[str, RequestKinds] = {
    "optics": RequestKinds(("mirror", "mirror", "recolour"), ("same", "what")),
    "geography": RequestKinds(("move", "background", "add"), ("what", "changed")),
    "astronomy": RequestKinds(("drift", "rotate"), ("what", "count")),
    "chemistry": RequestKinds(("recolour", "replace", "swap"), ("colour", "changed")),
    "physics": RequestKinds(("gravity", "drift", "move"), ("after", "what")),
    "biology": RequestKinds(("one more", "one less", "recolour"), ("count",)),
    "edit": RequestKinds(
        ("add", "remove", "replace", "recolour", "move", "swap", "background"),
        ("count", "changed", "fulfils", "chosen"),
    ),
    "recall": RequestKinds(("remove", "move", "background", "restore", "restore"), ("same", "changed", "fulfils")),
    "fusion": RequestKinds(("copy", "copy", "copy", "background"), ("what", "changed"), inputs=2),
    "story": RequestKinds(("draw", "add", "drift", "replace"), ("count", "which"), inputs=0),
    "spatial": RequestKinds(("rotate", "mirror", "swap"), ("what", "which")),
    "mathematics": RequestKinds(("one more", "one less", "pattern"), ("count", "which")),
    "chess_game": RequestKinds(("move", "swap", "remove"), ("what", "which")),
    "visual_jigsaw": RequestKinds(("copy", "swap", "rotate"), ("which", "what"), inputs=2),
    "minecraft": RequestKinds(("steps", "gravity", "add"), ("count", "what")),
    "maze": RequestKinds(("route", "route", "remove"), ("count", "chosen")),
}
MEMORY = RequestKinds(("remove", "add", "background", "recolour", "put back", "put back"), ("what",))

_ANY_QUESTION = ("count", "what", "colour", "among", "where")
IMUG: Mapping[tuple[str, str], RequestKinds] = {
    ("Color_Reasoning", "subtractive_color_mixing"): RequestKinds(
        ("recolour", "add any", "swap"), ("hue", "colour", "among")
    ),
    ("Botany", "natural_growth"): RequestKinds(("one more", "add any", "add"), ("among", "where", "count")),
    ("Stack_Simulation", "stack_word_formation"): RequestKinds(("steps", "gravity", "add"), ("what", "count", "place")),
    ("Apparel", "garment_replacement"): RequestKinds(("replace", "recolour", "background"), ("colour", "what")),
    ("Chemistry", "metal_displacement"): RequestKinds(("replace", "swap", "remove"), ("what", "among")),
    ("DIY", "gift_wrapping_logic"): RequestKinds(("background", "add", "pattern"), ("what", "where")),
    ("Interior_Design", "furniture_arrangement"): RequestKinds(("move", "add any", "swap"), ("place", "what", "where")),
    ("Physics", "state_change"): RequestKinds(("gravity", "drift", "move"), ("what", "place", "count")),
    ("Mirror_Reasoning", "mirror_action_editing"): RequestKinds(("mirror", "move", "add"), ("what", "place")),
    ("Geometric_Coloring", "grid_coloring"): RequestKinds(("recolour", "pattern", "replace"), ("colour", "among")),
    ("Damage_Repair", "relic_restoration"): RequestKinds(
        ("remove", "restore", "restore", "background"), ("count", "what")
    ),
    ("Storage", "elastic_storage"): RequestKinds(("copy", "move", "copy"), ("what", "among"), inputs=2),
    ("Mechanisms", "gear_meshing"): RequestKinds(("rotate", "mirror", "swap"), ("what", "place")),
    ("Weather", "cloud_dynamics"): RequestKinds(("drift", "background", "add any"), ("hue", "place", "count")),
    ("Paper_Crafting", "origami_sequential_logic"): RequestKinds(
        ("rotate", "copy", "mirror"), ("what", "among"), inputs=2
    ),
    ("Object_Inference", "daily_essentials"): RequestKinds(("draw any", "draw", "add"), _ANY_QUESTION, inputs=0),
    ("Cooking", "cooking_workflow"): RequestKinds(("steps", "one less", "one more"), ("count", "among")),
    ("Counterintuitive_Reasoning", "object_attribute_mismatch"): RequestKinds(
        ("replace", "add", "recolour"), _ANY_QUESTION
    ),
    ("Everyday_Tasks", "battery_installation"): RequestKinds(
        ("remove", "restore", "add any"), ("what", "place", "hue")
    ),
}
