"""What the server shows, read from the journal: runs with their progress, the contents of some runs together, plots, a
search.

Contents are made again only when a run has got further. One reader at a time; nothing is ever written but smaller
pictures."""

import itertools
import re
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
from weft.results.index import RunEntry, filter_runs, list_runs
from weft.results.run import Gist, build_tables, load_run, name_runs
from weft.workspace import open_journal

MAX_CONTENTS = 4  # combinations of runs whose contents stay in memory
MAX_HITS = 200
CUTS = 3  # places that are quoted of one reply, request or verdict
AROUND = 80  # characters on each side of what was found


class Excerpt(Struct, frozen=True):
    """What was found, as it is written there, and what stands around it."""

    before: str
    hit: str
    after: str


class SearchHit(Struct, frozen=True):
    """Where something was found: its first places there, and how many `more` there are."""

    run: str
    sample: str
    turn: int
    where: str
    excerpts: list[Excerpt]
    more: int


class Library:
    def __init__(self, home: Path, benchmarks: Sequence[Any] = ()) -> None:
        self._benchmarks = list(benchmarks)
        self._journal = open_journal(home)
        self.gallery = ImageFiles(Thumbnails(home))
        self._lock = threading.Lock()
        self._made: OrderedDict[tuple[str, ...], tuple[str, site.ReportContents]] = OrderedDict()
        self._plots: dict[tuple[tuple[str, ...], str], dict[str, Plot]] = {}
        self._gists: dict[str, Gist] = {}

    def runs(self, **wanted: str) -> list[RunEntry]:
        """Those that are wanted (`weft.results.index.chosen`), the latest, the best or the dearest first. What was
        reckoned of a run that goes on is not reckoned again before it has got further."""
        with self._lock:
            found = list_runs(self._journal, self._benchmarks or None, self._gists)
            self._gists = {one.record.id: one.gist for one in found}
            return filter_runs(found, **wanted)[::-1]

    def stamp(self, ids: tuple[str, ...]) -> str:
        """Changes as the runs go on."""
        with self._lock:
            return self._stamp(ids)

    def _stamp(self, ids: tuple[str, ...]) -> str:
        records = {record.id: record for record in self._journal.runs()}
        stamps: list[str] = []
        for one in ids:
            record = records.get(one)
            if record:
                told = (record.state, record.round, record.ended)
            else:
                told = ()
            stamps.append(
                ":".join(map(str, (one, *told, *self._journal.count_done(one), *self._journal.count_annotations(one))))
            )
        return ";".join(stamps)

    def contents(self, ids: tuple[str, ...]) -> site.ReportContents:
        with self._lock:
            return self._contents(ids)

    def _contents(self, ids: tuple[str, ...]) -> site.ReportContents:
        stamp = self._stamp(ids)
        there = self._made.get(ids)
        if there is None or there[0] != stamp:
            runs = name_runs([load_run(self._journal, one, self._benchmarks or None) for one in ids])
            there = (stamp, site.build_contents(runs, list(build_tables(runs))))
            self._made[ids] = there
        self._made.move_to_end(ids)
        while len(self._made) > MAX_CONTENTS:
            gone, _ = self._made.popitem(last=False)
            self._plots = {key: value for key, value in self._plots.items() if key[0] != gone}
        return there[1]

    def listing(self, ids: tuple[str, ...]) -> dict[str, Any]:
        with self._lock:
            made = self._contents(ids)
            return build_listing(made.runs, made.dialogues, key_by_name, stamp=self._stamp(ids))

    def dialogue(self, ids: tuple[str, ...], key: str) -> tuple[str, Html, str | None, str | None] | None:
        """A sample by its key, its markup, and the keys of those around it."""
        with self._lock:
            made = self._contents(ids)
            keys = [key_by_name(number, sample) for number, sample in enumerate(made.dialogues)]
            if key not in keys:
                return None
            at = keys.index(key)
            sample = list(made.dialogues)[at]
            both = made.dialogues[sample]
            body = DialogueWriter(self.gallery, made.benchmark).body(sample, both, site.read_calls(both, self._journal))
            return sample, body, keys[at - 1] if at else None, keys[at + 1] if at + 1 < len(keys) else None

    def plots(self, ids: tuple[str, ...]) -> dict[str, Plot]:
        with self._lock:
            made = self._contents(ids)
            key = (ids, self._stamp(ids))
            if key not in self._plots:
                self._plots = {other: value for other, value in self._plots.items() if other[0] != ids}
                self._plots[key] = {plot.name: plot for plot in build_plots(made.runs)}
            return self._plots[key]

    def search(self, text: str) -> list[SearchHit]:
        """What was asked, shown, answered or given as a reason with these words; the first FOUND of them."""
        with self._lock:
            found = self._journal.search(msgspec.json.encode(text).decode()[1:-1])
            hits = (
                SearchHit(run, sample, turn, where, *find_excerpts(said, text))
                for run, sample, turn, where, said in found
            )
            return list(itertools.islice((hit for hit in hits if hit.excerpts), MAX_HITS))


def find_excerpts(said: str, text: str) -> tuple[list[Excerpt], int]:
    """The first places where JSON from the journal has a text among what people and models said, not among its own
    names, and how many more there are."""
    wanted = re.compile(re.escape(text), re.IGNORECASE)
    places = [(one, found) for one in _said(msgspec.json.decode(said)) for found in wanted.finditer(one)]
    return [_cut(one, found) for one, found in places[:CUTS]], max(0, len(places) - CUTS)


def _cut(said: str, found: re.Match[str]) -> Excerpt:
    start = max(0, found.start() - AROUND)
    end = min(len(said), found.end() + AROUND)
    before = said[start : found.start()]
    after = said[found.end() : end]
    return Excerpt(("…" if start else "") + before, found.group(), after + ("…" if end < len(said) else ""))


def _said(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for one in cast(list[Any], value):
            yield from _said(one)
    elif isinstance(value, dict):
        for key, one in cast(dict[str, Any], value).items():
            if key in ("text", "reason") and isinstance(one, str):
                yield one
            else:
                yield from _said(one)
