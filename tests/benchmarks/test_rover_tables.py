"""ROVER's tables against the paper's own cells and the summary that its repository ships, both ways; and the arithmetic
at random against a second implementation."""

import math
import statistics
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.benchmarks.base import RunResults
from weft.benchmarks.official import MissingScore
from weft.benchmarks.rover.arithmetic import RoverEntry, build_entry, build_macro_cell, build_micro_cell, pearson
from weft.benchmarks.rover.facts import RoverFacts
from weft.benchmarks.rover.ig import RoverIG, rubric
from weft.benchmarks.rover.ig import tables as ig
from weft.benchmarks.rover.tg import tables as tg
from weft.benchmarks.rows import read_published
from weft.types import OfficialReading, Verdict

PAPER = read_published("weft.benchmarks.rover")
DOMAINS = ("NatureScience", "CultureArt", "CommonSense", "Logic")
SCENARIOS = ("PhysicalWorldModel", "LogicalAssistant", "VisualPerception")


def cut(value: float) -> float:
    """To one decimal, as the paper cuts."""
    return math.floor(value * 10 + 1e-9) / 10


def test_sizes():
    assert [row["reasoning_images"] for row in PAPER["table5"]["rows"]] == [78, 150, 78] and 904 + 381 == 1285


def test_overall_of_table_2_mixes_two_means():
    """11 of 24 cells are the plain mean of the domains, cut (one of them rounded); 12 fit one task-weighted mean within
    half a point; one fits neither."""
    plain: set[tuple[str, str]] = set()
    weighted: set[tuple[str, str]] = set()
    neither: set[tuple[str, str]] = set()
    for row in PAPER["table2"]["rows"]:
        for key in ("RP", "Align", "RV"):
            values = [row[f"{domain}_{key}"] for domain in DOMAINS]
            if None in values:
                assert row[f"Overall_{key}"] is None
                continue
            printed = row[f"Overall_{key}"]
            if printed in (cut(sum(values) / 4), round(sum(values) / 4, 1)):
                plain.add((row["model"], key))
            elif (
                abs(sum(share * value for share, value in zip((0.33, 0.32, 0.21, 0.14), values, strict=True)) - printed)
                <= 0.5
            ):
                weighted.add((row["model"], key))
            else:
                neither.add((row["model"], key))
    assert (len(plain), len(weighted), neither) == (11, 12, {("UniCoT", "RP")})
    assert cut((87.9 + 80.2 + 77.2 + 60.2) / 4) == 76.3  # GPT-5, Align, printed as 76.4
    assert {("GPT-5", key) for key in ("RP", "Align", "RV")} <= plain and ("Nano Banana", "RV") in weighted


def test_overall_of_table_3_is_the_mean_of_the_scenarios_but_for_three():
    off: set[tuple[str, str, str, float]] = set()
    count = 0
    for row in PAPER["table3"]["rows"]:
        for key in ("IR", "Align", "Acc"):
            values = [row[f"{scenario}_{key}"] for scenario in SCENARIOS]
            if None in values:
                continue
            count += 1
            if cut(sum(values) / 3) != row[f"Overall_{key}"]:
                off.add((row["model"], row["reasoning_mode"], key, round(sum(values) / 3, 2)))
    assert count == 21
    assert off == {
        ("UniCoT", "Vis.-Aug.", "Align", 30.17),
        ("BAGEL-Think", "Text", "Acc", 43.7),
        ("GPT-4o", "Text", "Acc", 57.07),
    }


def test_overall_of_table_4_is_the_mean_of_twelve_for_closed_models_alone():
    means = {
        row["model"]: sum(row[f"{domain}_{key}"] for domain in DOMAINS for key in ("RV", "VC", "IQ")) / 12
        for row in PAPER["table4"]["rows"]
    }
    printed = {row["model"]: row["Overall"] for row in PAPER["table4"]["rows"]}
    fits = {model for model in means if cut(means[model]) == printed[model]}
    assert fits == {"Nano Banana", "Gemini 2.0 Flash", "GPT-5"}
    assert round(means["Qwen-Image-Edit"], 1) == 69.7 and printed["Qwen-Image-Edit"] == 47.1


