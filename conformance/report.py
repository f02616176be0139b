"""What was compared, and how much of it agrees."""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Report:
    """`only` are the parts that are wanted, if not all."""

    only: set[str] | None = None
    rows: list[tuple[str, str, int, int]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    unexplained: int = 0

    def wants(self, part: str) -> bool:
        return self.only is None or part in self.only

    def say(self, note: str) -> None:
        self.notes.append(note)

    def count(self, part: str, what: str, agree: int, of: int, *, why: str = "", examples: Iterable[str] = ()) -> None:
        """`why`: the reason for what differs, where it is meant to."""
        self.rows.append((part, what, agree, of))
        if agree != of and not why:
            self.unexplained += of - agree
            self.notes += [
                f"NOT EXPLAINED, {part}, {what}: {example}"
                for example in list(examples)[:3] or [f"{of - agree} differ"]
            ]
        elif agree != of:
            self.notes.append(f"{part}, {what}: {of - agree} differ on purpose: {why}")

    def same(self, part: str, what: str, theirs: Mapping[Any, Any], ours: Mapping[Any, Any], why: str = "") -> None:
        """Two things by name. What only one side has differs."""
        names = [*theirs, *(name for name in ours if name not in theirs)]
        off = [name for name in names if theirs.get(name, "nothing") != ours.get(name, "nothing")]
        shown = (
            f"{name}: released {theirs.get(name, 'nothing')!r}, weft {ours.get(name, 'nothing')!r}"[:600]
            for name in off
        )
        self.count(part, what, len(names) - len(off), len(names), why=why, examples=shown)

    def bags(self, part: str, what: str, theirs: Iterable[Hashable], ours: Iterable[Hashable], why: str = "") -> None:
        """Two heaps of things that came in any order. Weft asks the very same thing once, and has the answer for all
        who ask it; if none came, it asks again."""
        left = Counter(theirs)
        right = Counter({one: left[one] or 1 for one in ours})
        both = sum((left & right).values())
        shown = [f"released alone: {one}"[:600] for one in (left - right)][:2] + [
            f"weft alone: {one}"[:600] for one in (right - left)
        ][:2]
        self.count(part, what, both, max(sum(left.values()), sum(right.values())), why=why, examples=shown)

    def table(self) -> str:
        wide = max((len(what) for _, what, _, _ in self.rows), default=0)
        first = max((len(part) for part, _, _, _ in self.rows), default=0)
        lines = [f"{part:{first}}  {what:{wide}}  {agree:>7,} of {of:,}" for part, what, agree, of in self.rows]
        return "\n".join([*lines, "", *self.notes])
