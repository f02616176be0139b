"""`official` of ROVER is what its released code sends and keeps. `python -m conformance rover CHECKOUT` shows the same
beside that code; here its repository is a made-up one of the same build, with words of our own."""

import hashlib
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pil

import weft
from rover import evaluate, metric_of, provider, puzzles, tasks, write_json
from server import Provider, Seen, drawn, drawn_as
from weft.benchmarks.rover import official_reading, prompts
from weft.benchmarks.rover.ig import RoverIG, rubric, tables
from weft.benchmarks.rover.tg import RoverTG
from weft.benchmarks.rover.tg import rubric as tg_rubric
from weft.errors import UserError
from weft.types import OfficialReading

Serve = Callable[..., Provider]
SLOTS = "{prompt}|{dimension}|{keywords}|{target_description}"


def write(folder: Path, constants: dict[str, str], evaluator: str) -> Path:
    folder.mkdir()
    (folder / "prompts.py").write_text("\n".join(f"{name} = {text!r}" for name, text in constants.items()))
    (folder / "evaluator.py").write_text(evaluator)
    return folder


@pytest.fixture
def ig_checkout(tmp_path: Path) -> Path:
    made = {
        name: f"{key} [{SLOTS if key.startswith(('reasoning_process', 'reasoning_visual')) else '{prompt}'}"
        f"{'|{think_output}' if key.startswith(('reasoning_process', 'reasoning_alignment')) else ''}] "
        f'{{{{"{key.split()[0]}_score": 0}}}}'
        for key, name in rubric.CONSTANTS.items()
        if key != rubric.QUALITY
    }
    made["prompt_image_quality"] = 'quality {{"image_quality_score": 0}}'
    return write(
        tmp_path / "ig",
        made,
        'def f(x):\n    return g(think_output=x if x else 1, y=think_output if think_output else "(none)")\n',
    )


@pytest.fixture
def tg_checkout(tmp_path: Path) -> Path:
    made = {
        name: f'{key} [{{prompt}}|{{answer}}] {{{{"{key.split()[0]}_score": 0}}}}'
        for key, name in tg_rubric.CONSTANTS.items()
    }
    for kind in ("physical", "logical", "jigsaw"):
        made[f"prompt_reasoning_alignment_{kind}"] = (
            f'align {kind} [{{prompt}}|{{model_answer}}] {{{{"reasoning_alignment_score": 0}}}}'
        )
    return write(
        tmp_path / "tg",
        made,
        'def f():\n    model_answer = load()\n    if not model_answer:\n        model_answer = "(no words)"\n',
    )


def jpeg(data: bytes) -> str:
    out = io.BytesIO()
    Pil.open(io.BytesIO(data)).convert("RGB").save(out, "JPEG")
    return "sha256:" + hashlib.sha256(out.getvalue()).hexdigest()


def gen(folder: Path, *, text: bool = True) -> Path:
    folder.mkdir()
    for at, task in enumerate(tasks()):
        (folder / f"gen_{task['id']}.png").write_bytes(drawn(f"made {at}"))
        if text:
            (folder / f"gen_{task['id']}.txt").write_text(f"\n thought {at} {{x}} \n")
    return folder


def test_requests_are_prompt_then_pictures(ig_checkout: Path, tmp_path: Path, serve: Serve):
    data = write_json(tmp_path / "rover", "ROVER-IG", tasks())
    server = serve(answer=provider())
    run = evaluate(
        "rover-ig",
        data,
        tmp_path / "home",
        server,
        model=f"folder/{gen(tmp_path / 'gen')}",
        prompts=f"official:{ig_checkout}",
    )
    asked = {
        metric_of(seen): seen
        for seen in server.seen
        if "number 1" in "".join(seen.texts) or metric_of(seen) == "image_quality"
    }
    made = "sha256:" + hashlib.sha256(drawn("made 1")).hexdigest()
    source, target = jpeg(drawn("source 1")), jpeg(drawn("target 1"))
    slots = "Show what becomes of the thing number 1.|culture|idea 1, law 1|result 1"
    assert asked["reasoning_process"].shape == [
        ("user", [f'reasoning_process imaginative [{slots}|thought 1 {{x}}] {{"reasoning_process_score": 0}}', source])
    ]
    assert asked["reasoning_visual"].shape[0][1][1:] == [source, made, target]  # what was made goes as it is
    assert asked["reasoning_alignment"].shape[0][1][1:] == [source, made]
    # never filled, so braces stay doubled
    assert asked["image_quality"].shape[0][1][0] == 'quality {{"image_quality_score": 0}}'
    assert all(
        seen.body["max_tokens"] == 3000 and seen.body["temperature"] == 0.0 and "response_format" not in seen.body
        for seen in server.seen
    )
    assert run.record.manifest.prompts.source == "official prompts.py"


