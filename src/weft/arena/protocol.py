"""Battles between stored runs of any benchmark, as a benchmark of their own: a sample is a battle, and a judge says who
wins it.

Each is fought in both orders, unless one is enough: two verdicts that contradict each other are a tie. Who has no
answer at all loses to who has one, without a judge. A battle of which something is missing through our fault, or one
order of which could not be judged, is unscored."""

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
from weft.arena.tables import build_agreement_table, build_published_tables, build_win_rate_tables
from weft.benchmarks.base import Assessment, Benchmark, JudgedTurn, RunResults, SampleGroups, WeightedMeans
from weft.benchmarks.documents import MAX_IMAGES, MaxImages, build_sheets, count_images
from weft.benchmarks.opening.released import read_official_rubrics as released_rubrics
from weft.benchmarks.preparation import Preparation
from weft.benchmarks.presentation import Presentation
from weft.benchmarks.prompts import Rubrics
from weft.errors import UserError
from weft.stats.battles import FLIPPED_WINNER, LEAN, Battle, Winner, fit_ratings, winner_from_lean
from weft.store.blobs import Blobs
from weft.types import Dataset, Dialogue, Message, MissingScore, Part, Question, Sample, Score, Table, Turn, Verdict

Both = Annotated[
    bool, Meta(description="Each battle in both orders; two verdicts that contradict each other are a tie.")
]
Each = Annotated[int, Meta(description="Battles about each item; 0: every pair.", ge=0)]
Seed = Annotated[int, Meta(description="Which battles are drawn.")]
SAID = re.compile(r"\W*(?:(A|B)|tie\s*\(\s*([AB])\s*\))\W*", re.IGNORECASE)


class ArenaOptions(Struct, frozen=True):
    both_orders: Both = True
    battles: Each = 2
    seed: Seed = 0
    judge_images: MaxImages = MAX_IMAGES


class ArenaPresentation(Presentation, frozen=True):
    def ranking(self, runs: Sequence[RunResults]) -> tuple[str, list[dict[str, Any]]]:
        what = "rating (95% interval)"
        rows: list[dict[str, Any]] = []
        for run in runs:
            if len({one.judge for one in runs}) == len(runs):
                told = run.judge
            else:
                told = f"{run.judge}, {run.run}"
            for name, cell in fit_ratings(decided_battles(run)).items():
                rows.append({"name": name, "series": told, what: cell.value, "low": cell.low, "high": cell.high})
        return what, rows

    def side_by_side(self, gold: Any) -> list[tuple[str, tuple[Part, ...]]]:
        duel = msgspec.convert(gold, Duel)
        return [(f"A: {duel.first.name}", duel.first.parts), (f"B: {duel.second.name}", duel.second.parts)]


class ArenaPreparation(Preparation, frozen=True):
    def rubrics(self, benchmark: Benchmark, prompts: str) -> Rubrics:
        if not prompts.startswith("official:"):
            return super().rubrics(benchmark, prompts)
        return replace(released_rubrics(Path(prompts.removeprefix("official:")), "battle"), settings=OFFICIAL.settings)


