"""A command's worth of judging stored runs: battles between them, or their answers one by one. It is a session like any other: journalled,
budgeted, resumed by the same command."""

import contextlib
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from weft.arena.contestants import Duel, answers_of, battles_of, contestants
from weft.arena.criteria import Criteria
from weft.arena.protocol import Arena
from weft.calls.caller import Patience
from weft.errors import UserError
from weft.evaluation.plan import Plan, told_endpoint
from weft.evaluation.session import Session, can_judge, check_numbers
from weft.models.config import usual_home
from weft.results.run import load_run
from weft.types import Dialogue, Reply, Sample, Turn
from weft.workspace import Limits, Workspace, reading


class ArenaJob(Struct, frozen=True, kw_only=True):
    """Runs by their ids. `single`: their answers are scored one by one. `options` are those of `Arena`, or of `Criteria`."""

    runs: tuple[str, ...]
    judge: Any
    single: bool = False
    options: Mapping[str, Any] = {}
    benchmark: Any = None  # the runs' code, if it is not found where it was
    home: str | Path = field(default_factory=usual_home)
    prompts: str = "weft"
    concurrency: int | None = None
    judge_repeats: int = 1
    judge_batch: bool = False
    budget: float | None = None
    judge_options: Mapping[str, Any] = {}
    patience: Patience = Patience()


class Stored:
    """What the contestants made, as it is in the samples: nobody is asked."""

    free = False

    async def turn(self, sample: Sample, turn: Turn, dialogue: Dialogue) -> tuple[str, Reply]:
        duel: Duel = turn.gold
        return "[]", Reply("answered", duel.first.parts)


@contextlib.asynccontextmanager
async def open_arena(job: ArenaJob) -> AsyncGenerator[Session]:
    check_numbers(job)
    if len(job.runs) < (1 if job.single else 2):
        raise UserError("give at least two runs: `weft runs` lists them" if not job.single else "give a run: `weft runs` lists them")
    workspace = Workspace(job.home)
    with reading(workspace.home) as stored:
        runs = contestants([load_run(stored, name, job.benchmark) for name in job.runs])
    benchmark = Criteria() if job.single else Arena()
    options, rubrics = benchmark.choose(job.options), benchmark.preparation.rubrics(benchmark, job.prompts)
    data = next(iter(runs.values())).record.data
    judge = can_judge(workspace.endpoint(job.judge, job.judge_options, data, usual=rubrics.settings), job.judge_batch)
    dataset = answers_of(runs) if job.single else battles_of(runs, options.battles, options.seed)
    parts = {run.id: name for name, run in runs.items()}
    model = {"name": ", ".join(runs), "provider": "arena", "model": "battles" if not job.single else "answers", "parts": parts}
    limits = Limits(job.budget, job.concurrency, None, job.patience)
    async with workspace.open({"judge": judge}, limits) as roles:
        plan = Plan(
            benchmark, dataset, options, rubrics, model, told_endpoint(judge), "none", job.judge_repeats, {"limit": None, "where": {}}
        )
        yield Session(job, plan, roles, lambda _: Stored(), (benchmark.name, data))
