"""Visual memory: "put back what was removed last", with the whole dialogue and without, trained on dialogues and on
single turns."""

from pathlib import Path
from typing import Any

from weft.report import plots
from weft_tabletop.demos.demo import Demo, Evaluate, estimate, find_exact_images, write_dialogues
from weft_tabletop.make.weave import memory_dialogues


def memory(folder: Path, home: Path, evaluate: Evaluate, samples: int) -> Demo:
    dialogues = memory_dialogues(samples, 0)
    data = write_dialogues(folder / f"memory-{samples}", dialogues)
    rows: list[dict[str, Any]] = []
    histories = (("dialogue", "whole dialogue"), ("none", "no history"))
    for model, trained in (("tabletop/tiny", "dialogues"), ("tabletop/tiny-single", "single turns")):
        for history, shown in histories:
            options = {"history": history, "placement": "inline", "past": "reference"}
            right = find_exact_images(evaluate(model=model, data=data, options=options), dialogues, home)
            asked = {
                str(number): [
                    right[str(number)][at] for at, turn in enumerate(dialogue.turns) if turn.kind == "put back"
                ]
                for number, dialogue in enumerate(dialogues, start=1)
            }
            rows.append({"setting": f"trained on {trained}, {shown}", **estimate(asked)})
    words = (
        f"To put back what was removed, the model must remember it: {rows[0]['exactly right']:.2f} with the whole "
        "dialogue, "
        f"{rows[1]['exactly right']:.2f} without. Trained on single turns alone, the whole dialogue gives "
        f"{rows[2]['exactly right']:.2f}."
    )
    chart = plots.bar_chart(
        rows, x="setting", y="exactly right", title=f"Putting back what was removed ({samples} dialogues)"
    )
    return Demo("Visual memory", ("setting", "exactly right", "low", "high", "n"), rows, chart, words)