class Arena(Benchmark):
    name = "arena"
    version = "1"
    metrics = (BATTLE,)
    Options = ArenaOptions
    axes = ("first", "second")
    official = OFFICIAL
    presentation = ArenaPresentation(title="Arena", pairwise=True)
    preparation = ArenaPreparation()

    def load(self, data: Path, blobs: Blobs) -> Dataset:
        raise UserError("battles are fought between stored runs: weft arena run RUN RUN --judge JUDGE")

    def build_messages(
        self, sample: Sample, turn: Turn, dialogue: Dialogue, options: ArenaOptions
    ) -> tuple[Message, ...]:
        return (Message("user", turn.prompt),)

    def questions(self, answered: JudgedTurn) -> Iterable[Assessment]:
        duel: Duel = answered.turn.gold
        if answered.options.both_orders:
            orders = (ORDER_AB, ORDER_BA)
        else:
            orders = (SINGLE_ORDER,)
        by_rule = _without_judge(duel)
        if by_rule is not None:
            return [replace(_verdict(answered, by_rule[0], by_rule[1]), variant=order) for order in orders]
        if answered.rubrics.official:
            return [
                answered.check(
                    BATTLE, lambda blobs: [rubric.build_released_question(answered, order, blobs) for order in orders]
                )
            ]
        most = answered.options.judge_images
        if count_images(rubric.build_sections(answered, SINGLE_ORDER)) > most:
            return [
                answered.check(BATTLE, lambda blobs: [_on_sheets(answered, order, most, blobs) for order in orders])
            ]
        return [rubric.build_question(answered, order) for order in orders]

    def parse_text(self, question: Question, text: str) -> dict[str, Any] | None:
        """A reply to a released prompt is a word or two."""
        if question.text_only:
            said = SAID.fullmatch(text)
        else:
            said = None
        if said is None:
            return None
        return {"winner": said[1].upper() if said[1] else f"Tie({said[2].upper()})"}

    def to_scores(self, question: Question, found: dict[str, Any]) -> Sequence[Score]:
        winner: Winner = found["winner"]
        if question.variant == ORDER_BA:
            seen: Winner = FLIPPED_WINNER[winner]
        else:
            seen = winner
        why = str(found.get("reasoning", ""))
        if question.variant == ORDER_BA:
            told = f"[A and B exchanged] {why}"
        else:
            told = why
        return [Score(BATTLE, (LEAN[seen] + 1) / 2, told, detail=BattleFacts(seen, winner))]

    def merge_variants(self, verdicts: Sequence[Verdict]) -> list[Verdict]:
        of: dict[str, list[Verdict]] = {}
        for one in verdicts:
            of.setdefault(one.sample, []).append(one)
        return [_settled(some) for some in of.values()]

    def cluster_of(self, sample: str, groups: Mapping[str, str]) -> str:
        return groups.get("item", sample)

    def headline(self, verdicts: Sequence[Verdict], groups: SampleGroups) -> WeightedMeans:
        return [(1.0, verdicts)]

    def tables(self, runs: Sequence[RunResults]) -> Iterator[Table]:
        for run in runs:
            rates, *rest = build_tables(run, f"Win rates, judged by {run.judge}")
            there = {name for groups in run.groups.values() for name in (groups["first"], groups["second"])}
            lost = sorted(there - {row.name for row in rates.rows})
            yield (
                replace(rates, note=f"{rates.note} Without a battle that was scored: {', '.join(lost)}.")
                if lost
                else rates
            )
            yield from rest
        if len(runs) > 1:
            judges = [run.judge for run in runs]
            others = {
                run.judge if judges.count(run.judge) == 1 else f"{run.judge}, {run.run}": judged_battles(run)
                for run in runs[1:]
            }
            yield build_agreement_table(others, judged_battles(runs[0]), (), f"Agreement with {runs[0].judge}")
        if all(run.dataset == "opening" for run in runs):
            yield from build_published_tables()


def _without_judge(duel: Duel) -> tuple[Winner, str] | None:
    if duel.first.answered and duel.second.answered:
        return None
    if duel.first.answered:
        return "A", f"{duel.second.name} has no answer"
    if duel.second.answered:
        return ("B", f"{duel.first.name} has no answer")
    return ("Tie", "neither has an answer")


def _verdict(answered: JudgedTurn, winner: Winner, why: str) -> Verdict:
    return answered.verdict(BATTLE, (LEAN[winner] + 1) / 2, why, detail=BattleFacts(winner, is_by_rule=True))


def _on_sheets(answered: JudgedTurn, order: str, most: int, blobs: Blobs) -> Question:
    return rubric.build_question(answered, order, build_sheets(rubric.build_sections(answered, order), most, blobs))


