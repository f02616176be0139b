"""Tabletop dialogues written in a benchmark's official file format, with a sidecar (`tabletop.json`) that holds the
references in symbols for the exact judge.

    make("tabletop-weave", Path("tables"), samples=100, seed=0)

The same seed gives the same bytes. The dataset then goes through the same loader, histories, rubrics and tables as a
real one."""

from collections.abc import Callable
from pathlib import Path

from weft.errors import UserError
from weft.store.blobs import write_folder
from weft_tabletop.make.edits import write_gedit, write_imgedit, write_kris, write_risebench
from weft_tabletop.make.enlarged import check_side, enlarge
from weft_tabletop.make.geneval import write_geneval
from weft_tabletop.make.geneval2 import write_geneval2
from weft_tabletop.make.imug import imug_dialogues, write_imug
from weft_tabletop.make.mmvet import write_mmvet
from weft_tabletop.make.planviz import write_planviz
from weft_tabletop.make.rover import write_rover
from weft_tabletop.make.weave import memory_dialogues, single_dialogues, weave_dialogues, write_weave
from weft_tabletop.make.weaver import write_weaver


def make(name: str, out: Path, *, samples: int, seed: int, side: int = 64) -> Path:
    """Write a dataset, and return its folder.

    `side` is the side of its images in pixels; larger ones have a photograph's noise. Never writes into a folder that
    is not empty. Raises UserError.
    """
    check_side(side)
    if name not in WRITERS:
        raise UserError(f"there is no dataset {name!r} to make; there is {', '.join(WRITERS)}")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UserError(f"{out} is there already and not empty; give another --out")

    def write(folder: Path) -> None:
        WRITERS[name](folder, samples, seed)
        enlarge(folder, side)

    write_folder(out, write)
    return out


def _write_micro(name: str) -> Callable[[Path, int, int], None]:
    def write(out: Path, samples: int, seed: int) -> None:
        from weft_tabletop.weaver import datasets  # it is made of this package's parts

        getattr(datasets, name)(out, samples, seed)

    return write


WRITERS: dict[str, Callable[[Path, int, int], None]] = {
    "tabletop-weave": lambda out, samples, seed: write_weave(out, weave_dialogues(samples, seed)),
    "tabletop-weave-memory": lambda out, samples, seed: write_weave(out, memory_dialogues(samples, seed)),
    "tabletop-weave-single": lambda out, samples, seed: write_weave(out, single_dialogues(samples, seed)),
    "tabletop-imug": lambda out, samples, seed: write_imug(out, imug_dialogues(samples, seed)),
    "tabletop-rover": write_rover,
    "tabletop-planviz": write_planviz,
    "tabletop-weaver": write_weaver,
    "tabletop-gedit": write_gedit,
    "tabletop-imgedit": write_imgedit,
    "tabletop-kris": write_kris,
    "tabletop-risebench": write_risebench,
    "tabletop-geneval": write_geneval,
    "tabletop-geneval2": write_geneval2,
    "tabletop-mmvet": write_mmvet,
    "tabletop-weave-micro": _write_micro("write_micro_weave"),
    "tabletop-weaver-micro": _write_micro("write_micro_weaver"),
}
