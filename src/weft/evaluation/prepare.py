"""The dataset as a run asks about it: some benchmarks ask auxiliary models before the run begins, to say tasks in other
words."""

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Mapping

import msgspec
from msgspec import Struct

from weft.benchmarks.base import Benchmark
from weft.benchmarks.preparation import Preparation
from weft.calls.caller import Caller
from weft.calls.interrupts import Interrupted, await_interruptible, find_root_error
from weft.calls.roles import ModelsByRole
from weft.errors import WeftError, wrap_error
from weft.evaluation.dry_run import CountingModel
from weft.evaluation.selection import check_ids
from weft.types import Dataset, Problem

Tell = Callable[[str], None]


class PreparedDataset(Struct, frozen=True):
    """`noted`: problems found after the data were read. `counted`: what auxiliary models would be asked, in a dry run.
    `booked`: the name under which their calls are journalled; a run that begins takes them over."""

    dataset: Dataset
    new_problems: tuple[Problem, ...] = ()
    counting_models: Mapping[str, CountingModel] = {}
    booking_name: str = ""


async def prepare(
    roles: ModelsByRole,
    benchmark: Benchmark,
    dataset: Dataset,
    options: object,
    auxiliary: Iterable[str],
    *,
    dry: bool = False,
    tell: Tell | None = None,
) -> PreparedDataset:
    """`auxiliary` are roles. The run has no id until their models have answered, so that their calls are booked under a
    name which the same command has again after a crash. In a dry run calls are counted."""
    if type(benchmark.preparation).prepare is Preparation.prepare:
        return PreparedDataset(dataset)
    whole = await await_interruptible(
        asyncio.ensure_future(asyncio.to_thread(dataset.load_all)), roles.halt, "while the dataset was being read"
    )
    callers = {role: roles.callers[role] for role in auxiliary}
    counted = {role: CountingModel(caller, {}, roles.blobs) for role, caller in callers.items()} if dry else {}
    if callers and not dry:
        booked = _name(benchmark, whole, options, callers.values())
    else:
        booked = ""
    for role, caller in callers.items() if not dry else ():
        caller.book_under(booked)
        if tell is not None:
            tell(f"{caller.name} is asked first ({role}); what it answered before is not asked again")
    working = asyncio.ensure_future(benchmark.preparation.prepare(whole, options, counted or callers))
    try:
        prepared = await await_interruptible(working, roles.halt, "before the run began")
        check_ids(prepared.samples, f"benchmark {benchmark.name}")
        return PreparedDataset(prepared, prepared.problems[len(whole.problems) :], counted, booked)
    except (WeftError, OSError):
        raise
    except BaseExceptionGroup as group:
        if isinstance(roles.halt.reason, Interrupted):
            reason = roles.halt.reason
        else:
            reason = find_root_error(group)
        if isinstance(reason, WeftError) or not isinstance(reason, Exception):
            raise reason from group
        raise wrap_error(f"benchmark {benchmark.name}: completing its data", reason) from group
    except Exception as error:
        raise wrap_error(f"benchmark {benchmark.name}: completing its data", error) from error


def _name(benchmark: Benchmark, dataset: Dataset, options: object, callers: Iterable[Caller]) -> str:
    told = [benchmark.name, dataset.digest, options, [caller.endpoint.identity for caller in callers]]
    return (
        f"preparing {hashlib.sha256(msgspec.json.encode(told, order='deterministic', enc_hook=str)).hexdigest()[:16]}"
    )
