"""Tabletop dialogues as weft Samples, with pictures that stand for scenes; for training and for tests that need no
files."""

from collections.abc import Callable

from weft.types import Image, Message, Reply, Sample, Text, Turn
from weft_tabletop.make.dialogues import TableDialogue
from weft_tabletop.world.scenes import Scene


def sample_of(
    dialogue: TableDialogue,
    name: str,
    image_of: Callable[[Scene], Image],
    points: Callable[[int], object] | None = None,
) -> Sample:
    scenes = dialogue.scenes()
    pictures = {number: image_of(scene) for number, scene in scenes.items()}
    turns: list[Turn] = []
    for number, turn in enumerate(dialogue.turns):
        if turn.makes is not None:
            truth = (pictures[turn.makes],)
        else:
            truth = (Text(turn.answer),)
        if turn.makes is not None:
            want = "image"
        else:
            want = "text"
        turns.append(Turn(number, (Text(turn.text),), want, truth, turn.makes, gold=points(number) if points else None))
    return Sample(
        name, tuple(turns), tuple(pictures[number] for number in sorted(pictures)), {"domain": dialogue.domain}
    )


def chat_messages(dialogue: TableDialogue, image_of: Callable[[Scene], Image]) -> tuple[Message, ...]:
    """The whole dialogue as IMUG-Bench shows it, each reply as it should be; pictures come with their turn, without
    numbers."""
    scenes = dict(enumerate(dialogue.inputs, start=1))
    messages: list[Message] = []
    for turn in dialogue.turns:
        messages.append(Message("user", (Text(turn.text), *(image_of(scenes[number]) for number in turn.gives))))
        if turn.scene is not None:
            said = image_of(turn.scene)
        else:
            said = Text(turn.answer)
        messages.append(Message("assistant", (said,)))
    return tuple(messages)


def true_replies(sample: Sample, before: int) -> dict[int, Reply]:
    """The dialogue so far, as it should have gone."""
    return {turn.number: Reply("answered", turn.reference) for turn in sample.turns[:before]}
