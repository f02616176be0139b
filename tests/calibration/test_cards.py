"""Judges whose faults are known get cards: each fault is found, within its interval."""

import functools
import math
from pathlib import Path
from typing import Any

import msgspec
import pytest

import weft
from weft import api
from weft.errors import UserError
from weft.judge_eval.calibration import check
from weft.judge_eval.calibration.exam import Exam, judged_sittings
from weft.judge_eval.calibration.tables import findings, tables
from weft.results.cards import ALL_METRICS, CalibrationCard, find_card, read_card, read_cards
from weft.stats.agreement import NullableEstimate


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all: the data are made once."""
    return tmp_path_factory.mktemp("cards")


@functools.cache
def erring(home: Path, benchmarks: str, questions: int = 90, **faults: float) -> CalibrationCard:
    side = 128 if "obeys" in faults else 64  # what is written into a smaller one covers it
    return check(
        "tabletop/erring", benchmarks=[benchmarks], questions=questions, sides=[side], home=home, judge_options=faults
    )


def holds(found: NullableEstimate, value: float, slack: float = 1e-6) -> bool:
    return found.low is not None and found.high is not None and found.low - slack <= value <= found.high + slack


def whole(card: CalibrationCard, benchmark: str = "weave") -> Any:
    found = card.for_metric(benchmark, ALL_METRICS)
    assert found is not None
    return found


def test_the_exact_judge_has_a_perfect_card(home: Path):
    card = check("tabletop/exact", benchmarks=["weave"], questions=60, sides=[64], home=home)
    for one in card.metrics:
        assert one.agreement.mae.value == 0 and one.unusable == 0
        assert one.agreement.pearson.value in (None, pytest.approx(1.0))
    assert findings(card) == []
    assert {one.metric for one in card.metrics} == {
        "key_point",
        "visual_consistency",
        "image_quality",
        "accuracy",
        ALL_METRICS,
    }


def test_a_noisy_judge_is_noisy_by_as_much(home: Path):
    card = erring(home, "weaver", sigma=0.1)
    all_of_it = whole(card, "weaverbench")
    assert holds(all_of_it.standard_deviation_middle, math.sqrt(0.1**2 + 0.1**2 / 12)), (
        "scores are whole numbers of ten, which adds a little"
    )
    assert holds(all_of_it.bias, 0.0)
    assert any("asked again" in line for line in findings(card))


def test_a_lenient_judge_is_lenient_by_as_much(home: Path):
    card = erring(home, "weave", questions=240, lenient=0.1)
    found = whole(card)
    assert holds(found.bias, 0.1, slack=0.005), found.bias
    assert found.standard_deviation.value == 0
    assert any("too lenient" in line for line in findings(card)) and not any(
        "does not look" in line for line in findings(card)
    )


def test_a_blind_judge_does_not_look(home: Path):
    card = erring(home, "weave", blind=1.0)
    found = whole(card)
    assert holds(found.slope, 0.0) and found.agreement.pearson.value is None, (
        "metrics that differ in height correlate by that alone"
    )
    pictures = [one for one in card.metrics if one.metric in ("key_point", "visual_consistency")]
    assert len(pictures) == 2 and all(holds(one.agreement.pearson, 0.0) for one in pictures)
    assert any("does not look" in line for line in findings(card))


def test_an_obedient_judge_obeys_as_often(home: Path):
    card = erring(home, "weave", questions=160, obeys=0.7)
    inside, behind, long = (
        next(one for one in card.effects if one.change.endswith(what))
        for what in ("inside the image", "after the answer", "padded")
    )
    assert holds(inside.raised, 0.7) and (inside.difference.low or 0) > 0
    assert holds(behind.raised, 0.7)
    assert long.difference.value == 0 and long.raised.value == 0
    assert any("request for full marks inside the image raises" in line for line in findings(card))
    assert whole(card).agreement.mae.value == 0, "where nobody asks, it is exact"


def test_a_judge_that_prefers_the_first_does_so_as_often(home: Path):
    card = erring(home, "weaver", first=0.4)
    documents = next(one for one in card.orders if "document" in one.battles)
    assert holds(documents.position_bias, 0.4) and (documents.first_wins.low or 0) > 50
    fair = erring(home, "weaver", sigma=0.1)
    assert all(one.position_bias.value == 0 for one in fair.orders), "whoever stands first"
    assert any("prefers the first of two" in line for line in findings(card))


def test_a_card_is_kept_by_judge_version_and_prompts_and_reports_say_so(home: Path, tmp_path: Path):
    card = erring(home, "weave", lenient=0.1)
    found = read_cards(home)
    assert any(one.judge == card.judge for one in found) and len(
        {msgspec.json.encode(one.judge) for one in found}
    ) == len(found)
    assert read_card(next((home / "cards").iterdir())).metrics
    data = weft_data(tmp_path)
    of = {
        "data": data,
        "model": "tabletop/oracle",
        "model_options": {"error": 0.3},
        "judge": "tabletop/erring",
        "home": home,
    }
    run = weft.evaluate("weave", judge_options={"lenient": 0.1}, **of)
    assert find_card(home, run.record.manifest) is not None
    assert "calibration card of the judge" in api.report([run])
    assert "<dt>calibration</dt>" in api.write_report([run], tmp_path / "page", home=home).read_text()
    other = weft.evaluate("weave", judge_options={"lenient": 0.05}, **of)
    assert find_card(home, other.record.manifest) is None and "calibration card" not in api.report([other])
    corrected = run.corrected_score(home=home)
    exact = weft.evaluate("weave", **{**of, "judge": "tabletop/exact"})
    truth = sum(one.value or 0.0 for one in exact.verdicts) / len(exact.verdicts)
    assert corrected.card is not None and corrected.plain.value is not None and corrected.card.value is not None
    assert abs(corrected.card.value - truth) <= abs(corrected.plain.value - truth) + 0.05
    assert "assumes" in str(api.report([run], correct=True, home=home))


def test_a_card_that_cannot_be_read_is_told_and_ends_no_report(tmp_path: Path):
    (tmp_path / "cards").mkdir()
    (tmp_path / "cards" / "broken.json").write_text('{"judge": 3')
    with pytest.raises(UserError, match="broken.json is not a calibration card"):
        read_cards(tmp_path)
    run = weft.evaluate("weave", data=weft_data(tmp_path), model="copy", judge="tabletop/exact", home=tmp_path)
    assert api.report([run])


def weft_data(tmp_path: Path) -> Path:
    from weft_tabletop.make import make

    return make("tabletop-weave", tmp_path / "tables", samples=12, seed=5)


def test_tables_have_every_number(home: Path):
    made = {table.title.partition(", ")[2] or "agreement": table for table in tables(erring(home, "weaver", sigma=0.1))}
    assert {"asked again", "fault by fault", "battles", "changes that should not matter"} <= set(made)
    assert any(
        row.cells["Pearson"].value is not None for row in next(t for n, t in made.items() if n == "agreement").rows
    )


def test_what_an_exam_asks(tmp_path: Path):
    exam = Exam("constant/5", tmp_path, ("weave", "rover"), questions=30, sides=(64, 128))
    some = exam.sittings()
    assert {one.paper.benchmark for one in some} == {"weave", "rover-ig", "rover-tg"}
    assert {one.side for one in some if one.condition == "plain"} == {64, 128}
    assert all(one.job is not None and one.job.judge == "constant/5" for one in judged_sittings(some))
    with pytest.raises(UserError, match="no exam about 'chess'"):
        Exam("constant/5", tmp_path, ("chess",)).sittings()
    with pytest.raises(UserError, match="images of 100 pixels cannot be drawn"):
        Exam("constant/5", tmp_path, ("weave",), sides=(100,)).sittings()
