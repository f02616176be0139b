"""A suite's score card as one page: the scores, what they cost, and below them each benchmark's main table with all its
runs."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from weft.report.html import build_page, inline_text, join, tag
from weft.report.numbers import page_header, render_table
from weft.results.run import build_tables, load_run, name_runs
from weft.store.blobs import write_file
from weft.store.journal import Journal
from weft.types import Table


def write(
    scores: Table,
    costs: Table,
    runs: Mapping[str, Mapping[str, str]],
    journal: Journal,
    out: Path,
    benchmarks: Any = None,
) -> None:
    """`runs` are the ids by model and section."""
    sections = list(dict.fromkeys(section for some in runs.values() for section in some))
    parts = [
        tag(
            "section",
            tag("h2", inline_text(section), id=f"section-{number}"),
            _main_table(section, runs, journal, benchmarks),
        )
        for number, section in enumerate(sections)
    ]
    lead = tag(
        "p",
        [join(tag("a", inline_text(section), href=f"#section-{at}"), " ") for at, section in enumerate(sections)],
        class_="small",
    )
    body = tag(
        "main", tag("h1", "Score card"), lead, render_table(scores), tag("h2", costs.title), render_table(costs), parts
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    write_file(
        out, build_page("weft: score card", page_header("", "", {}), body, kind="numbers").encode(), world_readable=True
    )


def _main_table(section: str, runs: Mapping[str, Mapping[str, str]], journal: Journal, benchmarks: Any) -> Any:
    ids = [some[section] for some in runs.values() if section in some]
    found = [load_run(journal, one, benchmarks) for one in ids]
    again = tag("p", tag("code", f"weft report {' '.join(ids)} --open"), class_="small soft")
    table = next(build_tables(name_runs(found)), None)
    if table is not None:
        title = tag("p", inline_text(table.title), class_="soft")
    else:
        title = None
    return join(title, render_table(table) if table is not None else tag("p", "no table yet", class_="soft"), again)
