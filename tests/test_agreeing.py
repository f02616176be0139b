"""Judges beside people and other judges, from runs in a journal; the papers' own tables of agreement; numbers
corrected."""

import csv
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import weft
from toy import more_records, write_weave
from waiting import HANGS
from weft import api
from weft.benchmarks.base import load_benchmark
from weft.benchmarks.imug.facts import ChoiceFacts
from weft.benchmarks.paired_verdicts import PairedVerdicts
from weft.benchmarks.rows import read_published
from weft.errors import UserError
from weft.judge_eval.agreement.corrected import Bias
from weft.judge_eval.agreement.people import count_attention_checks
from weft.judge_eval.agreement.scores import infer_scale, read_human_scores
from weft.rounding import format_number
from weft.stats.agreement import pearson
from weft.store.annotations import Annotation, Annotations, Study
from weft.types import Table, Verdict

WEFT = Path(sys.executable).parent / "weft"


class Judge:
    """A score from what the question is about; another `salt`, another judge."""

    def __init__(self, name: str, salt: int = 0) -> None:
        self.name, self.version, self.salt = name, "1", salt

    def __call__(self, messages: Any, want: str, question: Any) -> dict[str, Any]:
        place = question.turn_ref
        score = (int(place.sample) * 7 + place.turn * 5 + len(question.metrics[0]) + self.salt) % 11
        allowed = question.schema["properties"]["score"].get("enum")
        return {"reasoning": "so it is", "score": min(allowed, key=lambda one: abs(one - score)) if allowed else score}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("agreeing")


@pytest.fixture(scope="module")
def data(home: Path) -> Path:
    """Three times four dialogues."""
    return write_weave(home / "data", more_records(3))


@pytest.fixture(scope="module")
def run(home: Path, data: Path) -> weft.Run:
    """The model repeats the last picture, so that questions in words are the judge's, too."""
    return weft.evaluate("weave", data=data, model="copy", judge=Judge("first"), home=home / ".weft")


@pytest.fixture(scope="module")
def other(home: Path, run: weft.Run) -> weft.Run:
    return weft.judge(run, judge=Judge("second", salt=1), home=home / ".weft")


def judged(run: weft.Run) -> list[Verdict]:
    return [one for one in run.verdicts if one.by == "judge" and one.value is not None]


def rate(run: weft.Run, path: Path, some: Sequence[Verdict], raters: dict[str, Callable[[Verdict], float]]) -> None:
    store = Annotations(path)
    for at, one in enumerate(some):
        for rater, value in raters.items():
            said = Verdict(one.sample, one.turn, one.metric, value(one), by="person", score=10 * value(one))
            store.add(Annotation(run.id, "study", f"q{at}", rater, (said,)))
    store.close()


def forget(run: weft.Run, path: Path) -> None:
    store = Annotations(path)
    for one in store.find(run.id):
        store.remove(one.study, one.item, one.annotator)
    store.close()


@pytest.fixture
def rated(home: Path, run: weft.Run):
    """Two people: one always half a mark below the judge, where there is room; one the same but for every third."""
    path = home / ".weft" / "journal.sqlite"
    some = judged(run)
    odd = {id(one) for one in some[::3]}
    raters: dict[str, Callable[[Verdict], float]] = {
        "ann": lambda one: max(0.0, round((one.value or 0.0) - 0.1, 6)),
        "ben": lambda one: max(0.0, round((one.value or 0.0) - (0.3 if id(one) in odd else 0.1), 6)),
    }
    rate(run, path, some[::2], raters)
    yield some[::2]
    forget(run, path)


def named(tables: Sequence[Table], title: str) -> Table:
    return next(table for table in tables if title in table.title)


def test_without_ratings_the_way_to_some_is_told(run: weft.Run, home: Path):
    with pytest.raises(UserError, match=f"weft rate {run.id}"):
        run.agree(home=home / ".weft")
    with pytest.raises(UserError, match=r"`weft rate .*` collects annotations, `weft judge check`"):
        run.corrected_score(home=home / ".weft")


