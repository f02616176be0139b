"""Every overall number that we ship of a paper, computed again from the columns that the paper prints.

What differs by more than rounding is named in the data (`recomputed` in the row of `published.json`), beside the row
wherever weft shows it, and on the page of errata."""

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace

from weft.benchmarks import load_benchmark
from weft.benchmarks.gedit.tables import TASK_COLUMNS
from weft.benchmarks.geneval.tables import COLUMNS as GENEVAL_COLUMNS
from weft.benchmarks.kris.tables import KNOWLEDGE as KRIS_KNOWLEDGE
from weft.benchmarks.rows import read_published
from weft.benchmarks.weave.tables import average_weights, official_average
from weft.report.numbers import render_table
from weft.report.render import render
from weft.report.select import Choices

ERRATA = (Path(__file__).parents[2] / "docs/reference/errata-printed-numbers.md").read_text()
PAPERS = {
    "weave": "WEAVE",
    "imug": "IMUG-Bench",
    "rover": "ROVER",
    "planviz": "PlanViz",
    "gedit": "GEdit-Bench in WEAVE",
}
PACKAGES = ("weave", "imug", "rover", "planviz", "weaverbench", "opening", "gedit", "risebench", "imgedit", "kris",
            "geneval", "mmvet")  # fmt: skip

Row = Mapping[str, Any]
Columns = Mapping[str, Callable[[Row], float | None]]  # an overall column -> how the paper computes it


class Formulas(Struct, frozen=True):
    """How the overall columns of one table follow from the others. A difference below `rounding` is rounding: half a
    unit of what is computed from, and half a unit of what is printed."""

    columns: Columns
    rounding: float


def mean_of(*names: str) -> Callable[[Row], float | None]:
    def compute(row: Row) -> float | None:
        values = [row[name] for name in names]
        return None if None in values else statistics.fmean(values)

    return compute


def crossed(groups: Sequence[str], *metrics: str) -> list[str]:
    return [f"{group}_{metric}" for group in groups for metric in metrics]


# Numbers of turns, inferred: they fit the overall numbers of all other models (WEAVE, to 0.0011) or of five of eight
# models (IMUG-Bench, to 0.1).
WEAVE_TURNS = {"table7": (67, 22), "table8": (181, 2), "table9": (23, 6), "table10": (54, 12)}  # images, texts
IMUG_TEXT_TURNS = {"StaticSpatial": 5264 * 0.4575, "TemporalCausal": 5264 * 0.3685, "Hybrid": 5264 * 0.174}
IMUG_IMAGE_TURNS = {"StaticSpatial": 6770 * 0.484, "TemporalCausal": 6770 * 0.330, "Hybrid": 6770 * 0.186}
WEAVE = read_published("weft.benchmarks.weave")


def weave_overall(row: Row) -> float | None:
    """The formula on metrics pooled over all turns, as the released summary has it."""
    place = WEAVE["table2"]["rows"].index(row)
    parts = [(turns, WEAVE[table]["rows"][place]) for table, turns in WEAVE_TURNS.items()]
    pooled: dict[str, float] = {}
    for metric in ("KP", "VC", "IQ", "ACC"):
        is_text = metric == "ACC"
        if all(part[metric] is not None for _, part in parts):
            turns = sum(counts[is_text] for counts, _ in parts)
            pooled[metric] = sum(counts[is_text] * part[metric] for counts, part in parts) / turns
    return sum(weight * pooled[metric] for metric, weight in average_weights(pooled).items())


def imug_overall(row: Row) -> float:
    turns = {f"{name}_Und": count for name, count in IMUG_TEXT_TURNS.items()}
    turns |= {f"{name}_Gen": count for name, count in IMUG_IMAGE_TURNS.items()}
    return sum(count * row[name] for name, count in turns.items()) / sum(turns.values())


def imug_images(row: Row) -> float:
    return sum(count * row[name] for name, count in IMUG_IMAGE_TURNS.items()) / sum(IMUG_IMAGE_TURNS.values())


def planviz_overall(row: Row) -> float:
    """The mean of the sub-tasks' Avgs: of the printed ones or of the exact ones, whichever is nearer to the print."""
    printed = statistics.fmean(row[f"{name}_Avg"] for name in SUBTASKS)
    exact = statistics.fmean(row[name] for name in crossed(SUBTASKS, "Cor", "Vis", "Ef"))
    return min(printed, exact, key=lambda value: abs(value - row["Overall"]))


