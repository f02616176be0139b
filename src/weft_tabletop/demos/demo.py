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
    """Evaluates a model with the exact judge; the options are those of a run's configuration."""

    def __call__(self, *, benchmark: str = "weave", **options: Any) -> Run: ...


class Demo(Struct, frozen=True):
    """`rows` for the table and the plot, the `chart` to save, and in `words` what they show."""

    title: str
    columns: tuple[str, ...]
    rows: list[dict[str, Any]]
    chart: Any
    words: str


def find_exact_images(run: Run, dialogues: Sequence[TableDialogue], home: Path) -> Mapping[str, list[float]]:
    """For each dialogue, by its number, whether the image of each turn shows exactly the reference scene: 1 or 0."""
    blobs = open_blobs(home)
    replies = {(turn.sample, turn.turn): turn.reply for turn in run.turns}
    exact: dict[str, list[float]] = {}
    for number, dialogue in enumerate(dialogues, start=1):
        values: list[float] = []
        for index, turn in enumerate(dialogue.turns):
            is_exact = False
            image = replies[str(number), index].last_image
            if image is not None:
                reading = read(blobs.decode(image))
                is_exact = reading.is_sure and reading.scene == turn.scene
            values.append(float(is_exact))
        exact[str(number)] = values
    return exact


def estimate(clusters: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """The mean with its interval, as columns of a demo's table."""
    mean = estimate_mean(clusters)
    return {"exactly right": mean.value, "low": mean.low, "high": mean.high, "n": mean.n}


def write_dialogues(folder: Path, dialogues: list[TableDialogue]) -> Path:
    """Write dialogues as a dataset, unless the folder is there already; return the folder."""
    if not folder.exists():
        write_folder(folder, lambda part: write_weave(part, dialogues))
    return folder
