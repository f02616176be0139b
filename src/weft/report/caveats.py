"""Warnings about rows that must not be compared: other judges, and two arithmetics. Shown on pages and under LaTeX
tables."""

from collections.abc import Collection

from weft.benchmarks.base import Benchmark
from weft.types import Table

ARITHMETIC_NOTE = (
    "(strict): the paper's formulas, a model failure counts as zero. "
    "(official): what the released scripts compute from the same replies."
)


def published_judge_of(benchmark: Benchmark) -> str:
    """Return the judge of the published rows; an empty text if it is unknown."""
    if benchmark.official is None:
        return ""
    return benchmark.official.published_judge


def judge_caveats(judges: Collection[str], published_judge: str, has_published_rows: bool) -> list[str]:
    """Return warnings for rows by these judges, beside published rows by another."""
    lines: list[str] = []
    if len(judges) > 1:
        lines.append(f"These runs have different judges ({', '.join(sorted(judges))}): do not compare their scores.")
    if not published_judge or not has_published_rows:
        return lines
    others = [judge for judge in sorted(judges) if published_judge.lower() not in judge.lower()]
    if others:
        lines.append(
            f"Published rows were judged by {published_judge}, these runs by {', '.join(others)}: compare with care."
        )
    return lines


def table_caveats(table: Table, published_judge: str) -> list[str]:
    """Return the warnings for the rows of one table."""
    judges = {row.judge for row in table.run_rows if row.judge}
    return judge_caveats(judges, published_judge, bool(table.published_rows))


def row_notes(table: Table) -> list[str]:
    """Return what a reader must know of single numbers of the table, a sentence each."""
    sentences: list[str] = []
    for row in table.rows:
        sentences += [f"{row.label}, {column}: {note}." for column, note in row.notes.items()]
    return sentences
