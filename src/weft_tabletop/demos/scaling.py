"""Test-time scaling, shown with the tiny model: chain of thought, self-verification and best of N against the model
alone, on the same dialogues, score against calls.

Its images are sampled (a model that always draws the same has nothing to choose from); its words are not."""

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
COLUMNS = ("strategy", "calls per image", "images", "low", "high", "gain", "n")
TEMPERATURE = 2.0
Scores = Mapping[str, list[float]]


def show_scaling(folder: Path, home: Path, evaluate: Evaluate, samples: int) -> Demo:
    data = folder / f"imug-{samples}"
    if not data.exists():
        make("tabletop-imug", data, samples=samples, seed=0)
    options = {"temperature": TEMPERATURE, "seed": 0}
    rows: list[dict[str, Any]] = []
    baseline: Scores = {}
    for strategy in STRATEGIES:
        run = evaluate(benchmark="imug", data=data, model="tabletop/tiny", model_options=options, strategy=strategy)
        scores = image_scores(run)
        if strategy == "none":
            baseline = scores
        rows.append(_build_row(strategy, run, scores, baseline))
    best = max(rows, key=lambda row: row["images"])
    words = (
        f"Sampled at temperature {TEMPERATURE:g}, the model alone scores {rows[0]['images']:.1f} on its images; "
        f"{best['strategy']} comes to {best['images']:.1f} with {best['calls per image']:.1f} calls per image. "
        "Gains are over the model alone, dialogue by dialogue."
    )
    title = f"Test-time scaling ({samples} dialogues)"
    chart = plots.cost_chart(rows, x="calls per image", y="images", series="family", label="label", title=title)
    return Demo("Test-time scaling", COLUMNS, rows, chart, words)


def _build_row(strategy: str, run: Run, scores: Scores, baseline: Scores) -> dict[str, Any]:
    mean = estimate_mean(scores, (0.0, 100.0))
    gain = ""
    if strategy != "none":
        differences: dict[str, list[float]] = {}
        for sample, values in scores.items():
            differences[sample] = [a - b for a, b in zip(values, baseline[sample], strict=True)]
        estimate = estimate_mean(differences, (-100.0, 100.0))
        gain = f"{estimate.value:+.1f} [{estimate.low:+.1f}, {estimate.high:+.1f}]"
    return {
        "strategy": strategy,
        **strategy_label(strategy),
        "calls per image": calls_per_image(run),
        "images": mean.value,
        "low": mean.low,
        "high": mean.high,
        "gain": gain,
        "n": mean.n,
    }


def image_scores(run: Run) -> dict[str, list[float]]:
    """The scores of the images in percent, by dialogue."""
    scores: dict[str, list[float]] = {}
    for verdict in run.verdicts:
        if verdict.metric == "points" and verdict.value is not None:
            scores.setdefault(verdict.sample, []).append(100 * verdict.value)
    return scores


def calls_per_image(run: Run) -> float:
    """How many calls an image took; replies cached by an earlier run count as much as new ones."""
    replies = [turn.reply for turn in run.turns if turn.modality == "image"]
    return sum(len(reply.keys) for reply in replies) / len(replies)
