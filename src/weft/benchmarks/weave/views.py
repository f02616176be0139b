"""From a WEAVE sample to examples for training, with the code that shows turns in an evaluation, so that both number
images alike.

    dialogue       the whole dialogue, images in their places; every reply is learnt
    single-turn    each turn by itself, with the images that it names, renumbered in their order (WEAVE, B.2): what
                   `--history partial` shows
    plain          each turn by itself that names one image at most
"""

from collections.abc import Iterator

from weft.benchmarks.weave import history
from weft.benchmarks.weave.protocol import WeaveOptions
from weft.training.example import Example, learn_last_reply, learn_replies
from weft.training.views import View
from weft.types import Message, Reply, Sample, Turn, find_mentions

WHOLE = WeaveOptions("dialogue", "inline", past="reference")
PARTIAL = WeaveOptions("partial", past="reference")


def dialogue_view(sample: Sample) -> Iterator[Example]:
    if sample.turns:
        last = sample.turns[-1]
        yield learn_replies((*_show(sample, last, WHOLE), Message("assistant", last.reference)))


def single_turn_view(sample: Sample) -> Iterator[Example]:
    for turn in sample.turns:
        yield learn_last_reply((*show_single_turn(sample, turn), Message("assistant", turn.reference)))


def plain_turn_view(sample: Sample) -> Iterator[Example]:
    for turn, example in zip(sample.turns, single_turn_view(sample), strict=True):
        if len(set(find_mentions(turn.prompt_text))) <= 1:
            yield example


VIEWS: dict[str, View] = {"dialogue": dialogue_view, "single-turn": single_turn_view, "plain": plain_turn_view}


def show_single_turn(sample: Sample, turn: Turn) -> tuple[Message, ...]:
    """A turn with the images that it names, as references."""
    return _show(sample, turn, PARTIAL)


def _show(sample: Sample, turn: Turn, options: WeaveOptions) -> tuple[Message, ...]:
    earlier = {other.number: Reply("answered", other.reference) for other in sample.turns[: turn.number]}
    return history.build_messages(sample, turn, earlier, options)
