"""What keeps the rows of a table from being compared: other judges, and two arithmetics. Said on pages, and under
tables in papers."""

from collections.abc import Collection

from weft.benchmarks.base import Benchmark
from weft.types import Table

ARITHMETIC_NOTE = "(strict): the paper's formulas, a model's failure counts as zero. (official): what the released scripts compute from the same replies."


def published_judge_of(benchmark: Benchmark) -> str:
    """Who judged the published rows; nothing where that is not known."""
    if benchmark.official is not None:
        return benchmark.official.published_judge
    return ""


def judge_caveats(judges: Collection[str], judge_of_paper: str, published: bool) -> list[str]:
    """Of the judges of our own rows, and the one of the published rows, if there are any."""
    made: list[str] = []
    if len(judges) > 1:
        made.append(f"These runs have different judges ({', '.join(sorted(judges))}): their numbers do not compare.")
    others = [judge for judge in judges if judge_of_paper and judge_of_paper.lower() not in judge.lower()]
    if others and published:
        made.append(
            f"Published rows were judged by {judge_of_paper}, these runs by {', '.join(sorted(others))}: compare with care."
        )
    return made


def table_caveats(table: Table, judge_of_paper: str) -> list[str]:
    """The same for the rows that one table has."""
    judges = {row.judge for row in table.run_rows if row.judge}
    return judge_caveats(judges, judge_of_paper, bool(table.published_rows))