def _settled(some: Sequence[Verdict]) -> Verdict:
    """One verdict from those of both orders, and of repeats."""
    first = some[0]
    orders = _orders(some)
    keys = tuple(dict.fromkeys(key for one in some for key in one.keys))
    half = len(orders) == 1 and SINGLE_ORDER not in orders and any(orders)
    if half or not all(orders.values()):
        missing = next((one for one in some if one.value is None), first)
        if half:
            told = "one of its two orders is not judged yet"
        else:
            told = missing.reason
        if not (half or len(orders) == 1):
            told = f"one of its two orders could not be judged: {told}"
        return replace(
            missing,
            variant="",
            value=None,
            score=None,
            reason=told,
            keys=keys,
            merged_from=tuple(some),
            standard_deviation=None,
        )
    means = {order: statistics.fmean(leans) for order, leans in orders.items()}
    lean = statistics.fmean(means.values())
    winner = winner_from_lean(lean)
    if len(means) > 1:
        said = f" ({', '.join(f'{order}: {winner_from_lean(one)}' for order, one in means.items())})"
    else:
        said = ""
    contrary = min(means.values()) < 0 < max(means.values())
    told = TOLD[winner] + said + ("; the two orders contradict each other" if contrary else "")
    if all(one.by == "rule" for one in some):
        by = "rule"
    else:
        by = "judge"
    if by == "rule":
        told = f"{told}: {first.reason}"
    facts = BattleFacts(winner, is_by_rule=by == "rule")
    return replace(
        first,
        variant="",
        value=(lean + 1) / 2,
        reason=told,
        keys=keys,
        by=by,
        detail=facts,
        merged_from=tuple(some),
        standard_deviation=None,
    )


TOLD: Mapping[Winner, str] = {
    "A": "A wins",
    "B": "B wins",
    "Tie(A)": "a tie that leans to A",
    "Tie(B)": "a tie that leans to B",
    "Tie": "a tie",
}


def decided_battles(run: RunResults) -> list[Battle]:
    """The battles of a run, each as it was settled; those that are unscored are none."""
    made: list[Battle] = []
    for verdict in run.verdicts:
        winner = read_battle_facts(verdict).winner
        if verdict.value is not None and winner is not None:
            made.append(_battle(run, verdict, winner))
    return made


def judged_battles(run: RunResults) -> list[Battle]:
    """What its judge said, each order a battle of its own, as it was shown, repeats settled. What is unscored, or was
    decided by rule, is not among them."""
    made: list[Battle] = []
    for verdict in run.verdicts:
        if verdict.value is None or read_battle_facts(verdict).is_by_rule:
            continue
        for order, leans in _orders(verdict.merged_from or (verdict,)).items():
            battle = _battle(run, verdict, winner_from_lean(statistics.fmean(leans)))
            made.append(battle.flip() if order == ORDER_BA else battle)
    return made


def _battle(run: RunResults, verdict: Verdict, winner: Winner) -> Battle:
    groups = run.groups[verdict.sample]
    return Battle(groups["item"], groups["first"], groups["second"], winner, verdict)


def build_tables(run: RunResults, title: str) -> list[Table]:
    """Win rates, both ways, and what is to be known of the judge."""
    return build_win_rate_tables(judged_battles(run), title, official_battles(run), decided_battles(run))


def _orders(some: Sequence[Verdict]) -> dict[str, list[float]]:
    """What the verdicts of each order lean to, from the first one's side; those that are unscored say nothing."""
    orders: dict[str, list[float]] = {}
    for one in some:
        leans = orders.setdefault(one.variant.partition(",")[0], [])
        if one.value is not None:
            leans.append(2 * one.value - 1)
    return orders


def official_battles(run: RunResults) -> list[Battle]:
    """What the released scripts would have: each battle once, in the order in which it was drawn, by their own reading
    of the reply, and none where somebody has no answer."""
    made: list[Battle] = []
    for verdict in run.verdicts:
        drawn = [one for one in verdict.merged_from or (verdict,) if not one.variant.startswith(ORDER_BA)]
        winners: list[Winner] = [one for one in map(OFFICIAL.winner, drawn) if not isinstance(one, MissingScore)]
        made += [_battle(run, verdict, winner) for winner in winners[:1]]  # of repeats the first that is a verdict
    return made
