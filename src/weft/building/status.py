"""What became of a build's seeds: yields by step, dropped rows by reason, calls and cost."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from weft.building.draft import Row
from weft.building.manifest import BuildManifest, home_of, read_manifest
from weft.building.parts import find_open_parts, read_rows, split_seeds
from weft.store.records import CallTotals
from weft.store.schema import journal_file
from weft.workspace import read_only_journal


class StepYield(Struct, frozen=True):
    """What one step let through."""

    step: str
    entered: int
    left: int
    reasons: Mapping[str, int]  # why rows ended here
    failure: str = ""  # what exactly happened to the first row that failed here
    failed: int = 0  # rows that ended here through no fault of theirs, and are tried again

    @property
    def share(self) -> float | None:
        """The share of rows that the step let through, of those that it could decide about."""
        decided = self.entered - self.failed
        return self.left / decided if decided else None


class BuildStatus(Struct, frozen=True):
    """Everything that `weft build status` shows."""

    manifest: BuildManifest
    parts: int
    parts_done: int
    outcomes: Mapping[str, int]
    steps: Sequence[StepYield]
    counts: Mapping[str, int]  # what recipes counted, over all rows
    turns: int  # of the kept dialogues
    images: int
    cost: float | None  # of all rows, in USD
    calls: Sequence[CallTotals]  # by role

    @property
    def rows(self) -> int:
        return sum(self.outcomes.values())

    @property
    def kept(self) -> int:
        return self.outcomes.get("kept", 0)

    @property
    def kept_share(self) -> float | None:
        """The share of dialogues that were kept, of the rows that did not fail."""
        decided = self.rows - self.outcomes.get("failed", 0)
        return self.kept / decided if decided else None

    @property
    def cost_per_kept(self) -> float | None:
        """What a kept dialogue cost, the dropped ones included."""
        if self.cost is None or not self.kept:
            return None
        return self.cost / self.kept


def read_status(out: Path) -> BuildStatus:
    """Read a build's status from its files, while it may be running. Raises UserError for a folder without a build."""
    manifest = read_manifest(out)
    parts = split_seeds(manifest.seeds, manifest.part_size)
    open_parts = find_open_parts(out, manifest.seeds, manifest.part_size)
    totals = _Totals()
    totals.add_all(read_rows(out))
    return BuildStatus(
        manifest=manifest,
        parts=len(parts),
        parts_done=len(parts) - len(open_parts),
        outcomes=dict(totals.outcomes),
        steps=find_yields(totals, manifest.steps),
        counts=dict(totals.counts),
        turns=totals.turns,
        images=totals.images,
        cost=None if totals.has_unknown_cost else totals.cost,
        calls=_read_calls(out, manifest),
    )


def find_yields(totals: "_Totals", steps: Sequence[str]) -> list[StepYield]:
    """Return the yield of each step, from the rows that ended in each, by reason."""
    yields: list[StepYield] = []
    ended = totals.ended
    entered = totals.rows
    names = ["seed", *steps] if "seed" in ended else list(steps)
    for step in [*names, *(name for name in ended if name not in names)]:
        reasons = ended.get(step, Counter())
        left = entered - reasons.total()
        failure = totals.failures.get(step, "")
        yields.append(StepYield(step, entered, left, dict(reasons.most_common()), failure, totals.failed[step]))
        entered = left
    return yields


class _Totals:
    """Sums over rows, one in memory at a time."""

    def __init__(self) -> None:
        self.rows = 0
        self.outcomes: Counter[str] = Counter()
        self.ended: dict[str, Counter[str]] = {}  # by step and reason
        self.failures: dict[str, str] = {}  # the first one, by step
        self.failed: Counter[str] = Counter()  # by step
        self.counts: Counter[str] = Counter()
        self.turns = 0
        self.images = 0
        self.cost = 0.0
        self.has_unknown_cost = False

    def add_all(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self.add(row)

    def add(self, row: Row) -> None:
        self.rows += 1
        self.outcomes[row.outcome] += 1
        self.counts.update(row.counts)
        self.cost += row.cost or 0.0
        self.has_unknown_cost = self.has_unknown_cost or row.cost is None
        if row.outcome != "kept":
            reason = row.reason if row.outcome == "dropped" else f"{row.reason} (tried again by the same command)"
            self.ended.setdefault(row.step, Counter())[reason] += 1
            if row.outcome == "failed":
                self.failed[row.step] += 1
                self.failures.setdefault(row.step, f"seed {row.number}: {row.detail or row.reason}")
        elif row.draft is not None:
            self.turns += len(row.draft.turns)
            self.images += len(row.draft.images)


def _read_calls(out: Path, manifest: BuildManifest) -> list[CallTotals]:
    home = home_of(out, manifest)
    if not journal_file(home).exists():
        return []
    with read_only_journal(home) as journal:
        return journal.totals(manifest.run)
