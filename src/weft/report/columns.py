"""The order of a table's columns on a screen: the headline score first, since a narrow screen cuts off the last ones.

Files (Markdown, LaTeX, CSV, JSON) keep the order of the paper's table.
"""

from collections.abc import Sequence

HEADLINE_COLUMNS = ("Avg", "AVG", "Average", "Overall", "Total")  # a column of this name averages the others


def put_headline_first(columns: Sequence[str]) -> list[str]:
    headline = [column for column in columns if column in HEADLINE_COLUMNS][:1]
    return headline + [column for column in columns if column not in headline]
