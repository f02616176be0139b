"""What an image on the way to an answer gains: the same questions answered in two modes, paired.

The mean difference of their answers, how many answers flip from wrong to right and from right to wrong, and which.
"""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from weft.benchmarks.base import RunResults
from weft.benchmarks.rover.arithmetic import RoverEntry, build_entry, build_group_key, group_entries
from weft.benchmarks.rover.tg import rubric
from weft.benchmarks.rover.tg.data import GIVEN_TURN, SCENARIOS, TEXT_TURN, VISUAL_TURN
from weft.stats.paired import compare_paired
from weft.types import Cell, Row, Table, Verdict

MODES = {VISUAL_TURN: "Vis.-Aug.", TEXT_TURN: "Text", GIVEN_TURN: "Given"}
SCENARIO_NAMES = tuple(dict.fromkeys(SCENARIOS.values()))
GAIN_COLUMNS = (*SCENARIO_NAMES, "all", "wrong to right", "right to wrong")
ANSWER_METRICS = {
    VISUAL_TURN: rubric.ACCURACY,
    TEXT_TURN: rubric.TEXT_ONLY_METRICS[rubric.ACCURACY],
    GIVEN_TURN: rubric.GIVEN_METRICS[rubric.ACCURACY],
}
GAIN_NOTE = (
    "Acc. with an intermediate image minus Acc. in text alone, in points, on the questions that were asked both ways "
    "(--mode both); 95% intervals by question."
)
GIVEN_NOTE = (
    "Given: the reference image stands where the model's own would, an upper bound on what an intermediate image "
    "gains. Acc. of the one mode minus Acc. of the other, in points, on the questions that were asked both ways; 95% "
    "intervals by question. `wrong to right`, `right to wrong`: answers that the reference image flips. Questions "
    "without a reference image are in neither."
)
FLIPS_NOTE = "The questions that are answered rightly in one mode and wrongly in the other."


class PairedAnswers(Struct, frozen=True):
    """The answers to one question in two modes, from 0 to 1."""

    sample: str
    after: Verdict
    before: Verdict

    @property
    def flip(self) -> str:
        """The flip; empty if both answers are right, or both wrong, or one is unscored."""
        if self.after.value is None or self.before.value is None or self.after.value == self.before.value:
            return ""
        return "wrong to right" if self.after.value > self.before.value else "right to wrong"


def pair_answers(run: RunResults, after: int, before: int) -> list[PairedAnswers]:
    """Return the questions that were asked in both modes, scored or not."""
    by_turn: dict[int, dict[str, Verdict]] = {after: {}, before: {}}
    for verdict in run.verdicts:
        if verdict.turn in by_turn and verdict.metric == ANSWER_METRICS[verdict.turn]:
            by_turn[verdict.turn][verdict.sample] = verdict
    pairs: list[PairedAnswers] = []
    for sample, verdict in by_turn[after].items():
        if sample in by_turn[before]:
            pairs.append(PairedAnswers(sample, verdict, by_turn[before][sample]))
    return pairs


def build_visual_gain_table(runs: Sequence[RunResults], title: str) -> Table:
    """Build the table of what an image of the model's own gains."""
    columns = (*SCENARIO_NAMES, "all")
    rows: list[Row] = []
    for run in runs:
        cells = _build_gain_cells(run, VISUAL_TURN, TEXT_TURN)
        rows.append(Row(run.name, cells, run=run.run, judge=run.judge))
    return Table(title, columns, tuple(rows), GAIN_NOTE, 1)


def build_given_tables(runs: Sequence[RunResults], data: str) -> Iterator[Table]:
    """Yield what the reference image gains over each other mode, and each run's answers that flip."""
    rows: list[Row] = []
    flips: list[Table] = []
    for run in runs:
        for before in (TEXT_TURN, VISUAL_TURN):
            pairs = pair_answers(run, GIVEN_TURN, before)
            if not pairs:
                continue
            versus = f"{MODES[GIVEN_TURN]} - {MODES[before]}"
            cells = _build_gain_cells(run, GIVEN_TURN, before) | _build_flip_cells(pairs)
            rows.append(Row(run.name, cells, subset=versus, run=run.run, judge=run.judge))
            flips += _build_flips_table(run, pairs, before)
    if rows:
        yield Table(f"{data}: what the reference image gains", GAIN_COLUMNS, tuple(rows), GIVEN_NOTE, 1, "parts")
    yield from flips


def _build_gain_cells(run: RunResults, after: int, before: int) -> dict[str, Cell]:
    metrics = (ANSWER_METRICS[after], ANSWER_METRICS[before])
    answered = [one for one in run.verdicts if one.turn in (after, before) and one.metric in metrics]
    answers = [build_entry(verdict, rubric.OFFICIAL) for verdict in answered]
    by_scenario = group_entries(answers, build_group_key(run, "scenario"))
    cells = {name: _build_gain_cell(by_scenario.get(name, []), after, before) for name in SCENARIO_NAMES}
    cells["all"] = _build_gain_cell(answers, after, before)
    return cells


def _build_gain_cell(entries: Sequence[RoverEntry], after: int, before: int) -> Cell:
    """Return the mean difference in points. `expected` counts questions, each of which has a verdict for each mode."""
    scores: dict[str, dict[int, float]] = {}
    for entry in entries:
        if entry.strict is not None:
            scores.setdefault(entry.verdict.sample, {})[entry.verdict.turn] = entry.strict
    asked = {entry.verdict.sample for entry in entries if entry.verdict.turn == after}
    scores = {sample: by_turn for sample, by_turn in scores.items() if sample in asked}
    verdicts = [entry.verdict for entry in entries if entry.verdict.sample in scores]
    differences: dict[str, list[float]] = {}
    for sample, by_turn in scores.items():
        if len(by_turn) == 2:
            differences[sample] = [by_turn[after] - by_turn[before]]
    if not differences:
        return Cell(None, 0, len(scores), verdicts=verdicts)
    gain = compare_paired([(1.0, differences)], full=100.0)
    if gain is None:
        return Cell(None, 0, len(scores), verdicts=verdicts)
    return Cell(gain.value, gain.pairs, len(scores), gain.low, gain.high, verdicts=verdicts)


def _build_flip_cells(pairs: Sequence[PairedAnswers]) -> dict[str, Cell]:
    cells: dict[str, Cell] = {}
    for flip in ("wrong to right", "right to wrong"):
        verdicts: list[Verdict] = []
        for pair in pairs:
            if pair.flip == flip:
                verdicts += [pair.after, pair.before]
        cells[flip] = Cell(float(len(verdicts) // 2), count=True, verdicts=verdicts)
    return cells


def _build_flips_table(run: RunResults, pairs: Sequence[PairedAnswers], before: int) -> Iterator[Table]:
    rows: list[Row] = []
    for pair in pairs:
        if not pair.flip:
            continue
        cells = {MODES[GIVEN_TURN]: _build_answer_cell(pair.after), MODES[before]: _build_answer_cell(pair.before)}
        rows.append(Row(pair.sample, cells, kind="part", run=run.run, judge=run.judge))
    if rows:
        columns = (MODES[GIVEN_TURN], MODES[before])
        title = f"{run.name}: answers that flip, {MODES[GIVEN_TURN]} against {MODES[before]}"
        yield Table(title, columns, tuple(rows), FLIPS_NOTE, 0, "breakdown")


def _build_answer_cell(verdict: Verdict) -> Cell:
    return Cell(None, text="right" if verdict.value else "wrong", verdicts=[verdict])
