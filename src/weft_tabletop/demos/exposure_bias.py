"""Exposure bias: whether the image is exactly right, by turn, with the model's own images in the history, and with
references."""

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from weft.report import plots
from weft.stats.intervals import estimate_mean
from weft_tabletop.demos.demo import Demo, Evaluate, estimate, find_exact_images, write_dialogues
from weft_tabletop.make.dialogues import TableDialogue, make_dialogue

TURNS = 6
LATE_TURNS = (3, 4, 5)  # turns 4 to 6
COLUMNS = ("history", "turn", "exactly right", "low", "high", "n")
KINDS = (
    "add",
    "remove",
    "replace",
    "recolour",
    "move",
    "swap",
    "background",
    "mirror",
    "rotate",
    "gravity",
    "drift",
    "copy",
    "restore",
)


def make_chains(samples: int, seed: int) -> list[TableDialogue]:
    """Make dialogues of images alone, each made from earlier ones."""
    dialogues: list[TableDialogue] = []
    attempt = 0
    while len(dialogues) < samples:
        rng = random.Random(f"chain {seed} {attempt}")
        attempt += 1
        dialogue = make_dialogue("edit", KINDS, (), TURNS, rng)
        if len(dialogue.turns) == TURNS:
            dialogues.append(dialogue)
    return dialogues


def show_exposure_bias(folder: Path, home: Path, evaluate: Evaluate, samples: int) -> Demo:
    dialogues = make_chains(samples, 0)
    data = write_dialogues(folder / f"chains-{samples}", dialogues)

    def find_exact(past: str) -> Mapping[str, list[float]]:
        options = {"history": "dialogue", "placement": "inline", "past": past}
        return find_exact_images(evaluate(model="tabletop/tiny", data=data, options=options), dialogues, home)

    own = find_exact("own")
    reference = find_exact("reference")
    rows = [
        *_build_rows("its own images in the history", own),
        *_build_rows("reference images in the history", reference),
    ]
    gaps: dict[str, list[float]] = {}
    for sample in own:
        gaps[sample] = [reference[sample][turn] - own[sample][turn] for turn in LATE_TURNS]
    late = estimate_mean(gaps, (-1.0, 1.0))
    first = rows[0]["exactly right"]
    last = rows[TURNS - 1]["exactly right"]
    last_with_references = rows[-1]["exactly right"]
    words = (
        f"With its own images the share falls from {first:.3f} to {last:.3f} over six turns; with references it "
        f"ends at {last_with_references:.3f}. "
        f"The gap over turns 4 to 6, dialogue by dialogue, is {late}: that is exposure bias."
    )
    title = f"Images exactly right, by turn ({samples} dialogues)"
    chart = plots.line_chart(rows, x="turn", y="exactly right", series="history", title=title)
    return Demo("Exposure bias", COLUMNS, rows, chart, words)


def _build_rows(history: str, exact: Mapping[str, list[float]]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for turn in range(TURNS):
        of_turn = {sample: [values[turn]] for sample, values in exact.items()}
        rows.append({"history": history, "turn": turn + 1, **estimate(of_turn)})
    return rows
