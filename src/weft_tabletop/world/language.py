"""Requests and questions as sentences, and sentences as requests and questions.

Guarantee: `parse` understands every sentence that `phrase_request` makes, and returns the arguments that the sentence
states."""

import functools
import random
import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from weft_tabletop.world.operations import Operation
from weft_tabletop.world.scenes import Scene, scene_from_text
from weft_tabletop.world.wordings import (
    BACKGROUND_PATTERN,
    CHOICES,
    CONTENTS_PATTERN,
    SLOTS,
    WORDINGS,
    pluralise,
    with_article,
)

IMAGE_SLOTS = ("image", "source", "other")
ARTICLES = ("thing", "what", "shape")  # arguments that wordings also use with an article
UNITS = {"steps": "step", "hours": "hour"}  # arguments that wordings count


class TableRequest(Struct, frozen=True):
    """A sentence that was understood: its kind, its arguments as operations want them, and the names of its images by
    slot."""

    kind: str
    args: Mapping[str, str]
    images: Mapping[str, str]

    @property
    def operation(self) -> Operation:
        return Operation(self.kind, self.args)


def phrase_request(
    kind: str, args: Mapping[str, str], images: Mapping[str, str], rng: random.Random, *, choice: bool = False
) -> str:
    """Word a request or question in one of its kind's wordings; as a question with options if it is a `choice`."""
    return fill_wording(rng.choice(_templates(choice)[kind]), args, images)


def fill_wording(template: str, args: Mapping[str, str], images: Mapping[str, str]) -> str:
    """Fill the slots of a wording."""
    return template.format_map({**_args_to_text(args), **images})


def parse(text: str, *, choice: bool = False) -> TableRequest | None:
    """Return what a sentence asks for; None if it is not one of the tabletop's sentences."""
    for kind, pattern in _compile_patterns(choice):
        match = pattern.fullmatch(text.strip())
        if match is None:
            continue
        slots = match.groupdict()
        images = {name: slots.pop(name) for name in IMAGE_SLOTS if name in slots}
        return TableRequest(kind, _args_from_text(slots), images)
    return None


def describe_scene(scene: Scene) -> str:
    """Describe a scene in the words with which an image of it is requested."""
    contents = ", ".join(f"{with_article(str(thing))} at {cell}" for cell, thing in scene.things().items())
    return f"a {scene.background} table with {contents or 'nothing'}"


def parse_scene(text: str) -> Scene | None:
    """Return the scene that `describe_scene` described; None for any other text."""
    match = re.fullmatch(rf"a ({BACKGROUND_PATTERN}) table with ({CONTENTS_PATTERN})\.?", text.strip())
    if match is None:
        return None
    return scene_from_text(f"{match.group(1)}: {_remove_articles(match.group(2))}")


def _args_to_text(args: Mapping[str, str]) -> dict[str, str]:
    """The arguments, and the other forms in which wordings use them."""
    slots = dict(args)
    for name in ARTICLES:
        if name in args:
            slots[f"a_{name}"] = with_article(args[name])
    if "shape" in args:
        slots["shapes"] = pluralise(args["shape"])
    if "thing" in args:
        slots["things_counted"] = pluralise(args["thing"])
    if "things" in args:
        things = [with_article(thing) for thing in args["things"].split(", ")]
        is_empty = args["things"] == "nothing"
        slots["contents"] = "nothing" if is_empty else ", ".join(things)
        slots["order"] = ", then ".join(things)
    for name, unit in UNITS.items():
        if name in args:
            plural = "" if args[name] == "1" else "s"
            slots[name] = f"{args[name]} {unit}{plural}"
    return slots


def _args_from_text(slots: Mapping[str, str]) -> dict[str, str]:
    """The arguments from the forms in which wordings use them."""
    args: dict[str, str] = {}
    for name, text in slots.items():
        if name.startswith("a_"):
            args[name[2:]] = text.partition(" ")[2]
        elif name == "things_counted":
            args["thing"] = _singularise(text)
        elif name == "shapes":
            args["shape"] = _singularise(text)
        elif name == "contents":
            args["things"] = _remove_articles(text)
        elif name == "order":
            args["things"] = ", ".join(item.partition(" ")[2] for item in text.split(", then "))
        elif name in UNITS:
            args[name] = text[0]
        else:
            args[name] = text
    return args


def _singularise(text: str) -> str:
    if text.endswith("crosses"):
        return text.removesuffix("es")
    return text.removesuffix("s")


def _remove_articles(text: str) -> str:
    if text == "nothing":
        return text
    return ", ".join(item.partition(" ")[2] for item in text.split(", "))


def _templates(choice: bool) -> Mapping[str, Sequence[str]]:
    if choice:
        return CHOICES
    return WORDINGS


@functools.cache
def _compile_patterns(choice: bool) -> list[tuple[str, re.Pattern[str]]]:
    """A regular expression for each wording, with its slots as named groups."""
    patterns: list[tuple[str, re.Pattern[str]]] = []
    for kind, templates in _templates(choice).items():
        for template in templates:
            pattern = re.sub(r"\\\{(\w+)\\\}", _slot_pattern, re.escape(template))
            patterns.append((kind, re.compile(pattern)))
    return patterns


def _slot_pattern(match: re.Match[str]) -> str:
    slot = match.group(1)
    return f"(?P<{slot}>{SLOTS[slot]})"
