"""The exact answer to every question about tables."""

from collections.abc import Callable, Mapping

from weft_tabletop.world.language import TableRequest, describe_scene, parse
from weft_tabletop.world.operations import Operation, uncover
from weft_tabletop.world.scenes import Scene
from weft_tabletop.world.wordings import with_article

Args = Mapping[str, str]
Scenes = Mapping[str, Scene]  # by slot of the question: image, source, other


def answer(question: TableRequest, scenes: Scenes) -> str:
    """Return the right answer to a question about these scenes."""
    return ANSWERS[question.kind](question.args, scenes)


def name_cell_content(scene: Scene, cell: str) -> str:
    """Say what is in a cell, such as `a red star`, or `nothing`."""
    thing = scene.at(cell)
    if thing is None:
        return "nothing"
    return with_article(str(thing))


def _count(args: Args, scenes: Scenes) -> str:
    things = scenes["image"].things().values()
    return str(sum(str(thing) == args["thing"] for thing in things))


def _name_content(args: Args, scenes: Scenes) -> str:
    return name_cell_content(scenes["image"], args["cell"])


def _name_colour(args: Args, scenes: Scenes) -> str:
    thing = scenes["image"].at(args["cell"])
    if thing is None:
        return "nothing"
    return thing.colour


def parse_options(text: str) -> dict[str, str]:
    """Options by letter, from a list such as `A. red star, B. blue ring`."""
    return {item[0]: item[3:] for item in text.split(", ")}


def _choose_present(args: Args, scenes: Scenes) -> str:
    present = {str(thing) for thing in scenes["image"].things().values()}
    letters = [letter for letter, thing in parse_options(args["options"]).items() if thing in present]
    return "".join(letters) or "E"


def _compare(args: Args, scenes: Scenes) -> str:
    if scenes["image"] == scenes["source"]:
        return "yes"
    return "no"


def _list_changes(args: Args, scenes: Scenes) -> str:
    before = scenes["image"]
    after = scenes["source"]
    changes = [
        f"at {cell} {name_cell_content(before, cell)} became {name_cell_content(after, cell)}"
        for cell in before.changed_cells(after)
    ]
    if before.background != after.background:
        changes.append(f"the background became {after.background}")
    return ", ".join(changes) or "nothing"


def _choose_fallen(args: Args, scenes: Scenes) -> str:
    is_settled = Operation("gravity").apply(scenes["image"]) == scenes["image"]
    if is_settled:
        return "the first"
    return "the second"


def expected_scene(args: Args, scenes: Scenes) -> Scene:
    """The scene after the request that the question quotes."""
    request = parse(args["done"])
    if request is None:
        return scenes["image"]
    return request.operation.apply(scenes["image"])


def _review(args: Args, scenes: Scenes) -> str:
    """`yes`, or `no` with the first objection."""
    expected = expected_scene(args, scenes)
    output = scenes["source"]
    if expected == output:
        return "yes"
    if expected.background != output.background:
        return f"no, the background should be {expected.background}"
    cell = expected.changed_cells(output)[0]
    return f"no, at {cell} there should be {name_cell_content(expected, cell)}"


def _choose_fulfilled(args: Args, scenes: Scenes) -> str:
    if scenes["source"] == expected_scene(args, scenes):
        return "the first"
    return "the second"


def _describe(args: Args, scenes: Scenes) -> str:
    return describe_scene(scenes["image"])


def _describe_plan(args: Args, scenes: Scenes) -> str:
    return describe_scene(expected_scene(args, scenes))


def helper_scene(question: TableRequest, scenes: Scenes) -> Scene:
    """The table that shows the answer to a question that an image helps with."""
    base = scenes["image"]
    if question.kind == "then":
        return expected_scene(question.args, scenes)
    if question.kind == "hidden":
        return uncover(base, question.args["way"])
    return Operation("route", question.args).apply(base)


def _name_later_content(args: Args, scenes: Scenes) -> str:
    return name_cell_content(expected_scene(args, scenes), args["cell"])


def _count_dots(args: Args, scenes: Scenes) -> str:
    after = Operation("route", args).apply(scenes["image"])
    return str(len(after.changed_cells(scenes["image"])))


def _choose_hidden(args: Args, scenes: Scenes) -> str:
    whole = uncover(scenes["image"], args["way"])
    hidden = {str(whole.at(cell) or "") for cell in whole.changed_cells(scenes["image"])}
    for letter, thing in parse_options(args["pieces"]).items():
        if thing in hidden:
            return letter
    return ""


ANSWERS: Mapping[str, Callable[[Args, Scenes], str]] = {
    "count": _count,
    "what": _name_content,
    "colour": _name_colour,
    "which": _choose_present,
    "same": _compare,
    "changed": _list_changes,
    "after": _choose_fallen,
    "fulfils": _review,
    "chosen": _choose_fulfilled,
    "describe": _describe,
    "plan": _describe_plan,
    "then": _name_later_content,
    "way": _count_dots,
    "hidden": _choose_hidden,
}
