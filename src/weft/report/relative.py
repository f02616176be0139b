"""Every metric of several runs, and by how many percent each run is above or below its baseline.

ROVER's Figure 6 has this for a model that thinks first beside the same model, and for a cascade beside the model that
draws in it.

Changes are paired: over the turns that a run and its baseline both have. Their 95% intervals are by dialogue."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from weft.errors import UserError
from weft.models.local.weights import import_extra, locate_weights
from weft.report import plots
from weft.report.charts import Plot, in_words
from weft.report.clip_scores import MEASURES, TEXTS, ClipScores, score_run
from weft.report.compare import warn_of_differences
from weft.report.grid import RELATIVE_CHANGE, build_change_cells, build_score_cell
from weft.report.select import format_with_change
from weft.results.run import Run, find_cluster, name_runs
from weft.stats.intervals import estimate_mean
from weft.stats.paired import compare_relative
from weft.types import Cell, Row, Table
from weft.workspace import open_blobs

PERCENT = 100.0
CLIP_DIGITS = 3
CLIP_RANGE = (-1.0, 1.0)
NOTE = (
    "%: by how many percent of the baseline's mean a run is above it (below: negative), over the turns that both have, "
    "with 95% intervals by dialogue."
)
CLIP_NOTE = (
    "CLIP-I: cosine similarity of the reply's image and the image that the turn asks about; lower means that more was "
    "changed. CLIP-T: of the reply's image and the text. A reply without an image has neither."
)
Baselines = Mapping[str, str]  # the title of a run's baseline by the run's title


class Relative(Struct, frozen=True):
    """The table of a comparison, and its plot; None where nothing is scored."""

    table: Table
    plot: Plot | None


def compare_with_baselines(
    runs: Mapping[str, Run], baselines: Baselines, clip: Mapping[str, ClipScores] | None = None
) -> Relative:
    """Build the table of runs by title. `clip` has the CLIP scores of each. A baseline is a run without one."""
    first = next(iter(runs.values()))
    if first.benchmark.presentation.pairwise:
        raise UserError("runs of battles compare models in pairs: they have no score to compare with a baseline's")
    scores = clip or {}
    metrics = [metric for metric in first.benchmark.metrics if metric not in first.benchmark.derived_metrics]
    bases = list(dict.fromkeys(baselines.values()))
    rows: list[Row] = []
    for title, run in runs.items():
        base = baselines.get(title, "")
        cells = _score_cells(run, runs.get(base), metrics) | _clip_cells(run, scores.get(title), scores.get(base))
        name = title
        if base and len(bases) > 1:
            name = f"{title} (against {base})"
        rows.append(Row(name, cells, run=run.id, judge=run.record.manifest.judge.name))
    names = [in_words(metric) for metric in metrics]
    pairs = [(run, runs[baselines[title]]) for title, run in runs.items() if baselines.get(title) in runs]
    note = f"{NOTE} {warn_of_differences(pairs)}".rstrip()
    if scores:
        names += MEASURES
        note += f" {CLIP_NOTE}{_describe_cut(scores)}"
    presentation = first.benchmark.presentation
    against = "a baseline"
    if len(bases) == 1:
        against = bases[0]
    title = f"{presentation.title or first.benchmark.name}: metrics, and their change against {against}"
    table = Table(title, _list_columns(names, rows), tuple(rows), note, presentation.digits, "mixed")
    return Relative(table, _build_plot(table, names, presentation.max_score))


def _score_cells(run: Run, base: Run | None, metrics: Sequence[str]) -> dict[str, Cell]:
    """Return the run's scores, each with its change against the baseline if it has one."""
    cells: dict[str, Cell] = {}
    for metric in metrics:
        name = in_words(metric)
        cells[name] = build_score_cell(run, metric)
        if base is not None:
            changes = build_change_cells(run, base, metric)
            if RELATIVE_CHANGE in changes:
                cells[f"{name} %"] = changes[RELATIVE_CHANGE]
    return cells


def _clip_cells(run: Run, scores: ClipScores | None, base: ClipScores | None) -> dict[str, Cell]:
    """Return the same for CLIP's measures; nothing without scores."""
    cells: dict[str, Cell] = {}
    if scores is None:
        return cells
    for measure in MEASURES:
        cells[measure] = _clip_cell(run, scores, measure)
        if base is not None:
            change = _clip_change_cell(run, scores, base, measure)
            if change is not None:
                cells[f"{measure} %"] = change
    return cells


def _list_columns(names: Sequence[str], rows: Sequence[Row]) -> tuple[str, ...]:
    """Return the columns that any row has: each name, then its change."""
    columns: list[str] = []
    for name in names:
        columns += [column for column in (name, f"{name} %") if any(column in row.cells for row in rows)]
    return tuple(columns)


def _describe_cut(scores: Mapping[str, ClipScores]) -> str:
    cut = max(score.cut for score in scores.values())
    if not cut:
        return ""
    return f" {cut} texts are longer than CLIP reads, and were cut."


def _by_cluster(run: Run, values: Mapping[tuple[str, int], Any]) -> dict[str, list[Any]]:
    clusters: dict[str, list[Any]] = {}
    for (sample, _), value in values.items():
        clusters.setdefault(find_cluster(run.benchmark, sample, run.groups[sample]), []).append(value)
    return clusters


