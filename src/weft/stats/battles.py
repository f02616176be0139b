"""Battles between models: win rates, a judge's agreement with people, position bias, and ratings.

A verdict is `A`, `B`, a tie that leans to one of them (`Tie(A)`, `Tie(B)`), or a tie that leans to neither (`Tie`). A
battle counts once for each of its two models. Win rates are those of OpenING:

    FDT            (force dividing tie) wins, and ties that lean to the model (half of a bare tie), of all battles
    without tie    wins of all decided battles
    with tie 0     wins of all battles
    with tie .5    wins and half of all ties, of all battles

Intervals are by item: two battles about one item are not independent.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from weft.errors import UserError
from weft.stats.intervals import estimate_mean
from weft.stats.resampling import bootstrap_weights
from weft.types import Cell, Verdict

Winner = Literal["A", "B", "Tie(A)", "Tie(B)", "Tie"]
FLIPPED_WINNER: Mapping[Winner, Winner] = {"A": "B", "B": "A", "Tie(A)": "Tie(B)", "Tie(B)": "Tie(A)", "Tie": "Tie"}
WIN_RATES = ("FDT", "without tie", "with tie 0", "with tie .5")
# how much of a win each verdict is for the model in position A
FORCED: Mapping[Winner, float] = {"A": 1.0, "Tie(A)": 1.0, "Tie": 0.5, "Tie(B)": 0.0, "B": 0.0}
WINS_ALONE: Mapping[Winner, float] = {"A": 1.0, "Tie(A)": 0.0, "Tie": 0.0, "Tie(B)": 0.0, "B": 0.0}
HALF_TIES: Mapping[Winner, float] = {"A": 1.0, "Tie(A)": 0.5, "Tie": 0.5, "Tie(B)": 0.5, "B": 0.0}
LEAN: Mapping[Winner, float] = {"A": 1.0, "Tie(A)": 0.25, "Tie": 0.0, "Tie(B)": -0.25, "B": -1.0}
MIN_LEAN = 0.01  # below, a tie leans to neither
DECIDED_LEAN = 0.7  # above, it is a win
ELO_SCALE = 400.0
ELO_CENTRE = 1000.0
# Each model is taken to have won and lost this much of a battle against one of average strength: ratings stay finite.
PRIOR = 0.5
DRAWS = 2000
MAX_STEPS = 100
TOLERANCE = 1e-9
MAX_RATED_MODELS = 500


class Battle(Struct, frozen=True):
    """One comparison of two models' outputs for one item."""

    item: str
    first: str  # the model in position A
    second: str  # the model in position B
    winner: Winner
    verdict: Verdict | None = None  # of the run it belongs to; None: it comes from a file

    def flip(self) -> "Battle":
        """Return the same battle with the positions swapped."""
        return Battle(self.item, self.second, self.first, FLIPPED_WINNER[self.winner], self.verdict)

    @property
    def is_decided(self) -> bool:
        return self.winner in ("A", "B")


class BattleAgreement(Struct, frozen=True):
    """How often a judge and people name the same winner, in percent."""

    fdt: Cell  # ties go to the model that they lean to
    with_tie: Cell  # a tie is a third verdict
    without_tie: Cell  # only battles that neither calls a tie


def list_models(battles: Iterable[Battle]) -> list[str]:
    """Return the names of all models, in order of appearance."""
    names: dict[str, None] = {}
    for battle in battles:
        names[battle.first] = None
        names[battle.second] = None
    return list(names)


def seen_from(battles: Iterable[Battle], model: str) -> list[Battle]:
    """Return a model's battles, each as if it were in position A."""
    own: list[Battle] = []
    for battle in battles:
        if battle.first == model:
            own.append(battle)
        elif battle.second == model:
            own.append(battle.flip())
    return own


def compute_win_rates(battles: Sequence[Battle], model: str, bare: float = 0.5) -> dict[str, Cell]:
    """Return a model's win rates in percent, with 95% intervals, by the names of `WIN_RATES`.

    `bare` is what FDT counts for a tie that leans to neither; the released scripts count nothing.
    """
    own = seen_from(battles, model)
    decided = [battle for battle in own if battle.is_decided]
    return {
        "FDT": _mean_value(own, {**FORCED, "Tie": bare}),
        "without tie": _mean_value(decided, WINS_ALONE),
        "with tie 0": _mean_value(own, WINS_ALONE),
        "with tie .5": _mean_value(own, HALF_TIES),
    }


