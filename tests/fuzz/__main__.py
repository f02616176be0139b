"""python -m fuzz [PART ...] [--seed N] [--scale 0.1]"""

import argparse
import random
import sys
import tempfile
import time
import traceback
from pathlib import Path

from fuzz import Broken, Part, bodies, faults, files, keys, kills, records, replies

PARTS: dict[str, tuple[Part, int, str]] = {
    "replies": (replies.attack, 10_000, "judge's replies"),
    "bodies": (bodies.attack, 5_000, "HTTP answers to each provider"),
    "records": (records.attack, 10_000, "malformed records to each benchmark"),
    "faults": (faults.attack, 2_000, "calls, of which 30% go wrong"),
    "weights": (files.weights, 250, "damaged weights"),
    "journals": (files.journals, 250, "damaged journals"),
    "keys": (keys.attack, 1, "keys of six shapes through every way of echoing them"),
    "kills": (kills.attack, 100, "kill -9"),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="fuzz", description="weft against everything that is made to break it.")
    parser.add_argument("parts", nargs="*", help=", ".join(PARTS))
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="the same seed makes the same attack")
    parser.add_argument("--scale", type=float, default=1.0, help="how much of it: 0.01 is a hundredth")
    chosen = parser.parse_args()
    strange = [part for part in chosen.parts if part not in PARTS]
    if strange:
        parser.error(f"there is no {strange[0]}; there is {', '.join(PARTS)}")
    print(f"seed {chosen.seed} (again: python -m fuzz --seed {chosen.seed})", flush=True)
    broken = False
    for name in chosen.parts or PARTS:
        attack, count, what = PARTS[name]
        count = max(1, round(count * chosen.scale))
        began = time.perf_counter()
        print(f"{name}: {count:,} {what}", flush=True)
        with tempfile.TemporaryDirectory(prefix=f"weft-attack-{name}-") as folder:
            try:
                done = attack(random.Random(f"{chosen.seed} {name}"), count, Path(folder))
            except Exception as error:  # whatever weft raises here, it must not
                broken = True
                told = str(error) if isinstance(error, Broken) else traceback.format_exc()
                print(f"  BROKEN after {time.perf_counter() - began:.0f} s: {told}", flush=True)
                continue
        for fact, number in sorted(done.items()):
            print(f"  {fact}: {number:,}")
        print(f"  held, {time.perf_counter() - began:.0f} s", flush=True)
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
