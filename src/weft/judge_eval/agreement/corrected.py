"""A run's main number, corrected: by people who rated some of what its judge judged, or by what is known of the judge
from elsewhere.

It stands beside the plain number, never in its place. By people it is prediction-powered
(`stats/prediction_powered.py`): unbiased where what they rated was drawn at random, whatever the judge does. By a card
it presumes that the judge errs here as it does there."""

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from weft.benchmarks.paired_verdicts import build_count_cell, build_measure_cell
from weft.errors import UserError
from weft.judge_eval.agreement.pairs import means, place_of
from weft.judge_eval.agreement.scores import Place, Said
from weft.results.run import Run, headline_score, headline_terms
from weft.stats.agreement import NullableEstimate
from weft.stats.prediction_powered import (
    PoweredEstimate,
    WeightedMean,
    estimate_powered_sum,
    subtract_bias,
    weigh_rated_items,
)
from weft.types import Cell, Row, Table, Verdict

NOTE = (
    "plain: as everywhere else in this report. corrected by people: what people would have said of everything, from their ratings of some "
    "of it and the judge's verdicts on all (prediction-powered; lambda: how far the judge is relied on, 0 to 1). It presumes that what was "
    "rated was drawn at random. by people alone: without the judge. What a rule decided, and a model's failures, stand as they are."
)
CARD_NOTE = (
    "No person has rated this run. The bias is the judge's on its card ({told}), measured on other replies: the number presumes that the "
    "judge errs here as it does there."
)


class Bias(Struct, frozen=True):
    """How much too high a judge is, as a share of full marks, on its card; `told` says which card that is."""

    value: float
    low: float | None
    high: float | None
    told: str


Cards = Callable[[Run], Bias | None]  # what is known of the judge of a run


def no_cards(run: Run) -> Bias | None:
    return None


class Corrected(Struct, frozen=True):
    """As shares of full marks. One of `people` and `card` is there."""

    name: str
    run: str
    judge: str
    plain: NullableEstimate
    people: PoweredEstimate | None = None
    raters: int = 0
    card: NullableEstimate | None = None
    bias: Bias | None = None
    full: float = 1.0
    digits: int = 3

    def table(self) -> Table:
        return table([self])

    def __str__(self) -> str:
        return str(self.table())


def corrected(run: Run, said: Said, cards: Cards = no_cards, name: str = "") -> Corrected:
    """The main number of a run, corrected by people where they rated it, else by its judge's card. Raises UserError
    where there is neither, or where what is there does not reach."""
    if run.benchmark.presentation.pairwise:
        raise UserError(
            f"{run.id} is of battles, which have no number of one model to correct; `weft agree {run.id}` has people beside its judge"
        )
    found = headline_score(run.benchmark, run.verdicts, run.groups)
    if found is None:
        raise UserError(f"{run.id} has nothing scored, and so no number to correct")
    judge = run.record.manifest.judge.name
    scale = (run.benchmark.presentation.max_score, run.benchmark.presentation.digits)
    plain = NullableEstimate(*found)
    label = name or run.name
    if said:
        raters = len({rater for by in said.values() for rater in by})
        return Corrected(label, run.id, judge, plain, by_people(run, means(said)), raters, None, None, *scale)
    bias = cards(run)
    if bias is None:
        raise UserError(
            f"nothing is known by which the number of {run.id} could be corrected: `weft rate {run.id}` has people rate some of it, "
            f"`weft judge check` makes a card of what its judge, {judge}, is worth"
        )
    card = subtract_bias(*found, bias.value, bias.low, bias.high)
    return Corrected(label, run.id, judge, plain, None, 0, NullableEstimate(*card), bias, *scale)


def by_people(run: Run, truth: Mapping[Place, float]) -> PoweredEstimate:
    scored = [one for one in run.verdicts if one.value is not None]
    terms = headline_terms(run.benchmark, scored, run.groups)
    inside = [one for _, some in terms for one in some]
    if not any(one.by == "judge" for one in inside):
        raise UserError(f"{run.id}: no judge stands behind its main number, so there is nothing to correct")
    unrated = [
        some
        for _, some in terms
        if any(map(_is_judged, some)) and not any(_is_judged(one) and place_of(one) in truth for one in some)
    ]
    if unrated:
        which = ", ".join(sorted({one.metric for one in unrated[0]}))
        raise UserError(
            f"{run.id}: people rated nothing of {len(unrated)} of the {len(terms)} parts of the main number (such as {which}, "
            f"{len(unrated[0])} verdicts): nothing is known of the judge there; have more rated (`weft rate {run.id}`)"
        )
    of = {sample: run.benchmark.cluster_of(sample, some) for sample, some in run.groups.items()}
    counts = _counts(inside, truth, of)
    found = estimate_powered_sum([_part(weight, some, truth, of, counts) for weight, some in terms])
    if found is None:
        raise UserError(f"{run.id}: people rated nothing that its judge judged")
    return found


