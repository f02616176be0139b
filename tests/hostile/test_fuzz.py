"""The fuzzing suite itself works: each part, small. `make attack` is the large form."""

import random
from pathlib import Path

import pytest

from fuzz.__main__ import PARTS

COUNTS = {
    "replies": 100,
    "bodies": 20,
    "fences": 40,
    "requests": 50,
    "cards": 200,
    "batches": 50,
    "images": 60,
    "batch-kills": 2,
    "lies": 20,
    "records": 100,
    "faults": 80,
    "weights": 5,
    "journals": 5,
    "homes": 4,
    "surroundings": 9,
    "trainings": 12,
    "players": 4,
    "datasets": 13,
    "imports": 40,
    "settings": 6,
    "tables": 40,
    "builds": 4,
    "build-kills": 2,
    "sequences": 2,
    "money": 8,
}


def test_every_part_is_tried_here_or_by_name_elsewhere():
    assert set(PARTS) == {*COUNTS, "keys", "kills"}  # test_keys.py, and the kills of tests/e2e


@pytest.mark.parametrize("part", COUNTS)
def test_a_part_of_the_fuzzer_holds(part: str, tmp_path: Path):
    attack, _, _ = PARTS[part]
    assert sum(attack(random.Random(f"7 {part}"), COUNTS[part], tmp_path).values())
