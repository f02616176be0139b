"""Several benchmarks, some models, one score card.

A suite is the sections `[suite.NAME]` of a config file: a benchmark with its data and options. `build_jobs` builds one
run for each model and section. Every run carries its section's name, so `build_score_card` finds it in any journal that
it was merged into. The card has each benchmark's headline score on its own paper's scale. There is no average across
benchmarks unless `--average` asks for one."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from weft.benchmarks.base import Benchmark, is_known, load_benchmark
from weft.errors import UserError
from weft.evaluation.config import RunConfig
from weft.models import registry
from weft.models.config import read_config
from weft.models.registry import resolve_model
from weft.results.index import RunEntry, list_runs
from weft.results.run import Gist
from weft.results.titles import TitleInput, model_name
from weft.store.journal import Journal
from weft.types import Cell, Row, Table
from weft.workspace import open_blobs

AVERAGE = "mean share"
# between models; addresses and the parts of a composition have commas of their own
JOINS = re.compile(r",(?!https?://|\w+=|\w+\.py:)")


class SuiteEntry(Struct, frozen=True):
    """One section: what it is called, its benchmark, and what is set for it."""

    section: str
    benchmark: str
    settings: Mapping[str, Any]


def read_entries(config: Mapping[str, Any], only: Sequence[str] = ()) -> list[SuiteEntry]:
    found: Mapping[str, Any] = config.get("suite", {})
    if not found:
        raise UserError(
            "there is no suite: write [suite.BENCHMARK] sections with `data` in weft.toml, or in a file given by "
            "--config (weft init)"
        )
    unknown = [name for name in only if name not in found]
    if unknown:
        raise UserError(f"the suite has no {unknown[0]!r}; it has {', '.join(found)}")
    made: list[SuiteEntry] = []
    for section, settings in found.items():
        if only and section not in only:
            continue
        named = dict(settings)
        made.append(SuiteEntry(section, str(named.pop("benchmark", section)), named))
    return made


def split_models(texts: Sequence[str]) -> list[str]:
    """Models that stand behind one another with commas, or were given one by one."""
    made = [one.strip() for text in texts for one in JOINS.split(text) if one.strip()]
    if not made:
        raise UserError("give --models: names from weft.toml, or models as for `weft run`, with commas between them")
    return made


def build_jobs(
    some: Sequence[SuiteEntry], models: Sequence[str], judge: str | None, **common: Any
) -> Iterator[tuple[SuiteEntry, str, RunConfig]]:
    """What a suite runs: benchmark by benchmark, so that its data are read while they are at hand."""
    for entry in some:
        benchmark = load_benchmark(entry.benchmark)
        own, job = _parted(entry, benchmark)
        judged = job.pop("judge", None) or judge
        if judged is None:
            raise UserError(f"[suite.{entry.section}] has no judge: give --judge, or judge = ... in its section")
        for model in models:
            yield (
                entry,
                model,
                RunConfig(benchmark=entry.benchmark, model=model, judge=judged, options=own, **{**common, **job}),
            )


def check_names(job: RunConfig) -> None:
    """Raises UserError for a model or a judge that there is not."""
    blobs = open_blobs(Path(job.home))
    settings = read_config()
    if job.model != "reference":
        resolve_model(
            job.model,
            blobs,
            job.model_options,
            settings,
            str(job.data),
            load_benchmark(job.benchmark).preparation.outputs,
        )
    registry.resolve_endpoint(job.judge, blobs, job.judge_options, settings, str(job.data))


def _parted(entry: SuiteEntry, benchmark: Benchmark) -> tuple[dict[str, Any], dict[str, Any]]:
    """A section's options of its benchmark, and those that every run has."""
    own = dict[str, Any]()
    job = dict[str, Any]()
    where = dict[str, str]()
    for key, value in entry.settings.items():
        name = key.replace("-", "_")
        if name in benchmark.Options.__struct_fields__:
            own[name] = value
        elif name in benchmark.axes:
            where[name] = str(value)
        elif name in RunConfig.__struct_fields__ and name not in ("benchmark", "model", "options", "home"):
            job[name] = value
        else:
            raise UserError(f"[suite.{entry.section}] {key}: neither {benchmark.name} nor every run has such an option")
    return own, {**job, **({"where": {**dict(job.get("where", {})), **where}} if where else {})}


