"""`official` of IMUG-Bench is what its released scripts send and compute. `python -m conformance imug CHECKOUT` shows
the same beside the scripts themselves; here their repository is a made-up one of the same build, with words of our
own."""

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_imug import Serve, evaluate, image, judge, lines, records, text, write

import weft
from server import Provider, Seen, drawn, model_answer
from weft.benchmarks.imug import Imug, official_questions
from weft.benchmarks.imug.data import ChoiceGold
from weft.benchmarks.imug.facts import read_choice_facts
from weft.benchmarks.imug.official import OFFICIAL
from weft.benchmarks.imug.tables import build_cell
from weft.benchmarks.official import MissingScore
from weft.errors import UserError
from weft.evaluation.config import RunConfig
from weft.evaluation.session import open_run
from weft.store.blobs import Blobs
from weft.types import OfficialReading, Question, TurnRef, Verdict

SCRIPTS = {
    "dynamic_prompt.txt": "Find the key.\r\nAs JSON.",
    "eval_prompt.txt": "Rate the points.",
    "score_image.py": """
def evaluate_task():
    beside = f"P{index + 1} (of {reference_turn}, {reference['ref_type']})"
    rated = f"P{len(images) + 1} (to rate)"
    line = f"{index + 1}) {point}"
    image_text = "Shown:\\n" + f"* {description}\\n"
    asked = f"{image_text}\\nAsked:\\n{task['input'][0]['text']}\\nPoints:\\n{point_text}\\nNow."
""",
    "resolve_dynamic_answers.py": """
def resolve_answer():
    reference_text = "What was said\\n"
    nothing = (given.get("text", "(a picture)"), given.get("answer", "(words)"))
    see = f"(look at P{image_index})"
    line = f"{reference_turn}: {question} -> {answer}\\n"
    choice_type = "MANY" if several else "ONE"
    asked = f"{reference_text}\\nAt {turn}: {target_task['input'][0]['text']}\\nKind: {choice_type}\\nGo."
""",
}


def write_checkout(root: Path) -> Path:
    folder = root / "scripts" / "auxiliary"
    folder.mkdir(parents=True)
    for name, said in SCRIPTS.items():
        (folder / name).write_text(said)
    return root


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return write_checkout(tmp_path / "repo")


@pytest.fixture
def imug(tmp_path: Path) -> Path:
    return write(tmp_path / "imug", records())


def answering(
    model: Callable[[Seen], Any] = model_answer, key: str = "B", points: str = ""
) -> Callable[[Seen], dict[str, Any]]:
    """A judge that is asked in words alone."""

    def answer(seen: Seen) -> dict[str, Any]:
        if not seen.is_judge:
            return model(seen) if "modalities" in seen.body else {"role": "assistant", "content": "B"}
        if "Find the key" in seen.texts[0]:
            return {
                "role": "assistant",
                "content": key if key.startswith("{") else json.dumps({"determined_answer": key, "reasoning": "x"}),
            }
        count = len(re.findall(r"^\d\) ", seen.texts[-1], re.MULTILINE))
        results = [{"point_id": n, "score": 4, "reason": "x"} for n in range(1, count + 1)]
        return {"role": "assistant", "content": points or json.dumps({"evaluation_results": results})}

    return answer


def outputs(folder: Path, said: dict[str, dict[int, str]], pictures: dict[str, list[int]]) -> Path:
    """The released client's layout for the two dialogues of the toy."""
    for name, place in (("Cooking/cooking_workflow", "question_1"), ("Apparel/garment_replacement", "question_2")):
        where = folder / name / place
        where.mkdir(parents=True)
        if name in said:
            tasks = [{"turn": turn, "model_response": words} for turn, words in said[name].items()]
            (where / "result.json").write_text(json.dumps({"tasks": tasks}))
        for turn in pictures.get(name, ()):
            (where / f"turn_{turn}_output.png").write_bytes(drawn(f"{name} {turn}"))
    return folder


COOKING, APPAREL = "Cooking/cooking_workflow", "Apparel/garment_replacement"
SAID = {COOKING: {2: "B", 4: "B"}, APPAREL: {2: "B"}}
DRAWN = {COOKING: [1, 3], APPAREL: [1]}


# prompts


