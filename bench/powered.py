"""Whether 95% intervals of a corrected number hold what they promise, in studies whose truth is known.

    python bench/powered.py [--studies 1000] [--dialogues 100]

A study: so many dialogues of one to eight questions. Dialogues are easy or hard; a judge is too kind on average, and
more so in long dialogues, noisy, and wrong in the same way about a whole dialogue. People rate some questions, or all
of some dialogues, or one question of each of some dialogues, drawn at random; what is rated of dialogues of one size
stands for all of that size (`evened`), but for one row that shows why. In two rows the number is half the mean of
one kind of question and half that of another, which stand in the same dialogues, and some questions are decided by
rule. In the last row people give full marks to most. Printed, for the judge's plain mean, for people alone, and corrected (prediction-powered): how often the interval
has the true mean in it, how wide it is on average; the mean of lambda, and how far the corrected number is off on
average."""

import argparse
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from weft.stats.prediction_powered import PoweredEstimate, WeightedMean, estimate_powered_sum, weigh_rated_items

LEVEL = 0.55  # of the easiest kind of question
KINDS: dict[str, dict[str, Any]] = {
    "100 questions": {"questions": 100},
    "100 questions, poor judge": {"questions": 100, "noise": 0.5},
    "30 questions": {"questions": 30},
    "20 dialogues": {"rated": 20},
    "8 dialogues": {"rated": 8},
    "one each of 60 dialogues": {"spread": 60},
    "one each of 60, not evened": {"spread": 60, "even": False},
    "100 questions, two means": {"questions": 100, "kinds": 2},
    "20 dialogues, two means": {"rated": 20, "kinds": 2},
    "20 questions, near full marks": {"questions": 20, "level": 1.3},
}
WAYS: dict[str, Callable[[PoweredEstimate], tuple[float, float | None, float | None]]] = {
    "plain": lambda one: (one.judge_only.value or 0.0, one.judge_only.low, one.judge_only.high),
    "people": lambda one: (one.people_only.value or 0.0, one.people_only.low, one.people_only.high),
    "corrected": lambda one: (one.value, one.low, one.high),
}


def truth_of(kinds: int, chance: np.random.Generator, dialogues: int, level: float) -> tuple[list[int], Any, Any]:
    """Sizes of dialogues; the truth of each question; what kind it is."""
    sizes = chance.integers(1, 9, dialogues)
    of = np.repeat(np.arange(dialogues), sizes)
    kind = chance.integers(0, kinds, len(of))
    ease = 0.2 * chance.normal(size=dialogues)[of]
    right = np.clip(level + 0.15 * kind + ease + 0.2 * chance.normal(size=len(of)), 0, 1)
    return list(sizes), np.round(right * 10) / 10, kind


def expected(kinds: int, level: float) -> float:
    """The true number: of a million questions."""
    _, right, kind = truth_of(kinds, np.random.default_rng(99), 250_000, level)
    return float(np.mean([right[kind == one].mean() for one in range(kinds)]))


def study(
    chance: np.random.Generator,
    *,
    dialogues: int = 100,
    questions: int = 0,
    rated: int = 0,
    spread: int = 0,
    noise: float = 0.12,
    kinds: int = 1,
    even: bool = True,
    level: float = LEVEL,
) -> PoweredEstimate | None:
    sizes, right, kind = truth_of(kinds, chance, dialogues, level)
    of = np.repeat(np.arange(dialogues), sizes)
    drift = 0.08 * chance.normal(size=dialogues)[of]
    drift = drift + 0.03 * (np.array(sizes)[of] - 4.5)
    said = np.round(np.clip(0.15 + 0.85 * right + drift + noise * chance.normal(size=len(of)), 0, 1) * 10) / 10
    sure = (chance.random(len(of)) < 0.1) if kinds > 1 else np.zeros(len(of), bool)
    open_ = np.flatnonzero(~sure)
    if questions:
        chosen = chance.choice(open_, min(questions, len(open_)), replace=False)
    elif spread:
        mixed = chance.permutation(open_)
        chosen = mixed[np.unique(of[mixed], return_index=True)[1]]
        chosen = chance.choice(chosen, min(spread, len(chosen)), replace=False)
    else:
        chosen = open_[np.isin(of[open_], chance.choice(dialogues, rated, replace=False))]
    is_rated = np.zeros(len(of), bool)
    is_rated[chosen] = True
    names = [str(one) for one in range(dialogues)]
    judged_in, rated_in = (
        dict(zip(names, np.bincount(of[some], minlength=dialogues).tolist(), strict=True)) for some in (open_, chosen)
    )
    counts = weigh_rated_items(judged_in, rated_in) if even else {}
    parts: list[WeightedMean] = []
    for one in range(kinds):
        judged: dict[str, list[float]] = {}
        pairs: dict[str, list[tuple[float, float]]] = {}
        known: dict[str, list[float]] = {}
        for at in np.flatnonzero(kind == one):
            name = str(of[at])
            if sure[at]:
                known.setdefault(name, []).append(float(right[at]))
                continue
            judged.setdefault(name, []).append(float(said[at]))
            if is_rated[at]:
                pairs.setdefault(name, []).append((float(said[at]), float(right[at])))
        parts.append(WeightedMean(1 / kinds, judged, pairs, known, counts))
    return estimate_powered_sum(parts)


def coverage(studies: int, seed: int = 0, **kind: Any) -> dict[str, tuple[float, float]]:
    """By way: the share of intervals that have the truth in them, and their mean width; and lambda's mean."""
    chance, true = np.random.default_rng(seed), expected(kind.get("kinds", 1), kind.get("level", LEVEL))
    found = [one for one in (study(chance, **kind) for _ in range(studies)) if one is not None]
    made: dict[str, tuple[float, float]] = {}
    for name, way in WAYS.items():
        told = [way(one) for one in found]
        inside = [low is not None and high is not None and low <= true <= high for _, low, high in told]
        wide = [high - low if low is not None and high is not None else math.inf for _, low, high in told]
        made[name] = (float(np.mean(inside)), float(np.mean(wide)))
    made["lambda"] = (float(np.mean([one.weight for one in found])), 0.0)
    made["error"] = (float(np.mean([one.value for one in found])) - true, 0.0)
    return made


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--studies", type=int, default=1000)
    asked.add_argument("--dialogues", type=int, default=100)
    given = asked.parse_args()
    print(f"{given.studies} studies of {given.dialogues} dialogues each; coverage of 95% intervals (mean width)")
    print(f"{'people rate':28}{'plain judge':>18}{'people alone':>18}{'corrected':>18}{'lambda':>8}{'error':>9}")
    for name, kind in KINDS.items():
        found = coverage(given.studies, dialogues=given.dialogues, **kind)
        cells = [f"{share:.1%} ({wide:.3f})" for share, wide in (found[way] for way in WAYS)]
        print(
            f"{name:28}{cells[0]:>18}{cells[1]:>18}{cells[2]:>18}{found['lambda'][0]:>8.2f}{found['error'][0]:>+9.4f}"
        )


if __name__ == "__main__":
    main()
