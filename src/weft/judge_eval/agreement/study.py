"""All that is to be said of how far a run's judge agrees with people, with another judge, or with a file of ratings."""

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from weft.arena.protocol import Arena, decided_battles
from weft.arena.tables import build_agreement_table
from weft.benchmarks.paired_verdicts import PairedVerdicts
from weft.errors import UserError, wrap_error
from weft.judge_eval.agreement import people, tables
from weft.judge_eval.agreement.pairs import against, beside, is_of_same, means, said_by, same_kind, same_replies
from weft.judge_eval.agreement.scores import Said, read_ratings
from weft.results.run import Run
from weft.stats.battles import Battle, winner_from_lean
from weft.stats.repeats import build_repeats_tables
from weft.store.annotations import Annotation, Study
from weft.types import Table
from weft.workspace import open_annotations, open_journal


class AgreementStudy(Struct, frozen=True):
    run: str
    judge: str
    other: str
    tables: tuple[Table, ...]
    notes: tuple[str, ...] = ()


class RunAnnotations(Struct, frozen=True):
    """What people said of a run's replies, and in which studies; `notes` tell of ratings that were given to another
    run's."""

    ratings: list[Annotation]
    studies: list[Study]
    notes: list[str] = []

    @property
    def said(self) -> Said:
        return said_by(self.ratings)


def annotations_of(run: Run, home: Path) -> RunAnnotations:
    """Those of the run in its journal, and those of the very same replies in other runs: of a run that was judged again
    people have rated the first."""
    journal = open_journal(home)
    ratings = open_annotations(home)
    found = ratings.find(run.id)
    studies = ratings.studies(run.id)
    notes = list[str]()
    try:
        for record in journal.runs():
            some = (
                ratings.find(record.id)
                if record.id != run.id and is_of_same(record.manifest, run.record.manifest)
                else []
            )
            if some:
                same = same_replies(run.turns, journal.turns(record.id))
                kept = [one if one.is_attention_check else _within(one, same) for one in some]
                kept = [one for one in kept if one.verdicts]
                found, studies = found + kept, studies + ratings.studies(record.id)
                count = sum(not one.is_attention_check for one in kept)
                notes += [f"{count} ratings were given in {record.id}, to the same replies"] if count else []
    finally:
        journal.close()
        ratings.close()
    return RunAnnotations(found, studies, notes)


def _within(rating: Annotation, places: set[tuple[str, int]]) -> Annotation:
    return replace(rating, verdicts=tuple(one for one in rating.verdicts if (one.sample, one.turn) in places))


def compare_with_people(run: Run, home: Path, by: str = "") -> AgreementStudy:
    rated = annotations_of(run, home)
    said = rated.said
    if not said:
        raise UserError(
            f"nobody has rated {run.id} yet: `weft rate {run.id}` asks people; or give --with FILE.csv with ratings, or --with RUN with "
            "another judge's run"
        )
    return _people(run, said, rated, by)


def compare_with_file(run: Run, path: Path, by: str = "") -> AgreementStudy:
    return _people(run, read_ratings(path, run.verdicts), RunAnnotations([], []), by)


def compare_with_run(run: Run, other: Run, by: str = "") -> AgreementStudy:
    """Two judges of the same replies; of two runs of battles, as OpenING counts it."""
    if isinstance(run.benchmark, Arena) and isinstance(other.benchmark, Arena):
        same_kind(run, other)
        theirs = decided_battles(other.results())
        return _battles(run, other.record.manifest.judge.name, theirs)
    found, notes = against(run, other)
    if found.judge == found.other:
        notes = [f"both runs have the judge {found.judge}", *notes]
    return _found(run, found, notes, by)


def _people(run: Run, said: Said, rated: RunAnnotations, by: str) -> AgreementStudy:
    if isinstance(run.benchmark, Arena):
        groups = run.groups
        theirs = [
            Battle(
                groups[place[0]]["item"],
                groups[place[0]]["first"],
                groups[place[0]]["second"],
                winner_from_lean(2 * value - 1),
            )
            for place, value in means(said).items()
            if place[0] in groups
        ]
        return _battles(run, "people", theirs)
    found, notes = beside(run, means(said))
    if not found.pairs:
        raise UserError(
            f"people rated nothing of {run.id} that its judge judged: {'; '.join(notes) or 'there is nothing in common'}"
        )
    return _found(run, found, [*rated.notes, *notes], by, tuple(_among(run, found, said, rated)))


def _among(run: Run, found: PairedVerdicts, said: Said, rated: RunAnnotations) -> Iterator[Table]:
    metrics = [metric for metric in run.benchmark.metrics if any(place[2] == metric for place in said)]
    metrics += sorted({place[2] for place in said} - set(metrics))
    yield from people.among(said, found.clusters, metrics, people.steps_of(rated.ratings, said))
    yield from people.each(said, found.clusters, run.benchmark, people.attention(rated.ratings, rated.studies))


def _found(run: Run, found: PairedVerdicts, notes: list[str], by: str, more: tuple[Table, ...] = ()) -> AgreementStudy:
    try:
        printed = tuple(run.benchmark.presentation.agreement_tables(found))
    except Exception as error:
        raise wrap_error(f"benchmark {run.benchmark.name}: its agreement_tables", error) from error
    groups = list(tables.by_group(found, run.benchmark, by))
    made = [tables.by_metric(found, run.benchmark), *tables.curve(found, run.benchmark), *more, *printed, *groups]
    if run.record.manifest.judge_repeats > 1:
        made += build_repeats_tables(
            {run.name: run.verdicts},
            run.benchmark.metrics,
            run.benchmark.presentation.max_score,
            run.benchmark.presentation.digits,
        )
    return AgreementStudy(run.id, found.judge, found.other, tuple(made), tuple(notes))


def _battles(run: Run, other: str, theirs: list[Battle]) -> AgreementStudy:
    finished = run.results()
    table = build_agreement_table(
        {finished.judge: decided_battles(finished)},
        theirs,
        (),
        f"Agreement between {finished.judge} and {other}, battle by battle",
    )
    if not table.rows or not table.rows[0].cells["FDT"].scored:
        raise UserError(f"{run.id} has no battle in common with what it is to be compared with")
    return AgreementStudy(run.id, finished.judge, other, (table,))
