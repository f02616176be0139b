"""Battles between stored runs of any benchmark, as a benchmark: a sample is a battle, and a judge names the winner.

Each battle is judged in both orders, unless one is enough: two verdicts that contradict each other are a tie. A model
without any answer loses to one that has an answer, without a judge. A battle is unscored if a part of it is missing
through no fault of the models, or if one of its orders could not be judged.
"""

import re
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from weft.arena import rubric
from weft.arena.contestants import Duel
from weft.arena.official import OFFICIAL, BattleFacts, read_battle_facts
from weft.arena.rubric import BATTLE, ORDER_AB, ORDER_BA, SINGLE_ORDER
from weft.arena.tables import BattleGaps, build_agreement_table, build_published_tables, build_win_rate_tables
from weft.benchmarks.base import Assessment, Benchmark, JudgedTurn, RunResults, SampleGroups, WeightedMeans
from weft.benchmarks.documents import MAX_IMAGES, MaxImages, build_sheets, count_images
from weft.benchmarks.official import MissingScore
from weft.benchmarks.opening.official_questions import read_official_rubrics, read_open_judge_rubrics
from weft.benchmarks.preparation import Preparation
from weft.benchmarks.presentation import Presentation
from weft.benchmarks.prompts import Rubrics
from weft.errors import UserError
from weft.stats.battles import FLIPPED_WINNER, LEAN, Battle, Winner, fit_ratings, winner_from_lean
from weft.store.blobs import Blobs
from weft.types import Dataset, Dialogue, Message, Part, Question, Sample, Score, Table, Turn, Verdict

BothOrders = Annotated[
    bool, Meta(description="Judge each battle in both orders; two verdicts that contradict each other are a tie.")
]
BattlesPerItem = Annotated[int, Meta(description="Battles about each item; 0: every pair.", ge=0)]
Seed = Annotated[int, Meta(description="Seed of the draw of battles.")]

WINNER_REPLY = re.compile(
    r"\W*(?:(A|B)(?:\s+is\s+better)?|tie\s*\(\s*([AB])(?:\s+is\s+better)?\s*\))\W*", re.IGNORECASE
)
OUTCOMES: Mapping[Winner, str] = {
    "A": "A wins",
    "B": "B wins",
    "Tie(A)": "a tie that leans to A",
    "Tie(B)": "a tie that leans to B",
    "Tie": "a tie",
}


class ArenaOptions(Struct, frozen=True):
    both_orders: BothOrders = True
    battles: BattlesPerItem = 2
    seed: Seed = 0
    judge_images: MaxImages = MAX_IMAGES


class ArenaPresentation(Presentation, frozen=True):
    def ranking(self, runs: Sequence[RunResults]) -> tuple[str, list[dict[str, Any]]]:
        measure = "rating (95% interval)"
        has_distinct_judges = len({run.judge for run in runs}) == len(runs)
        rows: list[dict[str, Any]] = []
        for run in runs:
            series = run.judge
            if not has_distinct_judges:
                series = f"{run.judge}, {run.run}"
            for name, cell in fit_ratings(decided_battles(run)).items():
                rows.append({"name": name, "series": series, measure: cell.value, "low": cell.low, "high": cell.high})
        return measure, rows

    def side_by_side(self, gold: Any) -> list[tuple[str, tuple[Part, ...]]]:
        duel = msgspec.convert(gold, Duel)
        return [(f"A: {duel.first.name}", duel.first.parts), (f"B: {duel.second.name}", duel.second.parts)]


class ArenaPreparation(Preparation, frozen=True):
    def rubrics(self, benchmark: Benchmark, prompts: str) -> Rubrics:
        if not prompts.startswith("official:"):
            return super().rubrics(benchmark, prompts)
        checkout = Path(prompts.removeprefix("official:"))
        if checkout.is_file():
            return read_open_judge_rubrics(checkout)
        return replace(read_official_rubrics(checkout, "battle"), settings=OFFICIAL.settings)


