"""From a sample to what a planner and a visualizer learn. `show` builds the messages that a model sees at a turn; each
benchmark has its own (`benchmarks/weave/views.py`)."""

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from weft.training.example import Example, learn_last_reply
from weft.types import Image, Message, Part, Sample, Text, Turn

View = Callable[[Sample], Iterator[Example]]
Show = Callable[[Sample, Turn], tuple[Message, ...]]


class DrawingOrder(Struct, frozen=True):
    """What a planner says to have an image drawn."""

    text: str
    sees_request: bool = False  # whether the images of the request are needed to draw it


Orders = Callable[[Turn], Sequence[DrawingOrder]]  # the order for each image of a turn's reference


def planner_view(sample: Sample, show: Show, orders: Orders) -> Iterator[Example]:
    """What a planner learns: the reply with an order in place of each image, in the form of `compose/imagine.py`."""
    for turn in sample.turns:
        waiting = iter(orders(turn))
        parts: list[Part] = []
        for part in turn.reference:
            if isinstance(part, Image):
                part = Text(format_order(next(waiting).text))
            parts.append(part)
        yield learn_last_reply((*show(sample, turn), Message("assistant", tuple(parts))))


def visualizer_view(sample: Sample, show: Show, orders: Orders) -> Iterator[Example]:
    """What a visualizer learns: each image from its order, and from the images of the request where it needs them."""
    for turn in sample.turns:
        inputs = [part for message in show(sample, turn) for part in message.parts if isinstance(part, Image)]
        images = [part for part in turn.reference if isinstance(part, Image)]
        for order, image in zip(orders(turn), images, strict=True):
            shown = inputs if order.sees_request else []
            yield learn_last_reply((Message("user", (*shown, Text(order.text))), Message("assistant", (image,))))


def format_order(order: str) -> str:
    return f'<imagine uses="none">{order}</imagine>'
