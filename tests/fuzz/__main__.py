"""python -m fuzz [PART ...] [--seed N] [--scale 0.1]"""

import argparse
import random
import sys
import tempfile
import time
import traceback
from pathlib import Path

from fuzz import (
    Broken,
    Part,
    batch_kills,
    bodies,
    builds,
    claims,
    datasets,
    faults,
    fences,
    files,
    homes,
    images,
    imports,
    keys,
    kills,
    lies,
    money,
    nodes,
    players,
    records,
    replicas,
    replies,
    requests,
    sequences,
    settings,
    surroundings,
    tables,
    trainings,
    workers,
)

PARTS: dict[str, tuple[Part, int, str]] = {
    "replies": (replies.attack, 10_000, "judge's replies"),
    "bodies": (bodies.attack, 5_000, "HTTP answers to each provider"),
    "requests": (requests.attack, 2_000, "HTTP requests to each server of weft"),
    "cards": (claims.cards, 5_000, "cards of servers that lie"),
    "batches": (claims.batches, 2_000, "result files for each provider with batches"),
    "images": (images.attack, 2_000, "images of each format that say something"),
    "fences": (fences.attack, 1_000, "turns whose texts are forged, to each benchmark's judge"),
    "records": (records.attack, 10_000, "malformed records to each benchmark"),
    "faults": (faults.attack, 2_000, "calls, of which 30% go wrong"),
    "money": (money.attack, 500, "runs with a budget, at providers that bill"),
    "weights": (files.weights, 250, "damaged weights"),
    "journals": (files.journals, 250, "damaged journals"),
    "keys": (keys.attack, 1, "keys of six shapes through every way of echoing them"),
    "tables": (tables.attack, 500, "Parquet and Arrow tables with hostile columns"),
    "datasets": (datasets.attack, 150, "folders of datasets that somebody else made, four commands and pages each"),
    "imports": (imports.attack, 2_000, "results of other tools"),
    "settings": (settings.attack, 200, "weft.toml files that lie"),
    "homes": (homes.attack, 200, "homes that somebody else made, six commands each"),
    "surroundings": (surroundings.attack, 400, "commands where little is allowed, or left"),
    "builds": (builds.received, 200, "folders of builds that somebody else made, four commands each"),
    "trainings": (trainings.attack, 200, "folders of training runs that somebody else made"),
    "players": (players.attack, 100, "builds by models that lie, with their exports"),
    "build-kills": (builds.killed, 40, "builds that are killed, shrunk, extended and damaged"),
    "sequences": (sequences.attack, 100, "sequences of kills, shards, merges, removals, budgets and judges"),
    "lies": (lies.attack, 400, "benchmarks of a user's own that lie"),
    "batch-kills": (batch_kills.attack, 48, "kill -9 at each step of a batch"),
    "kills": (kills.attack, 100, "kill -9"),
    "workers": (workers.attack, 2_000, "rows of builds on Ray, by models and workers that lie"),
    "replicas": (replicas.attack, 4_000, "requests to replicas on Ray, by models and replicas that lie"),
    "nodes": (nodes.attack, 12, "processes and nodes of Ray that leave"),
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
