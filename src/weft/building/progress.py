"""How far a build is, for those who watch it."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from weft.building.draft import Row
from weft.calls.caller import Caller


@dataclass
class BuildProgress:
    """Counts of this command. Whoever shows them reads them from another thread."""

    total: int = 0  # rows of the build
    done: int = 0  # rows, those of earlier commands included
    earlier: int = 0  # rows of parts that were done before
    outcomes: Counter[str] = field(default_factory=Counter[str])
    dropped: Counter[str] = field(default_factory=Counter[str])  # by step and reason
    calls: Mapping[str, Caller] = field(default_factory=dict[str, Caller])  # by role, where they are made here
    remote_calls: Counter[str] = field(default_factory=Counter[str])  # made by workers elsewhere
    remote_cost: float = 0.0
    last_failure: str = ""  # which seed failed last, where, and why

    def add(self, row: Row) -> None:
        self.done += 1
        self.outcomes[row.outcome] += 1
        if row.outcome != "kept":
            self.dropped[f"{row.step}: {row.reason}"] += 1
        if row.outcome == "failed":
            self.last_failure = f"seed {row.number}, step {row.step}: {row.detail or row.reason}"

    @property
    def made_calls(self) -> int:
        return sum(caller.tally.calls for caller in self.calls.values()) + self.remote_calls["made"]

    @property
    def cached_calls(self) -> int:
        return sum(caller.tally.cached for caller in self.calls.values()) + self.remote_calls["cached"]

    @property
    def cost(self) -> float:
        return sum(caller.tally.cost for caller in self.calls.values()) + self.remote_cost

    def describe(self) -> str:
        """Return one line."""
        words = [f"{self.done:,}/{self.total:,} seeds"]
        words += [f"{count:,} {outcome}" for outcome, count in sorted(self.outcomes.items())]
        words.append(f"{self.made_calls:,} calls, {self.cached_calls:,} cached")
        if self.cost:
            words.append(f"${self.cost:.2f}")
        return ", ".join(words)