def test_the_judge_beside_people_and_people_among_themselves(run: weft.Run, home: Path, rated: list[Verdict]):
    found = run.agree(home=home / ".weft")
    table = named(found.tables, "by metric")
    assert table.title == "Agreement between first and people, by metric"
    mine = [one for one in rated if one.metric == "key_point"]
    cells = table.cells("key_point")
    assert cells["n"].value == len(mine) and table.cells("all metrics")["n"].value == len(rated)
    assert cells["judge"].value == pytest.approx(statistics.fmean(one.value or 0 for one in mine), abs=1e-4)
    assert cells["bias"].value is not None and cells["bias"].value > 0 and cells["bias"].low is not None
    assert (table.cells("all metrics")["Pearson"].value or 0) > 0.9 and cells["Pearson"].value is None, (
        "fewer than five say nothing"
    )
    people = named(found.tables, "Agreement among annotators").cells("all metrics")
    assert (
        people["questions"].value == len(rated)
        and people["annotations"].value == 2 * len(rated)
        and people["annotators"].value == 2
    )
    assert 0 < (people["alpha (interval)"].value or 0) < 1 and 0 < (people["same"].value or 0) < 100
    each = named(found.tables, "Each annotator")
    assert each.cells("ann")["bias"].value == pytest.approx(-(each.cells("ben")["bias"].value or 0.0))
    assert named(found.tables, "By metric and class").rows and not found.notes


def test_groups_are_those_that_are_asked_for(run: weft.Run, home: Path, rated: list[Verdict]):
    titles = [
        [table.title for table in run.agree(by=by, home=home / ".weft").tables] for by in ("domain", "turn", "none")
    ]
    assert (
        "By metric and domain" in titles[0]
        and "By metric and turn" in titles[1]
        and not any("By metric and" in one for one in titles[2])
    )
    with pytest.raises(UserError, match="--by nonsense: weave has class, domain, turn, none"):
        run.agree(by="nonsense", home=home / ".weft")


def test_what_no_judge_gave_is_left_out_and_counted(home: Path, data: Path):
    """A model that fails everywhere: people may rate it, but there is no judge to compare."""

    def silent(messages: Any, want: str) -> Any:
        return "no picture today"

    run = weft.evaluate("weave", data=data, model=silent, judge=Judge("first"), home=home / ".weft")
    failed = [one for one in run.verdicts if one.by == "failure"]
    path = home / ".weft" / "journal.sqlite"
    rate(run, path, failed[:4] + judged(run)[:6], {"ann": lambda one: 0.5})
    found = run.agree(home=home / ".weft")
    assert found.tables[0].rows[0].cells["n"].value == 6
    assert found.notes == (
        "4 of the verdicts that people annotated are left out: decided by rule or model failures, not by the judge",
    )


def test_two_judges_of_the_same_replies(run: weft.Run, other: weft.Run, home: Path):
    found = run.agree(other)
    both = {(one.sample, one.turn, one.metric): one.value or 0.0 for one in judged(other)}
    pairs = [(one.value or 0.0, both[one.sample, one.turn, one.metric]) for one in judged(run)]
    cells = found.tables[0].cells("all metrics")
    assert (found.judge, found.other) == ("first", "second") and cells["n"].value == len(pairs)
    assert cells["Pearson"].value == pytest.approx(pearson(*zip(*pairs, strict=True)) or 0, abs=1e-4)
    assert weft.agree(run.id, other.id, home=home / ".weft").tables[0].rows == found.tables[0].rows, "by their names"


def test_a_judge_that_was_asked_again_is_shown_beside_itself(run: weft.Run, other: weft.Run, home: Path):
    again = weft.judge(run, judge=Judge("third", salt=2), judge_repeats=3, home=home / ".weft")
    table = named(again.agree(other).tables, "Repeated judgements")
    assert table.rows[0].cells["repeats"].value == 3 and table.rows[0].cells["variation"].value == 0


def test_a_run_of_another_model_is_refused(run: weft.Run, home: Path):
    strange = weft.evaluate("weave", data=home / "data", model="reference", judge=Judge("first"), home=home / ".weft")
    with pytest.raises(
        UserError, match=r"is a run of copy, .* one of reference: judges are compared over the same replies"
    ):
        run.agree(strange)
    with pytest.raises(UserError, match="is given twice"):
        run.agree(run)


