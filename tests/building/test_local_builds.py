"""Builds in this process: what is kept, what a kill costs, what more seeds add, what a mistake says."""

import asyncio
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from weft.building.build import BuildOutcome, run_build
from weft.building.parts import read_rows
from weft.building.request import BuildRequest, RayRequest
from weft.building.status import read_status
from weft.cli.build_texts import describe_status
from weft.errors import UserError
from weft.workspace import read_only_journal

HERE = Path(__file__).parent
RECIPE = f"{HERE / 'recipes.py'}:Pairs"
PLAYERS = HERE / "players.py"
TERMS = {"writer": "CC0-1.0", "painter": "CC0-1.0"}
MODELS = {"writer": f"{PLAYERS}:Writer", "painter": f"{PLAYERS}:Painter"}


@pytest.fixture(autouse=True)
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WEFT_TEST_CALLS", str(tmp_path / "calls.txt"))
    return tmp_path / "calls.txt"


def build(out: Path, seeds: int = 20, **more: Any) -> BuildOutcome:
    fields: dict[str, Any] = {"recipe": RECIPE, "models": MODELS, "part_size": 5, "terms": TERMS, **more}
    return asyncio.run(run_build(BuildRequest(out=out, seeds=seeds, **fields)))


def files(out: Path) -> dict[str, bytes]:
    """All that a build made but its journal: names of images are digests."""
    found = [*out.glob("parts/*"), *out.glob("imgs/*/*"), out / "test.json", out / "build.json"]
    return {str(file.relative_to(out)): file.read_bytes() for file in found}


def calls(log: Path) -> Counter[str]:
    return Counter(log.read_text().splitlines())


def test_a_build_keeps_what_passes_and_says_why_the_rest_does_not(tmp_path: Path):
    outcome = build(tmp_path / "out")
    assert outcome.reason is None and not outcome.failed
    status = read_status(tmp_path / "out")
    assert status.outcomes == {"kept": 18, "dropped": 2} and status.parts_done == status.parts == 4
    assert [(step.step, step.entered, step.left, step.reasons) for step in status.steps] == [
        ("write", 20, 18, {"a seventh": 2}),
        ("draw", 18, 18, {}),
    ]
    records = msgspec.json.decode((tmp_path / "out" / "test.json").read_bytes())
    assert [record["idx"] for record in records] == [number for number in range(1, 21) if number not in (7, 14)]
    assert all((tmp_path / "out" / path).is_file() for record in records for path in record["images"])


def test_a_finished_build_makes_no_call_and_more_seeds_extend_it(tmp_path: Path, log: Path):
    build(tmp_path / "out", seeds=12)
    before = calls(log)
    build(tmp_path / "out", seeds=12)
    assert calls(log) == before
    build(tmp_path / "out", seeds=20)
    assert max(calls(log).values()) == 1
    build(tmp_path / "at-once", seeds=20)
    assert files(tmp_path / "out") == files(tmp_path / "at-once")


@pytest.mark.parametrize("die_at", [3, 17, 38, 60])
def test_a_kill_costs_the_calls_in_flight_and_changes_no_file(tmp_path: Path, log: Path, die_at: int):
    build(tmp_path / "whole")
    log.unlink()
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); from pathlib import Path; import test_local_builds as tests; "
        "tests.build(Path(sys.argv[2]), rows_in_flight=4)"
    )
    command = [sys.executable, "-c", program, str(HERE), str(tmp_path / "out")]
    killed = subprocess.run(command, env={**os.environ, "WEFT_TEST_DIE_AT": str(die_at)}, timeout=120)
    assert killed.returncode == -9
    build(tmp_path / "out", rows_in_flight=4)
    assert files(tmp_path / "out") == files(tmp_path / "whole")
    twice = [call for call, count in calls(log).items() if count > 1]
    assert len(twice) <= 4 and max(calls(log).values()) <= 2


