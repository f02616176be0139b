"""IMUG-Bench end to end on a real socket: what the model and the judge see, and what comes of it, strictly and
officially."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import weft
from server import Provider, Seen, drawn, model_answer
from weft.benchmarks.imug import data
from weft.benchmarks.imug.facts import is_dynamic, read_choice_facts
from weft.calls.caller import RetryPolicy
from weft.errors import UserError
from weft.store.blobs import Blobs

Serve = Callable[..., Provider]
SHARED = Path(__file__).parents[3] / "shared" / "data" / "imug"
OPTIONS = "\nOptions:\nA. black\nB. silver\nC. red\nD. blue\nE. None of the above."


def text(turn: int, question: str, answer: str) -> dict[str, Any]:
    return {"turn": turn, "modality": "text", "input": [{"text": question + OPTIONS}], "output": {"answer": answer}}


def image(turn: int, asked: str, points: list[str], picture: str | None = None) -> dict[str, Any]:
    given = [{"text": asked}] + ([{"image": picture}] if picture else [])
    return {"turn": turn, "modality": "image", "input": given, "output": {"evaluation_points": points}}


def records() -> list[dict[str, Any]]:
    pan = [
        image(1, "Generate a pan with two eggs.", ["Two eggs are visible.", "They lie in a pan."]),
        text(2, "What colour is the pan?", "<DYNAMIC>"),
        image(3, "Make the pan red.", ["The pan is red."]),
        text(4, "Which colours can a pan have?", "BCD"),
    ]
    shirt = [
        image(1, "Put this shirt on a man.", ["A man wears the shirt."], "shirt.png"),
        text(2, "What colour is it?", "A+<DYNAMIC>"),
    ]
    return [
        {"sample_id": "1", "domain": "Cooking", "subdomain": "cooking_workflow", "tasks": pan},
        {
            "sample_id": 2,
            "domain": "Apparel",
            "subdomain": "garment_replacement",
            "system_prompt": "Be brief.",
            "tasks": shirt,
        },
    ]


def lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def write(folder: Path, rows: list[dict[str, Any]], *, references: bool = True) -> Path:
    (folder / "images").mkdir(parents=True, exist_ok=True)
    (folder / "images" / "shirt.png").write_bytes(drawn("shirt"))
    (folder / "benchmark.jsonl").write_text(lines(rows))
    if references:
        cooking = {"domain": "Cooking", "subdomain": "cooking_workflow", "sample_id": "1"}
        apparel = {"domain": "Apparel", "subdomain": "garment_replacement", "sample_id": "2"}
        links = [
            {**cooking, "reference_links": [{"turn_idx": 3, "refs": [{"ref_turn": 1, "ref_type": "output"}]}]},
            {**apparel, "reference_links": [{"turn_idx": 1, "refs": [{"ref_turn": 1, "ref_type": "input"}]}]},
        ]
        (folder / "image_references.jsonl").write_text(lines(links))
        dynamic = [{**cooking, "turn_idx": 2, "ref_turn_idxs": [1]}, {**apparel, "turn_idx": 2, "ref_turn_idxs": [1]}]
        (folder / "dynamic_references.jsonl").write_text(lines(dynamic))
    return folder


@pytest.fixture
def imug(tmp_path: Path) -> Path:
    return write(tmp_path / "imug", records())


def judge(key: str = "B", score: int = 4) -> Callable[[Seen], dict[str, Any]]:
    """Finds `key` right in every dynamic question, and gives every point the same score."""

    def answer(seen: Seen) -> dict[str, Any]:
        if not seen.is_judge:
            return model_answer(seen) if "modalities" in seen.body else {"role": "assistant", "content": "B"}
        if "determined_answer" in json.dumps(seen.body.get("response_format", {})):
            return {"role": "assistant", "content": json.dumps({"reasoning": "it is so", "determined_answer": key})}
        count = len(
            seen.body["response_format"]["json_schema"]["schema"]["properties"]["evaluation_results"]["items"][
                "properties"
            ]["point_id"]["enum"]
        )
        results = [{"point_id": n, "reason": "r", "score": score} for n in range(1, count + 1)]
        return {"role": "assistant", "content": json.dumps({"evaluation_results": results})}

    return answer


def evaluate(folder: Path, home: Path, provider: Provider, **options: Any) -> weft.Run:
    options.setdefault("model", f"openai-chat/model@{provider.url}")
    patience = RetryPolicy(tries=2, base=0.001, cap=0.002)
    return weft.evaluate(
        "imug", data=folder, home=home, judge=f"openai-chat/judge@{provider.url}", retry_policy=patience, **options
    )


def test_a_whole_run_strict_and_official(imug: Path, tmp_path: Path, serve: Serve):
    run = evaluate(imug, tmp_path / "home", serve(answer=judge("B", 4)))
    found = {(v.sample.split("/")[0], v.turn): v.value for v in run.verdicts}
    assert found == {
        ("Cooking", 0): 0.8,
        ("Cooking", 1): 1.0,  # the judge found B, the model said B
        ("Cooking", 2): 0.8,
        ("Cooking", 3): pytest.approx(1 / 3),  # one of B, C, D
        ("Apparel", 0): 0.8,
        ("Apparel", 1): 0.5,  # A is certain, the judge adds B: AB is right, the model said B
    }
    strict, official = run.table().cells(f"{run.name} (strict)"), run.table().cells(f"{run.name} (official)")
    assert strict["Hybrid Gen."].value == 80.0 and strict["Hybrid Und."].value == pytest.approx(200 / 3)
    assert strict["Static Spatial Und."].value == 50.0 and official["Static Spatial Und."].value == 0.0, (
        "a key of two letters is no key to the script"
    )
    assert official["Hybrid Und."].value == 50.0, "BCD likewise"
    assert run.table().cells("BAGEL")["Avg"].value == 51.9


def test_the_model_sees_the_whole_dialogue_with_its_own_replies(imug: Path, tmp_path: Path, serve: Serve):
    provider = serve(answer=judge())
    evaluate(imug, tmp_path / "home", provider, model_options={"own_images": "assistant"})
    last = max((seen for seen in provider.seen if not seen.is_judge), key=lambda seen: len(seen.body["messages"]))
    roles = [message["role"] for message in last.body["messages"]]
    assert roles == ["system", "user", "assistant", "user", "assistant", "user", "assistant", "user"]
    assert (
        "one picture, never both" in last.texts[0] and last.shape[4] == ("assistant", ["B"]) and len(last.pictures) == 2
    )
    shirt = next(seen for seen in provider.seen if not seen.is_judge and "shirt" in " ".join(seen.texts))
    assert shirt.texts[0] == "Be brief.", "a record's own system prompt is used"


def test_the_judge_sees_what_the_model_really_replied_in_labelled_order(imug: Path, tmp_path: Path, serve: Serve):
    provider = serve(answer=judge())
    run = evaluate(imug, tmp_path / "home", provider)
    made = {
        (turn.sample.split("/")[0], turn.turn): turn.reply.images[-1].digest for turn in run.turns if turn.reply.images
    }
    judged = [seen for seen in provider.seen if seen.is_judge]
    red = next(seen for seen in judged if "The pan is red." in " ".join(seen.texts))
    assert red.pictures == [f"sha256:{made['Cooking', 0]}", f"sha256:{made['Cooking', 2]}"]
    words = " ".join(red.texts)
    assert words.index("Image_1 (made by the model in turn 1)") < words.index("Image_2 (the picture to judge)")
    key = next(seen for seen in judged if "determined_answer" in str(seen.body) and "pan" in " ".join(seen.texts))
    assert key.pictures == [f"sha256:{made['Cooking', 0]}"] and "said" not in key.texts[-1]


def test_missing_points_are_asked_for_again_and_never_guessed(imug: Path, tmp_path: Path, serve: Serve):
    whole = judge()

    def forgetful(seen: Seen) -> dict[str, Any]:
        if seen.is_judge and len(seen.body["messages"]) == 1 and "Two eggs" in " ".join(seen.texts):
            return {
                "role": "assistant",
                "content": json.dumps({"evaluation_results": [{"point_id": 1, "reason": "", "score": 5}]}),
            }
        return whole(seen)

    provider = serve(answer=forgetful)
    run = evaluate(imug, tmp_path / "home", provider)
    assert all(verdict.value is not None for verdict in run.verdicts)
    objection = next(seen for seen in provider.seen if len(seen.body["messages"]) == 3 and seen.is_judge)
    assert "points 2 are missing" in objection.texts[-1]


def test_letters_that_are_no_option_are_no_answer(imug: Path, tmp_path: Path, serve: Serve):
    run = evaluate(imug, tmp_path / "home", serve(answer=judge(key="None")))
    dynamic = [verdict for verdict in run.verdicts if is_dynamic(verdict) or "could not be used" in verdict.reason]
    assert dynamic and all(verdict.value is None for verdict in dynamic), "no answer is unscored, not E"
    kinds = next(row.cells for row in run.tables()[2].rows if row.name == run.name)
    assert (kinds["Static MCQ"].scored, kinds["Static MCQ"].expected) == (1, 1)
    assert (kinds["Dynamic MCQ"].scored, kinds["Dynamic MCQ"].expected) == (0, 2), "it stays what it is"


def test_a_key_with_a_certain_letter_may_have_others_and_the_judge_is_told(imug: Path, tmp_path: Path, serve: Serve):
    provider = serve(answer=judge(key="BD"))
    run = evaluate(imug, tmp_path / "home", provider, where={"domain": "Apparel"})
    verdict = next(v for v in run.verdicts if v.metric == "choice")
    assert read_choice_facts(verdict).key == "ABD" and verdict.value == pytest.approx(1 / 3)
    assert any("A is certainly right" in " ".join(seen.texts) for seen in provider.seen if seen.is_judge)


@pytest.mark.parametrize("options", [{"past": "reference"}, {"history": "full"}, {"placement": "inline"}])
def test_a_history_that_the_protocol_does_not_have_is_refused(
    imug: Path, tmp_path: Path, serve: Serve, options: dict[str, Any]
):
    with pytest.raises(UserError, match="imug "):
        evaluate(imug, tmp_path / "home", serve(answer=judge()), **options)


def test_grid_files_that_are_none_are_told(imug: Path, blobs: Blobs):
    (imug / "grid_gt").mkdir()
    (imug / "grid_gt" / "notes.jsonl").write_text("{}\n")
    with pytest.raises(UserError, match="Domain__subdomain__sample_id"):
        data.load(imug, blobs).load_all()
    (imug / "grid_gt" / "notes.jsonl").rename(imug / "grid_gt" / "A__b__1.jsonl")
    (imug / "grid_gt" / "A__b__1.jsonl").write_text('{"turn": 2, "grid": [["0", "1"], ["0", "1"], ["0", "1"]]}\n')
    with pytest.raises(UserError, match="three rows of three cells"):
        data.load(imug, blobs).load_all()


def test_a_missing_picture_is_zero_without_a_call_and_the_dialogue_goes_on(imug: Path, tmp_path: Path, serve: Serve):
    whole = judge()

    def lazy(seen: Seen) -> dict[str, Any]:
        return (
            whole(seen)
            if seen.is_judge or "modalities" not in seen.body
            else {"role": "assistant", "content": "here it is"}
        )

    provider = serve(answer=lazy)
    run = evaluate(imug, tmp_path / "home", provider)
    pictures = [verdict for verdict in run.verdicts if verdict.metric == "points"]
    assert [(v.value, v.by) for v in pictures] == [(0.0, "failure")] * 3 and len(run.turns) == 6
    assert not any("evaluation_results" in str(seen.body) for seen in provider.seen if seen.is_judge)


def result(folder: Path, record: dict[str, Any], responses: dict[int, str], pictures: dict[int, bytes]) -> None:
    place = folder / record["domain"] / record["subdomain"] / f"question_{record['sample_id']}"
    place.mkdir(parents=True)
    tasks = [
        {**task, "model_response": responses[task["turn"]]} for task in record["tasks"] if task["turn"] in responses
    ]
    (place / "result.json").write_text(json.dumps({**record, "tasks": tasks}))
    for turn, bytes_ in pictures.items():
        (place / f"turn_{turn}_output.png").write_bytes(bytes_)


def test_old_outputs_are_scored_and_nothing_leaves_the_denominator(imug: Path, tmp_path: Path, serve: Serve):
    folder = tmp_path / "outputs"
    first = records()[0]
    result(
        folder, first, {1: "turn_1_output.png", 2: "B", 3: "turn_3_output.png", 4: "ERROR: timeout"}, {1: drawn("pan")}
    )
    run = evaluate(imug, tmp_path / "home", serve(answer=judge()), model=f"folder/{folder}")
    found = {(v.sample.split("/")[0], v.turn): v for v in run.verdicts}
    assert len(found) == 6
    assert found["Cooking", 0].value == 0.8 and found["Cooking", 1].value == 1.0
    assert found["Cooking", 2].value == 0.0 and "no file" in found["Cooking", 2].reason
    assert found["Cooking", 3].value is None and "ERROR: timeout" in found["Cooking", 3].reason
    assert found["Apparel", 0].value is None and "there is no" in found["Apparel", 0].reason, (
        "a missing result.json is not a missing sample"
    )


def test_without_reference_files_it_runs_and_says_so(tmp_path: Path, blobs: Blobs, serve: Serve):
    folder = write(tmp_path / "bare", records(), references=False)
    dataset = data.load(folder, blobs).load_all()
    assert len(dataset.samples) == 2 and sum("there is no" in problem.message for problem in dataset.problems) == 2
    provider = serve(answer=judge())
    run = evaluate(folder, tmp_path / "home", provider)
    assert all(verdict.value is not None for verdict in run.verdicts)


@pytest.mark.parametrize(
    ("spoil", "field", "message"),
    [
        (lambda r: r[0].pop("tasks"), "tasks", "must be a list of turns"),
        (lambda r: r[0]["tasks"][1].update(turn=5), "tasks[1].turn", "2 is expected"),
        (lambda r: r[0]["tasks"][3]["output"].pop("answer"), "tasks[3].output.answer", "an answer key is expected"),
        (
            lambda r: r[0]["tasks"][0]["output"].update(evaluation_points=[]),
            "tasks[0].output.evaluation_points",
            "list of sentences",
        ),
        (lambda r: r[0]["tasks"][0].update(modality="sound"), "tasks[0].modality", "must be 'text' or 'image'"),
        (
            lambda r: r[0]["tasks"][0]["input"].append({"image": "../../x.png"}),
            "tasks[0].input[1].image",
            "leads out of the dataset",
        ),
        (
            lambda r: r[0]["tasks"][0]["input"].append({"image": "gone.png"}),
            "tasks[0].input[1].image",
            "does not exist",
        ),
        (lambda r: r[0].update(domain="../x"), "domain", "must be a plain name"),
        (lambda r: r[0].update(sample_id=None), "sample_id", "must be a plain name"),
    ],
)
def test_a_bad_record_is_named_and_the_other_stays(
    tmp_path: Path, blobs: Blobs, spoil: Callable[[Any], Any], field: str, message: str
):
    rows = records()
    spoil(rows)
    dataset = data.load(write(tmp_path / "bad", rows), blobs).load_all()
    assert [sample.id for sample in dataset.samples] == ["Apparel/garment_replacement/2"]
    assert any(p.field == field and message in p.message and p.record == "line 1" for p in dataset.problems), (
        dataset.problems
    )


def test_broken_lines_and_forward_references_are_told(imug: Path, blobs: Blobs, tmp_path: Path):
    with (imug / "benchmark.jsonl").open("a") as file:
        file.write('{"domain": \n')
    assert (
        "broken JSON" in str(data.load(imug, blobs).load_all().problems[-1])
        and len(data.load(imug, blobs).load_all().samples) == 2
    )
    (imug / "dynamic_references.jsonl").write_text('{"domain": "Cooking"}\n')
    with pytest.raises(UserError, match=r"dynamic_references\.jsonl: line 1"):
        data.load(imug, blobs).load_all()


def test_the_released_reference_files_load_whole():
    if not SHARED.is_dir():
        pytest.skip(f"IMUG's reference files are not here ({SHARED})")
    links = data.read_reference_links(SHARED)
    assert links.images is not None and links.dynamic is not None
    assert len(links.images) == 3113 and len(links.dynamic) == 719 and len({key for key, _ in links.grids}) == 24
    counted = [refs for turns in links.images.values() for refs in turns.values()]
    assert sorted({len(refs) for refs in counted}) == [1, 2, 3] and len(counted) == 4092
    assert sum(ref.kind == "output" for refs in counted for ref in refs) == 3780
