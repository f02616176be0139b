"""ImgEdit: its three suites, the mean of nine types, dialogues over the model's own images, and what the released scripts
make of the same replies."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pil

import weft
from edits import Painter, Saying, basic_item, cells, evaluate, paint, table, write_imgedit
from weft.benchmarks import load_benchmark
from weft.benchmarks.imgedit import official_reading
from weft.benchmarks.imgedit.data import TYPES
from weft.calls.structured_output import UnusableReply
from weft.errors import UserError
from weft.workspace import open_blobs

BASIC = "Basic/basic_edit.json"
NAMES = ("Prompt Fit", "Natural Look", "Fine Detail & More")
PROMPT = "Judge <edit_prompt>.\nBrief reasoning: few words.\n" + "".join(
    f"{name}: A number from 1 to 5.\n" for name in NAMES
)
LINES = "Brief reasoning: fine.\nPrompt Fit: 5\nNatural Look: 4\nFine Detail & More: 3"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "ImgEdit" / "Benchmark"
    for name in ("Basic", "UGE"):
        (folder / name).mkdir(parents=True)
    (folder / "Basic" / "prompts.json").write_text(json.dumps({name: f"{name}. {PROMPT}" for name in TYPES}))
    (folder / "UGE" / "UGE_bench.py").write_text('prompt = "One score for <edit_prompt>."\n')
    return folder.parent


def scoring(scores: Mapping[str, tuple[int, int, int]], other: tuple[int, int, int] = (5, 5, 5)) -> Saying:
    """A judge with these three scores by sample; one score, the first, where one is asked for."""

    def say(question: Any) -> dict[str, Any]:
        own = scores.get(question.turn_ref.sample, other)
        if len(question.metrics) == 1:
            return {"reasoning": "so", "score": own[0]}
        return {m: {"reasoning": "so", "score": s} for m, s in zip(question.metrics, own, strict=True)}

    return Saying(say)


def test_an_edit_is_the_mean_of_three_scores_and_overall_the_plain_mean_of_types(tmp_path: Path):
    items = {"1": basic_item(1, "add"), "2": basic_item(2, "add"), "3": basic_item(3, "style")}
    judge = scoring({"basic-1": (5, 4, 3), "basic-2": (2, 2, 2), "basic-3": (1, 1, 1)})
    run = evaluate("imgedit", write_imgedit(tmp_path / "data", {BASIC: items}), tmp_path, judge)
    found = cells(run, "basic")
    assert (found["Add"], found["Style"], found["Overall"]) == (pytest.approx(3), pytest.approx(1), pytest.approx(2))
    assert found["Remove"] is None and len(judge.asked) == 3, "one call an edit"


def test_the_plain_mean_of_nine_types_is_what_papers_print():
    """Step1X-Edit's types add up to 27.54 and its overall score is printed as 3.06."""
    assert round(27.54 / 9, 2) == 3.06
    (published,) = load_benchmark("imgedit").tables([])
    assert published.cells("Step1X-Edit")["Overall"].value == 3.06


def test_a_missing_image_is_zero_and_the_released_scripts_stop(tmp_path: Path):
    items = {"1": basic_item(1), "2": basic_item(2)}
    data = write_imgedit(tmp_path / "data", {BASIC: items})
    run = evaluate("imgedit", data, tmp_path, scoring({}, (4, 4, 4)), Painter(refuses="number 2"))
    strict, official = table(run, "basic edits").run_rows
    assert strict.cells["Add"].value == pytest.approx(2) and official.cells["Add"].value is None
    assert "stop at an edit without an image" in table(run, "basic edits").note


@pytest.mark.parametrize(
    ("text", "average", "strict"),
    [
        (LINES, 4, 4),
        (LINES.replace(": 4", ": 4/5"), 4, 4),
        (LINES.replace("Natural Look: 4", "**Natural Look:** 4"), 4, 4),
        (LINES.replace(": 5", ": 5/5").replace(": 3", ": **3**"), 4, 4),
        (LINES.replace("Natural Look: 4", "**Natural Look:** 1"), 4, 3),
        (f"{LINES}\nTotal: 12", 6, 4),
        (LINES.replace(": 4", ": 4.5"), 4, 12.5 / 3),
        (LINES.replace("\nNatural Look: 4", ""), 4, "unusable"),
        (LINES.replace(": 3", ": 30/10"), 4.5, "unusable"),
        ("I cannot tell.", None, None),
        ("", None, "unusable"),
    ],
)
def test_both_readings_of_a_reply(text: str, average: float | None, strict: float | str | None):
    assert official_reading.read_average(text) == average
    if strict == "unusable":
        with pytest.raises(UnusableReply):
            official_reading.parse_scores(text, list(NAMES))
        return
    parsed = official_reading.parse_scores(text, list(NAMES))
    mean = None if parsed is None else sum(parsed[name] for name in NAMES) / 3
    assert mean == (None if strict is None else pytest.approx(strict))


