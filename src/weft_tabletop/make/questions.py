"""What can be asked at a point of a dialogue: for each kind of question, arguments that are possible there, or None.

As in `requests`, the order of calls to the random generator decides what a seed means."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from weft_tabletop.make.requests import (
    EVENTS,
    REQUEST_MAKERS,
    Maker,
    RequestContent,
    about_image,
    choose_freely,
    choose_unique_route,
)
from weft_tabletop.world.language import phrase_request
from weft_tabletop.world.operations import COVER, Operation, uncover
from weft_tabletop.world.scenes import CELLS, OBJECTS, Scene, Thing
from weft_tabletop.world.wordings import UNQUOTED, WORDINGS

if TYPE_CHECKING:
    from weft_tabletop.make.dialogues import DialogueMaker

PLANNED = (  # requests that a question may quote before they are done
    "add",
    "remove",
    "replace",
    "recolour",
    "move",
    "swap",
    "background",
    "mirror",
    "rotate",
    "gravity",
    "drift",
    "pattern",
    *EVENTS,
)
MOVES = ("gravity", "gravity", "drift", "hours", "rotate", "mirror")


def _choose_count(maker: "DialogueMaker", base: int) -> RequestContent:
    objects = maker.objects_on(base)
    if objects and maker.rng.random() < 0.8:
        return about_image(base, thing=str(maker.rng.choice(objects)[1]))
    return about_image(base, thing=maker.other_object())


def _choose_what(maker: "DialogueMaker", base: int) -> RequestContent:
    objects = maker.objects_on(base)
    if objects and maker.rng.random() < 0.75:
        return about_image(base, cell=maker.rng.choice(objects)[0])
    return about_image(base, cell=maker.rng.choice(CELLS))


def _choose_colour(maker: "DialogueMaker", base: int) -> RequestContent | None:
    objects = maker.objects_on(base)
    if not objects:
        return None
    cell, thing = maker.rng.choice(objects)
    return about_image(base, shape=thing.shape, cell=cell)


def _choose_which(maker: "DialogueMaker", base: int) -> RequestContent | None:
    """Four options, of which none to three are on the table."""
    present = sorted({str(thing) for _, thing in maker.objects_on(base)})
    right = maker.rng.sample(present, min(len(present), maker.rng.choice((0, 1, 1, 1, 2, 2, 3))))
    wrong = [str(thing) for thing in maker.rng.sample(OBJECTS, 12) if str(thing) not in present]
    options = right + wrong[: 4 - len(right)]
    maker.rng.shuffle(options)
    return about_image(base, options=f"{_list_options(options)}, E. none of these")


def _list_options(options: list[str]) -> str:
    return ", ".join(f"{letter}. {option}" for letter, option in zip("ABCD", options, strict=True))


def _choose_same(maker: "DialogueMaker", base: int) -> RequestContent | None:
    others = [number for number in maker.scenes if number != base]
    if not others:
        return None
    return {}, {"image": base, "source": maker.rng.choice(others)}


def _choose_changed(maker: "DialogueMaker", base: int) -> RequestContent | None:
    """Two images that differ in one or two things, so that the answer is short."""
    numbers = [(first, second) for first in maker.scenes for second in maker.scenes if first < second]
    pairs = [pair for pair in numbers if _count_changes(maker.scenes[pair[0]], maker.scenes[pair[1]]) in (1, 2)]
    if not pairs:
        return None
    first, second = maker.rng.choice(pairs)
    return {}, {"image": first, "source": second}


def _count_changes(first: Scene, second: Scene) -> int:
    return len(first.changed_cells(second)) + (first.background != second.background)


def _choose_after(maker: "DialogueMaker", base: int) -> RequestContent | None:
    """The images before and after an earlier fall, in either order."""
    falls = [turn for turn in maker.turns if turn.kind == "gravity" and turn.image_number is not None]
    pairs = [(turn.images["image"], turn.image_number or 0) for turn in falls]
    if not pairs:
        return None
    pair = [*maker.rng.choice(pairs)]
    maker.rng.shuffle(pair)
    return {}, {"image": pair[0], "source": pair[1]}


class QuotedRequest(Struct, frozen=True):
    """An earlier request in words that name no number, the images before and after it, and the scene that it made."""

    text: str
    before: int
    after: int
    scene: Scene | None


def _quote_request(maker: "DialogueMaker") -> QuotedRequest | None:
    """An earlier request about one image alone."""
    requests: list[tuple[int, int]] = []  # index of the turn, number of its image
    for index, turn in enumerate(maker.turns):
        is_quotable = set(turn.images) == {"image"} and turn.kind not in UNQUOTED
        if turn.image_number is not None and is_quotable:
            requests.append((index, turn.image_number))
    if not requests:
        return None
    index, after = maker.rng.choice(requests)
    turn = maker.turns[index]
    text = phrase_request(turn.kind, turn.args, {"image": "the table"}, maker.rng)
    return QuotedRequest(text, turn.images["image"], after, turn.scene)


def _choose_fulfils(maker: "DialogueMaker", base: int) -> RequestContent | None:
    """The image that a request made, or as often another one."""
    quoted = _quote_request(maker)
    if quoted is None:
        return None
    is_right = maker.rng.random() < 0.5
    others = [number for number in maker.scenes if number not in (quoted.after, quoted.before)]
    source = quoted.after
    if not is_right and others:
        source = maker.rng.choice(others)
    return {"done": quoted.text}, {"image": quoted.before, "source": source}


def _choose_chosen(maker: "DialogueMaker", base: int) -> RequestContent | None:
    """The image that a request made and one with another scene, in either order."""
    quoted = _quote_request(maker)
    if quoted is None:
        return None
    wrong = [number for number, scene in maker.scenes.items() if number != quoted.before and scene != quoted.scene]
    if not wrong:
        return None
    pair = [quoted.after, maker.rng.choice(wrong)]
    maker.rng.shuffle(pair)
    return {"done": quoted.text}, {"image": quoted.before, "source": pair[0], "other": pair[1]}


def _choose_plan(maker: "DialogueMaker", base: int) -> RequestContent | None:
    kind = maker.rng.choice(PLANNED)
    content = REQUEST_MAKERS[kind](maker, base)
    if content is None or set(content[1]) != {"image"}:
        return None
    return about_image(base, done=phrase_request(kind, content[0], {"image": "the table"}, maker.rng))


def _choose_then(maker: "DialogueMaker", base: int) -> RequestContent | None:
    """A request, and most often a cell that holds another object after it."""
    kind = maker.rng.choice(MOVES)
    content = REQUEST_MAKERS[kind](maker, base)
    if content is None:
        return None
    before = maker.scenes[base]
    after = Operation(kind, content[0]).apply(before)
    cells = [cell for cell in before.changed_cells(after) if after.at(cell) is not None]
    if not cells:
        cells = [*after.things()]
    if cells and maker.rng.random() < 0.8:
        cell = maker.rng.choice(cells)
    else:
        cell = maker.rng.choice(CELLS)
    return about_image(base, done=phrase_request(kind, content[0], {"image": "the table"}, maker.rng), cell=cell)


def _choose_hidden(maker: "DialogueMaker", base: int) -> RequestContent | None:
    """On a table that is its own mirror image but for one covered cell: what the cover hides, among four objects."""
    covered = [cell for cell, thing in maker.objects_on(base) if thing == COVER]
    for way in maker.rng.sample(("left to right", "top to bottom"), 2):
        hidden = _find_hidden(maker.scenes[base], covered, way)
        if hidden is None:
            continue
        others = maker.rng.sample([thing for thing in OBJECTS if thing != hidden], 3)
        pieces = [str(hidden), *map(str, others)]
        maker.rng.shuffle(pieces)
        return about_image(base, way=way, pieces=_list_options(pieces))
    return None


def _find_hidden(scene: Scene, covered: list[str], way: str) -> Thing | None:
    """The object under the only cover, if the table is its own mirror image in this way; else None."""
    if len(covered) != 1:
        return None
    whole = uncover(scene, way)
    hidden = whole.at(covered[0])
    if hidden == COVER or Operation("mirror", {"way": way}).apply(whole) != whole:
        return None
    return hidden


QUESTION_MAKERS: Mapping[str, Maker] = {
    "count": _choose_count,
    "what": _choose_what,
    "colour": _choose_colour,
    "which": _choose_which,
    "same": _choose_same,
    "changed": _choose_changed,
    "after": _choose_after,
    "fulfils": _choose_fulfils,
    "chosen": _choose_chosen,
    "describe": choose_freely(),
    "plan": _choose_plan,
    "then": _choose_then,
    "way": choose_unique_route,
    "hidden": _choose_hidden,
}
MAKERS: Mapping[str, Maker] = {**REQUEST_MAKERS, **QUESTION_MAKERS}  # their order decides what a corpus seed means
assert MAKERS.keys() == WORDINGS.keys()
