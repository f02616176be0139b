"""Tables on the terminal."""

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from weft.report.render import shown
from weft.types import Table


def show_table(console: Console, table: Table) -> None:
    made = RichTable(title=Text(table.title), title_justify="left")
    made.add_column("", min_width=24, overflow="fold")
    for column in table.columns:
        made.add_column(column, justify="right")
    for name, cells in table.rows.items():
        made.add_row(Text(name), *(shown(cells.get(column), table.digits) for column in table.columns))
    console.print(made)