def test_the_released_prompts_are_asked_and_read_line_by_line(tmp_path: Path, checkout: Path):
    items = {str(number): basic_item(number) for number in (1, 2, 3)}
    data = write_imgedit(
        tmp_path / "data", {BASIC: items, "UGE/UGE_edit.json": {"9": {"id": "9.png", "prompt": "Go."}}}
    )
    texts = {
        "basic-1": LINES,
        "basic-2": LINES.replace("Prompt Fit: 5", "**Prompt Fit:** 5"),
        "basic-3": "It is fine.",
        "uge-9": "Brief reasoning: fine. Score: 4",
    }
    judge = Saying(lambda question: texts[question.turn_ref.sample])
    run = evaluate("imgedit", data, tmp_path, judge, prompts=f"official:{checkout}")
    shown = next(
        parts for question, parts in zip(judge.asked, judge.shown, strict=True) if question.turn_ref.sample == "basic-1"
    )
    assert shown[0] == f"add. {PROMPT}".replace("<edit_prompt>", "Edit it, number 1.")
    assert [part.size for part in shown[1:]] == [(32, 32), (24, 48)]
    strict, official = table(run, "basic edits").run_rows
    assert strict.cells["Add"].value == pytest.approx(4) and strict.cells["Add"].scored == 2
    assert official.cells["Add"].value == pytest.approx(3.75) and official.cells["Add"].scored == 2
    assert cells(run, "UGE", "strict")["Score"] == pytest.approx(4), "the released scripts read nothing there"
    assert cells(run, "UGE", "official")["Score"] is None
    values = {verdict.metric: verdict.value for verdict in run.verdicts if verdict.sample == "basic-3"}
    assert set(values.values()) == {None}, "unreadable is unscored, never a number"


class Chain:
    """Paints each turn in another colour, and keeps what it was shown."""

    name, version = "chain", "1"

    def __init__(self, fails_at: int = 0) -> None:
        self.fails_at = fails_at
        self.shown: list[list[tuple[str, list[Any]]]] = []

    def __call__(self, messages: Any, want: str) -> Any:
        self.shown.append(
            [
                (role, [part if isinstance(part, str) else part.getpixel((5, 5)) for part in parts])
                for role, parts in messages
            ]
        )
        turn = sum(role == "user" for role, _ in messages)
        if turn == self.fails_at:
            return "I would rather not."
        return Pil.new("RGB", (16, 16), (turn, turn, turn))


DIALOGUE = {"id": "d.png", "turn1": "First.", "turn2": "Second.", "turn3": "Third."}


def test_a_dialogue_is_fed_the_images_that_the_model_made(tmp_path: Path):
    data = write_imgedit(tmp_path / "data", {"Multiturn/content_memory/memory.json": {"1": DIALOGUE}})
    model, judge = Chain(), scoring({}, (5, 5, 2))
    run = evaluate("imgedit", data, tmp_path, judge, model)
    last = model.shown[-1]
    assert [role for role, _ in last] == ["user", "assistant", "user", "assistant", "user"]
    assert last[1][1] == [(1, 1, 1)] and last[3][1] == [(2, 2, 2)] and last[4][1] == ["Third."]
    pictures = [part.getpixel((5, 5)) for part in judge.shown[-1] if not isinstance(part, str)]
    assert pictures[1:] == [(1, 1, 1), (2, 2, 2), (3, 3, 3)], "the judge sees each version"
    assert cells(run, "dialogues by turn") == {
        column: pytest.approx(4) for column in ("Turn 1", "Turn 2", "Turn 3", "All")
    }
    assert {row.arithmetic for row in table(run, "dialogues by turn").run_rows} == {""}, (
        "people judge them for the authors"
    )


def test_a_turn_without_an_image_is_zero_and_the_next_begins_with_the_last_one_there_was(tmp_path: Path):
    data = write_imgedit(tmp_path / "data", {"Multiturn/content_memory/memory.json": {"1": DIALOGUE}})
    judge = scoring({})
    run = evaluate("imgedit", data, tmp_path, judge, Chain(fails_at=2))
    assert cells(run, "dialogues by turn") == {"Turn 1": 5, "Turn 2": 0, "Turn 3": 5, "All": pytest.approx(10 / 3)}
    third = next(question for question in judge.asked if question.turn_ref.turn == 2)
    assert third.material["source"] == next(q for q in judge.asked if q.turn_ref.turn == 0).material["output"]


