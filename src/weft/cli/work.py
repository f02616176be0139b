"""What `run`, `score` and `judge` share: from options to a finished run on the screen."""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console

from weft import benchmarks
from weft.calls.caller import EndpointDown
from weft.cli.progress import follow
from weft.cli.screen import Screen
from weft.cli.show import show_table
from weft.cli.terminal import complain, say
from weft.errors import UserError, WeftError
from weft.evaluation.config import RunConfig
from weft.evaluation.dry_run import RoleEstimate
from weft.evaluation.session import Interrupted, Session, open_run, run_in_loop
from weft.models.batching import is_batch_running
from weft.models.endpoint import TaskEndpoint
from weft.models.function import FunctionEndpoint
from weft.models.registry import COMPOSITION_PATTERN
from weft.results.index import describe_shards, describe_state, store_gist
from weft.results.run import Run


def work(
    options: dict[str, Any], *, dry_run: bool, replicas: int | None = None, serving: Mapping[str, Any] | None = None
) -> None:
    """`options` are the fields of a `RunConfig`. `replicas`: the model is served by so many while this lasts, with what
    else is said of that in `serving`."""
    for name in ("data", "model", "judge"):
        if options.get(name) is None:
            raise UserError(
                f"give --{name}; `weft run --help` has examples"
                + ("" if name == "data" else ", `weft models` the names")
            )
    if replicas is None and any(value is not None for value in (serving or {}).values()):
        raise UserError("--gpus-each and --address are of --replicas: say how many")
    with contextlib.ExitStack() as closing:
        if replicas is not None and not dry_run:
            options |= _served(closing, replicas, serving or {}, options)
        finish(open_run(RunConfig(**options), dry=dry_run, tell=complain), dry_run=dry_run)


def _served(
    closing: contextlib.ExitStack, replicas: int, more: Mapping[str, Any], options: Mapping[str, Any]
) -> dict[str, Any]:
    """The model and its options, once it is served."""
    from weft.serving.child_process import serve_in_child

    model = str(options["model"])
    if (
        options.get("preset")
        or COMPOSITION_PATTERN.fullmatch(model)
        or model == "reference"
        or model.startswith(("folder/", "served/"))
    ):
        raise UserError(f"{model}: --replicas serves one local model (hf/, diffusers/ or file.py:NAME), with no preset")
    if not Path(str(options["data"])).exists():
        raise UserError(f"{options['data']}: there is no such folder or file")
    name, given = closing.enter_context(
        serve_in_child(model, options["model_options"], replicas, home=str(options.get("home", "")), more=more)
    )
    return {"model": name, "model_options": given}


def finish(opened: AbstractAsyncContextManager[Session], *, dry_run: bool) -> None:
    """Do what a session is for, or say what it would do; ends the program."""
    code = run_in_loop(_foresee(opened) if dry_run else _run(opened))
    if is_batch_running():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


async def _run(opened: AbstractAsyncContextManager[Session]) -> int:
    console = Screen(stderr=True, soft_wrap=True)
    try:
        async with opened as session:
            _introduce(console, session)
            if session.config.budget is not None:
                for line in _foreseen(session, await session.dry_run()):
                    console.print(line)
            with follow(session, console):
                await session.run()
    except Interrupted as error:
        complain(str(error))
        return 130
    left = Left.by(session)
    if session.left_nothing and left.reason is not None:
        complain(str(left.reason))
        mistaken = isinstance(left.reason, UserError) or (
            isinstance(left.reason, EndpointDown) and left.reason.user_fault
        )
        if isinstance(left.reason, Interrupted):
            return 130
        if mistaken:
            return 2
        return 1
    del session  # with its dataset: what is read now may be as large
    run = left.stored()
    store_gist(left.place, run)
    _conclude(console, left, run)
    return _exit_code(left, run)


class Left(msgspec.Struct, frozen=True):
    """What is left of a session that is over."""

    home: str | Path  # as it was given
    place: Path  # where it is
    run: str
    benchmark: Any
    reason: WeftError | None
    out: tuple[str, ...]  # what is said of records that are left out, and of warnings
    verdicts: int = 0  # that were due when it ended, and are not there
    standing: str = ""  # of what was handed in and is not back
    notes: tuple[str, ...] = ()  # where other endpoints stood
    did: str = ""  # what this command itself asked for
    shard: str = ""

    @classmethod
    def by(cls, session: Session) -> "Left":
        run = session.run_id
        reason = session.halt.reason
        progress = session.progress
        missing = progress.verdicts_expected - progress.verdicts_done
        where = session.journal.path.parent
        standing = {False: list[str](), True: list[str]()}
        for one in session.endpoints.values():
            if one.status_line:
                standing[isinstance(one, TaskEndpoint)].append(
                    one.status_line if isinstance(one, TaskEndpoint) else f"{one.name}: {one.status_line}"
                )
        told = (", ".join(standing[True]), tuple(standing[False]))
        tallies = {
            role: caller.tally for role, caller in session.callers.items() if caller.tally.calls or caller.tally.cached
        }
        each = [f"{role} {tally.calls} asked, {tally.cached} from the journal" for role, tally in tallies.items()]
        if each:
            did = f"this command: {'; '.join(each)}; ${sum(tally.cost for tally in tallies.values()):.4f}"
        else:
            did = ""
        return cls(
            session.config.home,
            where,
            run,
            session.plan.benchmark,
            reason,
            tuple(_left_out(session)),
            missing,
            *told,
            did,
            str(session.plan.shard or ""),
        )

    def stored(self) -> Run:
        return Run.from_home(self.place, self.run, self.benchmark)


