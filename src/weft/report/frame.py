"""Verdicts as a DataFrame of pandas or polars, whichever is installed."""

import importlib
import importlib.util
from collections.abc import Sequence
from typing import Any

from weft.errors import UserError
from weft.report.parquet import verdict_rows
from weft.results.run import Run


def build_frame(runs: Sequence[Run]) -> Any:
    """Return a DataFrame with a row per verdict; pandas is preferred."""
    rows = verdict_rows(runs)
    if importlib.util.find_spec("pandas") is not None:
        pandas: Any = importlib.import_module("pandas")
        return pandas.DataFrame(rows)
    if importlib.util.find_spec("polars") is not None:
        polars: Any = importlib.import_module("polars")
        return polars.DataFrame(rows, infer_schema_length=None)
    raise UserError("a DataFrame needs pandas or polars: pip install pandas")
