"""Tables for papers, set by a real LaTeX: whatever the names, the columns and the rows are, they compile and nothing
leaves the page."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import weft
from waiting import HANGS
from weft.benchmarks import load_benchmark
from weft.errors import UserError
from weft.report.layout import HEIGHT, MIN_SCALE, WIDTH, plan_layout, span_columns
from weft.report.ranking import rank_cells
from weft.report.render import render
from weft.report.select import Choices
from weft.report.tex import escape_tex
from weft.stats.repeats import build_repeats_tables
from weft.types import Cell, Row, Table, Verdict
from weft_tabletop.make import make

BENCHMARKS = (
    "weave",
    "imug",
    "rover-ig",
    "rover-tg",
    "planviz",
    "weaverbench",
    "opening",
    "gedit",
    "risebench",
    "imgedit",
    "mmvet",
)
MADE = {"weave": ("weave",), "imug": ("imug",), "rover": ("rover-ig", "rover-tg"), "planviz": ("planviz",)}
COMPOSED = "weaver:planner=openai-chat/Qwen/Qwen3-VL-32B-Instruct,visualizer=openai-images/Qwen/Qwen-Image-Edit-2509 [3 judgements each]"
SIGNS = "a_b % & # ~ ^ \\ { } < > $ | [x] *y* \"q\" 'r' `s` -- --- ,, ?` 中文 😀 αΩ→≤ é Ł ñ ï ő ş"
MARGINS = r"\documentclass{article}\usepackage[margin=1in]{geometry}"
USUAL = r"\documentclass{article}"
WATCHED = r"""\let\sized\resizebox
\renewcommand{\resizebox}[3]{\sbox0{#3}\typeout{wide: \the\wd0, \the\linewidth}\sized{#1}{#2}{#3}}"""
TWO_COLUMNS = r"\documentclass[twocolumn]{article}\usepackage[margin=0.75in]{geometry}\usepackage[T1]{fontenc}"


def beside(table: Table, name: str) -> Table:
    """The table with a row of ours, with intervals, of which some items are unscored."""
    full = max((cell.value or 0.0 for row in table.rows for cell in row.cells.values()), default=1.0)
    cell = Cell(0.5 * full, 37, 40, 0.4 * full, 0.6 * full)
    return replace(table, rows=(Row(name, dict.fromkeys(table.columns, cell), judge="openai/other"), *table.rows))


def compiled(folder: Path, preamble: str, *texts: str) -> str:
    """The log of a document of these texts, which is set without an error."""
    if shutil.which("pdflatex") is None:
        pytest.skip("there is no pdflatex (apt-get install texlive-latex-base texlive-latex-recommended)")
    body = "\n\\clearpage\n".join(texts)
    packages = rf"\usepackage{{booktabs}}\usepackage{{graphicx}}{WATCHED}"
    (folder / "t.tex").write_text(
        f"{preamble}{packages}\\begin{{document}}\n{body}\n\\end{{document}}\n", encoding="ascii"
    )
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"],
        cwd=folder,
        capture_output=True,
        timeout=HANGS,
    )
    assert done.returncode == 0, done.stdout[-2000:].decode(errors="replace")
    return (folder / "t.log").read_text(errors="replace")


def assert_on_the_page(log: str) -> None:
    too_wide = [float(points) for points in re.findall(r"Overfull \\hbox \(([\d.]+)pt", log)]
    assert max(too_wide, default=0.0) <= 1.0 and "Float too large" not in log and "multiply" not in log


def least_scale(log: str) -> float:
    """By how much the widest table was shrunk."""
    return min(float(line) / float(wide) for wide, line in re.findall(r"wide: ([\d.]+)pt, ([\d.]+)pt", log))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[weft.Run]:
    folder = tmp_path_factory.mktemp("runs")
    some: list[weft.Run] = []
    for data, names in MADE.items():
        place = make(f"tabletop-{data}", folder / data, samples=8, seed=0)
        options: dict[str, Any] = {
            "model": "tabletop/oracle",
            "judge": "tabletop/exact",
            "model_options": {"error": 0.3},
            "home": folder / "home",
        }
        some += [weft.evaluate(name, data=place, **options) for name in names]
    return some


@pytest.mark.parametrize("preamble", [MARGINS, USUAL, TWO_COLUMNS], ids=["margins", "usual", "two columns"])
def test_tables_of_every_benchmark_stay_on_the_page(runs: list[weft.Run], preamble: str, tmp_path: Path):
    texts = [run.report("latex", label=f"tab:run{place}", intervals=place % 2 == 0) for place, run in enumerate(runs)]
    for name in BENCHMARKS:
        known = load_benchmark(name)
        tables = list(known.tables([]))
        texts.append(render(tables, [], "latex", Choices(), known))
        for label, ours, intervals in (("tab:short", "tabletop/tiny", True), ("tab:long", COMPOSED, False)):
            own = [beside(table, ours) for table in tables]
            texts.append(render(own, [], "latex", Choices(label=label, intervals=intervals), known))
    log = compiled(tmp_path, preamble, *texts)
    assert_on_the_page(log)
    assert least_scale(log) >= {MARGINS: 0.8, TWO_COLUMNS: 0.75, USUAL: 0.6}[preamble]


def test_tables_as_wide_and_as_long_as_none_is_are_cut_and_stay_on_the_page(tmp_path: Path):
    columns = tuple(f"Column number {one}" for one in range(30))
    rows = tuple(Row(f"row {n}", {column: Cell(n / 90, 9, 9, n / 91, n / 89) for column in columns}) for n in range(90))
    table = Table(f"Made up of {COMPOSED}", columns, rows, "A note.")
    text = render([table], [], "latex")
    log = compiled(tmp_path, MARGINS, text, render([table], [], "latex", Choices(intervals=True, label="tab:other")))
    assert_on_the_page(log)
    assert least_scale(log) >= 0.8
    assert "(continued)" in text and text.count(r"\addtocounter{table}{-1}") == text.count(r"\begin{table*}") - 1
    cut = plan_layout(table, intervals=False, below=len(table.note))
    assert (
        len(cut.columns) > 1
        and len(cut.rows) > 1
        and all(text.count(f"row {n} &") == len(cut.columns) for n in range(90))
    )
    labels = re.findall(r"\\label{(.*?)}", text)
    assert labels[1] == f"{labels[0]}-2" and labels[0].startswith("tab:weft-made-up-of-") and labels[0].endswith("-1")
    assert len(set(labels)) == len(labels)


def test_whatever_the_names_are_it_compiles_and_shows_what_it_cannot_print(tmp_path: Path):
    rows = (
        Row(f"[{SIGNS}", {SIGNS: Cell(0.5), "*": Cell(None, 0, 3)}),
        Row("*n", {SIGNS: Cell(-0.6, 1, 1, -0.7, -0.5)}),
        Row("x" * 150, {"*": Cell(0.1)}),
        Row(SIGNS, {"*": Cell(0.1)}, kind="published"),
    )
    table = Table(f"100% of $x_1$ \\input{{/etc/passwd}} {SIGNS}", (SIGNS, "*"), rows, SIGNS)
    text = render([table], [], "latex", Choices(intervals=True))
    compiled(tmp_path, MARGINS, text)
    assert (
        text.isascii()
        and "[}U+4E2D{]}" in text
        and "[}U+1F600{]}" in text
        and r"$\alpha$$\Omega$" in text
        and "$-$0.600" in text
    )


@settings(max_examples=5)
@given(st.lists(st.text(max_size=30), min_size=150, max_size=150))
def test_texts_at_random_compile(tmp_path_factory: pytest.TempPathFactory, texts: list[str]):
    rows = tuple(Row(f"{n} {text}", {"x": Cell(0.5)}) for n, text in enumerate(texts))
    named = Table(
        " ".join(texts[:3]),
        ("x", *dict.fromkeys(text.strip() or "y" for text in texts[:5])),
        rows,
        " ".join(texts[3:9]),
    )
    compiled(tmp_path_factory.mktemp("random"), MARGINS, render([named], [], "latex"))


@given(st.text())
def test_a_text_is_ascii_and_braces_are_in_pairs(text: str):
    for made in (escape_tex(text), escape_tex(text, breaks=True)):
        bare = made.replace(r"\{", "").replace(r"\}", "")
        assert made.isascii() and "\n" not in made and bare.count("{") == bare.count("}")


@given(
    st.lists(st.text("abcdefgh ", min_size=1, max_size=30), min_size=1, max_size=40, unique=True),
    st.integers(1, 120),
    st.booleans(),
)
def test_a_layout_has_every_cell_once_and_is_not_made_to_be_unreadable(columns: list[str], count: int, intervals: bool):
    rows = tuple(Row(f"row {n}", {column: Cell(0.5, 9, 9, 0.4, 0.6) for column in columns}) for n in range(count))
    plan = plan_layout(Table("t", tuple(columns), rows), intervals=intervals, below=300)
    assert [column.name for group in plan.columns for column in group] == columns
    assert [row for piece in plan.rows for row in piece] == list(rows)
    assert plan.width <= WIDTH / MIN_SCALE and all(len(piece) * plan.size.line < HEIGHT for piece in plan.rows)


def test_what_keeps_rows_from_being_compared_stands_under_the_table(toy: Path, tmp_path: Path):
    run = weft.evaluate("weave", data=toy, model="copy", judge="constant/5", home=tmp_path)
    text = run.report("latex", tables="1")
    under = text.partition(r"\end{tabular}}")[2].partition(r"\end{table")[0]
    assert "Published rows were judged by gpt-4o, these runs by constant/5: compare with care." in under
    assert (
        "authors' prompts" in under
        and r"\label{tab:weft-weave-1}" in text
        and r"\textbf{" in text
        and r"\underline{" in text
    )
    alone = run.report("latex", tables="1", rows="ours")
    assert "compare with care" not in alone and r"\textbf{" not in alone and alone.count(r"\midrule") == 1


def test_intervals_stand_under_values_where_they_are_asked_for(runs: list[weft.Run]):
    plain, ranged = runs[0].report("latex", tables="1"), runs[0].report("latex", tables="1", intervals=True)
    cell = runs[0].table().rows[0].cells["Avg"]
    assert cell.low is not None and f"{{[}}{cell.low:.3f}, " in ranged and "95\\% intervals" in ranged
    assert r"{\scriptsize" not in plain and "95\\%" not in plain


def test_a_label_is_the_label_of_one_table_and_how_those_of_several_begin(runs: list[weft.Run]):
    assert r"\label{tab:mine}" in runs[1].report("latex", tables="2", label="tab:mine")
    assert r"\label{tab:mine-imug-2}" in runs[1].report("latex", tables="1,2", label="tab:mine")
    with pytest.raises(UserError, match="letters, digits"):
        runs[1].report("latex", label="tab}{\\x")


def published_and_own(**cells: float) -> Table:
    """A leaderboard of the paper's Table 2 with two rows of ours, one of them called by a hard name."""
    published = Row("Bagel 14B", {name: Cell(value) for name, value in cells.items()}, kind="published")
    own = Row(SIGNS, {name: Cell(value / 2) for name, value in cells.items()}, judge="j")
    other = Row("ours_2", {name: Cell(value / 4) for name, value in cells.items()}, judge="j")
    return Table("Results (paper, Table 2)", tuple(cells), (own, other, published))


def test_a_small_table_is_one_column_wide_and_is_not_shrunk(tmp_path: Path):
    rows = tuple(Row(f"our-model-{n}", {name: Cell(n / 9) for name in ("A", "B", "Avg")}) for n in range(1, 9))
    text = render([Table("Small", ("A", "B", "Avg"), rows)], [], "latex")
    assert r"\begin{table}" in text and "resizebox" not in text and "graphicx" not in text and "table*" not in text
    assert_on_the_page(compiled(tmp_path, TWO_COLUMNS, text))


def test_own_captions_labels_and_citations_are_printed_as_they_are_written(tmp_path: Path):
    table = published_and_own(Avg=0.8, KP=0.4)
    choices = Choices(caption=r"Our \emph{own} table, 50\% of $x_1$", label="tab:own", cite="chow2025,weave")
    text = render([table], [], "latex", choices)
    assert r"\caption{Our \emph{own} table, 50\% of $x_1$}" in text and r"\label{tab:own}" in text
    assert r"Bagel 14B~\cite{chow2025,weave} &" in text and "dagger" not in text.replace("daggers", "")
    assert "(paper" not in "".join(line for line in text.splitlines() if not line.startswith("%"))
    assert text.count("Best in bold") == 1, "below the table, since the caption is the author's"
    compiled(tmp_path, MARGINS, text)


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        (Choices(caption="50% of it"), r"write \\% for %"),
        (Choices(caption="A & B"), r"write \\& for &"),
        (Choices(caption="a {b"), "braces are not in pairs"),
        (Choices(caption="a\\"), "ends in a backslash"),
        (Choices(cite="a}b"), "use only letters"),
        (Choices(rank=("nobody",)), "there is no row 'nobody'; there is none; ours; strict; official; published"),
    ],
)
def test_what_latex_cannot_take_is_refused_with_what_to_write(choices: Choices, said: str):
    with pytest.raises(UserError, match=said):
        render([published_and_own(Avg=0.8)], [], "latex", choices)


