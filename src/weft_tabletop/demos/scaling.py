"""Test-time scaling, shown with the tiny model: chain of thought, self-verification and best of N against the model
alone, on the same dialogues, score against calls. Its pictures are sampled (a model that always draws the same has
nothing to choose from); its words are not."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from weft.report import plots
from weft.report.charts import strategy_label
from weft.results.run import Run
from weft.stats.intervals import estimate_mean
from weft_tabletop.demos.demo import Demo, Evaluate
from weft_tabletop.make import make

STRATEGIES = ("none", "cot", *(f"self-verify:{n}" for n in (1, 2, 3)), *(f"best-of:{n}" for n in (2, 3, 4, 5)))
TEMPERATURE = 2.0


def scaling(folder: Path, home: Path, evaluate: Evaluate, samples: int) -> Demo:
    data = folder / f"imug-{samples}"
    if not data.exists():
        make("tabletop-imug", data, samples=samples, seed=0)
    options = {"temperature": TEMPERATURE, "seed": 0}
    rows: list[dict[str, Any]] = []
    alone: Mapping[str, list[float]] = {}
    for strategy in STRATEGIES:
        run = evaluate(benchmark="imug", data=data, model="tabletop/tiny", model_options=options, strategy=strategy)
        scores = image_scores(run)
        alone = alone or scores
        found = estimate_mean(scores)
        gain = estimate_mean({name: [a - b for a, b in zip(scores[name], alone[name], strict=True)] for name in scores})
        rows.append(
            {
                "strategy": strategy,
                **strategy_label(strategy),
                "calls a picture": calls_per_image(run),
                "pictures": found.value,
                "low": found.low,
                "high": found.high,
                "gain": f"{gain.value:+.1f} [{gain.low:+.1f}, {gain.high:+.1f}]" if strategy != "none" else "",
                "n": found.n,
            }
        )
    best = max(rows, key=lambda row: row["pictures"])
    words = (
        f"Sampled at temperature {TEMPERATURE:g}, the model alone scores {rows[0]['pictures']:.1f} on its pictures; "
        f"{best['strategy']} "
        f"comes to {best['pictures']:.1f} with {best['calls a picture']:.1f} calls a picture. Gains are over the "
        "model alone, dialogue by "
        "dialogue."
    )
    chart = plots.cost_chart(
        rows,
        x="calls a picture",
        y="pictures",
        series="family",
        label="label",
        title=f"Test-time scaling ({samples} dialogues)",
    )
    return Demo(
        "Test-time scaling", ("strategy", "calls a picture", "pictures", "low", "high", "gain", "n"), rows, chart, words
    )


def image_scores(run: Run) -> dict[str, list[float]]:
    """Scores of the pictures in percent, by dialogue."""
    made: dict[str, list[float]] = {}
    for verdict in run.verdicts:
        if verdict.metric == "points" and verdict.value is not None:
            made.setdefault(verdict.sample, []).append(100 * verdict.value)
    return made


def calls_per_image(run: Run) -> float:
    """How many calls stand behind a picture; answers taken over from an earlier run count as much as new ones."""
    pictures = [turn.reply for turn in run.turns if turn.modality == "image"]
    return sum(len(reply.keys) for reply in pictures) / len(pictures)
