"""Stored runs before a judge: battles between them, or their answers one by one. It is a run like any other: journalled, budgeted, resumed
by the same command."""

from msgspec import Struct

from weft.arena.contestants import Duel, answers_of, battles_of, contestants
from weft.arena.criteria import Criteria
from weft.arena.protocol import Arena
from weft.errors import UserError
from weft.evaluation.config import RunConfig
from weft.evaluation.sources import Material
from weft.results.run import load_run
from weft.types import Dialogue, Reply, Sample, Turn
from weft.workspace import Workspace, reading


class Stored:
    """What the contestants made, as it is in the samples: nobody is asked."""

    free = False

    async def turn(self, sample: Sample, turn: Turn, dialogue: Dialogue) -> tuple[str, Reply]:
        duel: Duel = turn.gold
        return "[]", Reply("answered", duel.first.parts)


class StoredAnswers(Struct, frozen=True):
    """Runs by their ids. `single`: their answers are scored one by one. The configuration's `options` are those of `Arena`, or of
    `Criteria`; its `benchmark` is the runs' code, if that is not found where it was."""

    runs: tuple[str, ...]
    single: bool = False

    def open(self, config: RunConfig, workspace: Workspace) -> Material:
        if len(self.runs) < (1 if self.single else 2):
            raise UserError("give at least two runs: `weft runs` lists them" if not self.single else "give a run: `weft runs` lists them")
        with reading(workspace.home) as stored:
            runs = contestants([load_run(stored, name, config.benchmark) for name in self.runs])
        benchmark = Criteria() if self.single else Arena()
        options = benchmark.choose(config.options)
        parts = {run.id: name for name, run in runs.items()}
        model = {"name": ", ".join(runs), "provider": "arena", "model": "battles" if not self.single else "answers", "parts": parts}
        return Material(
            benchmark=benchmark,
            options=options,
            load=lambda: answers_of(runs) if self.single else battles_of(runs, options.battles, options.seed),
            replies=lambda plan, parts: Stored(),
            model=lambda dataset: (model, {}),
            place=(benchmark.name, next(iter(runs.values())).record.data),
        )
