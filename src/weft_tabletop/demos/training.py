"""What the papers claim about training, from the logs that ship: planner and visualizer trained apart, and visual
memory against the share of dialogues. `bench/training.py` makes the logs; nothing is trained or evaluated here."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from weft.report import plots
from weft.rounding import format_number
from weft.stats.student_t import student_t_quantile
from weft.training.curves import Curve, read_curves
from weft_tabletop.demos.demo import Demo
from weft_tabletop.weaver.files import LOGS_FILE, SHIPPED

TRAININGS = {  # runs in the order of the table, and what they are called there
    "planner-0": "understanding alone",
    "planner-und": "+ understanding",
    "planner-1g1u": "+ 1g1u",
    "planner-3g1u": "+ 3g1u",
    "planner-5g1u": "+ 5g1u",
    "planner-5g1u-no-documents": "+ 5g1u, no documents",
    "planner-5g1u-replay": "+ 5g1u, replay",
    "planner-5g1u-low-rate": "+ 5g1u, rate / 5",
    "planner-5g1u-low-rank": "+ 5g1u, LoRA 8",
    "visualizer-0": "visualizer V",
    "visualizer-v": "V, trained on",
    "visualizer-apv": "aP V, on + 5g1u",
    "joint": "both at once, 5g1u",
}
MEASURES = {  # columns of the table
    "understanding": "understanding",
    "T2I": "draw count",
    "I2I": "edit count",
    "documents": "build count",
    "V's loss": "visual loss",
    "images": "images",
}
CHARTED = ("understanding", "T2I", "I2I", "documents")
UNCHARTED = ("planner-und",)  # a chart has eight colours
MEMORY_KINDS = {"back": "put back", "copy": "copy from an earlier image", "recall": "recall", "edit": "edit the latest"}
LEAST_SEEDS = 3  # or no claim
RUN = re.compile(r"seed-(\d+)/(.+)")
Runs = Mapping[str, Sequence[Curve]]  # by the name of the run; a curve for each seed


def load_runs() -> Runs:
    """The shipped runs, by their names without the seed; without those of too few seeds."""
    runs: dict[str, list[Curve]] = {}
    for curve in read_curves(SHIPPED / LOGS_FILE):
        match = RUN.fullmatch(curve.name)
        if match is not None:
            runs.setdefault(match[2], []).append(curve)
    return {name: curves for name, curves in runs.items() if len(curves) >= LEAST_SEEDS}


def describe_steps(curves: Sequence[Curve]) -> str:
    """How far the runs came, and how far they were to come if they were stopped."""
    step = last_step(curves)
    planned = int(curves[0].manifest["steps"])
    return f"{step:,}" if step == planned else f"{step:,} of {planned:,}"


def last_step(curves: Sequence[Curve]) -> int:
    """The last step that every seed came to."""
    steps = [{int(line["step"]) for line in curve.lines} for curve in curves]
    return max(steps[0].intersection(*steps[1:]), default=0)


def last_values(curves: Sequence[Curve], measure: str) -> list[float]:
    """What each seed has there, where it was measured."""
    step = last_step(curves) if curves else 0
    lines = [line for curve in curves for line in curve.lines if line["step"] == step]
    return [float(line[measure]) for line in lines if measure in line]


def estimate_over_seeds(values: Sequence[float]) -> tuple[float, float | None]:
    """The mean, and half the width of its 95% interval (Student's); None for one seed."""
    mean = sum(values) / len(values)
    if len(values) < 2:
        return mean, None
    variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return mean, student_t_quantile(len(values) - 1) * (variance / len(values)) ** 0.5


def bound(values: Sequence[float]) -> dict[str, Any]:
    """The mean of shares with its interval, for a chart."""
    mean, half = estimate_over_seeds(values)
    return {
        "value": mean,
        "low": None if half is None else max(0.0, mean - half),
        "high": None if half is None else min(1.0, mean + half),
        "seeds": len(values),
    }


def show_decoupled() -> Demo:
    """Planner and visualizer: what each training gave."""
    runs = load_runs()
    rows: list[dict[str, Any]] = []
    bars: list[dict[str, Any]] = []
    for name, label in TRAININGS.items():
        curves = runs.get(name, ())
        if not curves:
            continue
        row: dict[str, Any] = {"training": label, "seeds": len(curves), "steps": describe_steps(curves)}
        for column, measure in MEASURES.items():
            values = last_values(curves, measure)
            row[column] = _format_estimate(values)
            if values and column in CHARTED and name.startswith("planner") and name not in UNCHARTED:
                estimated = bound(values)
                bars.append({"asked": column, "training": label, "share": estimated.pop("value"), **estimated})
        rows.append(row)
    world = _world(runs)
    title = f"Planner tuned on mixes: understanding, and replies with the right number of images ({world} world)"
    chart = plots.grouped_bar_chart(bars, x="asked", y="share", series="training", title=title)
    columns = ("training", "seeds", "steps", *MEASURES)
    return Demo(f"Decoupled training ({world} world)", columns, rows, chart, _describe_decoupled(runs))


def _describe_decoupled(runs: Runs) -> str:
    def mean(run: str, measure: str) -> str:
        return _format_estimate(last_values(runs.get(run, ()), measure))

    return (
        "T2I, I2I and documents: the share of replies with the right number of images. Tuning a planner on 5g1u takes "
        f"V's loss from {mean('visualizer-0', 'visual loss')} to {mean('planner-5g1u', 'visual loss')}; trained on, "
        f"aP V comes to {mean('visualizer-apv', 'visual loss')}. Understanding: "
        f"{mean('planner-0', 'understanding')} before, {mean('planner-5g1u', 'understanding')} after."
    )


def show_memory_curve() -> Demo:
    """Visual memory against the share of tokens that come from whole dialogues."""
    runs = load_runs()
    shares = sorted(float(name.removeprefix("share-")) for name in runs if name.startswith("share-"))
    rows: list[dict[str, Any]] = []
    for share in shares:
        curves = runs[f"share-{share:g}"]
        for kind, label in MEMORY_KINDS.items():
            values = last_values(curves, kind)
            if values:
                estimated = bound(values)
                rows.append({"asked": label, "share": share, "exactly right": estimated.pop("value"), **estimated})
    rows.sort(key=lambda row: list(MEMORY_KINDS.values()).index(row["asked"]))
    world = _world(runs)
    title = f"Exactly right, by the share of tokens from whole dialogues ({world} world)"
    chart = plots.line_chart(rows, x="share", y="exactly right", series="asked", title=title)
    back = {row["share"]: row["exactly right"] for row in rows if row["asked"] == MEMORY_KINDS["back"]}
    words = (
        f"At equal tokens, putting back what was removed goes from {format_number(back[shares[0]], 3)} with a share of "
        f"{shares[0]:g} of whole dialogues to {format_number(back[shares[-1]], 3)} with {shares[-1]:g}."
    )
    columns = ("asked", "share", "exactly right", "low", "high", "seeds")
    return Demo(f"Visual memory against data ({world} world)", columns, rows, chart, words)


def _world(runs: Runs) -> str:
    return next(str(curve.manifest.get("world")) for curves in runs.values() for curve in curves)


def _format_estimate(values: Sequence[float]) -> str:
    if not values:
        return "–"
    mean, half = estimate_over_seeds(values)
    if half is None:
        return format_number(mean, 2)
    return f"{format_number(mean, 2)} ±{format_number(half, 2)}"
