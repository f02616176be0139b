"""What `run`, `score`, `judge` and `suite` share: from options to a finished run on the terminal."""

import contextlib
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from msgspec import Struct
from rich.console import Console

from weft.calls.budget import Budget
from weft.cli.estimates import format_estimates, print_session_estimate
from weft.cli.outcome import (
    INTERRUPTED,
    RESUME,
    SessionOutcome,
    exit_code,
    exit_code_for,
    exit_if_interrupted,
    format_home,
    print_conclusion,
)
from weft.cli.progress import show_progress
from weft.cli.screen import Screen
from weft.cli.terminal import complain
from weft.errors import UserError
from weft.evaluation.config import RunConfig
from weft.evaluation.event_loop import run_in_loop
from weft.evaluation.session import Interrupted, Session, open_run
from weft.evaluation.sources import RunSource, find_usual_judge
from weft.models.registry import COMPOSITION_PATTERN
from weft.results.index import describe_state, store_gist
from weft.results.run import Run

MAX_NOTES = 20  # of one kind, that are printed
UNSERVABLE = ("folder/", "served/")


def execute_run(
    fields: dict[str, Any], *, dry_run: bool, replicas: int | None = None, serving: Mapping[str, Any] | None = None
) -> None:
    """Run an evaluation and end the program. `fields` are those of a `RunConfig`.

    `replicas`: serve the model by that many replicas during the run; `serving` has the options about them."""
    if fields.get("judge") is None and fields.get("data") is not None:
        fields["judge"] = find_usual_judge(fields["benchmark"], fields.get("options", {}))
    for name in ("data", "model", "judge"):
        if fields.get(name) is None:
            hint = "`weft run --help` has examples"
            if name != "data":
                hint += ", `weft models` the names"
            raise UserError(f"give --{name}; {hint}")
    serving = serving or {}
    if replicas is None and any(value is not None for value in serving.values()):
        raise UserError("--gpus-each and --address need --replicas N")
    with contextlib.ExitStack() as closing:
        if replicas is not None and not dry_run:
            fields |= _serve_model(closing, replicas, serving, fields)
        finish_session(open_run(RunConfig(**fields), dry=dry_run, tell=complain), dry_run=dry_run)


def _serve_model(
    closing: contextlib.ExitStack, replicas: int, serving: Mapping[str, Any], fields: Mapping[str, Any]
) -> dict[str, Any]:
    """Serve the model until `closing` is closed; return the fields `model` and `model_options` that address it."""
    from weft.serving.child_process import serve_in_child

    model = str(fields["model"])
    is_composed = COMPOSITION_PATTERN.fullmatch(model) is not None
    if fields.get("preset") or is_composed or model == "reference" or model.startswith(UNSERVABLE):
        raise UserError(
            f"{model}: --replicas serves one local model (hf/, diffusers/ or file.py:NAME), without a preset"
        )
    if not Path(str(fields["data"])).exists():
        raise UserError(f"{fields['data']}: there is no such folder or file")
    home = str(fields.get("home", ""))
    served = serve_in_child(model, fields["model_options"], replicas, home=home, more=serving)
    name, options = closing.enter_context(served)
    return {"model": name, "model_options": options}


def finish_session(opened: AbstractAsyncContextManager[Session], *, dry_run: bool) -> None:
    """Run a session, or print what it would call, and end the program."""
    if dry_run:
        code = run_in_loop(print_session_estimate(opened))
    else:
        code = run_in_loop(_run_session(opened))
    sys.exit(code)


async def _run_session(opened: AbstractAsyncContextManager[Session]) -> int:
    """Run a session, print its progress and its conclusion, and return the exit code."""
    console = Screen(stderr=True, soft_wrap=True)
    try:
        async with opened as session:
            _print_notes(console, session)
            if session.config.budget is not None:
                for line in format_estimates(session, await session.dry_run()):
                    console.print(line)
            with show_progress(session, console):
                await session.run()
    except Interrupted as error:
        complain(str(error))
        return INTERRUPTED
    outcome = SessionOutcome.from_session(session)
    if outcome.removed_as_empty and outcome.reason is not None:
        complain(str(outcome.reason))
        return exit_code_for(outcome.reason)
    del session  # frees its dataset: the run that is read now may be as large
    run = outcome.load_run()
    store_gist(outcome.folder, run)
    print_conclusion(console, outcome, run)
    return exit_code(outcome, run)