def test_a_caption_is_for_one_table():
    with pytest.raises(UserError, match="2 are shown: add --tables"):
        render([published_and_own(Avg=0.8)] * 2, [], "latex", Choices(caption="Mine"))


def test_published_rows_have_a_dagger_and_its_note_only_where_they_stand_beside_others(tmp_path: Path):
    table = published_and_own(Avg=0.8)
    both = render([table], [], "latex")
    assert r"Bagel 14B$^{\dagger}$ &" in both
    assert (
        r"$^{\dagger}$ As published (Table 2 of the benchmark's paper)." in both and r"\caption{Results. Best" in both
    )
    ours = render([table], [], "latex", Choices(rows=("ours",)))
    theirs = render([table], [], "latex", Choices(rows=("published",)))
    assert "dagger" not in ours + theirs and "ublished" not in ours.replace("(paper", "")
    assert "All rows as published (Table 2" in theirs
    compiled(tmp_path, MARGINS, both, ours.replace("tab:weft", "tab:b"), theirs.replace("tab:weft", "tab:c"))


NOTE = (
    "0 to 1. Published rows were judged by x; compare with care. A cell `0.8 (37/40)` rests on 37 of 40. "
    "KP: the key points; Avg: their mean. A dash: not measured. micro: over tasks; macro: over domains."
)


