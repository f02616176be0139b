"""PlanViz: key points with spaces around them, images of another form than their names say, files that are no image. What
remains different is in docs/reference/errata.md."""

import json
from pathlib import Path

from aiohttp import web

from conformance.planviz import Scoring, judge
from conformance.report import Report
from conformance.server import Asked
from server import drawn_as
from weft.benchmarks.planviz.files import POINT_FIELDS, TASK_LISTS

FORMS = ("BMP", "TIFF", "GIF", "cut")
BROKEN = (b"", b"no image")
PADDED = (" {}", "{} ", "{}\n", "\t{} ")


class OddScoring(Scoring):
    """Compares on a folder in which files are spoilt."""

    broken = False

    def pad_points(self) -> None:
        """Write the lists anew, with spaces around key points."""
        for listed in TASK_LISTS:
            for at, record in enumerate(self.lists.get(listed.name, ())):
                for field in POINT_FIELDS:
                    if field in record:
                        record[field][0] = PADDED[at % len(PADDED)].format(record[field][0])
            if listed.name in self.lists:
                (self.root / listed.file).write_text(json.dumps(self.lists[listed.name]))

    def made(self, missing: int) -> Path:
        folder = super().made(missing)
        for name, records in self.lists.items():
            for at in range(len(records)):
                if self.broken and at == 0:
                    (folder / name / "0.png").write_bytes(BROKEN[len(name) % 2])
                elif not self.broken and at % 3 == 2:
                    (folder / name / f"{at}.png").write_bytes(drawn_as(FORMS[at % 4], f"{name} {at}", 64))
        return folder


def compare_odd_files(scoring: OddScoring, report: Report) -> None:
    scoring.pad_points()
    scoring.compare("spaces around key points, images of other forms", report, judge)
    scoring.broken = True
    scoring.compare("files that are no image", report, refuse_broken, short=True)


def refuse_broken(asked: Asked) -> str:
    """A judge that takes no image that nothing can open, as real ones do."""
    if any(picture.startswith("pixels:none") for picture in asked.pictures):
        raise web.HTTPBadRequest(text="not an image")
    return judge(asked)