def test_official_prompts_are_put_together_as_the_scripts_do_and_never_run(
    imug: Path, tmp_path: Path, serve: Serve, checkout: Path
):
    provider = serve(answer=answering())
    evaluate(imug, tmp_path / "home", provider, prompts=f"official:{checkout}")
    asked = [seen for seen in provider.seen if seen.is_judge]
    for seen in asked:
        assert seen.body["temperature"] == 0.1 and not {"response_format", "max_tokens"} & set(seen.body)
    about_points = next(seen for seen in asked if "Make the pan red." in seen.texts[-1])
    (role, parts), (_, shown) = about_points.shape
    assert (role, parts) == ("system", ["Rate the points."]) and len(shown) == 3 and shown[0].startswith("sha256:")
    assert (
        shown[2]
        == "Shown:\n* P1 (of 1, output)\n* P2 (to rate)\n\nAsked:\nMake the pan red.\nPoints:\n1) The pan is red.\nNow."
    )
    key = next(seen for seen in asked if "What colour is the pan?" in seen.texts[-1])
    (role, parts), (_, shown) = key.shape
    assert (role, parts) == ("system", ["Find the key.\nAs JSON."]) and shown[1].startswith("sha256:")
    assert shown[0].startswith(
        "What was said\n1: Generate a pan with two eggs. -> (look at P1)\n\nAt 2: What colour is the pan?\nOptions:"
    )
    assert shown[0].endswith("Kind: ONE\nGo.")
    evaluate(imug, tmp_path / "other", provider, prompts=f"official:{checkout}", judge_options={"temperature": 0.7})
    assert [seen for seen in provider.seen if seen.is_judge][-1].body["temperature"] == 0.7


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("score_image.py", "evaluate_task", "evaluate", "has no function evaluate_task"),
        ("score_image.py", "{len(images) + 1}", "{number}", "has no text with len"),
        ("score_image.py", "image_text =", "text =", "has no text in image_text"),
        ("resolve_dynamic_answers.py", '"answer", ', '"reply", ', "has no text for a missing answer"),
        ("resolve_dynamic_answers.py", "choice_type =", "kind =", "has no choice of choice_type"),
    ],
)
def test_a_repository_that_is_another_is_one_clear_line(checkout: Path, file: str, old: str, new: str, message: str):
    path = checkout / "scripts" / "auxiliary" / file
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(UserError, match=message):
        Imug.preparation.rubrics(Imug(), f"official:{checkout}")


# inputs


def test_official_inputs_are_the_released_clients(imug: Path, tmp_path: Path, serve: Serve):
    """No system prompt where a record has none, one that there is as it is, replies with their blanks, a word for what
    failed."""

    def model(seen: Seen) -> dict[str, Any]:
        return {"role": "assistant", "content": "no"} if "two eggs" in "".join(seen.texts[-1:]) else model_answer(seen)

    provider = serve(
        answer=lambda seen: (
            judge()(seen) if seen.is_judge or "modalities" in seen.body else {"role": "assistant", "content": " B\n"}
        )
    )
    provider.answer = lambda seen, usual=provider.answer: (
        model(seen) if "modalities" in seen.body and not seen.is_judge else usual(seen)
    )
    evaluate(imug, tmp_path / "home", provider, official=True)
    last = next(seen for seen in provider.seen if not seen.is_judge and "Which colours can" in seen.texts[-1])
    assert [role for role, _ in last.shape] == ["user", "assistant", "user", "assistant", "user", "assistant", "user"]
    assert last.shape[1] == ("assistant", ["Error"]) and last.shape[3] == ("assistant", [" B\n"])
    assert any(seen.shape[0] == ("system", ["Be brief."]) for seen in provider.seen if not seen.is_judge)
    with pytest.raises(UserError, match="official inputs are the whole dialogue"):
        evaluate(imug, tmp_path / "none", provider, official=True, history="none")


# outputs made elsewhere


def test_errors_of_the_released_client_score_what_they_would_have_scored(imug: Path, tmp_path: Path, serve: Serve):
    """An empty reply is the model's doing in both; anything else is unscored in strict, and nothing in the scripts'
    count but a zero."""
    said = {
        COOKING: {2: "ERROR: Server response must contain a non-empty text field", 4: "ERROR: CUDA out of memory"},
        APPAREL: {2: "B"},
    }
    folder = outputs(tmp_path / "out", said, DRAWN)
    run = evaluate(imug, tmp_path / "home", serve(answer=judge()), model=f"folder/{folder}")
    found = {(one.sample.split("/")[0], one.turn): one for one in run.verdicts}
    assert (found["Cooking", 1].value, found["Cooking", 1].by, OFFICIAL.score(found["Cooking", 1])) == (
        0.0,
        "failure",
        0.0,
    )
    assert found["Cooking", 3].value is None and OFFICIAL.score(found["Cooking", 3]) == 0.0
    assert "CUDA out of memory" in found["Cooking", 3].reason


