"""Battles and scores by name: a run in the journal, or a file of verdicts."""

from pathlib import Path

from weft.arena.criteria import Criteria
from weft.arena.files import BattleVerdicts, read_verdicts
from weft.arena.official import read_battle_facts
from weft.arena.protocol import Arena, build_tables, judged_battles
from weft.benchmarks.base import Benchmark
from weft.benchmarks.official import explain_official_cells
from weft.errors import UserError
from weft.results.run import Run, load_run
from weft.stats.battles import Battle
from weft.types import Table
from weft.workspace import open_journal


def find_last_run(home: Path, kind: type[Benchmark] = Arena) -> str:
    """Return the id of the last run of battles, or of scores. Raises UserError if there is none."""
    journal = open_journal(home)
    try:
        ids = [record.id for record in journal.runs() if record.benchmark == kind.name]
    finally:
        journal.close()
    if ids:
        return ids[-1]
    command = "weft arena score RUN --judge JUDGE"
    if kind is Arena:
        command = "weft arena run RUN RUN --judge JUDGE"
    raise UserError(f"there is no such run in {home} yet: {command} makes one")


def read_battle_verdicts(name: str, home: Path) -> BattleVerdicts:
    """Read the verdicts of a file, or of a run of battles, with a problem for what could not be judged."""
    if Path(name).is_file():
        return read_verdicts(Path(name))
    run = _load_battle_run(name, home)
    return BattleVerdicts(tuple(judged_battles(run.results())), tuple(_find_problems(run)))


def _find_problems(run: Run) -> list[str]:
    problems: list[str] = []
    if run.record.state != "finished":
        problems.append(f"{run.id}: {run.summary().unfinished}")
    unscored = sum(verdict.value is None for verdict in run.verdicts)
    if unscored:
        problems.append(f"{run.id}: {unscored} of {len(run.verdicts)} battles are unscored, and in no rate")
    return problems


def read_judged_battles(name: str, home: Path) -> tuple[list[Battle], list[str]]:
    """Return the judge's verdicts of a run, and notes on what is not among them."""
    run = _load_battle_run(name, home)
    notes = _find_problems(run)
    by_rule = sum(read_battle_facts(verdict).is_by_rule for verdict in run.verdicts)
    if by_rule:
        notes.append(f"{run.id}: {by_rule} battles needed no judge, since a model had no answer; they are left out")
    return judged_battles(run.results()), notes


def build_battle_tables(name: str, home: Path, title: str) -> list[Table] | None:
    """Return the tables of a run of battles; None for a file."""
    if Path(name).is_file():
        return None
    return build_tables(_load_battle_run(name, home).results(), title)


def build_score_tables(name: str, home: Path) -> list[Table]:
    """Return the tables of a run of scores. Raises UserError for any other run."""
    run = _load_run(name, home, Criteria)
    if not isinstance(run.benchmark, Criteria):
        raise UserError(
            f"{run.id} has no scores of single answers, and no file is called {name}: "
            "weft arena score RUN --judge JUDGE"
        )
    return list(map(explain_official_cells, run.benchmark.tables([run.results()])))


def _load_battle_run(name: str, home: Path) -> Run:
    run = _load_run(name, home, Arena)
    if not isinstance(run.benchmark, Arena):
        raise UserError(f"{run.id} is no run of battles, and no file is called {name}: `weft arena run` makes one")
    return run


def _load_run(name: str, home: Path, kind: type[Benchmark]) -> Run:
    if name.endswith((".json", ".jsonl")):
        raise UserError(f"there is no file {name}")
    run_id = name
    if name == "last":
        run_id = find_last_run(home, kind)
    journal = open_journal(home)
    try:
        return load_run(journal, run_id)
    finally:
        journal.close()