def test_suites_are_filters_and_their_outputs_lie_apart(tmp_path: Path):
    files = {
        BASIC: {"1": basic_item(1)},
        "UGE/UGE_edit.json": {"1": {"id": "u.png", "prompt": "A hard one."}},
        "Multiturn/content_memory/memory.json": {"1": DIALOGUE},
    }
    data = write_imgedit(tmp_path / "data", files)
    basic = evaluate("imgedit", data, tmp_path, scoring({}), where={"suite": "basic"})
    assert {verdict.sample for verdict in basic.verdicts} == {"basic-1"}
    outputs = tmp_path / "outputs"
    paint(outputs / "1.png", "white")
    run = evaluate("imgedit", data, tmp_path, scoring({}), f"folder/{outputs}")
    assert cells(run, "basic", "strict")["Add"] == 5 and cells(run, "UGE", "strict")["Score"] == 0, "keys overlap"
    paint(outputs / "UGE" / "1.jpg", "gray")
    for number in (1, 2, 3):
        paint(outputs / "Multiturn" / "content_memory" / f"1_turn{number}.png", "gray", mark=number)
    run = evaluate("imgedit", data, tmp_path, scoring({}), f"folder/{outputs}")
    assert {verdict.value for verdict in run.verdicts if verdict.metric == "score"} == {1.0}
    run = evaluate("imgedit", data, tmp_path, scoring({}), f"folder/{outputs / 'UGE'}", where={"suite": "uge"})
    assert cells(run, "UGE")["Score"] == 5


def test_each_problem_of_an_item_is_named_with_its_file_and_key(tmp_path: Path):
    files = {
        BASIC: {
            "1": basic_item(1, "odd"),
            "2": {**basic_item(2), "id": "../2.png"},
            "3": {**basic_item(3), "prompt": " "},
            "4": {**basic_item(4), "id": 4},
            "5": basic_item(5),
        },
        "Multiturn/a/a.json": {"1": {"id": "x.png", "turn1": "Go."}, "2": {"id": "y.png", "turn2": "Go."}},
    }
    dataset = load_benchmark("imgedit").load(write_imgedit(tmp_path / "data", files), open_blobs(tmp_path)).load_all()
    assert [sample.id for sample in dataset.samples] == ["basic-5", "multi-turn-a-1"]
    assert [(problem.record, problem.field) for problem in dataset.problems] == [
        (f"{BASIC}: 1", "edit_type"),
        (f"{BASIC}: 2", "image"),
        (f"{BASIC}: 3", "prompt"),
        (f"{BASIC}: 4", "image"),
        ("Multiturn/a/a.json: 2", "turn1"),
    ]
    with pytest.raises(UserError, match=r"no edits in .*Benchmark\.tar"):
        load_benchmark("imgedit").load(paint(tmp_path / "empty" / "a.png", "red").parent, open_blobs(tmp_path))


def test_a_checkout_of_another_version_is_refused(tmp_path: Path, checkout: Path):
    data = write_imgedit(tmp_path / "data", {BASIC: {"1": basic_item(1)}})
    prompts = checkout / "Benchmark" / "Basic" / "prompts.json"
    prompts.write_text(json.dumps({"add": "Give a number."}))
    with pytest.raises(UserError, match="asks for three scores"):
        evaluate("imgedit", data, tmp_path, scoring({}), prompts=f"official:{checkout}")
    with pytest.raises(UserError, match=r"there is no Benchmark/Basic/prompts\.json"):
        evaluate("imgedit", data, tmp_path, scoring({}), prompts=f"official:{tmp_path}")


def test_the_tabletop_has_edits_whose_scores_are_known(tmp_path: Path):
    from weft_tabletop.make import make

    data = make("tabletop-imgedit", tmp_path / "data", samples=20, seed=3)
    found: dict[str, list[float | None]] = {}
    for model in ("tabletop/oracle", "copy"):
        run = weft.evaluate("imgedit", data=data, model=model, judge="tabletop/exact", home=tmp_path / "home")
        found[model] = [
            cells(run, "basic")["Overall"],
            cells(run, "UGE")["Score"],
            cells(run, "dialogues by turn")["All"],
        ]
    assert found["tabletop/oracle"] == [pytest.approx(5)] * 3
    assert found["copy"][:2] == [pytest.approx(1)] * 2 and found["copy"][2] is not None and found["copy"][2] < 2