def test_pictures_count_without_a_result_and_turns_may_be_texts(imug: Path, tmp_path: Path, serve: Serve):
    folder = outputs(tmp_path / "out", {COOKING: {}}, DRAWN)
    tasks = [{"turn": "2", "model_response": "B"}, {"turn": "4", "model_response": "B"}]
    (folder / COOKING / "question_1" / "result.json").write_text(json.dumps({"tasks": tasks}))
    run = evaluate(imug, tmp_path / "home", serve(answer=judge()), model=f"folder/{folder}")
    found = {(one.sample.split("/")[0], one.turn): one.value for one in run.verdicts}
    assert found["Apparel", 0] == 0.8 and found["Apparel", 1] is None, (
        "the picture is there, what was said is not known"
    )
    assert found["Cooking", 1] == 1.0


def test_text_turns_alone_have_their_dynamic_questions_scored_where_the_pictures_are(
    imug: Path, tmp_path: Path, serve: Serve
):
    folder = outputs(tmp_path / "out", SAID, DRAWN)
    run = evaluate(imug, tmp_path / "home", serve(answer=judge()), model=f"folder/{folder}", turns="text")
    assert {(one.metric, one.value is None) for one in run.verdicts} == {("choice", False)} and len(run.turns) == 3
    assert run.name == "folder/out [text turns]"
    live = evaluate(imug, tmp_path / "home", serve(answer=judge()), turns="text")
    assert any("is not asked in a run of text turns" in one.reason for one in live.verdicts if one.value is None)


# the official row


def test_a_missing_picture_is_judged_as_the_scripts_do_under_official_alone(
    imug: Path, tmp_path: Path, serve: Serve, checkout: Path
):
    folder = outputs(tmp_path / "out", SAID, {COOKING: [1], APPAREL: [1]})
    provider = serve(answer=answering())
    run = evaluate(
        imug, tmp_path / "home", provider, model=f"folder/{folder}", prompts=f"official:{checkout}", official=True
    )
    missing = next(one for one in run.verdicts if one.sample.startswith("Cooking") and one.turn == 2)
    assert (missing.value, missing.by, OFFICIAL.score(missing)) == (0.0, "failure", 80.0)
    asked = next(seen for seen in provider.seen if "Make the pan red." in seen.texts[-1])
    assert len(asked.pictures) == 1 and "to rate" not in asked.texts[-1], (
        "the reference stands where the picture should"
    )
    plain = evaluate(imug, tmp_path / "home", provider, model=f"folder/{folder}", prompts=f"official:{checkout}")
    assert plain.table().cells(f"{plain.name} (official)")["Hybrid Gen."].value is None


@pytest.mark.parametrize(
    ("said", "share"),
    [
        ('{"evaluation_results": [{"point_id": 1, "score": 4}]}', 0.8),
        ('So: {"evaluation_results": [{"point_id": 1, "score": "3"}, {"point_id": 9, "score": 6}]} there', 0.9),
        ('{"evaluation_results": [{"score": null}]}', None),
        ('{"evaluation_results": [4]}', None),
        ('{"evaluation_results": [{"score": "x"}]}', None),
        ('{"evaluation_results": [{"score": NaN}]}', None),
        ('{"evaluation_results": [{"score": 1e300}]}', None),
        ('{"evaluation_results": 4}', None),
        ("[" * 100_000, None),
        ("four", None),
    ],
)
def test_points_are_averaged_as_they_came(said: str, share: float | None):
    reading = official_questions.read_points_as_released(said)
    assert reading == (None if share is None else OfficialReading(pytest.approx(5 * share)))


@pytest.mark.parametrize("said", ['{"evaluation_results": []}', "{}", 'So: {"evaluation_results": {}}'])
def test_a_reply_without_points_is_stored_without_a_score(said: str):
    assert official_questions.read_points_as_released(said) == OfficialReading(None)


@pytest.mark.parametrize(
    ("raw", "said", "answer", "share"),
    [
        ("<DYNAMIC>", '{"determined_answer": "B"}', "B", 1.0),
        ("<DYNAMIC>", '{"determined_answer": "b"}', "B.", 0.75),
        ("<DYNAMIC>", '{"determined_answer": "None"}', "E", 1.0),
        ("A+<DYNAMIC>", '{"determined_answer": ""}', "A", 1.0),
        ("<DYNAMIC>+A", '{"determined_answer": "B"}', "A", 0.0),
        ("A+<DYNAMIC>", '{"determined_answer": "B"}', "AB", 0.0),
        ("<DYNAMIC>", '{"reasoning": "B"}', "B", 0.0),
        ("<DYNAMIC>", "B", "B", None),
    ],
)
def test_keys_are_made_of_any_letter_that_a_judge_writes(raw: str, said: str, answer: str, share: float | None):
    question = Question(("choice",), (), {}, TurnRef(), gold=(ChoiceGold("", "", raw, True), answer))
    assert official_questions.read_choice_as_released(question, said) == share