class Arena(Benchmark):
    """The benchmark behind `weft arena run`. Its samples are battles; it has no dataset of its own."""

    name = "arena"
    version = "1"
    metrics = (BATTLE,)
    Options = ArenaOptions
    axes = ("first", "second")
    official = OFFICIAL
    presentation = ArenaPresentation(title="Arena", pairwise=True)
    preparation = ArenaPreparation()

    def load(self, data: Path, blobs: Blobs) -> Dataset:
        raise UserError("battles are between stored runs: weft arena run RUN RUN --judge JUDGE")

    def build_messages(
        self, sample: Sample, turn: Turn, dialogue: Dialogue, options: ArenaOptions
    ) -> tuple[Message, ...]:
        return (Message("user", turn.prompt),)

    def questions(self, judged_turn: JudgedTurn) -> Iterable[Assessment]:
        orders = (SINGLE_ORDER,)
        if judged_turn.options.both_orders:
            orders = (ORDER_AB, ORDER_BA)
        verdict = _decide_without_judge(judged_turn)
        if verdict is not None:
            return [replace(verdict, variant=order) for order in orders]
        if judged_turn.rubrics.official_prompts:
            return [judged_turn.check(BATTLE, lambda blobs: _build_released_questions(judged_turn, orders, blobs))]
        if count_images(rubric.build_sections(judged_turn, SINGLE_ORDER)) > judged_turn.options.judge_images:
            return [judged_turn.check(BATTLE, lambda blobs: _build_sheet_questions(judged_turn, orders, blobs))]
        return [rubric.build_question(judged_turn, order) for order in orders]

    def parse_text(self, question: Question, text: str) -> dict[str, Any] | None:
        """Read a reply to a released prompt, which is a word or two."""
        if not question.text_only:
            return None
        match = WINNER_REPLY.fullmatch(text)
        if match is None:
            return None
        if match[1]:
            return {"winner": match[1].upper()}
        return {"winner": f"Tie({match[2].upper()})"}

    def to_scores(self, question: Question, parsed: dict[str, Any]) -> Sequence[Score]:
        judge_winner: Winner = parsed["winner"]
        winner = judge_winner
        reason = str(parsed.get("reasoning", ""))
        if question.variant == ORDER_BA:
            winner = FLIPPED_WINNER[judge_winner]
            reason = f"[A and B exchanged] {reason}"
        return [Score(BATTLE, _share_of_first(winner), reason, detail=BattleFacts(winner, judge_winner))]

    def merge_variants(self, verdicts: Sequence[Verdict]) -> list[Verdict]:
        """Merge the two orders of each battle, and repeats, into one verdict."""
        by_battle: dict[str, list[Verdict]] = {}
        for verdict in verdicts:
            by_battle.setdefault(verdict.sample, []).append(verdict)
        return [_merge_orders(battle) for battle in by_battle.values()]

    def cluster_of(self, sample: str, groups: Mapping[str, str]) -> str:
        return groups.get("item", sample)

    def headline(self, verdicts: Sequence[Verdict], groups: SampleGroups) -> WeightedMeans:
        return [(1.0, verdicts)]

    def tables(self, runs: Sequence[RunResults]) -> Iterator[Table]:
        for run in runs:
            rates, *others = build_tables(run, f"Win rates, judged by {run.judge}")
            unscored = _find_unscored_contestants(run, rates)
            if unscored:
                rates = replace(rates, note=f"{rates.note} Without a scored battle: {', '.join(unscored)}.")
            yield rates
            yield from others
        if len(runs) > 1:
            yield _build_judge_comparison(runs)
        if all(run.dataset == "opening" for run in runs):
            yield from build_published_tables()


def _share_of_first(winner: Winner) -> float:
    """Return the value of a verdict: 1 if the first model wins, 0 if the second does."""
    return (LEAN[winner] + 1) / 2