def quietly(
    opened: AbstractAsyncContextManager[Session], console: Console, bears: type[Exception] | tuple[()] = ()
) -> Run:
    """A run with its progress on the screen and nothing else. Ctrl-C ends the program, and so does whatever else ends
    the run, but for what this `bears`."""

    async def go() -> tuple[Left, bool]:
        async with opened as session:
            with follow(session, console):
                await session.run()
        return Left.by(session), session.left_nothing

    left, nothing = run_in_loop(go())
    if nothing and left.reason is not None and not isinstance(left.reason, Interrupted):
        raise left.reason
    if nothing:
        run = None
    else:
        run = left.stored()
    if run is not None:
        store_gist(left.place, run)
    if isinstance(left.reason, Interrupted) or run is None:
        console.print("stopped. Nothing is lost: run the same command again to go on.")
        sys.exit(130)
    if left.reason is not None:
        console.print(f"weft: {left.reason}")
        if not isinstance(left.reason, bears):
            sys.exit(_exit_code(left, run))
    return run


def one_of_several(job: RunConfig, console: Console, mark: Callable[[Session], None]) -> tuple[bool, float]:
    """A run among others: whether all of it is done and scored, and what it cost. Ctrl-C ends the program; an endpoint
    that is gone does not."""

    async def go() -> tuple[Left, float, bool]:
        async with open_run(job, tell=complain) as session:
            mark(session)
            _introduce(console, session)
            with follow(session, console):
                await session.run()
        return Left.by(session), session.budget.spent, session.left_nothing

    left, spent, nothing = run_in_loop(go())
    if nothing and left.reason is not None:
        if isinstance(left.reason, Interrupted):
            sys.exit(130)
        raise left.reason
    run = left.stored()
    store_gist(left.place, run)
    if isinstance(left.reason, Interrupted):
        console.print("stopped. Nothing is lost: run the same command again to go on.")
        sys.exit(130)
    gist = run.gist
    console.print(
        f"{run.name}: {gist.headline_text}, {gist.scored} of {gist.expected} verdicts scored, {describe_state(run.record, gist)}"
    )
    if left.reason is not None:
        console.print(f"weft: {left.reason}")
    return left.reason is None and gist.scored == gist.expected, spent


def foreseen(job: RunConfig) -> None:
    """What a run among others would cost."""
    run_in_loop(_foresee(open_run(job, dry=True, tell=complain)))


def _introduce(console: Console, session: Session) -> None:
    standing = [
        problem for problem in session.plan.dataset.problems if problem.severity == "warning" and not problem.record
    ]
    for problem in (*standing, *session.new_problems[:20]):
        console.print(f"note: {problem}")
    if len(session.new_problems) > 20:
        console.print(f"note: and {len(session.new_problems) - 20} more of this kind")
    for line in session.reuse_notes:
        console.print(f"note: {line}")
    for endpoint in session.endpoints.values():
        if endpoint.missing_setup:
            console.print(f"note: {endpoint.name}: {endpoint.missing_setup}")
    judge = session.callers["judge"]
    if judge.open_tickets and judge.endpoint.batch_service() is not None:
        told = f"{judge.open_tickets} questions to {judge.name} are out in batches: --judge-batch collects them, without it they are paid for again"
        console.print(f"note: {told}")
    for model in session.endpoints.values():
        if isinstance(model, FunctionEndpoint) and model.version_is_derived:
            if model.undigested_names:
                unseen = f" What {', '.join(model.undigested_names)} is made of is not seen."
            else:
                unseen = ""
            if not model.undigested_names:
                until = "its file changes"
            else:
                until = "its source changes"
            console.print(
                f"{model.name} has no `version`: its answers are kept until {until}.{unseen} Set one, and change it with the weights."
            )


