"""Stored runs before a judge: battles between them, or their answers one by one. It is a run like any other:
journalled, budgeted, resumed by the same command."""

from msgspec import Struct

from weft.arena.contestants import Duel, build_answer_dataset, build_battle_dataset, name_contestants
from weft.arena.criteria import Criteria
from weft.arena.protocol import Arena
from weft.errors import UserError
from weft.evaluation.config import RunConfig
from weft.evaluation.sources import RunInputs
from weft.results.run import load_run
from weft.types import Dialogue, Reply, Sample, Turn
from weft.workspace import Workspace, read_only_journal


class BattleReplies:
    """What the contestants made, as it is in the samples: nobody is asked."""

    free = False

    async def reply_to(self, sample: Sample, turn: Turn, dialogue: Dialogue) -> tuple[str, Reply]:
        duel: Duel = turn.gold
        return "[]", Reply("answered", duel.first.parts)


class StoredAnswers(Struct, frozen=True):
    """Runs by their ids. `single`: their answers are scored one by one. The configuration's `options` are those of
    `Arena`, or of `Criteria`; its `benchmark` is the runs' code, if that is not found where it was."""

    runs: tuple[str, ...]
    single: bool = False

    def open(self, config: RunConfig, workspace: Workspace) -> RunInputs:
        if len(self.runs) < (1 if self.single else 2):
            raise UserError(
                "give at least two runs: `weft runs` lists them"
                if not self.single
                else "give a run: `weft runs` lists them"
            )
        with read_only_journal(workspace.home) as stored:
            runs = name_contestants([load_run(stored, name, config.benchmark) for name in self.runs])
        if self.single:
            benchmark = Criteria()
        else:
            benchmark = Arena()
        options = benchmark.parse_options(config.options)
        parts = {run.id: name for name, run in runs.items()}
        model = {
            "name": ", ".join(runs),
            "provider": "arena",
            "model": "battles" if not self.single else "answers",
            "parts": parts,
        }
        return RunInputs(
            benchmark=benchmark,
            options=options,
            load=lambda: (
                build_answer_dataset(runs) if self.single else build_battle_dataset(runs, options.battles, options.seed)
            ),
            replies=lambda plan, parts: BattleReplies(),
            model=lambda dataset: (model, {}),
            locations=(benchmark.name, next(iter(runs.values())).record.data),
        )
