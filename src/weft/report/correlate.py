"""Correlations over models: metric with metric, or group with group, and the gap between two kinds of models.

    found = correlate_models(runs, over="metrics")
    found.table, found.plot, found.gaps

A point is a model: one of our runs, or a published row. A correlation of few models has a wide interval, which is
printed beside it."""

import statistics
from collections.abc import Sequence

from msgspec import Struct

from weft.errors import UserError
from weft.report.charts import Plot
from weft.report.heat_map import heat_map
from weft.report.layout import name_beside
from weft.report.model_scores import METRICS, ModelRow, ModelScores, collect_scores
from weft.results.run import Run
from weft.rounding import format_number
from weft.stats.correlations import Method, PointEstimate, correlate, difference_of_means
from weft.types import Cell, Row, Table

DIGITS = 2
METHODS = {"pearson": "Pearson's r", "spearman": "Spearman's rank correlation"}
DIFFERENCE = "difference"
MODELS = "models"


class Correlations(Struct, frozen=True):
    """What goes together over models. `plot` is None where no correlation is defined."""

    table: Table
    plot: Plot | None
    gaps: Table | None  # between models of two kinds, if they were asked for

    @property
    def tables(self) -> list[Table]:
        """All tables."""
        return [self.table] if self.gaps is None else [self.table, self.gaps]


def correlate_models(
    runs: Sequence[Run] = (),
    published: str = "",
    *,
    over: str = METRICS,
    metric: str = "",
    table: str = "",
    columns: Sequence[str] = (),
    without: Sequence[str] = (),
    method: Method = "pearson",
    split: str = "",
) -> Correlations:
    """Return the correlations over these runs, the published rows of a benchmark, or both.

    `over`: `metrics`, `groups`, or an axis. `metric`: of groups. `table` and `columns`: which of a table. `without`:
    rows that are left out, such as `Human`. `split`: what is known of models, such as `open`: means of each kind, and
    their difference. Raises UserError for names that are
    not there, and for fewer than three models."""
    if method not in METHODS:
        raise UserError(f"--method {method}: choose {', '.join(METHODS)}")
    scores = collect_scores(runs, published, over=over, metric=metric, table=table, columns=columns, without=without)
    complete = [row for row in scores.rows if len(row.values) > 1]
    if len(complete) < 3:
        raise UserError(f"{scores.title}: a correlation needs three models with two numbers; there are {len(complete)}")
    matrix = {
        (first, second): _correlate_columns(scores.rows, first, second, method)
        for first in scores.columns
        for second in scores.columns
    }
    found = _build_table(scores, matrix, METHODS[method])
    gaps = _build_gaps(scores, split) if split else None
    return Correlations(found, _draw(scores, matrix, found.title), gaps)


def _correlate_columns(rows: Sequence[ModelRow], first: str, second: str, method: Method) -> PointEstimate:
    """Return the correlation of two columns over the models that have both."""
    both = [row.values for row in rows if first in row.values and second in row.values]
    if first == second:
        return PointEstimate(None, len(both))
    return correlate([values[first] for values in both], [values[second] for values in both], method)


def _build_table(scores: ModelScores, matrix: dict[tuple[str, str], PointEstimate], measure: str) -> Table:
    models = name_beside(scores.columns, MODELS)
    rows: list[Row] = []
    for first in scores.columns:
        cells: dict[str, Cell] = {}
        for second in scores.columns:
            estimate = matrix[first, second]
            if first == second:
                continue
            if estimate.value is not None:
                cells[second] = Cell(estimate.value, estimate.n, estimate.n, estimate.low, estimate.high)
        cells[models] = Cell(float(matrix[first, first].n), count=True)
        rows.append(Row(first, cells, kind="part"))
    published = sum(row.is_published for row in scores.rows)
    kinds = [f"{len(scores.rows) - published} runs", f"{published} published rows"]
    points = " and ".join(kind for kind in kinds if not kind.startswith("0 "))
    note = (
        f"{measure} over {points}, with 95% intervals; each pair over the models that have both numbers. {models}: "
        f"those that have the row's number. {scores.note}".strip()
    )
    title = f"{scores.title}, correlations over models"
    return Table(title, (*scores.columns, models), tuple(rows), note, DIGITS, "breakdown")


def _draw(scores: ModelScores, matrix: dict[tuple[str, str], PointEstimate], title: str) -> Plot | None:
    values = {pair: estimate.value for pair, estimate in matrix.items()}
    known = [value for value in values.values() if value is not None]
    if not known:
        return None
    names = scores.columns
    low = -1.0 if min(known) < 0 else 0.0
    chart = heat_map(values, names, names, title=title, domain=(low, 1.0), digits=DIGITS, legend="correlation")
    lines: list[str] = []
    for index, first in enumerate(names):
        for second in names[index + 1 :]:
            value = values[first, second]
            if value is not None:
                lines.append(f"{first} and {second}: {format_number(value, DIGITS)}")
    return Plot("correlations", title, chart, f"{title}. {'; '.join(lines)}")


def _build_gaps(scores: ModelScores, split: str) -> Table:
    """Return the means of each kind of models, and the difference of two kinds."""
    kinds = list(dict.fromkeys(row.about[split] for row in scores.rows if row.about.get(split)))
    if len(kinds) < 2:
        known = dict.fromkeys(name for row in scores.rows for name in row.about)
        raise UserError(f"--split {split}: the models do not differ in it; they say {', '.join(known) or 'nothing'}")
    columns = [f"{split}: {kind}" for kind in kinds]
    rows: list[Row] = []
    for column in scores.columns:
        members = [
            [row.values[column] for row in scores.rows if row.about.get(split) == kind and column in row.values]
            for kind in kinds
        ]
        cells = {
            name: Cell(statistics.fmean(values), len(values), len(values)) if values else Cell(None)
            for name, values in zip(columns, members, strict=True)
        }
        if len(kinds) == 2:
            gap = difference_of_means(members[0], members[1])
            cells[DIFFERENCE] = Cell(gap.value, gap.n, gap.n, gap.low, gap.high)
        rows.append(Row(column, cells, kind="part"))
    shown = (*columns, DIFFERENCE) if len(kinds) == 2 else tuple(columns)
    note = "Means over models; the difference has Welch's 95% interval."
    return Table(f"{scores.title}: by {split}", shown, tuple(rows), note, scores.digits, "breakdown")