def _decide_without_judge(judged_turn: JudgedTurn) -> Verdict | None:
    """Return the verdict on a battle in which a model has no answer; None if both have one."""
    duel: Duel = judged_turn.turn.gold
    winner: Winner
    if duel.first.answered and duel.second.answered:
        return None
    if duel.first.answered:
        winner = "A"
        reason = f"{duel.second.name} has no answer"
    elif duel.second.answered:
        winner = "B"
        reason = f"{duel.first.name} has no answer"
    else:
        winner = "Tie"
        reason = "neither has an answer"
    return judged_turn.verdict(BATTLE, _share_of_first(winner), reason, detail=BattleFacts(winner, is_by_rule=True))


def _build_released_questions(judged_turn: JudgedTurn, orders: Sequence[str], blobs: Blobs) -> list[Question]:
    return [rubric.build_released_question(judged_turn, order, blobs) for order in orders]


def _build_sheet_questions(judged_turn: JudgedTurn, orders: Sequence[str], blobs: Blobs) -> list[Question]:
    questions: list[Question] = []
    for order in orders:
        sections = rubric.build_sections(judged_turn, order)
        sheets = build_sheets(sections, judged_turn.options.judge_images, blobs)
        questions.append(rubric.build_question(judged_turn, order, sheets))
    return questions


def _merge_orders(verdicts: Sequence[Verdict]) -> Verdict:
    """Return one verdict from those of both orders, and of repeats."""
    leans_by_order = _collect_leans(verdicts)
    is_half = len(leans_by_order) == 1 and SINGLE_ORDER not in leans_by_order and any(leans_by_order)
    if is_half or not all(leans_by_order.values()):
        return _merge_incomplete(verdicts, len(leans_by_order), is_half)
    mean_leans = {order: statistics.fmean(leans) for order, leans in leans_by_order.items()}
    lean = statistics.fmean(mean_leans.values())
    winner = winner_from_lean(lean)
    reason = OUTCOMES[winner]
    if len(mean_leans) > 1:
        winners = ", ".join(f"{order}: {winner_from_lean(mean)}" for order, mean in mean_leans.items())
        reason += f" ({winners})"
    if min(mean_leans.values()) < 0 < max(mean_leans.values()):
        reason += "; the two orders contradict each other"
    by = "judge"
    if all(verdict.by == "rule" for verdict in verdicts):
        by = "rule"
        reason += f": {verdicts[0].reason}"
    return replace(
        verdicts[0],
        variant="",
        value=(lean + 1) / 2,
        reason=reason,
        keys=_merge_keys(verdicts),
        by=by,
        detail=BattleFacts(winner, is_by_rule=by == "rule"),
        merged_from=tuple(verdicts),
        standard_deviation=None,
    )


def _merge_incomplete(verdicts: Sequence[Verdict], orders: int, is_half: bool) -> Verdict:
    """Return an unscored verdict for a battle of which an order is missing or could not be judged."""
    missing = next((verdict for verdict in verdicts if verdict.value is None), verdicts[0])
    if is_half:
        reason = "one of its two orders is not judged yet"
    elif orders == 1:
        reason = missing.reason
    else:
        reason = f"one of its two orders could not be judged: {missing.reason}"
    return replace(
        missing,
        variant="",
        value=None,
        score=None,
        reason=reason,
        keys=_merge_keys(verdicts),
        merged_from=tuple(verdicts),
        standard_deviation=None,
    )


def _merge_keys(verdicts: Sequence[Verdict]) -> tuple[str, ...]:
    keys: dict[str, None] = {}
    for verdict in verdicts:
        keys.update(dict.fromkeys(verdict.keys))
    return tuple(keys)


def _collect_leans(verdicts: Sequence[Verdict]) -> dict[str, list[float]]:
    """Return by order how far each scored verdict leans to the first model, from -1 to 1."""
    leans_by_order: dict[str, list[float]] = {}
    for verdict in verdicts:
        leans = leans_by_order.setdefault(verdict.variant.partition(",")[0], [])
        if verdict.value is not None:
            leans.append(2 * verdict.value - 1)
    return leans_by_order


