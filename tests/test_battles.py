"""Battles: the rates, agreements and scores of OpenING's shipped files to two decimals, ratings against a second
implementation, and judges that look at the place instead of the answer."""

import csv
import itertools
import json
import math
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forked import run_forked
from weft.arena.files import read_answer_scores, read_verdicts
from weft.arena.tables import build_agreement_table, build_summary_table, build_win_rate_tables
from weft.errors import UserError
from weft.stats.battles import (
    FLIPPED_WINNER,
    PRIOR,
    Battle,
    compute_win_rates,
    first_position_rate,
    fit_ratings,
    list_models,
    measure_battle_agreement,
    merge_orders,
)

SHARED = Path(__file__).parent.parent.parent / "shared"
OPENING = SHARED / "data" / "opening"
PUBLISHED = SHARED / "spec" / "published_results.json"
WINNERS = ("A", "B", "Tie(A)", "Tie(B)", "Tie")
real = pytest.mark.skipif(
    not OPENING.is_dir() or not PUBLISHED.is_file(), reason=f"OpenING's verdicts are not here ({OPENING})"
)


def opening() -> Any:
    return json.loads(PUBLISHED.read_text())["opening"]


@real
@pytest.mark.parametrize(
    ("who", "file"), [("human", "judge_modelAB_results.json"), ("gpt4o", "gpt-judge_modelAB_results.json")]
)
def test_all_four_rates_of_the_shipped_verdicts(who: str, file: str):
    found = read_verdicts(OPENING / file)
    assert not found.problems
    rows = {row.name: row.cells for row in build_win_rate_tables(found.battles, "x")[0].rows}
    due = opening()["recomputed_from_repo_files"][who]["rows"]
    assert len(rows) == len(due) == 11
    for row in due:
        cells = rows[row["model"]]
        ours = [cells[name].format(2) for name in ("FDT", "without tie", "with tie 0", "with tie .5")]
        assert ours == [f"{row[name]:.2f}" for name in ("FDT", "without_tie", "with_tie_0", "with_tie_0.5")]
        assert cells["battles"].value == row["battles"]


@real
def test_agreement_of_gpt_4o_with_people():
    judge, human = (
        read_verdicts(OPENING / file).battles
        for file in ("gpt-judge_modelAB_results.json", "judge_modelAB_results.json")
    )
    found = measure_battle_agreement(judge, human)
    due = next(row for row in opening()["agreement_with_human"]["rows"] if row["judge"] == "GPT-4o")
    ours = [cell.format(2) for cell in (found.fdt, found.with_tie, found.without_tie)]
    assert ours == [f"{due[name]:.2f}" for name in ("FDT", "with_tie", "without_tie")]
    assert (found.fdt.scored, found.without_tie.scored) == (due["n_fdt"], due["n_without_tie"])
    assert (first_position_rate(judge).format(2), first_position_rate(human).format(2)) == ("63.99", "52.28")


@real
def test_the_score_summary_that_is_shipped():
    made = {
        row.name.lower(): row.cells
        for row in build_summary_table(read_answer_scores(OPENING / "gpt-score_results.json").entries, "x").rows
    }
    with (OPENING / "model_score_summaries.csv").open() as file:
        shipped = list(csv.DictReader(file))
    assert len(made) == len(shipped) == 11
    for row in shipped:
        cells = made[row["Model_Name"].lower()]
        assert {name: cells[name].value for name in row if name not in ("Rank", "Model_ID", "Model_Name")} == {
            name: float(value) for name, value in row.items() if name not in ("Rank", "Model_ID", "Model_Name")
        }


@real
def test_the_identity_of_rates_holds_on_all_rows_of_the_paper():
    rows = opening()["table4_wan_weaver"]["rows"]
    assert len(rows) == 30
    for row in rows:
        assert row["with_tie_0.5"] == pytest.approx(
            row["with_tie_0"] + 50 * (1 - row["with_tie_0"] / row["without_tie"]), abs=0.035
        )


