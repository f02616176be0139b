"""Verdicts as a DataFrame, of pandas or of polars, whichever is there."""

import importlib
import importlib.util
from collections.abc import Sequence
from typing import Any

from weft.errors import UserError
from weft.report.parquet import verdict_rows
from weft.results.run import Run


def build_frame(runs: Sequence[Run]) -> Any:
    """pandas, if both are there."""
    made = verdict_rows(runs)
    for library in ("pandas", "polars"):
        if importlib.util.find_spec(library) is not None:
            kind: Any = importlib.import_module(library).DataFrame
            if library == "pandas":
                return kind(made)
            return kind(made, infer_schema_length=None)
    raise UserError("a DataFrame needs pandas or polars: pip install pandas")
