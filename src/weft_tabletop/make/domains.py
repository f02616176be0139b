"""Which requests and questions make up a dialogue of each WEAVE domain and of each IMUG-Bench task on the tabletop."""

from collections.abc import Mapping

from msgspec import Struct


class Mix(Struct, frozen=True):
    """The kinds of requests and of questions to draw from, and how many images a dialogue starts with."""

    kinds: tuple[str, ...]
    questions: tuple[str, ...]
    inputs: int = 1


WEAVE: Mapping[str, Mix] = {
    "optics": Mix(("mirror", "mirror", "recolour"), ("same", "what")),
    "geography": Mix(("move", "background", "add"), ("what", "changed")),
    "astronomy": Mix(("drift", "rotate"), ("what", "count")),
    "chemistry": Mix(("recolour", "replace", "swap"), ("colour", "changed")),
    "physics": Mix(("gravity", "drift", "move"), ("after", "what")),
    "biology": Mix(("one more", "one less", "recolour"), ("count",)),
    "edit": Mix(
        ("add", "remove", "replace", "recolour", "move", "swap", "background"),
        ("count", "changed", "fulfils", "chosen"),
    ),
    "recall": Mix(("remove", "move", "background", "restore", "restore"), ("same", "changed", "fulfils")),
    "fusion": Mix(("copy", "copy", "copy", "background"), ("what", "changed"), inputs=2),
    "story": Mix(("draw", "add", "drift", "replace"), ("count", "which"), inputs=0),
    "spatial": Mix(("rotate", "mirror", "swap"), ("what", "which")),
    "mathematics": Mix(("one more", "one less", "pattern"), ("count", "which")),
    "chess_game": Mix(("move", "swap", "remove"), ("what", "which")),
    "visual_jigsaw": Mix(("copy", "swap", "rotate"), ("which", "what"), inputs=2),
    "minecraft": Mix(("steps", "gravity", "add"), ("count", "what")),
    "maze": Mix(("route", "route", "remove"), ("count", "chosen")),
}
MEMORY = Mix(("remove", "add", "background", "recolour", "put back", "put back"), ("what",))

_ANY_QUESTION = ("count", "what", "colour", "among", "where")
IMUG: Mapping[tuple[str, str], Mix] = {
    ("Color_Reasoning", "subtractive_color_mixing"): Mix(("recolour", "add any", "swap"), ("hue", "colour", "among")),
    ("Botany", "natural_growth"): Mix(("one more", "add any", "add"), ("among", "where", "count")),
    ("Stack_Simulation", "stack_word_formation"): Mix(("steps", "gravity", "add"), ("what", "count", "place")),
    ("Apparel", "garment_replacement"): Mix(("replace", "recolour", "background"), ("colour", "what")),
    ("Chemistry", "metal_displacement"): Mix(("replace", "swap", "remove"), ("what", "among")),
    ("DIY", "gift_wrapping_logic"): Mix(("background", "add", "pattern"), ("what", "where")),
    ("Interior_Design", "furniture_arrangement"): Mix(("move", "add any", "swap"), ("place", "what", "where")),
    ("Physics", "state_change"): Mix(("gravity", "drift", "move"), ("what", "place", "count")),
    ("Mirror_Reasoning", "mirror_action_editing"): Mix(("mirror", "move", "add"), ("what", "place")),
    ("Geometric_Coloring", "grid_coloring"): Mix(("recolour", "pattern", "replace"), ("colour", "among")),
    ("Damage_Repair", "relic_restoration"): Mix(("remove", "restore", "restore", "background"), ("count", "what")),
    ("Storage", "elastic_storage"): Mix(("copy", "move", "copy"), ("what", "among"), inputs=2),
    ("Mechanisms", "gear_meshing"): Mix(("rotate", "mirror", "swap"), ("what", "place")),
    ("Weather", "cloud_dynamics"): Mix(("drift", "background", "add any"), ("hue", "place", "count")),
    ("Paper_Crafting", "origami_sequential_logic"): Mix(("rotate", "copy", "mirror"), ("what", "among"), inputs=2),
    ("Object_Inference", "daily_essentials"): Mix(("draw any", "draw", "add"), _ANY_QUESTION, inputs=0),
    ("Cooking", "cooking_workflow"): Mix(("steps", "one less", "one more"), ("count", "among")),
    ("Counterintuitive_Reasoning", "object_attribute_mismatch"): Mix(("replace", "add", "recolour"), _ANY_QUESTION),
    ("Everyday_Tasks", "battery_installation"): Mix(("remove", "restore", "add any"), ("what", "place", "hue")),
}
