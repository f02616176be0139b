"""A run as plain files: every reply and image in a folder of its dialogue, replies and verdicts as tables, and a
manifest with the digest of every file. No weft is needed to read them."""

import hashlib
import importlib.util
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from weft.report import parquet
from weft.report.annotations import format_annotations
from weft.report.csv_table import format_csv
from weft.results.run import Run, read_dataset_turn
from weft.store.annotations import Annotation
from weft.store.blobs import Blobs, write_folder
from weft.store.image_metadata import remove_metadata
from weft.store.journal import TurnRecord
from weft.types import Image, Reply, Text, finish_reason_of
from weft.workspace import open_annotations, open_blobs

SUFFIXES = {"image/png": "png", "image/jpeg": "jpg", "image/webp": "webp", "image/gif": "gif"}
README = """A run of weft ({benchmark}), as plain files.

manifest.json          what was run: model, judge, data, options, versions; and every file here with its sha256
replies.jsonl          one line per turn: the prompt, the reply's parts in order (texts, images as files), the outcome
verdicts.csv           one line per verdict: sample, turn (from 1), metric, value (share of full marks), reason, by whom
annotations.csv        if people annotated the run: one line per metric of each annotated question
replies/N-SAMPLE/      turn-T.txt and turn-T-K.png: the replies themselves
"""


def export_run(run: Run, home: Path, out: Path) -> dict[str, int]:
    """Write the folder; return how many replies, images, verdicts and annotations it has."""
    annotation_store = open_annotations(home)
    try:
        annotations = annotation_store.find(run.id)
    finally:
        annotation_store.close()
    blobs = open_blobs(home)
    counts = {"replies": 0, "images": 0, "verdicts": 0}
    write_folder(out, lambda folder: _write_files(run, annotations, blobs, folder, counts))
    return counts


def _write_files(
    run: Run, annotations: Sequence[Annotation], blobs: Blobs, folder: Path, counts: dict[str, int]
) -> None:
    title = run.benchmark.presentation.title or run.benchmark.name
    (folder / "README.txt").write_text(README.format(benchmark=title), encoding="utf-8")
    replies = [_write_reply(turn, blobs, folder, counts) for turn in run.turns]
    counts["replies"] = len(replies)
    lines = [json.dumps(reply, ensure_ascii=False) + "\n" for reply in replies]
    (folder / "replies.jsonl").write_text("".join(lines), encoding="utf-8")
    verdicts = parquet.verdict_rows([run])
    counts["verdicts"] = len(verdicts)
    columns = list(verdicts[0]) if verdicts else ["sample"]
    table = format_csv(columns, [[row[column] for column in columns] for row in verdicts])
    (folder / "verdicts.csv").write_text(table, encoding="utf-8", newline="")
    if annotations:
        (folder / "annotations.csv").write_text(format_annotations(annotations), encoding="utf-8", newline="")
        counts["annotations"] = len(annotations)
    if importlib.util.find_spec("pyarrow") is not None:
        parquet.write([run], folder / "verdicts.parquet")
        parquet.write_rows([_flatten_reply(reply) for reply in replies], folder / "replies.parquet")
    _write_manifest(run, folder, counts)


def _flatten_reply(reply: Mapping[str, Any]) -> dict[str, Any]:
    """Return a reply with its nested fields as JSON texts, for a table."""
    parts = json.dumps(reply["parts"], ensure_ascii=False)
    return {**reply, "groups": json.dumps(reply["groups"]), "parts": parts}


def _write_manifest(run: Run, folder: Path, counts: Mapping[str, int]) -> None:
    digests: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            digests[str(path.relative_to(folder))] = _digest(path)
    manifest = {
        "run": run.id,
        "title": run.name,
        "state": run.record.state,
        "summary": list(run.summary().lines),
        "manifest": msgspec.to_builtins(run.record.manifest),
        "counts": counts,
        "files": digests,
    }
    text = json.dumps(manifest, ensure_ascii=False, indent=2) + "\n"
    (folder / "manifest.json").write_text(text, encoding="utf-8")


def _write_reply(turn: TurnRecord, blobs: Blobs, folder: Path, counts: dict[str, int]) -> dict[str, Any]:
    """Write a turn's reply to its files; return its line of `replies.jsonl`."""
    sample = re.sub(r"[^A-Za-z0-9._-]+", "-", turn.sample)[:60]
    reply_folder = folder / "replies" / f"{turn.position + 1:05d}-{sample}"
    reply_folder.mkdir(parents=True, exist_ok=True)
    reply = turn.reply
    texts = [part.text for part in reply.output if isinstance(part, Text)]
    if texts:
        (reply_folder / f"turn-{turn.turn + 1}.txt").write_text("\n".join(texts), encoding="utf-8")
    prompt = [part.text for part in read_dataset_turn(turn).prompt if isinstance(part, Text)]
    return {
        "sample": turn.sample,
        "turn": turn.turn + 1,
        "modality": turn.modality,
        "groups": turn.groups,
        "prompt": "".join(prompt),
        "outcome": reply.outcome,
        "reason": reply.reason,
        "finish_reason": finish_reason_of(reply, "text" if turn.modality == "text" else "image"),
        "parts": _write_parts(reply, blobs, reply_folder, turn.turn + 1, folder, counts),
    }


def _write_parts(
    reply: Reply, blobs: Blobs, reply_folder: Path, turn: int, folder: Path, counts: dict[str, int]
) -> list[dict[str, Any]]:
    """Write the images of a reply; return its parts in order, images as paths. `counts` is updated."""
    parts: list[dict[str, Any]] = []
    for number, part in enumerate(reply.parts, start=1):
        if not isinstance(part, Image):
            parts.append({"type": "text" if isinstance(part, Text) else "thought", "text": part.text})
            continue
        path = reply_folder / f"turn-{turn}-{number}.{SUFFIXES.get(part.media_type, 'img')}"
        digest = part.digest
        if blobs.has(part):
            data = remove_metadata(blobs.read(part))
            digest = hashlib.sha256(data).hexdigest()
            path.write_bytes(data)
            counts["images"] += 1
        else:
            counts["missing images"] = counts.get("missing images", 0) + 1
        parts.append(
            {
                "type": "image",
                "file": str(path.relative_to(folder)),
                "sha256": digest,
                "width": part.width,
                "height": part.height,
            }
        )
    return parts


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
