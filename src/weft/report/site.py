"""A report as a folder that opens from anywhere: `index.html` (numbers), `dialogues.html` (the list), `d/N.html` (one
page a dialogue), `plots/`, `img/`. Nothing in it points out of the folder. `single_file` puts everything into one page,
for small runs.

The folder is written beside its place and moved there when it is whole."""

import base64
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import Struct

from weft.benchmarks.base import Benchmark
from weft.errors import UserError
from weft.report import plots
from weft.report.caveats import published_judge_of
from weft.report.charts import Plot, build_plots
from weft.report.compare import Comparison, compare
from weft.report.dialogues import DialogueWriter, RunDialogue, build_dialogue_page
from weft.report.gallery import SIDE, ImageFiles, InlineImages, Thumbnails
from weft.report.html import Html, data_island, join, tag
from weft.report.listing import build_list_page, build_listing, dialogues_by_sample
from weft.report.numbers import (
    MAX_UNFOLDED,
    PlotLinks,
    build_numbers_body,
    build_numbers_page,
    build_warnings,
    page_header,
)
from weft.results.run import Run, describe_shared_settings
from weft.results.summary import Summary
from weft.store.blobs import write_file, write_folder
from weft.store.journal import CallRecord, Journal
from weft.types import Table

MAX_SINGLE_FILE_BYTES = 50_000_000  # bytes of pictures, as they are written, that a single file may hold
MARKER = ".weft-report"  # lists the files that are ours
LINKS = {"Numbers": "index.html", "Dialogues": "dialogues.html"}


class ReportContents(Struct, frozen=True):
    """All that the pages of some runs are made from."""

    title: str
    runs: Mapping[str, Any]
    tables: Sequence[Table]
    summaries: Mapping[str, Summary]
    comparisons: Sequence[Comparison]
    dialogues: Mapping[str, Sequence[RunDialogue]]
    benchmark: Benchmark
    pooled_runs: Mapping[str, Any] = {}  # what plots show, where that is not the runs one by one

    @property
    def runs_to_plot(self) -> Mapping[str, Any]:
        return self.pooled_runs or self.runs


def build_contents(
    runs: Mapping[str, Run], tables: Sequence[Table], drawn: Mapping[str, Run] | None = None
) -> ReportContents:
    """`drawn`: runs that are one row and one line, under its name."""
    named = list(runs.items())
    rivals = list((drawn or runs).items())
    benchmark = named[0][1].benchmark
    if len(rivals) <= 3:
        pairs = itertools.combinations(rivals, 2)
    else:
        pairs = ((rivals[0], other) for other in rivals[1:])
    comparisons = [compare(a, b, names=(first, second)) for (first, a), (second, b) in pairs if _comparable(a, b)]
    title = f"{benchmark.name}: {', '.join(runs) if len(runs) <= MAX_UNFOLDED else f'{len(runs)} runs'}"
    return ReportContents(
        title,
        runs,
        tables,
        {label: run.summary() for label, run in named},
        comparisons,
        dialogues_by_sample(runs),
        benchmark,
        drawn or {},
    )


def _comparable(first: Run, second: Run) -> bool:
    if first.benchmark.presentation.pairwise:
        return False
    scored = {(v.sample, v.turn, v.metric) for v in first.verdicts if v.value is not None}
    return first.id != second.id and any(
        (v.sample, v.turn, v.metric) in scored for v in second.verdicts if v.value is not None
    )


def write(made: ReportContents, journal: Journal, home: Path, out: Path, *, side: int = SIDE) -> Path:
    """The folder; gives its `index.html`."""
    out = check_replaceable(out)
    write_folder(out, lambda part: _write(made, journal, Thumbnails(home, side), part))
    return out / "index.html"


def _write(made: ReportContents, journal: Journal, shown: Thumbnails, part: Path) -> None:
    gallery = ImageFiles(shown)
    (part / "d").mkdir()
    for number, (sample, body) in enumerate(dialogue_bodies(made, journal, DialogueWriter(gallery, made.benchmark))):
        if number:
            before = f"{number - 1}.html"
        else:
            before = None
        if number + 1 < len(made.dialogues):
            after = f"{number + 1}.html"
        else:
            after = None
        (part / "d" / f"{number}.html").write_text(
            build_dialogue_page(
                f"{made.title.partition(':')[0]}: {sample}", body, home="../dialogues.html", before=before, after=after
            ),
            encoding="utf-8",
        )
    gallery.write(part / "img")
    data = build_listing(made.runs, made.dialogues)
    (part / "dialogues.html").write_text(
        build_list_page(made.title, data, made.benchmark.metrics, page_header(made.title, "Dialogues", LINKS)),
        encoding="utf-8",
    )
    body = build_numbers(made, _saved(build_plots(made.runs_to_plot), part), "dialogues.html")
    (part / "index.html").write_text(
        build_numbers_page(made.title, page_header(made.title, "Numbers", LINKS), body), encoding="utf-8"
    )
    files = sorted(str(file.relative_to(part)) for file in part.rglob("*") if file.is_file())
    (part / MARKER).write_text("\n".join(files) + "\n", encoding="utf-8")


