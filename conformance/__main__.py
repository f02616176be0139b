"""Weft beside the authors' released scripts, on loopback: what is sent to models and judges, and what is made of the
answers.

    python -m conformance weave CHECKOUT [--data DIR]
    python -m conformance imug CHECKOUT [--data DIR]
    python -m conformance rover CHECKOUT [--data DIR]
    python -m conformance planviz CHECKOUT [--data DIR]
    python -m conformance opening CHECKOUT
    python -m conformance gedit|imgedit|risebench|kris|geneval|mmvet CHECKOUT

CHECKOUT is a clone of the paper's public repository (`weichow23/weave`, `ccccEsion/IMUG-Bench`, `cheryyunl/ROVER`,
`lijunxian111/PlanViz`, `LanceZPF/OpenING`; `stepfun-ai/Step1X-Edit`, `PKU-YuanGroup/ImgEdit`, `PhoenixZ810/RISEBench`,
`djghosh13/geneval`, `yuweihao/MM-Vet`). Nothing of it is kept: its scripts are run where they are, with what they
lack written to a scratch folder, in a virtual environment of their own (made once, in .conformance/). Both sides talk
to one server, whose model and judge are decided by what they are sent alone, so that one right table exists whatever
the order. Without --data the repository's own sample is used where the clone has it, else a small set of our own.
OpenING's arithmetic is compared on its own verdicts and on random ones, its messages on items of ours.

Printed: how much was compared, and how much agrees; what differs, with the reason where it is meant to. The last
figures are in docs/concepts/conformance.md. The exit code is 1 if anything differs that is not explained there."""

import argparse
import contextlib
import importlib
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "tests")]

from conformance.report import Report  # noqa: E402

SYSTEMS = ("weave", "imug", "rover", "planviz", "opening", "gedit", "imgedit", "risebench", "kris", "geneval", "mmvet")
CACHE = HERE.parent / ".conformance"


def python_with(packages: tuple[str, ...]) -> Path:
    """An interpreter that has what the released scripts import, and our own version of Pillow, so that both make the
    same JPEG."""
    import PIL

    folder = CACHE / "venv"
    python = folder / "bin" / "python"
    if not python.exists():
        print(f"making {folder} for the released scripts")
        venv.create(folder, with_pip=True)
    wanted = [*packages, f"pillow=={PIL.__version__}"]
    subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *wanted], check=True)
    return python


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("system", choices=SYSTEMS)
    parser.add_argument("checkout", type=Path, help="a clone of the paper's public repository")
    parser.add_argument("--data", type=Path, help="the dataset, in the paper's own layout")
    parser.add_argument("--parts", help="only these, with commas, as they are called in the table's first column")
    parser.add_argument("--work", type=Path, help="the scratch folder, kept; else a temporary one")
    args = parser.parse_args()
    if not args.checkout.is_dir():
        parser.error(f"there is no folder {args.checkout}; clone the paper's public repository first")
    system = importlib.import_module(f"conformance.{args.system}")
    missing = [file for file in system.FILES if not (args.checkout / file).is_file()]
    if missing:
        parser.error(f"{args.checkout} has no {missing[0]}: is it a clone of the repository of {args.system}?")
    report = Report(set(args.parts.split(",")) if args.parts else None)
    with contextlib.ExitStack() as stack:
        work = args.work or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="conformance-")))
        work.mkdir(parents=True, exist_ok=True)
        system.compare(args.checkout.absolute(), args.data, work.absolute(), python_with(system.NEEDS), report)
    print(report.table())
    return 1 if report.unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
