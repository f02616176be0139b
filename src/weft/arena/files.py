"""Verdict and score files in OpenING's format: a JSON list, or one object a line.

    {"data_id": ..., "model_A": {"id": ..., "name": ...}, "model_B": {...}, "winner": "A"}

Models are known by their names: in some released files one id stands for two models. A record that cannot be read is
left out and reported. If a file has two verdicts on one battle, the last one counts, and that is reported as well.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from weft.errors import UserError
from weft.stats.battles import Battle, Winner
from weft.untrusted import dict_or_empty, parse_json, read_bytes_file

WINNERS: Mapping[str, Winner] = {
    "a": "A",
    "b": "B",
    "tie(a)": "Tie(A)",
    "tie(b)": "Tie(B)",
    "tie": "Tie",
    "tie()": "Tie",
}
MAX_LISTED_PROBLEMS = 5  # of a file; the rest is only counted

BattleKey = tuple[str, str, str]  # item, first model, second model


class BattleVerdicts(Struct, frozen=True):
    """The battles of a file or a run, and what is wrong with the records that are not among them."""

    battles: tuple[Battle, ...]
    problems: tuple[str, ...] = ()


def read_verdicts(path: Path) -> BattleVerdicts:
    """Read a file of verdicts. Raises UserError if it has none that can be read."""
    battles: dict[BattleKey, Battle] = {}
    problems: list[str] = []
    for index, record in enumerate(_read_records(path)):
        battle = _read_battle(record)
        if isinstance(battle, str):
            problems.append(f"{path.name}: record {index}: {battle}")
            continue
        earlier = battles.get(_key_of(battle))
        if earlier is not None and earlier.winner != battle.winner:
            problems.append(
                f"{path.name}: record {index}: {battle.first} against {battle.second} on {battle.item} has another "
                "verdict before; this one counts"
            )
        battles[_key_of(battle)] = battle
    if not battles:
        reason = ""
        if problems:
            reason = f"; the first problem: {problems[0]}"
        raise UserError(f"{path} has no verdict that can be read{reason}")
    return BattleVerdicts(tuple(battles.values()), tuple(problems))


def _read_battle(record: Any) -> Battle | str:
    """Return the battle of a record, or what is wrong with the record."""
    fields = dict_or_empty(record)
    item = fields.get("data_id")
    if not isinstance(item, (str, int)):
        return "has no data_id"
    first = _read_model_name(fields.get("model_A"))
    second = _read_model_name(fields.get("model_B"))
    if not first or not second or first == second:
        return "needs two models, each with a name of its own"
    stored = fields.get("winner")
    winner: Winner | None = None
    if isinstance(stored, str):
        winner = WINNERS.get(re.sub(r"\s", "", stored).lower())
    if winner is None:
        return f"winner {str(stored)[:40]!r} is none of A, B, Tie(A), Tie(B), Tie"
    return Battle(str(item), first, second, winner)


def _key_of(battle: Battle) -> BattleKey:
    return (battle.item, battle.first, battle.second)


class AnswerScores(Struct, frozen=True):
    """Scores of single answers."""

    entries: Mapping[str, Sequence[Mapping[str, float]]]  # model -> for each of its answers, criterion -> score
    problems: tuple[str, ...] = ()


def read_answer_scores(path: Path) -> AnswerScores:
    """Read a file of scores of single answers.

    An entry without a number from 0 to 10 for each of its criteria is left out, as in the released summary, and
    reported. Raises UserError if no entry is left.
    """
    entries: dict[str, list[Mapping[str, float]]] = {}
    problems: list[str] = []
    for index, record in enumerate(_read_records(path)):
        fields = dict_or_empty(record)
        name = _read_model_name(fields.get("model"))
        scores = _read_criteria(fields.get("score"))
        if name and scores:
            entries.setdefault(name, []).append(scores)
        else:
            problems.append(f"{path.name}: record {index}: needs a model and, for each criterion, a score from 0 to 10")
    if not entries:
        raise UserError(
            f"{path} has no scores that can be read: it must be a list of `model` and `score`, criterion by criterion"
        )
    return AnswerScores(entries, tuple(problems))


def _read_criteria(stored: Any) -> dict[str, float]:
    """Return criterion -> score; empty if any score is not a number from 0 to 10."""
    scores: dict[str, float] = {}
    for criterion, entry in dict_or_empty(stored).items():
        score = dict_or_empty(entry).get("Score")
        if isinstance(score, bool) or not isinstance(score, (int, float)) or not 0 <= score <= 10:
            return {}
        scores[criterion] = float(score)
    return scores


def merge_verdicts(files: Mapping[str, BattleVerdicts]) -> BattleVerdicts:
    """Merge the verdicts of several files. Of a battle in two files the last counts, and that is reported."""
    battles: dict[BattleKey, Battle] = {}
    problems: list[str] = []
    duplicates = 0
    for verdicts in files.values():
        problems += verdicts.problems
        for battle in verdicts.battles:
            if _key_of(battle) in battles:
                duplicates += 1
            battles[_key_of(battle)] = battle
    if duplicates:
        problems.append(f"{duplicates} battles are in more than one file; the last counts")
    return BattleVerdicts(tuple(battles.values()), tuple(problems))


def _read_records(path: Path) -> Sequence[Any]:
    data = read_bytes_file(path)
    if data.lstrip()[:1] == b"[":
        records: Any = parse_json(data, path)
        return records
    lines: list[Any] = []
    for number, line in enumerate(data.splitlines(), start=1):
        if line.strip():
            lines.append(parse_json(line, f"{path}: line {number}"))
    return lines


def _read_model_name(model: Any) -> str:
    name = model
    if isinstance(model, dict):
        name = dict_or_empty(model).get("name")
    if isinstance(name, str):
        return name.strip()
    return ""