def test_notes_are_about_what_is_shown():
    cells = {"KP": Cell(0.5, 3, 4), "Avg": Cell(0.5)}
    rows = (Row("a", cells, subset="micro"), Row("a", {"Avg": Cell(0.25)}, subset="macro"))
    table = Table("t", ("KP", "Avg"), (*rows, Row("b", cells, kind="published", subset="macro")), NOTE, kind="parts")

    def under(**choices: Any) -> str:
        text = render([table], [], "latex", Choices(**choices))
        return text.partition(r"\end{tabular}")[2]

    everything = under()
    for part in (
        "Published rows",
        "A cell",
        "KP: the key points; Avg: their mean.",
        "A dash",
        "micro: over tasks; macro",
    ):
        assert part in everything
    few = under(rows=("a, macro",), columns=("Avg",))
    assert few.count(".") == 3 and "0 to 1. Avg: their mean. macro: over domains." in few


def test_columns_that_begin_alike_share_a_header_with_a_rule_under_it(tmp_path: Path):
    columns = ("Avg", "Science RP", "Science RV", "Common Sense RP", "Common Sense RV", "Science")
    table = published_and_own(**dict.fromkeys(columns, 0.5))
    text = render([table], [], "latex")
    assert r" &  & \multicolumn{2}{c}{Science} & \multicolumn{2}{c}{" in text
    assert r"\cmidrule(lr){3-4}\cmidrule(lr){5-6}" in text and " & Avg & RP & RV & RP & RV & Science \\\\" in text
    assert_on_the_page(compiled(tmp_path, TWO_COLUMNS, text))


