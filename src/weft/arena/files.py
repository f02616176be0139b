"""Verdict files, as OpenING has them: a list of `{"data_id", "model_A": {"id", "name"}, "model_B": {...}, "winner"}`,
or one object a line.

Models are known by their names: in some released files one id stands for two. A verdict that cannot be read is left out
and told; of two about the same battle the last counts, and that is told as well."""

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
MAX_LISTED_PROBLEMS = 5  # problems of a file that are told one by one


class BattleVerdicts(Struct, frozen=True):
    battles: tuple[Battle, ...]
    problems: tuple[str, ...] = ()


def read_verdicts(path: Path) -> BattleVerdicts:
    found = _records(path)
    made: dict[tuple[str, str, str], Battle] = {}
    problems: list[str] = []
    for at, record in enumerate(found):
        facts = dict_or_empty(record)
        item = facts.get("data_id")
        winner = facts.get("winner")
        names = [_name(facts.get(key)) for key in ("model_A", "model_B")]
        if isinstance(winner, str):
            said = WINNERS.get(re.sub(r"\s", "", winner).lower())
        else:
            said = None
        if not isinstance(item, (str, int)) or not all(names) or names[0] == names[1] or said is None:
            problems.append(f"{path.name}: record {at}: {_wrong(item, names, winner)}")
            continue
        one = Battle(str(item), names[0], names[1], said)
        key = (one.item, one.first, one.second)
        if key in made and made[key].winner != one.winner:
            problems.append(
                f"{path.name}: record {at}: {one.first} against {one.second} on {one.item} has another verdict before; this one counts"
            )
        made[key] = one
    if not made:
        raise UserError(
            f"{path} has no verdict that can be read" + (f"; the first problem: {problems[0]}" if problems else "")
        )
    return BattleVerdicts(tuple(made.values()), tuple(problems))


class AnswerScores(Struct, frozen=True):
    """By model: criterion -> score, of each answer."""

    entries: Mapping[str, Sequence[Mapping[str, float]]]
    problems: tuple[str, ...] = ()


def read_answer_scores(path: Path) -> AnswerScores:
    """Scores of single answers. Entries without a number from 0 to 10 for each of their criteria are left out, as in
    the released summary, and told."""
    made: dict[str, list[Mapping[str, float]]] = {}
    problems: list[str] = []
    for at, record in enumerate(_records(path)):
        facts = dict_or_empty(record)
        name = _name(facts.get("model"))
        scores: dict[str, Any] = {
            key: dict_or_empty(one).get("Score") for key, one in dict_or_empty(facts.get("score")).items()
        }
        good = {key: float(one) for key, one in scores.items() if _is_score(one)}
        if name and scores and len(good) == len(scores):
            made.setdefault(name, []).append(good)
        else:
            problems.append(f"{path.name}: record {at}: needs a model and, for each criterion, a score from 0 to 10")
    if not made:
        raise UserError(
            f"{path} has no scores that can be read: a list of `model` and `score`, criterion by criterion, is looked for"
        )
    return AnswerScores(made, tuple(problems))


def _is_score(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 10


def merge_verdicts(files: Mapping[str, BattleVerdicts]) -> BattleVerdicts:
    """The verdicts of several files. Of a battle that is in two of them the last counts, and that is told."""
    made: dict[tuple[str, str, str], Battle] = {}
    twice = 0
    for one in (battle for verdicts in files.values() for battle in verdicts.battles):
        twice += (one.item, one.first, one.second) in made
        made[one.item, one.first, one.second] = one
    told = [f"{twice} battles are in more than one file; the last counts"] if twice else []
    return BattleVerdicts(
        tuple(made.values()), (*(problem for some in files.values() for problem in some.problems), *told)
    )


def _records(path: Path) -> Sequence[Any]:
    data = read_bytes_file(path)
    if data.lstrip()[:1] != b"[":
        return [
            parse_json(line, f"{path}: line {at}") for at, line in enumerate(data.splitlines(), start=1) if line.strip()
        ]
    found: Any = parse_json(data, path)
    return found


def _name(model: Any) -> str:
    if isinstance(model, dict):
        name = dict_or_empty(model).get("name")
    else:
        name = model
    if isinstance(name, str):
        return name.strip()
    return ""


def _wrong(item: Any, names: Sequence[str], winner: Any) -> str:
    if not isinstance(item, (str, int)):
        return "has no data_id"
    if not all(names) or names[0] == names[1]:
        return "needs two models, each with a name of its own"
    return f"winner {str(winner)[:40]!r} is none of A, B, Tie(A), Tie(B), Tie"
