"""Plain Parquet that `datasets` opens: one row a dialogue, with its images inside. The same data are the same bytes.

datasets.load_dataset("parquet", data_files="DIR/*.parquet")
"""

import importlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from weft.building.draft import Draft, DraftTurn, Row
from weft.building.layouts.weave import EXTENSIONS, iterate_kept
from weft.building.provenance import Describe
from weft.errors import UserError
from weft.store.blobs import Blobs

GROUP_ROWS = 64  # in a row group
FILE_ROWS = 2000  # in a file
TEXT = "string"


def write_parquet(folder: Path, rows: Iterable[Row], blobs: Blobs, describe: Describe) -> int:
    """Write the kept rows as `00000.parquet` and so on, a row group at a time in memory. Return how many.

    Raises UserError without the extra `parquet`.
    """
    try:
        arrow: Any = importlib.import_module("pyarrow")
        parquet: Any = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise UserError("Parquet needs pyarrow: pip install 'weft-eval[parquet]'") from None
    schema = _build_schema(arrow)
    count = 0
    writer: Any = None
    try:
        for group in _in_groups(iterate_kept(rows)):
            if count % FILE_ROWS == 0:
                if writer is not None:
                    writer.close()
                writer = parquet.ParquetWriter(folder / f"{count // FILE_ROWS:05d}.parquet", schema, compression="zstd")
            dialogues = [_to_row(row, draft, blobs, describe) for row, draft in group]
            writer.write_table(arrow.Table.from_pylist(dialogues, schema=schema), row_group_size=GROUP_ROWS)
            count += len(group)
    finally:
        if writer is not None:
            writer.close()
    return count


def _build_schema(arrow: Any) -> Any:
    """Return the columns, with what `datasets` must know to decode the images."""
    image = arrow.struct([("bytes", arrow.binary()), ("path", arrow.string())])
    turn = arrow.struct(
        [
            ("user", arrow.string()),
            ("kind", arrow.string()),
            ("image", arrow.int32()),
            ("text", arrow.string()),
            ("key_points", arrow.list_(arrow.struct([("name", arrow.string()), ("text", arrow.string())]))),
        ]
    )
    features: dict[str, Any] = {
        "id": {"dtype": "int64", "_type": "Value"},
        **{name: {"dtype": TEXT, "_type": "Value"} for name in ("domain", "subdomain", "split")},
        "images": {"feature": {"_type": "Image"}, "_type": "List"},
        "turns": {
            "feature": {
                **{name: {"dtype": TEXT, "_type": "Value"} for name in ("user", "kind")},
                "image": {"dtype": "int32", "_type": "Value"},
                "text": {"dtype": TEXT, "_type": "Value"},
                "key_points": {
                    "feature": {name: {"dtype": TEXT, "_type": "Value"} for name in ("name", "text")},
                    "_type": "List",
                },
            },
            "_type": "List",
        },
        "provenance": {"dtype": TEXT, "_type": "Value"},
    }
    fields = [
        ("id", arrow.int64()),
        ("domain", arrow.string()),
        ("subdomain", arrow.string()),
        ("split", arrow.string()),
        ("images", arrow.list_(image)),
        ("turns", arrow.list_(turn)),
        ("provenance", arrow.string()),
    ]
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    return arrow.schema(fields, metadata=metadata)


def _in_groups(kept: Iterator[tuple[Row, Draft]]) -> Iterator[list[tuple[Row, Draft]]]:
    """Yield the rows of one row group each; no group goes over the end of a file."""
    group: list[tuple[Row, Draft]] = []
    in_file = 0
    for pair in kept:
        group.append(pair)
        in_file += 1
        if len(group) == GROUP_ROWS or in_file == FILE_ROWS:
            yield group
            group = []
        if in_file == FILE_ROWS:
            in_file = 0
    if group:
        yield group


def _to_row(row: Row, draft: Draft, blobs: Blobs, describe: Describe) -> dict[str, Any]:
    images: list[dict[str, Any]] = []
    for number, image in enumerate(draft.images, start=1):
        extension = EXTENSIONS.get(image.media_type, "img")
        images.append({"bytes": blobs.read(image), "path": f"{row.number + 1}_{number}.{extension}"})
    turns = [_to_turn(turn) for turn in draft.turns]
    group = {"domain": draft.domain, "subdomain": draft.subdomain, "split": draft.split}
    provenance = json.dumps(describe(row), ensure_ascii=False)
    return {"id": row.number + 1, **group, "images": images, "turns": turns, "provenance": provenance}


def _to_turn(turn: DraftTurn) -> dict[str, Any]:
    return {
        "user": turn.text,
        "kind": turn.kind,
        "image": turn.makes,
        "text": turn.answer if turn.makes is None else None,
        "key_points": [{"name": name, "text": text} for name, text in turn.key_points.items()],
    }