def run_quietly(
    opened: AbstractAsyncContextManager[Session], console: Console, tolerated: type[Exception] | tuple[()] = ()
) -> Run:
    """Run a session with its progress on the terminal and nothing else; return the run.

    Ctrl-C ends the program, and so does any reason that ends the run early, except a `tolerated` one."""

    async def work() -> SessionOutcome:
        async with opened as session:
            with show_progress(session, console):
                await session.run()
        return SessionOutcome.from_session(session)

    outcome = run_in_loop(work())
    if outcome.removed_as_empty:
        if outcome.reason is not None and not isinstance(outcome.reason, Interrupted):
            raise outcome.reason
        console.print(RESUME)
        sys.exit(INTERRUPTED)
    run = outcome.load_run()
    store_gist(outcome.folder, run)
    exit_if_interrupted(outcome, console)
    if outcome.reason is not None:
        console.print(f"weft: {outcome.reason}")
        if not isinstance(outcome.reason, tolerated):
            sys.exit(exit_code(outcome, run))
    return run


class JobOutcome(Struct, frozen=True):
    """How one of several runs ended."""

    run_id: str
    is_complete: bool  # all of it is scored


def run_in_suite(
    job: RunConfig,
    console: Console,
    on_start: Callable[[Session], None],
    budget: Budget | None = None,
    source: RunSource | None = None,
) -> JobOutcome:
    """Run one of several jobs, from a budget that all of them share.

    Ctrl-C ends the program. An endpoint that cannot be reached does not."""

    async def work() -> SessionOutcome:
        async with open_run(job, source, tell=complain, budget=budget) as session:
            on_start(session)
            _print_notes(console, session)
            with show_progress(session, console):
                await session.run()
        return SessionOutcome.from_session(session)

    outcome = run_in_loop(work())
    if outcome.removed_as_empty and outcome.reason is not None:
        if isinstance(outcome.reason, Interrupted):
            sys.exit(INTERRUPTED)
        console.print(f"weft: {outcome.reason}")
        return JobOutcome(outcome.run_id, is_complete=False)
    run = outcome.load_run()
    store_gist(outcome.folder, run)
    exit_if_interrupted(outcome, console)
    gist = run.gist
    state = describe_state(run.record, gist)
    console.print(f"{run.name}: {gist.headline_text}, {gist.scored}/{gist.expected} verdicts scored, {state}")
    if outcome.reason is not None:
        console.print(f"weft: {outcome.reason}")
    elif gist.failed or gist.scored < gist.expected:
        console.print(f"why: weft show {run.id}{format_home(outcome.home)}")
    return JobOutcome(run.id, outcome.reason is None and gist.scored == gist.expected)


def _print_notes(console: Console, session: Session) -> None:
    """Print what the user should know before the run starts."""
    for problem in session.plan.dataset.problems:
        if problem.severity == "warning" and not problem.record:
            console.print(f"note: {problem}")
    for problem in session.new_problems[:MAX_NOTES]:
        console.print(f"note: {problem}")
    if len(session.new_problems) > MAX_NOTES:
        console.print(f"note: and {len(session.new_problems) - MAX_NOTES} more of this kind")
    for line in session.reuse_notes:
        console.print(f"note: {line}")
    for endpoint in session.endpoints.values():
        if endpoint.missing_setup:
            console.print(f"note: {endpoint.name}: {endpoint.missing_setup}")
    judge = session.callers["judge"]
    if judge.open_tickets and judge.endpoint.batch_service() is not None:
        console.print(
            f"note: {judge.open_tickets} questions to {judge.name} are in open batches: --judge-batch collects them, "
            "without it they are paid for again"
        )
