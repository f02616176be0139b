"""The tabletop's English: several wordings for each operation and question, and what may stand in their slots.

A wording is a sentence with slots. `{image}` stands for an image that the text calls by its number (or, after
renumbering, by the bare word `image`); the order of `{image}`, `{source}` and `{other}` is the order of mention. These
sentences enter datasets and the vocabulary of the trained models: a change here changes both."""

from collections.abc import Mapping, Sequence

from weft_tabletop.world.scenes import BACKGROUNDS, COLOURS, SHAPES


def with_article(thing: str) -> str:
    article = "an" if thing[0] in "aeiou" else "a"
    return f"{article} {thing}"


def pluralise(thing: str) -> str:
    if thing.endswith("s"):
        return f"{thing}es"
    return f"{thing}s"


_COLOUR = "|".join(COLOURS)
_SHAPE = "|".join(SHAPES)
BACKGROUND_PATTERN = "|".join(BACKGROUNDS)
_PLURAL = "|".join(map(pluralise, SHAPES))
_IMAGE = r"(?:Image #\d+|image|the table)"
_THING = rf"(?:{_COLOUR}) (?:{_SHAPE})"
CONTENTS_PATTERN = rf"(?:nothing|an? {_THING} at [a-d][1-4](?:, an? {_THING} at [a-d][1-4])*)"
_CELL_OBJECTION = rf"at [a-d][1-4] there should be (?:nothing|an? {_THING})"
_BACKGROUND_OBJECTION = f"the background should be (?:{BACKGROUND_PATTERN})"
# A regular expression for each slot.
SLOTS: Mapping[str, str] = {
    **dict.fromkeys(("image", "source", "other"), _IMAGE),
    **dict.fromkeys(("thing", "what"), _THING),
    **dict.fromkeys(("a_thing", "a_what"), rf"an? {_THING}"),
    "a_shape": rf"an? (?:{_SHAPE})",
    "shapes": f"(?:{_PLURAL})",
    "number": "[2-5]",
    "objection": f"(?:{_CELL_OBJECTION}|{_BACKGROUND_OBJECTION})",
    "things_counted": rf"(?:{_COLOUR}) (?:{_PLURAL})",
    "shape": f"(?:{_SHAPE})",
    "colour": f"(?:{_COLOUR})",
    **dict.fromkeys(("cell", "to"), "[a-d][1-4]"),
    "background": f"(?:{BACKGROUND_PATTERN})",
    "contents": CONTENTS_PATTERN,
    "way": "(?:left to right|top to bottom)",
    "side": "(?:left|right)",
    "steps": "(?:1 step|[23] steps)",
    "row": "[a-d]",
    "order": rf"an? {_THING}(?:, then an? {_THING})+",
    "options": rf"A\. {_THING}, B\. {_THING}, C\. {_THING}, D\. {_THING}, E\. none of these",
    "pieces": rf"A\. {_THING}, B\. {_THING}, C\. {_THING}, D\. {_THING}",
    "hours": "(?:1 hour|[23] hours)",
    "trait": "(?:colour|shape)",
    **dict.fromkeys(("first", "second"), "[a-d]"),
    **dict.fromkeys(("cells", "switches"), "[a-d][1-4](?:, [a-d][1-4])*"),
    "state": "(?:on|off)",
    "done": r".+",
}
WORDINGS: Mapping[str, Sequence[str]] = {
    "draw": (
        "Draw a {background} table with {contents}.",
        "Make a {background} table that has {contents}.",
        "Show {contents} on a {background} table.",
    ),
    "add": (
        "Add {a_thing} at {cell} in {image}.",
        "Put {a_thing} on {cell} of {image}.",
        "In {image}, place {a_thing} at {cell}.",
    ),
    "remove": (
        "Remove the {thing} at {cell} from {image}.",
        "Take the {thing} off {cell} in {image}.",
        "In {image}, clear away the {thing} at {cell}.",
    ),
    "replace": (
        "Replace the {what} at {cell} in {image} with {a_thing}.",
        "In {image}, turn the {what} at {cell} into {a_thing}.",
    ),
    "recolour": (
        "Paint the {shape} at {cell} in {image} {colour}.",
        "Make the {shape} at {cell} of {image} {colour}.",
        "In {image}, change the colour of the {shape} at {cell} to {colour}.",
    ),
    "move": (
        "Move the {thing} at {cell} in {image} to {to}.",
        "In {image}, take the {thing} from {cell} to {to}.",
        "Carry the {thing} of {image} from {cell} to {to}.",
    ),
    "swap": (
        "Swap {cell} and {to} in {image}.",
        "In {image}, let {cell} and {to} trade places.",
        "Exchange what is at {cell} and {to} in {image}.",
    ),
    "background": (
        "Change the background of {image} to {background}.",
        "In {image}, use a {background} background.",
        "Give {image} a {background} background.",
    ),
    "restore": (
        "Put back into {image} what it lost since {source}.",
        "Bring back to {image} all that {source} has and it lacks.",
        "In {image}, restore what is in {source} and gone.",
    ),
    "put back": ("Put back what was removed last in {image}.", "Bring the last removed object back to {image}."),
    "copy": (
        "Copy what is at {cell} of {source} to {to} of {image}.",
        "Take the object at {cell} in {source} and put it at {to} of {image}.",
        "At {to} of {image}, put what {source} has at {cell}.",
    ),
    "mirror": ("Mirror {image} {way}.", "Flip {image} {way}."),
    "rotate": ("Turn {image} a quarter to the {side}.", "Rotate {image} a quarter to the {side}."),
    "gravity": (
        "Let everything in {image} fall down.",
        "Drop all objects of {image} to the bottom.",
        "In {image}, let gravity pull everything down.",
    ),
    "drift": (
        "Let everything in {image} drift {steps} to the {side}.",
        "Push all objects of {image} {steps} to the {side}.",
    ),
    "one more": (
        "Add one more {thing} to {image}, in the first empty cell.",
        "Put another {thing} into the first empty cell of {image}.",
    ),
    "one less": ("Remove the first {thing} of {image}.", "Take away the first {thing} from {image}."),
    "pattern": ("Complete the pattern in row {row} of {image}.", "In {image}, finish the pattern of row {row}."),
    "route": (
        "Mark the way from {cell} to {to} in {image} with {colour} dots.",
        "In {image}, draw the shortest way from {cell} to {to} with {colour} dots.",
    ),
    "steps": ("Lay out in row {row} of {image}: {order}.", "Fill row {row} of {image} with {order}."),
    "correct": ("Correct {image}: {objection}.", "In {image}, correct this: {objection}."),
    "add any": (
        "Add {a_shape} of any colour to any empty cell of {image}.",
        "Put {a_shape} of your choice into an empty cell of {image}.",
    ),
    "draw any": (
        "Draw a {background} table with {number} {shapes} of any colour.",
        "Make a {background} table that has any {number} {shapes}.",
    ),
    "hours": (
        "Everything in {image} drifts {steps} to the {side} each hour. Show it after {hours}.",
        "Each hour all objects of {image} drift {steps} to the {side}. Show the table after {hours}.",
    ),
    "double": ("Double the {things_counted} in {image}.", "Make the {things_counted} of {image} twice as many."),
    "trait": (
        "Give the object at {cell} in {image} the {trait} of the object at {to}.",
        "In {image}, let {cell} take over the {trait} of {to}.",
    ),
    "sum": (
        "Put as many {things_counted} into row {row} of {image} as rows {first} and {second} hold together.",
        "In {image}, fill row {row} with as many {things_counted} as rows {first} and {second} hold together.",
    ),
    "draw route": (
        "Draw a {background} table with {contents}, and mark the way from {cell} to {to} with {colour} dots.",
        "Make a {background} table that has {contents}, with the shortest way from {cell} to {to} in {colour} dots.",
    ),
    "draw steps": (
        "Draw a {background} table and lay out in row {row}: {order}.",
        "Make a {background} table with row {row} filled with {order}.",
    ),
    "panel": (
        "Draw a {background} panel with switches at {switches}, and turn on {cells}.",
        "Make a {background} panel that has switches at {switches}, of which {cells} are on.",
    ),
    "switch": ("Turn {state} the switches at {cells} in {image}.", "In {image}, turn {state} the switches at {cells}."),
    "build": (
        "Show in exactly {number} steps how to make a {background} table with {contents}.",
        "Tell and show in {number} steps how to make a {background} table that has {contents}.",
    ),
    "film": (
        "Show in exactly {number} pictures how everything in {image} drifts to the {side}, step by step.",
        "Tell and show in {number} pictures how all objects of {image} drift to the {side}, step by step.",
    ),
    "count": ("How many {things_counted} are in {image}?", "Count the {things_counted} in {image}."),
    "what": ("What is at {cell} in {image}?", "Which object is at {cell} of {image}?"),
    "colour": (
        "What colour is the {shape} at {cell} in {image}?",
        "Name the colour of the {shape} at {cell} in {image}.",
    ),
    "which": ("Which of these are in {image}? {options}", "Choose all that are in {image}: {options}"),
    "same": ("Do {image} and {source} show the same table?", "Are {image} and {source} the same?"),
    "changed": ("What changed from {image} to {source}?", "What is different in {source} compared to {image}?"),
    "after": (
        "All objects fell down. Which is after the fall, {image} or {source}?",
        "Which of {image} and {source} shows the table after the fall?",
    ),
    "fulfils": ("Was this done from {image} to {source}? {done}", "Does {source} show {image} after this? {done}"),
    "chosen": (
        "Which of {source} and {other} shows {image} after this? {done}",
        "Which did this to {image}, {source} or {other}? {done}",
    ),
    "describe": ("Describe {image}.", "What does {image} show?"),
    "plan": ("Describe {image} after this: {done}", "Plan this for {image}: {done}"),
    "then": (
        "This is done to {image}: {done} What is at {cell} then?",
        "What is at {cell} of {image} after this? {done}",
    ),
    "way": (
        "Mark the shortest way from {cell} to {to} in {image} with {colour} dots. How many dots are there?",
        "How many {colour} dots mark the shortest way from {cell} to {to} in {image}?",
    ),
    "hidden": (
        "A black dot covers a cell of {image}, which is the same mirrored {way}. What is under the dot? {pieces}",
        "Mirrored {way}, {image} stays the same, but a black dot covers one cell. What does it cover? {pieces}",
    ),
}
# Questions that are asked only with options; the first five have one right answer.
CHOICES: Mapping[str, Sequence[str]] = {
    "count": WORDINGS["count"],
    "what": WORDINGS["what"],
    "colour": WORDINGS["colour"],
    "hue": ("What colour is the only {shape} of {image}?", "Name the colour of the only {shape} in {image}."),
    "place": ("Where is the only {shape} of {image}?", "At which cell is the only {shape} in {image}?"),
    "among": ("Which of these are in {image}?", "Choose all that are in {image}."),
    "where": ("Where in {image} is {a_shape}?", "Choose all cells of {image} that have {a_shape}."),
}
THINK = "Think first."  # before a request: describe the result, then draw it
SHOW = "Show it first."  # before a question: draw an image, then answer from it
DOCUMENTS = ("build", "film")  # requests for several images with texts between them
OPEN = ("add any", "draw any")  # requests with more than one right result
UNQUOTED = ("put back", *OPEN)  # requests whose right result does not follow from their words and one image
QUESTIONS = (
    "count",
    "what",
    "colour",
    "which",
    "same",
    "changed",
    "after",
    "fulfils",
    "chosen",
    "describe",
    "plan",
    "then",
    "way",
    "hidden",
)
HELPED = ("then", "way", "hidden")  # questions that an image helps to answer