def decided_battles(run: RunResults) -> list[Battle]:
    """Return the scored battles of a run, both orders merged."""
    battles: list[Battle] = []
    for verdict in run.verdicts:
        winner = read_battle_facts(verdict).winner
        if verdict.value is not None and winner is not None:
            battles.append(_build_battle(run, verdict, winner))
    return battles


def judged_battles(run: RunResults) -> list[Battle]:
    """Return the judge's verdicts, each order a battle of its own as the judge saw it, repeats merged.

    Battles that are unscored, or were decided by rule, are not among them.
    """
    battles: list[Battle] = []
    for verdict in run.verdicts:
        if verdict.value is None or read_battle_facts(verdict).is_by_rule:
            continue
        for order, leans in _collect_leans(verdict.merged_from or (verdict,)).items():
            battle = _build_battle(run, verdict, winner_from_lean(statistics.fmean(leans)))
            if order == ORDER_BA:
                battle = battle.flip()
            battles.append(battle)
    return battles


def official_battles(run: RunResults) -> list[Battle]:
    """Return the battles as the released scripts would store them.

    Each battle is there once, in the order in which it was drawn, by the scripts' own reading of the reply. There is
    none where a model has no answer. Of repeats the first that names a winner counts.
    """
    battles: list[Battle] = []
    for verdict in run.verdicts:
        for repeat in _repeats_as_drawn(verdict):
            winner = OFFICIAL.winner(repeat)
            if not isinstance(winner, MissingScore):
                battles.append(_build_battle(run, verdict, winner))
                break
    return battles


def _repeats_as_drawn(verdict: Verdict) -> list[Verdict]:
    """Return the verdicts of the order in which a battle was drawn."""
    return [repeat for repeat in verdict.merged_from or (verdict,) if not repeat.variant.startswith(ORDER_BA)]


def find_gaps(run: RunResults) -> BattleGaps:
    """Return the battles that are in no strict rate, in no official one, or in official ones alone."""
    strict: dict[str, list[Verdict]] = {}
    official: dict[str, list[Verdict]] = {}
    unusable: dict[str, list[Verdict]] = {}
    for verdict in run.verdicts:
        repeats = _repeats_as_drawn(verdict)
        read = [repeat for repeat in repeats if not isinstance(OFFICIAL.winner(repeat), MissingScore)]
        gaps: list[dict[str, list[Verdict]]] = []
        if verdict.value is None:
            gaps.append(strict)
        if not read and any(map(OFFICIAL.expects, repeats)):
            gaps.append(official)
        if any(map(OFFICIAL.reads_unusable, read[:1])):
            gaps.append(unusable)
        groups = run.groups[verdict.sample]
        for by_model in gaps:
            for model in (groups["first"], groups["second"]):
                by_model.setdefault(model, []).append(verdict)
    return BattleGaps(strict, official, unusable)


def _build_battle(run: RunResults, verdict: Verdict, winner: Winner) -> Battle:
    groups = run.groups[verdict.sample]
    return Battle(groups["item"], groups["first"], groups["second"], winner, verdict)


def build_tables(run: RunResults, title: str) -> list[Table]:
    """Return the win rates in both arithmetics, and what a reader must know of the judge."""
    return build_win_rate_tables(
        judged_battles(run), title, official_battles(run), decided_battles(run), find_gaps(run)
    )


def _find_unscored_contestants(run: RunResults, rates: Table) -> list[str]:
    contestants: set[str] = set()
    for groups in run.groups.values():
        contestants |= {groups["first"], groups["second"]}
    return sorted(contestants - {row.name for row in rates.rows})


def _build_judge_comparison(runs: Sequence[RunResults]) -> Table:
    """Compare the judges of all runs with that of the first."""
    judges = [run.judge for run in runs]
    others: dict[str, Sequence[Battle]] = {}
    for run in runs[1:]:
        name = run.judge
        if judges.count(run.judge) > 1:
            name = f"{run.judge}, {run.run}"
        others[name] = judged_battles(run)
    return build_agreement_table(others, judged_battles(runs[0]), (), f"Agreement with {runs[0].judge}")
