"""A suite's score card as one page: the scores, what they cost, and each benchmark's first table with all its runs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from weft.report.html import Html, build_page, inline_text, join, tag
from weft.report.numbers import page_header, render_table
from weft.results.run import build_tables, load_run, name_runs
from weft.store.blobs import write_file
from weft.store.journal import Journal
from weft.types import Table

RunIds = Mapping[str, Mapping[str, str]]  # by model, then by section


def write(
    scores: Table, costs: Table, runs: RunIds, journal: Journal | None, out: Path, benchmarks: Any = None
) -> None:
    """Write the page. `journal` has the runs, None if there are none. `benchmarks`: the user's own that runs may be
    of."""
    sections: dict[str, None] = {}
    for ids_by_section in runs.values():
        sections.update(dict.fromkeys(ids_by_section))
    links: list[Html] = []
    bodies: list[Html] = []
    for number, section in enumerate(sections):
        assert journal is not None
        links.append(join(tag("a", inline_text(section), href=f"#section-{number}"), " "))
        heading = tag("h2", inline_text(section), id=f"section-{number}")
        bodies.append(tag("section", heading, _build_section(section, runs, journal, benchmarks)))
    main = tag(
        "main",
        tag("h1", "Score card"),
        tag("p", links, class_="small"),
        render_table(scores),
        tag("h2", costs.title),
        render_table(costs),
        bodies,
    )
    page = build_page("weft: score card", page_header("", "", {}), main, kind="numbers")
    out.parent.mkdir(parents=True, exist_ok=True)
    write_file(out, page.encode(), world_readable=True)


def write_papers(tables: Sequence[Table], out: Path) -> None:
    """Write a page of papers' tables over several benchmarks, with our rows."""
    sections = [tag("section", tag("h2", inline_text(table.title)), render_table(table)) for table in tables]
    main = tag("main", tag("h1", "Papers' tables, with our rows"), sections)
    page = build_page("weft: papers' tables", page_header("", "", {}), main, kind="numbers")
    out.parent.mkdir(parents=True, exist_ok=True)
    write_file(out, page.encode(), world_readable=True)


def _build_section(section: str, runs: RunIds, journal: Journal, benchmarks: Any) -> Html:
    ids = [ids_by_section[section] for ids_by_section in runs.values() if section in ids_by_section]
    loaded = [load_run(journal, run_id, benchmarks) for run_id in ids]
    command = tag("p", tag("code", f"weft report {' '.join(ids)} --open"), class_="small soft")
    table = next(build_tables(name_runs(loaded)), None)
    if table is None:
        return join(tag("p", "no table yet", class_="soft"), command)
    title = tag("p", inline_text(table.title), class_="soft")
    glossary = loaded[0].benchmark.presentation.glossary
    return join(title, render_table(table, glossary=glossary), command)
