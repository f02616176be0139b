"""Battles between models: who wins how often, how far a judge agrees with people, whether it favours a place, and
ratings.

A verdict is `A`, `B`, a tie that leans to one of them (`Tie(A)`, `Tie(B)`), or a tie that leans to neither (`Tie`). A
battle counts once for each of its two models. Rates are those of OpenING:

    FDT            wins, and ties that lean to the model (half of one that leans to neither), of all battles
    without tie    wins of all that were decided
    with tie 0     wins of all battles
    with tie .5    wins and half of all ties, of all battles

Intervals resample items: two battles about one item are not independent."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from weft.errors import UserError
from weft.stats.intervals import DRAWS, bootstrap_weights, estimate_mean
from weft.types import Cell, Verdict

Winner = Literal["A", "B", "Tie(A)", "Tie(B)", "Tie"]
FLIPPED_WINNER: Mapping[Winner, Winner] = {"A": "B", "B": "A", "Tie(A)": "Tie(B)", "Tie(B)": "Tie(A)", "Tie": "Tie"}
WIN_RATES = ("FDT", "without tie", "with tie 0", "with tie .5")
# for the model that stands as A
FORCED: Mapping[Winner, float] = {"A": 1.0, "Tie(A)": 1.0, "Tie": 0.5, "Tie(B)": 0.0, "B": 0.0}
ELO = 400.0
CENTRE = 1000.0
PRIOR = (
    # of a battle that each model is taken to have won, and of one that it lost, against one of average strength:
    # ratings stay finite
    0.5
)
STEPS = 100
CLOSE = 1e-9
MOST = 500  # models that are rated together


class Battle(Struct, frozen=True):
    item: str
    first: str  # the model that stands as A
    second: str
    winner: Winner
    verdict: Verdict | None = None  # of the run that it was fought in; None: it comes from a file

    def flip(self) -> "Battle":
        return Battle(self.item, self.second, self.first, FLIPPED_WINNER[self.winner], self.verdict)


class BattleAgreement(Struct, frozen=True):
    """Percent, with how many battles stand behind it."""

    fdt: Cell
    with_tie: Cell
    without_tie: Cell


def list_models(battles: Iterable[Battle]) -> list[str]:
    return list(dict.fromkeys(name for battle in battles for name in (battle.first, battle.second)))


def seen_from(battles: Iterable[Battle], model: str) -> list[Battle]:
    """A model's battles, each as if it stood as A."""
    return [one if one.first == model else one.flip() for one in battles if model in (one.first, one.second)]


def compute_win_rates(battles: Sequence[Battle], model: str, bare: float = 0.5) -> dict[str, Cell]:
    """In percent, with 95% intervals. `bare` is what FDT counts for a tie that leans to neither; the released scripts
    count nothing."""
    mine = seen_from(battles, model)
    decided = [one for one in mine if one.winner in ("A", "B")]
    halves: Mapping[Winner, float] = {"A": 1.0, "B": 0.0}
    return {
        "FDT": _share(mine, lambda one: bare if one.winner == "Tie" else FORCED[one.winner]),
        "without tie": _share(decided, lambda one: float(one.winner == "A")),
        "with tie 0": _share(mine, lambda one: float(one.winner == "A")),
        "with tie .5": _share(mine, lambda one: halves.get(one.winner, 0.5)),
    }


def _share(battles: Sequence[Battle], value: Callable[[Battle], float]) -> Cell:
    clusters: dict[str, list[float]] = {}
    for one in battles:
        clusters.setdefault(one.item, []).append(value(one))
    return _mean(clusters, battles)


def collect_verdicts(battles: Iterable[Battle]) -> list[Verdict]:
    """Those behind battles of runs."""
    return [one.verdict for one in battles if one.verdict is not None]


def _mean(clusters: Mapping[str, Sequence[float]], battles: Iterable[Battle]) -> Cell:
    """Shares of some battles, in percent, with the interval by item."""
    if not clusters:
        return Cell(None)
    found = estimate_mean(clusters)
    value, low, high = (round(one * 100, 2) for one in (found.value, found.low, found.high))
    return Cell(value, found.n, found.n, low, high, verdicts=collect_verdicts(battles))


