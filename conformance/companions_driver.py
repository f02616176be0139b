"""Runs the functions of a released script of GEdit-Bench, ImgEdit, RISEBench, KRIS-Bench, GenEval or MM-Vet on inputs from a file.

    python companions_driver.py SYSTEM CHECKOUT WORK    # WORK/inputs.json -> WORK/outputs.json

The script is imported where it lies; what it imports and does not need is stubbed, and so is its network. This runs in
the released scripts' own environment: nothing of weft is imported."""

import base64
import contextlib
import importlib
import importlib.util
import io
import json
import math
import os
import sys
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from conformance.companions_inputs import Asked, choose_reply, describe_request
from conformance.images import digest_of

AGAIN, STOPS = "again", "stops"  # the script asks again; the script ends
Facts = dict[str, Any]


class Guessed(Exception):
    """The script has made up a score."""


def stub(name: str, **members: Any) -> types.ModuleType:
    module = types.ModuleType(name)
    for member, value in members.items():
        setattr(module, member, value)
    sys.modules[name] = module
    return module


def load_script(name: str, path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


class Judge:
    """Answers what it is shown, and keeps it."""

    def __init__(self, replies: Sequence[str]) -> None:
        self.replies = replies
        self.asked: list[str] = []

    def answer(self, content: Any) -> str:
        from PIL import Image

        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        text = "".join(part["text"] for part in parts if part["type"] == "text")
        images: list[str] = []
        for part in parts:
            if part["type"] == "image_url":
                data = base64.b64decode(part["image_url"]["url"].partition(",")[2])
                images.append(digest_of(Image.open(io.BytesIO(data))))
        asked = Asked(text, tuple(images))
        self.asked.append(describe_request(asked))
        return choose_reply(asked, self.replies)


def run_gedit(checkout: Path, work: Path, inputs: Facts) -> Facts:
    from PIL import Image

    folder = checkout / "GEdit-Bench"
    os.chdir(folder)
    sys.path.insert(0, str(folder / "viescore"))
    stub("mllm_tools")
    client = load_script("mllm_tools.openai", folder / "viescore" / "mllm_tools" / "openai.py")
    sys.modules["mllm_tools"].openai = client  # pyright: ignore[reportAttributeAccessIssue]
    vie = load_script("viescore_package", folder / "viescore" / "__init__.py")
    utils = sys.modules["utils"]

    def guess(low: int, high: int) -> int:
        raise Guessed

    utils.random = types.SimpleNamespace(randint=guess)  # pyright: ignore[reportAttributeAccessIssue]
    read = utils.mllm_output_to_dict  # pyright: ignore[reportAttributeAccessIssue]
    judge = Judge(inputs["answers"])
    (work / "key").write_text("none\n")
    client.get_api_key = lambda path: "none"
    scorer = vie.VIEScore(backbone="gpt4o", task="tie", key_path=str(work / "key"))
    scorer.model.get_parsed_output = judge.answer
    rows: list[Facts] = []
    for item in inputs["items"]:
        if not Path(item["made"]).is_file():
            continue
        source = Image.open(item["source"])
        made = Image.open(item["made"]).convert("RGB").resize((source.size[0], source.size[1]))
        semantics, quality, _ = scorer.evaluate([source, made], item["instruction"])
        fields = {name: item[name] for name in ("instruction", "instruction_language", "intersection_exist", "task")}
        rows.append({**fields, "sementics_score": semantics, "quality_score": quality,
                     "source_image": "x", "edited_image": "y"})  # fmt: skip
    replies = [read_gedit(read, text) for text in inputs["replies"]]
    return {"replies": replies, "requests": judge.asked, "cells": summarise_gedit(folder, work, rows)}


def read_gedit(read: Callable[..., Any], text: str) -> Any:
    try:
        found = read(text)
    except Exception:
        return AGAIN
    if found is False or found == "rate_limit_exceeded":
        return AGAIN
    try:
        least = min(found["score"])
        return float(least) if math.isfinite(math.sqrt(abs(least))) else AGAIN
    except Exception:
        return AGAIN


def summarise_gedit(folder: Path, work: Path, rows: Sequence[Facts]) -> Facts:
    import pandas

    stub("megfile", smart_open=open)
    statistics = load_script("calculate_statistics", folder / "calculate_statistics.py")
    for task in statistics.GROUPS:
        own = [row for row in rows if row["task"] == task]
        pandas.DataFrame(own).to_csv(work / f"mine_{task}_gpt_score.csv", index=False)
    cells: Facts = {}
    for language in ("en", "cn"):
        names = ("SC", "PQ", "O", "intersection SC", "intersection PQ", "intersection O")
        for name, by_model in zip(names, statistics.analyze_scores(str(work), ["mine"], language), strict=True):
            for task, value in by_model["mine"].items():
                cells[f"{language} {name} {'mean' if task.startswith('avg') else task}"] = float(value)
    return cells


def run_imgedit(checkout: Path, work: Path, inputs: Facts) -> Facts:
    judge = Judge(inputs["answers"])

    def complete(messages: Any, **_: Any) -> Any:
        message = types.SimpleNamespace(content=judge.answer(messages[0]["content"]))
        return types.SimpleNamespace(choices=[types.SimpleNamespace(message=message)])

    completions = types.SimpleNamespace(completions=types.SimpleNamespace(create=complete))
    stub("openai", OpenAI=lambda **_: types.SimpleNamespace(chat=completions))
    stub("tqdm", tqdm=lambda rows, **_: rows)
    stub("tenacity", retry=lambda **_: lambda function: function, wait_exponential=MagicMock(),
         stop_after_attempt=MagicMock())  # fmt: skip
    folder = checkout / "Benchmark"
    asking = load_script("basic_bench", folder / "Basic" / "basic_bench.py")
    uge = load_script("uge_bench", folder / "UGE" / "UGE_bench.py")
    first = load_script("step1", folder / "Basic" / "step1_get_avgscore.py")
    second = load_script("step2", folder / "Basic" / "step2_typescore.py")
    last = load_script("uge_average", folder / "UGE" / "get_average_score.py")
    prompts = asking.load_prompts(folder / "Basic" / "prompts.json")
    basic: dict[str, str] = {}
    for key, item in inputs["basic"].items():
        basic[key] = asking.process_single_item(key, item, inputs["made"], inputs["origin"], prompts)[1]
    hard: dict[str, str] = {}
    for key, item in inputs["uge"].items():
        hard[key] = uge.process_single_item(key, item, inputs["made_uge"], inputs["origin"])[1]
    cells = dict(second.compute_edit_type_averages(first.compute_averages(basic), inputs["basic"]))
    cells["uge"] = last.compute_final_average(hard)
    replies: list[Any] = []
    for text in inputs["replies"]:
        try:
            replies.append(first.extract_scores_and_average(text))
        except ValueError:
            replies.append(STOPS)
    return {"replies": replies, "requests": judge.asked, "cells": cells}


def run_risebench(checkout: Path, work: Path, inputs: Facts) -> Facts:
    import csv

    sys.path.insert(0, str(checkout))
    stub("requests")
    script = load_script("gpt_eval", checkout / "gpt_eval.py")
    judge = Judge(inputs["answers"])

    def generate(messages: Any, image_size: int = 768, **_: Any) -> Any:
        content = script.prepare_inputs(messages, image_size=image_size)[0]["content"]
        return 0, judge.answer(content), None

    script.gpt_generate = generate
    cells: Facts = {}
    for name, data in inputs["data"].items():
        output = Path(inputs["outputs"]) / name
        words = ["x", "--data", data, "--output", str(output), "--input", str(Path(data).parent), "--nproc", "1"]
        write = script.dump
        script.dump = lambda table, file, write=write: None if str(file).endswith("xlsx") else write(table, file)
        os.chdir(work)
        sys.argv = words
        script.main()
        with (output / f"{name}_judge.csv").open(newline="") as file:
            for row in csv.DictReader(file):
                for column in ("Score-Percentage", "Accuracy"):
                    if row[column]:
                        cells[f"{name} {row['-']} {column}"] = float(row[column])
        script.dump = write
    replies = [script.extract(text) or [] for text in inputs["replies"]]
    return {"replies": replies, "requests": judge.asked, "cells": cells}


def run_geneval(checkout: Path, work: Path, inputs: Facts) -> Facts:
    import runpy

    import numpy as np
    import pandas
    from PIL import Image

    cuda = types.SimpleNamespace(is_available=lambda: True)
    data = types.SimpleNamespace(Dataset=object)
    stub("torch", cuda=cuda, utils=types.SimpleNamespace(data=data))
    stub("mmdet", __file__="x")
    stub("mmdet.apis", inference_detector=None, init_detector=None)
    stub("open_clip")
    stub("clip_benchmark")
    stub("clip_benchmark.metrics", zeroshot_classification=types.SimpleNamespace(tqdm=None))
    script = load_script("evaluate_images", checkout / "evaluation" / "evaluate_images.py")
    names = (checkout / "evaluation" / "object_names.txt").read_text().split("\n")
    script.classnames = [name.strip() for name in names if name.strip()]
    script.THRESHOLD, script.COUNTING_THRESHOLD = 0.3, 0.9
    script.MAX_OBJECTS, script.NMS_THRESHOLD, script.POSITION_THRESHOLD = 16, 1.0, 0.1
    blank = work / "blank.png"
    Image.new("RGB", (8, 8)).save(blank)
    results: list[bool] = []
    for case in inputs["cases"]:
        boxes = {name: np.zeros((0, 5), dtype=np.float32) for name in script.classnames}
        colors: dict[bytes, str] = {}
        for name, found in case["found"].items():
            rows = np.array([[*box, confidence] for box, confidence, _ in found], dtype=np.float32)
            boxes[name] = rows
            for row, (_, _, color) in zip(rows, found, strict=True):
                colors[row.tobytes()] = color
        script.inference_detector = lambda detector, path, boxes=boxes: [boxes[name] for name in script.classnames]
        script.object_detector = None
        script.color_classification = lambda image, found, name, colors=colors: [
            colors[box.tobytes()] for box, _ in found
        ]
        results.append(bool(script.evaluate_image(str(blank), case["metadata"])["correct"]))
    pandas.DataFrame(inputs["summary"]).to_json(work / "results.jsonl", orient="records", lines=True)
    said = io.StringIO()
    sys.argv = ["x", str(work / "results.jsonl")]
    with contextlib.redirect_stdout(said):
        runpy.run_path(str(checkout / "evaluation" / "summary_scores.py"))
    return {"replies": results, "summary": said.getvalue().splitlines()}


def run_mmvet(checkout: Path, work: Path, inputs: Facts) -> Facts:
    stub("openai", OpenAI=None)
    stub("openai._exceptions", RateLimitError=KeyboardInterrupt)
    stub("tqdm", tqdm=lambda rows, **_: rows)
    script = load_script("evaluator", checkout / "mm-vet_evaluator.py")
    judge = Judge(inputs["answers"])
    script.client = _client(judge.answer)
    arguments = types.SimpleNamespace(
        use_sub_set=False, mmvet_path=inputs["data"], result_file=inputs["predictions"], num_run=1, decimal_places=1,
        prompt=script.prompt, gpt_model="x",
    )  # fmt: skip
    metadata = script.load_metadata(arguments)
    names = ("sub_set", "sub_set_name", "data", "counter", "cap_set_list", "cap_set_counter", "len_data", "df", "df2",
             "cap_set_names")  # fmt: skip
    vars(script).update(zip(names, metadata, strict=True))
    script.cap_score_file, script.cap_int_score_file = str(work / "one.csv"), str(work / "two.csv")
    grades = script.runs(arguments, str(work / "grades.json"), script.data, script.len_data, None)
    table, _ = script.export_result(arguments, "mine", script.df, script.df2, grades, script.data,
                                    script.cap_set_counter, script.cap_set_names)  # fmt: skip
    cells = {name: float(table.loc["mine"][name]) for name in table.columns if name not in ("std", "runs")}
    replies = [read_mmvet(script, arguments, text, work) for text in inputs["replies"]]
    return {"replies": replies, "requests": judge.asked, "cells": cells}


def _client(answer: Callable[[Any], str]) -> Any:
    def create(messages: Any, **_: Any) -> Any:
        message = types.SimpleNamespace(content=answer(messages[0]["content"]))
        return types.SimpleNamespace(choices=[types.SimpleNamespace(message=message)], model="x")

    return types.SimpleNamespace(chat=types.SimpleNamespace(completions=types.SimpleNamespace(create=create)))


def read_mmvet(script: Any, arguments: Any, text: str, work: Path) -> Any:
    """What the evaluator makes of a reply, or that it asks again."""
    asked: list[int] = []

    def answer(content: Any) -> str:
        asked.append(1)
        return text

    script.client = _client(answer)
    record = {"a": {"question": "x", "answer": "y", "capability": ["rec"]}}
    grades = work / "one.json"
    grades.unlink(missing_ok=True)
    found = script.runs(arguments, str(grades), record, 1, None) if _place(work, arguments) else {}
    if len(asked) > 1:
        return AGAIN
    score = found["a"]["score"][0]
    return "nan" if math.isnan(score) else score


def _place(work: Path, arguments: Any) -> bool:
    """Put an answer where the evaluator looks for it."""
    path = work / "answer.json"
    if not path.is_file():
        path.write_text(json.dumps({"a": "x"}))
    arguments.result_file = str(path)
    return True


KRIS_SCRIPTS = {
    "common": ("metrics_common", "run_evaluation"),
    "knowledge": ("metrics_knowledge", "run_evaluation"),
    "view": ("metrics_view_change", "run_evaluation"),
    "multi": ("metrics_multi_element", "run_multi_element_evaluation"),
    "temporal": ("metrics_temporal_prediction", "run_temporal_evaluation"),
}


def run_kris(checkout: Path, work: Path, inputs: Facts) -> Facts:
    import logging

    logging.disable(logging.CRITICAL)
    judge = Judge(inputs["answers"])
    stub("openai", OpenAI=lambda **_: _client(judge.answer))
    stub("tqdm", tqdm=lambda rows, **_: rows)
    sys.path.insert(0, str(checkout))
    os.chdir(inputs["folder"])
    sys.argv = ["x", "--models", "mine"]
    scripts = {name: load_script(module, checkout / f"{module}.py") for name, (module, _) in KRIS_SCRIPTS.items()}
    for name, (_, function) in KRIS_SCRIPTS.items():
        getattr(scripts[name], function)(max_workers=1)
    cells: Facts = {}
    for path in sorted(Path("results/mine").glob("*/metrics.json")):
        for key, scores in json.loads(path.read_text()).items():
            for name, score in scores.items():
                if name.endswith("_score") and score is not None:
                    cells[f"{path.parent.name} {key} {name}"] = float(score)
    return {
        "replies": [read_kris(scripts, text) for text in inputs["replies"]],
        "requests": judge.asked,
        "cells": cells,
    }


def read_kris(scripts: Facts, text: str) -> list[Any]:
    """What each script makes of a reply about consistency, and of two scores."""
    dual = scripts["knowledge"].extract_dual_scores(text)
    return [
        scripts["common"].extract_consistency_score_and_reason(text)[0],
        scripts["common"].extract_instruction_score_and_reason(text)[0],
        scripts["multi"].extract_score_and_reason(text, "consistency_score", ["consistency_reasoning"])[0],
        scripts["knowledge"].extract_consistency_score(text),
        dual["instruction_score"],
        dual["knowledge_score"],
    ]


RUN: dict[str, Callable[[Path, Path, Facts], Facts]] = {
    "gedit": run_gedit,
    "imgedit": run_imgedit,
    "risebench": run_risebench,
    "kris": run_kris,
    "geneval": run_geneval,
    "mmvet": run_mmvet,
}

if __name__ == "__main__":
    system, checkout, work = sys.argv[1], Path(sys.argv[2]).resolve(), Path(sys.argv[3]).resolve()
    inputs = json.loads((work / "inputs.json").read_text())
    with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):  # they print every reply
        outputs = RUN[system](checkout, work, inputs)
    (work / "outputs.json").write_text(json.dumps(outputs))
