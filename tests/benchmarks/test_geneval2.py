"""GenEval 2: probabilities of right answers, both means, and judges that give words alone."""

import asyncio
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from PIL import Image as Pil

import weft
from edits import Painter
from weft.benchmarks.base import load_benchmark
from weft.calls.sending import RetryPolicy
from weft.errors import WeftError
from weft.judges.tokens import Token, find_probability, read_tokens, write_tokens
from weft_tabletop.make import make
from weft_tabletop.make.files import write_lines

QUESTIONS = [["How many cats are in the image?", "two"], ["Are the cats red?", "Yes"], ["Is there a dog?", "Yes"]]
SKILLS = ["count", "attribute", "object"]


def record(number: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "prompt": f"two red cats and a dog, {number}",
        "atom_count": 3,
        "vqa_list": QUESTIONS,
        "skills": SKILLS,
    } | more


def write(folder: Path, *records: dict[str, Any]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    write_lines(folder / "geneval2_data.jsonl", records or (record(),))
    return folder


def judge_by(answer: Callable[[Any], list[tuple[str, float]] | str]) -> Any:
    """A judge that gives tokens with their probabilities, or a text."""

    class Judge:
        name, version = "by-tokens", "1"

        def __call__(self, messages: Any, want: str, question: Any) -> str:
            said = answer(question)
            if isinstance(said, str):
                return said
            return write_tokens(Token(token, math.log(share)) for token, share in said)

    return Judge()


def evaluate(tmp_path: Path, judge: Any, *records: dict[str, Any], model: Any = None, **options: Any) -> weft.Run:
    data = write(tmp_path / "data", *records)
    return weft.evaluate(
        "geneval2", data=data, model=model or Painter(), judge=judge, home=tmp_path / "home", **options
    )


def cells(run: weft.Run) -> dict[str, Any]:
    """The means and the skills."""
    return {column: cell.value for column, cell in list_cells(run).items()}


def list_cells(run: weft.Run) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for table in run.tables()[:2]:
        (row,) = table.run_rows
        found |= row.cells
    return found


def shares(question: Any) -> list[tuple[str, float]]:
    """0.5 for the number, in words and as a digit; 0.9 and 0.2 for the others."""
    if question.gold.skill == "count":
        return [("two", 0.3), (" Two", 0.1), ("2", 0.1), ("three", 0.4)]
    return (
        [("Yes", 0.7), (" yes", 0.2), ("No", 0.1)]
        if question.gold.skill == "attribute"
        else [("No", 0.8), ("Yes", 0.2)]
    )


def test_both_means_are_of_the_probabilities_of_right_answers(tmp_path: Path):
    found = cells(evaluate(tmp_path, judge_by(shares), record(0), record(1)))
    assert found["AM"] == pytest.approx(100 * (0.5 + 0.9 + 0.2) / 3)
    assert found["GM"] == pytest.approx(100 * (0.5 * 0.9 * 0.2) ** (1 / 3))
    assert (found["Count"], found["Attribute"], found["Object"]) == (
        pytest.approx(50),
        pytest.approx(90),
        pytest.approx(20),
    )
    assert found["Position"] is None and found["Verb"] is None


def test_repeats_are_averaged_by_question_first(tmp_path: Path):
    found = evaluate(tmp_path, judge_by(shares), judge_repeats=2)
    assert cells(found)["GM"] == pytest.approx(100 * (0.5 * 0.9 * 0.2) ** (1 / 3))


def test_an_answer_that_is_not_listed_counts_as_none_of_the_likeliest(tmp_path: Path):
    found = cells(evaluate(tmp_path, judge_by(lambda question: [("No", 0.9)])))
    assert (found["AM"], found["GM"], found["Count"]) == (0, 0, 0)


def test_words_are_never_made_into_a_number_and_the_judge_is_not_asked_for_one(tmp_path: Path):
    asked: list[Any] = []

    def say(question: Any) -> str:
        asked.append(question)
        return '{"probability": 0.9}' if len(asked) % 2 else "two"

    found = evaluate(tmp_path, judge_by(say))
    assert len(asked) == len(QUESTIONS), "asking again would only invite a made-up probability"
    assert all(verdict.value is None and "logprobs/NAME@URL" in verdict.reason for verdict in found.verdicts)
    assert cells(found)["GM"] is None


def test_a_prompt_with_a_question_unscored_is_in_neither_mean(tmp_path: Path):
    def say(question: Any) -> Any:
        is_lost = question.gold.skill == "count" and question.turn_ref.sample == "00000"
        return "words" if is_lost else [("Yes", 0.5), ("two", 0.5)]

    found = evaluate(tmp_path, judge_by(say), record(0), record(1))
    assert cells(found)["AM"] == pytest.approx(50) and cells(found)["Object"] == pytest.approx(50)
    built = list_cells(found)
    assert (built["GM"].scored, built["GM"].expected) == (1, 2)
    assert (built["Count"].scored, built["Count"].expected) == (1, 2)
    assert "1 of 3 questions unscored" in next(one.reason for one in found.verdicts if one.value is None)


def test_without_an_image_every_question_is_zero(tmp_path: Path):
    found = evaluate(tmp_path, judge_by(shares), model="copy")
    assert {column: value for column, value in cells(found).items() if value is not None} == {
        "GM": 0, "AM": 0, "Object": 0, "Attribute": 0, "Count": 0,
    }  # fmt: skip
    assert all(verdict.by == "failure" for verdict in found.verdicts)


@pytest.mark.parametrize(
    ("tokens", "accepted", "probability"),
    [
        ([("two", 0.25), ("Two", 0.25), ("2", 0.5)], ("two", "Two", "2"), 1.0),
        ([("twofold", 0.9)], ("two", "Two", "2"), None),
        ([("tw", 0.01), ("no", 0.9)], ("two",), None),
        ([("", 0.9), (" ", 0.1)], ("two",), None),
    ],
)
def test_the_probability_of_accepted_words(tokens: Any, accepted: Any, probability: float | None):
    found = find_probability([Token(token, math.log(share)) for token, share in tokens], accepted)
    assert found == (None if probability is None else pytest.approx(probability))


def test_words_written_in_pieces_have_no_probability(tmp_path: Path):
    with pytest.raises(ValueError, match="in pieces"):
        find_probability([Token("tw", -0.1)], ("two", "Two"))
    found = evaluate(tmp_path, judge_by(lambda question: [("t", 0.5), ("Y", 0.5)]))
    assert all(verdict.value is None and "in pieces" in verdict.reason for verdict in found.verdicts)


@pytest.mark.parametrize("text", ["", "two", "[]", "{}", '{"tokens": []}', '{"tokens": [{"token": "a", "logprob": 3}]}',
                                  '{"tokens": [{"token": "a", "logprob": "x"}]}', "{" * 5000])  # fmt: skip
def test_what_is_no_list_of_tokens_is_read_as_none(text: str):
    assert read_tokens(text) is None


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"atom_count": 2}, "atom_count"),
        ({"vqa_list": []}, "vqa_list"),
        ({"skills": ["count"]}, "1 entries for 3"),
        ({"skills": ["count", "attribute", "taste"]}, "'taste'"),
        ({"vqa_list": [["How many?", "ten"], *QUESTIONS[1:]]}, "'ten'"),
        ({"vqa_list": [*QUESTIONS[:2], ["Is there a dog?", "No"]]}, "'No'"),
        ({"vqa_list": [*QUESTIONS[:2], ["Is there a dog?"]]}, "pairs"),
        ({"prompt": ""}, "prompt"),
    ],
)
def test_each_problem_of_a_record_is_named(fields: dict[str, Any], why: str, tmp_path: Path):
    from weft.store.blobs import Blobs

    data = write(tmp_path / "data", record(0), record(1, **fields))
    dataset = load_benchmark("geneval2").load(data, Blobs(tmp_path / "blobs"))
    assert len(list(dataset.samples)) == 1
    (problem,) = dataset.problems
    assert "prompt 1" in str(problem) and why in str(problem)