BATTLES = st.lists(
    st.tuples(st.integers(0, 8), st.sampled_from(list(itertools.permutations("xyz", 2))), st.sampled_from(WINNERS)),
    min_size=1,
    max_size=60,
)


def battles(told: list[Any]) -> list[Battle]:
    return [Battle(f"i{item}", *pair, winner) for item, pair, winner in told]


@given(BATTLES)
def test_rates_against_plain_counting(told: list[Any]):
    some = battles(told)
    for model in list_models(some):
        wins = sum(
            (one.first == model and one.winner == "A") or (one.second == model and one.winner == "B") for one in some
        )
        losses = sum(
            (one.first == model and one.winner == "B") or (one.second == model and one.winner == "A") for one in some
        )
        mine = sum(model in (one.first, one.second) for one in some)
        leans = sum(
            (one.first == model and one.winner == "Tie(A)") or (one.second == model and one.winner == "Tie(B)")
            for one in some
        ) + 0.5 * sum(model in (one.first, one.second) and one.winner == "Tie" for one in some)
        found = {name: cell.value for name, cell in compute_win_rates(some, model).items()}
        assert found["FDT"] == pytest.approx(100 * (wins + leans) / mine, abs=0.01)
        assert found["with tie 0"] == pytest.approx(100 * wins / mine, abs=0.01)
        assert found["with tie .5"] == pytest.approx(100 * (wins + (mine - wins - losses) / 2) / mine, abs=0.01)
        if wins + losses:
            assert found["without tie"] == pytest.approx(100 * wins / (wins + losses), abs=0.01)
        else:
            assert found["without tie"] is None


@given(BATTLES)
def test_nothing_depends_on_who_stands_first(told: list[Any]):
    some = battles(told)
    other = [one.flip() if at % 2 else one for at, one in enumerate(some)]
    for model in list_models(some):
        assert [cell.value for cell in compute_win_rates(some, model).values()] == [
            cell.value for cell in compute_win_rates(other, model).values()
        ]
    assert fit_ratings(some, draws=5).keys() == fit_ratings(other, draws=5).keys()


def by_gradient(some: list[Battle]) -> dict[str, float]:
    """Bradley-Terry by plain steps uphill."""
    strength = dict.fromkeys(list_models(some), 0.0)
    for _ in range(6000):
        slope = {name: PRIOR - 2 * PRIOR / (1 + math.exp(-value)) for name, value in strength.items()}
        for one in some:
            due = 1 / (1 + math.exp(strength[one.second] - strength[one.first]))
            won = {"A": 1.0, "B": 0.0}.get(one.winner, 0.5)
            slope[one.first] += won - due
            slope[one.second] -= won - due
        strength = {name: value + 0.05 * slope[name] for name, value in strength.items()}
    middle = sum(strength.values()) / len(strength)
    return {name: 1000 + 400 * (value - middle) / math.log(10) for name, value in strength.items()}


def test_ratings_against_a_second_implementation():
    chance = random.Random(3)
    true = {"a": 1.2, "b": 0.4, "c": -0.3, "d": -1.3}
    some: list[Battle] = []
    for item in range(80):
        first, second = chance.sample(sorted(true), 2)
        wins = chance.random() < 1 / (1 + math.exp(true[second] - true[first]))
        some.append(
            Battle(
                f"i{item}",
                first,
                second,
                chance.choice(["Tie", "Tie(A)"]) if chance.random() < 0.2 else "A" if wins else "B",
            )
        )
    found, due = fit_ratings(some), by_gradient(some)
    assert {name: cell.value for name, cell in found.items()} == {
        name: pytest.approx(value, abs=0.2) for name, value in due.items()
    }
    assert list(found) == sorted(due, key=lambda name: -due[name])
    assert all((cell.low or 0) < (cell.value or 0) < (cell.high or 0) for cell in found.values())


def test_one_who_always_wins_has_a_rating_all_the_same():
    found = fit_ratings([Battle(f"i{at}", "best", "worst", "A") for at in range(20)])
    assert 1000 < (found["best"].value or 0) < 2000 and found["best"].value == pytest.approx(
        2000 - (found["worst"].value or 0)
    )