def test_a_step_that_raises_costs_its_row_which_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from building.players import Writer

    class Troubled(Writer):
        def __call__(self, messages: Any, want: str) -> str:
            if "thing 3." in str(messages):
                return '{"name": "trouble"}'
            return super().__call__(messages, want)

    models = {**MODELS, "writer": Troubled()}
    outcome = build(tmp_path / "out", models=models)
    assert outcome.failed == 1 and outcome.progress.outcomes == {"kept": 17, "dropped": 2, "failed": 1}
    (failed,) = [row for row in read_rows(tmp_path / "out") if row.outcome == "failed"]
    assert failed.number == 3 and "a name that cannot be (recipes.py" in failed.detail
    assert (tmp_path / "out" / "parts" / "00000.partial.jsonl").exists()
    status = read_status(tmp_path / "out")
    assert status.parts_done == 3 and status.kept_share == 17 / 19, "what failed says nothing about the recipe"
    writing = status.steps[0]
    assert (writing.entered, writing.left, writing.failed, writing.share) == (20, 17, 1, 17 / 19)
    assert "dialogues kept: 17 (89.5% of those that did not fail)" in "\n".join(describe_status(status, tmp_path))
    monkeypatch.setattr("building.recipes.Pairs.version", "1")
    again = build(tmp_path / "out", models=models)
    assert again.progress.earlier == 15 and again.failed == 1


def test_a_failed_call_is_made_again_and_nothing_else_is(tmp_path: Path, log: Path):
    from building.players import Painter

    class Unlucky(Painter):
        broken = True

        def __call__(self, messages: Any, want: str) -> Any:
            if Unlucky.broken and str(messages).endswith(", 2'])]"):
                raise RuntimeError("the brush is lost")
            return super().__call__(messages, want)

    models = {**MODELS, "painter": Unlucky()}
    assert build(tmp_path / "out", models=models).failed == 18
    Unlucky.broken = False
    assert build(tmp_path / "out", models=models).failed == 0
    assert max(calls(log).values()) == 1


def test_two_rows_with_one_request_pay_once(tmp_path: Path, log: Path):
    build(tmp_path / "out")
    with read_only_journal(tmp_path / "out") as journal:
        totals = {total.role: total.calls for total in journal.totals(read_status(tmp_path / "out").manifest.run)}
    assert totals == {"writer": 20, "painter": 54} and sum(calls(log).values()) == 74


def test_a_cut_part_file_is_named_and_made_anew(tmp_path: Path, log: Path):
    build(tmp_path / "out")
    whole = files(tmp_path / "out")
    part = tmp_path / "out" / "parts" / "00001.jsonl"
    part.write_bytes(part.read_bytes()[:-200])
    with pytest.raises(UserError, match=r"00001.jsonl, line 5 is no row of a build"):
        read_status(tmp_path / "out")
    part.unlink()
    build(tmp_path / "out")
    assert files(tmp_path / "out") == whole and max(calls(log).values()) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seeds": 0}, "--seeds: give at least 1"),
        ({"recipe": "nothing"}, "there is no recipe 'nothing'; there is tabletop-100k"),
        ({"models": {}}, "pairs needs a model for the role writer"),
        ({"models": {**MODELS, "drawer": "copy"}}, "pairs has no role 'drawer'; its roles are writer, painter"),
        ({"models": {**MODELS, "painter": f"{PLAYERS}:text_only"}}, "cannot be the painter: it generates text"),
        ({"models": {**MODELS, "painter": f"{PLAYERS}:blind"}}, "cannot be the painter: it takes no images"),
        ({"models": {**MODELS, "painter": "copy,copy"}}, "one model plays the painter"),
        ({"options": {"colour": "red"}}, "pairs has no option 'colour'"),
        ({"model_options": {"steps": "3"}}, "say whose it is, as in writer.steps=3"),
        ({"presets": {"drawer": "x"}}, "there is no such role"),
    ],
)
def test_a_mistake_is_one_line_before_anything_is_written(tmp_path: Path, change: dict[str, Any], message: str):
    with pytest.raises(UserError) as caught:
        build(tmp_path / "out", **{"seeds": 3, **change})
    assert message in str(caught.value) and "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_another_build_in_the_same_folder_is_refused(tmp_path: Path):
    build(tmp_path / "out", seeds=3)
    with pytest.raises(UserError, match=r"has another build \(its painter is .*\): use another --out"):
        build(tmp_path / "out", seeds=3, models={**MODELS, "painter": "copy"})
    with pytest.raises(UserError, match=r"its recipe is pairs, not tabletop-recall"):
        build(tmp_path / "out", recipe="tabletop-recall", models={"writer": "tabletop/oracle", "painter": "copy"})


def test_models_that_are_objects_cannot_go_to_workers(tmp_path: Path):
    from building.players import Writer

    with pytest.raises(UserError, match="writer: on Ray a model is a name, such as file.py:NAME, not an object"):
        build(tmp_path / "out", models={**MODELS, "writer": Writer()}, ray=RayRequest(2))
    assert not (tmp_path / "out" / "parts").exists()
