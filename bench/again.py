"""A finished run of IMUG-Bench's size, started again: 3,113 dialogues, 12,000 turns, endpoints on this machine, the
command as a user calls it.

    python bench/again.py [--samples 3113] [--folder DIR]

Prints the seconds of three starts, and their ratio to what reading the dataset alone takes, measured in the same run.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from weft.benchmarks.imug import data
from weft.store.blobs import Blobs
from weft_tabletop.make import make


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=3113)
    parser.add_argument("--folder", type=Path)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = chosen.folder or Path(temporary)
        dataset, home = folder / f"imug-{chosen.samples}", folder / "home"
        if not dataset.exists():
            make("tabletop-imug", dataset, samples=chosen.samples, seed=0)
        ends = ["--data", str(dataset), "--model", "copy", "--judge", "constant/3", "--home", str(home)]
        words = [sys.executable, "-m", "weft", "run", "imug", *ends]

        def start() -> float:
            began = time.perf_counter()
            subprocess.run(words, check=True, capture_output=True)
            return time.perf_counter() - began

        start()
        began = time.perf_counter()
        found = data.load(dataset, Blobs(home / "blobs")).load_all()
        reading = time.perf_counter() - began
        again = sorted(start() for _ in range(3))
        turns = sum(len(sample.turns) for sample in found.samples)
        print(
            f"{len(found.samples)} dialogues, {turns} turns, started again: "
            f"{', '.join(f'{one:.1f} s' for one in again)} (goal 4 s)"
        )
        print(f"  reading the dataset alone {reading:.2f} s; the median is {again[1] / reading:.1f} times that")


if __name__ == "__main__":
    main()
