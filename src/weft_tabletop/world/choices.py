"""Questions with options, as IMUG-Bench asks them: a sentence, then a line for each option, the last of them `E. None
of the above.`

What is right follows from a scene alone: the options that are true of it, or E. `count`, `what`, `colour`, `hue` and
`place` never have more than one right option; `among` and `where` may."""

import re
from collections.abc import Mapping

from msgspec import Struct

from weft_tabletop.world.language import CHOICES, TableRequest, parse
from weft_tabletop.world.scenes import Scene

SEVERAL = ("among", "where")
NONE = "None of the above."
_FORM = re.compile(r"(.+)\nOptions:\n((?:[A-D]\. .+\n){4})E\. None of the above\.", re.DOTALL)


class ChoiceQuestion(Struct, frozen=True):
    request: TableRequest
    options: Mapping[str, str]

    def letters(self, scene: Scene | None) -> str:
        """Which options are right; E if none is, or if there is no picture."""
        if scene is None:
            true = ()
        else:
            true = true_options(self.request.kind, self.request.args, scene)
        return "".join(letter for letter, option in self.options.items() if option in true) or "E"


def true_options(kind: str, args: Mapping[str, str], scene: Scene) -> set[str]:
    """All that is true of a scene among what could be an option."""
    things = scene.things()
    if kind == "count":
        return {str(sum(str(thing) == args["thing"] for thing in things.values()))}
    if kind in ("what", "colour"):
        found = scene.at(args["cell"])
        return {"nothing" if found is None else str(found) if kind == "what" else found.colour}
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
    lines = [sentence, "Options:", *(f"{letter}. {option}" for letter, option in options.items()), f"E. {NONE}"]
    return "\n".join(lines)


def parse_choice(text: str) -> ChoiceQuestion | None:
    match = _FORM.fullmatch(text.strip())
    if match:
        asked = parse(match.group(1), choice=True)
    else:
        asked = None
    if match is None or asked is None:
        return None
    return ChoiceQuestion(asked, {line[0]: line[3:] for line in match.group(2).splitlines()})


assert not set(SEVERAL) - CHOICES.keys()
