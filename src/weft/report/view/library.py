"""What `weft view` shows, read from the journal: runs with their progress, reports of chosen runs, plots, a search.

A report is built again only when one of its runs has progressed. One request reads at a time; nothing is written but
downscaled images."""

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import Struct

from weft.report import site
from weft.report.charts import Plot, build_plots
from weft.report.dialogues import DialogueWriter
from weft.report.gallery import ImageFiles, Thumbnails
from weft.report.html import Html
from weft.report.listing import build_listing, key_by_name
from weft.report.row_groups import arrange_rows
from weft.report.view.excerpts import Excerpt, excerpts_of
from weft.results.index import RunEntry, filter_runs, list_runs
from weft.results.run import Gist, build_tables, load_run, name_runs
from weft.workspace import open_journal

MAX_CONTENTS = 4  # combinations of runs whose reports stay in memory
MAX_HITS = 200  # of a search


class SearchHit(Struct, frozen=True):
    """A prompt, reply or verdict that matches a search."""

    run: str  # id
    sample: str
    turn: int  # from 0
    where: str  # what matches: the prompt, the reply, ...
    excerpts: list[Excerpt]  # the first matches
    more: int  # how many matches are not among them


class Library:
    """Reads one home folder. Safe to use from several threads."""

    def __init__(self, home: Path, benchmarks: Sequence[Any] = ()) -> None:
        self._benchmarks = list(benchmarks)
        self._journal = open_journal(home)
        self.gallery = ImageFiles(Thumbnails(home))
        self._lock = threading.Lock()
        self._reports: OrderedDict[tuple[str, ...], tuple[str, site.ReportContents]] = OrderedDict()
        self._plots: dict[tuple[tuple[str, ...], str], dict[str, Plot]] = {}
        self._gists: dict[str, Gist] = {}

    def runs(self, **filters: str) -> list[RunEntry]:
        """Return the runs that match (`weft.results.index.filter_runs`), sorted descending."""
        with self._lock:
            entries = list_runs(self._journal, self._benchmarks or None, self._gists)
            self._gists = {entry.record.id: entry.gist for entry in entries}
            return filter_runs(entries, **filters)[::-1]

    def stamp(self, ids: tuple[str, ...]) -> str:
        """Return a text that changes whenever one of these runs progresses."""
        with self._lock:
            return self._stamp(ids)

    def _stamp(self, ids: tuple[str, ...]) -> str:
        records = {record.id: record for record in self._journal.runs()}
        stamps: list[str] = []
        for run_id in ids:
            state: list[object] = [run_id]
            record = records.get(run_id)
            if record:
                state += [record.state, record.round, record.ended]
            state += [*self._journal.count_done(run_id), *self._journal.count_annotations(run_id)]
            stamps.append(":".join(map(str, state)))
        return ";".join(stamps)

    def contents(self, ids: tuple[str, ...]) -> site.ReportContents:
        """Return the report of these runs, built again if one has progressed."""
        with self._lock:
            return self._contents(ids)

    def _contents(self, ids: tuple[str, ...]) -> site.ReportContents:
        stamp = self._stamp(ids)
        cached = self._reports.get(ids)
        if cached is None or cached[0] != stamp:
            runs = name_runs([load_run(self._journal, run_id, self._benchmarks or None) for run_id in ids])
            cached = (stamp, site.build_contents(runs, arrange_rows(build_tables(runs), list(runs.values()))))
            self._reports[ids] = cached
        self._reports.move_to_end(ids)
        while len(self._reports) > MAX_CONTENTS:
            dropped, _ = self._reports.popitem(last=False)
            self._drop_plots(dropped)
        return cached[1]

    def _drop_plots(self, ids: tuple[str, ...]) -> None:
        self._plots = {key: plots for key, plots in self._plots.items() if key[0] != ids}

    def listing(self, ids: tuple[str, ...]) -> dict[str, Any]:
        """Return the data of the list of dialogues."""
        with self._lock:
            contents = self._contents(ids)
            cells = contents.cell_index.build_data()
            return build_listing(contents.runs, contents.dialogues, key_by_name, stamp=self._stamp(ids), cells=cells)

    def dialogue(self, ids: tuple[str, ...], key: str) -> tuple[str, Html, str | None, str | None] | None:
        """Return a sample by its key, its markup, and the keys of the previous and the next; None if it is unknown."""
        with self._lock:
            contents = self._contents(ids)
            samples = list(contents.dialogues)
            keys = [key_by_name(number, sample) for number, sample in enumerate(samples)]
            if key not in keys:
                return None
            index = keys.index(key)
            sample = samples[index]
            dialogues = contents.dialogues[sample]
            writer = DialogueWriter(self.gallery, contents.benchmark)
            body = writer.body(sample, dialogues, site.read_calls(dialogues, self._journal))
            previous = keys[index - 1] if index > 0 else None
            following = keys[index + 1] if index + 1 < len(keys) else None
            return sample, body, previous, following

    def plots(self, ids: tuple[str, ...]) -> dict[str, Plot]:
        """Return the plots of these runs by name."""
        with self._lock:
            contents = self._contents(ids)
            key = (ids, self._stamp(ids))
            if key not in self._plots:
                self._drop_plots(ids)
                self._plots[key] = {plot.name: plot for plot in build_plots(contents.runs)}
            return self._plots[key]

    def search(self, text: str) -> list[SearchHit]:
        """Return the first MAX_HITS prompts, replies and reasons that contain the text."""
        hits: list[SearchHit] = []
        with self._lock:
            for run, sample, turn, where, record in self._journal.search(msgspec.json.encode(text).decode()[1:-1]):
                excerpts, more = find_excerpts(record, text)
                if excerpts:
                    hits.append(SearchHit(run, sample, turn, where, excerpts, more))
                if len(hits) == MAX_HITS:
                    break
        return hits


def find_excerpts(record: str, text: str) -> tuple[list[Excerpt], int]:
    """Return the first matches in a JSON record of the journal, and how many more there are. Only texts and reasons are
    searched, not the record's field names."""
    return excerpts_of(_contents_of(msgspec.json.decode(record)), text)


def _contents_of(value: Any) -> Iterator[str]:
    """Yield every text and every reason of a record."""
    if isinstance(value, list):
        for child in cast(list[Any], value):
            yield from _contents_of(child)
    elif isinstance(value, dict):
        for key, child in cast(dict[str, Any], value).items():
            if key in ("text", "reason") and isinstance(child, str):
                yield child
            else:
                yield from _contents_of(child)
