"""A report as a folder: `index.html` (numbers), `dialogues.html` (the list), `d/N.html` (one page per dialogue),
`plots/`, `img/`. It opens offline, on any device: nothing in it points out of the folder.

The folder is written next to its final place and moved there when it is complete. `write_single` puts everything into
one page, for small runs."""

import base64
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import Struct

from weft.benchmarks.base import Benchmark
from weft.errors import UserError
from weft.report import plots
from weft.report.caveats import published_judge_of
from weft.report.cells import CellIndex
from weft.report.charts import Plot, build_plots
from weft.report.compare import Comparison, compare
from weft.report.dialogues import DialogueWriter, RunDialogue, build_dialogue_page
from weft.report.gallery import MAX_SIDE, ImageFiles, InlineImages, Thumbnails
from weft.report.html import Html, data_island, join, tag
from weft.report.listing import build_list_page, build_listing, dialogues_by_sample
from weft.report.numbers import (
    MAX_UNFOLDED,
    DialogueLinks,
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

MAX_SINGLE_FILE_BYTES = 50_000_000  # of images, as data URLs, in a single file
MARKER = ".weft-report"  # lists the files of the report
LINKS = {"Numbers": "index.html", "Dialogues": "dialogues.html"}


class ReportContents(Struct, frozen=True):
    """What the pages of a report are built from."""

    title: str
    runs: Mapping[str, Any]  # by title
    tables: Sequence[Table]
    summaries: Mapping[str, Summary]  # by title
    comparisons: Sequence[Comparison]
    dialogues: Mapping[str, Sequence[RunDialogue]]  # by sample, one entry per run
    benchmark: Benchmark
    cell_index: CellIndex
    pooled_runs: Mapping[str, Any] = {}  # what plots show, if not the runs one by one
    first_plots: Sequence[Plot] = ()  # what is plotted before the benchmark's own plots

    @property
    def runs_to_plot(self) -> Mapping[str, Any]:
        return self.pooled_runs or self.runs

    def build_plots(self) -> list[Plot]:
        """Return all plots of the report, in order."""
        return [*self.first_plots, *build_plots(self.runs_to_plot)]


def build_contents(
    runs: Mapping[str, Run],
    tables: Sequence[Table],
    pooled_runs: Mapping[str, Run] | None = None,
    first_plots: Sequence[Plot] = (),
) -> ReportContents:
    """Collect what a report shows. `pooled_runs`: runs over seeds as one, by the title of their row. `first_plots`
    come before the benchmark's own."""
    benchmark = next(iter(runs.values())).benchmark
    titles = ", ".join(runs) if len(runs) <= MAX_UNFOLDED else f"{len(runs)} runs"
    dialogues = dialogues_by_sample(runs)
    comparisons = _compare_runs(pooled_runs or runs)
    return ReportContents(
        title=f"{benchmark.name}: {titles}",
        runs=runs,
        tables=tables,
        summaries={title: run.summary() for title, run in runs.items()},
        comparisons=comparisons,
        dialogues=dialogues,
        benchmark=benchmark,
        cell_index=CellIndex(runs, tables, dialogues, comparisons),
        pooled_runs=pooled_runs or {},
        first_plots=first_plots,
    )


def _compare_runs(runs: Mapping[str, Run]) -> list[Comparison]:
    """Compare all pairs of few runs; of many, each with the first."""
    titled = list(runs.items())
    pairs: Iterable[tuple[tuple[str, Run], tuple[str, Run]]] = itertools.combinations(titled, 2)
    if len(titled) > MAX_UNFOLDED:
        pairs = zip(itertools.repeat(titled[0]), titled[1:], strict=False)
    comparisons: list[Comparison] = []
    for (first_title, first), (second_title, second) in pairs:
        if _can_compare(first, second):
            comparisons.append(compare(first, second, names=(first_title, second_title)))
    return comparisons


def _can_compare(first: Run, second: Run) -> bool:
    if first.benchmark.presentation.pairwise or first.id == second.id:
        return False
    return not _scored_keys(first).isdisjoint(_scored_keys(second))


def _scored_keys(run: Run) -> set[tuple[str, int, str]]:
    return {(verdict.sample, verdict.turn, verdict.metric) for verdict in run.verdicts if verdict.value is not None}


def write(contents: ReportContents, journal: Journal, home: Path, out: Path, *, side: int = MAX_SIDE) -> Path:
    """Write the report's folder; return the path of its `index.html`."""
    out = check_replaceable(out)
    write_folder(out, lambda folder: _write_pages(contents, journal, Thumbnails(home, side), folder))
    return out / "index.html"


def _write_pages(contents: ReportContents, journal: Journal, thumbnails: Thumbnails, folder: Path) -> None:
    images = ImageFiles(thumbnails)
    _write_dialogues(contents, journal, images, folder / "d")
    images.write(folder / "img")
    list_page = build_list_page(
        contents.title,
        build_listing(contents.runs, contents.dialogues, cells=contents.cell_index.build_data()),
        contents.benchmark.metrics,
        page_header(contents.title, "Dialogues", LINKS),
    )
    (folder / "dialogues.html").write_text(list_page, encoding="utf-8")
    body = build_numbers(contents, _save_plots(contents.build_plots(), folder), "dialogues.html")
    numbers_page = build_numbers_page(contents.title, page_header(contents.title, "Numbers", LINKS), body)
    (folder / "index.html").write_text(numbers_page, encoding="utf-8")
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    (folder / MARKER).write_text("\n".join(files) + "\n", encoding="utf-8")


def _write_dialogues(contents: ReportContents, journal: Journal, images: ImageFiles, folder: Path) -> None:
    folder.mkdir()
    benchmark = contents.title.partition(":")[0]
    last = len(contents.dialogues) - 1
    writer = DialogueWriter(images, contents.benchmark)
    for number, (sample, body) in enumerate(dialogue_bodies(contents, journal, writer)):
        page = build_dialogue_page(
            f"{benchmark}: {sample}",
            body,
            home="../dialogues.html",
            before=f"{number - 1}.html" if number > 0 else None,
            after=f"{number + 1}.html" if number < last else None,
        )
        (folder / f"{number}.html").write_text(page, encoding="utf-8")


def check_replaceable(out: Path) -> Path:
    """Return the absolute path, if a report may be written there: to no or an empty folder, or over a report to which
    nobody has added files. Raises UserError otherwise."""
    out = out.resolve()
    if not out.exists():
        return out
    if not out.is_dir():
        raise UserError(f"{out} is a file; give a folder with --out, or add --single-file")
    files = {str(path.relative_to(out)) for path in out.rglob("*") if not path.is_dir() or path.is_symlink()}
    marker = out / MARKER
    if marker.is_file():
        files -= {MARKER, *marker.read_text(encoding="utf-8").splitlines()}
    if files:
        raise UserError(f"{out} has files that are not part of a report ({min(files)}); give another --out")
    return out


def dialogue_bodies(contents: ReportContents, journal: Journal, writer: DialogueWriter) -> Iterator[tuple[str, Html]]:
    """Yield each sample with the markup of its dialogue."""
    for sample, dialogues in contents.dialogues.items():
        yield sample, writer.body(sample, dialogues, read_calls(dialogues, journal))


def read_calls(dialogues: Sequence[RunDialogue], journal: Journal) -> dict[str, CallRecord]:
    """Return the calls that a dialogue's page shows, by cache key: the judge's, and those of a strategy."""
    keys: list[str] = []
    for dialogue in dialogues:
        for verdicts in dialogue.verdicts.values():
            for verdict in verdicts:
                keys += verdict.keys
        for turn in dialogue.turns.values():
            if len(turn.reply.keys) > 1:
                keys += turn.reply.keys
    if not keys:
        return {}
    return journal.calls(keys)


def build_numbers(
    contents: ReportContents, plot_links: Sequence[PlotLinks], list_page: str, stamp: str | None = None
) -> Html:
    """Return the content of the page of numbers. `list_page`: where rows of groups lead to."""
    return build_numbers_body(
        contents.title,
        contents.tables,
        contents.summaries,
        plot_links,
        contents.comparisons,
        build_warnings(contents.summaries, contents.tables, published_judge_of(contents.benchmark)),
        DialogueLinks(list_page, _group_links(contents, list_page), contents.cell_index),
        stamp,
        describe_shared_settings(contents.runs.values()),
        contents.benchmark.presentation.glossary,
    )


def _group_links(contents: ReportContents, list_page: str) -> dict[str, str]:
    """Return by group the address of the list with that group's filter."""
    links: dict[str, str] = {}
    for dialogues in contents.dialogues.values():
        for dialogue in dialogues:
            for turn in dialogue.turns.values():
                for axis in contents.benchmark.axes:
                    if axis in turn.groups:
                        group = turn.groups[axis]
                        links[group] = f"{list_page}#group%3A{axis}={quote(group, safe='')}"
    return links


def _save_plots(built: Sequence[Plot], folder: Path) -> list[PlotLinks]:
    links: list[PlotLinks] = []
    for plot in built:
        stem = re.sub(r"[^\w.-]+", "-", plot.name)
        files = plots.save(plot.chart, folder / "plots" / stem)
        dark = plots.render_svg(plot.chart, dark=True)
        (folder / "plots" / f"{stem}-dark.svg").write_text(dark, encoding="utf-8")
        formats = {path.suffix[1:].upper(): f"plots/{path.name}" for path in files}
        links.append(PlotLinks(plot, f"plots/{stem}.svg", f"plots/{stem}-dark.svg", formats))
    return links


def write_single(contents: ReportContents, journal: Journal, home: Path, out: Path, *, side: int = MAX_SIDE) -> Path:
    """Write everything as one page: numbers, plots as data URLs, dialogues as templates. Raises UserError if the images
    are too large for one page."""
    if out.is_dir():
        raise UserError(f"{out} is a folder; --single-file writes a file, such as {out / 'report.html'}")
    images = InlineImages(Thumbnails(home, side))
    writer = DialogueWriter(images, contents.benchmark)
    templates: list[Html] = []
    for number, (_, body) in enumerate(dialogue_bodies(contents, journal, writer)):
        templates.append(tag("template", body, id=f"d{number}"))
    size = sum(map(len, images.data_urls.values()))
    if size > MAX_SINGLE_FILE_BYTES:
        raise UserError(
            f"--single-file: {len(images.data_urls)} images come to {size / 1e6:.0f} MB, too much for one page; "
            "leave it out to write a folder"
        )
    templates.append(data_island("images", msgspec.json.encode(images.data_urls).decode()))
    links = [PlotLinks(plot, _data_url(plot), _data_url(plot, dark=True)) for plot in contents.build_plots()]
    numbers = build_numbers(contents, links, "")
    folded = tag("details", tag("summary", "Numbers and plots"), numbers, class_="numbers", open=True)
    page = build_list_page(
        contents.title,
        build_listing(contents.runs, contents.dialogues, single=True, cells=contents.cell_index.build_data()),
        contents.benchmark.metrics,
        join(page_header(contents.title, "", {}), folded),
        templates=join(templates),
        kind="list single",
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    write_file(out, page.encode(), world_readable=True)
    return out


def _data_url(plot: Plot, *, dark: bool = False) -> str:
    svg = plots.render_svg(plot.chart, dark=dark)
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"
