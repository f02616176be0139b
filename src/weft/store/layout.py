"""Where things lie in a home folder. `weft.workspace` opens them; only the store itself needs their paths."""

from pathlib import Path

JOURNAL, BLOBS = "journal.sqlite", "blobs"


def journal_file(home: str | Path) -> Path:
    return Path(home) / JOURNAL


def blobs_folder(home: str | Path) -> Path:
    return Path(home) / BLOBS
