"""A build that grows on the tabletop to 100,000 seeds, with planted faults in 20% of the edits: time, memory, size of
the journal and yields.

    taskset -c 0,1 python bench/build_grow.py OUT [--to 100000]

It goes on where it was stopped: a finished build is extended from one size to the next, and what it measured is
appended to OUT.jsonl. `--show` prints that as a table.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # threads that spin cost more than they bring

import argparse
import asyncio
import json
import threading
import time
from pathlib import Path
from typing import Any

from weft.building.build import OpenBuild, run_build
from weft.building.progress import BuildProgress
from weft.building.request import BuildRequest
from weft.building.status import read_status

ROLES = {
    "writer": "tabletop/oracle",
    "painter": "tabletop/oracle",
    "editor": "tabletop/faulty",
    "checker": "tabletop/exact",
}
FAULTS = {"editor.rate": "0.2"}
SIZES = (1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 75_000, 100_000)
INTERVAL_S = 10.0
PAGE = os.sysconf("SC_PAGE_SIZE")


def resident_mb() -> float:
    """The memory of this process that is in use now, in MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE / 1e6


def watch(log: Path, out: Path, progress: BuildProgress, done: threading.Event) -> None:
    """Append what there is every few seconds."""
    while not done.wait(INTERVAL_S):
        append(log, out, progress, "")


def append(log: Path, out: Path, progress: BuildProgress, mark: str) -> None:
    journal = sum(file.stat().st_size for file in out.glob("journal.sqlite*"))
    line = {
        "at": time.time(),
        "pid": os.getpid(),
        "seeds": progress.done,
        "calls": progress.made_calls,
        "cached": progress.cached_calls,
        "cpu_s": round(time.process_time(), 2),
        "wall_s": round(time.perf_counter() - STARTED, 2),
        "resident_mb": round(resident_mb(), 1),
        "journal_mb": round(journal / 1e6, 1),
        "mark": mark,
    }
    with log.open("a") as file:
        file.write(json.dumps(line) + "\n")


def grow(out: Path, log: Path, seeds: int) -> None:
    done = threading.Event()
    watchers: list[threading.Thread] = []
    opened: list[OpenBuild] = []

    def start(build: OpenBuild) -> None:
        opened.append(build)
        watchers.append(threading.Thread(target=watch, args=(log, out, build.progress, done), daemon=True))
        watchers[0].start()

    request = BuildRequest("tabletop-fusion", out, ROLES, seeds, model_options=FAULTS)
    outcome = asyncio.run(run_build(request, start))
    done.set()
    append(log, out, outcome.progress, f"{seeds}")
    if outcome.reason is not None:
        raise SystemExit(f"stopped: {outcome.reason}")


def show(log: Path, out: Path) -> None:
    lines: list[dict[str, Any]] = [json.loads(line) for line in log.read_text().splitlines()]
    print(f"{'seeds':>8}{'calls':>10}{'CPU s':>9}{'wall s':>9}{'MB':>8}{'journal MB':>12}")
    for line in lines:
        if line["mark"]:
            print(
                f"{line['seeds']:>8,}{line['calls']:>10,}{line['cpu_s']:>9,.0f}{line['wall_s']:>9,.0f}"
                f"{line['resident_mb']:>8,.0f}{line['journal_mb']:>12,.0f}"
            )
    status = read_status(out)
    for step in status.steps:
        print(f"{step.step:<12}{step.entered:>9,}{step.left:>9,}  {dict(step.reasons)}")
    print(dict(status.outcomes), dict(status.counts), f"{status.turns:,} turns, {status.images:,} images")


STARTED = time.perf_counter()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--to", type=int, default=SIZES[-1])
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    records = options.out.with_name(f"{options.out.name}.jsonl")
    if not options.show:
        for size in SIZES:
            if size <= options.to:
                grow(options.out, records, size)
    show(records, options.out)