def test_incomplete_points_are_unscored_in_strict_and_averaged_in_official(
    imug: Path, tmp_path: Path, serve: Serve, checkout: Path
):
    provider = serve(answer=answering(points='{"evaluation_results": [{"point_id": 1, "score": 5, "reason": "x"}]}'))
    run = evaluate(imug, tmp_path / "home", provider, prompts=f"official:{checkout}")
    first = next(one for one in run.verdicts if one.sample.startswith("Cooking") and one.turn == 0)
    assert first.value is None and OFFICIAL.score(first) == 100.0


SHARES = st.one_of(st.none(), st.integers(0, 20).map(lambda n: n / 20))


@given(st.lists(st.tuples(st.sampled_from(("choice", "points")), SHARES, SHARES, st.integers(0, 5)), max_size=40))
def test_both_arithmetics_are_plain_means_over_turns(some: list[tuple[str, float | None, float | None, int]]):
    """Against a second reckoning: percent, each scored turn once; the scripts round to two decimals."""
    whole = {"choice": 1, "points": 5}
    readings = [OfficialReading(None if other is None else whole[metric] * other) for metric, _, other, _ in some]
    verdicts = [
        Verdict(f"s{at}", turn, metric, strict, reading=readings[at])
        for at, (metric, strict, _, turn) in enumerate(some)
    ]
    for official in (False, True):
        for metric in ("choice", "points", None):
            both = [(one, entry[2] if official else entry[1]) for one, entry in zip(verdicts, some, strict=True)]
            mine = [(one, value) for one, value in both if metric in (None, one.metric)]
            values = [100 * value for _, value in mine if value is not None]
            due = sum(values) / len(values) if values else None
            if official and due is not None:
                due = round(due, 2)
            assert build_cell([one for one, _ in mine], official=official).value == pytest.approx(due, abs=1e-9)


def test_tables_by_domain_class_and_turn_come_in_both_ways(imug: Path, tmp_path: Path, serve: Serve):
    run = evaluate(imug, tmp_path / "home", serve(answer=judge()))
    titles = {table.title.rpartition(": ")[2] for table in run.tables()}
    assert {f"by {what}, {way}" for what in ("domain", "class", "task") for way in ("strict", "official")} <= titles
    turns = next(table for table in run.tables() if table.title.endswith("by turn, official"))
    assert [row.name for row in turns.rows] == ["turn 1", "turn 2", "turn 3", "turn 4"] and turns.cells("turn 4")[
        "Und."
    ].value == 0.0


# data


def test_odd_keys_cost_their_question_at_most(tmp_path: Path, blobs: Blobs, serve: Serve):
    rows = records()
    rows[0]["tasks"][3]["output"]["answer"] = "A and C"
    rows[0]["tasks"][2]["input"][0]["note"] = "for the painter"
    rows[1]["tasks"] = [
        image(1, "Draw.", ["drawn"]),
        text(2, "Which?", "(B)"),
        text(3, "Which?", "H"),
        text(4, "Which?", ""),
    ]
    rows[1]["tasks"][0]["turn"] = "1"
    folder = write(tmp_path / "odd", rows)
    dataset = Imug().load(folder, blobs).load_all()
    assert len(dataset.samples) == 2 and [sample.turns[-1].gold.key for sample in dataset.samples] == ["AC", ""]
    assert dataset.samples[1].turns[1].gold.key == "B"
    told = [str(problem) for problem in dataset.problems if problem.severity == "warning"]
    assert any("'note' is neither a text nor an image: it is not shown" in one for one in told)
    assert sum("the turn cannot be scored" in one for one in told) == 2
    run = evaluate(folder, tmp_path / "home", serve(answer=judge()))
    values = {(one.sample.split("/")[0], one.turn): one.value for one in run.verdicts}
    assert values["Apparel", 1] == 1.0 and values["Apparel", 2] is None and values["Cooking", 3] == 0.0


