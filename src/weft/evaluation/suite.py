"""Several benchmarks, some models, one score card.

A suite is the sections `[suite.NAME]` of a config file: a benchmark with its data and options. `build_jobs` builds one
run for each model and section. Every run carries its section's name, so `build_score_card` finds it in any journal that
it was merged into. The card has each benchmark's headline score on its own paper's scale. There is no average across
benchmarks unless `--average` asks for one."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from weft.benchmarks.base import Benchmark, is_known, load_benchmark
from weft.errors import UserError
from weft.evaluation.config import RunConfig
from weft.evaluation.imports.score import ImportedScore
from weft.evaluation.sources import find_usual_judge
from weft.models import registry
from weft.models.config import read_config
from weft.models.registry import resolve_model
from weft.results.index import RunEntry, list_runs
from weft.results.settings import find_differing_settings
from weft.results.titles import TitleInput, model_name
from weft.store.journal import Journal
from weft.types import Cell, Row, Table
from weft.workspace import open_blobs

AVERAGE = "mean share"
TEXT_SETTINGS = ("data", "judge")  # which in Python may be more than a text
# Commas between models; addresses and the parts of a composition have commas of their own.
SEPARATOR = re.compile(r",(?!https?://|\w+=)")


class SuiteEntry(Struct, frozen=True):
    """A section of the config file: its name, its benchmark, and its settings."""

    section: str
    benchmark: str
    settings: Mapping[str, Any]


def read_entries(config: Mapping[str, Any], only: Sequence[str] = ()) -> list[SuiteEntry]:
    """Return the sections of a config file, all or only those named. Raises UserError for a name that is not there."""
    sections: Mapping[str, Any] = config.get("suite", {})
    if not sections:
        raise UserError(
            "there is no suite: write [suite.BENCHMARK] sections with `data` in weft.toml, or in a file given by "
            "--config (weft init)"
        )
    unknown = [name for name in only if name not in sections]
    if unknown:
        raise UserError(f"the suite has no {unknown[0]!r}; it has {', '.join(sections)}")
    entries: list[SuiteEntry] = []
    for section, settings in sections.items():
        if only and section not in only:
            continue
        others = dict(settings)
        benchmark = str(others.pop("benchmark", section))
        entries.append(SuiteEntry(section, benchmark, others))
    return entries


def split_models(texts: Sequence[str]) -> list[str]:
    """Split models that are separated by commas, or were given one by one. Raises UserError if there is none."""
    parts = [part.strip() for text in texts for part in SEPARATOR.split(text)]
    models = [part for part in parts if part]
    if not models:
        raise UserError("give --models: names from weft.toml, or models as for `weft run`, with commas between them")
    return models


def build_jobs(
    entries: Sequence[SuiteEntry], models: Sequence[str], judge: str | None, **common: Any
) -> Iterator[tuple[SuiteEntry, str, RunConfig]]:
    """Yield the configuration of each run, benchmark by benchmark, so that its data are read once.

    A section's settings take precedence over `common` ones, and so does a judge that is a benchmark's own program.
    Raises UserError for a section without a judge.
    """
    for entry in entries:
        benchmark = load_benchmark(entry.benchmark)
        options, settings = _split_settings(entry, benchmark)
        entry_judge = settings.pop("judge", None) or find_usual_judge(benchmark, options) or judge
        if entry_judge is None:
            raise UserError(f"[suite.{entry.section}] has no judge: give --judge, or judge = ... in its section")
        fields: dict[str, Any] = {**common, **settings, "judge": entry_judge, "options": options}
        for model in models:
            yield entry, model, RunConfig(benchmark=entry.benchmark, model=model, **fields)


def check_names(job: RunConfig) -> None:
    """Raise UserError for a model or a judge that does not exist."""
    blobs = open_blobs(Path(job.home))
    settings = read_config()
    if job.model != "reference":
        outputs = load_benchmark(job.benchmark).preparation.outputs
        resolve_model(job.model, blobs, job.model_options, settings, str(job.data), outputs)
    registry.resolve_endpoint(job.judge, blobs, job.judge_options, settings, str(job.data))


def _split_settings(entry: SuiteEntry, benchmark: Benchmark) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split a section's settings into options of its benchmark, and those that every run has.

    Raises UserError for a setting that is neither.
    """
    options: dict[str, Any] = {}
    common: dict[str, Any] = {}
    where: dict[str, str] = {}
    for key, value in entry.settings.items():
        name = key.replace("-", "_")
        if name in benchmark.Options.__struct_fields__:
            options[name] = value
        elif name in benchmark.axes:
            where[name] = str(value)
        elif name in RunConfig.__struct_fields__ and name not in ("benchmark", "model", "options", "home"):
            common[name] = _convert_setting(entry.section, name, value)
        else:
            raise UserError(f"[suite.{entry.section}] {key}: neither {benchmark.name} nor every run has such an option")
    if where:
        common["where"] = {**dict(common.get("where", {})), **where}
    return options, common