@pytest.mark.parametrize(("kind", "by"), [("mathematical", "logical"), ("abstract", "logical"), ("causal", "causal")])
def test_logical_prompts_serve_mathematics_and_patterns(
    kind: str, by: str, ig_checkout: Path, tmp_path: Path, serve: Serve
):
    records = [{**tasks()[0], "id": f"logic_{kind}_1", "reasoning_type": kind}]
    server = serve(answer=provider())
    data = write_json(tmp_path / "rover", "ROVER-IG", records)
    evaluate("rover-ig", data, tmp_path / "home", server, prompts=f"official:{ig_checkout}")
    words = ["".join(seen.texts) for seen in server.seen if seen.is_judge]
    assert sum(text.startswith((f"reasoning_process {by} ", f"reasoning_visual {by} ")) for text in words) == 2


def test_missing_texts_are_judged_for_the_official_row_alone(ig_checkout: Path, tmp_path: Path, serve: Serve):
    data = write_json(tmp_path / "rover", "ROVER-IG", tasks())
    folder = gen(tmp_path / "gen")
    (folder / "gen_science_temporal_1.txt").unlink()
    (folder / "gen_logic_math_3.txt").write_text("  \n")
    server = serve(answer=provider({"reasoning_process": 3, "reasoning_alignment": 2}))
    run = evaluate(
        *("rover-ig", data, tmp_path / "home", server),
        model=f"folder/{folder}",
        prompts=f"official:{ig_checkout}",
        options={"official": True},
    )
    told = [
        "".join(seen.texts) for seen in server.seen if metric_of(seen) in ("reasoning_process", "reasoning_alignment")
    ]
    assert len(told) == 8 and sum("(none)" in text for text in told) == 4
    rows = {row.label: row.cells for row in run.table().rows}
    strict, official = rows[f"{run.name} (strict), micro"], rows[f"{run.name} (official), micro"]
    assert (strict["RP"].value, strict["Align."].value) == (25.0, 12.5)  # two of four say nothing
    assert (official["RP"].value, official["Align."].value) == (50.0, 25.0)


def test_thinking_outside_of_tags_is_none_to_the_released_scripts(ig_checkout: Path, tmp_path: Path, serve: Serve):
    data = write_json(tmp_path / "rover", "ROVER-IG", tasks())
    server = serve(answer=provider(think="I think aloud, without tags."))
    more: dict[str, Any] = {"prompts": f"official:{ig_checkout}", "options": {"official": True}, "limit": 1}
    run = evaluate("rover-ig", data, tmp_path / "home", server, **more)
    told = ["".join(seen.texts) for seen in server.seen if seen.is_judge and metric_of(seen) == "reasoning_process"]
    assert sorted("(none)" in text for text in told) == [False, True]
    assert "official" in run.name


def judged(tmp_path: Path, serve: Serve, checkout: Path, folder: Path) -> tuple[weft.Run, Provider]:
    """A folder of outputs, scored as the released code asks."""
    server, data = serve(answer=provider()), write_json(tmp_path / "rover", "ROVER-IG", tasks())
    more: dict[str, Any] = {"prompts": f"official:{checkout}", "options": {"official": True}}
    return evaluate("rover-ig", data, tmp_path / "home", server, model=f"folder/{folder}", **more), server


def micro(run: weft.Run) -> list[dict[str, weft.types.Cell]]:
    """The strict and the official cells."""
    results = run.results()
    return [tables.build_cells(tables.build_entries(results, official), official) for official in (False, True)]


@pytest.mark.parametrize("form", ["BMP", "GIF", "cut"])
def test_an_image_of_another_form_is_judged_for_the_official_row(
    form: str, ig_checkout: Path, tmp_path: Path, serve: Serve
):
    folder = gen(tmp_path / "gen")
    (folder / "gen_science_temporal_1.png").write_bytes(drawn_as(form, "made 0"))
    run, server = judged(tmp_path, serve, ig_checkout, folder)
    strict, official = micro(run)
    assert all((strict[name].scored, strict[name].expected) == (3, 4) for name in ("RP", "Align.", "RV", "VC", "IQ"))
    assert all(official[name].scored == 4 for name in ("RP", "Align.", "RV", "VC", "IQ"))
    assert len(server.seen) == 20


