"""The exact answer to every question about tables."""

from collections.abc import Mapping

from weft_tabletop.world.language import TableRequest, describe_scene, parse, with_article
from weft_tabletop.world.operations import Operation, uncover
from weft_tabletop.world.scenes import Scene


def answer(asked: TableRequest, scenes: Mapping[str, Scene]) -> str:
    """What is right to say; `scenes` by slot (image, source, other)."""
    return ANSWERS[asked.kind](asked.args, scenes)


def _count(args: Mapping[str, str], scenes: Mapping[str, Scene]) -> str:
    return str(sum(str(thing) == args["thing"] for thing in scenes["image"].things().values()))


def _what(args: Mapping[str, str], scenes: Mapping[str, Scene]) -> str:
    found = scenes["image"].at(args["cell"])
    if found:
        return with_article(str(found))
    return "nothing"


def _colour(args: Mapping[str, str], scenes: Mapping[str, Scene]) -> str:
    found = scenes["image"].at(args["cell"])
    if found:
        return found.colour
    return "nothing"


def options(args: Mapping[str, str]) -> dict[str, str]:
    """The letters of a multiple-choice question and what they stand for."""
    return {item[0]: item[3:] for item in args["options"].split(", ")}


def _which(args: Mapping[str, str], scenes: Mapping[str, Scene]) -> str:
    there = {str(thing) for thing in scenes["image"].things().values()}
    return "".join(letter for letter, thing in options(args).items() if thing in there) or "E"


def _same(args: Mapping[str, str], scenes: Mapping[str, Scene]) -> str:
    if scenes["image"] == scenes["source"]:
        return "yes"
    return "no"


def _changed(args: Mapping[str, str], scenes: Mapping[str, Scene]) -> str:
    before = scenes["image"]
    after = scenes["source"]
    said = [f"at {cell} {_named(before, cell)} became {_named(after, cell)}" for cell in before.changed_cells(after)]
    if before.background != after.background:
        said.append(f"the background became {after.background}")
    return ", ".join(said) or "nothing"


def _named(scene: Scene, cell: str) -> str:
    found = scene.at(cell)
    if found:
        return with_article(str(found))
    return "nothing"


def _after(args: Mapping[str, str], scenes: Mapping[str, Scene]) -> str:
    settled = Operation("gravity").apply(scenes["image"]) == scenes["image"]
    if settled:
        return "the first"
    return "the second"


def expected_scene(args: Mapping[str, str], scenes: Mapping[str, Scene]) -> Scene:
    """The base after what the question quotes."""
    asked = parse(args["done"])
    if asked is None:
        return scenes["image"]
    return asked.operation.apply(scenes["image"])


def _fulfils(args: Mapping[str, str], scenes: Mapping[str, Scene]) -> str:
    due = expected_scene(args, scenes)
    made = scenes["source"]
    if due == made:
        return "yes"
    if due.background != made.background:
        return f"no, the background should be {due.background}"
    cell = due.changed_cells(made)[0]
    return f"no, at {cell} there should be {_named(due, cell)}"


def _chosen(args: Mapping[str, str], scenes: Mapping[str, Scene]) -> str:
    if scenes["source"] == expected_scene(args, scenes):
        return "the first"
    return "the second"


def _describe(args: Mapping[str, str], scenes: Mapping[str, Scene]) -> str:
    return describe_scene(scenes["image"])


def helper_scene(asked: TableRequest, scenes: Mapping[str, Scene]) -> Scene:
    """The table that shows the answer to a question that a picture helps with."""
    base = scenes["image"]
    if asked.kind == "then":
        return expected_scene(asked.args, scenes)
    if asked.kind == "hidden":
        return uncover(base, asked.args["way"])
    return Operation("route", asked.args).apply(base)


def _then(args: Mapping[str, str], scenes: Mapping[str, Scene]) -> str:
    return _named(expected_scene(args, scenes), args["cell"])


def _way(args: Mapping[str, str], scenes: Mapping[str, Scene]) -> str:
    after = Operation("route", args).apply(scenes["image"])
    return str(len(after.changed_cells(scenes["image"])))


def _hidden(args: Mapping[str, str], scenes: Mapping[str, Scene]) -> str:
    whole = uncover(scenes["image"], args["way"])
    found = {str(whole.at(cell) or "") for cell in whole.changed_cells(scenes["image"])}
    return next((item[0] for item in args["pieces"].split(", ") if item[3:] in found), "")


def _plan(args: Mapping[str, str], scenes: Mapping[str, Scene]) -> str:
    return describe_scene(expected_scene(args, scenes))


ANSWERS = {
    "count": _count,
    "what": _what,
    "colour": _colour,
    "which": _which,
    "same": _same,
    "changed": _changed,
    "after": _after,
    "fulfils": _fulfils,
    "chosen": _chosen,
    "describe": _describe,
    "plan": _plan,
    "then": _then,
    "way": _way,
    "hidden": _hidden,
}