def test_options_on_one_line_are_all_read(tmp_path: Path, serve: Serve):
    rows = [{"sample_id": "1", "domain": "Cooking", "subdomain": "cooking_workflow", "tasks": [text(1, "x", "C")]}]
    rows[0]["tasks"][0]["input"][0]["text"] = "Which colour? A. black B. silver C. red D. blue"
    (tmp_path / "one" / "images").mkdir(parents=True)
    (tmp_path / "one" / "benchmark.jsonl").write_text(lines(rows))
    provider = serve(answer=lambda seen: {"role": "assistant", "content": "C. red"})
    run = weft.evaluate(
        "imug", data=tmp_path / "one", model=f"openai-chat/m@{provider.url}", judge="constant/3", home=tmp_path / "home"
    )
    assert [one.value for one in run.verdicts] == [0.75]


@pytest.mark.parametrize("key", ["DB", "B, D", "b and d", "B. D.", "(B)(D)"])
def test_a_judges_key_is_read_as_people_write_it(imug: Path, tmp_path: Path, serve: Serve, key: str):
    rows = records()
    rows[1]["tasks"][1]["output"]["answer"] = "A+<DYNAMIC>"
    run = evaluate(write(tmp_path / "two", rows), tmp_path / "home", serve(answer=judge(key)))
    verdict = next(one for one in run.verdicts if one.sample.startswith("Apparel") and one.turn == 1)
    assert read_choice_facts(verdict).key == "ABD" and verdict.value == pytest.approx(1 / 3)


@pytest.mark.parametrize("key", ["b", "B.", " B ", "Option B"])
def test_so_is_a_single_letter(imug: Path, tmp_path: Path, serve: Serve, key: str):
    provider: Provider = serve(answer=judge(key))
    run = evaluate(imug, tmp_path / "home", provider)
    assert next(one for one in run.verdicts if one.sample.startswith("Cooking") and one.turn == 1).value == 1.0


def test_a_question_that_no_reference_file_lists_is_left_out_in_official(tmp_path: Path, serve: Serve):
    folder = write(tmp_path / "unlisted", records())
    (folder / "dynamic_references.jsonl").write_text("")
    run = evaluate(folder, tmp_path / "home", serve(answer=judge()))
    dynamic = [one for one in run.verdicts if one.metric == "choice" and read_choice_facts(one).dynamic]
    assert len(dynamic) == 2 and all(
        one.value is not None and isinstance(OFFICIAL.score(one), MissingScore) for one in dynamic
    )


def test_what_is_no_text_is_no_answer_and_the_last_of_two_counts(imug: Path, tmp_path: Path, serve: Serve):
    folder = outputs(tmp_path / "out", SAID, DRAWN)
    tasks = [
        {"turn": 2, "model_response": {"text": "B"}},
        {"turn": 4, "model_response": "A"},
        {"turn": 4, "model_response": "BCD"},
    ]
    (folder / COOKING / "question_1" / "result.json").write_text(json.dumps({"tasks": tasks}))
    run = evaluate(imug, tmp_path / "home", serve(answer=judge()), model=f"folder/{folder}")
    found = {one.turn: one for one in run.verdicts if one.sample.startswith("Cooking")}
    assert found[1].value is None and "is not text" in found[1].reason and found[3].value == 1.0


def test_a_question_without_a_key_is_unscored_whatever_was_replied(tmp_path: Path, serve: Serve):
    rows = [{"sample_id": "1", "domain": "Cooking", "subdomain": "cooking_workflow", "tasks": [text(1, "Which?", "H")]}]
    (tmp_path / "one" / "images").mkdir(parents=True)
    (tmp_path / "one" / "benchmark.jsonl").write_text(lines(rows))
    for said in ("B", ""):
        provider = serve(answer=lambda seen, said=said: {"role": "assistant", "content": said})
        run = evaluate(tmp_path / "one", tmp_path / f"home {said}", provider)
        assert [one.value for one in run.verdicts] == [None]


def test_slots_are_only_those_that_are_filled():
    assert official_questions.fill_text("[[number]] of [[these]]", number=3) == "3 of [[these]]"


def test_a_dry_run_knows_what_official_prompts_have_been_answered(
    imug: Path, tmp_path: Path, serve: Serve, checkout: Path
):
    provider = serve(answer=answering())
    more: dict[str, Any] = {"prompts": f"official:{checkout}", "official": True}
    evaluate(imug, tmp_path / "home", provider, **more)
    job = RunConfig(
        benchmark="imug", data=imug, model=f"openai-chat/model@{provider.url}", judge=f"openai-chat/judge@{provider.url}",
        home=tmp_path / "home", prompts=more["prompts"], options={"official": True},
    )  # fmt: skip

    async def foresee() -> Any:
        async with open_run(job) as session:
            return await session.dry_run()

    shares = asyncio.run(foresee())
    assert (shares["judge"].calls, shares["model"].calls) == (0, 0)
