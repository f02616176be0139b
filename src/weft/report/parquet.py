"""Verdicts as a Parquet file for pandas, polars or DuckDB: a row per verdict, with the sample's groups and the turn's
outcome."""

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from weft.errors import UserError
from weft.results.run import Run
from weft.store.journal import TurnRecord
from weft.types import Verdict, finish_reason_of


def write(runs: Sequence[Run], path: Path) -> None:
    """Write all verdicts of these runs to one Parquet file."""
    write_rows(verdict_rows(runs), path)


def write_rows(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    try:
        arrow: Any = importlib.import_module("pyarrow")
        parquet: Any = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise UserError("--format parquet needs pyarrow: pip install 'weft[parquet]'") from None
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(arrow.Table.from_pylist(list(rows)), path)


def verdict_rows(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Return a row per verdict. All rows have the same columns; `turn` counts from 1."""
    rows: list[dict[str, Any]] = []
    for run in runs:
        turns = {(turn.sample, turn.turn): turn for turn in run.turns}
        rows += [_build_row(run, verdict, turns[verdict.sample, verdict.turn]) for verdict in run.verdicts]
    columns: dict[str, None] = {}
    for row in rows:
        columns.update(dict.fromkeys(row))
    for row in rows:
        for column in columns:
            row.setdefault(column, None)
    return rows


def _build_row(run: Run, verdict: Verdict, turn: TurnRecord) -> dict[str, Any]:
    manifest = run.record.manifest
    usage = turn.reply.usage
    points = None
    if verdict.value is not None:
        points = run.benchmark.presentation.max_score * verdict.value
    modality = turn.modality if turn.modality in ("text", "image") else "interleaved"
    row: dict[str, Any] = {
        "run": run.id,
        "title": run.name,
        "model": manifest.model.name,
        "judge": manifest.judge.name,
        "strategy": manifest.strategy,
        "sample": verdict.sample,
        "turn": verdict.turn + 1,
        "modality": turn.modality,
        "metric": verdict.metric,
        "value": verdict.value,
        "points": points,
        "score": verdict.score,
        "standard_deviation": verdict.standard_deviation,
        "by": verdict.by,
        "reason": verdict.reason,
        "outcome": turn.reply.outcome,
        "finish_reason": finish_reason_of(turn.reply, modality),
        "calls": len(turn.reply.keys),
        "tokens_in": usage.tokens_in,
        "tokens_out": usage.tokens_out,
        "cost": usage.cost,
    }
    for axis, group in turn.groups.items():
        row[f"group_{axis}"] = group
    return row