class ScoreCard(Struct, frozen=True):
    """`scores` and `costs` have a row for each model and a column for each section; `runs` by model and section."""

    scores: Table
    costs: Table
    runs: Mapping[str, Mapping[str, str]]
    notes: tuple[str, ...] = ()


def build_score_card(journal: Journal, benchmarks: Any = None, *, average: bool = False) -> ScoreCard:
    """Of the latest run for each model and section. Raises UserError where there is none."""
    latest: dict[str, dict[str, RunEntry]] = {}
    for one in sorted(list_runs(journal, benchmarks), key=lambda one: one.record.started):
        section = one.record.names.get("suite", "")
        if section:
            latest.setdefault(model_name(TitleInput(one.record.manifest, one.record.names)), {})[section] = one
    if not latest:
        raise UserError(f"no run in {journal.path} was made by `weft suite run`")
    sections = list(dict.fromkeys(section for some in latest.values() for section in some))
    notes = [note for section in sections for note in _notes(section, latest)]
    full = {section: _full(latest, section) for section in sections}
    scales = ", ".join(f"{section} of {value:g}" for section, value in full.items() if value)
    told = [
        f"Each benchmark's headline score on its paper's scale ({scales}), with its 95% interval by dialogue.",
        *notes,
    ]
    told += [MEANS] if average else []
    rows = tuple(Row(model, _cells(some, sections, full, average)) for model, some in latest.items())
    scores = Table("Score card", (*sections, *([AVERAGE] if average else [])), rows, " ".join(told), 3)
    paid = tuple(_cost(model, some, sections) for model, some in latest.items())
    costs = Table("What it cost, USD", (*sections, "all"), paid, COSTS, 2, "mixed")
    ids = {model: {section: one.record.id for section, one in some.items()} for model, some in latest.items()}
    return ScoreCard(scores, costs, ids, tuple(notes))


COSTS = (
    "Calls made for these runs, of model and judge. Replies cached by earlier runs cost nothing again. "
    "A dash: the price is not known."
)
MEANS = (
    f"{AVERAGE}: the unweighted mean of shares of full marks, over benchmarks that measure different things. "
    "It is shown because --average asked for it."
)


def _notes(section: str, latest: Mapping[str, Mapping[str, RunEntry]]) -> Iterator[str]:
    """Why a column's numbers do not compare."""
    manifests = [some[section].record.manifest for some in latest.values() if section in some]
    judges = sorted({manifest.judge.name for manifest in manifests})
    if len(judges) > 1:
        yield f"{section} was judged by {' and by '.join(judges)}: its numbers do not compare."
    if len({manifest.dataset.digest for manifest in manifests}) > 1:
        yield f"{section}: these models were asked about different data; run the suite again."


def _full(latest: Mapping[str, Mapping[str, RunEntry]], section: str) -> float | None:
    record = next(some[section].record for some in latest.values() if section in some)
    if is_known(record.benchmark):
        return load_benchmark(record.benchmark).presentation.max_score
    return None


def _cells(
    some: Mapping[str, RunEntry], sections: Sequence[str], full: Mapping[str, float | None], average: bool
) -> dict[str, Cell]:
    made = {section: _cell(some[section].gist, some[section].expected_turns) for section in sections if section in some}
    shares = [(cell.value, full[section]) for section, cell in made.items()]
    if average and len(made) == len(sections) and all(value is not None and scale for value, scale in shares):
        values = [(value or 0.0) / (scale or 1.0) for value, scale in shares]
        made[AVERAGE] = Cell(sum(values) / len(values))
    return made


def _cell(gist: Gist, due: int | None) -> Cell:
    # turns that are not there yet count as what is not scored
    if due is None:
        missing = 1
    else:
        missing = due - gist.turns
    return Cell(gist.value, gist.scored, gist.expected + max(0, missing), gist.low, gist.high, digits=gist.digits)


def _cost(model: str, some: Mapping[str, RunEntry], sections: Sequence[str]) -> Row:
    costs = {section: some[section].gist.cost for section in sections if section in some}
    known = [cost for cost in costs.values() if cost is not None]
    cells = {section: Cell(cost) for section, cost in costs.items()}
    return Row(model, {**cells, "all": Cell(sum(known) if len(known) == len(costs) else None)})
