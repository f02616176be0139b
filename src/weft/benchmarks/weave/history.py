"""Which of a dialogue's texts and pictures a model sees at a turn. Pure functions over numbered pictures (`Image #k`).

    history        an image turn gets                                      a text turn gets
    none           mentioned pictures from the dataset + the instruction   the question, pictures in place of their
    mentions
    partial        the same, with the model's own pictures where it made   the same, with its own pictures
                   them
    full           every picture so far, captioned with its true number    the whole dialogue, pictures at the front or
    at
                                                                           their first mention
    dialogue       everything so far, interleaved in true order: ours, for models that can take it

(WEAVE, section 4 and B.3.) Guarantee, unless `options.official` asks for the released behaviour: no picture is ever
shown that a later turn brings in or is to make, nor the turn's own answer; a number in the text and the label of its
picture agree. A picture that the model failed to make is not replaced by the true one: it is absent."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from weft.types import MENTION, Dialogue, Image, Message, Part, Sample, Text, Turn, build_caption, find_mentions

if TYPE_CHECKING:
    from weft.benchmarks.weave.protocol import WeaveOptions


def build_messages(sample: Sample, turn: Turn, dialogue: Dialogue, options: "WeaveOptions") -> tuple[Message, ...]:
    """The messages for this turn, before any fit."""
    if options.history == "dialogue":
        return _whole(sample, turn, dialogue, options, place_outputs=True)
    if options.history == "full":
        if turn.modality == "text":
            return _whole(sample, turn, dialogue, options, place_outputs=False)
        return (
            Message("user", (*_front(sample, _so_far(sample, turn), turn, dialogue, options), Text(turn.prompt_text))),
        )
    if turn.modality == "text":
        return (Message("user", tuple(_in_place(sample, turn, dialogue, options))),)
    return (_instruction(sample, turn, dialogue, options),)


def depends_on(sample: Sample, turn: Turn, options: "WeaveOptions") -> set[int]:
    """Earlier turns whose replies this turn is shown. If one of them is missing through our fault, this turn has to
    wait."""
    if options.past == "reference" or options.history == "none":
        return set()
    earlier = [other for other in sample.turns[: turn.number] if options.includes(other)]
    if options.history == "partial":
        wanted = set(find_mentions(turn.prompt_text))
        return {other.number for other in earlier if other.image_number in wanted}
    if options.history == "full" and turn.modality != "text":
        return {other.number for other in earlier if other.image_number is not None}
    return {other.number for other in earlier}


def picture(sample: Sample, number: int, turn: Turn, dialogue: Dialogue, options: "WeaveOptions") -> Image | None:
    """What stands for `Image #number` at this turn: an input from the dataset, an earlier output (the model's own, or
    the true one where the view says so), or None where there is none yet or the model made none."""
    if not 1 <= number <= len(sample.images):
        return None
    maker = sample.turn_of_image(number)
    if maker is None:
        return sample.images[number - 1]
    if maker.number >= turn.number:
        return None
    if options.past == "reference" or options.history == "none" or not options.includes(maker):
        return sample.images[number - 1]
    reply = dialogue.get(maker.number)
    if reply is not None:
        return reply.last_image
    return None


def _instruction(sample: Sample, turn: Turn, dialogue: Dialogue, options: "WeaveOptions") -> Message:
    """none, partial: each mentioned picture once, ascending; the text renumbered to match. Numbers without a picture
    come last."""
    numbers = sorted(set(find_mentions(turn.prompt_text)))
    shown = {
        number: image for number in numbers if (image := picture(sample, number, turn, dialogue, options)) is not None
    }
    order = [*shown, *(number for number in numbers if number not in shown)]
    text = renumber(turn.prompt_text, order)
    labelled = len(find_mentions(turn.prompt_text)) > 1
    images = [replace(image, label=position + 1 if labelled else None) for position, image in enumerate(shown.values())]
    return Message("user", (*images, Text(text)))


def _in_place(sample: Sample, turn: Turn, dialogue: Dialogue, options: "WeaveOptions") -> Iterator[Part]:
    """none, partial, for a question: each mention replaced by its picture; a mention without one stays as it is."""
    end = 0
    for match in MENTION.finditer(turn.prompt_text):
        image = picture(sample, int(match.group(1)), turn, dialogue, options)
        if image is not None:
            if text := turn.prompt_text[end : match.start()]:
                yield Text(text)
            yield image
            end = match.end()
    if rest := turn.prompt_text[end:]:
        yield Text(rest)


def _so_far(sample: Sample, turn: Turn) -> list[int]:
    """Numbers of all inputs mentioned by the user up to this turn and of all outputs due before it, ascending."""
    numbers = {other.image_number for other in sample.turns[: turn.number] if other.image_number is not None}
    for other in sample.turns[: turn.number + 1]:
        numbers.update(number for number in find_mentions(other.prompt_text) if sample.turn_of_image(number) is None)
    return sorted(numbers)


def _front(
    sample: Sample, numbers: list[int], turn: Turn, dialogue: Dialogue, options: "WeaveOptions"
) -> Iterator[Part]:
    for number in numbers:
        image = picture(sample, number, turn, dialogue, options)
        if image is not None:
            yield build_caption(number)
            yield replace(image, label=number)


def _whole(
    sample: Sample, turn: Turn, dialogue: Dialogue, options: "WeaveOptions", *, place_outputs: bool
) -> tuple[Message, ...]:
    """The dialogue as messages. With `place_outputs` the assistant's pictures stand in its own messages and inputs at
    the message that brings them in; without, its messages only name them, and pictures stand at the very front or at
    their first mention."""
    exchanges = [(other, _said(other, dialogue, options)) for other in sample.turns[: turn.number]]
    brought = set(_so_far(sample, turn))
    if place_outputs:
        brought -= {other.image_number for other in sample.turns if other.image_number is not None}
    placed: set[int] = set()

    def with_pictures(text: str) -> tuple[Part, ...]:
        fresh = [number for number in dict.fromkeys(find_mentions(text)) if number in brought and number not in placed]
        placed.update(fresh)
        if options.placement == "all-first":
            if place_outputs:
                return (*_front(sample, fresh, turn, dialogue, options), Text(text))
            return (Text(text),)
        return tuple(_after_mention(sample, text, set(fresh), turn, dialogue, options))

    messages: list[Message] = []
    for other, said in exchanges:
        messages.append(Message("user", with_pictures(other.prompt_text)))
        if said and place_outputs:
            messages.append(Message("assistant", said))
        elif said:
            messages.append(Message("assistant", with_pictures(_named(other, said))))
    messages.append(Message("user", with_pictures(turn.prompt_text)))
    if options.placement == "all-first" and not place_outputs:
        front = tuple(_front(sample, sorted(placed), turn, dialogue, options))
        messages[0] = Message("user", (*front, *messages[0].parts))
    return tuple(messages)


def _said(turn: Turn, dialogue: Dialogue, options: "WeaveOptions") -> tuple[Part, ...]:
    """What stands in the history for an earlier reply. Nothing is put in the model's mouth: where it said nothing,
    nothing stands; the request before it stays."""
    if options.past == "reference" or not options.includes(turn):
        parts = turn.reference
    else:
        reply = dialogue.get(turn.number)
        if reply is not None:
            parts = reply.parts
        else:
            parts = ()
    if turn.image_number is None:
        return parts
    images = [part for part in parts if isinstance(part, Image)]
    said: list[Part] = []
    for part in parts:
        if images and part is images[-1]:
            said += [build_caption(turn.image_number), replace(images[-1], label=turn.image_number)]
        else:
            said.append(part)
    return tuple(said)


def _named(turn: Turn, said: tuple[Part, ...]) -> str:
    """An earlier reply in words: its texts, and its picture by number alone."""
    words = [
        part.text
        for part in said
        if isinstance(part, Text) and (turn.image_number is None or part != build_caption(turn.image_number))
    ]
    if turn.image_number is not None and any(isinstance(part, Image) for part in said):
        words.append(f"Image #{turn.image_number}")
    return "\n".join(words)


def _after_mention(
    sample: Sample, text: str, fresh: set[int], turn: Turn, dialogue: Dialogue, options: "WeaveOptions"
) -> Iterator[Part]:
    end = 0
    for match in MENTION.finditer(text):
        number = int(match.group(1))
        if number in fresh:
            image = picture(sample, number, turn, dialogue, options)
        else:
            image = None
        if image is not None:
            fresh.discard(number)
            yield Text(text[end : match.end()])
            yield replace(image, label=number)
            end = match.end()
    if rest := text[end:]:
        yield Text(rest)


def renumber(text: str, order: list[int]) -> str:
    """Mentions by the position of their number in `order`; a single mention becomes the bare word `image`."""
    found = find_mentions(text)
    if len(found) == 1:
        return MENTION.sub("image", text)
    return MENTION.sub(lambda match: f"Image #{order.index(int(match.group(1))) + 1}", text)
