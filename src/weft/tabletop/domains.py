"""Which requests and questions make up a dialogue of each WEAVE domain on the tabletop."""

from collections.abc import Mapping

from msgspec import Struct


class Mix(Struct, frozen=True):
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
    "edit": Mix(("add", "remove", "replace", "recolour", "move", "swap", "background"), ("count", "changed", "fulfils", "chosen")),
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
