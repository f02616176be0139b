"""What leaves a dialogue when an image or a turn is dropped, and the new numbers of what stays. Pure functions.

A turn leaves with every image that it makes, and with it every turn that sees such an image, at any distance. Inputs
that nobody mentions any more leave as well. The images that stay are renumbered 1..n in their order, in texts and key
points alike, so every turn that stays refers to the same images as before.
"""

import re
from collections.abc import Collection, Mapping

from msgspec.structs import replace

from weft.building.draft import MIN_TURNS, Draft, DraftTurn
from weft.types import MENTION, find_mentions

POINT_IMAGE = re.compile(r"(GT|Image) #(\d{1,6})")


def images_seen(turn: DraftTurn) -> set[int]:
    """Return the numbers of all images that a turn depends on: mentioned, in its key points, or named by `sees`."""
    seen = {*find_mentions(turn.text), *find_mentions(turn.answer), *turn.sees}
    for name in turn.key_points:
        match = POINT_IMAGE.fullmatch(name)
        if match is not None:
            seen.add(int(match[2]))
    return seen


def find_leaving_turns(draft: Draft, images: Collection[int] = (), turns: Collection[int] = ()) -> set[int]:
    """Return the turns (from 0) that leave if these images and turns are dropped."""
    gone_images = set(images)
    gone_turns = set(turns)
    known = range(1, len(draft.images) + 1)
    gone_images |= {draft.turns[index].makes or 0 for index in gone_turns}
    while True:
        before = len(gone_turns)
        for index, turn in enumerate(draft.turns):
            if index in gone_turns:
                continue
            seen = images_seen(turn)
            is_broken = any(number not in known for number in seen)
            if turn.makes in gone_images or seen & gone_images or is_broken:
                gone_turns.add(index)
                if turn.makes is not None:
                    gone_images.add(turn.makes)
        if len(gone_turns) == before:
            return gone_turns


def drop(draft: Draft, images: Collection[int] = (), turns: Collection[int] = ()) -> Draft | None:
    """Return the dialogue without these images and turns, and without what depends on them.

    None if fewer than two turns are left.
    """
    leaving = find_leaving_turns(draft, images, turns)
    kept = [turn for index, turn in enumerate(draft.turns) if index not in leaving]
    if len(kept) < MIN_TURNS:
        return None
    used: set[int] = set()
    for turn in kept:
        used |= images_seen(turn)
        if turn.makes is not None:
            used.add(turn.makes)
    order = sorted(used)
    numbers = {old: new for new, old in enumerate(order, start=1)}
    return replace(
        draft,
        images=tuple(draft.images[number - 1] for number in order),
        turns=tuple(renumber_turn(turn, numbers) for turn in kept),
    )


def renumber_turn(turn: DraftTurn, numbers: Mapping[int, int]) -> DraftTurn:
    """Return a turn with new image numbers, which must have every number that the turn uses."""
    makes = turn.makes
    if makes is not None:
        makes = numbers[makes]
    points = {_renumber_name(name, numbers): renumber_text(text, numbers) for name, text in turn.key_points.items()}
    return replace(
        turn,
        text=renumber_text(turn.text, numbers),
        answer=renumber_text(turn.answer, numbers),
        makes=makes,
        key_points=points,
        sees=tuple(numbers[number] for number in turn.sees),
    )


def _renumber_name(name: str, numbers: Mapping[int, int]) -> str:
    """Return the name of a key point with its image's new number; `Text` stays."""
    match = POINT_IMAGE.fullmatch(name)
    if match is None:
        return name
    return f"{match[1]} #{numbers[int(match[2])]}"


def renumber_text(text: str, numbers: Mapping[int, int]) -> str:
    """Return a text with new numbers in its mentions; a number that is not in `numbers` stays."""
    return MENTION.sub(lambda match: f"Image #{numbers.get(int(match[1]), int(match[1]))}", text)
