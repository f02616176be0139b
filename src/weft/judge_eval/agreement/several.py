"""Agreement over the runs of several models: a row for each, one for all together, and a second judge beside people.

All runs have one benchmark, one dataset and one judge. A dialogue that several models answered is one cluster of the
pooled rows: its verdicts are not independent."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from weft.benchmarks.base import Benchmark
from weft.benchmarks.paired_verdicts import PairedVerdicts
from weft.errors import UserError, wrap_error
from weft.judge_eval.agreement import people, tables
from weft.judge_eval.agreement.pairs import mean_scores, pair_with_run, pair_with_scores, verdict_key
from weft.judge_eval.agreement.scores import HumanScores, VerdictKey, read_scores_of_runs
from weft.judge_eval.agreement.study import AgreementStudy, RunAnnotations, annotations_of
from weft.results.run import Run, name_runs
from weft.results.settings import find_differing_settings
from weft.store.annotations import Annotation, Study
from weft.types import Cell, Row, Table

ALL_MODELS = "all models"
MEAN_OF_MODELS = "mean of the models"
PEOPLE = "people"
OF_JUDGE = "judge."  # begins the names of a judge's own settings
JUDGE_SETTINGS = ("judge_repeats", "prompts")
Scored = Mapping[str, tuple[HumanScores, RunAnnotations]]  # what people said, by a run's title


class JudgeComparison(Struct, frozen=True):
    """One judge compared with people or with another judge, over the replies of several models."""

    judge: str
    other: str
    by_model: Sequence[PairedVerdicts]

    @property
    def label(self) -> str:
        return f"{self.judge} and {self.other}"

    @property
    def pooled(self) -> PairedVerdicts:
        """The verdicts about all models as those of one."""
        if len(self.by_model) == 1:
            return self.by_model[0]
        first = self.by_model[0]
        groups = {sample: facts for paired in self.by_model for sample, facts in paired.groups.items()}
        clusters = {sample: cluster for paired in self.by_model for sample, cluster in paired.clusters.items()}
        pairs = [pair for paired in self.by_model for pair in paired.pairs]
        return PairedVerdicts(ALL_MODELS, pairs, groups, clusters, self.judge, self.other, first.dataset)

    @property
    def rows(self) -> list[PairedVerdicts]:
        """Each model's verdicts and, of several models, those of all together."""
        if len(self.by_model) == 1:
            return list(self.by_model)
        return [*self.by_model, self.pooled]


def compare_models(
    runs: Sequence[Run], home: Path, *, file: Path | None = None, second: Sequence[Run] = (), by: str = ""
) -> AgreementStudy:
    """Compare the judge of several runs with people: their annotations in the journal, or those of a file.

    `second` has a second judge's run of the replies of each run, in their order. It is compared with people and with
    the first judge, on the verdicts that all of them gave. Without annotations the two judges alone are compared."""
    named = name_runs(runs)
    _check_runs(runs)
    _check_runs(second)
    notes = [*_note_settings(runs), *_note_settings(second)]
    scored = _collect_scores(named, home, file, notes)
    if not scored and not second:
        raise UserError(
            f"nobody has annotated {', '.join(run.id for run in runs)} yet: `weft rate {' '.join(r.id for r in runs)}` "
            "collects annotations; or give --with FILE.csv with human scores, or --with JUDGE with another judge"
        )
    comparisons = _compare(named, scored, dict(zip(named, second, strict=False)), notes)
    return _build_study(runs, comparisons, scored, by, notes)


def _check_runs(runs: Sequence[Run]) -> None:
    """Raise UserError for runs that cannot share a pooled row."""
    if any(run.benchmark.presentation.pairwise for run in runs):
        raise UserError("runs of battles are compared one by one: weft agree RUN --with OTHER")
    judges = list(dict.fromkeys(run.record.manifest.judge.name for run in runs))
    if len(judges) > 1:
        raise UserError(
            f"the runs have different judges: {', '.join(judges)}; name the runs of one judge, and the other judge "
            "with --with"
        )
    if len({run.record.manifest.dataset.digest for run in runs}) > 1:
        raise UserError("the runs have different datasets: agreement is pooled over the models of one dataset")


