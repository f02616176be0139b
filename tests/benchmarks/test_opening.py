"""OpenING: its records, outputs as its authors keep them, seven scores both ways, and what is sent under its own
prompts."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import weft
from server import Provider, Seen, drawn
from weft.benchmarks import load_benchmark
from weft.benchmarks.base import RunResults
from weft.benchmarks.opening.data import load
from weft.benchmarks.opening.official_questions import (
    read_closing_sentence,
    read_open_judge_rubrics,
    read_system_prompt,
    split_steps,
)
from weft.benchmarks.opening.rubric import CRITERIA
from weft.benchmarks.opening.tables import tables
from weft.errors import UserError
from weft.store.blobs import Blobs
from weft.types import Image, Text, Verdict

Serve = Callable[..., Provider]


def item(uid: str = "0101001", asked: Any = None, answer: Any = None, **more: Any) -> dict[str, Any]:
    asked = [{"text": "<BEGIN> Go on. <image>", "image": "./images/Story/1-i-1.jpg"}] if asked is None else asked
    answer = [{"text": "One <image>", "image": "./images/Story/1-o-1.jpg"}] * 2 if answer is None else answer
    names = {
        "meta_task_id": "1",
        "meta_task_name": "Telling",
        "subtask_id": "1",
        "subtask_name": "Story",
        "data_id": "1",
    }
    return {"total_uid": uid, **names, "conversations": [{"input": asked}, {"output": answer}], **more}


def written(folder: Path, records: list[Any]) -> Path:
    (folder / "images" / "Story").mkdir(parents=True, exist_ok=True)
    for name in ("1-i-1", "1-o-1"):
        (folder / "images" / "Story" / f"{name}.jpg").write_bytes(drawn(name, 40))
    (folder / "test_data.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return folder


def test_records(tmp_path: Path):
    found = load(
        written(tmp_path, [item(), item("0101002", [{"text": "Plain.", "image": None}])]), Blobs(tmp_path / "blobs")
    ).load_all()
    first, second = found.samples
    assert not found.problems and first.groups == {"task": "Telling", "subtask": "Story"} and found.name == "own items"
    assert [part.text if isinstance(part, Text) else "picture" for part in first.turns[0].prompt] == [
        " Go on. ",
        "picture",
    ]
    assert first.turns[0].gold.steps == 2 and first.turns[0].file == "0101001.json" and len(second.turns[0].prompt) == 1


@pytest.mark.parametrize(
    ("record", "field"),
    [
        (item("../x"), "total_uid"),
        (item(""), "total_uid"),
        (item(asked=[]), "input"),
        (item(asked=[{"text": "<BEGIN>", "image": "./images/Story/1-i-1.jpg"}]), "input"),
        (item(asked=[{"text": "x", "image": "./images/../../secret.jpg"}]), "input[0]"),
        (item(conversations=[]), "conversations"),
        (item(conversations="x"), "conversations"),
        (item(subtask_name=3), "subtask_name"),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, record: Any, field: str):
    found = load(written(tmp_path, [record, item("0101009")]), Blobs(tmp_path / "blobs")).load_all()
    assert [sample.id for sample in found.samples] == ["0101009"] and [problem.field for problem in found.problems] == [
        field
    ]


def test_a_folder_without_them(tmp_path: Path):
    with pytest.raises(UserError, match="OpenING-benchmark"):
        load(tmp_path, Blobs(tmp_path / "blobs")).load_all()


def scores(seen: Seen) -> dict[str, Any]:
    keys = seen.body["response_format"]["json_schema"]["schema"]["properties"] if seen.is_judge else {}
    if not seen.is_judge:
        return {"role": "assistant", "content": "It goes on."}
    return {"role": "assistant", "content": json.dumps({name: {"Justification": "so", "Score": 6} for name in keys})}


def test_a_run_and_the_hint(tmp_path: Path, serve: Serve):
    provider = serve(answer=scores)
    data = written(tmp_path / "data", [item()])
    model, judge = (f"openai-chat/{name}@{provider.url}" for name in ("model", "judge"))
    run = weft.evaluate("opening", data=data, model=model, judge=judge, home=tmp_path / "home")
    assert run.table().cells("openai-chat/model")["Overall"].value == pytest.approx(6.0) and len(run.verdicts) == 7
    assert provider.seen[0].texts[0].startswith("Answer in 2 steps, each a short text with one picture.")
    other = weft.evaluate("opening", data=data, model=model, judge=judge, home=tmp_path / "home", hint="no")
    assert other.id != run.id and "Answer in" not in "".join(provider.seen[-2].texts[:1])


def test_outputs_as_the_authors_keep_them(tmp_path: Path, serve: Serve):
    data, out = written(tmp_path / "data", [item(), item("0101002"), item("0101003")]), tmp_path / "out"
    out.mkdir()
    (out / "0101001-o-0.jpg").write_bytes(drawn("a"))
    (out / "0101001.json").write_text(
        json.dumps(item(answer=[{"text": "A", "image": "anywhere/0101001-o-0.jpg"}, {"text": "B", "image": None}]))
    )
    (out / "0101002.jsonl").write_text(json.dumps(item("0101002", answer=[{"text": "C", "image": None}])))
    provider = serve(answer=scores)
    run = weft.evaluate(
        "opening", data=data, model=f"folder/{out}", judge=f"openai-chat/judge@{provider.url}", home=tmp_path / "home"
    )
    assert [[type(part).__name__ for part in turn.reply.parts] for turn in run.turns] == [
        ["Text", "Image", "Text"],
        ["Text"],
        [],
    ]
    assert run.table().cells("folder/out (strict)")["Overall"].value == pytest.approx(4.0)
    assert run.table().cells("folder/out (official)")["Overall"].value == 6.0, (
        "the released summary does not know what is missing"
    )


def test_official_scores_are_rounded_before_their_mean():
    verdicts = [Verdict(f"s{at}", 0, name, value) for name in CRITERIA for at, value in enumerate((0.7, 0.8, 0.7))]
    verdicts += [Verdict("s9", 0, name, None if name == "Correctness" else 0.1) for name in CRITERIA]
    groups = {verdict.sample: {"task": "t", "subtask": "s"} for verdict in verdicts}
    table = next(iter(tables([RunResults("x", groups, verdicts, "own items")])))
    strict, official = table.cells("x (strict)"), table.cells("x (official)")
    assert (
        official["Correctness"].value == 7.33 and official["Overall"].value == 7.33 and official["Overall"].scored == 3
    )
    assert strict["Correctness"].value == pytest.approx(7.3333, abs=1e-4) and strict[
        "Completeness"
    ].value == pytest.approx(5.75)


def test_published_rows_beside_the_test_split_alone():
    shown = next(iter(load_benchmark("opening").tables([])))
    assert [row.name for row in shown.published_rows][:2] == ["Human", "GPT-4o+DALL-E3"] and shown.published_rows[
        0
    ].cells["Overall"].value == 8.57


def checkout(folder: Path) -> Path:
    """What of a checkout is read, in words of our own."""
    (folder / "prompts").mkdir(parents=True)
    (folder / "prompts" / "judge_system.txt").write_text("Judge two.")
    (folder / "prompts" / "detailed_score_system.txt").write_text("Score one.")
    for name in ("GPT_judge_AB.py", "GPT_score_A.py"):
        (folder / name).write_text('def ask():\n    parts = ["\\n<OUTPUT_B>: ", "\\nSay it: "]\n    return parts\n')
    return folder


def test_prompts_of_a_checkout(tmp_path: Path):
    there = checkout(tmp_path / "there")
    assert (read_system_prompt(there, "battle"), read_closing_sentence(there, "criteria")) == (
        "Judge two.",
        "\nSay it: ",
    )
    (there / "GPT_judge_AB.py").write_text("x = 1")
    with pytest.raises(UserError, match="0 sentences"):
        read_closing_sentence(there, "battle")
    with pytest.raises(UserError, match="no prompts/judge_system.txt"):
        read_system_prompt(tmp_path, "battle")


def test_an_open_judge_has_a_script_and_words_of_its_own(tmp_path: Path):
    there = checkout(tmp_path / "there")
    script = there / "IntJudge_judge_AB.py"
    body = 'SYSTEM_MESSAGE = "Be a judge."\n    parts = ["\\n<OUTPUT_B>:", "\\nSay A or B: \\n"]\n'
    script.write_text(f"def ask():\n    {body}    return parts\n")
    own = read_open_judge_rubrics(script)
    assert (own.texts["system"], own.texts["closing"]) == ("Be a judge.", "\nSay A or B: \n")
    assert own.settings == {"max_tokens": 128} and own.source == "official IntJudge_judge_AB.py"
    (there / "prompts" / "intern_judge_system.txt").write_text("Judge as I do.")
    other = read_open_judge_rubrics(there / "prompts" / "intern_judge_system.txt")
    assert (other.texts["system"], other.texts["closing"]) == ("Judge as I do.", "\nSay A or B: \n")
    with pytest.raises(UserError, match="no text in SYSTEM_MESSAGE"):
        read_open_judge_rubrics(there / "GPT_judge_AB.py")
    (tmp_path / "alone.txt").write_text("Judge.")
    with pytest.raises(UserError, match="in no checkout"):
        read_open_judge_rubrics(tmp_path / "alone.txt")


def test_what_is_sent_under_released_prompts(tmp_path: Path, serve: Serve):
    provider = serve(answer=scores)
    data = written(tmp_path / "data", [item()])
    judge, prompts = f"openai-chat/judge@{provider.url}", f"official:{checkout(tmp_path / 'there')}"
    weft.evaluate("opening", data=data, model="reference", judge=judge, home=tmp_path / "home", prompts=prompts)
    system, user = provider.seen[0].shape
    assert system == ("system", ["Score one."])
    texts = ["-" if part.startswith("sha256:") else part for part in user[1]]
    assert texts == [
        "INPUT:  Go on.  "
        "<IMG_0></IMG_0>", "-", "\nOUTPUT: One <IMG_1></IMG_1>", "-", "One <IMG_2></IMG_2>", "-", "\nSay it: ",
    ]  # fmt: skip


def test_steps_of_a_document(tmp_path: Path):
    picture = Blobs(tmp_path).put(drawn("x"))
    made = split_steps((Text(" a <image>"), picture, picture, Text("b"), Text(" "), Text("c"), picture))
    assert [(text, isinstance(image, Image)) for text, image in made] == [
        ("a ", True),
        ("", True),
        ("b", False),
        ("c", True),
    ]
