"""Find the runs in which another judge judged the replies of given runs."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from weft.errors import UserError
from weft.judge_eval.agreement.pairs import find_same_replies, is_same_model_and_data
from weft.results.run import Run, load_run
from weft.store.journal import Journal
from weft.store.manifest import Manifest
from weft.store.records import RunRecord
from weft.workspace import open_journal

MAX_NAMES = 8  # in an error


class Candidate(Struct, frozen=True):
    """A run in which the other judge judged replies of a given run."""

    run: Run
    settings: str  # of the judge
    replies: int  # how many are identical


def find_second_judge(runs: Sequence[Run], name: str, home: Path) -> list[Run]:
    """Return another judge's run of the same replies for each run, in their order.

    `name` is the judge, or names the runs with commas between them, in any order. Where the judge was asked with
    several settings, all runs are of one, if there is one for all. Raises UserError where there is none."""
    journal = open_journal(home)
    try:
        candidates = [_find_candidates(journal, run, name) for run in runs]
        if any(candidates):
            return _require_all(runs, _choose(candidates), f"no run in which {name} judged its replies")
        named = [load_run(journal, part.strip(), runs[0].benchmark) for part in name.split(",")]
    except UserError as error:
        judges = _list_judges(journal, runs)
        hint = f"the replies of these runs were also judged by {judges}" if judges else _hint(runs[0])
        raise UserError(f"--with {name}: {error}; {hint}") from None
    finally:
        journal.close()
    return _match(runs, named)


def is_judge(run: Run, name: str, home: Path) -> bool:
    """Whether another judge of this name judged the model of a run."""
    journal = open_journal(home)
    try:
        return any(_is_named(record, name) for record in _others(journal, run))
    finally:
        journal.close()


def _is_named(record: RunRecord, judge: str) -> bool:
    return judge in (record.manifest.judge.name, record.names.get("judge"))


def _find_candidates(journal: Journal, run: Run, judge: str) -> list[Candidate]:
    """Return the runs in which this judge judged replies of the run, oldest first."""
    found: list[Candidate] = []
    for record in _others(journal, run):
        if not _is_named(record, judge):
            continue
        other = load_run(journal, record.id, run.benchmark)
        replies = len(find_same_replies(run.turns, other.turns))
        if replies:
            found.append(Candidate(other, _judge_settings(record.manifest), replies))
    return found


def _judge_settings(manifest: Manifest) -> str:
    """Return what a judge's answers depend on besides the reply, as one text."""
    settings = (manifest.judge, manifest.judge_repeats, manifest.prompts)
    return msgspec.json.encode(settings, order="sorted").decode()


def _choose(candidates: Sequence[Sequence[Candidate]]) -> list[Run | None]:
    """Return one run of each list: with the settings that all lists have and that judged most replies, otherwise with
    any. Of several, the one with most replies, then the newest."""
    replies: dict[str, int] = {}
    for candidate in reversed(candidates[0]):  # the newest first
        if all(any(other.settings == candidate.settings for other in found) for found in candidates):
            replies[candidate.settings] = 0
    for found in candidates:
        for settings in replies:
            replies[settings] += max(one.replies for one in found if one.settings == settings)
    chosen = max(replies, key=lambda settings: replies[settings], default=None)
    best: list[Run | None] = []
    for found in candidates:
        fitting = [candidate for candidate in found if chosen in (None, candidate.settings)]
        best.append(max(reversed(fitting), key=lambda candidate: candidate.replies).run if fitting else None)
    return best


def _others(journal: Journal, run: Run) -> list[RunRecord]:
    """The records of other runs of the same model and data, by another judge, oldest first."""
    own = run.record.manifest
    records = sorted(journal.runs(), key=lambda record: record.started)
    return [
        record
        for record in records
        if is_same_model_and_data(record.manifest, own) and record.manifest.judge.name != own.judge.name
    ]


def _list_judges(journal: Journal, runs: Sequence[Run]) -> str:
    names = dict.fromkeys(record.manifest.judge.name for run in runs for record in _others(journal, run))
    return ", ".join(list(names)[:MAX_NAMES])


def _hint(run: Run) -> str:
    return f"`weft judge {run.id} --judge JUDGE` judges replies again"


def _match(runs: Sequence[Run], named: Sequence[Run]) -> list[Run]:
    """Put the named runs in the order of those whose replies they judged."""
    left = list(named)
    matched: list[Run | None] = []
    for run in runs:
        found = next((other for other in left if _is_second(run, other)), None)
        if found is not None:
            left.remove(found)
        matched.append(found)
    if left:
        raise UserError(f"--with {left[0].id}: it is no run of another judge of {', '.join(run.id for run in runs)}")
    return _require_all(runs, matched, "no run of another judge was named for it")


def _is_second(run: Run, other: Run) -> bool:
    return run.id != other.id and is_same_model_and_data(run.record.manifest, other.record.manifest)


def _require_all(runs: Sequence[Run], found: Sequence[Run | None], problem: str) -> list[Run]:
    complete: list[Run] = []
    for run, other in zip(runs, found, strict=True):
        if other is None:
            raise UserError(f"{run.id}: {problem}; {_hint(run)}")
        complete.append(other)
    return complete