def test_a_clean_sweep_and_a_single_battle_have_no_interval():
    for some in ([Battle(f"i{at}", "best", "worst", "A") for at in range(20)], [Battle("i", "x", "y", "B")]):
        assert all(cell.low is None and cell.value is not None for cell in fit_ratings(some).values())


def test_rates_of_one_item_have_no_interval_and_of_two_have():
    one = compute_win_rates([Battle("i", "x", "y", "A"), Battle("i", "y", "x", "B")], "x")
    two = compute_win_rates([Battle("i", "x", "y", "A"), Battle("j", "y", "x", "B")], "x")
    assert all(cell.value == 100.0 and cell.low is None and cell.high is None for cell in one.values())
    assert all(cell.low is not None and cell.low < 100.0 == cell.high for cell in two.values())


def test_models_that_never_met_are_not_ranked_together():
    some = [Battle(f"i{at}", *pair, "A" if at % 3 else "B") for at in range(12) for pair in (("a", "b"), ("c", "d"))]
    found = fit_ratings(some)
    assert (found["a"].value or 0) + (found["b"].value or 0) == pytest.approx(2000, abs=0.3) and found[
        "a"
    ].value == found["c"].value
    assert "2 groups that never met" in build_win_rate_tables(some, "x")[0].note


def test_a_battle_in_two_files_counts_once(tmp_path: Path):
    file = written(tmp_path / "v.json", [record(str(at)) for at in range(5)])
    done = weft("arena", "table", file, file, "--format", "csv")
    assert (
        done.returncode == 0
        and "5 battles are in more than one file; the last counts" in done.stderr
        and ",x,0,battles,5," in done.stdout
    )


@pytest.mark.parametrize("score", [1e308, 10**400, 1000, -1, None, True, "7"])
def test_scores_that_are_none_are_left_out_and_told(score: Any, tmp_path: Path):
    entries = [{"data_id": "1", "model": {"name": "x"}, "score": {"Correctness": {"Score": one}}} for one in (7, score)]
    found = read_answer_scores(written(tmp_path / "s.json", entries))
    assert found.entries == {"x": [{"Correctness": 7.0}]} and "record 1: needs a model and" in found.problems[0]


def test_a_judge_that_always_says_a_is_biased_and_decides_nothing():
    some = [Battle(f"i{at}", *pair, "A") for at in range(30) for pair in (("x", "y"), ("y", "x"))]
    merged, same = merge_orders(some)
    assert first_position_rate(some).value == 100.0 and same.value == 0.0
    assert {one.winner for one in merged} == {"Tie"} and len(merged) == 30
    table, judge = build_win_rate_tables(some, "x")
    for row in table.rows:
        assert (row.cells["FDT"].value, row.cells["with tie .5"].value, row.cells["rating"].value) == (
            50.0,
            50.0,
            1000.0,
        )
    assert judge.rows[0].cells["first place wins"].value == 100.0 and judge.rows[0].cells["ties"].value == 100.0


@pytest.mark.parametrize(
    ("first", "second", "merged"),
    [
        ("A", "B", "A"),
        ("A", "A", "Tie"),
        ("A", "Tie(B)", "Tie(A)"),
        ("Tie(A)", "Tie(B)", "Tie(A)"),
        ("Tie(A)", "Tie(A)", "Tie"),
        ("B", "A", "B"),
    ],
)
def test_two_orders_as_one(first: Any, second: Any, merged: str):
    """The second is as the judge saw it, the other way round."""
    (found,), _ = merge_orders([Battle("i", "x", "y", first), Battle("i", "y", "x", second)])
    assert found == Battle("i", "x", "y", merged)
    assert FLIPPED_WINNER[FLIPPED_WINNER[found.winner]] == found.winner


def test_battles_of_one_order_stay_as_they_are():
    some = [Battle("i", "y", "x", "A"), Battle("j", "x", "y", "Tie(B)")]
    merged, same = merge_orders(some)
    assert (
        next(one if one.first == "y" else one.flip() for one in merged) == some[0]
        and same.value is None
        and len(merged) == 2
    )


