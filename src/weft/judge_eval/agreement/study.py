"""Everything that `weft agree` shows for one run: its judge against people, another judge, or a file of scores."""

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from weft.arena.protocol import Arena, decided_battles
from weft.arena.tables import build_agreement_table
from weft.benchmarks.paired_verdicts import PairedVerdicts
from weft.errors import UserError, wrap_error
from weft.judge_eval.agreement import people, tables
from weft.judge_eval.agreement.pairs import (
    TurnKey,
    check_comparable,
    collect_scores,
    find_same_replies,
    is_same_model_and_data,
    mean_scores,
    pair_with_run,
    pair_with_scores,
)
from weft.judge_eval.agreement.scores import HumanScores, read_human_scores
from weft.results.run import Run
from weft.stats.battles import Battle, winner_from_lean
from weft.stats.repeats import build_repeats_tables
from weft.store.annotations import Annotation, Study
from weft.types import Table
from weft.workspace import open_annotations, open_journal


class AgreementStudy(Struct, frozen=True):
    """The result of one comparison."""

    run: str  # the run's id
    judge: str
    other: str  # another judge's name, or "people"
    tables: tuple[Table, ...]
    notes: tuple[str, ...] = ()  # what was left out, and why
    charted: tuple[Table, ...] = ()  # what is drawn: the paper's own tables, or r and MAE by metric


class RunAnnotations(Struct, frozen=True):
    """The annotations of a run's replies and the studies that they belong to."""

    annotations: list[Annotation]
    studies: list[Study]
    notes: list[str] = []  # which annotations were made for the same replies of another run

    @property
    def said(self) -> HumanScores:
        return collect_scores(self.annotations)


def annotations_of(run: Run, home: Path) -> RunAnnotations:
    """Find the annotations of a run, and those of other runs with identical replies.

    When a run is judged again, people have annotated the first run: its annotations count for both."""
    journal = open_journal(home)
    store = open_annotations(home)
    annotations = store.find(run.id)
    studies = store.studies(run.id)
    notes: list[str] = []
    try:
        for record in journal.runs():
            if record.id == run.id or not is_same_model_and_data(record.manifest, run.record.manifest):
                continue
            candidates = store.find(record.id)
            if not candidates:
                continue
            same = find_same_replies(run.turns, journal.turns(record.id))
            shared = _restrict(candidates, same)
            annotations += shared
            studies += store.studies(record.id)
            count = sum(not annotation.is_attention_check for annotation in shared)
            if count:
                notes.append(f"{count} annotations were made in {record.id}, of the same replies")
    finally:
        journal.close()
        store.close()
    return RunAnnotations(annotations, studies, notes)


def _restrict(annotations: list[Annotation], turns: set[TurnKey]) -> list[Annotation]:
    """Keep the verdicts about these turns, and attention checks as they are."""
    restricted: list[Annotation] = []
    for annotation in annotations:
        verdicts = annotation.verdicts
        if not annotation.is_attention_check:
            verdicts = tuple(verdict for verdict in verdicts if (verdict.sample, verdict.turn) in turns)
        if verdicts:
            restricted.append(replace(annotation, verdicts=verdicts))
    return restricted


def compare_with_people(run: Run, home: Path, by: str = "") -> AgreementStudy:
    """Compare a run's judge with the annotations in the journal. Raises UserError where there are none."""
    annotations = annotations_of(run, home)
    scores = annotations.said
    if not scores:
        raise UserError(
            f"nobody has annotated {run.id} yet: `weft rate {run.id}` collects annotations; or give --with FILE.csv "
            "with human scores, or --with RUN with another judge's run"
        )
    return _compare_with_scores(run, scores, annotations, by)


def compare_with_file(run: Run, path: Path, by: str = "") -> AgreementStudy:
    """Compare a run's judge with a file of human scores."""
    return _compare_with_scores(run, read_human_scores(path, run.verdicts), RunAnnotations([], []), by)


def compare_with_run(run: Run, other: Run, by: str = "") -> AgreementStudy:
    """Compare two judges of the same replies; two runs of battles are compared as OpenING does."""
    if isinstance(run.benchmark, Arena) and isinstance(other.benchmark, Arena):
        check_comparable(run, other)
        return _compare_battles(run, other.record.manifest.judge.name, decided_battles(other.results()))
    paired, notes = pair_with_run(run, other)
    if paired.judge == paired.other:
        notes = [f"both runs have the judge {paired.judge}", *notes]
    return _build_study(run, paired, notes, by)


def _compare_with_scores(run: Run, scores: HumanScores, annotations: RunAnnotations, by: str) -> AgreementStudy:
    if isinstance(run.benchmark, Arena):
        return _compare_battles(run, "people", _battles_from_scores(run, scores))
    paired, notes = pair_with_scores(run, mean_scores(scores))
    if not paired.pairs:
        reason = "; ".join(notes) or "there is nothing in common"
        raise UserError(f"people annotated nothing of {run.id} that its judge judged: {reason}")
    among_people = tuple(_build_people_tables(run, paired, scores, annotations))
    return _build_study(run, paired, [*annotations.notes, *notes], by, among_people)


def _battles_from_scores(run: Run, scores: HumanScores) -> list[Battle]:
    battles: list[Battle] = []
    for (sample, _, _), value in mean_scores(scores).items():
        facts = run.groups.get(sample)
        if facts is not None:
            battles.append(Battle(facts["item"], facts["first"], facts["second"], winner_from_lean(2 * value - 1)))
    return battles


def _build_people_tables(
    run: Run, paired: PairedVerdicts, scores: HumanScores, annotations: RunAnnotations
) -> Iterator[Table]:
    annotated = {metric for _, _, metric in scores}
    metrics = [metric for metric in run.benchmark.metrics if metric in annotated]
    metrics += sorted(annotated - set(metrics))
    steps = people.find_scale_steps(annotations.annotations, scores)
    yield from people.build_people_tables(scores, paired.clusters, metrics, steps)
    checks = people.count_attention_checks(annotations.annotations, annotations.studies)
    yield from people.build_annotator_tables(scores, paired.clusters, run.benchmark, checks)


def _build_study(
    run: Run, paired: PairedVerdicts, notes: list[str], by: str, among_people: tuple[Table, ...] = ()
) -> AgreementStudy:
    benchmark = run.benchmark
    try:
        paper_tables = tuple(benchmark.presentation.agreement_tables(paired))
    except Exception as error:
        raise wrap_error(f"benchmark {benchmark.name}: its agreement_tables", error) from error
    built = [
        tables.build_metric_table(paired, benchmark),
        *tables.build_reliability_tables(paired, benchmark),
        *among_people,
        *paper_tables,
        *tables.build_group_tables(paired, benchmark, by),
    ]
    if run.record.manifest.judge_repeats > 1:
        presentation = benchmark.presentation
        built += build_repeats_tables(
            {run.name: run.verdicts}, benchmark.metrics, presentation.max_score, presentation.digits
        )
    charted = paper_tables or (tables.build_measure_table([paired], benchmark),)
    return AgreementStudy(run.id, paired.judge, paired.other, tuple(built), tuple(notes), charted)


def _compare_battles(run: Run, other: str, battles: list[Battle]) -> AgreementStudy:
    results = run.results()
    title = f"Agreement between {results.judge} and {other}, battle by battle"
    table = build_agreement_table({results.judge: decided_battles(results)}, battles, (), title)
    if not table.rows or not table.rows[0].cells["FDT"].scored:
        raise UserError(f"{run.id} has no battle in common with what it is to be compared with")
    return AgreementStudy(run.id, results.judge, other, (table,))