def weaver_overall(row: Row) -> float:
    content = statistics.fmean(row[f"CC_{name}"] for name in ("intra_output", "input_to_image", "input_to_text"))
    image = statistics.fmean(row[f"IC_{name}"] for name in ("entity", "style"))
    return statistics.fmean((row["PA"], row["NC"], content, image, row["CP"]))


def without_ties(row: Row) -> float:
    """Wins over wins and losses, from the rates that count a tie as nothing and as half a win."""
    tied = 2 * (row["with_tie_0.5"] - row["with_tie_0"])
    return 100 * row["with_tie_0"] / (100 - tied)


DOMAINS = ("NatureScience", "CultureArt", "CommonSense", "Logic")
SCENARIOS = ("PhysicalWorldModel", "LogicalAssistant", "VisualPerception")
SUBTASKS = ("Route", "Workflow", "WebUI")
CRITERIA = ("Completeness", "Content Quality", "Content Richness", "Correctness", "Human Preference Alignment")
PLANVIZ_COLUMNS = {
    **{f"{name}_Avg": mean_of(*crossed([name], "Cor", "Vis", "Ef")) for name in SUBTASKS},
    "Overall": planviz_overall,
}
IMUG_PARTS = ("StaticSpatial", "TemporalCausal", "Hybrid")
KRIS_SCORES = {"Attribute": 275 * 3, "Spatial": 100 * 3, "Temporal": 74 * 3, "Social": 125 * 4, "Natural": 393 * 4,
               "Logical": 150 * 4, "Decomposition": 150 * 3}  # fmt: skip


def kris_mean(*names: str) -> Callable[[Row], float | None]:
    """The mean over single scores: three of each edit, four where knowledge is scored."""

    def compute(row: Row) -> float | None:
        return sum(KRIS_SCORES[name] * row[name] for name in names) / sum(KRIS_SCORES[name] for name in names)

    return compute


FORMULAS: Mapping[tuple[str, str], Formulas] = {
    ("weave", "table2"): Formulas({"Avg": weave_overall}, 0.0015),
    **{("weave", table): Formulas({"Avg": official_average}, 0.001) for table in WEAVE_TURNS},
    ("imug", "table2"): Formulas({"Avg": imug_overall}, 0.15),
    ("imug", "table4"): Formulas({"Average": imug_images}, 0.1),
    ("imug", "table7"): Formulas({"Avg": mean_of(*crossed(IMUG_PARTS, "Img", "Dynamic"))}, 0.001),
    ("rover", "table2"): Formulas({f"Overall_{m}": mean_of(*crossed(DOMAINS, m)) for m in ("RP", "Align", "RV")}, 0.1),
    ("rover", "table3"): Formulas(
        {f"Overall_{m}": mean_of(*crossed(SCENARIOS, m)) for m in ("IR", "Align", "Acc")}, 0.1
    ),
    ("rover", "table4"): Formulas({"Overall": mean_of(*crossed(DOMAINS, "RV", "VC", "IQ"))}, 0.1),
    ("planviz", "table3"): Formulas(PLANVIZ_COLUMNS, 0.01),
    ("planviz", "table4"): Formulas(PLANVIZ_COLUMNS, 0.01),
    ("weaverbench", "table1"): Formulas({"total": lambda row: row["text_only"] + row["image_text"]}, 0.5),
    ("weaverbench", "table2"): Formulas({"Overall": weaver_overall}, 0.01),
    ("gedit", "weave_table3"): Formulas({"Avg": mean_of(*TASK_COLUMNS.values())}, 0.01),
    ("kris", "bagel_dimensions"): Formulas(
        {
            **{column: kris_mean(*(name.capitalize() for name in names)) for column, names in KRIS_KNOWLEDGE.items()},
            "Overall": kris_mean(*KRIS_SCORES),
        },
        0.02,
    ),
    ("geneval", "weave_table4"): Formulas({"Overall": mean_of(*GENEVAL_COLUMNS)}, 0.01),
    ("opening", "scores"): Formulas(
        {"Overall": mean_of(*CRITERIA, "Image-Text Coherency", "Multi-step Consistency")}, 0.01
    ),
    ("opening", "win_rates/human"): Formulas({"without_tie": without_ties}, 0.04),
    ("opening", "win_rates/gpt4o"): Formulas({"without_tie": without_ties}, 0.04),
    ("opening", "table4"): Formulas({"without_tie": without_ties}, 0.4),  # 92% of IntJudge's verdicts are ties
}
# Tables in which no column follows from others of the same table.
WITHOUT_OVERALL = {
    ("imug", "table3"), ("imug", "table6"), ("rover", "table5"), ("planviz", "table2"), ("planviz", "table5"),
    ("gedit", "weaver_table3"), ("risebench", "weave_table4"), ("imgedit", "weaver_table3"),
    ("geneval", "weaver_table3"), ("geneval", "weaver_table3_long"), ("mmvet", "weave_table4"),
}  # fmt: skip


