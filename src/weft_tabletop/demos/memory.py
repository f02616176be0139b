"""Visual memory: "put back what was removed last", with the whole dialogue and without, trained on dialogues and on
single turns."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from weft.report import plots
from weft_tabletop.demos.demo import Demo, Evaluate, estimate, find_exact_images, write_dialogues
from weft_tabletop.make.dialogues import TableDialogue
from weft_tabletop.make.weave import memory_dialogues

MODELS = {"tabletop/tiny": "dialogues", "tabletop/tiny-single": "single turns"}  # and what each was trained on
HISTORIES = {"dialogue": "whole dialogue", "none": "no history"}


def show_memory(folder: Path, home: Path, evaluate: Evaluate, samples: int) -> Demo:
    dialogues = memory_dialogues(samples, 0)
    data = write_dialogues(folder / f"memory-{samples}", dialogues)
    rows: list[dict[str, Any]] = []
    for model, training in MODELS.items():
        for history, history_label in HISTORIES.items():
            options = {"history": history, "placement": "inline", "past": "reference"}
            run = evaluate(model=model, data=data, options=options)
            exact = find_exact_images(run, dialogues, home)
            recalled = _select_recalls(exact, dialogues)
            rows.append({"setting": f"trained on {training}, {history_label}", **estimate(recalled)})
    words = (
        f"To put back what was removed, the model must remember it: {rows[0]['exactly right']:.2f} with the whole "
        f"dialogue, {rows[1]['exactly right']:.2f} without. Trained on single turns alone, the whole dialogue gives "
        f"{rows[2]['exactly right']:.2f}."
    )
    title = f"Putting back what was removed ({samples} dialogues)"
    chart = plots.bar_chart(rows, x="setting", y="exactly right", title=title)
    return Demo("Visual memory", ("setting", "exactly right", "low", "high", "n"), rows, chart, words)


def _select_recalls(exact: Mapping[str, list[float]], dialogues: Sequence[TableDialogue]) -> dict[str, list[float]]:
    """Only the turns that ask to put something back."""
    recalled: dict[str, list[float]] = {}
    for number, dialogue in enumerate(dialogues, start=1):
        values = exact[str(number)]
        recalled[str(number)] = [values[index] for index, turn in enumerate(dialogue.turns) if turn.kind == "put back"]
    return recalled