def test_pictures_of_tables_2_and_4_agree():
    second = {row["model"]: row for row in PAPER["table2"]["rows"]}
    shared = [row for row in PAPER["table4"]["rows"] if row["model"] in second]
    assert len(shared) >= 5
    assert all(row[f"{domain}_RV"] == second[row["model"]][f"{domain}_RV"] for row in shared for domain in DOMAINS)


def test_the_shipped_summary_of_the_second_half():
    """404 tasks, two of them without a score for the picture: from the means by type to those over all."""
    by_type = {  # scored for VR and RA, then their means
        "physical": (106, 108, 36.08490566037736, 57.870370370370374),
        "logical": (138, 138, 17.57246376811594, 53.07971014492754),
        "perception": (101, 101, 72.77227722772277, 58.663366336633665),
        "perception_next": (57, 57, 55.70175438596491, 55.26315789473684),
    }
    for at, due in ((0, 41.72885572139303), (1, 56.06435643564357)):
        total = sum(row[at] * row[2 + at] for row in by_type.values()) / sum(row[at] for row in by_type.values())
        assert total == pytest.approx(due, abs=1e-9)
    everything = sum(row[0] * row[2] + row[1] * row[3] for row in by_type.values()) / sum(
        row[0] + row[1] for row in by_type.values()
    )
    assert everything == pytest.approx(48.91439205955335, abs=1e-9)


# our rows


def judged(sample: str, metric: str, score: float | None, official: Any = ..., **more: Any) -> Verdict:
    read = score if official is ... else official
    reading = (
        None if official is None else OfficialReading(text=read) if isinstance(read, str) else OfficialReading(read)
    )
    value = None if score is None else (score - 1) / 4
    return Verdict(sample, 0, metric, value, score=score, reading=reading, **more)


def entries(verdicts: Sequence[Verdict]) -> list[RoverEntry]:
    return [build_entry(one, rubric.OFFICIAL) for one in verdicts]


def run_of(
    verdicts: Sequence[Verdict], groups: dict[str, dict[str, str]], name: str = "m", dataset: str = "rover-ig"
) -> RunResults:
    return RunResults(name, groups, RoverIG().merge_variants(verdicts), dataset, name, "judge")


def small(scores: dict[str, dict[str, float]], name: str = "m") -> RunResults:
    """Scores by task and metric; groups from the ids."""
    verdicts = [judged(task, metric, score) for task, some in scores.items() for metric, score in some.items()]
    groups = {task: dict(zip(("dimension", "type"), ig.parse_id(task), strict=True)) for task in scores}
    return run_of(verdicts, groups, name)


def test_micro_and_macro_are_both_named():
    scores = {
        "science_temporal_1": dict.fromkeys(rubric.METRICS, 5.0),
        "science_temporal_2": dict.fromkeys(rubric.METRICS, 5.0),
        "science_causal_3": dict.fromkeys(rubric.METRICS, 5.0),
        "logic_abstract_1": dict.fromkeys(rubric.METRICS, 1.0),
    }
    table = next(ig.tables([small(scores)]))
    assert table.cells("m, micro")["RV"].value == 75.0 and table.cells("m, macro")["RV"].value == 50.0
    assert table.cells("m, micro")["AVG"].value == 75.0 and table.cells("m, macro")["AVG"].value == 50.0
    names = [row.label for row in table.published_rows]
    assert "GPT-5, macro of what is printed" in names and "GPT-5, Overall as printed" in names
    macro_cell, printed = (
        table.cells(f"GPT-5, {what}")["RV"].value for what in ("macro of what is printed", "Overall as printed")
    )
    assert macro_cell == 63.75 and printed == 63.7
    assert table.cells("Qwen-Image-Edit, macro of what is printed")["RV"].value == pytest.approx(48.17, abs=0.01)


def test_tables_2_and_4_have_ours_before_the_published():
    found = list(ig.tables([small({"science_temporal_1": dict.fromkeys(rubric.METRICS, 4.0)})]))
    second, fourth = found[1], found[2]
    assert second.rows[0].name == "m" and second.rows[0].cells["Science RV"].value == 75.0
    assert (
        second.cells("Nano Banana")["Culture Align."].value == 81.9
        and second.cells("BAGEL")["Science RP"].value is None
    )
    assert fourth.cells("Step1X-Edit v1.1")["Logic IQ"].value == 85.9
    assert len(second.published_rows) == 12 and len(fourth.published_rows) == 11