@given(st.lists(st.sampled_from(["a", "a b", "a c", "a b c", "a b d", "d", "d e"]), unique=True))
def test_every_column_is_in_one_span_and_keeps_its_name(names: list[str]):
    plan = plan_layout(Table("t", tuple(names), (Row("r", {}),)), intervals=False, below=0)
    spans = [span for piece in plan.columns for span in span_columns(piece)]
    assert [column.name for _, members in spans for column in members] == names
    for _, members in spans:
        for column in members:
            assert " ".join(filter(None, [column.group, *column.head])) == column.name


def test_rows_that_compete_can_be_chosen_and_parts_compete_apart():
    table = published_and_own(Avg=0.8)
    assert r"\textbf{0.800}" in render([table], [], "latex")
    ours = render([table], [], "latex", Choices(rank=("ours",)))
    assert r"\textbf{0.400}" in ours and r"\underline{0.200}" in ours and "among our rows" in ours
    none = render([table], [], "latex", Choices(rank=("none",)))
    assert "textbf" not in none and "Best" not in none

    def row(name: str, value: float, part: str, kind: Any = "run") -> Row:
        return Row(name, {"x": Cell(value)}, kind, subset=part)

    rows = (row("a", 0.9, "micro"), row("b", 0.9, "micro"), row("c", 0.8, "micro"))
    rows += (row("a", 0.2, "macro"), row("p", 0.3, "macro of what is printed", "published"))
    parts = Table("t", ("x",), rows, kind="parts")
    assert rank_cells(parts) == {
        ("a, micro", "x"): "best", ("b, micro", "x"): "best", ("c, micro", "x"): "second",
        ("p, macro of what is printed", "x"): "best", ("a, macro", "x"): "second",
    }  # fmt: skip
    assert "separately for micro, macro" in render([parts], [], "latex")


def test_counts_have_no_decimals():
    cells = {"n": Cell(12.0, count=True), "x": Cell(0.5)}
    text = render([Table("t", ("n", "x"), (Row("a", cells), Row("b", cells)))], [], "latex")
    assert "a & 12 & " in text and "12.0" not in text


def test_counts_of_repeated_judgements_have_no_decimals():
    repeats = tuple(Verdict("s", 0, "m", value, variant=f"repeat {n}") for n, value in ((1, 0.5), (2, 0.7)))
    (table,) = build_repeats_tables({"run": [Verdict("s", 0, "m", 0.6, merged_from=repeats)]}, ["m"])
    assert [table.rows[0].cells[column].format(table.digits) for column in ("items", "repeats")] == ["1", "2"]