def test_outputs_are_found_by_number_or_by_the_authors_file_of_paths(tmp_path: Path):
    data = write(tmp_path / "data", record(0), record(1), record(2))
    images = tmp_path / "images"
    images.mkdir()
    Pil.new("RGB", (8, 8)).save(images / "00001.png")
    Pil.new("RGB", (8, 8)).save(tmp_path / "secret.png")
    paths = {record(1)["prompt"]: "00001.png", record(2)["prompt"]: "../secret.png"}
    (images / "paths.json").write_text(json.dumps(paths))
    outcomes: list[list[str]] = []
    for outputs in (images, images / "paths.json"):
        run = weft.evaluate(
            "geneval2", data=data, model=f"folder/{outputs}", judge=judge_by(shares), home=tmp_path / "home"
        )
        outcomes.append([turn.reply.outcome for turn in sorted(run.turns, key=lambda turn: turn.position)])
    assert outcomes == [["empty", "answered", "empty"], ["empty", "answered", "failed"]]


def test_the_tabletop_has_prompts_whose_answers_are_known(tmp_path: Path):
    data = make("tabletop-geneval2", tmp_path / "data", samples=8, seed=3)
    for model, expected in (("tabletop/oracle", 100), ("tabletop/faulty", None)):
        run = weft.evaluate("geneval2", data=data, model=model, judge="tabletop/exact", home=tmp_path / "home")
        assert all(verdict.value is not None for verdict in run.verdicts)
        found = cells(run)
        if expected:
            assert (found["AM"], found["GM"]) == (expected, expected)
        else:
            assert found["GM"] <= found["AM"] < 100


