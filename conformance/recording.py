"""What the released scripts make of generated inputs: recorded once beside a checkout, compared with what weft makes of
the same inputs wherever there is none.

A recording is facts alone, by part and key: digests of requests, scores, cells of tables. Inputs are generated from
seeds, and all prompts are stand-ins of ours, which the scripts are given in a scratch copy. A difference that is meant
is an `Explained`, which names an entry of docs/reference/errata-differences.md; anything else is unexplained.

    recorded = read_recording("weave")
    compare(recorded.facts, generated.weft(folder), generated.EXPLAINED).table()
"""

import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from conformance.server import Asked

SYSTEMS = ("weave", "imug", "rover", "planviz", "opening", "gedit", "imgedit", "risebench", "kris", "geneval", "mmvet")
FOLDER = Path(__file__).parent / "recorded"
NOTHING = "nothing"  # what a side has where only the other has something
ANYTHING = "anything"
ASKED = "asked"  # the value of a request

Facts = dict[str, dict[str, Any]]  # part -> key -> what came of it


@dataclass(frozen=True)
class Explained:
    """Differences that are meant: which, by patterns, and what each side has there."""

    erratum: str  # the id of an entry of docs/reference/errata-differences.md
    part: str
    key: str = "*"
    released: Any = ANYTHING
    weft: Any = ANYTHING

    def covers(self, part: str, key: str, released: Any, weft: Any) -> bool:
        fits = (self.released in (ANYTHING, released)) and (self.weft in (ANYTHING, weft))
        return fits and fnmatchcase(part, self.part) and fnmatchcase(key, self.key)


@dataclass(frozen=True)
class Recording:
    repository: str
    commit: str
    facts: Facts

    def write(self, path: Path) -> None:
        """One fact a line, sorted, so that a change can be read."""
        parts: list[str] = []
        for part, facts in self.facts.items():
            lines = [f"  {dump(key)}: {dump(facts[key])}" for key in sorted(facts)]
            parts.append(f" {dump(part)}: {{\n" + ",\n".join(lines) + "\n }")
        head = f'"repository": {dump(self.repository)}, "commit": {dump(self.commit)}, "facts"'
        path.write_text(f"{{{head}: {{\n" + ",\n".join(parts) + "\n}}\n")


def dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True)


def path_of(system: str) -> Path:
    return FOLDER / f"{system}.json"


def read_recording(system: str) -> Recording:
    return Recording(**json.loads(path_of(system).read_text()))


def read_commit(checkout: Path) -> str:
    done = subprocess.run(["git", "-C", checkout, "rev-parse", "HEAD"], capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def as_recorded(facts: Facts) -> Facts:
    """As they are read again: without what JSON does not tell apart, and without empty parts."""
    return {part: found for part, found in json.loads(dump(facts)).items() if found}


@dataclass
class Comparison:
    """How many facts agree by part; what differs without a reason, and which reasons nothing needed."""

    rows: list[tuple[str, int, int, int]] = field(default_factory=list)  # part, agree, explained, total
    unexplained: list[str] = field(default_factory=list)
    used: set[Explained] = field(default_factory=set)
    unused: list[Explained] = field(default_factory=list)

    def table(self) -> str:
        width = max((len(part) for part, *_ in self.rows), default=0)
        lines: list[str] = []
        for part, agree, explained, total in self.rows:
            note = f"  {explained} explained" * bool(explained) + f"  {total - agree - explained} NOT EXPLAINED" * (
                agree + explained < total
            )
            lines.append(f"{part:{width}}  {agree:>5,} of {total:,}{note}")
        lines += [f"explained: errata, {one}" for one in sorted({one.erratum for one in self.used})]
        return "\n".join(lines + self.unexplained)

    def totals(self) -> str:
        agree, explained, total = (sum(row[at] for row in self.rows) for at in (1, 2, 3))
        return f"{agree:,} of {total:,} agree" + f", {explained} differences explained" * bool(explained)


def compare(
    theirs: Facts, ours: Facts, explained: Sequence[Explained] = (), names: tuple[str, str] = ("released", "weft")
) -> Comparison:
    """Compare fact by fact. Lists count by their items; a request counts as sent or not."""
    found = Comparison()
    for part in [*theirs, *(part for part in ours if part not in theirs)]:
        agree = excused = total = 0
        for key, one, other in _pairs(theirs.get(part, {}), ours.get(part, {})):
            total += 1
            reason = next((reason for reason in explained if reason.covers(part, key, one, other)), None)
            if one == other:
                agree += 1
            elif reason is not None:
                excused += 1
                found.used.add(reason)
            else:
                found.unexplained.append(f"  {part}: {key}: {names[0]} {one!r}, {names[1]} {other!r}"[:400])
        found.rows.append((part, agree, excused, total))
    found.unused = [reason for reason in explained if reason not in found.used]
    return found


def _pairs(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> Iterable[tuple[str, Any, Any]]:
    for key in [*theirs, *(key for key in ours if key not in theirs)]:
        one, other = theirs.get(key, NOTHING), ours.get(key, NOTHING)
        if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
            yield from ((f"{key}[{at}]", a, b) for at, (a, b) in enumerate(zip(one, other, strict=True)))
        else:
            yield key, one, other


def rows_of(values: Sequence[Any], length: int = 40) -> dict[str, list[Any]]:
    """A long list as lines of a recording."""
    return {f"{at:05}": list(values[at : at + length]) for at in range(0, len(values), length)}


def requests_of(asked: Iterable[Asked], *, dialogues: bool = False) -> dict[str, str]:
    """Each request once: roles, digests of texts, digests of images, in order. Unless they are `dialogues`, those in
    which weft objects to a reply are left out."""
    first = [one for one in asked if dialogues or all(role != "assistant" for role, _ in one.messages)]
    return {describe_request(one): ASKED for one in first}


def describe_request(asked: Asked) -> str:
    from hashlib import sha256

    messages: list[str] = []
    for role, parts in asked.messages:
        shown = [
            part.removeprefix("pixels:") if part.startswith("pixels:") else sha256(part.encode()).hexdigest()[:8]
            for part in parts
        ]
        messages.append(" ".join((role, *shown)))
    return f"{asked.kind}: {' | '.join(messages)}"


def keyed(facts: Mapping[Any, Any]) -> dict[str, Any]:
    """With keys of words in place of tuples."""
    return {" ".join(map(str, key)) if isinstance(key, tuple) else str(key): value for key, value in facts.items()}
