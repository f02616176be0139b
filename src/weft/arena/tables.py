"""Tables of battles and of scores, as the OpenING scripts have them, with intervals, and what they leave out: place,
order and ratings."""

import statistics
from collections.abc import Iterator, Mapping, Sequence

from weft.benchmarks.base import RunResults
from weft.benchmarks.opening.rubric import CRITERIA
from weft.benchmarks.opening.tables import build_official_cells, build_strict_cells, find_incomplete_samples
from weft.benchmarks.rows import CountedVerdict, build_published_rows, read_published
from weft.stats.battles import (
    WIN_RATES,
    Battle,
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
    "Percent of a model's battles, 95% intervals by item. FDT: ties go to whom they lean. Rating: Bradley-Terry on the scale of Elo, 1000 "
    "the average, a tie half a win for each; without an interval where a model won or lost everything. Official rows have each battle "
    "once, in the order in which it was drawn."
)


def build_win_rate_tables(
    battles: Sequence[Battle],
    title: str,
    released: Sequence[Battle] | None = None,
    settled: Sequence[Battle] | None = None,
) -> list[Table]:
    """Models, the strongest first; then what a reader must know of the judge. `battles` are what a judge said.
    `released` are the battles as the released scripts would have them, for official rows where those differ; `settled`
    what they come to, where that is known already and some needed no judge."""
    found_so, same = merge_orders(battles)
    if settled is None:
        merged = found_so
    else:
        merged = settled
    strength = fit_ratings(merged)
    rows: list[Row] = []
    for name, rating in strength.items():
        found = compute_win_rates(merged, name)
        strict = {
            **{one: found[one] for one in WIN_RATES},
            "rating": rating,
            "battles": _count(rating.scored, rating.verdicts),
        }
        if released is not None:
            theirs = _official(released, name)
        else:
            theirs = strict
        differs = any(theirs[one].value != strict[one].value for one in (*WIN_RATES, "battles"))
        rows.append(Row(name, strict, arithmetic="strict" if differs else ""))
        rows += [Row(name, theirs, arithmetic="official")] if differs else []
    ties = sum(one.winner not in ("A", "B") for one in merged)
    behind = collect_verdicts(merged)
    ruled = [one for one in behind if one.by == "rule"]
    about = {
        "first place wins": first_position_rate(battles),
        "both orders agree": same,
        "ties": Cell(round(100 * ties / len(merged), 2), len(merged), len(merged), verdicts=behind)
        if merged
        else Cell(None),
        "battles": _count(len(merged), behind),
        **({"by rule": _count(len(merged) - len(found_so), ruled)} if settled is not None else {}),
    }
    told = (
        "In percent. `first place wins`: of all that were decided, 50 if place plays no part. `both orders agree`: a dash where each was "
        "fought once; two orders that contradict each other count as a tie."
    )
    groups = find_connected_groups(merged)
    if len(groups) > 1:
        apart = f" The models are {len(groups)} groups that never met: ratings compare within a group alone."
    else:
        apart = ""
    return [
        Table(
            title,
            (*WIN_RATES, "rating", "battles"),
            tuple(rows),
            NOTE + apart,
            2,
            "leaderboard" if len(groups) < 2 else "mixed",
        ),
        Table(f"{title}: the judge", tuple(about), (Row("verdicts", about),), told, 2, "mixed"),
    ]


def build_published_tables() -> Iterator[Table]:
    """What was published of OpenING's battles: from its own verdicts, and by Wan-Weaver, whose judges tie far more
    often."""
    found = read_published("weft.benchmarks.opening")
    keys = {"FDT": "FDT", "without tie": "without_tie", "with tie 0": "with_tie_0", "with tie .5": "with_tie_0.5"}
    note = "Percent. A win rate is one against those who fought: beside other opponents it says little."
    people = {"human": "people", "gpt4o": "GPT-4o"}
    for who, told in people.items():
        rows = build_published_rows(found["win_rates"][who], lambda row: row["model"], keys, told)
        yield Table(f"OpenING, win rates by {told}, from the released verdicts", tuple(keys), tuple(rows), note, 2)
    for judge in ("GPT-4o", "IntJudge"):
        some = {"rows": [row for row in found["table4"]["rows"] if row["judge"] == judge]}
        rows = build_published_rows(some, lambda row: row["model"], keys, judge)
        yield Table(
            f"OpenING, win rates by {judge} as Wan-Weaver prints them (Table 4)", tuple(keys), tuple(rows), note, 2
        )


def _official(battles: Sequence[Battle], model: str) -> dict[str, Cell]:
    found = compute_win_rates(battles, model, bare=0.0)
    mine = [one for one in battles if model in (one.first, one.second)]
    return {**found, "rating": Cell(None), "battles": _count(len(mine), collect_verdicts(mine))}