def _clip_cell(run: Run, scores: ClipScores, measure: str) -> Cell:
    values = scores.values[measure]
    expected = scores.expected[measure]
    if not values:
        return Cell(None, 0, expected)
    clusters = _by_cluster(run, values)
    estimate = estimate_mean(clusters, CLIP_RANGE)
    if len(clusters) < 2:
        return Cell(estimate.value, len(values), expected, digits=CLIP_DIGITS)
    return Cell(estimate.value, len(values), expected, estimate.low, estimate.high, digits=CLIP_DIGITS)


def _clip_change_cell(run: Run, scores: ClipScores, base: ClipScores, measure: str) -> Cell | None:
    """The relative change of a similarity; None without a common turn, or above a mean that is not positive."""
    own = scores.values[measure]
    others = base.values[measure]
    pairs = {key: (value, others[key]) for key, value in own.items() if key in others}
    if not pairs:
        return None
    change = compare_relative([(1.0, _by_cluster(run, pairs))], full=CLIP_RANGE[1] - CLIP_RANGE[0])
    if change is None:
        return None
    low = None if change.low is None else PERCENT * change.low
    high = None if change.high is None else PERCENT * change.high
    return Cell(PERCENT * change.value, len(pairs), len(pairs), low, high, digits=1)


def _build_plot(table: Table, names: Sequence[str], full: float) -> Plot | None:
    """Bars by metric, as shares of full marks, with the number and the percentage next to each."""
    rows: list[dict[str, Any]] = []
    for name in names:
        scale = 1.0 if name in MEASURES else full
        for row in table.rows:
            cell = row.cells.get(name)
            if cell is None or cell.value is None:
                continue
            text = format_with_change(cell, row.cells.get(f"{name} %"), table.digits)
            bounds = [None if bound is None else bound / scale for bound in (cell.low, cell.high)]
            score = {"share of full marks": cell.value / scale, "low": bounds[0], "high": bounds[1]}
            rows.append({"metric": name, "run": row.label, "text": text, **score})
    if not rows:
        return None
    chart = plots.horizontal_bar_chart(
        rows,
        name="metric",
        x="share of full marks",
        series="run",
        title=table.title,
        order=[row.label for row in table.rows],
    )
    described = "; ".join(f"{row['metric']}, {row['run']}: {row['text']}" for row in rows)
    return Plot("relative", table.title, chart, f"{table.title}. {described}")


def parse_baselines(runs: Mapping[str, Run], texts: Sequence[str]) -> dict[str, str]:
    """Read `BASE`, the baseline of all others, or `RUN=BASE`; return the title of each run's baseline by its title.

    A run is named by its tag, its id, the beginning of its id, or its title. Without texts the first is the baseline.
    """
    titles = list(runs)
    if not texts:
        return dict.fromkeys(titles[1:], titles[0])
    baselines: dict[str, str] = {}
    for text in texts:
        run, sign, base = text.partition("=")
        if sign:
            baselines[_find_title(runs, run)] = _find_title(runs, base)
        else:
            common = _find_title(runs, text)
            baselines |= {title: common for title in titles if title not in baselines}
    return {title: base for title, base in baselines.items() if title != base}


def _find_title(runs: Mapping[str, Run], name: str) -> str:
    exact = [title for title, run in runs.items() if name in (title, run.id, run.record.names.get("tag"))]
    found = exact or [
        title
        for title, run in runs.items()
        if name and (run.id.startswith(name) or run.id.rpartition("-")[2].startswith(name))
    ]
    if len(found) != 1:
        problem = "none" if not found else "more than one"
        ids = ", ".join(run.id for run in runs.values())
        raise UserError(f"--baseline {name}: it is {problem} of the runs; there is {ids}")
    return found[0]


def compare_runs(
    runs: Sequence[Run], baseline: str | Sequence[str] = (), *, clip: str = "", text: str = "request", device: str = ""
) -> Relative:
    """Compare every metric of some runs with a baseline, in percent: `.table`, and `.plot` with its `chart`.

    `baseline`: a run that all others are compared with, or texts such as `RUN=BASE`; by default the first run. `clip`
    is a folder or a repository with CLIP's weights, for CLIP-I and CLIP-T (extra `local`), computed on `device`;
    `text` is what CLIP-T is about: the `request`, or the `reference` as the dataset describes it. Raises UserError."""
    if len(runs) < 2:
        raise UserError("name two runs or more, or a sweep: each is compared with a baseline among them")
    if text not in TEXTS:
        raise UserError(f"--text {text}: give {' or '.join(TEXTS)}")
    named = name_runs(runs)
    baselines = parse_baselines(named, [baseline] if isinstance(baseline, str) and baseline else list(baseline))
    scores: dict[str, ClipScores] = {}
    if clip:
        import_extra("transformers")
        blobs = open_blobs(runs[0].home)
        folder = locate_weights(clip, "config.json", blobs).ensure_local(_say_nothing)
        encoder = import_extra("weft.models.local.run.clip").ClipEncoder(folder, device)
        scores = {title: score_run(run, encoder, open_blobs(run.home), text) for title, run in named.items()}
    return compare_with_baselines(named, baselines, scores)


def _say_nothing(line: str) -> None:
    """Takes the progress of a download."""