def _note_settings(runs: Sequence[Run]) -> list[str]:
    """Say in which settings a judge was asked differently about several models: their rows are of several judges."""
    differing = find_differing_settings([run.title_input for run in runs])
    texts = [
        f"{name.removeprefix(OF_JUDGE)} ({', '.join(dict.fromkeys(values))})"
        for name, values in differing.items()
        if name.startswith(OF_JUDGE) or name in JUDGE_SETTINGS
    ]
    if not texts:
        return []
    return [f"{runs[0].record.manifest.judge.name} did not judge all runs with the same {', '.join(texts)}"]


def _collect_scores(
    named: Mapping[str, Run], home: Path, file: Path | None, notes: list[str]
) -> dict[str, tuple[HumanScores, RunAnnotations]]:
    """What people said about each run; a run that nobody annotated is left out, and said in the notes."""
    from_file: Mapping[str, HumanScores] = {}
    if file is not None:
        from_file = read_scores_of_runs(file, {run.id: run.verdicts for run in named.values()})
    scored: dict[str, tuple[HumanScores, RunAnnotations]] = {}
    for title, run in named.items():
        annotations = RunAnnotations([], []) if file is not None else annotations_of(run, home)
        scores = from_file.get(run.id, {}) if file is not None else annotations.said
        notes += [f"{title}: {note}" for note in annotations.notes]
        if scores:
            scored[title] = (scores, annotations)
    if scored:
        notes += [f"{title} is not compared with people: nobody annotated it" for title in named if title not in scored]
    return scored


def _compare(
    named: Mapping[str, Run], scored: Scored, second: Mapping[str, Run], notes: list[str]
) -> list[JudgeComparison]:
    """The comparisons that have verdicts: with people, of the second judge with people, of the two judges."""
    first_people: list[PairedVerdicts] = []
    second_people: list[PairedVerdicts] = []
    judges: list[PairedVerdicts] = []
    for title, run in named.items():
        other = second.get(title)
        compared: list[PairedVerdicts] = []
        if title in scored:
            compared.append(_note_left_out(pair_with_scores(run, mean_scores(scored[title][0])), title, notes))
        elif scored:
            continue
        if other is not None:
            compared.append(_note_left_out(pair_with_run(run, other), title, notes))
            if title in scored:
                compared.append(pair_with_scores(other, mean_scores(scored[title][0]))[0])
        compared = [replace(paired, name=title) for paired in _keep_common(compared, title, notes)]
        if title in scored:
            first_people.append(compared.pop(0))
        if compared:
            judges.append(compared.pop(0))
        second_people += compared
    if any(paired.judge == paired.other for paired in judges):  # one model as two judges: rows need two names
        name = f"{judges[0].other} (second)"
        notes.append(f"both judges are {judges[0].other}: that of --with is called {name}")
        second_people = [replace(paired, judge=name) for paired in second_people]
        judges = [replace(paired, other=name) for paired in judges]
    groups = (_with_pairs(first_people), _with_pairs(second_people), _with_pairs(judges))
    comparisons = [JudgeComparison(group[0].judge, group[0].other, group) for group in groups if group]
    if not comparisons:
        raise UserError("; ".join(["people and the judge have no verdict in common", *notes]))
    return comparisons


def _note_left_out(found: tuple[PairedVerdicts, list[str]], title: str, notes: list[str]) -> PairedVerdicts:
    paired, left_out = found
    notes += [f"{title}: {note}" for note in left_out]
    return paired


def _with_pairs(compared: Sequence[PairedVerdicts]) -> list[PairedVerdicts]:
    return [paired for paired in compared if paired.pairs]


def _keep_common(compared: Sequence[PairedVerdicts], title: str, notes: list[str]) -> list[PairedVerdicts]:
    """Keep the verdicts that all comparisons of one run have, so that their numbers can be compared."""
    if not compared:
        return []
    keys = [{verdict_key(verdict) for verdict, _ in paired.pairs} for paired in compared]
    common = keys[0].intersection(*keys[1:])
    if len(keys) > 1 and len(keys[0]) > len(common):
        count = len(keys[0]) - len(common)
        notes.append(f"{title}: {count} verdicts that people annotated are left out: one of the judges has none")
    kept: list[PairedVerdicts] = []
    for paired in compared:
        pairs = [(verdict, score) for verdict, score in paired.pairs if verdict_key(verdict) in common]
        kept.append(replace(paired, pairs=pairs))
    return kept


