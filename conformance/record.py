"""Record anew what the released scripts make of generated inputs, and compare.

    make conformance CHECKOUTS=DIR [SYSTEMS="weave imug"] [LARGE=1]
    python -m conformance.record DIR [--systems weave imug] [--large] [--keep]

DIR holds clones under the names of the systems: weave/, imug/, rover/, planviz/, opening/, gedit/ and so on. Of each it is said what
changed against the recording, and how far weft makes the same. A clone that is missing is said and left out. `--large`
also runs the large form (`python -m conformance NAME CHECKOUT`), `--keep` writes no recording. The exit code is 1 if
weft differs without an entry in docs/reference/errata-differences.md, or a script fails; 2 if there is nothing to compare."""

import argparse
import importlib
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from conformance.__main__ import HERE, python_with
from conformance.recording import SYSTEMS, Recording, as_recorded, compare, path_of, read_commit, read_recording


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", type=Path, help="the folder of the clones")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=SYSTEMS, help="only these")
    parser.add_argument("--large", action="store_true", help="run the large form, too; minutes")
    parser.add_argument("--keep", action="store_true", help="compare, and leave the recordings as they are")
    args = parser.parse_args()
    if not args.checkouts.is_dir():
        parser.error(f"there is no folder {args.checkouts}: give the folder of the clones, CHECKOUTS=DIR")
    results: dict[str, str] = {}
    failed = False
    for system in args.systems:
        checkout = (args.checkouts / system).absolute()
        if reason := unusable(system, checkout):
            results[system] = f"SKIPPED: {reason}"
            continue
        try:
            results[system], agrees = record(system, checkout, keep=args.keep)
        except (SystemExit, subprocess.CalledProcessError) as error:  # the others are still to run
            results[system], agrees = f"FAILED: {error}", False
        failed |= not agrees
        if args.large:
            print(f"\n{system}, the large form", flush=True)
            done = subprocess.run([sys.executable, "-m", "conformance", system, checkout], cwd=HERE.parent)
            results[system] += ", large form: " + ("agrees" if done.returncode == 0 else "DIFFERS")
            failed |= done.returncode != 0
    print("\n" + "\n".join(f"{system:8} {result}" for system, result in results.items()))
    if all(result.startswith("SKIPPED") for result in results.values()):
        return 2
    return int(failed)


def unusable(system: str, checkout: Path) -> str:
    """Why there is nothing to run in a checkout."""
    if not checkout.is_dir():
        return f"there is no {checkout}"
    missing = [file for file in load(system, "").FILES if not (checkout / file).is_file()]
    return f"{checkout} has no {missing[0]}" if missing else ""


def load(system: str, package: str = "generated.") -> Any:
    return importlib.import_module(f"conformance.{package}{system}")


def record(system: str, checkout: Path, *, keep: bool) -> tuple[str, bool]:
    """One line for the summary, and whether all differences are explained."""
    generated = load(system)
    with tempfile.TemporaryDirectory(prefix="conformance-") as work:
        folders = [Path(work) / name for name in ("released", "weft")]
        for folder in folders:
            folder.mkdir()
        python = python_with(load(system, "").NEEDS)
        theirs = as_recorded(generated.released(checkout, python, folders[0]))
        ours = as_recorded(generated.weft_facts(folders[1]))
    before = read_recording(system).facts if path_of(system).is_file() else {}
    changed = compare(before, theirs, names=("recorded", "now"))
    print(f"\n{system}: the released scripts against the recording: {changed.totals()}")
    print("\n".join(changed.unexplained[:40]))
    if not keep:
        Recording(generated.REPOSITORY, read_commit(checkout), theirs).write(path_of(system))
    found = compare(theirs, ours, generated.EXPLAINED)
    print(f"{system}: conformance with the released scripts\n{found.table()}", flush=True)
    note = f", {len(found.unexplained)} NOT EXPLAINED" if found.unexplained else ""
    same = "as recorded" if not changed.unexplained else f"{len(changed.unexplained)} facts changed"
    return f"{found.totals()}{note}; {same}", not found.unexplained


if __name__ == "__main__":
    sys.exit(main())
