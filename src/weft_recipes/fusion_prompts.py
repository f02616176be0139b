"""What the models of `weave-fusion` are asked, in words and as JSON."""

from collections.abc import Sequence
from typing import Any

from weft_recipes.schemas import TEXT, object_of

KINDS = ("add", "remove", "replace", "colour", "background")
KIND_WORDS = {
    "add": "adds one object that is not there",
    "remove": "removes one object that can be seen clearly",
    "replace": "replaces one object by another one of about the same size",
    "colour": "changes the colour of one object",
    "background": "changes the background and leaves the main object alone",
}
THEMES = (
    *("a kitchen", "a street market", "a workshop", "a garden", "a beach", "a library", "a train station"),
    *("a toy shop", "a farm", "a living room", "a music room", "a laboratory", "a harbour", "a mountain hut"),
    *("pets", "wild animals", "birds", "insects", "fruit", "bread and cakes", "vegetables", "tea and coffee"),
    *("furniture", "lamps", "musical instruments", "tools", "vases and pots", "clocks", "toys", "books"),
    *("hats", "shoes", "coats", "bags", "bicycles", "boats", "cars", "aircraft", "robots", "space"),
    *("towers", "bridges", "small houses", "interiors", "castles", "people at work", "athletes", "dancers"),
    *("cartoon animals", "paper figures", "clay figures", "knitted figures", "trees", "flowers", "winter", "autumn"),
)
FUSION_RULES = """`fusion` is what a user would write to have one new image made from all of them. It names each image \
as {names}, says what is taken from which, and how the parts stand to each other. One coherent scene, no collage. It \
must be possible without any text in the image.
`points` are what a reviewer checks in the result, one to three: `image` is the number of the image that a point compares \
with, and `requirement` one sentence that holds the marker <image> exactly once in place of that image, such as \
"The cup has the shape and the pattern of the one in <image>"."""
INVENT = """You plan a small dialogue about images. The theme is {theme}; this is dialogue {number}, so make it differ \
from the obvious.

Write {count} captions in `captions`, each of one image with one clear main object in a plain setting: what it is, its \
colours and material, the setting, the light. Two sentences at most. The objects must differ, and must suit a common \
scene.
{rules}"""
FROM_CAPTIONS = """You plan a small dialogue about {count} images. They show:

{captions}

Repeat these captions word for word in `captions`.
{rules}"""
FROM_IMAGES = """You plan a small dialogue about the {count} images that you see, {names}.

Write a caption of each in `captions`, one sentence, of what can really be seen.
{rules}"""
EDIT = """You see Image #1. Write an edit of it that {kind}.

`instruction` is what a user would write; it names the image as Image #1, names the object and its place so that there is \
only one way to read it, and changes nothing else. The change must be large enough to be seen at first sight.
`reverse` is the instruction that undoes it: a model that sees only the edited image, called Image #1 there, must be able \
to make exactly the image that you see now. So it must state everything that the edited image no longer shows: what the \
object is, its colour, size and place.
`requirement` is one sentence for the reviewer of the reversed image; it holds the marker <image> exactly once, in place of \
the edited image, such as "Compared with <image>, the red cup is back on the left of the table and all else is the same"."""


def script_schema(count: int) -> dict[str, Any]:
    """Return the schema of a script about so many images."""
    captions = {"type": "array", "minItems": count, "maxItems": count, "items": TEXT}
    point = object_of(image={"type": "integer", "minimum": 1, "maximum": count}, requirement=TEXT)
    points = {"type": "array", "minItems": 1, "maxItems": 4, "items": point}
    return object_of(captions=captions, fusion=TEXT, points=points)


EDIT_SCHEMA = object_of(instruction=TEXT, reverse=TEXT, requirement=TEXT)


class FusionPrompts:
    """The prompts of `weave-fusion`, in English."""

    def script(self, number: int, theme: str, captions: Sequence[str], *, shown: int, count: int) -> str:
        """Ask for captions and a fusion: of a theme, of given captions, or of `shown` images."""
        names = " and ".join(f"Image #{index}" for index in range(1, count + 1))
        rules = FUSION_RULES.format(names=names)
        if shown:
            return FROM_IMAGES.format(count=count, names=names, rules=rules)
        if captions:
            listed = "\n".join(f"Image #{index}: {text}" for index, text in enumerate(captions, start=1))
            return FROM_CAPTIONS.format(count=count, captions=listed, rules=rules)
        return INVENT.format(number=number + 1, theme=theme, count=count, rules=rules)

    def edit(self, number: int, kind: str) -> str:
        """Ask for an edit of one kind, and what undoes it."""
        return EDIT.format(kind=KIND_WORDS[kind])