def _mean_value(battles: Sequence[Battle], values: Mapping[Winner, float]) -> Cell:
    clusters: dict[str, list[float]] = {}
    for battle in battles:
        clusters.setdefault(battle.item, []).append(values[battle.winner])
    return _build_cell(clusters, battles)


def collect_verdicts(battles: Iterable[Battle]) -> list[Verdict]:
    """Return the verdicts of those battles that belong to a run."""
    return [battle.verdict for battle in battles if battle.verdict is not None]


def _build_cell(clusters: Mapping[str, Sequence[float]], battles: Iterable[Battle]) -> Cell:
    """Return the mean of shares by item, in percent, with its interval."""
    if not clusters:
        return Cell(None)
    estimate = estimate_mean(clusters)
    low, high = estimate.low * 100, estimate.high * 100
    return Cell(
        estimate.value * 100,
        estimate.n,
        estimate.n,
        low if len(clusters) > 1 else None,
        high if len(clusters) > 1 else None,
        verdicts=collect_verdicts(battles),
    )


def first_position_rate(battles: Sequence[Battle]) -> Cell:
    """Return how often position A wins, of all decided battles, in percent; 50 without position bias."""
    return _mean_value([battle for battle in battles if battle.is_decided], WINS_ALONE)


def merge_orders(battles: Sequence[Battle]) -> tuple[list[Battle], Cell]:
    """Merge battles in both orders into one each; also return how often both orders agree, in percent.

    Two verdicts that contradict each other become a bare tie: the position decided them, not the model. A win and a tie
    become a tie that leans to the winner. Battles in one order alone stay as they are.
    """
    pairs: dict[tuple[str, str, str], list[Battle]] = {}
    orders: set[tuple[str, str, str]] = set()
    for battle in battles:
        orders.add((battle.item, battle.first, battle.second))
        if battle.first > battle.second:
            battle = battle.flip()
        pairs.setdefault((battle.item, battle.first, battle.second), []).append(battle)
    merged: list[Battle] = []
    in_both_orders: list[Battle] = []
    agreements: dict[str, list[float]] = {}
    for (item, first, second), group in pairs.items():
        if (item, first, second) not in orders or (item, second, first) not in orders:
            merged += group
            continue
        lean = sum(LEAN[battle.winner] for battle in group) / len(group)
        battle = Battle(item, first, second, winner_from_lean(lean), group[0].verdict)
        merged.append(battle)
        in_both_orders.append(battle)
        winners = {FORCED[battle.winner] for battle in group}
        agreements.setdefault(item, []).append(float(len(winners) == 1))
    return merged, _build_cell(agreements, in_both_orders)


def winner_from_lean(lean: float) -> Winner:
    """Return the verdict for a mean of `LEAN` values."""
    if abs(lean) < MIN_LEAN:
        return "Tie"
    if lean > DECIDED_LEAN:
        return "A"
    if lean < -DECIDED_LEAN:
        return "B"
    if lean > 0:
        return "Tie(A)"
    return "Tie(B)"


def measure_battle_agreement(
    judge: Sequence[Battle], human: Sequence[Battle], keep: Callable[[Battle], bool] = lambda _: True
) -> BattleAgreement:
    """Compare a judge with people, on the battles that both have in any order and that `keep` accepts."""
    human_winners: dict[tuple[str, str, str], Winner] = {}
    for battle in human:
        human_winners[battle.item, battle.first, battle.second] = battle.winner
        human_winners.setdefault((battle.item, battle.second, battle.first), FLIPPED_WINNER[battle.winner])
    pairs: list[tuple[Battle, Winner]] = []
    decided: list[tuple[Battle, Winner]] = []
    for battle in judge:
        human_winner = human_winners.get((battle.item, battle.first, battle.second))
        if human_winner is None or not keep(battle):
            continue
        pairs.append((battle, human_winner))
        if battle.is_decided and human_winner in ("A", "B"):
            decided.append((battle, human_winner))
    # two verdicts agree where they have the same value; with half ties, all ties are one verdict
    return BattleAgreement(
        _share_alike(pairs, FORCED), _share_alike(pairs, HALF_TIES), _share_alike(decided, HALF_TIES)
    )


def _share_alike(pairs: Sequence[tuple[Battle, Winner]], values: Mapping[Winner, float]) -> Cell:
    clusters: dict[str, list[float]] = {}
    for battle, winner in pairs:
        is_alike = values[battle.winner] == values[winner]
        clusters.setdefault(battle.item, []).append(float(is_alike))
    return _build_cell(clusters, [battle for battle, _ in pairs])


