"""The order of a table's columns on a screen: the headline score first, since a narrow screen cuts off the last ones,
and last what is known of the models in words.

Files (Markdown, LaTeX, CSV, JSON) keep the order of the paper's table.
"""

from weft.types import Table

# a column of this name averages the others
HEADLINE_COLUMNS = ("Avg", "AVG", "Average", "Overall", "Total", "headline score")


def order_for_screen(table: Table) -> list[str]:
    """Return the columns of a table from left to right."""
    words = {name for row in table.rows for name in row.about}
    headline = [column for column in table.columns if column in HEADLINE_COLUMNS][:1]
    numbers = [column for column in table.columns if column not in headline and column not in words]
    return [*headline, *numbers, *(column for column in table.columns if column in words)]
