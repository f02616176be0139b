"""Small results in the shape of those that evalscope, lmms-eval, VLMEvalKit and DPG-Bench's script write."""

import csv
import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def write_json(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
    return path


def write_lines(path: Path, rows: Sequence[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def evalscope_run(
    folder: Path, scores: Sequence[float], *, errored: int = 0, limit: str = "null", statuses: Sequence[str] = ()
) -> Path:
    config = folder / "configs" / "task_config.yaml"
    config.parent.mkdir(parents=True)
    config.write_text(f"datasets:\n- mmmu\n- math_vista\nevalscope_version: 1.14.1\nlimit: {limit}\nmodel: tiny\n")
    metric = {
        "identity": {"name": "accuracy"},
        "num": len(scores),
        "score": round(sum(scores) / len(scores), 4),
        "semantics": {"value_range": {"min": 0.0, "max": 1.0}},
    }
    report = {
        "schema_version": 2,
        "model_name": "tiny",
        "metrics": [metric],
        "primary_metric_identity": {"name": "accuracy"},
        "execution_summary": {"requested": len(scores) + errored, "errored": errored},
    }
    write_json(folder / "reports" / "tiny" / "mmmu.json", report)
    reviews: list[Any] = []
    for index, score in enumerate(scores):
        status = statuses[index] if statuses else "success"
        details = {"value": {"accuracy": score}, "status": status, "prediction": "ANSWER: A"}
        reviews.append({"index": index, "sample_score": {"score": details, "group_id": index}})
    write_lines(folder / "reviews" / "tiny" / "mmmu_Art.jsonl", reviews)
    return folder


def lmms_run(
    folder: Path,
    metric: str,
    printed: float,
    samples: Sequence[tuple[Any, str]],
    *,
    original: int = 0,
    with_samples: bool = True,
) -> Path:
    results = {
        "results": {"mmmu_val": {"alias": "mmmu_val", f"{metric},none": printed, f"{metric}_stderr,none": "N/A"}},
        "n-samples": {"mmmu_val": {"original": original or len(samples), "effective": len(samples)}},
        "model_name": "tiny",
    }
    path = write_json(folder / "20261119_120000_results.json", results)
    if with_samples:
        rows = [
            {"doc_id": index, "filtered_resps": reply, metric: value} for index, (value, reply) in enumerate(samples)
        ]
        write_lines(folder / "20261119_120000_samples_mmmu_val.jsonl", rows)
    return path


def vlmevalkit_run(
    folder: Path, printed: float, predictions: Sequence[str], suffix: str = ".tsv", **entry: Any
) -> Path:
    name = f"tiny_MMMU_DEV_VAL{suffix}"
    dataset = {
        "status": "done",
        "judge_model": "gpt-4o-mini",
        "primary_metric": "Overall",
        "metrics": {"Overall": printed},
        "prediction_file": name,
        **entry,
    }
    path = write_json(folder / "status.json", {"model_name": "tiny", "datasets": {"MMMU_DEV_VAL": dataset}})
    if suffix == ".tsv":
        (folder / name).write_text(
            "index\tprediction\n" + "".join(f"{n}\t{text}\n" for n, text in enumerate(predictions))
        )
    elif suffix == ".json":
        write_json(folder / name, [{"index": n, "prediction": text} for n, text in enumerate(predictions)])
    else:
        write_sheet(folder / name, [["index", "prediction"], *[[str(n), text] for n, text in enumerate(predictions)]])
    return path


def write_sheet(path: Path, rows: Sequence[Sequence[str]], before: str = "", after: str = "") -> None:
    """Write a spreadsheet; in its sheet, one text is replaced by another."""
    namespace = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    texts = sorted({text for row in rows for text in row})
    lines: list[str] = []
    for number, row in enumerate(rows, start=1):
        cells = [f'<c r="{"AB"[at]}{number}" t="s"><v>{texts.index(text)}</v></c>' for at, text in enumerate(row)]
        lines.append(f"<row>{''.join(cells)}</row>")
    with zipfile.ZipFile(path, "w") as archive:
        shared = "".join(f"<si><t>{text}</t></si>" for text in texts)
        archive.writestr("xl/sharedStrings.xml", f"<sst {namespace}>{shared}</sst>")
        sheet = f"<worksheet {namespace}><sheetData>{''.join(lines)}</sheetData></worksheet>"
        archive.writestr("xl/worksheets/sheet1.xml", sheet.replace(before, after) if before else sheet)


Rows = Sequence[tuple[str, int, str, str]]  # item, number, dependency, tuple
DPG_ROWS: Rows = (
    ("first", 1, "0", "entity - whole (a cat)"),
    ("first", 2, "0", "attribute - color (red)"),
    ("second", 1, "0", "entity - whole (a dog)"),
    ("second", 2, "1", "attribute - color (black)"),
    ("third", 1, "0", "entity - whole (a hat)"),
)
# of each image: by item and question number
DPG_ANSWERS: Mapping[str, Sequence[Mapping[int, str]]] = {
    "first": [{2: "yes"}, {2: "no"}],
    "second": [{1: "no", 2: "yes"}, {1: "yes", 2: "yes"}],
    "third": [{1: "yes"}, {1: "yes"}],
}


def dpg_run(
    folder: Path, *, answers: Mapping[str, Sequence[Mapping[int, str]]] = DPG_ANSWERS, cut: bool = False
) -> Path:
    """The files of a run of DPG-Bench's script over these answers, with images in a folder whose name has a comma."""
    folder.mkdir(exist_ok=True)
    with (folder / "dpg_bench.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["item_id", "proposition_id", "dependency", "tuple", "question_natural_language"])
        rows.writerows([*row, ask(row[0], row[1])] for row in DPG_ROWS)
    lines: list[str] = []
    details: list[str] = []
    means: list[float] = []
    for item, images in answers.items():
        image = f"/out, new/{item}.png"
        scores: list[float] = []
        for place, said in enumerate(images):
            details += [f"{image}, ({place}, 0, 64, 64), {ask(item, n)}, {word}" for n, word in said.items()]
            fulfilled = {number: word == "yes" for number, word in said.items()}
            if item == "second":
                fulfilled[2] &= fulfilled[1]
            scores.append(sum(fulfilled.values()) / len(fulfilled))
        means.append(sum(scores) / len(scores))
        lines.append(", ".join([image, *map(str, scores), str(means[-1])]))
    tail = ["Model: mine", "L1 category scores:", "\tattribute: 50.0", "\tentity: 100.0", "L2 category scores:"]
    tail += ["\tentity - whole: 100.0", "Image path: /out, new", "Save results to: x"]
    total = [] if cut else [f"DPG-Bench score: {100 * sum(means) / len(means)}"]
    path = folder / "dpg-bench_1_results.txt"
    path.write_text("\n".join([*lines, *tail, *total, ""]))
    (folder / "dpg-bench_1_results_detail.txt").write_text("".join(f"{line}\n" for line in details))
    return path


def ask(item: str, number: int) -> str:
    return f"Is thing {number}, of {item}, there?"
