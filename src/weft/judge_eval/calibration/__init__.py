"""Calibration of judges: a judge is asked each benchmark's own questions about answers whose faults are known, and gets
a calibration card.

    from weft.judge_eval.calibration import check
    card = check("openai/gpt-4.1", benchmarks=["weave"], questions=100)
    card.for_metric("weave", "key_point").agreement.pearson
"""

import time
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from weft.errors import UnusableJudge
from weft.evaluation.event_loop import run_in_loop
from weft.evaluation.session import Session
from weft.judge_eval.calibration.card import card_of
from weft.judge_eval.calibration.exam import PAPERS, SIDES, Exam
from weft.models.config import default_home
from weft.results.cards import CalibrationCard, write_card
from weft.results.run import Run


def check(
    judge: Any,
    *,
    benchmarks: Sequence[str] = tuple(PAPERS),
    questions: int = 200,
    sides: Sequence[int] = SIDES,
    home: str | Path = "",
    **more: Any,
) -> CalibrationCard:
    """Calibrate a judge and return its card, which is also stored in the home. Cached replies are not requested again.

    `more` are further fields of `Exam`: judge_options, prompts, concurrency, seed."""
    exam = Exam(judge, Path(home or default_home()), tuple(benchmarks), questions, tuple(sides), **more)
    sittings = exam.sittings()
    runs: dict[str, Run] = {}
    for sitting in sittings:
        exam.prepare(sitting)
        ids = {name: run.id for name, run in runs.items()}
        runs[sitting.name] = run_in_loop(_run_sitting(exam.opened(sitting, ids)))
    card = card_of(exam, sittings, runs, time.time())
    write_card(exam.home, card)
    return card


async def _run_sitting(opened: AbstractAsyncContextManager[Session]) -> Run:
    """Run a sitting. A judge whose replies are unusable does not stop the exam: its card says so."""
    async with opened as session:
        await session.run()
        reason = session.halt.reason
        if reason is not None and not isinstance(reason, UnusableJudge):
            raise reason
    return Run.from_home(session.journal.path.parent, session.run_id, session.plan.benchmark)