def test_agreement_apart_for_models_that_were_not_seen():
    human = [Battle(f"i{at}", "old", "new" if at % 2 else "other", "A") for at in range(10)]
    judge = [Battle(one.item, one.first, one.second, "A" if one.second == "other" else "B") for one in human]
    rows = {
        row.label: {name: cell.value for name, cell in row.cells.items()}
        for row in build_agreement_table({"j": judge}, human, ["new"], "x").rows
    }
    assert (rows["j"]["FDT"], rows["j, seen"]["FDT"], rows["j, unseen"]["FDT"]) == (50.0, 100.0, 0.0)
    assert rows["j, harmonic mean"]["FDT"] == 0.0  # one half never agrees
    assert measure_battle_agreement([one.flip() for one in judge], human).fdt.value == 50.0  # whichever way round


def written(path: Path, records: list[Any]) -> Path:
    path.write_text(json.dumps(records))
    return path


def record(item: Any = "1", a: Any = "x", b: Any = "y", winner: Any = "A") -> dict[str, Any]:
    return {"data_id": item, "model_A": {"id": "1", "name": a}, "model_B": {"id": "1", "name": b}, "winner": winner}


def test_what_is_wrong_with_verdicts(tmp_path: Path):
    """One id for two models is no trouble; what cannot be read is told, and costs itself alone."""
    some = [
        record(),
        record("2", winner="tie (b)"),
        record("3", winner="Both"),
        record("4", b="x"),
        record(None),
        {},
        record("1", winner="B"),
    ]
    found = read_verdicts(written(tmp_path / "v.json", some))
    assert found.battles == (Battle("1", "x", "y", "B"), Battle("2", "x", "y", "Tie(B)"))
    assert [problem.partition(": ")[2] for problem in found.problems] == [
        "record 2: winner 'Both' is none of A, B, Tie(A), Tie(B), Tie",
        "record 3: needs two models, each with a name of its own",
        "record 4: has no data_id",
        "record 5: has no data_id",
        "record 6: x against y on 1 has another verdict before; this one counts",
    ]
    lines = tmp_path / "v.jsonl"
    lines.write_text("\n".join(map(json.dumps, some[:2])))
    assert len(read_verdicts(lines).battles) == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "has no verdict that can be read"),
        ("[1]", "has no verdict"),
        ("{", "broken JSON"),
        ("", "has no verdict"),
    ],
)
def test_files_that_are_no_verdicts(text: str, said: str, tmp_path: Path):
    (tmp_path / "v.json").write_text(text)
    with pytest.raises(UserError, match=said):
        read_verdicts(tmp_path / "v.json")
    with pytest.raises(UserError, match="has no scores that can be read|broken JSON"):
        read_answer_scores(tmp_path / "v.json")


def weft(*words: Any) -> "subprocess.CompletedProcess[str]":
    return run_forked(*map(str, words), cwd=Path.cwd())


def test_the_commands(tmp_path: Path):
    judge = written(
        tmp_path / "judge.json",
        [record(str(at), *pair) for at in range(12) for pair in (("x", "y"), ("y", "x"), ("x", "z"))],
    )
    human = written(tmp_path / "human.json", [record(str(at), winner="B") for at in range(12)])
    shown = weft("arena", "table", judge, "--format", "csv")
    assert shown.returncode == 0 and '"Win rates, judge",x,0,FDT' in shown.stdout
    assert weft("arena", "table", judge).returncode == 0
    told = weft("arena", "agree", judge, human, "--format", "md")
    assert told.returncode == 0 and told.stdout.startswith("## Agreement with human") and "| 50.00" in told.stdout
    assert weft("arena", "agree", judge).returncode == 2
    strange = weft("arena", "agree", judge, human, "--unseen", "nobody")
    assert strange.returncode == 2 and "no battle has a model 'nobody'; the models are x, y, z" in strange.stderr
    assert weft("arena", "table", judge, "--format", "xls").returncode == 2
    assert weft("arena", "table", tmp_path / "nowhere.json").returncode == 2
