"""What gates and mending bring, on the tabletop, where it is known of every image whether it is right.

    python bench/build_gates.py OUT [--seeds 10000]        builds, growing, one after the other; goes on where it stopped
    python bench/build_gates.py OUT --show                 yield and purity; what each gate finds, and what good it loses
    python bench/build_gates.py BUILD --show-one           the same of one build

20% of all edits have a planted fault. Purity is the share of the kept dialogues in which every turn is right. In a
build, a gate sees what those before it let through; of the build without gates, each gate on pixels is shown by itself.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # threads that spin cost more than they bring

import argparse
import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

from build_grow import FAULTS, ROLES

from weft.building.build import run_build
from weft.building.context import Context, Tools
from weft.building.draft import Attempt
from weft.building.gates.pixels import BlankGate, EditedGate, KeptGate
from weft.building.manifest import read_manifest
from weft.building.orders import Gate, Order
from weft.building.parts import read_rows
from weft.building.request import BuildRequest
from weft.store.blobs import Blobs
from weft_tabletop.building.check_build import find_faults, is_right_attempt

ERRING = {**ROLES, "checker": "tabletop/erring"}
CONFIGURATIONS: dict[str, tuple[dict[str, str], dict[str, Any], dict[str, str]]] = {
    "none": (ROLES, {"gates": "none", "mends": 0}, {}),
    "pixels": (ROLES, {"gates": "pixels", "mends": 0}, {}),
    "judge": (ROLES, {"mends": 0}, {}),
    "judge-mended": (ROLES, {}, {}),
    "erring-mended": (ERRING, {}, {"checker.sigma": "0.15"}),
}
SIZES = (500, 1_000, 2_500, 5_000, 10_000)
BY_THEMSELVES: tuple[Gate, ...] = (EditedGate(), BlankGate(), KeptGate(0.5, "ssim<0.5"), KeptGate(0.8, "ssim<0.8"))


def build(out: Path, name: str, seeds: int) -> None:
    roles, options, more = CONFIGURATIONS[name]
    request = BuildRequest("tabletop-fusion", out, roles, seeds, options=options, model_options={**FAULTS, **more})
    outcome = asyncio.run(run_build(request))
    if outcome.reason is not None:
        raise SystemExit(f"stopped: {outcome.reason}")
    print(name, outcome.progress.describe(), flush=True)


class MemoryFeatures:
    """Features of one row's images."""

    def __init__(self) -> None:
        self.values: dict[tuple[str, str], str] = {}

    async def find(self, digest: str, kind: str, version: str) -> str | None:
        return self.values.get((digest, kind))

    def keep(self, digest: str, kind: str, version: str, value: str) -> None:
        self.values[digest, kind] = value


def show(name: str, out: Path) -> None:
    blobs = Blobs(out / "blobs")
    ungated = read_manifest(out).options["gates"] == "none"
    rows = kept = right = 0
    turns = 0
    found: Counter[str] = Counter()
    lost: Counter[str] = Counter()
    edits: Counter[bool] = Counter()
    for row in read_rows(out):
        rows += 1
        if row.draft is not None:
            kept += 1
            turns += len(row.draft.turns)
            right += not find_faults(row.draft, blobs)
        context = Context(Tools({}, blobs, MemoryFeatures()), row.number)
        for attempt in row.attempts:
            if attempt.role in ("editor", "mender"):
                count_attempt(attempt, blobs, edits, found, lost)
            if ungated and attempt.role == "editor":
                asyncio.run(count_by_itself(attempt, context, found, lost))
    print(
        f"{name:<15}{rows:>8,} seeds{kept:>8,} kept ({kept / rows:.1%}), {turns / max(1, kept):.2f} turns each, "
        f"purity {right / max(1, kept):.2%}"
    )
    print(f"{'':<15}{edits[False]:>8,} faulty edits, {edits[True]:,} right ones")
    for gate in sorted({*found, *lost}):
        print(
            f"{'':<15}  {gate:<24} finds {found[gate] / max(1, edits[False]):>6.1%} of the faulty, "
            f"loses {lost[gate] / max(1, edits[True]):>7.3%} of the right"
        )


def count_attempt(
    attempt: Attempt, blobs: Blobs, edits: Counter[bool], found: Counter[str], lost: Counter[str]
) -> None:
    """Count one edit, and the gate that rejected it. A gate sees what those before it let through."""
    is_right = is_right_attempt(attempt, blobs)
    edits[is_right] += 1
    for verdict in attempt.verdicts:
        if not verdict.passed:
            (lost if is_right else found)[verdict.gate] += 1


async def count_by_itself(attempt: Attempt, context: Context, found: Counter[str], lost: Counter[str]) -> None:
    """Count what each gate on pixels says of one edit."""
    if attempt.image is None:
        return
    is_right = is_right_attempt(attempt, context.blobs)
    order = Order(attempt.item, attempt.prompt, attempt.shown, "edit" if len(attempt.shown) == 1 else "fuse")
    for gate in BY_THEMSELVES:
        if not (await gate.check(order, attempt.image, context)).passed:
            (lost if is_right else found)[f"{gate.name}, by itself"] += 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seeds", type=int, default=SIZES[-1])
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--show-one", action="store_true")
    options = parser.parse_args()
    if options.show_one:
        show(options.out.name, options.out)
    elif not options.show:
        for size in (size for size in SIZES if size <= options.seeds):
            for one in CONFIGURATIONS:
                build(options.out / one, one, size)
    if not options.show_one:
        for one in CONFIGURATIONS:
            if (options.out / one / "build.json").exists():
                show(one, options.out / one)