def first_position_rate(battles: Sequence[Battle]) -> Cell:
    """How often the one that stands first wins, of all that were decided, in percent; 50 if place plays no part."""
    return _share([one for one in battles if one.winner in ("A", "B")], lambda one: float(one.winner == "A"))


def merge_orders(battles: Sequence[Battle]) -> tuple[list[Battle], Cell]:
    """Battles that were fought in both orders as one each, and how often the two verdicts were of one mind, in percent.
    Two that contradict each other are a tie that leans to neither: the place decided them, not the model. One that is
    decided and one that is a tie are a tie that leans to the winner. Battles of one order alone stay as they are."""
    pairs: dict[tuple[str, str, str], list[Battle]] = {}
    for one in battles:
        low, high = sorted((one.first, one.second))
        pairs.setdefault((one.item, low, high), []).append(one if one.first == low else one.flip())
    fought = {(one.item, one.first, one.second) for one in battles}
    made: list[Battle] = []
    same: dict[str, list[float]] = {}
    twice: list[Battle] = []
    for (item, low, high), some in pairs.items():
        if not {(item, low, high), (item, high, low)} <= fought:
            made += some
            continue
        lean = sum(LEAN[one.winner] for one in some) / len(some)
        made.append(Battle(item, low, high, winner_from_lean(lean), some[0].verdict))
        twice.append(made[-1])
        same.setdefault(item, []).append(float(len({FORCED[one.winner] for one in some}) == 1))
    return made, _mean(same, twice)


LEAN: Mapping[Winner, float] = {"A": 1.0, "Tie(A)": 0.25, "Tie": 0.0, "Tie(B)": -0.25, "B": -1.0}


def winner_from_lean(lean: float) -> Winner:
    if abs(lean) < 0.01:
        return "Tie"
    if lean > 0:
        if lean > 0.7:
            return "A"
        return "Tie(A)"
    if lean < -0.7:
        return "B"
    return "Tie(B)"


def measure_battle_agreement(
    judge: Sequence[Battle], human: Sequence[Battle], keep: Callable[[Battle], bool] = lambda _: True
) -> BattleAgreement:
    """On the battles that both have decided, whichever way round: with ties given to whom they lean, with ties as a
    third verdict, and on those that neither calls a tie."""
    told: dict[tuple[str, str, str], Winner] = {}
    for one in human:
        told[one.item, one.first, one.second] = one.winner
        told.setdefault((one.item, one.second, one.first), FLIPPED_WINNER[one.winner])
    known = [one for one in judge if (one.item, one.first, one.second) in told and keep(one)]
    both: list[tuple[Battle, Winner]] = [(one, told[one.item, one.first, one.second]) for one in known]

    def share(pairs: Sequence[tuple[Battle, Winner]], alike: Callable[[Winner, Winner], bool]) -> Cell:
        clusters: dict[str, list[float]] = {}
        for one, right in pairs:
            clusters.setdefault(one.item, []).append(float(alike(one.winner, right)))
        return _mean(clusters, [one for one, _ in pairs])

    decided: list[tuple[Battle, Winner]] = [(a, b) for a, b in both if a.winner in ("A", "B") and b in ("A", "B")]
    return BattleAgreement(
        share(both, lambda a, b: FORCED[a] == FORCED[b]),
        share(both, lambda a, b: a == b or (a not in ("A", "B") and b not in ("A", "B"))),
        share(decided, lambda a, b: a == b),
    )


def find_connected_groups(battles: Iterable[Battle]) -> list[set[str]]:
    """Models that met, directly or through others; between two such groups nothing is known."""
    made: list[set[str]] = []
    for first, second in dict.fromkeys((one.first, one.second) for one in battles):
        touched = [some for some in made if first in some or second in some]
        made = [some for some in made if some not in touched] + [{first, second}.union(*touched)]
    return made


