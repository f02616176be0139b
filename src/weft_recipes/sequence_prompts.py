"""What the models of `weave-sequence` are asked, in words and as JSON."""

from typing import Any

from weft_recipes.schemas import TEXT, object_of

EDIT_SCRIPT = """You plan a dialogue in which a user has one scene changed step by step, towards an end that can be told \
from the steps: a makeover, a repair, a season that passes, a meal that is prepared. The subject is {subject}; this is \
dialogue {number}, so make it differ from the obvious."""
STORY_SCRIPT = """You plan a picture story that a user has drawn one image at a time. The subject is {subject}; this is \
story {number}, so make it differ from the obvious. People or figures act in it; one of them leaves and comes back."""
RULES = """`character` names the main character or object in a few words that fit it alone, such as "the fox with the red \
scarf". `caption` describes Image #1 for a painter in two or three sentences: the character with everything by which it \
is known again (colours, clothes, marks), where it is, and the light. It holds the words of `character`.
`rounds` are {rounds} steps. Step 1 makes Image #2, step 2 makes Image #3, and so on. In each, `instruction` is what the \
user writes: it names every image that it needs as Image #k, and says what is new and what has to stay.
- Each step needs an image of its own: nothing that is only said, thought or heard.
- Each step follows from an earlier one, and cannot be drawn without the images that it names.
- At least one step names an image that is not the latest one, since something is wanted from it that the latest one does \
not show: the character after it was away, a place that was left, how something looked before.
- At least half of the instructions hold the words of `character`. No step describes again what an image shows already.
`kind` is one of action, change, leave, return, place. `points` are what a reviewer checks in the step's result, one for an image at most: `image` \
is the number of an earlier image to compare with, and `requirement` one sentence that holds the marker <image> exactly \
once in its place, such as "The fox looks the same as in <image>"."""
CHECK = """A plan for a dialogue in which images are made one after the other. Step 1 makes Image #2 from Image #1, step 2 \
makes Image #3, and so on.

{script}

Go through the steps one by one and keep track of what is in each image. Then score in `asked_score` from 0 to 10 whether \
the plan is right: each step needs an image, and the images that it names are those that it needs; the steps belong \
together; the character can be told by its looks and stays the same; at least one step needs an image that is not the \
latest one; each requirement follows from its instruction. 10: right in everything; 0: the steps do not belong together. \
Say in `reasoning` what is wrong, before you score."""
STYLE = """Draw the following in the style of Image #1: its technique, its lines and its colours, and nothing of what it \
shows.

{caption}"""
KINDS = ("action", "change", "leave", "return", "place")


def script_schema(rounds: int) -> dict[str, Any]:
    """Return the schema of a script with so many steps."""
    point = object_of(image={"type": "integer", "minimum": 1, "maximum": rounds}, requirement=TEXT)
    points = {"type": "array", "minItems": 1, "maxItems": 3, "items": point}
    one = object_of(kind={"type": "string", "enum": list(KINDS)}, instruction=TEXT, points=points)
    all_rounds = {"type": "array", "minItems": rounds, "maxItems": rounds, "items": one}
    return object_of(character=TEXT, caption=TEXT, rounds=all_rounds)


class SequencePrompts:
    """The prompts of `weave-sequence`, in English."""

    def script(self, number: int, subject: str, rounds: int, *, is_story: bool) -> str:
        opening = STORY_SCRIPT if is_story else EDIT_SCRIPT
        return f"{opening.format(subject=subject, number=number + 1)}\n\n{RULES.format(rounds=rounds)}"

    def check(self, script: str) -> str:
        return CHECK.format(script=script)

    def in_style(self, caption: str) -> str:
        return STYLE.format(caption=caption)
