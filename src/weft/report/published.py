"""All that a paper prints in tables: its results, and how far its judge agrees with people."""

from collections.abc import Iterator

from msgspec.structs import replace

from weft.benchmarks.base import Benchmark
from weft.benchmarks.paired_verdicts import PairedVerdicts
from weft.types import Row, Table


def build_published_tables(benchmark: Benchmark) -> list[Table]:
    """Return the benchmark's tables with published rows alone. Rows without a number are left out."""
    tables = [*benchmark.tables([]), *_build_agreement_tables(benchmark)]
    published: list[Table] = []
    for table in tables:
        rows = tuple(row for row in table.rows if _has_number(row))
        if rows:
            published.append(replace(table, rows=rows))
    return published


def _build_agreement_tables(benchmark: Benchmark) -> Iterator[Table]:
    """Yield the tables of agreement without a run of ours."""
    none = PairedVerdicts(name="", pairs=(), groups={}, clusters={}, judge="", dataset=benchmark.name)
    for table in benchmark.presentation.agreement_tables(none):
        yield replace(table, rows=table.published_rows)


def _has_number(row: Row) -> bool:
    return any(cell.value is not None for cell in row.cells.values())
