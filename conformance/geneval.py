"""GenEval's scripts beside weft: its rules, and its summary."""

from pathlib import Path

from conformance import companions
from conformance.generated.geneval import COMPANION
from conformance.generated.geneval import FILES as FILES
from conformance.report import Report

NEEDS = ("pandas", "numpy")


def compare(checkout: Path, data: Path | None, work: Path, python: Path, report: Report) -> None:
    companions.compare(COMPANION, checkout, work, python, report)