def fit_ratings(battles: Sequence[Battle], *, draws: int = 1000, seed: int = 0) -> dict[str, Cell]:
    """Bradley-Terry strengths on the scale of Elo (400 points are ten to one), 1000 the average of those who met,
    directly or through others; a tie is half a win for each. Intervals resample items; there is none where that changes
    nothing: a few battles, or a clean sweep."""
    made: dict[str, Cell] = {}
    for group in find_connected_groups(battles):
        if len(group) > MOST:
            raise UserError(f"{len(group)} models met; ratings are for at most {MOST}")
        made |= _rated([one for one in battles if one.first in group], max(50, min(draws, 20_000 // len(group))), seed)
    return dict(sorted(made.items(), key=lambda one: -(one[1].value or 0.0)))


def _rated(battles: Sequence[Battle], draws: int, seed: int) -> dict[str, Cell]:
    import numpy as np

    names = list_models(battles)
    at = {name: place for place, name in enumerate(names)}
    items = list(dict.fromkeys(one.item for one in battles))
    place = {item: number for number, item in enumerate(items)}
    value: Mapping[Winner, float] = {"A": 1.0, "B": 0.0}
    rows = np.array([at[one.first] for one in battles])
    columns = np.array([at[one.second] for one in battles])
    won = np.array([value.get(one.winner, 0.5) for one in battles])
    of = np.array([place[one.item] for one in battles])

    def strengths(times: Any, start: Any) -> Any:
        wins = np.zeros((len(names), len(names)))
        np.add.at(wins, (rows, columns), won * times)
        np.add.at(wins, (columns, rows), (1 - won) * times)
        found: Any = _fitted(wins, start)
        return found - found.mean()

    whole = strengths(np.ones(len(battles)), np.zeros(len(names)))
    drawn = np.array(
        [strengths(times[of], whole) for times in bootstrap_weights(len(items), DRAWS, seed)[:draws].astype(float)]
    )
    counts = np.bincount(np.concatenate([rows, columns]), minlength=len(names))
    made: dict[str, Cell] = {}
    for name, number in at.items():
        mine = collect_verdicts(one for one in battles if name in (one.first, one.second))
        low, high = (_elo(float(one)) for one in np.quantile(drawn[:, number], [0.025, 0.975]))
        if high - low > 0.1 and _is_mixed(won, rows, columns, number):
            bounds = (round(low, 1), round(high, 1))
        else:
            bounds = (None, None)
        made[name] = Cell(
            round(_elo(float(whole[number])), 1), int(counts[number]), int(counts[number]), *bounds, verdicts=mine
        )
    return made


def _is_mixed(won: Any, rows: Any, columns: Any, number: int) -> bool:
    """Whether a model neither won nor lost everything: resampling says nothing of what it never saw."""
    mine = [*won[rows == number], *(1 - won[columns == number])]
    return 0 < sum(mine) < len(mine)


def _elo(strength: float) -> float:
    return CENTRE + ELO * strength / math.log(10)


def _fitted(wins: Any, start: Any) -> Any:
    """Strengths of the greatest likelihood, in natural logarithms, by Newton's method; each model also met one of
    strength 0."""
    import numpy as np

    solve: Any = np.linalg.solve
    fought: Any = wins + wins.T
    strength: Any = start
    scored = wins.sum(axis=1) + PRIOR
    for _ in range(STEPS):
        odds: Any = 1 / (1 + np.exp(strength[None, :] - strength[:, None]))
        alone: Any = 1 / (1 + np.exp(-strength))
        slope = scored - (fought * odds).sum(axis=1) - 2 * PRIOR * alone
        bend = fought * odds * (1 - odds)
        curve: Any = np.diag(bend.sum(axis=1) + 2 * PRIOR * alone * (1 - alone)) - bend
        step: Any = np.clip(solve(curve, slope), -2, 2)
        strength = strength + step
        if float(np.abs(step).max()) < CLOSE:
            break
    return strength
