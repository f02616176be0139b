"""A suite's score card as one page: the scores, what they cost, and below them each benchmark's main table with all its runs."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from weft.report.html import join, name, page, tag
from weft.report.numbers import table_of, top
from weft.results.run import load_run, named, tables_of
from weft.store.blobs import write_file
from weft.store.journal import Journal
from weft.types import Table


def write(scores: Table, costs: Table, runs: Mapping[str, Mapping[str, str]], journal: Journal, out: Path, benchmarks: Any = None) -> None:
    """`runs` are the ids by model and section."""
    sections = list(dict.fromkeys(section for some in runs.values() for section in some))
    parts = [
        tag("section", tag("h2", name(section), id=f"section-{number}"), _main_table(section, runs, journal, benchmarks))
        for number, section in enumerate(sections)
    ]
    lead = tag("p", [join(tag("a", name(section), href=f"#section-{at}"), " ") for at, section in enumerate(sections)], class_="small")
    body = tag("main", tag("h1", "Score card"), lead, table_of(scores), tag("h2", costs.title), table_of(costs), parts)
    out.parent.mkdir(parents=True, exist_ok=True)
    write_file(out, page("weft: score card", top("", "", {}), body, kind="numbers").encode(), shown=True)


def _main_table(section: str, runs: Mapping[str, Mapping[str, str]], journal: Journal, benchmarks: Any) -> Any:
    ids = [some[section] for some in runs.values() if section in some]
    found = [load_run(journal, one, benchmarks) for one in ids]
    again = tag("p", tag("code", f"weft report {' '.join(ids)} --open"), class_="small soft")
    table = next(tables_of(named(found)), None)
    title = tag("p", name(table.title), class_="soft") if table is not None else None
    return join(title, table_of(table) if table is not None else tag("p", "no table yet", class_="soft"), again)
