"""What the models of `weave-recall` are asked, in words and as JSON."""

from typing import Any

from weft_recipes.schemas import TEXT, object_of

KINDS = ("remove", "add", "replace", "colour", "background", "restore")
SCRIPT = """You plan a dialogue in which a user has one image changed several times. The subject is {subject}; this is \
dialogue {number}, so make it differ from the obvious.

`caption` describes Image #1 for a painter: two sentences, one clear main object and three or four others, each with its \
colour and its place.
`rounds` are {rounds} edits. Round 1 makes Image #2, round 2 makes Image #3, and so on. In each, `instruction` is what the \
user writes: it names the image that is changed as Image #k, usually the latest one, and changes one thing. `kind` is one of \
add, remove, replace, colour, background, restore.
- One round, `removed_in`, has the kind remove and takes an object of the caption away.
- A later round, `restored_in`, has the kind restore and wants this same object back, as it was, at the same place. Its \
instruction names the latest image, and the image in which the object can still be seen, and does not describe the object. \
At least one round lies between the two, and it changes something else that must stay changed.
- No round touches the place of the removed object meanwhile, and no round asks for what is already so.
`points` are what a reviewer checks in the round's result, one for an image at most: `image` is the number of an earlier \
image to compare with, and \
`requirement` one sentence that holds the marker <image> exactly once in its place. The restoring round has two points: \
one about the latest image, that all else is as in <image>, and one about the earlier image, that the object is back as \
in <image>."""
CHECK = """A plan for a dialogue in which an image is changed several times. Round 1 makes Image #2 from Image #1, round 2 \
makes Image #3, and so on.

{script}

Go through the rounds one by one and keep track of what is in each image. Then score in `asked_score` from 0 to 10 whether \
the plan is right: each round can be done in the image that it names; the restoring round wants back exactly what the \
removing round took, from an image that still has it; nothing between them stands in the way; nothing is asked for that is \
already so; each requirement follows from its instruction. 10: right in everything; 0: the restoring round is wrong. Say in \
`reasoning` what is wrong, before you score."""


def script_schema(rounds: int) -> dict[str, Any]:
    """Return the schema of a script with so many rounds."""
    point = object_of(image={"type": "integer", "minimum": 1, "maximum": rounds}, requirement=TEXT)
    points = {"type": "array", "minItems": 1, "maxItems": 3, "items": point}
    one = object_of(kind={"type": "string", "enum": list(KINDS)}, instruction=TEXT, points=points)
    number = {"type": "integer", "minimum": 1, "maximum": rounds}
    all_rounds = {"type": "array", "minItems": rounds, "maxItems": rounds, "items": one}
    return object_of(caption=TEXT, rounds=all_rounds, removed_in=number, restored_in=number)


class RecallPrompts:
    """The prompts of `weave-recall`, in English."""

    def script(self, number: int, subject: str, rounds: int) -> str:
        return SCRIPT.format(subject=subject, number=number + 1, rounds=rounds)

    def check(self, script: str) -> str:
        return CHECK.format(script=script)