def _convert_setting(section: str, name: str, value: Any) -> Any:
    """Return a setting that every run has. Raises UserError for a value of another type."""
    types: dict[str, Any] = {field.name: field.type for field in msgspec.structs.fields(RunConfig)}
    expected = str if name in TEXT_SETTINGS else types[name]
    try:
        return msgspec.convert(value, expected)
    except msgspec.ValidationError as error:
        raise UserError(f"[suite.{section}] {name}: {error}") from None


class ScoreCard(Struct, frozen=True):
    """`scores` and `costs` have a row for each model and a column for each section; `runs` by model and section."""

    scores: Table
    costs: Table
    runs: Mapping[str, Mapping[str, str]]
    notes: tuple[str, ...] = ()


def build_score_card(
    journal: Journal | None,
    benchmarks: Any = None,
    *,
    average: bool = False,
    imported: Sequence[ImportedScore] = (),
) -> ScoreCard:
    """Build the card of the latest run for each model and section, and of what other tools measured.

    `journal`: None for a home that has imported scores alone. Raises UserError where there is neither.
    """
    latest: dict[str, dict[str, RunEntry]] = {}
    if journal is not None:
        latest = _find_latest(journal, benchmarks)
    if not latest and not imported:
        where = "no journal" if journal is None else journal.path
        raise UserError(f"no run in {where} was made by `weft suite run`")
    sections = list(dict.fromkeys(section for runs in latest.values() for section in runs))
    notes = [note for section in sections for note in _compare_notes(section, latest)]
    notes += [note for model, runs in latest.items() for note in _version_notes(model, runs)]
    max_scores = {section: _find_max_score(latest, section) for section in sections}
    scales = ", ".join(f"{section} of {score:g}" for section, score in max_scores.items() if score)
    caption = [*notes]
    if sections:
        scale_note = (
            f"Each benchmark's headline score on its paper's scale ({scales}), with its 95% interval by dialogue."
        )
        caption.insert(0, scale_note)
    caption += _imported_notes(imported)
    imported_columns = list(dict.fromkeys(score.column for score in imported))
    columns = [*sections, *imported_columns]
    if average:
        caption.append(AVERAGE_CAPTION)
        columns.append(AVERAGE)
    models = list(dict.fromkeys([*latest, *(score.model for score in imported)]))
    rows: list[Row] = []
    for model in models:
        cells = _score_cells(latest.get(model, {}), sections, max_scores, average)
        own_imports = [score for score in imported if score.model == model]
        cells |= {score.column: _imported_cell(score) for score in own_imports}
        rows.append(Row(model, cells))
    scores = Table("Score card", tuple(columns), tuple(rows), " ".join(caption), 3)
    cost_rows = tuple(_cost_row(model, runs, sections) for model, runs in latest.items())
    costs = Table("What it cost, USD", (*sections, "all"), cost_rows, COST_CAPTION, 2, "mixed")
    ids: dict[str, dict[str, str]] = {}
    for model, runs in latest.items():
        ids[model] = {section: run.record.id for section, run in runs.items()}
    return ScoreCard(scores, costs, ids, tuple(notes))


def _imported_notes(imported: Sequence[ImportedScore]) -> Iterator[str]:
    """Say where imported numbers come from, once for each origin."""
    origins: dict[str, list[str]] = {}
    for score in imported:
        origins.setdefault(f"{score.column}: {score.describe()}", []).append(score.model)
    if origins:
        yield "A column with a tool in brackets is imported, not measured by weft, in percent."
    for origin, models in origins.items():
        yield f"{origin} ({', '.join(models)})."


def _imported_cell(score: ImportedScore) -> Cell:
    return Cell(score.value, score.scored, score.expected, score.low, score.high, digits=1)


def find_suite_runs(journal: Journal, benchmarks: Any = None) -> dict[str, dict[str, str]]:
    """Return the ids of the latest runs of suites, by model and section."""
    latest = _find_latest(journal, benchmarks)
    return {model: {name: run.record.id for name, run in runs.items()} for model, runs in latest.items()}