def shipped_tables() -> Iterator[tuple[str, str, Sequence[Row]]]:
    for package in PACKAGES:
        published = read_published(f"weft.benchmarks.{package}")
        tables: dict[str, Any] = {name: table for name, table in published.items() if isinstance(table, dict)}
        tables |= {f"win_rates/{judge}": table for judge, table in tables.pop("win_rates", {}).items()}
        for name, table in tables.items():
            if "rows" in table:
                yield package, name, table["rows"]


TABLES = list(shipped_tables())


def mismatches(rows: Sequence[Row], formulas: Formulas) -> dict[tuple[int, str], float]:
    found: dict[tuple[int, str], float] = {}
    for place, row in enumerate(rows):
        for column, compute in formulas.columns.items():
            value = compute(row)
            printed = row[column]
            if value is None or printed is None:
                continue
            if abs(value - printed) >= formulas.rounding - 1e-9:
                found[place, column] = value
    return found


def test_every_table_that_is_shipped_is_computed_again_or_has_nothing_to_compute():
    names = [(package, name) for package, name, _ in TABLES]
    assert set(names) == set(FORMULAS) | WITHOUT_OVERALL and len(names) == len(set(names))


@pytest.mark.parametrize(("package", "table"), FORMULAS)
def test_a_printed_number_follows_from_its_columns_or_is_named(package: str, table: str):
    rows = next(rows for *name, rows in TABLES if name == [package, table])
    named = {
        (place, column): value for place, row in enumerate(rows) for column, value in row.get("recomputed", {}).items()
    }
    found = mismatches(rows, FORMULAS[package, table])
    assert set(named) == set(found), [(rows[place].get("model"), column) for place, column in set(named) ^ set(found)]
    for key, value in found.items():
        assert named[key] == pytest.approx(value, abs=FORMULAS[package, table].rounding / 2), rows[key[0]]


@pytest.mark.parametrize("package", PAPERS)
def test_numbers_that_do_not_follow_are_on_the_page_of_errata(package: str):
    lines = [line for line in ERRATA.splitlines() if line.startswith(f"| {PAPERS[package]} |")]
    for name, table, rows in TABLES:
        if name != package:
            continue
        of_table = "\n".join(line for line in lines if f"| {table.removeprefix('table')} |" in line)
        for row in rows:
            for column, value in row.get("recomputed", {}).items():
                assert f"{row['model']}" in of_table
                assert f"{shorten(row[column])} ({shorten(value)})" in of_table, (row["model"], column)


def shorten(value: float) -> str:
    return str(value).removeprefix("0")


def test_a_note_stands_beside_the_row_and_goes_with_its_column():
    weave = load_benchmark("weave")
    tables = list(weave.tables([]))
    first = Choices(tables=("1",))
    for text in (render(tables, [], "md", first, weave), render_table(tables[0])):
        assert "Avg: its columns give 0.4056" in text
    assert "its columns" not in render(tables, [], "md", replace(first, columns=("Science",)), weave)
    assert "its columns" not in render(tables, [], "md", replace(first, rows=("AnyEdit",)), weave)


def test_no_row_of_planviz_table_3_is_a_mix_of_bagel_in_table_5():
    """A sub-task's number is a mix of its open and its closed mean, and none of three exceeds three times their mean."""
    published = read_published("weft.benchmarks.planviz")
    halves = [row for row in published["table5"]["rows"] if (row["model"], row["task"]) == ("Bagel", "editing")]
    rows = {row["model"]: row for row in published["table3"]["rows"]}
    for model, column, metric in (("Bagel", "Route_Ef", "Ef"), ("Bagel (Thinking)", "Workflow_Vis", "Vis")):
        assert rows[model][column] - 0.005 > 3 * (max(half[metric] for half in halves) + 0.005)
    assert "FLUX.1 dev" not in rows and halves[0]["doubt"]
