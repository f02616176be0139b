"""Phenomena of the papers, shown with the tiny model: each is a table and a plot.

exposure-bias   the picture is exactly right, by turn: with its own pictures in the history, and with the true ones
memory          "put back what was removed last": with the whole dialogue and without, trained on dialogues and on single turns
test-time-scaling   is in weft.tabletop.scaling
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

from msgspec import Struct

from weft.api import Run
from weft.report import plots
from weft.stats.intervals import mean
from weft.store.blobs import Blobs
from weft.tabletop import datasets
from weft.tabletop.dialogues import TableDialogue, make_dialogue
from weft.tabletop.world import read
from weft.types import View

CHAIN = ("add", "remove", "replace", "recolour", "move", "swap", "background", "mirror", "rotate", "gravity", "drift", "copy", "restore")


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


def chains(samples: int, seed: int, turns: int = 6) -> list[TableDialogue]:
    """Dialogues of pictures alone, each made from the one before."""
    import random

    made: list[TableDialogue] = []
    number = 0
    while len(made) < samples:
        chance = random.Random(f"chain {seed} {number}")
        number += 1
        dialogue = make_dialogue("edit", CHAIN, (), turns, chance)
        if len(dialogue.turns) == turns:
            made.append(dialogue)
    return made


def exposure_bias(folder: Path, home: Path, evaluate: Evaluate, samples: int) -> Demo:
    dialogues = chains(samples, 0)
    data = _written(folder / f"chains-{samples}", dialogues)
    own, true = (
        exactly_right(evaluate(model="tabletop/tiny", data=data, view=View("dialogue", "first", past)), dialogues, home)
        for past in ("own", "truth")
    )
    rows = [
        {"history": name, "turn": turn + 1, **_estimate({sample: [values[turn]] for sample, values in right.items()})}
        for name, right in (("its own pictures in the history", own), ("the true pictures in the history", true))
        for turn in range(6)
    ]
    late = mean({sample: [true[sample][turn] - own[sample][turn] for turn in (3, 4, 5)] for sample in own})
    first, last, best = (rows[at]["exactly right"] for at in (0, 5, 11))
    words = (
        f"With its own pictures the share falls from {first:.3f} to {last:.3f} over six turns; with true ones it ends at {best:.3f}. "
        f"The gap over turns 4 to 6, dialogue by dialogue, is {late}: that is exposure bias."
    )
    chart = plots.lines(rows, x="turn", y="exactly right", series="history", title=f"Pictures exactly right, by turn ({samples} dialogues)")
    return Demo("Exposure bias", ("history", "turn", "exactly right", "low", "high", "n"), rows, chart, words)


def memory(folder: Path, home: Path, evaluate: Evaluate, samples: int) -> Demo:
    dialogues = datasets.memory_dialogues(samples, 0)
    data = _written(folder / f"memory-{samples}", dialogues)
    rows: list[dict[str, Any]] = []
    histories: tuple[tuple[Literal["dialogue", "none"], str], ...] = (("dialogue", "whole dialogue"), ("none", "no history"))
    for model, trained in (("tabletop/tiny", "dialogues"), ("tabletop/tiny-single", "single turns")):
        for history, shown in histories:
            right = exactly_right(evaluate(model=model, data=data, view=View(history, "first", "truth")), dialogues, home)
            asked = {
                str(number): [right[str(number)][at] for at, turn in enumerate(dialogue.turns) if turn.kind == "put back"]
                for number, dialogue in enumerate(dialogues, start=1)
            }
            rows.append({"setting": f"trained on {trained}, {shown}", **_estimate(asked)})
    words = (
        f"To put back what was removed, the model must remember it: {rows[0]['exactly right']:.2f} with the whole dialogue, "
        f"{rows[1]['exactly right']:.2f} without. Trained on single turns alone, the whole dialogue gives {rows[2]['exactly right']:.2f}."
    )
    chart = plots.bars(rows, x="setting", y="exactly right", title=f"Putting back what was removed ({samples} dialogues)")
    return Demo("Visual memory", ("setting", "exactly right", "low", "high", "n"), rows, chart, words)


def exactly_right(run: Run, dialogues: Sequence[TableDialogue], home: Path) -> Mapping[str, list[float]]:
    """For each dialogue and turn, whether the picture that was made shows the true scene."""
    blobs = Blobs(home / "blobs")
    made = {(turn.sample, turn.turn): turn.reply for turn in run.turns}
    right: dict[str, list[float]] = {}
    for number, dialogue in enumerate(dialogues, start=1):
        values: list[float] = []
        for at, turn in enumerate(dialogue.turns):
            images = made[str(number), at].images
            reading = read(blobs.open(images[-1])) if images else None
            values.append(float(reading is not None and reading.sure and reading.scene == turn.scene))
        right[str(number)] = values
    return right


def _estimate(clusters: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    found = mean(clusters)
    return {"exactly right": found.value, "low": found.low, "high": found.high, "n": found.n}


def _written(folder: Path, dialogues: list[TableDialogue]) -> Path:
    if not folder.exists():
        datasets.whole(folder, lambda part: datasets.write_weave(part, dialogues))
    return folder