def test_parts_by_dimension_and_type():
    scores = {
        "science_temporal_1": dict.fromkeys(rubric.METRICS, 5.0),
        "culture_temporal_1": dict.fromkeys(rubric.METRICS, 3.0),
        "logic_math_1": dict.fromkeys(rubric.METRICS, 1.0),
    }
    found = {table.title: table for table in ig.tables([small(scores)])}
    by_type = found["m: by type"]
    assert by_type.cells("temporal")["RP"].value == 75.0 and by_type.cells("mathematical")["RP"].value == 0.0
    assert (
        found["m: by dimension"].cells("culture")["VC"].value == 50.0
        and found["m: by dimension"].cells("overall")["VC"].value == 50.0
    )


def test_the_official_way_sorts_by_ids_and_leaves_out_what_it_does_not_know():
    verdicts = [judged("humanity_synthetic_1", metric, 5) for metric in rubric.METRICS] + [
        judged("science_temporal_1", metric, 3) for metric in rubric.METRICS
    ]
    groups = {
        "humanity_synthetic_1": {"dimension": "culture", "type": "imaginative"},
        "science_temporal_1": {"dimension": "science", "type": "temporal"},
    }
    found = {table.title: table for table in ig.tables([run_of(verdicts, groups)])}
    strict, official = found["m: by dimension, strict"], found["m: by dimension, official"]
    assert [row.name for row in strict.rows] == ["science", "culture", "overall"]
    assert [row.name for row in official.rows] == ["science", "overall"]
    assert official.cells("overall")["RV"].value == strict.cells("overall")["RV"].value == 75.0


def test_official_failures_are_minus_25_and_lower_the_mean():
    verdicts = [judged("science_temporal_1", rubric.VISUAL, 5), judged("science_temporal_2", rubric.VISUAL, None, 0)]
    assert [one.official for one in entries(verdicts)] == [100, -25]
    assert [one.strict for one in entries(verdicts)] == [100, None]
    assert (
        build_micro_cell(entries(verdicts), official=True).value == 37.5
        and build_micro_cell(entries(verdicts), official=False).value == 100.0
    )


def test_correlations_between_types_over_models():
    runs = []
    for at, (a, b, c) in enumerate(((1, 1, 5), (2, 3, 4), (3, 3, 3), (5, 5, 1))):
        scores = {
            "science_temporal_1": {rubric.VISUAL: float(a), rubric.PROCESS: 3.0},
            "science_spatial_1": {rubric.VISUAL: float(b), rubric.PROCESS: 3.0},
            "logic_abstract_1": {rubric.VISUAL: float(c), rubric.PROCESS: 3.0},
        }
        runs.append(small(scores, f"m{at}"))
    (table,) = [one for one in ig.tables(runs) if "Pearson" in one.title]
    assert table.columns == ("temporal", "spatial", "abstract")
    assert table.cells("temporal")["temporal"].value == 1.0 and table.cells("temporal")["abstract"].value == -1.0
    due = statistics.correlation([0, 25, 50, 100], [0, 50, 50, 100])
    assert table.cells("temporal")["spatial"].value == table.cells("spatial")["temporal"].value == due
    assert not [one for one in ig.tables(runs[:2]) if "Pearson" in one.title]  # two models correlate anyhow


def test_nothing_varies_no_correlation():
    assert pearson([1, 1, 1], [1, 2, 3]) is None and pearson([1, 2], [1, 2]) is None


Scores = st.lists(
    st.tuples(
        st.sampled_from(["science", "culture", "common_sense", "logic"]),
        st.sampled_from(rubric.METRICS),
        st.one_of(st.integers(1, 5), st.none()),
        st.one_of(st.integers(-3, 9), st.none()),
        st.booleans(),
    ),
    min_size=1,
    max_size=40,
)