def check_replaceable(out: Path) -> Path:
    """Where a report may go: nothing, an empty folder, or a report to which nobody has added anything."""
    out = out.resolve()
    if not out.exists():
        return out
    if not out.is_dir():
        raise UserError(f"{out} is a file; give a folder with --out, or --single-file")
    there = {str(file.relative_to(out)) for file in out.rglob("*") if not file.is_dir() or file.is_symlink()}
    marker = out / MARKER
    if marker.is_file():
        ours = {MARKER, *marker.read_text(encoding="utf-8").splitlines()}
    else:
        ours = set[str]()
    if there - ours:
        raise UserError(f"{out} has files that are no part of a report ({min(there - ours)}); give another --out")
    return out


def dialogue_bodies(made: ReportContents, journal: Journal, writer: DialogueWriter) -> Iterator[tuple[str, Html]]:
    """Each dialogue and its markup in turn, with the calls behind it from the journal."""
    for sample, both in made.dialogues.items():
        yield sample, writer.body(sample, both, read_calls(both, journal))


def read_calls(both: Sequence[RunDialogue], journal: Journal) -> dict[str, CallRecord]:
    keys = [key for side in both for some in side.verdicts.values() for verdict in some for key in verdict.keys]
    keys += [
        key for side in both for turn in side.turns.values() if len(turn.reply.keys) > 1 for key in turn.reply.keys
    ]
    if keys:
        return journal.calls(keys)
    return {}


def build_numbers(made: ReportContents, drawn: Sequence[PlotLinks], place: str, stamp: str | None = None) -> Html:
    """`place` is the page of the list, for the rows that lead to their dialogues."""
    groups = {
        (key, value)
        for both in made.dialogues.values()
        for s in both
        for turn in s.turns.values()
        for key, value in turn.groups.items()
    }
    links = {
        value: f"{place}#group%3A{key}={quote(value, safe='')}" for key, value in groups if key in made.benchmark.axes
    }
    warnings = build_warnings(made.summaries, made.tables, published_judge_of(made.benchmark))
    common = describe_shared_settings(made.runs.values())
    return build_numbers_body(
        made.title, made.tables, made.summaries, drawn, made.comparisons, warnings, links, stamp, common
    )


def _saved(drawn: Sequence[Plot], folder: Path) -> list[PlotLinks]:
    made: list[PlotLinks] = []
    for plot in drawn:
        stem = re.sub(r"[^\w.-]+", "-", plot.name)
        files = plots.save(plot.chart, folder / "plots" / stem)
        (folder / "plots" / f"{stem}-dark.svg").write_text(plots.render_svg(plot.chart, dark=True), encoding="utf-8")
        formats = {file.suffix[1:].upper(): f"plots/{file.name}" for file in files}
        made.append(PlotLinks(plot, f"plots/{stem}.svg", f"plots/{stem}-dark.svg", formats))
    return made


def write_single(made: ReportContents, journal: Journal, home: Path, out: Path, *, side: int = SIDE) -> Path:
    """Everything in one page: numbers, plots as data, dialogues as templates."""
    if out.is_dir():
        raise UserError(f"{out} is a folder; --single-file writes a file, such as {out / 'report.html'}")
    gallery = InlineImages(Thumbnails(home, side))
    writer = DialogueWriter(gallery, made.benchmark)
    templates = [
        tag("template", body, id=f"d{number}")
        for number, (_, body) in enumerate(dialogue_bodies(made, journal, writer))
    ]
    size = sum(map(len, gallery.data_urls.values()))
    if size > MAX_SINGLE_FILE_BYTES:
        raise UserError(
            f"--single-file: {len(gallery.data_urls)} pictures come to {size / 1e6:.0f} MB, too much for one page; leave it out for a folder"
        )
    templates.append(data_island("pictures", msgspec.json.encode(gallery.data_urls).decode()))
    data = build_listing(made.runs, made.dialogues, single=True)
    drawn = [PlotLinks(plot, _data_url(plot), _data_url(plot, dark=True)) for plot in build_plots(made.runs_to_plot)]
    inside = tag(
        "details", tag("summary", "Numbers and plots"), build_numbers(made, drawn, ""), class_="numbers", open=True
    )
    page = build_list_page(
        made.title,
        data,
        made.benchmark.metrics,
        join(page_header(made.title, "", {}), inside),
        templates=join(templates),
        kind="list single",
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    write_file(out, page.encode(), world_readable=True)
    return out


def _data_url(plot: Plot, *, dark: bool = False) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(plots.render_svg(plot.chart, dark=dark).encode()).decode()}"
