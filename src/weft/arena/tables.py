"""Tables of battles and of scores as OpenING's scripts have them, with intervals, and with what the scripts leave out:
position bias, agreement between both orders, and ratings."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from weft.benchmarks.base import RunResults
from weft.benchmarks.opening.rubric import CRITERIA
from weft.benchmarks.opening.tables import (
    build_official_cells,
    build_strict_cells,
    find_expected_samples,
    find_incomplete_samples,
)
from weft.benchmarks.rows import CountedVerdict, build_published_rows, cells_agree, read_published
from weft.stats.battles import (
    WIN_RATES,
    Battle,
    BattleAgreement,
    collect_verdicts,
    compute_win_rates,
    find_connected_groups,
    first_position_rate,
    fit_ratings,
    measure_battle_agreement,
    merge_orders,
)
from weft.types import Cell, Row, Table, Verdict

NOTE = (
    "Percent of a model's battles, 95% intervals by item. FDT: a tie counts for the model that it leans to. Rating: "
    "Bradley-Terry on the Elo scale, 1000 is the average, a tie is half a win for each; without an interval where a "
    "model won or lost everything. Official rows have each battle once, in the order in which it was drawn."
)
JUDGE_NOTE = (
    "In percent. `first place wins`: of all decided battles, 50 if the position plays no part. `both orders agree`: a "
    "dash where each was judged once; two orders that contradict each other count as a tie."
)
PUBLISHED_NOTE = "Percent. A win rate depends on the opponents: do not compare it with one against other models."
PUBLISHED_KEYS = {
    "FDT": "FDT",
    "without tie": "without_tie",
    "with tie 0": "with_tie_0",
    "with tie .5": "with_tie_0.5",
}
VerdictsByModel = Mapping[str, Sequence[Verdict]]
AGREEMENT_COLUMNS = ("FDT", "with tie", "without tie")
AGREEMENT_NOTE = (
    "Percent of the battles that both decided, whichever order they were in. without tie: of those that neither calls "
    "a tie."
)


class BattleGaps(Struct, frozen=True):
    """The verdicts of battles that could not be scored through no fault of a model, by each of their two models."""

    strict: VerdictsByModel = {}  # in no strict rate
    official: VerdictsByModel = {}  # in no official rate
    unusable: VerdictsByModel = {}  # in official rates alone: the released script makes a winner of an unusable reply


NO_GAPS = BattleGaps()


def build_win_rate_tables(
    battles: Sequence[Battle],
    title: str,
    released: Sequence[Battle] | None = None,
    settled: Sequence[Battle] | None = None,
    gaps: BattleGaps = NO_GAPS,
) -> list[Table]:
    """Return two tables: win rates of the models, strongest first, and what a reader must know of the judge.

    `battles` are the judge's verdicts. `released` are the battles as the released scripts would store them, for
    official rows where those differ. `settled` are the battles with both orders merged, where they are known already
    and some were decided without a judge. `gaps` are the battles that are in no rate.
    """
    merged, order_agreement = merge_orders(battles)
    judge_cells = {"first place wins": first_position_rate(battles), "both orders agree": order_agreement}
    judged = len(merged)
    if settled is not None:
        merged = settled
    verdicts = collect_verdicts(merged)
    judge_cells["ties"] = _build_tie_cell(merged)
    judge_cells["battles"] = _build_count_cell(len(merged), verdicts)
    if settled is not None:
        by_rule = [verdict for verdict in verdicts if verdict.by == "rule"]
        judge_cells["by rule"] = _build_count_cell(len(merged) - judged, by_rule)
    groups = find_connected_groups(merged)
    note = NOTE
    rows_are = "leaderboard"
    if len(groups) > 1:
        note += f" The models are {len(groups)} groups that never met: ratings compare within a group only."
        rows_are = "mixed"
    rows = _build_win_rate_rows(merged, released, gaps)
    return [
        Table(title, (*WIN_RATES, "rating", "battles"), tuple(rows), note, 2, rows_are),
        Table(f"{title}: the judge", tuple(judge_cells), (Row("verdicts", judge_cells),), JUDGE_NOTE, 2, "mixed"),
    ]


def _build_win_rate_rows(battles: Sequence[Battle], released: Sequence[Battle] | None, gaps: BattleGaps) -> list[Row]:
    rows: list[Row] = []
    for name, rating in fit_ratings(battles).items():
        rates = compute_win_rates(battles, name)
        strict = {rate: rates[rate] for rate in WIN_RATES}
        strict["rating"] = rating
        strict["battles"] = _build_count_cell(rating.scored, rating.verdicts)
        strict = _with_unscored(strict, gaps.strict.get(name, ()))
        official = strict
        if released is not None:
            official = _build_official_rates(released, name, gaps)
        if cells_agree({**strict, "rating": rating}, {**official, "rating": rating}):
            rows.append(Row(name, strict))
        else:
            rows.append(Row(name, strict, arithmetic="strict"))
            rows.append(Row(name, official, arithmetic="official"))
    return rows


def _with_unscored(cells: Mapping[str, Cell], unscored: Sequence[Verdict]) -> dict[str, Cell]:
    """Return the cells of a model, in which its unscored battles are expected."""
    if not unscored:
        return dict(cells)
    expecting: dict[str, Cell] = {}
    for column, cell in cells.items():
        expected = cell.expected + len(unscored)
        expecting[column] = replace(cell, expected=expected, verdicts=[*cell.verdicts, *unscored])
    return expecting


def _build_official_rates(battles: Sequence[Battle], model: str, gaps: BattleGaps) -> dict[str, Cell]:
    rates = compute_win_rates(battles, model, bare=0.0)
    own_battles = [battle for battle in battles if model in (battle.first, battle.second)]
    count = _build_count_cell(len(own_battles), collect_verdicts(own_battles))
    cells = _with_unscored({**rates, "battles": count}, gaps.official.get(model, ()))
    unusable = len(gaps.unusable.get(model, ()))
    for column in WIN_RATES:
        if cells[column].value is not None:
            cells[column] = replace(cells[column], unusable=unusable)
    return {**cells, "rating": Cell(None)}


def _build_tie_cell(battles: Sequence[Battle]) -> Cell:
    if not battles:
        return Cell(None)
    ties = sum(battle.winner not in ("A", "B") for battle in battles)
    percent = 100 * ties / len(battles)
    return Cell(percent, len(battles), len(battles), verdicts=collect_verdicts(battles))


def build_published_tables() -> Iterator[Table]:
    """Yield the published win rates of OpenING: from its own verdicts, and from Wan-Weaver, whose judges tie far more
    often."""
    published = read_published("weft.benchmarks.opening")
    for key, judge in (("human", "people"), ("gpt4o", "GPT-4o")):
        title = f"OpenING, win rates by {judge}, from the released verdicts"
        yield _build_published_table(published["win_rates"][key], judge, title)
    for judge in ("GPT-4o", "IntJudge"):
        rows = [row for row in published["table4"]["rows"] if row["judge"] == judge]
        title = f"OpenING, win rates by {judge} as Wan-Weaver prints them (Table 4)"
        yield _build_published_table({"rows": rows}, judge, title)


def _build_published_table(table: Mapping[str, Any], judge: str, title: str) -> Table:
    rows = build_published_rows(table, lambda row: row["model"], PUBLISHED_KEYS, judge)
    return Table(title, tuple(PUBLISHED_KEYS), tuple(rows), PUBLISHED_NOTE, 2)


def build_answer_score_table(run: RunResults, title: str) -> Table:
    """Return the models by their scores, best first, with intervals by item; in both arithmetics where they differ."""
    models = dict.fromkeys(groups["model"] for groups in run.groups.values())
    rows: list[Row] = []
    for model in models:
        rows += _build_answer_score_rows(run, model)
    strict_overall: dict[str, float] = {}
    for row in rows:
        strict_overall.setdefault(row.name, row.cells["Overall"].value or 0.0)
    rows.sort(key=lambda row: -strict_overall[row.name])
    return Table(title, (*CRITERIA, "Overall", "items"), tuple(rows), "0 to 10, 95% intervals by item.", 2)


def _build_answer_score_rows(run: RunResults, model: str) -> list[Row]:
    counted: list[CountedVerdict] = []
    for verdict in run.verdicts:
        groups = run.groups[verdict.sample]
        if groups["model"] == model:
            counted.append(CountedVerdict(verdict, verdict.value, verdict.metric, groups["item"]))
    items = {entry.sample for entry in counted}
    incomplete = find_incomplete_samples(counted)
    strict = build_strict_cells(counted)
    strict["items"] = _build_count_cell(len(items), [entry.verdict for entry in counted])
    if not incomplete:
        return [Row(model, strict, run=run.run, judge=run.judge)]
    official = build_official_cells(counted)
    complete = [entry.verdict for entry in counted if entry.sample not in incomplete]
    scored = len(items - incomplete)
    expected = len(find_expected_samples(counted))
    official["items"] = replace(_build_count_cell(scored, complete), expected=expected)
    return [
        Row(model, strict, arithmetic="strict", run=run.run, judge=run.judge),
        Row(model, official, arithmetic="official", run=run.run, judge=run.judge),
    ]


def build_agreement_table(
    judges: Mapping[str, Sequence[Battle]], human: Sequence[Battle], unseen: Sequence[str], title: str
) -> Table:
    """Return each judge's agreement with people.

    Where `unseen` names models that the judges were not trained on, battles with and without them are also shown apart.
    """

    def is_unseen(battle: Battle) -> bool:
        return battle.first in unseen or battle.second in unseen

    def is_seen(battle: Battle) -> bool:
        return not is_unseen(battle)

    rows: list[Row] = []
    for name, battles in judges.items():
        rows.append(Row(name, _build_agreement_cells(measure_battle_agreement(battles, human))))
        if not unseen:
            continue
        cells_seen = _build_agreement_cells(measure_battle_agreement(battles, human, is_seen))
        cells_unseen = _build_agreement_cells(measure_battle_agreement(battles, human, is_unseen))
        rows.append(Row(name, cells_seen, subset="seen"))
        rows.append(Row(name, cells_unseen, subset="unseen"))
        rows.append(Row(name, _build_harmonic_cells(cells_seen, cells_unseen), subset="harmonic mean"))
    return Table(title, (*AGREEMENT_COLUMNS, "battles"), tuple(rows), AGREEMENT_NOTE, 2, "mixed")


def _build_agreement_cells(agreement: BattleAgreement) -> dict[str, Cell]:
    return {
        "FDT": agreement.fdt,
        "with tie": agreement.with_tie,
        "without tie": agreement.without_tie,
        "battles": _build_count_cell(agreement.fdt.scored, agreement.fdt.verdicts),
    }


def build_summary_table(scores: Mapping[str, Sequence[Mapping[str, float]]], title: str) -> Table:
    """Return the rounded mean of each criterion, and Overall: the mean of the rounded means, as in the released
    summary."""
    used: set[str] = set()
    for entries in scores.values():
        used = used.union(*entries)
    criteria = [name for name in CRITERIA if name in used]
    criteria += sorted(used - set(criteria))
    rows = [_build_summary_row(model, entries, criteria) for model, entries in scores.items()]
    rows.sort(key=lambda row: -(row.cells["Overall"].value or 0.0))
    return Table(title, (*criteria, "Overall", "items"), tuple(rows), "0 to 10.", 2)


def _build_summary_row(model: str, entries: Sequence[Mapping[str, float]], criteria: Sequence[str]) -> Row:
    cells: dict[str, Cell] = {}
    means: list[float] = []
    for criterion in criteria:
        values = [entry[criterion] for entry in entries if criterion in entry]
        if values:
            means.append(round(statistics.fmean(values), 2))
            cells[criterion] = Cell(means[-1], len(values), len(entries))
    cells["Overall"] = Cell(round(statistics.fmean(means), 2), len(entries), len(entries))
    cells["items"] = _build_count_cell(len(entries))
    return Row(model, cells)


def _build_harmonic_cells(seen: Mapping[str, Cell], unseen: Mapping[str, Cell]) -> dict[str, Cell]:
    cells: dict[str, Cell] = {}
    for name in AGREEMENT_COLUMNS:
        a = seen[name].value
        b = unseen[name].value
        if a is None or b is None:
            cells[name] = Cell(None)
        elif a + b == 0:
            cells[name] = Cell(0.0)
        else:
            cells[name] = Cell(2 * a * b / (a + b))
    return cells


def _build_count_cell(number: int, verdicts: Sequence[Verdict] = ()) -> Cell:
    return Cell(float(number), number, number, count=True, verdicts=verdicts)
