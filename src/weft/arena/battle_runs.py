"""Battles by name: a run of them in the journal, or a file of verdicts."""

from pathlib import Path

from weft.arena.criteria import Criteria
from weft.arena.files import BattleVerdicts, read_verdicts
from weft.arena.official import read_battle_facts
from weft.arena.protocol import Arena, build_tables, judged_battles
from weft.benchmarks.base import Benchmark
from weft.errors import UserError
from weft.results.run import Run, load_run
from weft.stats.battles import Battle
from weft.types import Table
from weft.workspace import open_journal


def find_last_run(home: Path, kind: type[Benchmark] = Arena) -> str:
    """The run of battles that was fought last; or of scores."""
    journal = open_journal(home)
    try:
        found = [record.id for record in journal.runs() if record.benchmark == kind.name]
    finally:
        journal.close()
    if not found:
        if kind is Arena:
            how = "weft arena run RUN RUN --judge JUDGE"
        else:
            how = "weft arena score RUN --judge JUDGE"
        raise UserError(f"there is no such run in {home} yet: {how} makes one")
    return found[-1]


def read_battle_verdicts(name: str, home: Path) -> BattleVerdicts:
    """Of a file, or of a run of battles; what could not be judged is told."""
    if Path(name).is_file():
        return read_verdicts(Path(name))
    run = _battles(name, home)
    return BattleVerdicts(tuple(judged_battles(run.results())), tuple(_told(run)))


def _told(run: Run) -> list[str]:
    unscored = sum(verdict.value is None for verdict in run.verdicts)
    told = [run.summary().unfinished] if run.record.state != "finished" else []
    told += [f"{unscored} of {len(run.verdicts)} battles are unscored, and in no rate"] if unscored else []
    return [f"{run.id}: {one}" for one in told]


def read_judged_battles(name: str, home: Path) -> tuple[list[Battle], list[str]]:
    """What a judge said in a run, and what is to be told of it."""
    run = _battles(name, home)
    ruled = sum(read_battle_facts(verdict).is_by_rule for verdict in run.verdicts)
    told = (
        [f"{run.id}: {ruled} battles needed no judge, since somebody had no answer; they are not among them"]
        if ruled
        else []
    )
    return judged_battles(run.results()), [*_told(run), *told]


def build_battle_tables(name: str, home: Path, title: str) -> list[Table] | None:
    """Those of a run; None for a file."""
    if Path(name).is_file():
        return None
    return build_tables(_battles(name, home).results(), title)


def build_score_tables(name: str, home: Path) -> list[Table]:
    run = _run(name, home, Criteria)
    if not isinstance(run.benchmark, Criteria):
        raise UserError(
            f"{run.id} has no scores of single answers, and no file is called {name}: weft arena score RUN --judge JUDGE"
        )
    return list(run.benchmark.tables([run.results()]))


def _battles(name: str, home: Path) -> Run:
    run = _run(name, home, Arena)
    if not isinstance(run.benchmark, Arena):
        raise UserError(f"{run.id} is no run of battles, and no file is called {name}: `weft arena run` fights some")
    return run


def _run(name: str, home: Path, kind: type[Benchmark]) -> Run:
    if name.endswith((".json", ".jsonl")):
        raise UserError(f"there is no file {name}")
    journal = open_journal(home)
    try:
        return load_run(journal, find_last_run(home, kind) if name == "last" else name)
    finally:
        journal.close()