def test_replies_that_differ_are_left_out_and_told(run: weft.Run, home: Path):
    def version(count: int) -> Callable[[Any, str], Any]:
        def model(messages: Any, want: str) -> Any:
            pictures = [part for _, parts in messages for part in parts if not isinstance(part, str)]
            return (
                pictures[-1]
                if want == "image" and pictures
                else f"answer {count if 'Image #2' in str(messages) else 0}"
            )

        model.__name__ = "same_name"
        return model

    made: list[weft.Run] = []
    for count, judge in ((1, Judge("first")), (2, Judge("second", 1))):
        own: Any = version(count)
        own.name, own.version = "mine", str(count)
        made.append(weft.evaluate("weave", data=home / "data", model=own, judge=judge, home=home / ".weft"))
    found = made[0].agree(made[1])
    whole = len(judged(made[0]))
    assert 0 < (found.tables[0].rows[0].cells["n"].value or 0) < whole
    assert "left out: their replies differ between the two runs" in found.notes[0]


def write(path: Path, rows: Sequence[Sequence[Any]], head: str = "sample,turn,metric,annotator,value") -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([head.split(","), *rows])
    return path


def test_a_file_of_ratings_has_shares_or_scores(run: weft.Run, tmp_path: Path):
    some = judged(run)[:20]
    values = [(one.sample, one.turn + 1, one.metric, rater, 0.5) for one in some for rater in ("ann", "ben")]
    scores = [(*row[:4], 5) for row in values]
    first = run.agree(write(tmp_path / "values.csv", values))
    second = run.agree(str(write(tmp_path / "scores.csv", scores, "sample,turn,metric,annotator,score")))
    assert first.tables == second.tables and first.tables[0].cells("all metrics")["people"].value == 0.5
    assert first.tables[0].cells("all metrics")["Pearson"].value is None, "they always say the same"


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (("7", 1, "key_point", "ann", "1.5"), "line 3: value 1.5 is not a share of full marks"),
        (
            ("7", 1, "beauty", "ann", "0.5"),
            "line 3: sample '7', turn 1: no metric 'beauty'; it has image_quality, key_point",
        ),
        (("7000", 1, "key_point", "ann", "0.5"), "line 3: the run has no sample '7000'"),
        (("7", 0, "key_point", "ann", "0.5"), "line 3: turn '0' is not a number from 1 up"),
        (("7", 1, "key_point", "", "0.5"), "line 3: it names no annotator"),
        (("7", 1, "key_point", "ann", "good"), "line 3: 'good' is not a number"),
        (("7", 1, "key_point", "ann", "nan"), "line 3: value nan is not a share"),
        (("7", 1, "key_point", "ann", ""), "line 3: give a value or a score"),
        (
            ("7", 1, "key_point", "zoe", "0.5"),
            "line 3: zoe has annotated key_point of sample 7, turn 1, in an earlier line",
        ),
        (("7", 1), "line 3: it has 2 columns"),
    ],
)
def test_what_does_not_fit_the_run_is_an_error_with_its_line(
    run: weft.Run, tmp_path: Path, row: tuple[Any, ...], told: str
):
    file = write(tmp_path / "ratings.csv", [("7", 1, "key_point", "zoe", 0.5), row])
    with pytest.raises(UserError) as error:
        run.agree(file)
    assert told in str(error.value) and str(error.value).startswith(str(file))


def test_a_score_off_its_scale_and_a_file_without_columns_are_errors(run: weft.Run, tmp_path: Path):
    with pytest.raises(UserError, match="score 11 is not on the scale of key_point, from 0 to 10"):
        run.agree(write(tmp_path / "a.csv", [("7", 1, "key_point", "ann", 11)], "sample,turn,metric,annotator,score"))
    with pytest.raises(UserError, match="line 1: there is no column annotator"):
        run.agree(write(tmp_path / "b.csv", [], "sample,turn,metric,value"))
    with pytest.raises(UserError, match="cannot be read"):
        run.agree(tmp_path / "none.csv")


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(alphabet="7k,\n\r\"'\x00;=0.9e-_é\ufeff", max_size=80) | st.text(max_size=60), st.booleans())
def test_no_file_of_ratings_is_a_crash_or_an_unseen_loss(tmp_path: Path, text: str, headed: bool):
    """It is read as a whole, or refused in one line that names it."""
    file = tmp_path / "ratings.csv"
    body = ("sample,turn,metric,annotator,value\n" if headed else "") + text
    file.write_bytes(body.encode("utf-8", "surrogatepass"))
    try:
        said = read_human_scores(file, [Verdict("7", 0, "k", 0.5)])
    except UserError as error:
        assert str(error).startswith(str(file))
    else:
        assert all(0 <= value <= 1 for by in said.values() for value in by.values())


