"""Tabletop dialogues as weft Samples, with an image for each scene; for training and for tests that need no files."""

from collections.abc import Callable

from weft.types import Image, Message, Reply, Sample, Text, Turn
from weft_tabletop.make.dialogues import TableDialogue
from weft_tabletop.world.scenes import Scene


def build_sample(
    dialogue: TableDialogue,
    name: str,
    image_of: Callable[[Scene], Image],
    gold_of: Callable[[int], object] | None = None,
) -> Sample:
    """Build the dialogue as a Sample. `gold_of` gives the gold data of a turn by its number."""
    images = {number: image_of(scene) for number, scene in dialogue.scenes().items()}
    turns: list[Turn] = []
    for number, turn in enumerate(dialogue.turns):
        gold = gold_of(number) if gold_of else None
        prompt = (Text(turn.text),)
        if turn.image_number is None:
            turns.append(Turn(number, prompt, "text", (Text(turn.answer),), gold=gold))
        else:
            reference = (images[turn.image_number],)
            turns.append(Turn(number, prompt, "image", reference, turn.image_number, gold=gold))
    sorted_images = tuple(images[number] for number in sorted(images))
    return Sample(name, tuple(turns), sorted_images, {"domain": dialogue.domain})


def chat_messages(dialogue: TableDialogue, image_of: Callable[[Scene], Image]) -> tuple[Message, ...]:
    """The whole dialogue as IMUG-Bench shows it, with reference replies; images come with their turn, without
    numbers."""
    inputs = dict(enumerate(dialogue.inputs, start=1))
    messages: list[Message] = []
    for turn in dialogue.turns:
        images = [image_of(inputs[number]) for number in turn.input_images]
        messages.append(Message("user", (Text(turn.text), *images)))
        reply = Text(turn.answer) if turn.scene is None else image_of(turn.scene)
        messages.append(Message("assistant", (reply,)))
    return tuple(messages)


def reference_replies(sample: Sample, before: int) -> dict[int, Reply]:
    """The reference replies to the turns before this one."""
    return {turn.number: Reply("answered", turn.reference) for turn in sample.turns[:before]}
