"""Questions with options, as IMUG-Bench asks them: a sentence, then a line for each option, the last of them `E. None
of the above.`

The right options follow from a scene alone: those that are true of it, or E. `count`, `what`, `colour`, `hue` and
`place` never have more than one right option; `among` and `where` may."""

import re
from collections.abc import Mapping

from msgspec import Struct

from weft_tabletop.world.language import TableRequest, parse
from weft_tabletop.world.scenes import Scene
from weft_tabletop.world.wordings import CHOICES

MULTIPLE = ("among", "where")  # kinds that may have more than one right option
NONE = "None of the above."
_FORM = re.compile(r"(.+)\nOptions:\n((?:[A-D]\. .+\n){4})E\. None of the above\.", re.DOTALL)


class ChoiceQuestion(Struct, frozen=True):
    request: TableRequest
    options: Mapping[str, str]

    def letters(self, scene: Scene | None) -> str:
        """The letters of the right options; E if none is right, or if there is no image."""
        if scene is None:
            return "E"
        true = true_options(self.request.kind, self.request.args, scene)
        return "".join(letter for letter, option in self.options.items() if option in true) or "E"


def true_options(kind: str, args: Mapping[str, str], scene: Scene) -> set[str]:
    """Everything that is true of a scene among what a question of this kind could offer."""
    things = scene.things()
    if kind == "count":
        return {str(sum(str(thing) == args["thing"] for thing in things.values()))}
    if kind == "what":
        return {str(scene.at(args["cell"]) or "nothing")}
    if kind == "colour":
        thing = scene.at(args["cell"])
        return {"nothing" if thing is None else thing.colour}
    if kind == "among":
        return {str(thing) for thing in things.values()}
    cells = [cell for cell, thing in things.items() if thing.shape == args["shape"]]
    if kind == "where":
        return set(cells)
    if len(cells) != 1:
        return set()
    if kind == "place":
        return {cells[0]}
    return {things[cells[0]].colour}


def format_choice(sentence: str, options: Mapping[str, str]) -> str:
    """Write a question and its options, one a line."""
    lines = [f"{letter}. {option}" for letter, option in options.items()]
    return "\n".join([sentence, "Options:", *lines, f"E. {NONE}"])


def parse_choice(text: str) -> ChoiceQuestion | None:
    """Return the question that `format_choice` wrote; None for any other text."""
    match = _FORM.fullmatch(text.strip())
    if match is None:
        return None
    request = parse(match.group(1), choice=True)
    if request is None:
        return None
    options = {line[0]: line[3:] for line in match.group(2).splitlines()}
    return ChoiceQuestion(request, options)


assert not set(MULTIPLE) - CHOICES.keys()
