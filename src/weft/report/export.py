"""A run as plain files: every reply and picture in a folder of its dialogue, replies and verdicts as tables, and a
manifest with the digest of every file. Nothing in it needs weft to be read."""

import csv
import hashlib
import importlib.util
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from weft.report import parquet
from weft.report.annotations import format_csv
from weft.results.run import Run, read_dataset_turn
from weft.store.annotations import Annotation
from weft.store.blobs import Blobs, write_folder
from weft.types import Image, Reply, Text, finish_reason_of
from weft.workspace import open_annotations, open_blobs

SUFFIX = {"image/png": "png", "image/jpeg": "jpg", "image/webp": "webp", "image/gif": "gif"}
README = """A run of weft ({benchmark}), as plain files.

manifest.json          what was run: model, judge, data, options, versions; and every file here with its sha256
replies.jsonl          one line a turn: what was asked, the reply's parts in order (texts, and pictures as files), how it ended
verdicts.csv           one line a verdict: sample, turn (from 1), metric, value (a share of full marks), reason, who gave it
ratings.csv            what people said, if anybody was asked: one line a metric of a question that somebody rated
replies/N-SAMPLE/      turn-T.txt and turn-T-K.png: the replies themselves
"""


def export_run(run: Run, home: Path, out: Path) -> dict[str, int]:
    """Write the folder; gives how many of each there are."""
    blobs = open_blobs(home)
    counts = {"replies": 0, "pictures": 0, "verdicts": 0, "missing pictures": 0}
    people = open_annotations(home)
    try:
        ratings = people.find(run.id)
    finally:
        people.close()
    write_folder(out, lambda folder: _write(run, ratings, blobs, folder, counts))
    return counts


def _write(run: Run, ratings: Sequence[Annotation], blobs: Blobs, folder: Path, counts: dict[str, int]) -> None:
    (folder / "README.txt").write_text(
        README.format(benchmark=run.benchmark.presentation.title or run.benchmark.name), encoding="utf-8"
    )
    lines: list[dict[str, Any]] = []
    for turn in run.turns:
        place = folder / "replies" / f"{turn.position + 1:05d}-{re.sub(r'[^A-Za-z0-9._-]+', '-', turn.sample)[:60]}"
        place.mkdir(parents=True, exist_ok=True)
        parts = _parts(turn.reply, blobs, place, turn.turn + 1, counts)
        asked = [part.text for part in read_dataset_turn(turn).prompt if isinstance(part, Text)]
        told = {
            "sample": turn.sample,
            "turn": turn.turn + 1,
            "want": turn.modality,
            "groups": turn.groups,
            "asked": "".join(asked),
        }
        reply = {
            "outcome": turn.reply.outcome,
            "reason": turn.reply.reason,
            "ending": finish_reason_of(turn.reply, "text" if turn.modality == "text" else "image"),
        }
        lines.append({**told, **reply, "parts": [{**one, **_inside(one, place, folder)} for one in parts]})
    counts["replies"] = len(lines)
    (folder / "replies.jsonl").write_text(
        "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8"
    )
    rows = parquet.verdict_rows([run])
    counts["verdicts"] = len(rows)
    with (folder / "verdicts.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]) if rows else ["sample"])
        writer.writeheader()
        writer.writerows(rows)
    if ratings:
        (folder / "ratings.csv").write_text(format_csv(ratings), encoding="utf-8", newline="")
        counts["ratings"] = len(ratings)
    if importlib.util.find_spec("pyarrow") is not None:
        parquet.write([run], folder / "verdicts.parquet")
        flat = [
            {**line, "groups": json.dumps(line["groups"]), "parts": json.dumps(line["parts"], ensure_ascii=False)}
            for line in lines
        ]
        parquet.write_rows(flat, folder / "replies.parquet")
    files = {str(file.relative_to(folder)): _digest(file) for file in sorted(folder.rglob("*")) if file.is_file()}
    about_run = {"run": run.id, "title": run.name, "state": run.record.state, "summary": list(run.summary().lines)}
    told = {**about_run, "manifest": msgspec.to_builtins(run.record.manifest), "counts": counts, "files": files}
    (folder / "manifest.json").write_text(json.dumps(told, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def _parts(reply: Reply, blobs: Blobs, place: Path, turn: int, counts: dict[str, int]) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    texts = [part.text for part in reply.output if isinstance(part, Text)]
    if texts:
        (place / f"turn-{turn}.txt").write_text("\n".join(texts), encoding="utf-8")
    for number, part in enumerate(reply.parts, start=1):
        if not isinstance(part, Image):
            made.append({"type": "text" if isinstance(part, Text) else "thought", "text": part.text})
            continue
        name = f"turn-{turn}-{number}.{SUFFIX.get(part.media_type, 'img')}"
        if blobs.has(part):
            (place / name).write_bytes(blobs.read(part))
            counts["pictures"] += 1
        else:
            counts["missing pictures"] += 1
        made.append({"type": "image", "file": name, "sha256": part.digest, "width": part.width, "height": part.height})
    return made


def _inside(part: dict[str, Any], place: Path, folder: Path) -> dict[str, str]:
    if "file" in part:
        return {"file": str((place / part["file"]).relative_to(folder))}
    return {}


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
