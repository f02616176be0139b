"""Battles between stored runs of any benchmark, as a benchmark of their own: a sample is a battle, and a judge says who wins it.

Each is fought in both orders, unless one is enough: two verdicts that contradict each other are a tie. Who has no answer at all loses to
who has one, without a judge. A battle of which something is missing through our fault, or one order of which could not be judged, is
unscored.
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
from weft.arena.official import OFFICIAL, BattleFacts, battle_facts
from weft.arena.rubric import AB, BA, BATTLE, ONE
from weft.arena.tables import agreements, published_rates, win_rates
from weft.benchmarks.base import Answered, Benchmark, Finished, Groups, Item, Terms
from weft.benchmarks.documents import MOST, Most, pictures_in, sheets_of
from weft.benchmarks.opening.released import official as released_rubrics
from weft.benchmarks.preparation import Preparation
from weft.benchmarks.presentation import Presentation
from weft.benchmarks.prompts import Rubrics
from weft.errors import UserError
from weft.stats.battles import FLIPPED, LEAN, Battle, Winner, leaning, ratings
from weft.store.blobs import Blobs
from weft.types import Dataset, Dialogue, Mark, Message, Missing, Part, Question, Sample, Table, Turn, Verdict

Both = Annotated[bool, Meta(description="Each battle in both orders; two verdicts that contradict each other are a tie.")]
Each = Annotated[int, Meta(description="Battles about each item; 0: every pair.", ge=0)]
Seed = Annotated[int, Meta(description="Which battles are drawn.")]
SAID = re.compile(r"\W*(?:(A|B)|tie\s*\(\s*([AB])\s*\))\W*", re.IGNORECASE)


class ArenaOptions(Struct, frozen=True):
    both_orders: Both = True
    battles: Each = 2
    seed: Seed = 0
    judge_pictures: Most = MOST


class ArenaPresentation(Presentation, frozen=True):
    def ranking(self, runs: Sequence[Finished]) -> tuple[str, list[dict[str, Any]]]:
        what = "rating (95% interval)"
        rows: list[dict[str, Any]] = []
        for run in runs:
            told = run.judge if len({one.judge for one in runs}) == len(runs) else f"{run.judge}, {run.run}"
            for name, cell in ratings(decided(run)).items():
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

    def build_messages(self, sample: Sample, turn: Turn, dialogue: Dialogue, options: ArenaOptions) -> tuple[Message, ...]:
        return (Message("user", turn.ask),)

    def questions(self, answered: Answered) -> Iterable[Item]:
        duel: Duel = answered.turn.gold
        orders = (AB, BA) if answered.options.both_orders else (ONE,)
        by_rule = _without_judge(duel)
        if by_rule is not None:
            return [replace(_verdict(answered, by_rule[0], by_rule[1]), variant=order) for order in orders]
        if answered.rubrics.official:
            return [answered.check(BATTLE, lambda blobs: [rubric.as_released(answered, order, blobs) for order in orders])]
        most = answered.options.judge_pictures
        if pictures_in(rubric.sections_of(answered, ONE)) > most:
            return [answered.check(BATTLE, lambda blobs: [_on_sheets(answered, order, most, blobs) for order in orders])]
        return [rubric.about(answered, order) for order in orders]

    def parse_text(self, question: Question, text: str) -> dict[str, Any] | None:
        """A reply to a released prompt is a word or two."""
        said = SAID.fullmatch(text) if question.plain else None
        return None if said is None else {"winner": said[1].upper() if said[1] else f"Tie({said[2].upper()})"}

    def to_scores(self, question: Question, found: dict[str, Any]) -> Sequence[Mark]:
        winner: Winner = found["winner"]
        seen: Winner = FLIPPED[winner] if question.variant == BA else winner
        why = str(found.get("reasoning", ""))
        told = f"[A and B exchanged] {why}" if question.variant == BA else why
        return [Mark(BATTLE, (LEAN[seen] + 1) / 2, told, detail=BattleFacts(seen, winner))]

    def merge_variants(self, verdicts: Sequence[Verdict]) -> list[Verdict]:
        of: dict[str, list[Verdict]] = {}
        for one in verdicts:
            of.setdefault(one.sample, []).append(one)
        return [_settled(some) for some in of.values()]

    def cluster_of(self, sample: str, groups: Mapping[str, str]) -> str:
        return groups.get("item", sample)

    def headline(self, verdicts: Sequence[Verdict], groups: Groups) -> Terms:
        return [(1.0, verdicts)]

    def tables(self, runs: Sequence[Finished]) -> Iterator[Table]:
        for run in runs:
            rates, *rest = tables_of(run, f"Win rates, judged by {run.judge}")
            there = {name for groups in run.groups.values() for name in (groups["first"], groups["second"])}
            lost = sorted(there - {row.name for row in rates.rows})
            yield replace(rates, note=f"{rates.note} Without a battle that was scored: {', '.join(lost)}.") if lost else rates
            yield from rest
        if len(runs) > 1:
            judges = [run.judge for run in runs]
            others = {run.judge if judges.count(run.judge) == 1 else f"{run.judge}, {run.run}": fought(run) for run in runs[1:]}
            yield agreements(others, fought(runs[0]), (), f"Agreement with {runs[0].judge}")
        if all(run.dataset == "opening" for run in runs):
            yield from published_rates()


def _without_judge(duel: Duel) -> tuple[Winner, str] | None:
    if duel.first.answered and duel.second.answered:
        return None
    if duel.first.answered:
        return "A", f"{duel.second.name} has no answer"
    return ("B", f"{duel.first.name} has no answer") if duel.second.answered else ("Tie", "neither has an answer")


def _verdict(answered: Answered, winner: Winner, why: str) -> Verdict:
    return answered.verdict(BATTLE, (LEAN[winner] + 1) / 2, why, detail=BattleFacts(winner, rule=True))


def _on_sheets(answered: Answered, order: str, most: int, blobs: Blobs) -> Question:
    return rubric.about(answered, order, sheets_of(rubric.sections_of(answered, order), most, blobs))


def _settled(some: Sequence[Verdict]) -> Verdict:
    """One verdict from those of both orders, and of repeats."""
    first = some[0]
    orders = _orders(some)
    keys = tuple(dict.fromkeys(key for one in some for key in one.keys))
    half = len(orders) == 1 and ONE not in orders and any(orders)
    if half or not all(orders.values()):
        missing = next((one for one in some if one.value is None), first)
        told = "one of its two orders is not judged yet" if half else missing.reason
        told = told if half or len(orders) == 1 else f"one of its two orders could not be judged: {told}"
        return replace(missing, variant="", value=None, score=None, reason=told, keys=keys, behind=tuple(some), spread=None)
    means = {order: statistics.fmean(leans) for order, leans in orders.items()}
    lean = statistics.fmean(means.values())
    winner = leaning(lean)
    said = f" ({', '.join(f'{order}: {leaning(one)}' for order, one in means.items())})" if len(means) > 1 else ""
    contrary = min(means.values()) < 0 < max(means.values())
    told = TOLD[winner] + said + ("; the two orders contradict each other" if contrary else "")
    by = "rule" if all(one.by == "rule" for one in some) else "judge"
    told = f"{told}: {first.reason}" if by == "rule" else told
    facts = BattleFacts(winner, rule=by == "rule")
    return replace(first, variant="", value=(lean + 1) / 2, reason=told, keys=keys, by=by, detail=facts, behind=tuple(some), spread=None)


TOLD: Mapping[Winner, str] = {
    "A": "A wins",
    "B": "B wins",
    "Tie(A)": "a tie that leans to A",
    "Tie(B)": "a tie that leans to B",
    "Tie": "a tie",
}


def decided(run: Finished) -> list[Battle]:
    """The battles of a run, each as it was settled; those that are unscored are none."""
    made: list[Battle] = []
    for verdict in run.verdicts:
        winner = battle_facts(verdict).winner
        if verdict.value is not None and winner is not None:
            made.append(_battle(run, verdict, winner))
    return made


def fought(run: Finished) -> list[Battle]:
    """What its judge said, each order a battle of its own, as it was shown, repeats settled. What is unscored, or was decided by
    rule, is not among them."""
    made: list[Battle] = []
    for verdict in run.verdicts:
        if verdict.value is None or battle_facts(verdict).rule:
            continue
        for order, leans in _orders(verdict.behind or (verdict,)).items():
            battle = _battle(run, verdict, leaning(statistics.fmean(leans)))
            made.append(battle.flipped() if order == BA else battle)
    return made


def _battle(run: Finished, verdict: Verdict, winner: Winner) -> Battle:
    groups = run.groups[verdict.sample]
    return Battle(groups["item"], groups["first"], groups["second"], winner, verdict)


def tables_of(run: Finished, title: str) -> list[Table]:
    """Win rates, both ways, and what is to be known of the judge."""
    return win_rates(fought(run), title, by_script(run), decided(run))


def _orders(some: Sequence[Verdict]) -> dict[str, list[float]]:
    """What the verdicts of each order lean to, from the first one's side; those that are unscored say nothing."""
    orders: dict[str, list[float]] = {}
    for one in some:
        leans = orders.setdefault(one.variant.partition(",")[0], [])
        if one.value is not None:
            leans.append(2 * one.value - 1)
    return orders


def by_script(run: Finished) -> list[Battle]:
    """What the released scripts would have: each battle once, in the order in which it was drawn, by their own reading of the reply, and
    none where somebody has no answer."""
    made: list[Battle] = []
    for verdict in run.verdicts:
        drawn = [one for one in verdict.behind or (verdict,) if not one.variant.startswith(BA)]
        winners: list[Winner] = [one for one in map(OFFICIAL.winner, drawn) if not isinstance(one, Missing)]
        made += [_battle(run, verdict, winner) for winner in winners[:1]]  # of repeats the first that is a verdict
    return made
