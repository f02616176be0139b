"""One number has one value wherever it is shown: exact in files and in Python, rounded once in everything else."""

import csv
import functools
import html.parser
import io
import json
import re
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace
from typer.testing import CliRunner

import weft
from browser import browser
from edits import basic_item, gedit_record, rise_record, write_gedit, write_imgedit, write_rise
from test_golden import Judge, Painter, written
from weft.benchmarks import list_benchmarks
from weft.benchmarks.weave import Weave
from weft.benchmarks.weave.tables import COLUMNS, SHORT_NAMES, build_metric_cells
from weft.cli.app import app
from weft.cli.screen import Screen
from weft.cli.tables import print_table
from weft.evaluation.session import Session
from weft.report.compare import compare
from weft.report.view.runs import build_runs_page
from weft.results.index import list_runs
from weft.results.run import headline_score
from weft.rounding import format_number
from weft.types import Row, Table, Verdict
from weft.workspace import open_journal

HEADLINES = {  # the table, the row's subset and the column that have the headline score
    "weave": ("Table 2", "", "Avg"),
    "imug": ("Table 2", "", "Avg"),
    "rover-ig": ("overall", "micro", "RV"),
    "rover-tg": ("overall", "micro", "Acc."),
    "planviz": ("Table 4", "", "Overall"),
    "weaverbench": ("Table 2", "", "Overall"),
    "opening": ("single answers", "", "Overall"),
    "gedit": ("EN: overall score by task", "", "Avg"),
    "risebench": (": accuracy", "", "Overall"),
    "imgedit": (": basic", "", "Overall"),
    "mmvet": ("by capability", "", "Total"),
    "geneval": ("by task", "", "Overall"),
    "kris": ("by dimension", "", "Overall"),
    "geneval2": ("means over prompts", "", "GM"),
}
SAME_TABLES = {"geneval-long": "geneval"}
# of both tasks, and of both languages, no cell has it
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "planviz": {"where": {"task": "gen"}},
    "gedit": {"where": {"language": "en"}},
}
EDIT_TASKS = ("text_change", "text_change", "tone_transfer", "ps_human", "ps_human", "ps_human", "style_change")
ASSETS = Path(weft.__file__).parent / "report" / "assets"


class Detector:
    """Finds the wanted objects in some images and nothing in the others."""

    name, version = "golden-judge", "1"

    def __call__(self, messages: Any, want: str, question: Any) -> Any:
        place = question.turn_ref
        names = question.schema["properties"]["objects"]["items"]["properties"]["class"]["enum"]
        objects = [{"class": name, "box": [0, 0, 9, 9], "confidence": 0.95} for name in names]
        return {"reasoning": "", "objects": objects if (int(place.sample) + place.turn) % 3 else []}


def write_geneval(folder: Path) -> Path:
    """Seven prompts of two tasks of unlike size."""
    folder.mkdir(parents=True)
    lines: list[str] = []
    for number in range(7):
        tag = "counting" if number < 2 else "single_object"
        include = [{"class": "dog", "count": 1}]
        lines.append(json.dumps({"tag": tag, "include": include, "prompt": f"a dog, number {number}"}) + "\n")
    (folder / "evaluation_metadata.jsonl").write_text("".join(lines))
    return folder


def write_data(benchmark: str, folder: Path) -> Path:
    if benchmark == "geneval":
        return write_geneval(folder)
    if benchmark == "gedit":
        return write_gedit(folder, [gedit_record(number, task) for number, task in enumerate(EDIT_TASKS)])
    if benchmark == "risebench":
        return write_rise(folder, [rise_record(number) for number in range(7)])
    if benchmark == "imgedit":
        types = ("add", "add", "remove", "style", "style", "style", "action")
        items = {str(number): basic_item(number, edit_type) for number, edit_type in enumerate(types)}
        return write_imgedit(folder, {"basic_edit.json": items})
    return written(benchmark, folder, 7)