async def serve_chat(says: str, bodies: list[Any], act: Callable[[str], Any]) -> Any:
    """`act` with the address of a chat server: it gives log-probabilities, or none, or begins by thinking."""

    async def answer(request: web.Request) -> web.Response:
        body = await request.json()
        bodies.append(body)
        text = '{"reasoning": "so", "score": 10}' if "max_tokens" not in body else "Yes"
        if says == "nothing at first" and len(bodies) < 3:
            text = ""
        first = "<think>" if says == "thinks" else "Yes"
        top = [{"token": first, "logprob": math.log(0.75)}, {"token": "two", "logprob": math.log(0.25)}]
        logprobs = (
            None if says == "words" or not text else {"content": [{"token": first, "logprob": -1, "top_logprobs": top}]}
        )
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "length"}
        return web.json_response({"model": "m", "choices": [{**choice, "logprobs": logprobs}]})

    app = web.Application(client_max_size=64 * 1024**2)
    app.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        return await asyncio.to_thread(act, f"http://127.0.0.1:{runner.addresses[0][1]}/v1")
    finally:
        await runner.cleanup()


def run_against(says: str, tmp_path: Path, bodies: list[Any], **more: Any) -> weft.Run:
    def act(address: str) -> weft.Run:
        return evaluate(tmp_path, f"logprobs/vlm@{address}", judge_options={"top": 5}, **more)

    return asyncio.run(serve_chat(says, bodies, act))


def test_a_server_is_asked_for_one_token_with_its_alternatives(tmp_path: Path):
    bodies: list[Any] = []
    found = cells(run_against("ok", tmp_path, bodies))
    assert (found["Count"], found["Object"]) == (pytest.approx(25), pytest.approx(75))
    asked = [body for body in bodies if "max_tokens" in body]
    assert len(asked) == len(QUESTIONS)
    for body in asked:
        assert (body["logprobs"], body["top_logprobs"], body["max_tokens"], body["temperature"]) == (True, 5, 1, 0)
        assert "response_format" not in body


def test_a_server_without_log_probabilities_is_refused_before_an_image_is_made(tmp_path: Path):
    bodies: list[Any] = []
    with pytest.raises(WeftError, match="no log-probabilities"):
        run_against("words", tmp_path, bodies, preflight=True)
    assert len(bodies) == 1, "the small question before the run"


def test_an_empty_reply_without_log_probabilities_is_asked_again(tmp_path: Path):
    bodies: list[Any] = []
    quick = RetryPolicy(base=0.001)
    found = cells(run_against("nothing at first", tmp_path, bodies, retry_policy=quick))
    assert (found["Count"], found["Object"]) == (pytest.approx(25), pytest.approx(75))


def test_a_model_that_thinks_first_has_not_answered(tmp_path: Path):
    found = run_against("thinks", tmp_path, [])
    assert all(verdict.value is None and "<think>" in verdict.reason for verdict in found.verdicts)
