"""What keeps the rows of a table from being compared: other judges, and two arithmetics. Said on pages, and under tables in papers."""

from collections.abc import Collection

from weft.types import Table

OFFICIAL = (
    "(strict): the paper's formulas, a model's failure counts as zero. (official): what the released scripts compute from the same replies."
)


def judge_caveats(judges: Collection[str], published_judge: str, published: bool) -> list[str]:
    """Of the judges of our own rows, and the one of the published rows, if there are any."""
    made: list[str] = []
    if len(judges) > 1:
        made.append(f"These runs have different judges ({', '.join(sorted(judges))}): their numbers do not compare.")
    others = [judge for judge in judges if published_judge and published_judge.lower() not in judge.lower()]
    if others and published:
        made.append(f"Published rows were judged by {published_judge}, these runs by {', '.join(sorted(others))}: compare with care.")
    return made


def caveats(table: Table, published_judge: str) -> list[str]:
    """The same for the rows that one table has."""
    judges = {row.judge for row in table.ours if row.judge}
    return judge_caveats(judges, published_judge, bool(table.published))
