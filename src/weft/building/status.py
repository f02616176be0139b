"""What became of a build's seeds: yields by step, dropped rows by reason, calls and cost."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from weft.building.draft import Row
from weft.building.manifest import BuildManifest, home_of, read_manifest
from weft.building.parts import find_open_parts, read_rows, split_seeds
from weft.building.selection import count_kinds, read_left_out
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
    left_out: Mapping[str, int] = {}  # dialogues that are not in the dataset, by kind of duplicate

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


def read_status(
    out: Path, manifest: BuildManifest | None = None, left_out: Mapping[str, int] | None = None
) -> BuildStatus:
    """Read a build's status from its files, while it may be running. Raises UserError for a folder without a build.

    `left_out` is known while the dataset is written: the file that says it is then an old one.
    """
    manifest = manifest or read_manifest(out)
    parts = split_seeds(manifest.seeds, manifest.part_size, manifest.shard)
    open_parts = find_open_parts(out, manifest.seeds, manifest.part_size, manifest.shard)
    totals = _Totals()
    totals.add_all(read_rows(out))
    return BuildStatus(
        manifest=manifest,
        parts=len(parts),
        parts_done=len(parts) - len(open_parts),
        outcomes=dict(totals.outcomes),
        steps=find_yields(totals, dict(zip(manifest.steps, manifest.step_groups, strict=False))),
        counts=dict(totals.counts),
        turns=totals.turns,
        images=totals.images,
        cost=None if totals.has_unknown_cost else totals.cost,
        calls=_read_calls(out, manifest),
        left_out=count_kinds(read_left_out(out)) if left_out is None else left_out,
    )


def find_yields(totals: "_Totals", groups: Mapping[str, str]) -> list[StepYield]:
    """Return the yield of each step, from the dialogues that ended in each, by reason.

    `groups` has all steps, with the group of rows that goes through each. Every try of a seed counts by itself.
    """
    yields: list[StepYield] = []
    ended = totals.ended
    alive = Counter(totals.entered)  # dialogues that have not ended yet, by group
    names = ["seed", *groups] if "seed" in ended else list(groups)
    for step in [*names, *(name for name in ended if name not in names)]:
        by_group = ended.get(step, {})
        group = groups.get(step, "")
        passing = [group] if group else list(alive)
        entered = sum(alive[one] for one in passing)
        reasons: Counter[str] = Counter()
        for one, counts in by_group.items():
            reasons.update(counts)
            alive[one] -= counts.total()
        left = entered - reasons.total()
        failure = totals.failures.get(step, "")
        yields.append(StepYield(step, entered, left, dict(reasons.most_common()), failure, totals.failed[step]))
    return yields


class _Totals:
    """Sums over rows, one in memory at a time."""

    def __init__(self) -> None:
        self.rows = 0
        self.outcomes: Counter[str] = Counter()
        self.entered: Counter[str] = Counter()  # dialogues that were begun, by group
        self.ended: dict[str, dict[str, Counter[str]]] = {}  # by step, group and reason
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
        self.entered[row.group] += 1 + len(row.earlier)
        for one in row.earlier:
            self._end(one.step, row.group, one.reason)
        self.outcomes[row.outcome] += 1
        self.counts.update(row.counts)
        self.cost += row.cost or 0.0
        self.has_unknown_cost = self.has_unknown_cost or row.cost is None
        if row.outcome != "kept":
            reason = row.reason if row.outcome == "dropped" else f"{row.reason} (tried again by the same command)"
            self._end(row.step, row.group, reason)
            if row.outcome == "failed":
                self.failed[row.step] += 1
                self.failures.setdefault(row.step, f"seed {row.number}: {row.detail or row.reason}")
        elif row.draft is not None:
            self.turns += len(row.draft.turns)
            self.images += len(row.draft.images)

    def _end(self, step: str, group: str, reason: str) -> None:
        self.ended.setdefault(step, {}).setdefault(group, Counter())[reason] += 1


def _read_calls(out: Path, manifest: BuildManifest) -> list[CallTotals]:
    home = home_of(out, manifest)
    if not journal_file(home).exists():
        return []
    with read_only_journal(home) as journal:
        return journal.totals(manifest.run)