def test_a_broken_image_costs_no_judgement_of_the_reasoning(ig_checkout: Path, tmp_path: Path, serve: Serve):
    folder = gen(tmp_path / "gen")
    (folder / "gen_science_temporal_1.png").write_bytes(b"\xff no picture")
    (folder / "gen_logic_math_3.png").write_bytes(b"")
    strict, official = micro(judged(tmp_path, serve, ig_checkout, folder)[0])
    assert (strict["RP"].scored, official["RP"].scored) == (2, 3), "an empty file is a task that is dropped"
    assert (strict["RV"].scored, official["RV"].scored) == (2, 2), "no judge takes a broken image"


def test_a_text_that_is_not_utf_8_is_none_to_the_released_code(ig_checkout: Path, tmp_path: Path, serve: Serve):
    folder = gen(tmp_path / "gen")
    (folder / "gen_science_temporal_1.txt").write_bytes("d\xe9j\xe0 vu".encode("latin-1"))
    run, server = judged(tmp_path, serve, ig_checkout, folder)
    strict, official = micro(run)
    assert all((strict[name].scored, official[name].scored) == (3, 4) for name in ("RP", "Align.", "RV", "VC", "IQ"))
    assert sum("(none)" in "".join(seen.texts) for seen in server.seen) == 2


def test_a_description_that_is_null_is_the_word_none(ig_checkout: Path, tmp_path: Path, serve: Serve):
    data = write_json(tmp_path / "rover", "ROVER-IG", [{**tasks()[0], "target_description": None, "keywords": None}])
    server = serve(answer=provider())
    evaluate("rover-ig", data, tmp_path / "home", server, prompts=f"official:{ig_checkout}")
    evaluate("rover-ig", data, tmp_path / "own", server)
    said = ["".join(seen.texts) for seen in server.seen if seen.is_judge and metric_of(seen) == "reasoning_visual"]
    assert ["|science||None]" in text for text in said] == [True, False]
    assert "None" not in said[1]


def test_a_task_whose_id_names_no_type_is_in_no_official_cell(ig_checkout: Path, tmp_path: Path, serve: Serve):
    server = serve(answer=provider())
    data = write_json(tmp_path / "rover", "ROVER-IG", [*tasks(), {**tasks()[0], "id": "nameless"}])
    strict, official = micro(evaluate("rover-ig", data, tmp_path / "home", server))
    assert (strict["RV"].scored, official["RV"].scored) == (5, 4)


def test_requests_of_the_second_half(tg_checkout: Path, tmp_path: Path, serve: Serve):
    data = write_json(tmp_path / "rover", "ROVER-TG", puzzles())
    folder = tmp_path / "gen"
    folder.mkdir()
    for at, one in enumerate(puzzles()):
        (folder / f"gen_{one['id']}.png").write_bytes(drawn(f"made {at}"))
        if at:
            (folder / f"gen_{one['id']}.txt").write_text(f" so: {at}\n")
    server = serve(answer=provider())
    more: dict[str, Any] = {
        "prompts": f"official:{tg_checkout}",
        "options": {"official": True},
        "model": f"folder/{folder}",
    }
    run = evaluate("rover-tg", data, tmp_path / "home", server, **more)
    asked = {seen.shape[0][1][0].split(" [")[0]: seen for seen in server.seen if seen.is_judge}
    assert asked["interleaved_reasoning logical"].shape[0][1] == [
        'interleaved_reasoning logical [What about question 2?|12] {"interleaved_reasoning_score": 0}',
        *(jpeg(drawn("view 2")), jpeg(drawn("way 2")), "sha256:" + hashlib.sha256(drawn("made 2")).hexdigest()),
    ]
    assert asked["align jigsaw"].shape[0][1][0].startswith("align jigsaw [What about question 3?|so: 3]")
    assert "(no words)" in "".join("".join(seen.texts) for seen in server.seen)  # the text that is not there
    plain = [seen for seen in server.seen if "response_format" not in seen.body]
    # alignment of two views: the checkout has no prompt for it, so ours is used
    assert len(server.seen) - len(plain) == 1
    assert all(seen.body["max_tokens"] == 10000 and seen.body["temperature"] == 0.0 for seen in server.seen)
    assert run.record.manifest.prompts.source == "official prompts.py, multi-view alignment weft's"


