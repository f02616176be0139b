"""Stored runs before a judge: battles between them, or their answers one by one.

It is a run like any other: journalled, budgeted, and resumed by the same command.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from weft.arena.contestants import Duel, build_answer_dataset, build_battle_dataset, name_contestants
from weft.arena.criteria import Criteria
from weft.arena.protocol import Arena
from weft.errors import UserError
from weft.evaluation.config import RunConfig
from weft.evaluation.sources import RunInputs
from weft.results.run import Run, load_run
from weft.types import Dialogue, LoadedDataset, Reply, Sample, Turn
from weft.workspace import Workspace, read_only_journal


class BattleReplies:
    """Replies with the contestants' stored answers. No model is called."""

    reads_unasked_turns = False

    async def reply_to(self, sample: Sample, turn: Turn, dialogue: Dialogue) -> tuple[str, Reply]:
        duel: Duel = turn.gold
        return "[]", Reply("answered", duel.first.parts)


class StoredAnswers(Struct, frozen=True):
    """A source of samples: stored runs.

    The configuration's `options` are those of `Arena`, or of `Criteria`; its `benchmark` locates the runs' code, if
    that is no longer where it was.
    """

    runs: tuple[str, ...]  # ids
    single: bool = False  # whether answers are scored one by one, not in battles

    def open(self, config: RunConfig, workspace: Workspace) -> RunInputs:
        """Load the runs. Raises UserError if there are too few of them, or if they cannot be compared."""
        if self.single and not self.runs:
            raise UserError("give a run: `weft runs` lists them")
        if not self.single and len(self.runs) < 2:
            raise UserError("give at least two runs: `weft runs` lists them")
        with read_only_journal(workspace.home) as journal:
            runs = name_contestants([load_run(journal, name, config.benchmark) for name in self.runs])
        benchmark = Arena()
        kind = "battles"
        if self.single:
            benchmark = Criteria()
            kind = "answers"
        options = benchmark.parse_options(config.options)
        parts = {run.id: name for name, run in runs.items()}
        model = {"name": ", ".join(runs), "provider": "arena", "model": kind, "parts": parts}
        return RunInputs(
            benchmark=benchmark,
            options=options,
            load=lambda: self._build_dataset(runs, options),
            replies=lambda plan, parts: BattleReplies(),
            model=lambda dataset: (model, {}),
            locations=(benchmark.name, next(iter(runs.values())).record.data),
        )

    def _build_dataset(self, runs: Mapping[str, Run], options: Any) -> LoadedDataset:
        if self.single:
            return build_answer_dataset(runs)
        return build_battle_dataset(runs, options.battles, options.seed)
