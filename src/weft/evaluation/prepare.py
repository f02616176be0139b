"""The dataset as a run asks about it: some benchmarks ask auxiliary models before the run begins, to say tasks in other words."""

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Mapping

import msgspec
from msgspec import Struct

from weft.benchmarks.base import Benchmark
from weft.benchmarks.preparation import Preparation
from weft.calls.caller import Caller
from weft.calls.interrupts import Interrupted, first_of, interruptible
from weft.calls.roles import ModelsByRole
from weft.errors import WeftError, blamed
from weft.evaluation.dry_run import Counting
from weft.evaluation.selection import check_ids
from weft.types import Dataset, Problem

Tell = Callable[[str], None]


class Prepared(Struct, frozen=True):
    """`noted`: problems found after the data were read. `counted`: what auxiliary models would be asked, in a dry run. `booked`: the name
    under which their calls are journalled; a run that begins takes them over."""

    dataset: Dataset
    noted: tuple[Problem, ...] = ()
    counted: Mapping[str, Counting] = {}
    booked: str = ""


async def prepare(
    roles: ModelsByRole,
    benchmark: Benchmark,
    dataset: Dataset,
    options: object,
    auxiliary: Iterable[str],
    *,
    dry: bool = False,
    tell: Tell | None = None,
) -> Prepared:
    """`auxiliary` are roles. The run has no id until their models have answered, so that their calls are booked under a name which the same
    command has again after a crash. In a dry run calls are counted."""
    if type(benchmark.preparation).prepare is Preparation.prepare:
        return Prepared(dataset)
    whole = await interruptible(asyncio.ensure_future(asyncio.to_thread(dataset.read)), roles.halt, "while the dataset was being read")
    callers = {role: roles.callers[role] for role in auxiliary}
    counted = {role: Counting(caller, {}, roles.blobs) for role, caller in callers.items()} if dry else {}
    booked = _name(benchmark, whole, options, callers.values()) if callers and not dry else ""
    for role, caller in callers.items() if not dry else ():
        caller.belongs_to(booked)
        if tell is not None:
            tell(f"{caller.name} is asked first ({role}); what it answered before is not asked again")
    working = asyncio.ensure_future(benchmark.preparation.prepare(whole, options, counted or callers))
    try:
        prepared = await interruptible(working, roles.halt, "before the run began")
        check_ids(prepared.samples, f"benchmark {benchmark.name}")
        return Prepared(prepared, prepared.problems[len(whole.problems) :], counted, booked)
    except (WeftError, OSError):
        raise
    except BaseExceptionGroup as group:
        reason = roles.halt.reason if isinstance(roles.halt.reason, Interrupted) else first_of(group)
        if isinstance(reason, WeftError) or not isinstance(reason, Exception):
            raise reason from group
        raise blamed(f"benchmark {benchmark.name}: completing its data", reason) from group
    except Exception as error:
        raise blamed(f"benchmark {benchmark.name}: completing its data", error) from error


def _name(benchmark: Benchmark, dataset: Dataset, options: object, callers: Iterable[Caller]) -> str:
    told = [benchmark.name, dataset.digest, options, [caller.endpoint.identity for caller in callers]]
    return f"preparing {hashlib.sha256(msgspec.json.encode(told, order='deterministic', enc_hook=str)).hexdigest()[:16]}"