class Evaluated(Struct, frozen=True):
    """A run, a rival, and where a report has the headline score of the run."""

    run: weft.Run
    rival: weft.Run
    home: Path
    number: int  # of the table, from 1
    table: Table
    row: Row
    column: str

    def call(self, *words: object) -> str:
        done = CliRunner().invoke(app, [*map(str, words), "--home", str(self.home)], env={"COLUMNS": "10000"})
        assert not done.exit_code, done.output
        return done.output


class Failing:
    """A judge that is down for a third of the dialogues, not the same for each metric."""

    name, version = "golden-judge", "failing"

    def __init__(self, judge: Any) -> None:
        self.judge = judge

    def __call__(self, messages: Any, want: str, question: Any) -> Any:
        place = question.turn_ref
        if (zlib.crc32(place.sample.encode()) + place.turn + len(question.metrics[0])) % 3 == 0:
            raise OSError("down")
        return self.judge(messages, want, question)


@functools.cache
def evaluate(benchmark: str, folder: Path, *, failing: bool = False) -> Evaluated:
    def name_section(session: Session) -> None:
        session.names["suite"] = benchmark

    judge: Any = Detector() if benchmark == "geneval" else Judge()
    if failing:
        judge = Failing(judge)
    ends: dict[str, Any] = {"judge": judge, "home": folder / "home", **OPTIONS.get(benchmark, {})}
    ends["data"] = write_data(benchmark, folder / "data")
    rival = weft.evaluate(benchmark, model="copy", **ends)
    run = weft.evaluate(benchmark, model=Painter(), on_start=name_section, **ends)
    title, subset, column = HEADLINES[benchmark]
    for number, table in enumerate(run.tables(), start=1):
        for row in table.rows if title in table.title else ():
            if row.subset.endswith(subset) and row.arithmetic != "official":
                return Evaluated(run, rival, folder / "home", number, table, row, column)
    raise AssertionError(f"{benchmark}: no table has its headline score")