def build_answer_score_table(run: RunResults, title: str) -> Table:
    """Models by their scores, each respect with its interval by item; both ways, where they differ."""
    models = list(dict.fromkeys(groups["model"] for groups in run.groups.values()))
    rows: list[Row] = []
    for model in models:
        mine = [
            CountedVerdict(one, one.value, one.metric, run.groups[one.sample]["item"])
            for one in run.verdicts
            if run.groups[one.sample]["model"] == model
        ]
        items = {one.sample for one in mine}
        left = find_incomplete_samples(mine)
        kept = [one.verdict for one in mine if one.sample not in left]
        ours = {**build_strict_cells(mine), "items": _count(len(items), [one.verdict for one in mine])}
        theirs = {**build_official_cells(mine), "items": _count(len(items - left), kept)}
        if left:
            ways = {"strict": ours, "official": theirs}
        else:
            ways = {"": ours}
        rows += [Row(model, cells, arithmetic=way, run=run.run, judge=run.judge) for way, cells in ways.items()]  # pyright: ignore[reportArgumentType]
    first = {row.name: row.cells["Overall"].value or 0.0 for row in reversed(rows)}
    rows.sort(key=lambda row: -first[row.name])
    return Table(title, (*CRITERIA, "Overall", "items"), tuple(rows), "0 to 10, 95% intervals by item.", 2)


def build_agreement_table(
    judges: Mapping[str, Sequence[Battle]], human: Sequence[Battle], unseen: Sequence[str], title: str
) -> Table:
    """Each judge against people: all battles, and apart those with a model that it was not trained on."""
    rows: list[Row] = []
    for name, battles in judges.items():
        whole = measure_battle_agreement(battles, human)
        parts = {"": whole}
        if unseen:
            parts["seen"] = measure_battle_agreement(
                battles, human, lambda one: not {one.first, one.second} & set(unseen)
            )
            parts["unseen"] = measure_battle_agreement(
                battles, human, lambda one: bool({one.first, one.second} & set(unseen))
            )
        for part, found in parts.items():
            cells = {
                "FDT": found.fdt,
                "with tie": found.with_tie,
                "without tie": found.without_tie,
                "battles": _count(found.fdt.scored, found.fdt.verdicts),
            }
            rows.append(Row(name, cells, subset=part))
        if unseen:
            rows.append(Row(name, _harmonic(rows[-2].cells, rows[-1].cells), subset="harmonic mean"))
    note = "Percent of the battles that both decided, whichever way round they stood. without tie: of those that neither calls a tie."
    return Table(title, ("FDT", "with tie", "without tie", "battles"), tuple(rows), note, 2, "mixed")


def build_summary_table(scores: Mapping[str, Sequence[Mapping[str, float]]], title: str) -> Table:
    """Means of each criterion, rounded, and Overall: the mean of the rounded means, as the released summary has it."""
    names = [one for one in CRITERIA if any(one in some for entries in scores.values() for some in entries)]
    names += sorted({key for entries in scores.values() for some in entries for key in some} - set(names))
    rows: list[Row] = []
    for model, entries in scores.items():
        values = {name: [some[name] for some in entries if name in some] for name in names}
        cells = {
            name: Cell(round(statistics.fmean(some), 2), len(some), len(entries))
            for name, some in values.items()
            if some
        }
        overall = round(statistics.fmean(cell.value or 0.0 for cell in cells.values()), 2)
        rows.append(
            Row(model, {**cells, "Overall": Cell(overall, len(entries), len(entries)), "items": _count(len(entries))})
        )
    rows.sort(key=lambda row: -(row.cells["Overall"].value or 0.0))
    return Table(title, (*names, "Overall", "items"), tuple(rows), "0 to 10.", 2)


def _harmonic(seen: Mapping[str, Cell], unseen: Mapping[str, Cell]) -> dict[str, Cell]:
    made: dict[str, Cell] = {}
    for name in ("FDT", "with tie", "without tie"):
        a = _exact(seen[name])
        b = _exact(unseen[name])
        if a is None or b is None:
            made[name] = Cell(None)
        else:
            made[name] = Cell(round(2 * a * b / (a + b), 2) if a + b else 0.0)
    return made


def _exact(cell: Cell) -> float | None:
    """A percentage before it was rounded: so many of all, a whole number."""
    if cell.value is None:
        return None
    return 100 * round(cell.value * cell.scored / 100) / cell.scored


def _count(number: int, verdicts: Sequence[Verdict] = ()) -> Cell:
    return Cell(float(number), number, number, count=True, verdicts=verdicts)
