"""What leaves a dialogue after a drop, and what stays: nothing broken, and every turn with the images that it had."""

import random

from weft.building.draft import Draft, DraftTurn
from weft.building.gates.rules import find_draft_problem
from weft.building.references import drop, find_leaving_turns, images_seen, renumber_text
from weft.types import Image, find_mentions

DIALOGUES = 10_000


def image(name: str) -> Image:
    return Image(name, "image/png", 8, 8, 100)


def random_draft(rng: random.Random) -> Draft:
    """A dialogue of 2 to 8 turns, about inputs and earlier outputs, whose outputs are not numbered in their order."""
    inputs = rng.randint(0, 3)
    turns = rng.randint(2, 8)
    outputs = [*range(inputs + 1, inputs + turns + 1)]
    rng.shuffle(outputs)
    there = list(range(1, inputs + 1))
    made: list[DraftTurn] = []
    for number in outputs:
        seen = rng.sample(there, min(len(there), rng.randint(0, 2)))
        text = " and ".join(f"Image #{one}" for one in seen) or "something new"
        asks = rng.random() < 0.2
        hidden = tuple(rng.sample(there, 1)) if there and rng.random() < 0.15 else ()
        points = {f"{rng.choice(('GT', 'Image'))} #{one}": f"as in <image>, unlike Image #{one}" for one in seen}
        if asks:
            made.append(DraftTurn(f"What is in {text} here?", "question", answer="an answer", sees=hidden))
            continue
        made.append(DraftTurn(f"Make {text} new.", "edit", number, key_points={**points, "Text": "new"}, sees=hidden))
        there.append(number)
    return Draft("edit", tuple(image(f"{number:064d}") for number in range(1, inputs + turns + 1)), tuple(made))


def digests(draft: Draft, turn: DraftTurn) -> list[object]:
    """All that a turn refers to, by content."""
    numbers = [*find_mentions(turn.text), *find_mentions(turn.answer), *turn.sees, turn.makes or 0]
    for name, text in turn.key_points.items():
        numbers += [*find_mentions(name.replace("GT", "Image")), *find_mentions(text)]
    return [draft.images[number - 1].digest if number else None for number in numbers]


def leaving_by_hand(draft: Draft, images: set[int], turns: set[int]) -> set[int]:
    """The same closure, turn by turn and as often as there are turns."""
    gone = set(turns)
    for _ in draft.turns:
        lost = images | {draft.turns[index].makes or -1 for index in gone}
        for index, turn in enumerate(draft.turns):
            if turn.makes in lost or images_seen(turn) & lost:
                gone.add(index)
    return gone


def test_no_drop_breaks_a_reference_in_10000_dialogues():
    rng = random.Random("drops")
    kept = 0
    for _ in range(DIALOGUES):
        draft = random_draft(rng)
        count = len(draft.images)
        images = {number for number in range(1, count + 1) if rng.random() < 0.12}
        turns = {index for index in range(len(draft.turns)) if rng.random() < 0.05}
        gone = leaving_by_hand(draft, images, turns)
        assert find_leaving_turns(draft, images, turns) == gone
        left = drop(draft, images, turns)
        staying = [turn for index, turn in enumerate(draft.turns) if index not in gone]
        if left is None:
            assert len(staying) < 2
            continue
        kept += 1
        assert [digests(draft, turn) for turn in staying] == [digests(left, turn) for turn in left.turns]
        assert find_draft_problem(left) in ("", "too many images", "a turn has no key point")
        used = {number for turn in left.turns for number in (*images_seen(turn), turn.makes) if number}
        assert used == set(range(1, len(left.images) + 1))
        order = [draft.images.index(one) for one in left.images]
        assert order == sorted(order)
    assert kept > DIALOGUES / 3


def test_nothing_changes_where_nothing_is_dropped():
    turns = (
        DraftTurn("Paint Image #1 red.", makes=2, key_points={"GT #1": "<image> but red"}),
        DraftTurn("Mix Image #2 and Image #1.", makes=3, key_points={"Image #2": "as <image>"}),
    )
    draft = Draft("edit", tuple(image(f"{number:064d}") for number in range(3)), turns)
    assert drop(draft) == draft


def test_a_turn_leaves_with_all_that_see_its_image_and_unused_inputs_leave_as_well():
    turns = (
        DraftTurn("Make Image #1 red.", makes=3, key_points={"GT #1": "<image>"}),
        DraftTurn("Make Image #2 blue.", makes=4, key_points={"GT #2": "<image>"}),
        DraftTurn("Turn Image #4 round.", makes=5, key_points={"Image #4": "<image>", "Text": "round"}),
        DraftTurn("Join Image #3 and Image #5.", makes=6, key_points={"Image #3": "<image>"}),
    )
    draft = Draft("edit", tuple(image(f"{number:064d}") for number in range(1, 7)), turns)
    left = drop(draft, images={3})
    assert left is not None
    assert [one.digest[-1] for one in left.images] == ["2", "4", "5"]
    assert [(turn.text, turn.makes, dict(turn.key_points)) for turn in left.turns] == [
        ("Make Image #1 blue.", 2, {"GT #1": "<image>"}),
        ("Turn Image #2 round.", 3, {"Image #2": "<image>", "Text": "round"}),
    ]
    assert drop(draft, images={1, 2}) is None


def test_a_turn_that_depends_on_an_image_without_a_mention_leaves_too():
    turns = (
        DraftTurn("Take the cup from Image #1.", makes=2, key_points={"GT #1": "<image>"}),
        DraftTurn("Make Image #1 blue.", makes=3, key_points={"GT #1": "<image>"}),
        DraftTurn("Put back what you took last.", makes=4, key_points={"Text": "back"}, sees=(2,)),
    )
    draft = Draft("recall", tuple(image(f"{number:064d}") for number in range(1, 5)), turns)
    assert find_leaving_turns(draft, images={2}) == {0, 2}


def test_longer_numbers_are_not_cut():
    assert (
        renumber_text("Image #1 and Image #12, not Image #123.", {1: 7, 12: 3})
        == "Image #7 and Image #3, not Image #123."
    )