@pytest.fixture(params=HEADLINES)
def evaluated(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Evaluated:
    return evaluate(request.param, tmp_path_factory.getbasetemp() / f"one-value-{request.param}")


def test_every_benchmark_is_here():
    assert {SAME_TABLES.get(name, name) for name in list_benchmarks()} == set(HEADLINES)


class PageTables(html.parser.HTMLParser):
    """The tables of a page, as texts by row and column."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self._in_cell = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
        elif tag == "span" and self._in_cell:
            self.tables[-1][-1][-1] += " "
        self._in_cell |= tag in ("td", "th")

    def handle_endtag(self, tag: str) -> None:
        self._in_cell &= tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self._in_cell:
            self.tables[-1][-1][-1] += data


def first_number(text: str) -> str:
    match = re.search(r"-?\d+\.\d+", text)
    return match.group() if match else ""


def line_with(text: str, *words: str) -> str:
    """The rest of the first line that has these words, after the last of them."""
    line = next(line for line in text.splitlines() if all(word in line for word in words))
    return line[line.index(words[-1]) + len(words[-1]) :]


def table_texts(one: Evaluated, folder: Path) -> dict[str, str]:
    """The headline score as each format has it in the table."""
    chosen = ("--tables", one.number, "--columns", one.column, "--rows", "ours")
    texts: dict[str, str] = {}
    for format, separator in (("md", "** |"), ("latex", " &")):
        text = one.call("report", one.run.id, "--format", format, *chosen)
        text = re.sub(r"[{\\](\[|\])}?", r"\1", text)  # brackets as both formats escape them
        texts[format] = first_number(line_with(text, one.row.label + separator))
    records = csv.DictReader(io.StringIO(one.call("report", one.run.id, "--format", "csv", *chosen)))
    texts["csv"] = next(record["value"] for record in records if record["row"] == one.row.label)
    page = weft.api.write_report([one.run], folder / "report", home=one.home).read_text()
    rows = PageTables(page).tables[one.number - 1]
    row = next(row for row in rows if row[0] == one.row.label)
    texts["html"] = first_number(row[rows[0].index(one.column)])
    notebook: Any = one.table
    cells = next(row for row in PageTables(notebook._repr_html_()).tables[0] if row[0] == one.row.label)
    texts["notebook"] = first_number(cells[1 + one.table.columns.index(one.column)])
    texts["terminal"] = first_number(line_with(print_alone(one), one.row.label))
    return texts


def print_alone(one: Evaluated) -> str:
    """The headline score as a run prints it at its end."""
    screen = Screen(file=io.StringIO(), width=10000)
    print_table(screen, replace(one.table, columns=(one.column,), rows=(one.row,)))
    assert isinstance(screen.file, io.StringIO)
    return screen.file.getvalue()


def test_a_headline_score_reads_the_same_wherever_it_is_shown(evaluated: Evaluated, tmp_path: Path):
    one, gist = evaluated, evaluated.run.gist
    assert gist.value is not None
    texts = table_texts(one, tmp_path)
    texts["runs"] = first_number(line_with(one.call("runs"), one.run.id.rpartition("-")[2], "golden-model"))
    texts["compare"] = first_number(line_with(one.call("compare", one.run.id, one.rival.id), "headline score"))
    texts["suite"] = first_number(line_with(one.call("suite", "report"), "golden-model"))
    card = csv.DictReader(io.StringIO(one.call("suite", "report", "--format", "csv")))
    texts["suite csv"] = next(record["value"] for record in card if "golden-model" in record["row"])
    journal = open_journal(one.home)
    page = PageTables(build_runs_page(list_runs(journal), {}))
    texts["view"] = first_number(next(row[3] for row in page.tables[0] if "golden-model" in row[2]))
    cell = one.row.cells[one.column]
    texts["python"] = cell.format(one.table.digits)
    texts["repr"] = first_number(repr(one.run).partition(one.run.name)[2])
    by_model = one.call("report", one.run.id, one.rival.id, "--by", "model", "--format", "md")
    texts["by model"] = first_number(line_with(by_model, "golden-model** |"))
    assert set(texts.values()) == {format_number(gist.value, gist.digits)}, texts


def test_a_headline_score_is_exact_and_the_same_in_files_and_in_python(evaluated: Evaluated):
    one, gist = evaluated, evaluated.run.gist
    cell = one.row.cells[one.column]
    document = json.loads(one.call("report", one.run.id, "--format", "json", "--tables", one.number))
    stored = next(
        row["cells"][one.column]
        for row in document["tables"][0]["rows"]
        if (row["name"], row.get("subset", ""), row.get("arithmetic")) != (one.row.name, one.row.subset, "official")
        and row["name"] == one.row.name
        and row.get("subset", "") == one.row.subset
    )
    listed = next(line for line in json.loads(one.call("runs", "--format", "json")) if line["id"] == one.run.id)
    compared = compare(one.run, one.rival).rows[0]
    full = one.run.benchmark.presentation.max_score
    share, low, high = headline_score(one.run.benchmark, one.run.verdicts, one.run.groups) or (0.0, None, None)
    values = [cell.value, stored["value"], listed["value"], compared.first, full * share]
    assert values == [pytest.approx(gist.value, abs=1e-9)] * len(values)
    bounds = [(cell.low, cell.high), (stored["low"], stored["high"]), (listed["low"], listed["high"])]
    bounds.append((full * (low or 0.0), full * (high or 0.0)))
    if gist.low is None:
        gist_bounds = (None, None)
        bounds.pop()
    else:
        gist_bounds = pytest.approx((gist.low, gist.high), abs=1e-9)
    assert bounds == [gist_bounds] * len(bounds)


@pytest.fixture(params=HEADLINES)
def partial(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Evaluated:
    return evaluate(request.param, tmp_path_factory.getbasetemp() / f"partial-{request.param}", failing=True)


def test_a_headline_score_that_lacks_verdicts_rests_on_the_same_ones_everywhere(partial: Evaluated):
    one, gist = partial, partial.run.gist
    cell = one.row.cells[one.column]
    assert cell.scored < cell.expected or cell.expected < 8  # of few, the judge may have answered all
    grid = weft.grid([one.run], "model").table.rows[0].cells["headline score"]
    document = json.loads(one.call("suite", "report", "--format", "json"))
    row = next(row for row in document["tables"][0]["rows"] if "golden-model" in row["name"])
    card = next(iter(row["cells"].values()))
    counts = [(cell.scored, cell.expected), (grid.scored, grid.expected), (card["scored"], card["expected"])]
    assert counts == [(gist.headline_scored, gist.headline_expected)] * 3
    values = [cell.value, grid.value, card.get("value")]
    assert values == [None if gist.value is None else pytest.approx(gist.value, abs=1e-9)] * 3


def test_a_comparison_that_leaves_verdicts_out_says_what_the_headline_scores_are(partial: Evaluated):
    one = partial
    comparison = compare(one.run, one.rival)
    assert comparison.alone == (pytest.approx(one.run.gist.value), pytest.approx(one.rival.gist.value))
    if comparison.unpaired:
        texts = ["-" if score is None else format_number(score, comparison.digits) for score in comparison.alone]
        assert f"with them the headline scores are {texts[0]} and {texts[1]}" in one.call(
            "compare", one.run.id, one.rival.id
        )


scores = st.lists(st.integers(0, 10), min_size=1, max_size=9)


@given(st.fixed_dictionaries(dict.fromkeys(SHORT_NAMES, scores)))
def test_a_strict_average_is_computed_from_exact_parts(points: dict[str, list[int]]):
    verdicts = [
        Verdict(f"sample {number}", 0, metric, score / 10, score=score)
        for metric, of_metric in points.items()
        for number, score in enumerate(of_metric)
    ]
    cells = build_metric_cells(verdicts, official=False)
    headline = headline_score(Weave(), verdicts, {verdict.sample: {} for verdict in verdicts})
    assert headline is not None and cells["Avg"].value == pytest.approx(headline[0], abs=1e-12)
    weights: dict[str, float] = dict(zip(COLUMNS, (0.4, 0.1, 0.2, 0.3), strict=False))
    exact = sum(weights[SHORT_NAMES[metric]] * sum(some) / len(some) / 10 for metric, some in points.items())
    assert cells["Avg"].format(3) == format_number(exact, 3)


def test_an_average_has_no_value_anywhere_while_a_part_of_it_has_none():
    verdicts = [Verdict("a", 0, "key_point", 0.5), Verdict("a", 0, "visual_consistency", None, "no reply")]
    assert build_metric_cells(verdicts, official=False)["Avg"].value is None
    assert headline_score(Weave(), verdicts, {"a": {}}) is None


@pytest.mark.parametrize(
    ("number", "digits", "text"),
    [
        (0.0625, 3, "0.063"),
        (-0.0625, 3, "-0.063"),
        (1.005, 2, "1.01"),
        (0.9945, 3, "0.995"),
        (2.5, 0, "3"),
        (0.1 + 0.7, 1, "0.8"),
        (0.28 * 100 + 0.05, 1, "28.1"),
        (-0.0004, 3, "0.000"),
        (123456.0, 2, "123456.00"),
    ],
)
def test_half_way_is_rounded_away_from_zero(number: float, digits: int, text: str):
    assert format_number(number, digits) == text


def test_pages_round_as_python_does():
    figure = re.search(r"const figure = .*?\n  };", (ASSETS / "list.js").read_text(), re.DOTALL)
    assert figure is not None
    cases = [
        (number / 1600, digits, sign) for number in range(-99, 1600, 7) for digits in (0, 1, 2, 3) for sign in (0, 1)
    ]
    with browser() as chromium:
        shown = chromium.new_page().evaluate(
            f"(cases) => cases.map(([share, digits, sign]) => {{ const data = {{full: 10, digits}}; {figure.group()} "
            "return figure(share, sign); })",
            cases,
        )
    assert shown == [format_number(10 * share, digits, sign=bool(sign)) for share, digits, sign in cases]