def _build_study(
    runs: Sequence[Run], comparisons: Sequence[JudgeComparison], scored: Scored, by: str, notes: Sequence[str]
) -> AgreementStudy:
    benchmark = runs[0].benchmark
    main = comparisons[0]
    has_second = len(comparisons) > 1
    labelled: list[PairedVerdicts] = []
    for comparison in comparisons:
        for paired in comparison.rows:
            name = f"{paired.name}: {comparison.label}" if has_second else paired.name
            labelled.append(replace(paired, name=name))
    paper = build_paper_tables(labelled, benchmark)
    measures = tables.build_measure_table(labelled, benchmark)
    summaries = [replace(comparison.pooled, name=comparison.label) for comparison in comparisons]
    charted = labelled if not has_second else summaries
    shown = paper if not has_second else build_paper_tables(charted, benchmark)
    built = [
        *(tables.build_model_table(comparison.rows, benchmark) for comparison in comparisons),
        *(tables.build_metric_table(comparison.pooled, benchmark) for comparison in comparisons),
        measures,
        *tables.build_reliability_tables(main.pooled, benchmark),
        *_build_people_tables(main, scored, benchmark),
        *(_add_mean_row(table, main, has_second=has_second) for table in paper),
        *tables.build_group_tables(main.pooled, benchmark, by),
    ]
    return AgreementStudy(
        ", ".join(run.id for run in runs),
        main.judge,
        main.other,
        tuple(built),
        tuple(notes),
        tuple(shown) or (tables.build_measure_table(charted, benchmark),),
    )


def build_paper_tables(compared: Sequence[PairedVerdicts], benchmark: Benchmark) -> list[Table]:
    """The paper's own tables of agreement with a row for each comparison, and the published rows once."""
    merged: dict[str, Table] = {}
    try:
        for paired in compared:
            for table in benchmark.presentation.agreement_tables(paired):
                if table.title in merged:
                    known = merged[table.title]
                    table = replace(known, rows=(*known.run_rows, *table.run_rows, *known.published_rows))
                merged[table.title] = table
    except Exception as error:
        raise wrap_error(f"benchmark {benchmark.name}: its agreement_tables", error) from error
    return list(merged.values())


def _add_mean_row(table: Table, main: JudgeComparison, *, has_second: bool) -> Table:
    """Add the plain mean over the models, as papers print it: a pooled correlation is another number."""
    if has_second or len(main.by_model) < 2:
        return table
    rows = [row for row in table.run_rows if row.name != ALL_MODELS]
    cells: dict[str, Cell] = {}
    for column in table.columns:
        values = [row.cells[column].value for row in rows if column in row.cells]
        known = [value for value in values if value is not None]
        if known and len(known) == len(rows):
            count = sum(row.cells[column].scored for row in rows)
            cells[column] = Cell(sum(known) / len(known), count, count, digits=rows[0].cells[column].digits)
    if not cells:
        return table
    mean = Row(MEAN_OF_MODELS, cells, judge=main.judge)
    return replace(table, rows=(*table.run_rows, mean, *table.published_rows))


def _build_people_tables(main: JudgeComparison, scored: Scored, benchmark: Benchmark) -> list[Table]:
    """Agreement among the annotators of all runs. Each reply is a question of its own."""
    if main.other != PEOPLE:
        return []
    scores: HumanScores = {}
    clusters: dict[str, str] = {}
    annotations: list[Annotation] = []
    studies: list[Study] = []
    for paired in main.by_model:
        said, stored = scored[paired.name]
        rename = _rename_samples(paired.name)
        scores.update({rename(key): by_annotator for key, by_annotator in said.items()})
        for sample, cluster in paired.clusters.items():
            clusters[rename((sample, 0, ""))[0]] = cluster
        annotations += stored.annotations
        studies += [study for study in stored.studies if study not in studies]
    metrics = [metric for metric in benchmark.metrics if any(key[2] == metric for key in scores)]
    steps = people.find_scale_steps(annotations, scores)
    checks = people.count_attention_checks(annotations, studies)
    return [
        *people.build_people_tables(scores, clusters, metrics, steps),
        *people.build_annotator_tables(scores, clusters, benchmark, checks),
    ]


def _rename_samples(model: str) -> Callable[[VerdictKey], VerdictKey]:
    def rename(key: VerdictKey) -> VerdictKey:
        return f"{model}\n{key[0]}", key[1], key[2]

    return rename
