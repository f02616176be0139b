"""The fuzzing suite itself works: each part, small. `make attack` is the large form.

Each part has a process of its own: it forks commands, and what earlier tests have started in this one, such as the
threads of the plots' renderer, would hang in a fork.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz.__main__ import PARTS
from waiting import HANGS

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
    elsewhere = {"keys", "kills"}  # test_keys.py, and the kills of tests/e2e
    on_ray = {"workers", "replicas", "nodes"}  # tests/local, where Ray is
    assert set(PARTS) == {*COUNTS, *elsewhere, *on_ray}


SCRIPT = """
import random, sys
from pathlib import Path
from fuzz.__main__ import PARTS

part, count, folder = sys.argv[1:]
attack, _, _ = PARTS[part]
print(sum(attack(random.Random(f"7 {part}"), int(count), Path(folder)).values()))
"""


@pytest.mark.parametrize("part", COUNTS)
def test_a_part_of_the_fuzzer_holds(part: str, tmp_path: Path):
    words = [sys.executable, "-c", SCRIPT, part, str(COUNTS[part]), str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=HANGS)
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout.split()[-1])
