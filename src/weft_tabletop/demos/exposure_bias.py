"""Exposure bias: whether the picture is exactly right, by turn, with the model's own pictures in the history, and with
references."""

import random
from pathlib import Path

from weft.report import plots
from weft.stats.intervals import estimate_mean
from weft_tabletop.demos.demo import Demo, Evaluate, estimate, find_exact_images, write_dialogues
from weft_tabletop.make.dialogues import TableDialogue, make_dialogue

CHAIN = (
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


def chains(samples: int, seed: int, turns: int = 6) -> list[TableDialogue]:
    """Dialogues of pictures alone, each made from the one before."""
    made: list[TableDialogue] = []
    number = 0
    while len(made) < samples:
        rng = random.Random(f"chain {seed} {number}")
        number += 1
        dialogue = make_dialogue("edit", CHAIN, (), turns, rng)
        if len(dialogue.turns) == turns:
            made.append(dialogue)
    return made


def exposure_bias(folder: Path, home: Path, evaluate: Evaluate, samples: int) -> Demo:
    dialogues = chains(samples, 0)
    data = write_dialogues(folder / f"chains-{samples}", dialogues)
    own, true = (
        find_exact_images(
            evaluate(
                model="tabletop/tiny", data=data, options={"history": "dialogue", "placement": "inline", "past": past}
            ),
            dialogues,
            home,
        )
        for past in ("own", "reference")
    )
    rows = [
        {"history": name, "turn": turn + 1, **estimate({sample: [values[turn]] for sample, values in right.items()})}
        for name, right in (("its own pictures in the history", own), ("the true pictures in the history", true))
        for turn in range(6)
    ]
    late = estimate_mean({sample: [true[sample][turn] - own[sample][turn] for turn in (3, 4, 5)] for sample in own})
    first, last, best = (rows[at]["exactly right"] for at in (0, 5, 11))
    words = (
        f"With its own pictures the share falls from {first:.3f} to {last:.3f} over six turns; with references it "
        f"ends at {best:.3f}. "
        f"The gap over turns 4 to 6, dialogue by dialogue, is {late}: that is exposure bias."
    )
    chart = plots.line_chart(
        rows,
        x="turn",
        y="exactly right",
        series="history",
        title=f"Pictures exactly right, by turn ({samples} dialogues)",
    )
    return Demo("Exposure bias", ("history", "turn", "exactly right", "low", "high", "n"), rows, chart, words)
