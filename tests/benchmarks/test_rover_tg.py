"""ROVER-TG: what is asked in which mode, what the judge is shown in which order, which answers are right, and what a
picture on the way gains."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from rover import evaluate, metric_of, provider, puzzles, write_json
from server import Provider, Seen, data_url, drawn
from weft.benchmarks.rover.tg import RoverTG, answers, paths
from weft.benchmarks.rover.tg.protocol import extract_answer_text
from weft.errors import UserError
from weft.types import Image, Message, Reply, Text

Serve = Callable[..., Provider]
PICTURE = Image("0" * 64, "image/png", 8, 8, 1)
IR, ALIGN = "interleaved_reasoning", "reasoning_alignment"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_json(tmp_path / "rover", "ROVER-TG", puzzles())


def right(seen: Seen) -> dict[str, Any]:
    """A model that knows all the answers, and draws; a judge that gives 4."""
    answer = next((one["answer"] for one in puzzles() if one["prompt"] in "".join(seen.texts)), "")
    return provider(think=f"I see it.\nFinal Answer: {answer}", answer=f"So.\nFinal Answer: {answer}")(seen)


def found(run: weft.Run) -> dict[tuple[str, int], dict[str, float | None]]:
    made: dict[tuple[str, int], dict[str, float | None]] = {}
    for verdict in run.verdicts:
        made.setdefault((verdict.sample.split("_")[0], verdict.turn), {})[verdict.metric] = verdict.value
    return made


def test_both_modes_on_the_same_items(data: Path, tmp_path: Path, serve: Serve):
    run = evaluate("rover-tg", data, tmp_path / "home", serve(answer=right), options={"mode": "both"})
    values = found(run)
    judged = {IR: 0.75, ALIGN: 0.75}
    for kind in ("physical", "logical", "jigsaw", "multi-view"):
        assert values[kind, 0] == {**judged, "accuracy": 1.0} and values[kind, 1] == {"accuracy_in_words": 1.0}
    # apart from accuracy
    assert values["embodied", 0] == {**judged, "track": 1.0} and values["embodied", 1] == {"track_in_words": 1.0}
    rows = {row.label: row.cells for row in run.table().rows}
    assert (
        rows[f"{run.name}, Vis.-Aug., micro"]["Acc."].value == 100.0
        and rows[f"{run.name}, Vis.-Aug., micro"]["Acc."].expected == 4
    )
    assert rows[f"{run.name}, Vis.-Aug., micro"]["Track"].value == 100.0
    assert (
        rows[f"{run.name}, Text, micro"]["IR"].value is None and rows[f"{run.name}, Text, micro"]["Acc."].value == 100.0
    )


@pytest.mark.parametrize(("mode", "turns"), [("visual", {0}), ("text", {1}), ("both", {0, 1})])
def test_a_mode_asks_its_turns_alone(mode: str, turns: set[int], data: Path, tmp_path: Path, serve: Serve):
    server = serve(answer=right)
    run = evaluate("rover-tg", data, tmp_path / "home", server, options={"mode": mode})
    assert {turn.turn for turn in run.turns} == turns and run.record.state == "finished"
    asked = [seen for seen in server.seen if not seen.is_judge]
    assert {"modalities" in seen.body for seen in asked} == {turn == 0 for turn in turns}
    for seen in asked:
        drawing, words = "modalities" in seen.body, "".join(seen.texts)
        assert ("picture first" in words) == drawing and ("make no picture" in words) == (not drawing)


def test_the_reference_image_stands_where_the_models_own_would(data: Path, tmp_path: Path, serve: Serve):
    server = serve(answer=right)
    run = evaluate("rover-tg", data, tmp_path / "home", server, options={"mode": "given"})
    assert {verdict.metric for verdict in run.verdicts} == {"accuracy_given", "track_given"}
    assert all(verdict.value == 1.0 for verdict in run.verdicts) and len(run.verdicts) == 4, "multi-view has none"
    assert not any(seen.is_judge for seen in server.seen)
    asked = next(seen for seen in server.seen if "question 2" in "".join(seen.texts))
    logical = next(turn for turn in run.turns if turn.sample == "logical_2")
    messages = msgspec.json.decode(logical.messages_json, type=tuple[Message, ...])
    assert [type(part).__name__ for part in messages[0].parts] == ["Text", "Image"]
    assert "picture first" in asked.texts[0] and "Go on from your picture" in asked.texts[-1]
    shown = [part for message in messages[1:] for part in message.parts if isinstance(part, Image)]
    assert [image.digest for image in shown] == [hashlib.sha256(drawn("way 2")).hexdigest()]


def test_answers_that_the_reference_image_flips_are_listed(data: Path, tmp_path: Path, serve: Serve):
    """Right for the logical question with the reference image alone, for the jigsaw in text alone, else always."""

    def answer(seen: Seen) -> dict[str, Any]:
        text = "".join(seen.texts)
        is_given = "Go on from your picture" in text
        if ("question 2" in text and not is_given) or ("question 3" in text and "make no picture" not in text):
            return {"role": "assistant", "content": "Final Answer: nothing"} if not seen.is_judge else right(seen)
        return right(seen)

    run = evaluate("rover-tg", data, tmp_path / "home", serve(answer=answer), options={"mode": "all"})
    tables = {table.title: table for table in run.tables()}
    gains = {row.subset: row.cells for row in tables["ROVER-TG: what the reference image gains"].rows}
    flips = {name: (cells["wrong to right"].value, cells["right to wrong"].value) for name, cells in gains.items()}
    assert flips == {"Given - Text": (1, 1), "Given - Vis.-Aug.": (1, 0)}
    assert gains["Given - Vis.-Aug."]["all"].value == pytest.approx(100 / 3), "of three with a reference image"
    against_text = next(table for title, table in tables.items() if title.endswith("Given against Text"))
    assert {row.name: {name: cell.text for name, cell in row.cells.items()} for row in against_text.rows} == {
        "logical_2": {"Given": "right", "Text": "wrong"},
        "jigsaw_3": {"Given": "wrong", "Text": "right"},
    }


def test_answers_after_the_reference_image_made_elsewhere(data: Path, tmp_path: Path, serve: Serve):
    folder = tmp_path / "gen"
    folder.mkdir()
    (folder / "gen_jigsaw_3.given.txt").write_text("Final Answer: B")
    model = f"folder/{folder}"
    run = evaluate("rover-tg", data, tmp_path / "home", serve(answer=right), model=model, options={"mode": "given"})
    values = {verdict.sample: verdict.value for verdict in run.verdicts}
    assert values == {"physical_0": 0, "embodied_1": 0, "logical_2": 0, "jigsaw_3": 1}


def test_no_other_mode():
    with pytest.raises(UserError, match="rover-tg has no mode 'none'; there is visual, text, both"):
        RoverTG().parse_options({"mode": "none"})


def test_pictures_of_a_question_come_in_the_stated_order(data: Path, tmp_path: Path, serve: Serve):
    server = serve(answer=right)
    run = evaluate("rover-tg", data, tmp_path / "home", server)
    made = {turn.sample: turn.reply.last_image.digest for turn in run.turns if turn.reply.last_image}
    by_digest = {
        _digest(name): name for at in range(5) for name in (f"view {at}", f"second {at}", f"way {at}", f"example {at}")
    }
    shown: dict[tuple[str, str], list[str]] = {}
    for seen in server.seen:
        if seen.is_judge:
            prompt = next(one for one in puzzles() if one["prompt"] in "".join(seen.texts))
            own = f"sha256:{made[prompt['id']]}"
            names = ["made" if one == own else by_digest[one].split()[0] for one in seen.pictures]
            shown[prompt["problem_type"], metric_of(seen)] = names
    assert shown == {
        ("physical", IR): ["view", "way", "made"],
        ("logical", IR): ["view", "way", "made"],
        ("embodied", IR): ["way", "made"],
        ("jigsaw", IR): ["way", "made"],
        ("multi-view", IR): ["view", "second", "made"],
        ("physical", ALIGN): ["view", "made"],
        ("embodied", ALIGN): ["view", "made"],
        ("logical", ALIGN): ["view", "way", "made"],
        ("jigsaw", ALIGN): ["view", "made"],
        ("multi-view", ALIGN): ["view", "second", "made"],
    }


def _digest(name: str) -> str:
    import hashlib

    return "sha256:" + hashlib.sha256(drawn(name)).hexdigest()


def test_the_judge_of_alignment_is_told_the_answer_where_that_matters(data: Path, tmp_path: Path, serve: Serve):
    server = serve(answer=lambda seen: provider(think="Perhaps.\nFinal Answer: something else")(seen))
    evaluate("rover-tg", data, tmp_path / "home", server)
    told = {
        next(one["problem_type"] for one in puzzles() if one["prompt"] in "".join(seen.texts)): "True answer:"
        in "".join(seen.texts)
        for seen in server.seen
        if seen.is_judge and metric_of(seen) == ALIGN
    }
    assert told == {"physical": False, "embodied": False, "logical": True, "jigsaw": True, "multi-view": True}


def test_without_a_true_picture_the_way_is_not_judged_and_not_missed(tmp_path: Path, serve: Serve):
    records = puzzles()
    records[0]["reasoning_image"] = None
    run = evaluate(
        "rover-tg", write_json(tmp_path / "rover", "ROVER-TG", records), tmp_path / "home", serve(answer=right)
    )
    assert found(run)["physical", 0] == {ALIGN: 0.75, "accuracy": 1.0} and run.summary().unscored == {}


def test_no_picture_is_zero_for_the_picture_and_the_answer_counts(data: Path, tmp_path: Path, serve: Serve):
    def reply(seen: Seen) -> dict[str, Any]:
        said = right(seen)
        return said if seen.is_judge else {"role": "assistant", "content": said["content"]}

    server = serve(answer=reply)
    run = evaluate("rover-tg", data, tmp_path / "home", server)
    assert found(run)["jigsaw", 0] == {IR: 0.0, ALIGN: 0.0, "accuracy": 1.0}
    assert all(len(turn.reply.keys) == 3 for turn in run.turns)  # asked for it twice more
    assert not any(seen.is_judge for seen in server.seen)


def test_a_picture_without_words(data: Path, tmp_path: Path, serve: Serve):
    def reply(seen: Seen) -> dict[str, Any]:
        picture = {"type": "image_url", "image_url": {"url": data_url(drawn("x"))}}
        return right(seen) if seen.is_judge else {"role": "assistant", "content": "", "images": [picture]}

    server = serve(answer=reply)
    run = evaluate("rover-tg", data, tmp_path / "home", server)
    assert found(run)["jigsaw", 0] == {IR: 0.75, ALIGN: 0.0, "accuracy": 0.0}
    assert found(run)["embodied", 0] == {IR: 0.75, ALIGN: 0.0, "track": 0.0}
    assert {metric_of(seen) for seen in server.seen if seen.is_judge} == {IR}


def test_what_a_picture_on_the_way_gains(tmp_path: Path, serve: Serve):
    """Right in 9 of 12 with a picture, in 4 of 12 without, 3 of them on the same items."""
    records = [
        {**puzzles()[3], "id": f"jigsaw_{at}", "prompt": f"Which fits, number {at:02}?", "answer": "B"}
        for at in range(12)
    ]

    def reply(seen: Seen) -> dict[str, Any]:
        number = next(at for at in range(12) if f"number {at:02}" in "".join(seen.texts))
        drawing = "modalities" in seen.body
        good = number < 9 if drawing else number in (0, 1, 2, 11)
        said = f"Final Answer: {'B' if good else 'C'}"
        return provider(think=said, answer=said)(seen)

    data = write_json(tmp_path / "rover", "ROVER-TG", records)
    run = evaluate("rover-tg", data, tmp_path / "home", serve(answer=reply), options={"mode": "both"})
    (gain,) = [table for table in run.tables() if "what an intermediate image gains" in table.title]
    (row,) = gain.rows
    cell = row.cells["all"]
    assert (
        cell.value == pytest.approx(100 * 5 / 12)
        and cell.scored == 12
        and cell.low is not None
        and cell.low < cell.value < (cell.high or 0)
    )
    assert row.cells["Visual Perception"].value == cell.value and row.cells["Physical World"].value is None


def outputs(folder: Path, suffix: str = ".txt") -> Path:
    folder.mkdir()
    for one in puzzles():
        if suffix == ".txt":
            (folder / f"gen_{one['id']}.png").write_bytes(drawn(one["id"]))
        (folder / f"gen_{one['id']}{suffix}").write_text(f"I looked.\nFinal Answer: {one['answer']}\n")
    return folder


def test_outputs_made_elsewhere(data: Path, tmp_path: Path, serve: Serve):
    server = serve(answer=right)
    run = evaluate("rover-tg", data, tmp_path / "home", server, model=f"folder/{outputs(tmp_path / 'gen')}")
    assert all(
        values.get("accuracy", values.get("track")) == 1.0 and values[ALIGN] == 0.75 for values in found(run).values()
    )


def test_answers_in_words_made_elsewhere(data: Path, tmp_path: Path, serve: Serve):
    """In files of their own beside the others, or, in a folder without pictures, under the plain names."""
    server = serve(answer=right)
    both = outputs(tmp_path / "gen")
    for one in puzzles():
        (both / f"gen_{one['id']}.text.txt").write_text(f"Final Answer: {one['answer']}")
    run = evaluate("rover-tg", data, tmp_path / "home", server, model=f"folder/{both}", options={"mode": "both"})
    assert {turn.turn for turn in run.turns} == {0, 1} and found(run)["logical", 1] == {"accuracy_in_words": 1.0}
    plain = tmp_path / "words"
    plain.mkdir()
    for one in puzzles()[:3]:
        (plain / f"gen_{one['id']}.txt").write_text(f"Final Answer: {one['answer']}")
    (plain / "plot.png").write_bytes(drawn("of something else"))
    run = evaluate("rover-tg", data, tmp_path / "home2", server, model=f"folder/{plain}", options={"mode": "text"})
    values = found(run)
    # never given
    assert values["logical", 1] == {"accuracy_in_words": 1.0} and values["jigsaw", 1] == {"accuracy_in_words": 0.0}


def test_a_folder_without_answers_in_words_is_told_and_not_scored(data: Path, tmp_path: Path, serve: Serve):
    folder = outputs(tmp_path / "gen")
    run = evaluate(
        "rover-tg", data, tmp_path / "home", serve(answer=right), model=f"folder/{folder}", options={"mode": "both"}
    )
    in_words = [verdict for verdict in run.verdicts if verdict.turn == 1]
    assert len(in_words) == 5 and all(
        verdict.value is None and "no answers in text" in verdict.reason for verdict in in_words
    )


# which answers are right

RIGHT = [  # type of question, what is due, what is said after the mark
    ("logical", "12", "\\(12\\)"),
    ("logical", "5", "\\[5\\]"),
    ("logical", "5", "[5]"),
    ("logical", "12", "The answer is 12"),
    ("logical", "3", "It takes 3 seconds"),
    ("physical", "3", "Box 3"),
    ("logical", "12", "≈ 12"),
    ("logical", "5", "5 (see the red line at 40 cm)"),
    ("logical", "12 cm²", "12 cm^2"),
    ("logical", "10 m/s^2", "10 m/s²"),
    ("logical", "12 cm", "12 centimeters"),
    ("logical", "3 seconds", "3s"),
    ("jigsaw", "B", "option b"),
    ("jigsaw", "B", "Option B, because it continues the D-shaped curve"),
    ("logical", "H", "Option H"),
    ("multi-view", "left", "Left (counter-clockwise), not right"),
    ("multi-view", "left", "counter‑clockwise"),
    ("physical", "Yes", "Yes, it does."),
    ("logical", "2√3", "2√3 ≈ 3.46"),
    ("logical", "(B) 12", "B"),
    ("logical", "(B) 12", "12"),
    ("logical", "60 degrees", "60°"),
    ("logical", "1/2", "0.5"),
    ("logical", "0.5", "\\frac{1}{2}"),
    ("logical", "1000", "1,000"),
    ("logical", "-3", "−3"),
    ("logical", "12", "x = 12"),
    ("physical", "red cup, blue cup", "blue cup and the red cup"),
    ("jigsaw", "B", "A red star, so B"),
    ("jigsaw", "A", "A, not the others"),
    ("jigsaw", "B", "B, a red star"),
    ("logical", "75°", "75"),
    ("logical", "45", "45°"),
    ("physical", "1, 2, 3", "1, 2 and 3"),
    ("logical", "$12$", "12"),
    ("jigsaw", "B", "B"),
    ("jigsaw", "B", "(B)"),
    ("jigsaw", "B", "**B**"),
    ("jigsaw", "B", "b"),
    ("jigsaw", "b", "B"),
    ("jigsaw", "B", "Option B."),
    ("multi-view", "left", "left"),
    ("multi-view", "left", "counterclockwise (left)"),
    ("multi-view", "left", "the camera moved counter-clockwise"),
    ("multi-view", "right", "Clockwise"),
    ("multi-view", "right", "It rotated to the right."),
    ("multi-view", "counterclockwise", "left"),
    ("logical", "12", "12.0"),
    ("logical", "12", "$12$ cm"),
    ("logical", "2√3", "$2\\sqrt{3}$"),
    ("logical", "A", "(A)"),
    ("physical", "the red cup", "Red cup."),
    ("physical", "nothing", "Nothing"),
    ("physical", "red cup", "The red cup"),
]
WRONG = [  # type of question, what is due, what is said after the mark
    ("logical", "4", "4x"),
    ("logical", "4", "4²"),
    ("logical", "4", "4^x"),
    ("logical", "4", "4/x"),
    ("logical", "5", "5 million"),
    ("logical", "5", "5%"),
    ("logical", "3", "3 - x"),
    ("logical", "12", "12 is wrong"),
    ("logical", "7", "x=5, y=7"),
    ("logical", "7", "x = 5 or x = 7"),
    ("logical", "(4, 3)", "(3, 4)"),
    ("logical", "1, 2, 3", "2, 1, 3"),
    ("physical", "1, 2", "1, 2, 2"),
    ("logical", "x>2", "x<2"),
    ("multi-view", "left", "not left"),
    ("multi-view", "right", "counter–clockwise"),
    ("jigsaw", "B", "A or B"),
    ("jigsaw", "B", "A, B"),
    ("logical", "12", "21"),
    ("logical", "12", "12 or 13"),
    ("logical", "12", "between 11 and 13"),
    ("logical", "12 cm", "12 m"),
    ("logical", "12", "1/0"),
    ("jigsaw", "B", "B or C"),
    ("jigsaw", "B", "B and C"),
    ("jigsaw", "B", "none"),
    ("jigsaw", "B", "A"),
    ("jigsaw", "B", ""),
    ("jigsaw", "B", "none of them"),
    ("multi-view", "left", "right"),
    ("multi-view", "left", "left or right"),
    ("multi-view", "left", "clockwise"),
    ("multi-view", "right", "anti-clockwise"),
    ("physical", "the red cup", "the blue cup"),
    ("physical", "red cup, blue cup", "red cup"),
    ("physical", "red cup", "red cup, blue cup"),
    ("physical", "nothing", ""),
]


@pytest.mark.parametrize(("kind", "answer", "reply"), RIGHT)
def test_right_answers(kind: str, answer: str, reply: str):
    assert answers.is_correct(kind, f"I looked.\nFinal Answer: {reply}", answer)


@pytest.mark.parametrize(("kind", "answer", "reply"), WRONG)
def test_wrong_answers(kind: str, answer: str, reply: str):
    assert not answers.is_correct(kind, f"I looked.\nFinal Answer: {reply}", answer)


@pytest.mark.parametrize(
    "reply",
    [
        "B",
        "A fits badly, C worse.\nFinal Answer: B, a red star",
        "At first: Final Answer: A\nNo.\nFinal Answer: B",
        "**Final Answer:** (B)",
        "Final answer is B",
        "Final Answer:\n\n**B**",
        "Answer: B\n\nLet me know if you need more!",
        "Final Answer: B\n(This is my final answer.)",
        "Final Answer: B. This final answer was checked twice.",
    ],
)
def test_where_an_answer_stands(reply: str):
    assert answers.is_correct("jigsaw", reply, "B") and not answers.is_correct("jigsaw", reply, "C")


WRITTEN = [
    "1. (100, 100)\n2. (190, 145)\n3. (280, 190)",
    "- (100, 100)\n- (190, 145)\n- (280, 190)",
    "Waypoint 1: (100, 100)\nWaypoint 2: (190, 145)\nWaypoint 3: (280, 190)",
    "P1=(100,100), P2=(190,145), P3=(280,190)",
    "(x=100, y=100), (x=190, y=145), (x=280, y=190)",
    '[{"x": 100, "y": 100}, {"x": 190, "y": 145}, {"x": 280, "y": 190}]',
    '[{"point_2d": [100, 100], "label": "traj1"}, {"point_2d": [190, 145], "label": "traj2"}, '
    '{"point_2d": [280, 190], "label": "traj3"}]',
    "| 1 | 100 | 100 |\n| 2 | 190 | 145 |\n| 3 | 280 | 190 |",
    "100, 100\n190, 145\n280, 190",
    "(100, 100) --> (190, 145) --> (280, 190)",
    "(100, 100), (190, 145), and (280, 190)",
    "[[100, 100], [190, 145], [280, 190]]\nThe end point is (280, 190).",
    "Origin at (0, 0). [[100, 100], [190, 145], [280, 190]]",
    "**traj1**: (100, 100)\n**traj2**: (190, 145)\n**traj3**: (280, 190)",
]


@pytest.mark.parametrize("said", WRITTEN)
@pytest.mark.parametrize("before", ["", "Final Answer: ", "I start at (5, 5) or so. My plan is this.\nFinal Answer:\n"])
def test_a_path_is_read_however_it_is_written(said: str, before: str):
    found = paths.score_path(before + said, "[[100, 100], [190, 145], [280, 190]]", 640, 480)
    assert found is not None and found[0] == pytest.approx(1.0)


def test_standing_still_is_no_path():
    assert paths.score_path("(190, 145), (190, 145)", "[[100, 100], [280, 190]]", 640, 480) is None


def test_words_on_both_sides_of_a_picture_do_not_run_into_each_other(data: Path, tmp_path: Path, serve: Serve):
    """A reply in parts: words, the picture, the answer alone."""

    def reply(seen: Seen) -> dict[str, Any]:
        said = right(seen)
        if seen.is_judge or "modalities" not in seen.body:
            return said
        answer = next(one["answer"] for one in puzzles() if one["prompt"] in "".join(seen.texts))
        picture = {"type": "image_url", "image_url": {"url": data_url(drawn("x"))}}
        return {
            "role": "assistant",
            "content": [{"type": "text", "text": "Let me draw it"}, picture, {"type": "text", "text": answer}],
        }

    run = evaluate("rover-tg", data, tmp_path / "home", serve(answer=reply))
    assert all(values.get("accuracy", 1.0) == 1.0 and values.get("track", 1.0) == 1.0 for values in found(run).values())


def test_pressed_for_a_picture_it_does_not_lose_its_answer(data: Path, tmp_path: Path, serve: Serve):
    def reply(seen: Seen) -> dict[str, Any]:
        pressed = "make the picture this time" in "".join(seen.texts)
        said = right(seen)
        return (
            said
            if seen.is_judge
            else {"role": "assistant", "content": "I'm sorry, I can't create images." if pressed else said["content"]}
        )

    run = evaluate("rover-tg", data, tmp_path / "home", serve(answer=reply))
    assert found(run)["jigsaw", 0] == {IR: 0.0, ALIGN: 0.0, "accuracy": 1.0}


def test_a_cascade_answers_from_the_picture(data: Path, tmp_path: Path, serve: Serve):
    """The reasoner briefs, the painter draws, and the reasoner is shown the picture and answers."""

    def reply(seen: Seen) -> dict[str, Any]:
        if seen.is_judge or seen.body["model"] == "painter":
            return right(seen) if seen.is_judge else {**right(seen), "content": ""}
        shown = "the picture that was drawn" in "".join(seen.texts)
        return {"role": "assistant", "content": right(seen)["content"] if shown else "Draw the cup."}

    server = serve(answer=reply)
    model = f"cascade:reasoner=openai-chat/thinker@{server.url},painter=openai-chat/painter@{server.url}"
    run = evaluate("rover-tg", data, tmp_path / "home", server, model=model, limit=1)
    assert found(run)["physical", 0] == {IR: 0.75, ALIGN: 0.75, "accuracy": 1.0}
    (turn,) = run.turns
    assert len(turn.reply.keys) == 3 and turn.reply.last_image and "Draw the cup." in turn.reply.thoughts
    assert turn.reply.usage.tokens_in == 300 and turn.reply.usage.cost is not None  # of all three


@given(
    st.text(max_size=60),
    st.sampled_from(["jigsaw", "multi-view", "logical", "physical"]),
    st.text(min_size=1, max_size=20),
)
def test_no_text_breaks_the_rules(reply: str, kind: str, answer: str):
    assert answers.is_correct(kind, reply, answer) in (True, False)
    assert (
        paths.score_path(reply, "[[0, 0], [10, 10]]", 64, 64) is None
        or 0 <= paths.score_path(reply, "[[0, 0], [10, 10]]", 64, 64)[0] <= 1
    )  # type: ignore[index]


@given(st.lists(st.tuples(st.integers(0, 640), st.integers(0, 480)), min_size=2, max_size=12, unique=True))
def test_the_true_path_is_worth_everything_however_it_is_written(path: list[tuple[int, int]]):
    due = json.dumps([list(point) for point in path])
    said = "Final Answer: " + ", ".join(f"({x}, {y})" for x, y in path)
    for reply in (said, f"First [[1, 1], [2, 2]], then better.\nFinal Answer: {due}", f"```\n{due}\n```"):
        found = paths.score_path(reply, due, 640, 480)
        assert found is not None and found == (1.0, 0.0)


def test_a_path_is_worth_less_the_farther_away_it_lies():
    due = "[[0, 0], [100, 0]]"
    for shift, share in ((0, 1.0), (25, 0.8), (62.5, 0.5), (125, 0.0), (500, 0.0)):
        found = paths.score_path(f"[[0, {shift}], [100, {shift}]]", due, 300, 400)  # a diagonal of 500
        assert found is not None and found[0] == pytest.approx(share) and found[1] == pytest.approx(shift / 500)
    denser = paths.score_path("[[0, 0], [10, 0], [20, 0], [90, 0], [100, 0]]", due, 300, 400)
    assert denser is not None and denser[0] == pytest.approx(1.0)  # how many points a path is told by does not matter
    back = paths.score_path("[[100, 0], [0, 0]]", due, 300, 400)
    assert back is not None and back[0] < 0.7  # the way back is another way
    assert paths.score_path("go straight ahead", due, 300, 400) is None
    assert paths.score_path("[[5, 5]]", due, 300, 400) is None


def test_the_last_list_counts():
    assert paths.parse_points("from [1, 2] to [3, 4]; so [[5, 6], [7, 8], [9, 10]]") == [(5, 6), (7, 8), (9, 10)]
    assert paths.parse_points("(1, 2) -> (3.5, 4)") == [(1, 2), (3.5, 4)]
    assert paths.parse_points("no points, 1, 2") == []


def test_final_answers():
    assert answers.extract_final_answer("a\nFinal Answer: x y\nThank you.") == "x y"
    assert answers.extract_final_answer("so\n\n  it is this  \n\n") == "it is this"
    assert answers.extract_final_answer("") == ""


@pytest.mark.parametrize(
    ("parts", "due"),
    [
        (("<think>Perhaps A. Final Answer: A?</think>B", PICTURE), "B"),
        (("B", PICTURE, "<think>or A</think>"), "B"),
        (("Let me draw it", PICTURE, "C"), "C"),
        (("Final Answer: D", PICTURE, "Here it is."), "Final Answer: D\nHere it is."),
        (("<think>never closed, B",), "<think>never closed, B"),
    ],
)
def test_which_words_an_answer_is_taken_from(parts: tuple[Any, ...], due: str):
    assert (
        extract_answer_text(Reply("answered", tuple(Text(part) if isinstance(part, str) else part for part in parts)))
        == due
    )
