"""A row of tables as the tiny model reads it: cut into its tables again, each at its place in the text.

The model sees tables of 64 x 64 pixels, so a row of several is read table by table, with the number that is drawn on
each. It was never trained on such numbers.
"""

import re

from weft.models.adapt import GAP
from weft.store.blobs import Blobs
from weft.types import Image, Message, Part, Role, Text, build_caption, find_mentions
from weft_tabletop.tiny import vocab

NOTE_START = "The picture above is a row of"
SPEAKER = re.compile(r"^(User|Assistant|System): ", re.MULTILINE)
PLACE = re.compile(r"\[image (\d{1,6})\]")
ROLES: dict[str, Role] = {"User": "user", "Assistant": "assistant", "System": "system"}


def unroll_row(messages: tuple[Message, ...], blobs: Blobs) -> tuple[Message, ...]:
    """Return messages whose one row of images is cut into its tables. Messages without such a row come back as they
    are."""
    if len(messages) != 1 or not messages[0].parts or not isinstance(messages[0].parts[0], Image):
        return messages
    row, *texts = messages[0].parts
    text = "".join(part.text for part in texts if isinstance(part, Text))
    assert isinstance(row, Image)
    tables = _cut(row, blobs)
    if text.startswith(NOTE_START):
        text = text.partition("\n")[2]
    numbers = _number_tables(text, len(tables))
    by_number = dict(zip(numbers, tables, strict=True))
    placed = {int(number) for number in PLACE.findall(text)}
    unplaced = [number for number in numbers if number not in placed]
    dialogue = [Message(role, _place_tables(line, by_number)) for role, line in _split_speakers(text)]
    rest: list[Part] = []
    for number in unplaced:
        rest += [build_caption(number), by_number[number]]
    last = dialogue[-1]
    return (*dialogue[:-1], Message(last.role, (*last.parts, *rest)))


def _cut(row: Image, blobs: Blobs) -> list[Image]:
    """Return the tables of a row; the image itself if it is none."""
    side = vocab.SIDE
    count, rest = divmod(row.width + GAP, side + GAP)
    if count < 2 or rest or row.height != side:
        return [row]
    whole = blobs.decode(row)
    tables: list[Image] = []
    for place in range(count):
        left = place * (side + GAP)
        tables.append(blobs.put_pil(whole.crop((left, 0, left + side, side)), durable=False))
    return tables


def _number_tables(text: str, count: int) -> list[int]:
    """Return the tables' numbers in the row's order: those that stand in the text, or else running ones."""
    for numbers in (map(int, PLACE.findall(text)), sorted(find_mentions(text))):
        distinct = list(dict.fromkeys(numbers))
        if len(distinct) == count:
            return distinct
    return list(range(1, count + 1))


def _split_speakers(text: str) -> list[tuple[Role, str]]:
    """Return the role and the words of each message; words without a role are the user's."""
    starts = list(SPEAKER.finditer(text))
    if not starts:
        return [("user", text)]
    ends = [match.start() for match in starts[1:]] + [len(text)]
    spoken: list[tuple[Role, str]] = []
    for match, end in zip(starts, ends, strict=True):
        spoken.append((ROLES[match[1]], text[match.end() : end].strip("\n")))
    return spoken


def _place_tables(text: str, tables: dict[int, Image]) -> tuple[Part, ...]:
    """Return words and tables in their order, each table after its caption."""
    parts: list[Part] = []
    for index, piece in enumerate(PLACE.split(text)):
        if index % 2 == 0:
            if piece.strip():
                parts.append(Text(piece.strip()))
        elif int(piece) in tables:
            parts += [build_caption(int(piece)), tables[int(piece)]]
    return tuple(parts)
