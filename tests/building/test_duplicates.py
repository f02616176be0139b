"""Duplicates that were planted among built dialogues are found, each by its kind, and nothing else is."""

import random
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from weft.building.draft import Draft, DraftTurn, Origin, Provenance, Row
from weft.building.selection import (
    DuplicateDialogue,
    check_kinds,
    find_duplicates,
    iterate_selected,
    read_left_out,
    write_left_out,
)
from weft.errors import UserError
from weft.types import Image

NOUNS = [f"thing{number}" for number in range(400)]
BY_MODEL = Origin("painter", "key")


def make_row(number: int, *, domain: str = "edit", by: Origin = BY_MODEL) -> Row:
    """A dialogue of four images with words and looks of its own."""
    chance = random.Random(f"row {number}")
    images = tuple(Image(f"{chance.getrandbits(256):064x}", "image/png", 64, 64, 9) for _ in range(4))
    turns = tuple(
        DraftTurn(f"In Image #{index}, put the {' '.join(chance.sample(NOUNS, 12))} away.", "edit", index + 1)
        for index in (1, 2, 3)
    )
    provenance = Provenance((by,) * 4, ({"text": by},) * 3)
    prints = tuple(f"{chance.getrandbits(64):016x}" for _ in range(4))
    draft = Draft(domain, images, turns)
    return Row(number, draft=draft, outcome="kept", provenance=provenance, prints=prints)


def copy_of(row: Row, number: int, *parts: str) -> Row:
    """Another dialogue with some parts of this one."""
    other = make_row(number, domain=row.draft.domain if row.draft else "")
    assert row.draft is not None and other.draft is not None
    if "images" in parts:
        other = replace(other, draft=replace(other.draft, images=row.draft.images), prints=row.prints)
    if "looks" in parts:
        flipped = (f"{int(one, 16) ^ 0b1011:016x}" for one in row.prints)
        other = replace(other, prints=tuple(flipped))
    if "words" in parts:
        other = replace(other, draft=replace(other.draft, turns=row.draft.turns))
    if "nearly words" in parts:
        first = row.draft.turns[0]
        turns = (replace(first, text=first.text.replace("away", "back")), *row.draft.turns[1:])
        other = replace(other, draft=replace(other.draft, turns=turns))
    return other


def found(rows: Sequence[Row], *kinds: str) -> dict[int, tuple[str, int]]:
    left_out = find_duplicates(rows, kinds or ("exact", "images", "texts"))
    return {seed: (one.kind, one.of) for seed, one in left_out.items()}


def test_planted_duplicates_are_found_by_their_kind_and_nothing_else_is():
    rows = [make_row(number) for number in range(3000)]
    planted: dict[int, tuple[str, int]] = {}
    for index, (part, kind) in enumerate(
        [("images", "exact"), ("looks", "images"), ("words", "texts"), ("nearly words", "texts")] * 25
    ):
        number = 3000 + index
        rows.append(copy_of(rows[7 * index], number, part))
        planted[number] = (kind, 7 * index)
    assert found(rows) == planted
    assert found(rows, "images") == {
        number: ("images", of) for number, (kind, of) in planted.items() if kind in ("exact", "images")
    }
    assert not find_duplicates(rows, ())


def test_the_earliest_of_several_stays_and_what_repeats_a_dialogue_that_left_leaves_too():
    first = make_row(0)
    rows = [first, *(copy_of(first, number, "looks", "nearly words") for number in (1, 2)), make_row(3)]
    rows.append(copy_of(rows[1], 4, "words"))
    assert {seed: of for seed, (_, of) in found(rows).items()} == {1: 0, 2: 0, 4: 0}


def test_many_of_one_kind_leave_but_for_the_first():
    """More than are compared directly with one another."""
    first = make_row(0)
    assert first.draft is not None
    rows = [first, make_row(1)]
    for number in range(2, 30):
        other = copy_of(first, number, "words")
        assert other.draft is not None
        turn = other.draft.turns[0]
        changed = replace(turn, text=f"{turn.text} {NOUNS[number]}")
        rows.append(replace(other, draft=replace(other.draft, turns=(changed, *other.draft.turns[1:]))))
    assert {of for _, of in found(rows).values()} == {0} and len(found(rows)) == 28


def test_what_has_the_images_of_a_dialogue_that_left_leaves_with_it():
    first = make_row(0)
    second = copy_of(first, 1, "nearly words")
    third = copy_of(second, 2, "images")
    assert found([first, second, third]) == {1: ("texts", 0), 2: ("texts", 0)}


def test_dialogues_of_one_part_are_compared_within_a_domain_and_those_of_the_test_part_with_all():
    first = make_row(0)
    other = replace(copy_of(first, 1, "looks"), draft=replace(copy_of(first, 1).draft, domain="recall"))  # type: ignore[type-var]
    same = replace(copy_of(first, 2, "images"), draft=replace(first.draft, domain="recall"))  # type: ignore[type-var]
    assert found([first, other, same]) == {2: ("exact", 0)}
    held_out = replace(other, draft=replace(other.draft, split="test"))  # type: ignore[type-var]
    assert found([first, held_out]) == {1: ("images", 0)}


def test_more_seeds_never_change_what_was_left_out_before():
    rows = [make_row(number) for number in range(400)]
    rows += [copy_of(rows[3 * index], 400 + index, ("looks", "words", "images")[index % 3]) for index in range(60)]
    few = found(rows[:430])
    assert len(few) == 30 and few.items() <= found(rows).items()


def test_what_a_program_made_is_a_duplicate_only_if_it_is_the_same():
    first = make_row(0, by=Origin())
    program = Provenance((Origin(),) * 4, ({"text": Origin()},) * 3)
    rows = [first]
    for number, part in enumerate(("looks", "nearly words", "images"), start=1):
        rows.append(replace(copy_of(first, number, part), provenance=program))
    assert found(rows) == {3: ("exact", 0)}


def test_images_without_structure_do_not_look_alike():
    rows = [replace(make_row(number), prints=("0" * 16,) * 4) for number in range(5)]
    assert not found(rows)


def test_a_dialogue_that_does_not_say_where_it_comes_from_is_compared():
    first = make_row(0)
    assert found([first, replace(copy_of(first, 1, "looks"), provenance=None)]) == {1: ("images", 0)}


def test_what_was_left_out_is_written_read_and_refused_if_damaged(tmp_path):  # type: ignore[no-untyped-def]
    rows = [make_row(0), copy_of(make_row(0), 1, "looks")]
    left_out = find_duplicates(rows)
    write_left_out(tmp_path, left_out)
    assert read_left_out(tmp_path) == left_out == {1: DuplicateDialogue(1, "images", 0)}
    assert [row.number for row in iterate_selected([*rows, Row(2)], left_out)] == [0]
    (tmp_path / "left_out.jsonl").write_text('{"seed": "x"}\n')
    with pytest.raises(UserError, match=r"left_out\.jsonl cannot be read"):
        read_left_out(tmp_path)
    with pytest.raises(UserError, match="--duplicates pictures: there is exact, images, texts"):
        check_kinds(["pictures"])