def _left_out(session: Session) -> Iterator[str]:
    """What was found while the dataset was read: turns that the model cannot answer, warnings, records that are left
    out."""
    dataset = session.plan.dataset
    why = session.unsupported_reasons()
    for kind, count in session.unsupported_turns.items():
        yield f"{count} of {session.progress.turns} turns want {kind}, and {why[kind]}: those are not asked, and count as no answer"
    problems = [problem for problem in dataset.problems if problem not in session.new_problems]
    warned = sum(problem.severity == "warning" and bool(problem.record) for problem in problems)
    if warned:
        yield f"{warned} warning{'s' * (warned != 1)} about records; `weft data check` lists them"
    errors = [problem for problem in problems if problem.severity == "error"]
    yield from (f"left out: {problem}" for problem in errors[:20])
    if errors:
        out = len({problem.record for problem in errors if problem.record})
        whole = sum(not problem.record for problem in errors)
        if whole:
            files = f"{whole} file{'s' * (whole != 1)} could not be read at all, and "
        else:
            files = ""
        yield f"{files}{out} of {dataset.records} records are left out; `weft data check` lists every problem"


def _conclude(console: Console, left: Left, run: Run) -> None:
    for line in left.out:
        console.print(line)
    if run.verdicts:
        table = run.table()
        show_table(Screen(), msgspec.structs.replace(table, rows=table.run_rows))
    summary = run.summary()
    for line in summary.lines[3 + bool(summary.unfinished) :]:
        if not line.startswith("left out of the dataset: "):
            console.print(line)
    if told := describe_shards(run.record):
        console.print(
            f"shard {left.shard} is done: {told}; `weft journal merge` puts them together" if left.shard else told
        )
    if left.did:
        console.print(left.did)
    for line in left.notes:
        console.print(line)
    if left.standing:
        console.print(f"handed in, and still out: {left.standing}; the same command collects it")
    if isinstance(left.reason, Interrupted):
        console.print("stopped. Nothing is lost: run the same command again to go on.")
    elif left.reason is not None:
        console.print(f"weft: {left.reason}")
        expected = summary.expected
        owed = left.verdicts + summary.verdicts - summary.scored
        if expected:
            turns = f"{expected.turns - summary.turns} of {expected.turns} turns"
        else:
            turns = "turns that were not read yet"
        console.print(f"left to do: {turns}, {owed} verdicts about those that are done.")
        console.print("What is done is kept: run the same command again to go on.")
    if benchmarks.is_known(run.record.benchmark):
        own = ""
    else:
        own = f" --benchmark {run.record.benchmark}"
    if run.replies.outcomes["failed"] or any(verdict.value is None for verdict in run.verdicts):
        console.print(f"what went wrong, turn by turn: weft show {run.id}{own}{_home(left.home)}")
    console.print(f"report: weft report {run.id}{own}{_home(left.home)}")


def _exit_code(left: Left, run: Run) -> int:
    """0: all scored. 1: ended early, or something is unscored. 2: a mistake of the user's. 130: interrupted."""
    reason = left.reason
    if isinstance(reason, Interrupted):
        return 130
    if isinstance(reason, UserError) or (isinstance(reason, EndpointDown) and reason.user_fault):
        return 2
    if reason is not None or any(verdict.value is None for verdict in run.verdicts):
        return 1
    return 0


def _foreseen(session: Session, shares: Mapping[str, RoleEstimate]) -> list[str]:
    """What calls would cost, by role and together."""
    made: list[str] = []
    for role, share in shares.items():
        if not session.endpoints[role].cacheable:
            made.append(f"{role}: {session.endpoints[role].name} answers here, {share.calls} times, at no cost")
            continue
        if share.cost is None:
            cost = "price unknown"
        else:
            cost = f"about ${share.cost:.2f}"
        rate = session.endpoints[role].usual_price_share
        cost += f" in batches (${share.cost / rate:.2f} live)" if rate != 1.0 and share.cost is not None else ""
        if share.images:
            pictures = f", {share.images} pictures"
        else:
            pictures = ""
        made.append(
            f"{role}: {share.calls} calls to make ({share.cached} answered already), "
            f"about {share.tokens_in:,} tokens in and {share.tokens_out:,} out{pictures}, {cost}"
        )
    costs = [share.cost for share in shares.values()]
    if None not in costs:
        made.append(f"together: about ${sum(cost for cost in costs if cost is not None):.2f}")
    return made


async def _foresee(opened: AbstractAsyncContextManager[Session]) -> int:
    async with opened as session:
        shares = await session.dry_run()
        say(f"run {session.run_id}: {session.dry_run_progress.samples} samples, {session.dry_run_progress.turns} turns")
        for line in _foreseen(session, shares):
            say(line)
        follow_up = session.plan.benchmark.follow_up
        if follow_up is not None:
            say(
                f"a turn that brings nothing of the kind that is due is asked up to {follow_up.max_tries} times: model calls may be more"
            )
        if session.dry_run_note:
            say(session.dry_run_note)
        if session.plan.strategy != "none":
            say(f"calls of {session.plan.strategy} are counted as if every review objected: it may be fewer")
    return 0


def _home(home: str | Path) -> str:
    if str(home) == ".weft":
        return ""
    return f" --home {home}"
