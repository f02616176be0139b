"""The dataset as a run asks about it: some benchmarks ask auxiliary models before the run begins, to say tasks in other words."""

import asyncio
from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct

from weft.benchmarks.base import Benchmark
from weft.calls.interrupts import Interrupted, first_of, interruptible
from weft.calls.roles import ModelsByRole
from weft.errors import WeftError, blamed
from weft.evaluation.dry_run import Counting
from weft.evaluation.plan import check_ids
from weft.types import Dataset, Problem

Tell = Callable[[str], None]


class Prepared(Struct, frozen=True):
    """`noted`: problems found after the data were read. `counted`: what auxiliary models would be asked, in a dry run."""

    dataset: Dataset
    noted: tuple[Problem, ...] = ()
    counted: Mapping[str, Counting] = {}


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
    """`auxiliary` are roles. What their models answer belongs to no run until it has a name; in a dry run their calls are counted."""
    callers = {role: roles.callers[role] for role in auxiliary}
    counted = {role: Counting(caller, {}, roles.blobs) for role, caller in callers.items()} if dry else {}
    for role, caller in callers.items() if not dry else ():
        caller.early()
        if tell is not None:
            tell(f"{caller.name} is asked first ({role}); what it answered before is not asked again")
    working = asyncio.ensure_future(benchmark.preparation.prepare(dataset, options, counted or callers))
    try:
        prepared = await interruptible(working, roles.halt, "before the run began")
        check_ids(prepared.samples, f"benchmark {benchmark.name}")
        return Prepared(prepared, prepared.problems[len(dataset.problems) :], counted)
    except (WeftError, OSError):
        raise
    except BaseExceptionGroup as group:
        reason = roles.halt.reason if isinstance(roles.halt.reason, Interrupted) else first_of(group)
        if isinstance(reason, WeftError) or not isinstance(reason, Exception):
            raise reason from group
        raise blamed(f"benchmark {benchmark.name}: completing its data", reason) from group
    except Exception as error:
        raise blamed(f"benchmark {benchmark.name}: completing its data", error) from error
