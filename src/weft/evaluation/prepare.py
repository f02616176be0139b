"""Prepares a dataset for a run: some benchmarks call auxiliary models before the run begins, to reword tasks."""

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
    """The dataset that a run asks about."""

    dataset: Dataset
    new_problems: tuple[Problem, ...] = ()  # found during preparation
    counting_models: Mapping[str, CountingModel] = {}  # what auxiliary models would be asked, in a dry run
    booking_name: str = ""  # the name under which their calls are journalled, until the run adopts them


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
    """Let a benchmark prepare its dataset with auxiliary models, given by role.

    The run has no id yet: it depends on the result. So the calls are journalled under a name that the same command
    has again after a crash. In a dry run calls are counted, not made.
    """
    if type(benchmark.preparation).prepare is Preparation.prepare:
        return PreparedDataset(dataset)
    reading = asyncio.ensure_future(asyncio.to_thread(dataset.load_all))
    loaded = await await_interruptible(reading, roles.halt, "while the dataset was being read")
    callers = {role: roles.callers[role] for role in auxiliary}
    counting_models: dict[str, CountingModel] = {}
    booking_name = ""
    if dry:
        counting_models = {role: CountingModel(caller, {}, roles.blobs) for role, caller in callers.items()}
    elif callers:
        booking_name = _build_booking_name(benchmark, loaded, options, callers.values())
        for role, caller in callers.items():
            caller.book_under(booking_name)
            if tell is not None:
                tell(f"{caller.name} is asked first ({role}); cached answers are not asked for again")
    source = f"benchmark {benchmark.name}: completing its data"
    work = asyncio.ensure_future(benchmark.preparation.prepare(loaded, options, counting_models or callers))
    try:
        prepared = await await_interruptible(work, roles.halt, "before the run began")
        check_ids(prepared.samples, f"benchmark {benchmark.name}")
    except (WeftError, OSError):
        raise
    except BaseExceptionGroup as group:
        reason = roles.halt.reason
        if not isinstance(reason, Interrupted):
            reason = find_root_error(group)
        if isinstance(reason, WeftError) or not isinstance(reason, Exception):
            raise reason from group
        raise wrap_error(source, reason) from group
    except Exception as error:
        raise wrap_error(source, error) from error
    new_problems = prepared.problems[len(loaded.problems) :]
    return PreparedDataset(prepared, new_problems, counting_models, booking_name)


def _build_booking_name(benchmark: Benchmark, dataset: Dataset, options: object, callers: Iterable[Caller]) -> str:
    identities = [caller.endpoint.identity for caller in callers]
    content = [benchmark.name, dataset.digest, options, identities]
    digest = hashlib.sha256(msgspec.json.encode(content, order="deterministic", enc_hook=str)).hexdigest()
    return f"preparing {digest[:16]}"
