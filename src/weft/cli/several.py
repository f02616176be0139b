"""Several runs by one command, one after another, from one budget: what `suite`, `sweep` and `judge` share."""

from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from weft.calls.budget import Budget
from weft.cli.estimates import print_estimate
from weft.cli.execute import run_in_suite
from weft.cli.screen import Screen
from weft.errors import WeftError
from weft.evaluation.config import RunConfig
from weft.evaluation.session import Session
from weft.evaluation.sources import RunSource


class Job(Struct, frozen=True):
    """One of several runs."""

    label: str
    config: RunConfig
    on_start: Callable[[Session], None]
    source: RunSource | None = None  # a stored run whose replies are judged; a live model without it


def run_jobs(jobs: Sequence[Job], budget: float | None, *, dry_run: bool) -> tuple[bool, list[str]]:
    """Run the jobs; return whether everything is scored, and the ids of the runs.

    A job that fails is reported and does not stop the others; what it spent is spent. Ctrl-C ends the program."""
    console = Screen(stderr=True, soft_wrap=True)
    is_complete = True
    ids: list[str] = []
    shared_budget = Budget(budget)
    for number, job in enumerate(jobs, start=1):
        console.print(f"{number} of {len(jobs)}: {job.label}")
        config = replace(job.config, budget=budget)
        try:
            if dry_run:
                print_estimate(config, job.source)
                continue
            outcome = run_in_suite(config, console, job.on_start, shared_budget, job.source)
        except WeftError as error:  # the next model may be reachable
            console.print(f"weft: {error}")
            is_complete = False
            continue
        is_complete = is_complete and outcome.is_complete
        ids.append(outcome.run_id)
    return is_complete, ids
