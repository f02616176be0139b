"""A small ROVER of our own, in its three forms, and a judge for it."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import weft
from server import Provider, Seen, data_url, drawn
from weft.calls.caller import RetryPolicy

DIMENSIONS = ["science", "culture", "common_sense", "logic"]
PICTURES = ("image", "target_image", "image2", "example_image", "reasoning_image")


def tasks() -> list[dict[str, Any]]:
    """IG: one of each of four kinds, two with a picture of the result."""
    facts = [
        ("science", "temporal", 1),
        ("culture", "imaginative", 1),
        ("common_sense", "causal", 12),
        ("logic", "math", 3),
    ]
    made: list[dict[str, Any]] = []
    for at, (dimension, kind, number) in enumerate(facts):
        made.append(
            {
                "id": f"{dimension}_{kind}_{number}",
                "dimension": dimension,
                "reasoning_type": "mathematical" if kind == "math" else kind,
                "prompt": f"Show what becomes of the thing number {at}.",
                "target_description": f"result {at}",
                "keywords": f"idea {at}, law {at}",
                "image": f"source {at}",
                "target_image": f"target {at}" if at % 2 else None,
            }
        )
    return made


def puzzles() -> list[dict[str, Any]]:
    """TG: one of each of five types."""
    answers = {
        "physical": "the red cup",
        "embodied": "[[2, 2], [12, 2], [20, 20]]",
        "logical": "12",
        "jigsaw": "B",
        "multi-view": "left",
    }
    made: list[dict[str, Any]] = []
    for at, (kind, answer) in enumerate(answers.items()):
        made.append(
            {
                "id": f"{kind}_{at}",
                "problem_type": kind,
                "prompt": f"What about question {at}?",
                "image": f"view {at}",
                "image2": f"second {at}" if kind == "multi-view" else None,
                "example_image": f"example {at}" if kind == "embodied" else None,
                "reasoning_image": None if kind == "multi-view" else f"way {at}",
                "answer": answer,
            }
        )
    return made


def write_json(folder: Path, half: str, records: list[dict[str, Any]]) -> Path:
    """`ROVER-IG.jsonl` beside its pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    lines: list[str] = []
    for record in records:
        kept = dict(record)
        for field in PICTURES:
            if isinstance(kept.get(field), str) and "." not in kept[field]:
                name = f"{record['id']}_{field}.png"
                (folder / name).write_bytes(drawn(kept[field]))
                kept[field] = name
        lines.append(json.dumps(kept))
    (folder / f"{half}.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def as_table(records: list[dict[str, Any]], *, numbers: bool = True) -> Any:
    """The same as the hub has it: pictures as bytes, dimensions as numbers with their names in the table."""
    import pyarrow

    rows: list[dict[str, Any]] = []
    for record in records:
        row = dict(record)
        for field in PICTURES:
            if field in row:
                row[field] = None if row[field] is None else {"bytes": drawn(row[field]), "path": None}
        if numbers and row.get("dimension") in DIMENSIONS:
            row["dimension"] = DIMENSIONS.index(row["dimension"])
        rows.append(row)
    picture = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])
    kinds = {name: picture if name in PICTURES else None for name in records[0]}
    columns = {name: pyarrow.array([row.get(name) for row in rows], type=kind) for name, kind in kinds.items()}
    about = {"info": {"features": {"dimension": {"names": DIMENSIONS, "_type": "ClassLabel"}}}}
    return pyarrow.table(columns).replace_schema_metadata(
        {b"huggingface": json.dumps(about).encode()} if numbers else {}
    )


def write_parquet(folder: Path, half: str, records: list[dict[str, Any]], *, files: int = 1) -> Path:
    from pyarrow import parquet

    (folder / half).mkdir(parents=True, exist_ok=True)
    size = -(-len(records) // files)
    for number in range(files):
        some = records[number * size : (number + 1) * size]
        parquet.write_table(as_table(some), folder / half / f"train-{number:05}-of-{files:05}.parquet")
    return folder


def write_save(folder: Path, records: list[dict[str, Any]]) -> Path:
    """As `datasets` saves it."""
    import pyarrow

    folder.mkdir(parents=True, exist_ok=True)
    table = as_table(records)
    with (
        pyarrow.OSFile(str(folder / "data-00000-of-00001.arrow"), "wb") as sink,
        pyarrow.ipc.new_stream(sink, table.schema) as writer,
    ):
        writer.write_table(table, max_chunksize=2)
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}))
    (folder / "dataset_info.json").write_text(
        json.dumps({"features": {"dimension": {"names": DIMENSIONS, "_type": "ClassLabel"}}})
    )
    return folder


def metric_of(seen: Seen) -> str:
    """Which score a judge is asked for."""
    return re.findall(r'"(\w+)_score"', "".join(seen.texts) + json.dumps(seen.body.get("response_format", {})))[-1]


def provider(
    scores: Mapping[str, Any] | Callable[[Seen, str], Any] | None = None,
    *,
    think: str = "<think>It melts.</think>",
    answer: str = "",
) -> Callable[[Seen], dict[str, Any]]:
    """A model that thinks as it is told and draws, and a judge that gives what `scores` say, 4 by default."""

    def reply(seen: Seen) -> dict[str, Any]:
        if seen.is_judge:
            metric = metric_of(seen)
            given = scores(seen, metric) if callable(scores) else (scores or {}).get(metric, 4)
            if isinstance(given, str) and not given.isdigit():
                return {"role": "assistant", "content": given}
            return {"role": "assistant", "content": json.dumps({"reasoning": "so it is", f"{metric}_score": given})}
        if "modalities" not in seen.body:
            return {"role": "assistant", "content": answer or "Final Answer: B"}
        picture = {"type": "image_url", "image_url": {"url": data_url(drawn(seen.digest))}}
        return {"role": "assistant", "content": think or answer, "images": [picture]}

    return reply


def evaluate(benchmark: str, folder: Path, home: Path, server: Provider, **options: Any) -> weft.Run:
    options.setdefault("model", f"openai-chat/model@{server.url}")
    options.setdefault("judge", f"openai-chat/judge@{server.url}")
    return weft.evaluate(
        benchmark, data=folder, home=home, retry_policy=RetryPolicy(tries=2, base=0.001, cap=0.002), **options
    )