def _is_judged(verdict: Verdict) -> bool:
    return verdict.by == "judge"


def _counts(verdicts: Sequence[Verdict], truth: Mapping[Place, float], of: Mapping[str, str]) -> dict[str, float]:
    """For how many each rated verdict stands: those who rate as many dialogues as they can rate a greater share of
    short ones."""
    sizes: dict[str, int] = {}
    rated: dict[str, int] = {}
    for one in {place_of(one): one for one in verdicts if _is_judged(one)}.values():
        name = of[one.sample]
        sizes[name] = sizes.get(name, 0) + 1
        rated[name] = rated.get(name, 0) + (place_of(one) in truth)
    return weigh_rated_items(sizes, rated)


def _part(
    weight: float,
    verdicts: Sequence[Verdict],
    truth: Mapping[Place, float],
    of: Mapping[str, str],
    counts: Mapping[str, float],
) -> WeightedMean:
    judged: dict[str, list[float]] = {}
    sure: dict[str, list[float]] = {}
    pairs: dict[str, list[tuple[float, float]]] = {}
    for one in verdicts:
        value = one.value or 0.0
        name = of[one.sample]
        if not _is_judged(one):
            sure.setdefault(name, []).append(value)
            continue
        judged.setdefault(name, []).append(value)
        if place_of(one) in truth:
            pairs.setdefault(name, []).append((value, truth[place_of(one)]))
    return WeightedMean(weight, judged, pairs, sure, counts)


def tables(some: Sequence[Corrected]) -> list[Table]:
    """One for those that people rated, one for those that have a card alone."""
    made = [
        table([one for one in some if one.people is not None]),
        _cards([one for one in some if one.card is not None]),
    ]
    return [one for one in made if one.rows]


def table(some: Sequence[Corrected]) -> Table:
    """Plain, corrected by people, and by people alone."""
    if not any(one.people is not None for one in some):
        return _cards(some)
    rows: list[Row] = []
    for one in some:
        found = one.people
        if found is None:
            continue
        best = NullableEstimate(found.value, found.low, found.high)
        rated = {
            "verdicts rated": build_count_cell(found.n),
            "raters": build_count_cell(one.raters),
            "dialogues": build_count_cell(found.clusters),
        }
        ways: dict[str, tuple[NullableEstimate, dict[str, Cell]]] = {
            f"plain, judged by {one.judge}": (one.plain, {"verdicts judged": build_count_cell(found.total)}),
            "corrected by people": (best, {**rated, "lambda": Cell(round(found.weight, 4), digits=2)}),
            "by people alone": (found.people_only, rated),
        }
        for way, (value, more) in ways.items():
            cells = {"main number": build_measure_cell(value, found.n, full=one.full, digits=one.digits), **more}
            rows.append(Row(way if len(some) == 1 else f"{one.name}: {way}", cells, run=one.run, judge=one.judge))
    columns = ("main number", "verdicts judged", "verdicts rated", "raters", "dialogues", "lambda")
    return Table(
        "Main number, corrected", columns, tuple(rows), NOTE, max((one.digits for one in some), default=3), "mixed"
    )


def _cards(some: Sequence[Corrected]) -> Table:
    rows: list[Row] = []
    for one in some:
        if one.card is None or one.bias is None:
            continue
        full = one.full
        digits = one.digits
        if len(some) == 1:
            before = ""
        else:
            before = f"{one.name}: "
        plain, less = (build_measure_cell(each, 0, full=full, digits=digits) for each in (one.plain, one.card))
        bias = build_measure_cell(
            NullableEstimate(one.bias.value, one.bias.low, one.bias.high), 0, full=full, digits=digits
        )
        rows.append(Row(f"{before}plain, judged by {one.judge}", {"main number": plain}, run=one.run, judge=one.judge))
        rows.append(
            Row(f"{before}less the bias on its card", {"main number": less, "bias": bias}, run=one.run, judge=one.judge)
        )
    told = "; ".join(dict.fromkeys(one.bias.told for one in some if one.bias is not None))
    digits = max((one.digits for one in some), default=3)
    return Table(
        "Main number, less the bias on the judge's card",
        ("main number", "bias"),
        tuple(rows),
        CARD_NOTE.format(told=told),
        digits,
        "mixed",
    )
