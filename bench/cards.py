"""Five judges whose faults are known, and what their cards say of them.

python bench/cards.py [--questions 200] [--side 128]"""

import argparse
import math
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from weft.judge_eval.calibration import check
from weft.results.cards import ALL_METRICS, CalibrationCard
from weft.stats.agreement import NullableEstimate


def middle(card: CalibrationCard, benchmark: str, name: str) -> NullableEstimate:
    found = card.for_metric(benchmark, ALL_METRICS)
    assert found is not None
    return getattr(found, name)


def effect(card: CalibrationCard, what: str) -> NullableEstimate:
    return next(one.raised for one in card.effects if one.change.endswith(what) and one.benchmark in ("all", "weave"))


def first_place(card: CalibrationCard) -> NullableEstimate:
    return next(one.position_bias for one in card.orders if "document" in one.battles)


NOISE = math.sqrt(0.1**2 + 0.1**2 / 12)  # scores are whole numbers of ten, which adds a little
JUDGES: list[tuple[str, str, dict[str, float], float, Callable[[CalibrationCard], NullableEstimate]]] = [
    (
        "noisy: deviation",
        "weaver",
        {"sigma": 0.1},
        math.sqrt(0.01 + 0.01 / 12),
        lambda card: middle(card, "weaverbench", "deviation_middle"),
    ),
    ("lenient: bias", "weave", {"lenient": 0.1}, 0.1, lambda card: middle(card, "weave", "bias")),
    (
        "prefers the first: pull",
        "weaver",
        {"first": 0.4},
        0.4,
        lambda card: next(one.position_bias for one in card.orders if "document" in one.battles),
    ),
    ("blind: sees", "weave", {"blind": 1.0}, 0.0, lambda card: middle(card, "weave", "sees")),
    ("obeys a picture: raised", "weave", {"obeys": 0.7}, 0.7, lambda card: effect(card, "inside the picture")),
    ("obeys words: raised", "weave", {"obeys": 0.7}, 0.7, lambda card: effect(card, "behind the answer")),
]


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--questions", type=int, default=200)
    asked.add_argument("--side", type=int, default=128)
    chosen = asked.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name, benchmark, faults, due, found in JUDGES:
            start = time.monotonic()
            card = check(
                "tabletop/erring",
                benchmarks=[benchmark],
                questions=chosen.questions,
                sides=[chosen.side],
                home=Path(folder),
                judge_options=faults,
            )
            told = ", ".join(f"{key}={value:g}" for key, value in faults.items())
            held = found(card)
            inside = held.low is not None and held.high is not None and held.low - 1e-6 <= due <= held.high + 1e-6
            print(
                f"{name:28} {told:12} due {due:.3f}  card {held}  {'inside' if inside else 'OUTSIDE'}  "
                f"{time.monotonic() - start:.1f} s"
            )


if __name__ == "__main__":
    main()