def find_connected_groups(battles: Iterable[Battle]) -> list[set[str]]:
    """Return groups of models that met, directly or through others. Models of two groups cannot be compared."""
    groups: list[set[str]] = []
    for first, second in dict.fromkeys((battle.first, battle.second) for battle in battles):
        joined = {first, second}
        others: list[set[str]] = []
        for group in groups:
            if first in group or second in group:
                joined |= group
            else:
                others.append(group)
        groups = [*others, joined]
    return groups


def fit_ratings(battles: Sequence[Battle], *, draws: int = 1000, seed: int = 0) -> dict[str, Cell]:
    """Fit Bradley-Terry strengths on Elo's scale (400 points are ten to one), the highest first.

    1000 is the average of a connected group. A tie is half a win for each. Intervals resample items; there is none
    where resampling changes nothing: few battles, or a model that won or lost all of them.
    """
    ratings: dict[str, Cell] = {}
    for group in find_connected_groups(battles):
        if len(group) > MAX_RATED_MODELS:
            raise UserError(f"{len(group)} models met; ratings are for at most {MAX_RATED_MODELS}")
        group_draws = max(50, min(draws, 20_000 // len(group)))
        ratings |= _rate_group([battle for battle in battles if battle.first in group], group_draws, seed)
    return dict(sorted(ratings.items(), key=lambda entry: -(entry[1].value or 0.0)))


def _rate_group(battles: Sequence[Battle], draws: int, seed: int) -> dict[str, Cell]:
    import numpy as np

    names = list_models(battles)
    items = list(dict.fromkeys(battle.item for battle in battles))
    row_of = dict(zip(names, range(len(names)), strict=True))
    index_of = dict(zip(items, range(len(items)), strict=True))
    columns: list[tuple[int, int, float, int]] = []
    for battle in battles:
        win = HALF_TIES[battle.winner]
        columns.append((row_of[battle.first], row_of[battle.second], win, index_of[battle.item]))
    first, second, won, item = map(np.array, zip(*columns, strict=True))

    def fit(weights: Any, start: Any) -> Any:
        wins = np.zeros((len(names), len(names)))
        np.add.at(wins, (first, second), won * weights)
        np.add.at(wins, (second, first), (1 - won) * weights)
        strengths: Any = _fit_strengths(wins, start)
        return strengths - strengths.mean()

    strengths = fit(np.ones(len(battles)), np.zeros(len(names)))
    weights = bootstrap_weights(len(items), DRAWS, seed)[:draws].astype(float)
    drawn = np.array([fit(draw[item], strengths) for draw in weights])
    counts = np.bincount(np.concatenate([first, second]), minlength=len(names))
    ratings: dict[str, Cell] = {}
    for name, row in row_of.items():
        low, high = map(_to_elo, np.quantile(drawn[:, row], [0.025, 0.975]))
        interval = (None, None)
        if high - low > 0.1 and _is_mixed(won, first, second, row):
            interval = (low, high)
        rating = _to_elo(strengths[row])
        count = int(counts[row])
        verdicts = collect_verdicts(battle for battle in battles if name in (battle.first, battle.second))
        ratings[name] = Cell(rating, count, count, *interval, digits=1, verdicts=verdicts)
    return ratings


def _is_mixed(won: Any, first: Any, second: Any, row: int) -> bool:
    """Return whether a model neither won nor lost all its battles: resampling cannot show what never happened."""
    own = [*won[first == row], *(1 - won[second == row])]
    return 0 < sum(own) < len(own)


def _to_elo(strength: Any) -> float:
    return ELO_CENTRE + ELO_SCALE * float(strength) / math.log(10)


def _fit_strengths(wins: Any, start: Any) -> Any:
    """Return the strengths of greatest likelihood, in natural logarithms, by Newton's method.

    Each model also met one of strength 0 (`PRIOR`).
    """
    import numpy as np

    solve: Any = np.linalg.solve
    battles: Any = wins + wins.T
    strength: Any = start
    scored = wins.sum(axis=1) + PRIOR
    for _ in range(MAX_STEPS):
        expected: Any = 1 / (1 + np.exp(strength[None, :] - strength[:, None]))
        expected_prior: Any = 1 / (1 + np.exp(-strength))
        gradient = scored - (battles * expected).sum(axis=1) - 2 * PRIOR * expected_prior
        variance = battles * expected * (1 - expected)
        hessian: Any = np.diag(variance.sum(axis=1) + 2 * PRIOR * expected_prior * (1 - expected_prior)) - variance
        step: Any = np.clip(solve(hessian, gradient), -2, 2)
        strength = strength + step
        if float(np.abs(step).max()) < TOLERANCE:
            break
    return strength
