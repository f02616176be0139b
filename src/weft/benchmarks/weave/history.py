"""Which texts and images of a dialogue a model sees at a turn. Pure functions over numbered images (`Image #k`).

    history    an image turn gets                              a text turn gets
    none       mentioned images from the dataset, then the     the question, with images in place of their mentions
               instruction
    partial    the same, with the model's own images if it     the same, with its own images
               made them
    full       every image so far, captioned with its number   the whole dialogue, with images all first or inline at
                                                               their first mention
    dialogue   everything so far, interleaved in order: weft's own, for models that accept it

(WEAVE, section 4 and B.3.) Guarantee, unless `options.official` asks for the released behaviour: no image is ever
shown that a later turn brings in or makes, nor the turn's own answer; a number in the text is the label of its image.
An image that the model failed to make is absent: the reference never replaces it.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from weft.types import MENTION, Dialogue, Image, Message, Part, Sample, Text, Turn, build_caption, find_mentions

if TYPE_CHECKING:
    from weft.benchmarks.weave.protocol import WeaveOptions


def build_messages(sample: Sample, turn: Turn, dialogue: Dialogue, options: "WeaveOptions") -> tuple[Message, ...]:
    """Build the messages for a turn, before they are adapted to a model."""
    if options.history == "dialogue":
        return _build_dialogue(sample, turn, dialogue, options, place_outputs=True)
    if options.history == "full" and turn.modality == "text":
        return _build_dialogue(sample, turn, dialogue, options, place_outputs=False)
    if options.history == "full":
        images = _captioned_images(sample, _numbers_so_far(sample, turn), turn, dialogue, options)
        return (Message("user", (*images, Text(turn.prompt_text))),)
    if turn.modality == "text":
        return (Message("user", tuple(_replace_mentions(sample, turn, dialogue, options))),)
    return (_build_instruction(sample, turn, dialogue, options),)


def depends_on(sample: Sample, turn: Turn, options: "WeaveOptions") -> set[int]:
    """Return the earlier turns whose replies this turn is shown.

    If one of them failed through no fault of the model, this turn is not asked.
    """
    if options.past == "reference" or options.history == "none":
        return set()
    mentions = set(find_mentions(turn.prompt_text))
    numbers: set[int] = set()
    for earlier in sample.turns[: turn.number]:
        if options.history == "partial":
            is_shown = earlier.image_number in mentions
        elif options.history == "full" and turn.modality != "text":
            is_shown = earlier.image_number is not None
        else:
            is_shown = True
        if is_shown and options.includes(earlier):
            numbers.add(earlier.number)
    return numbers


def find_image(sample: Sample, number: int, turn: Turn, dialogue: Dialogue, options: "WeaveOptions") -> Image | None:
    """Return what `Image #number` is at this turn.

    That is an input from the dataset, or an earlier output: the model's own, or the reference if the options say so.
    None if it does not exist yet or the model did not make it.
    """
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
    if reply is None:
        return None
    return reply.last_image


def _build_instruction(sample: Sample, turn: Turn, dialogue: Dialogue, options: "WeaveOptions") -> Message:
    """For history none and partial: each mentioned image once, ascending, and the text renumbered to match.

    Numbers without an image come last.
    """
    images: dict[int, Image] = {}
    numbers_without_image: list[int] = []
    mentions = find_mentions(turn.prompt_text)
    for number in sorted(set(mentions)):
        image = find_image(sample, number, turn, dialogue, options)
        if image is None:
            numbers_without_image.append(number)
        else:
            images[number] = image
    labelled: list[Image] = []
    for position, image in enumerate(images.values(), start=1):
        labelled.append(replace(image, label=position if len(mentions) > 1 else None))
    text = renumber(turn.prompt_text, [*images, *numbers_without_image])
    return Message("user", (*labelled, Text(text)))


def _replace_mentions(sample: Sample, turn: Turn, dialogue: Dialogue, options: "WeaveOptions") -> Iterator[Part]:
    """For a question with history none or partial: replace each mention by its image, if there is one."""
    end = 0
    for match in MENTION.finditer(turn.prompt_text):
        image = find_image(sample, int(match.group(1)), turn, dialogue, options)
        if image is not None:
            if match.start() > end:
                yield Text(turn.prompt_text[end : match.start()])
            yield image
            end = match.end()
    if end < len(turn.prompt_text):
        yield Text(turn.prompt_text[end:])


def _numbers_so_far(sample: Sample, turn: Turn) -> list[int]:
    """Return the numbers of all inputs mentioned up to this turn and of all outputs before it, ascending."""
    numbers: set[int] = set()
    for other in sample.turns[: turn.number + 1]:
        if other.image_number is not None and other.number < turn.number:
            numbers.add(other.image_number)
        for number in find_mentions(other.prompt_text):
            if sample.turn_of_image(number) is None:
                numbers.add(number)
    return sorted(numbers)


def _captioned_images(
    sample: Sample, numbers: Iterable[int], turn: Turn, dialogue: Dialogue, options: "WeaveOptions"
) -> Iterator[Part]:
    """Yield a caption and the image for each of the numbers that has one."""
    for number in numbers:
        image = find_image(sample, number, turn, dialogue, options)
        if image is not None:
            yield build_caption(number)
            yield replace(image, label=number)


def _build_dialogue(
    sample: Sample, turn: Turn, dialogue: Dialogue, options: "WeaveOptions", *, place_outputs: bool
) -> tuple[Message, ...]:
    """Build the dialogue as messages.

    With `place_outputs`, the assistant's images are in its own messages, and inputs in the message that brings them in.
    Without it, the assistant's messages only name its images, and images are all first or inline at first mention.
    """
    available = set(_numbers_so_far(sample, turn))
    if place_outputs:
        available -= {other.image_number for other in sample.turns}
    placed: set[int] = set()

    def with_images(text: str) -> tuple[Part, ...]:
        new_numbers: list[int] = []
        for number in find_mentions(text):
            if number in available and number not in placed:
                new_numbers.append(number)
                placed.add(number)
        if options.placement == "inline":
            return tuple(_images_after_mentions(sample, text, set(new_numbers), turn, dialogue, options))
        if place_outputs:
            return (*_captioned_images(sample, new_numbers, turn, dialogue, options), Text(text))
        return (Text(text),)

    messages: list[Message] = []
    for earlier in sample.turns[: turn.number]:
        messages.append(Message("user", with_images(earlier.prompt_text)))
        output = _earlier_output(earlier, dialogue, options)
        if output and place_outputs:
            messages.append(Message("assistant", output))
        elif output:
            messages.append(Message("assistant", with_images(_describe_output(earlier, output))))
    messages.append(Message("user", with_images(turn.prompt_text)))
    if options.placement == "all-first" and not place_outputs:
        images = _captioned_images(sample, sorted(placed), turn, dialogue, options)
        messages[0] = Message("user", (*images, *messages[0].parts))
    return tuple(messages)


def _earlier_output(turn: Turn, dialogue: Dialogue, options: "WeaveOptions") -> tuple[Part, ...]:
    """Return what the history shows as the reply to an earlier turn, with its image captioned.

    Nothing is invented: if the model replied nothing, its reply is absent and the request before it stays.
    """
    parts: tuple[Part, ...] = ()
    if options.past == "reference" or not options.includes(turn):
        parts = turn.reference
    elif turn.number in dialogue:
        parts = dialogue[turn.number].parts
    if turn.image_number is None:
        return parts
    images = [part for part in parts if isinstance(part, Image)]
    output: list[Part] = []
    for part in parts:
        if images and part is images[-1]:
            output += [build_caption(turn.image_number), replace(images[-1], label=turn.image_number)]
        else:
            output.append(part)
    return tuple(output)


def _describe_output(turn: Turn, output: tuple[Part, ...]) -> str:
    """Return an earlier reply as text: its texts without the caption, and its image by number alone."""
    texts = [part for part in output if isinstance(part, Text)]
    if turn.image_number is not None:
        caption = build_caption(turn.image_number)
        texts = [text for text in texts if text != caption]
        if any(isinstance(part, Image) for part in output):
            texts.append(Text(f"Image #{turn.image_number}"))
    return "\n".join(text.text for text in texts)


def _images_after_mentions(
    sample: Sample, text: str, new_numbers: set[int], turn: Turn, dialogue: Dialogue, options: "WeaveOptions"
) -> Iterator[Part]:
    """Yield the text with each new image after its first mention."""
    end = 0
    for match in MENTION.finditer(text):
        number = int(match.group(1))
        if number not in new_numbers:
            continue
        image = find_image(sample, number, turn, dialogue, options)
        if image is not None:
            new_numbers.discard(number)
            yield Text(text[end : match.end()])
            yield replace(image, label=number)
            end = match.end()
    if end < len(text):
        yield Text(text[end:])


def renumber(text: str, order: list[int]) -> str:
    """Replace each mention's number by its position in `order`; a single mention becomes the bare word `image`."""
    if len(find_mentions(text)) == 1:
        return MENTION.sub("image", text)
    return MENTION.sub(lambda match: f"Image #{order.index(int(match.group(1))) + 1}", text)