def _find_latest(journal: Journal, benchmarks: Any) -> dict[str, dict[str, RunEntry]]:
    """The runs of suites that were begun or continued last, by model and section; both as they first came up."""
    runs = [run for run in list_runs(journal, benchmarks) if run.record.names.get("suite")]
    last = {_place_of(run): run for run in runs}
    latest: dict[str, dict[str, RunEntry]] = {}
    for run in sorted(runs, key=lambda run: run.record.started):
        model, section = _place_of(run)
        latest.setdefault(model, {})[section] = last[model, section]
    return latest


def _place_of(run: RunEntry) -> tuple[str, str]:
    """Return the row and the column of a run of a suite."""
    return model_name(TitleInput(run.record.manifest, run.record.names)), run.record.names["suite"]


# Settings of a run that are none of its model's: rows that differ in them were not measured alike.
PROTOCOL_SETTINGS = ("strategy", "judge_repeats", "prompts", "benchmark_version", "limit", "sample")
COST_CAPTION = (
    "Calls made for these runs, of model and judge. Replies cached by earlier runs cost nothing again. "
    "A dash: the price is not known."
)
AVERAGE_CAPTION = (
    f"{AVERAGE}: the unweighted mean of shares of full marks, over benchmarks that measure different things. "
    "It is shown because --average asked for it."
)


def _compare_notes(section: str, latest: Mapping[str, Mapping[str, RunEntry]]) -> Iterator[str]:
    """Why a column's numbers do not compare, if so."""
    runs = [runs[section] for runs in latest.values() if section in runs]
    manifests = [run.record.manifest for run in runs]
    judges = sorted({manifest.judge.name for manifest in manifests})
    if len(judges) > 1:
        yield f"{section} was judged by {' and by '.join(judges)}: its numbers do not compare."
    if len({manifest.dataset.digest for manifest in manifests}) > 1:
        yield f"{section}: these models were asked about different data; run the suite again."
    settings = find_differing_settings([TitleInput(run.record.manifest, run.record.names) for run in runs])
    shared = {*PROTOCOL_SETTINGS, *(name for manifest in manifests for name in manifest.options)}
    for name, values in settings.items():
        if name in shared or name.startswith("only "):
            chosen = ", ".join(dict.fromkeys(values))
            yield f"{section}: its runs differ in {name.replace('_', ' ')} ({chosen}): its numbers do not compare."


def _version_notes(model: str, runs: Mapping[str, RunEntry]) -> Iterator[str]:
    """Why a row's numbers are not of one model, if so."""
    sections: dict[tuple[str, ...], list[str]] = {}
    for section, run in runs.items():
        identity = run.record.manifest.model
        versions = (identity.version, *(part.version for part in identity.parts.values()))
        sections.setdefault(tuple(filter(None, versions)), []).append(section)
    if len(sections) > 1:
        groups = "; ".join(", ".join(names) for names in sections.values())
        yield f"{model}: its runs are of several versions ({groups}): run the suite again for one."


def _find_max_score(latest: Mapping[str, Mapping[str, RunEntry]], section: str) -> float | None:
    """Full marks on the scale of a section's benchmark; None if the benchmark is not known here."""
    record = next(runs[section].record for runs in latest.values() if section in runs)
    if is_known(record.benchmark):
        return load_benchmark(record.benchmark).presentation.max_score
    return None


def _score_cells(
    runs: Mapping[str, RunEntry], sections: Sequence[str], max_scores: Mapping[str, float | None], average: bool
) -> dict[str, Cell]:
    """A model's scores by section, and their average if it is asked for and none is missing."""
    cells = {section: _score_cell(runs[section]) for section in sections if section in runs}
    if not average or len(cells) < len(sections):
        return cells
    shares: list[float] = []
    for section, cell in cells.items():
        max_score = max_scores[section]
        if cell.value is None or not max_score:
            return cells
        shares.append(cell.value / max_score)
    return {**cells, AVERAGE: Cell(sum(shares) / len(shares))}


def _score_cell(run: RunEntry) -> Cell:
    """The headline score and the verdicts that it rests on. Turns that a run has not reached yet count as expected and
    unscored."""
    gist = run.gist
    missing = 1 if run.expected_turns is None else run.expected_turns - gist.turns
    expected = gist.headline_expected + max(0, missing)
    return Cell(gist.value, gist.headline_scored, expected, gist.low, gist.high, digits=gist.digits)


def _cost_row(model: str, runs: Mapping[str, RunEntry], sections: Sequence[str]) -> Row:
    """What each run of a model cost, and their sum if every cost is known."""
    costs = {section: runs[section].gist.cost for section in sections if section in runs}
    cells = {section: Cell(cost) for section, cost in costs.items()}
    known = [cost for cost in costs.values() if cost is not None]
    total = sum(known) if len(known) == len(costs) else None
    return Row(model, {**cells, "all": Cell(total)})
