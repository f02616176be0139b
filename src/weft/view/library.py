"""What the server shows, read from the journal: runs with their progress, the contents of some runs together, plots, a search.

Contents are made again only when a run has got further. One reader at a time; nothing is ever written but smaller pictures.
"""

import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any

import msgspec

from weft import api
from weft.report import site
from weft.report.charts import Plot, plots_of
from weft.report.dialogues import Writer
from weft.report.gallery import Shown
from weft.report.html import Html
from weft.report.listing import listing
from weft.store.journal import Journal, RunRecord
from weft.types import Image

KEPT = 4  # combinations of runs whose contents stay in memory
FOUND = 200


class Served:
    """Pictures under `img/`, known by the names that pages were given."""

    def __init__(self, shown: Shown) -> None:
        self._shown = shown
        self._known: dict[str, Image] = {}
        self.back = "../"

    def href(self, image: Image) -> str | None:
        if not self._shown.blobs.has(image):
            return None
        name = self._shown.name(image)
        self._known[name] = image
        return f"{self.back}img/{name}"

    def data(self, name: str) -> bytes | None:
        return self._shown.data(self._known[name]) if name in self._known else None


class Library:
    def __init__(self, home: Path) -> None:
        self._journal = Journal(home / "journal.sqlite", readonly=True)
        self.gallery = Served(Shown(home))
        self._lock = threading.Lock()
        self._made: OrderedDict[tuple[str, ...], tuple[str, site.Contents]] = OrderedDict()
        self._plots: dict[tuple[tuple[str, ...], str], dict[str, Plot]] = {}

    def runs(self) -> list[tuple[RunRecord, int]]:
        """Every run with the turns it has by now, the latest first."""
        with self._lock:
            return [(record, self._journal.progress(record.id)[0]) for record in reversed(self._journal.runs())]

    def stamp(self, ids: tuple[str, ...]) -> str:
        """Changes as the runs go on."""
        with self._lock:
            return self._stamp(ids)

    def _stamp(self, ids: tuple[str, ...]) -> str:
        states = {record.id: record.state for record in self._journal.runs()}
        return ";".join(f"{one}:{states.get(one)}:{':'.join(map(str, self._journal.progress(one)))}" for one in ids)

    def contents(self, ids: tuple[str, ...]) -> site.Contents:
        with self._lock:
            return self._contents(ids)

    def _contents(self, ids: tuple[str, ...]) -> site.Contents:
        stamp = self._stamp(ids)
        known = self._made.get(ids)
        if known is None or known[0] != stamp:
            runs = api.named([api.load_run(self._journal, one) for one in ids])
            known = (stamp, site.contents(runs, api.tables_of(runs)))
            self._made[ids] = known
        self._made.move_to_end(ids)
        while len(self._made) > KEPT:
            gone, _ = self._made.popitem(last=False)
            self._plots = {key: value for key, value in self._plots.items() if key[0] != gone}
        return known[1]

    def listing(self, ids: tuple[str, ...]) -> dict[str, Any]:
        with self._lock:
            made = self._contents(ids)
            return listing(made.runs, made.found, stamp=self._stamp(ids))

    def dialogue(self, ids: tuple[str, ...], number: int) -> tuple[str, Html, int] | None:
        with self._lock:
            made = self._contents(ids)
            if not 0 <= number < len(made.found):
                return None
            sample = list(made.found)[number]
            both = made.found[sample]
            writer = Writer(self.gallery, made.full)
            return sample, writer.body(sample, both, site.calls_of(both, self._journal)), len(made.found)

    def plots(self, ids: tuple[str, ...]) -> dict[str, Plot]:
        with self._lock:
            made = self._contents(ids)
            key = (ids, self._stamp(ids))
            if key not in self._plots:
                self._plots = {other: value for other, value in self._plots.items() if other[0] != ids}
                self._plots[key] = {plot.name: plot for plot in plots_of(made.runs)}
            return self._plots[key]

    def search(self, text: str) -> list[tuple[str, str, int, str]]:
        """(run, sample, turn, where) of what was shown, answered or judged with these words."""
        with self._lock:
            return self._journal.search(msgspec.json.encode(text).decode()[1:-1], FOUND)
