"""Sweeps: runs that one command made, which carry its name. Wherever a report takes a run it takes a sweep as well.

A run may be of several sweeps: its names are listed under `sweep`, with commas between them."""

import re
from collections.abc import Iterable
from pathlib import Path

from weft.errors import UserError
from weft.store.journal import Journal
from weft.store.records import RunRecord
from weft.workspace import open_journal

NAME_KEY = "sweep"
NAME = re.compile(r"[\w.:+-]{1,60}")


def sweeps_of(record: RunRecord) -> list[str]:
    """Return the names of the sweeps that a run is of."""
    return list(filter(None, record.names.get(NAME_KEY, "").split(",")))


def join_names(names: Iterable[str]) -> str:
    """Return the names of sweeps as a run's record has them."""
    return ",".join(dict.fromkeys(names))


def check_sweep_name(journal_runs: Iterable[RunRecord], name: str) -> None:
    """Raise UserError for a name that would be taken for a run's, or for several."""
    if not NAME.fullmatch(name) or name == "last":
        raise UserError(f"--name {name!r}: use letters, digits and . : _ + -, at most 60 of them")
    for record in journal_runs:
        if name in (record.id, record.names.get("tag")):
            raise UserError(f"--name {name}: a run is called so; take another name")


def find_sweep_runs(journal: Journal, name: str) -> list[str]:
    """Return the ids of a sweep's runs, in the order in which they were begun, those of one model together; empty if
    there is no such sweep."""
    by_model: dict[str, list[str]] = {}
    for record in sorted(journal.runs(), key=lambda record: record.started):
        if name in sweeps_of(record):
            by_model.setdefault(record.manifest.model.name, []).append(record.id)
    return [run for runs in by_model.values() for run in runs]


def expand_names(journal: Journal, names: Iterable[str]) -> list[str]:
    """Return the names of runs, with the ids of its runs in place of the name of a sweep.

    A run of two sweeps comes once; a run that is named twice stays twice, which is a mistake that others report.
    """
    expanded: list[str] = []
    for name in names:
        of_sweep = find_sweep_runs(journal, name)
        expanded += [run for run in of_sweep if run not in expanded] or ([] if of_sweep else [name])
    return expanded


def expand_names_in(home: Path, names: Iterable[str]) -> list[str]:
    """Do what `expand_names` does, in the journal of a home folder."""
    journal = open_journal(home)
    try:
        return expand_names(journal, names)
    finally:
        journal.close()