@given(Scores)
def test_both_arithmetics_against_second_ones(found: list[tuple[str, str, int | None, int | None, bool]]):
    """Strict: failures are zero, the unscored are in no mean. Official: what was read counts, whatever it is; failures
    are left out."""
    verdicts, by_domain = [], {}
    strict, official = [], []
    for at, (domain, metric, score, read, failed) in enumerate(found):
        name = f"{domain}_temporal_{at}"
        one = (
            Verdict(name, 0, metric, 0.0, by="failure")
            if failed
            else judged(name, metric, score, None if read is None else read)
        )
        verdicts.append(one)
        strict += [0.0] if failed else [] if score is None else [25.0 * (score - 1)]
        official += [] if failed or read is None else [25.0 * (read - 1)]
        by_domain.setdefault(domain, []).append(one)
    for values, way in ((strict, False), (official, True)):
        made = build_micro_cell(entries(verdicts), official=way)
        assert made.value == (pytest.approx(sum(values) / len(values)) if values else None)
        assert made.scored == len(values)
    made = build_macro_cell([entries(some) for some in by_domain.values()], official=False)
    means = [[100 * one.value for one in some if one.value is not None] for some in by_domain.values()]
    due = None if not all(means) else sum(sum(some) / len(some) for some in means) / len(means)
    assert made.value == (None if due is None else pytest.approx(due))


def test_what_the_released_code_keeps():
    kept = rubric.OFFICIAL.find_reading
    assert kept(judged("a", rubric.VISUAL, 4)) == OfficialReading(4)
    assert kept(judged("a", rubric.VISUAL, None, "4.5")) == OfficialReading(text="4.5")
    assert isinstance(kept(judged("a", rubric.VISUAL, 4, None)), MissingScore)  # it found nothing in what we could read
    assert kept(Verdict("a", 0, rubric.PROCESS, 0.0, by="rule", detail=RoverFacts(no_text=True))) == OfficialReading(1)
    assert isinstance(kept(Verdict("a", 0, rubric.VISUAL, 0.0, by="failure")), MissingScore)
    assert isinstance(kept(judged("a", rubric.PROCESS, 4, detail=RoverFacts(no_image=True))), MissingScore)


def test_table_3_with_both_modes():
    verdicts = [
        Verdict("physical_1", 0, "interleaved_reasoning", 0.5, reading=OfficialReading(3), score=3),
        Verdict("physical_1", 0, "reasoning_alignment", 0.25, reading=OfficialReading(2), score=2),
        Verdict("physical_1", 0, "accuracy", 1.0, by="rule"),
        Verdict("physical_1", 1, "accuracy_in_words", 0.0, by="rule"),
        Verdict("jigsaw_1", 0, "accuracy", 0.0, by="rule"),
        Verdict("jigsaw_1", 0, "reasoning_alignment", 0.0, by="failure"),
        Verdict("jigsaw_1", 0, "interleaved_reasoning", 0.0, by="failure"),
        Verdict("jigsaw_1", 1, "accuracy_in_words", 0.0, by="rule"),
    ]
    groups = {
        "physical_1": {"scenario": "Physical World", "type": "physical"},
        "jigsaw_1": {"scenario": "Visual Perception", "type": "jigsaw"},
    }
    tables = list(tg.tables([RunResults("m", groups, verdicts, "rover-tg", "r", "judge")]))
    overall, third, gain = tables[:3]
    assert (
        overall.cells("m (strict), Vis.-Aug., micro")["IR"].value == 25.0
        and overall.cells("m (official), Vis.-Aug., micro")["IR"].value == 50.0
    )
    assert (
        overall.cells("m (strict), Vis.-Aug., macro")["Acc."].value == 50.0
        and overall.cells("m, Text, micro")["Acc."].value == 0.0
    )
    assert third.cells("m (strict), Vis.-Aug.")["Physical World Acc."].value == 100.0
    assert third.cells("Nano Banana, Text")["Visual Perception Acc."].value == 71.2 and len(third.published_rows) == 11
    assert overall.cells("UniCoT, Vis.-Aug., macro of what is printed")["Align."].value == pytest.approx(90.5 / 3)
    assert gain.rows[0].cells["all"].value == 50.0