def test_a_scale_follows_from_scores_and_their_shares():
    assert infer_scale([(1, 0.0), (3, 0.5), (5, 1.0)]) == (1, 5) and infer_scale([(2, 0.25), (4, 0.75)]) == (1, 5)
    assert (
        infer_scale([(1, 0.0)]) is None
        and infer_scale([(1, 0.0), (2, 0.5), (3, 0.6)]) is None
        and infer_scale([]) is None
    )


def test_questions_with_known_answers_are_counted_and_in_no_number(run: weft.Run, home: Path, rated: list[Verdict]):
    path = home / ".weft" / "journal.sqlite"
    store = Annotations(path)
    known = {"k1": {"most": 1 / 3, "values": []}, "k2": {"most": None, "values": [[["choice"], "no"]]}}
    store.add_study(Study("study", run.id, 1.0, {"known": known}))
    wrong, right = Verdict("7", 0, "key_point", 0.9, by="person"), Verdict("7", 0, "key_point", 0.1, by="person")
    store.add(Annotation(run.id, "study", "k1", "ann", (right,), is_attention_check=True))
    store.add(Annotation(run.id, "study", "k1", "ben", (wrong,), is_attention_check=True))
    store.add(Annotation(run.id, "study", "k2", "ben", (wrong,), {"choice": "no"}, is_attention_check=True))
    assert count_attention_checks(store.find(run.id), store.studies(run.id)) == {"ann": (1, 1), "ben": (1, 2)}
    store.close()
    each = named(run.agree(home=home / ".weft").tables, "Each annotator")
    assert each.cells("ben")["attention passed"].value == 1 and each.cells("ben")["attention asked"].value == 2
    assert each.cells("ann")["annotations"].value == len(rated)


def test_ratings_are_of_replies_whoever_judged_them(run: weft.Run, other: weft.Run, home: Path, rated: list[Verdict]):
    """People rated one run; the same replies before another judge need no second study."""
    found = other.agree(home=home / ".weft")
    assert found.judge == "second" and found.tables[0].cells("all metrics")["n"].value == len(rated)
    assert found.notes == (f"{2 * len(rated)} annotations were made in {run.id}, of the same replies",)
    assert other.corrected_score(home=home / ".weft").people is not None


def test_a_number_corrected_by_people_stands_beside_the_plain_one(run: weft.Run, home: Path, rated: list[Verdict]):
    made = run.corrected_score(home=home / ".weft")
    assert made.people is not None and made.people.n == len(rated) and made.annotators == 2 and made.card is None
    assert made.plain.value is not None and made.people.value < made.plain.value, "people are stricter"
    assert (
        made.people.low is not None
        and made.people.high is not None
        and made.people.low < made.people.value < made.people.high
    )
    text = run.report("md", correct=True, home=home / ".weft")
    plain = format_number(made.plain.value, 3)
    assert "## Headline score, corrected" in text and "drawn at random" in text
    line = next(line for line in text.splitlines() if "plain, judged by first" in line)
    assert plain in line and format_number(made.people.value, 3) in next(
        line for line in text.splitlines() if "corrected by people" in line
    )
    assert "corrected" not in run.report("md", home=home / ".weft")
    page = api.write_report([run], home / "report", home=home / ".weft", correct=True)
    assert "Headline score, corrected" in page.read_text()


def test_a_part_of_the_number_that_nobody_rated_is_an_error(run: weft.Run, home: Path):
    path = home / ".weft" / "journal.sqlite"
    rate(run, path, [one for one in judged(run) if one.metric == "key_point"], {"ann": lambda one: one.value or 0.0})
    with pytest.raises(UserError, match=r"people annotated nothing of 3 of the 4 parts of the headline score"):
        run.corrected_score(home=home / ".weft")
    forget(run, path)


def test_where_people_rated_everything_the_number_is_theirs(run: weft.Run, home: Path):
    path = home / ".weft" / "journal.sqlite"
    rate(run, path, judged(run), {"ann": lambda one: 0.25})
    made = run.corrected_score(home=home / ".weft")
    forget(run, path)
    assert made.people is not None and made.people.people_only.value == made.people.value
    assert 0 < made.people.value <= 0.25, "what failed stays zero"


