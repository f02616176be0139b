"""KRIS-Bench's scripts beside weft, with the authors' own prompts."""

from pathlib import Path

from conformance import companions
from conformance.generated.kris import COMPANION
from conformance.generated.kris import FILES as FILES
from conformance.report import Report

NEEDS = ("Pillow",)


def compare(checkout: Path, data: Path | None, work: Path, python: Path, report: Report) -> None:
    companions.compare(COMPANION, checkout, work, python, report)