def test_the_second_half_also_judges_images_of_another_form(tg_checkout: Path, tmp_path: Path, serve: Serve):
    data = write_json(tmp_path / "rover", "ROVER-TG", puzzles()[:1])
    folder = tmp_path / "gen"
    folder.mkdir()
    (folder / "gen_physical_0.png").write_bytes(drawn_as("BMP", "made"))
    (folder / "gen_physical_0.txt").write_text("Final Answer: the red cup")
    more: dict[str, Any] = {"prompts": f"official:{tg_checkout}", "options": {"official": True}}
    run = evaluate("rover-tg", data, tmp_path / "home", serve(answer=provider()), model=f"folder/{folder}", **more)
    found = {one.metric: one for one in run.verdicts}
    assert all(one.value is None for one in found.values())
    read = {metric: tg_rubric.OFFICIAL.find_reading(one) for metric, one in found.items()}
    assert all(isinstance(read[metric], OfficialReading) for metric in (tg_rubric.INTERLEAVED, rubric.ALIGNMENT))


def test_a_checkout_that_is_none_is_told(tmp_path: Path, ig_checkout: Path):
    with pytest.raises(UserError, match="there is no prompts.py in it"):
        RoverIG.preparation.rubrics(RoverIG(), f"official:{tmp_path}")
    with pytest.raises(UserError, match="no string constant"):
        RoverTG.preparation.rubrics(RoverTG(), f"official:{ig_checkout}")
    (ig_checkout / "evaluator.py").write_text("pass\n")
    with pytest.raises(UserError, match="does not say what a judge is told"):
        RoverIG.preparation.rubrics(RoverIG(), f"official:{ig_checkout}")
    (ig_checkout / "evaluator.py").write_text("def :\n")
    with pytest.raises(UserError, match="cannot be parsed"):
        RoverIG.preparation.rubrics(RoverIG(), f"official:{ig_checkout}")
    (ig_checkout / "evaluator.py").unlink()
    with pytest.raises(UserError, match=r"there is no evaluator\.py"):
        RoverIG.preparation.rubrics(RoverIG(), f"official:{ig_checkout}")


def test_filling_is_done_once():
    assert prompts.format_prompt("{a} {{x}} {b}", {"a": "{b}", "b": "{{"}) == "{b} {x} {{"
    with pytest.raises(UserError, match="slot '{c}'"):
        prompts.format_prompt("{c}", {})


KEY = "image_quality_score"
READ: list[tuple[str, Any, Any]] = [  # what is said, what the first half makes of it, and the second
    ('{"image_quality_score": 4}', 4, 4),
    ('{"image_quality_score": "4"}', 4, 4),
    ('{"image_quality_score": 4.7}', 4, 4),
    ('{"image_quality_score": true}', 1, 1),
    ('{"image_quality_score": 0}', 0, 0),
    ('{"image_quality_score": 6}', 6, 6),
    ('{"image_quality_score": -1}', -1, -1),
    ('{"image_quality_score": "4.5"}', "4.5", 4),
    ('{"image_quality_score": "N/A"}', "N/A", "N/A"),
    ('{"image_quality_score": null}', None, None),
    ('{{"image_quality_score": 9}}', 9, 9),
    ('Well: {"image_quality_score": 3, "reasoning": "x"} so.', 3, 3),
    ("score: 10", 1, 1),
    ("It gets 2/5 from me", 2, 2),
    ("worth 3 points", 3, 3),
    ("Image quality score is 4", 4, 4),
    ("nothing at all", None, None),
    ("about 4.", None, 4),
    ("4", None, 4),
    ("[5]", None, 5),
    ("", None, None),
]


@pytest.mark.parametrize(("said", "first", "second"), READ)
def test_what_the_released_code_reads(said: str, first: Any, second: Any):
    assert official_reading.read_score(said, KEY, loose=False) == first
    assert official_reading.read_score(said, KEY, loose=True) == second


def test_the_scale_is_not_bounded():
    assert [official_reading.to_points(score) for score in (0, 1, 3, 5, 6, -1)] == [-25, 0, 50, 100, 125, -50]


def test_a_stored_run_is_judged_again(ig_checkout: Path, tmp_path: Path, serve: Serve):
    data = write_json(tmp_path / "rover", "ROVER-IG", tasks())

    def scores(seen: Seen, metric: str) -> Any:
        return 5 if "response_format" in seen.body else 2

    server = serve(answer=provider(scores))
    first = evaluate("rover-ig", data, tmp_path / "home", server)
    asked = sum(not seen.is_judge for seen in server.seen)
    again = weft.judge(
        first.id, judge=f"openai-chat/judge@{server.url}", home=tmp_path / "home", prompts=f"official:{ig_checkout}"
    )
    assert {verdict.value for verdict in first.verdicts} == {1.0} and {verdict.value for verdict in again.verdicts} == {
        0.25
    }
    assert sum(not seen.is_judge for seen in server.seen) == asked