def test_a_card_corrects_where_nobody_rated_under_its_own_heading(
    run: weft.Run, home: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(api, "FIND_JUDGE_BIAS", lambda run: Bias(0.1, 0.05, 0.15, "first on the tabletop"))
    made = run.corrected_score(home=home / ".weft")
    assert made.card is not None and made.people is None and made.plain.value is not None
    assert made.card.value == pytest.approx(made.plain.value - 0.1)
    text = run.report("md", correct=True, home=home / ".weft")
    assert (
        "minus the bias on the judge's calibration card" in text
        and "errs here as it does there" in text
        and "first on the tabletop" in text
    )


def battle(name: str, answers: dict[str, str]) -> Callable[..., dict[str, Any]]:
    def judge(messages: Any, want: str, question: Any) -> dict[str, Any]:
        return {
            **dict.fromkeys(question.schema["properties"], "x"),
            "winner": answers.get(question.turn_ref.sample, "A"),
        }

    own: Any = judge
    own.name, own.version = name, "1"
    return own


def test_two_arena_runs_agree_as_opening_counts(run: weft.Run, home: Path):
    data = home / "data"
    rival = weft.evaluate("weave", data=data, model="reference", judge=Judge("first"), home=home / ".weft")
    fights = [
        weft.battle([run, rival], judge=battle(name, {}), battles=1, both_orders=False, home=home / ".weft")
        for name in ("one", "two")
    ]
    if not judged(fights[0]):
        pytest.fail(str(fights[0].summary().lines))
    found = fights[0].agree(fights[1])
    assert found.tables[0].rows[0].cells["FDT"].value == 100.0 and found.other == "two"
    store = Annotations(home / ".weft" / "journal.sqlite")
    for at, one in enumerate(judged(fights[0])):
        said = Verdict(one.sample, one.turn, one.metric, 0.0 if at % 2 else one.value, by="person")
        store.add(Annotation(fights[0].id, "study", f"q{at}", "ann", (said,)))
    store.close()
    people = fights[0].agree(home=home / ".weft")
    assert 0 < (people.tables[0].rows[0].cells["without tie"].value or 0) < 100 and people.other == "people"
    with pytest.raises(UserError, match="no model has a score of its own to correct"):
        fights[0].corrected_score(home=home / ".weft")


# the papers' own tables


def made_up(name: str, metric: str, groups: dict[str, str], detail: Any = None, dataset: str = "x") -> PairedVerdicts:
    pairs = [
        (Verdict(str(at), 0, metric, at / 10, detail=detail), min(1.0, at / 10 + 0.05 * (at % 2))) for at in range(10)
    ]
    return PairedVerdicts("mine", pairs, {str(at): groups for at in range(10)}, {}, "judge", dataset=dataset)


def test_the_papers_tables_have_what_is_printed_beside_ours():
    found = made_up("imug", "points", {"class": "Hybrid"})
    table = next(iter(load_benchmark("imug").presentation.agreement_tables(found)))
    assert (table.cells("mine")["Hybrid Img."].value or 0) > 0.99 and table.cells("mine")["Avg"].value is None
    assert table.cells("Nano Banana")["Static Spatial Dynamic"].value == 0.926 and len(table.published_rows) == 6
    dynamic = next(
        iter(
            load_benchmark("imug").presentation.agreement_tables(
                made_up("imug", "choice", {"class": "Hybrid"}, ChoiceFacts(dynamic=True))
            )
        )
    )
    assert (
        dynamic.cells("mine")["Hybrid Dynamic"].value is not None and dynamic.cells("mine")["Hybrid Img."].value is None
    )
    plans = next(
        iter(
            load_benchmark("planviz").presentation.agreement_tables(made_up("planviz", "visual", {}, dataset="planviz"))
        )
    )
    assert plans.cells("OmniGen2")["Cor r"].value == 0.92 and plans.cells("GPT-Image-1")["Vis MAE"].value == 0.08
    assert plans.cells("mine")["Vis MAE"].value == pytest.approx(0.025) and plans.cells("mine")["Cor r"].value is None


@pytest.mark.parametrize(("name", "metric", "column"), [("weave", "key_point", "KP"), ("rover-ig", "reasoning_visual", "RV r"),
                                                       ("rover-tg", "interleaved_reasoning", "IR r")])  # fmt: skip
def test_what_a_paper_has_in_a_figure_alone_is_not_printed(name: str, metric: str, column: str):
    table = next(iter(load_benchmark(name).presentation.agreement_tables(made_up(name, metric, {}))))
    assert (table.cells("mine")[column].value or 0) > 0.99
    (theirs,) = table.published_rows
    assert "not printed" in theirs.label and not theirs.cells


def test_imugs_table_7_follows_from_its_cells():
    *models, last = read_published("weft.benchmarks.imug")["table7"]["rows"]
    cells = [name for name in last if name not in ("model", "Avg")]
    for row in (*models, last):
        assert statistics.fmean(row[name] for name in cells) == pytest.approx(row["Avg"], abs=0.00051), row["model"]
    for name in (*cells, "Avg"):
        assert statistics.fmean(row[name] for row in models) == pytest.approx(last[name], abs=0.00051), name
    assert min([row["Avg"] for row in models] + [last[name] for name in cells]) > 0.72 and last["Avg"] > 0.8
    low = [name for row in models for name in cells if row[name] < 0.72]
    assert len(low) == 5 and all(name.endswith("_Img") for name in low)


def test_planviz_takes_five_of_six_errors_of_the_means():
    rows = read_published("weft.benchmarks.planviz")["table2"]["rows"]
    of = {(row["model"], row["statistic"]): row for row in rows}
    places = [(model, name) for model in ("OmniGen2", "GPT-Image-1") for name in ("Cor", "Vis", "Ef")]
    gaps = {
        place: round(of[place[0], "MLLM Mean"][place[1]] - of[place[0], "Human Mean"][place[1]], 2) for place in places
    }
    alike = [place for place in places if abs(gaps[place]) == of[place[0], "Human-MLLM MAE"][place[1]]]
    assert len(alike) == 5 and set(places) - set(alike) == {("GPT-Image-1", "Vis")}
    assert gaps["OmniGen2", "Vis"] == -0.05 and gaps["GPT-Image-1", "Vis"] == 0.06
    assert gaps["OmniGen2", "Ef"] == 0.04 and gaps["GPT-Image-1", "Ef"] == 0.05


# the command line


def test_commands_without_ratings_end_in_one_line(run: weft.Run, home: Path):
    for words, told in {
        ("agree", run.id): f"`weft rate {run.id}` collects annotations",
        ("report", run.id, "--correct", "--format", "md"): "`weft judge check`",
    }.items():
        done = subprocess.run([WEFT, *words], cwd=home, capture_output=True, text=True, timeout=HANGS)
        assert done.returncode == 2 and told in done.stderr and done.stderr.count("\n") == 1, words


def test_the_commands(run: weft.Run, other: weft.Run, home: Path, rated: list[Verdict]):
    def call(*words: object) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "COLUMNS": "250"}
        return subprocess.run(
            [WEFT, *map(str, words)], cwd=home, capture_output=True, text=True, timeout=HANGS, env=env
        )

    text = call("agree", run.id).stdout
    assert "Agreement between first and people, by metric" in text and "Krippendorff" in text and "all metrics" in text
    made = json.loads(call("agree", run.id, "--with", other.id, "--format", "json").stdout)
    assert made["other"] == "second" and made["tables"][0]["title"] == "Agreement between first and second, by metric"
    rows = list(csv.DictReader(call("agree", run.id, "--format", "csv", "--by", "none").stdout.splitlines()))
    assert {"Pearson", "bias"} <= {row["column"] for row in rows}
    assert call("agree", run.id, "--format", "md", "--out", home / "agreed.md").returncode == 0
    assert (home / "agreed.md").read_text().startswith("## Agreement between first and people")
    assert "corrected by people" in call("report", run.id, "--correct", "--format", "md").stdout
    for words, told in {
        ("agree", run.id, "--format", "pdf"): "unknown format",
        ("agree", run.id, "--with", "nothing.csv"): "nothing.csv cannot be read",
        ("report", run.id, "--correct", "--over", "seed", "--format", "md"): "--correct applies to single runs",
        ("report", "--published", "imug", "--correct"): "leave out --published",
    }.items():
        done = call(*words)
        assert done.returncode == 2 and told in done.stderr and "Traceback" not in done.stderr, words
