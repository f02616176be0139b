"""Rules that texts and dialogues must obey. They cost no call.

`find_text_problem` looks at what a writer wrote, `find_draft_problem` at a whole dialogue: references must be there and
made before they are used, key points must have their markers, an answer must not stand in its own question.
"""

import re
from collections.abc import Mapping

from weft.building.draft import MIN_TURNS, Draft, DraftTurn
from weft.building.references import POINT_IMAGE, images_seen
from weft.types import find_mentions

MIN_WORDS = 3  # of a request
MAX_CHARACTERS = 1200  # of a request
MAX_IMAGES = 8  # of a dialogue, as in WEAVE-100k
MARKER = "<image>"
MIN_LEAK = 4  # characters of an answer that may not stand in its question
STRAY = re.compile(r"https?://|```|\bAs an AI\b|\bI (?:cannot|can't|am unable to)\b|<\|", re.IGNORECASE)


def find_text_problem(text: str, *, images: int, needs: tuple[int, ...] = ()) -> str:
    """Return what is wrong with a request that may mention `Image #1` to `Image #images`; empty if nothing is.

    `needs` are the images that it must mention.
    """
    words = text.split()
    if len(words) < MIN_WORDS:
        return "a request is too short"
    if len(text) > MAX_CHARACTERS:
        return "a request is too long"
    if STRAY.search(text):
        return "a request has an address, code or an excuse in it"
    mentioned = set(find_mentions(text))
    if any(not 1 <= number <= images for number in mentioned):
        return "a request mentions an image that is not there"
    if not mentioned.issuperset(needs):
        return "a request does not mention the image that it is about"
    return ""


def find_draft_problem(draft: Draft) -> str:
    """Return what is wrong with a dialogue; empty if nothing is."""
    if len(draft.turns) < MIN_TURNS:
        return "fewer than two turns"
    if len(draft.images) > MAX_IMAGES:
        return "too many images"
    makers = {turn.makes: index for index, turn in enumerate(draft.turns) if turn.makes is not None}
    if len(makers) < sum(turn.makes is not None for turn in draft.turns):
        return "two turns make one image"
    for index, turn in enumerate(draft.turns):
        problem = _find_turn_problem(draft, index, turn, makers)
        if problem:
            return problem
    digests = [image.digest for image in draft.images]
    if len(set(digests)) < len(digests):
        return "two of its images are the same"
    return ""


def _find_turn_problem(draft: Draft, index: int, turn: DraftTurn, makers: Mapping[int, int]) -> str:
    known = range(1, len(draft.images) + 1)
    if turn.makes is not None and turn.makes not in known:
        return "a turn makes an image that is not there"
    for number in images_seen(turn):
        if number not in known:
            return "a turn refers to an image that is not there"
        made_by = makers.get(number)
        if made_by is not None and made_by >= index:
            return "a turn refers to an image that is made later"
    if turn.makes is None and not turn.answer.strip():
        return "a question has no answer"
    answer = turn.answer.strip().lower()
    if len(answer) >= MIN_LEAK and re.search(rf"(?<!\w){re.escape(answer)}(?!\w)", turn.text.lower()):
        return "an answer stands in its question"
    return _find_point_problem(turn)


def _find_point_problem(turn: DraftTurn) -> str:
    if turn.makes is not None and not turn.key_points:
        return "a turn has no key point"
    for name, text in turn.key_points.items():
        match = POINT_IMAGE.fullmatch(name)
        if match is None and name != "Text":
            return "a key point has a name that is none"
        if text.count(MARKER) != (match is not None):
            return "a key point's image marker is missing, or too many"
    return ""
