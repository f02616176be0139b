"""Every verdict as a row of a Parquet file, with the sample's groups and the turn's outcome: for pandas, polars or
DuckDB."""

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from weft.errors import UserError
from weft.results.run import Run
from weft.types import finish_reason_of


def write(runs: Sequence[Run], path: Path) -> None:
    write_rows(verdict_rows(runs), path)


def write_rows(some: Sequence[Mapping[str, Any]], path: Path) -> None:
    try:
        arrow: Any = importlib.import_module("pyarrow")
        parquet: Any = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise UserError("--format parquet needs pyarrow: pip install 'weft[parquet]'") from None
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(arrow.Table.from_pylist(list(some)), path)


def verdict_rows(runs: Sequence[Run]) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for run in runs:
        turns = {(turn.sample, turn.turn): turn for turn in run.turns}
        for verdict in run.verdicts:
            turn = turns[verdict.sample, verdict.turn]
            usage = turn.reply.usage
            made.append(
                {
                    "run": run.id,
                    "title": run.name,
                    "model": run.record.manifest.model.name,
                    "judge": run.record.manifest.judge.name,
                    "strategy": run.record.manifest.strategy,
                    "sample": verdict.sample,
                    "turn": verdict.turn + 1,
                    "want": turn.modality,
                    "metric": verdict.metric,
                    "value": verdict.value,
                    "points": None if verdict.value is None else run.benchmark.presentation.max_score * verdict.value,
                    "score": verdict.score,
                    "spread": verdict.standard_deviation,
                    "by": verdict.by,
                    "reason": verdict.reason,
                    "outcome": turn.reply.outcome,
                    "ending": finish_reason_of(
                        turn.reply, turn.modality if turn.modality in ("text", "image") else "interleaved"
                    ),
                    "calls": len(turn.reply.keys),
                    "tokens_in": usage.tokens_in,
                    "tokens_out": usage.tokens_out,
                    "cost": usage.cost,
                    **{f"group_{name}": value for name, value in turn.groups.items()},
                }
            )
    names = dict.fromkeys(name for row in made for name in row)
    return [{name: row.get(name) for name in names} for row in made]
