"""What every demo is: a phenomenon of the papers, shown with the tiny model as a table and a plot."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from weft.results.run import Run
from weft.stats.intervals import estimate_mean
from weft.store.blobs import write_folder
from weft.workspace import open_blobs
from weft_tabletop.make.dialogues import TableDialogue
from weft_tabletop.make.weave import write_weave
from weft_tabletop.world.scenes import read


class Evaluate(Protocol):
    """A run judged by the exact judge; options are those of a Job."""

    def __call__(self, *, benchmark: str = "weave", **options: Any) -> Run: ...


class Demo(Struct, frozen=True):
    """`rows` for the table and the plot, `chart` to save, `words` to say what is to be seen."""

    title: str
    columns: tuple[str, ...]
    rows: list[dict[str, Any]]
    chart: Any
    words: str


def find_exact_images(run: Run, dialogues: Sequence[TableDialogue], home: Path) -> Mapping[str, list[float]]:
    """For each dialogue and turn, whether the picture that was made shows the true scene."""
    blobs = open_blobs(home)
    made = {(turn.sample, turn.turn): turn.reply for turn in run.turns}
    right: dict[str, list[float]] = {}
    for number, dialogue in enumerate(dialogues, start=1):
        values: list[float] = []
        for at, turn in enumerate(dialogue.turns):
            images = made[str(number), at].images
            if images:
                reading = read(blobs.decode(images[-1]))
            else:
                reading = None
            values.append(float(reading is not None and reading.is_sure and reading.scene == turn.scene))
        right[str(number)] = values
    return right


def estimate(clusters: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    found = estimate_mean(clusters)
    return {"exactly right": found.value, "low": found.low, "high": found.high, "n": found.n}


def write_dialogues(folder: Path, dialogues: list[TableDialogue]) -> Path:
    if not folder.exists():
        write_folder(folder, lambda part: write_weave(part, dialogues))
    return folder
