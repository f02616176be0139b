"""One row through all steps of a recipe."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

from msgspec.structs import replace

from weft.building.context import CallFailed, Context, Tools
from weft.building.draft import Attempt, Draft, EarlierTry, Row
from weft.building.fingerprints import PERCEPTUAL
from weft.building.parts import encode_row
from weft.building.provenance import Origins, find_provenance
from weft.building.recipe import SEED_SPACE, Dropped, Recipe, Step
from weft.calls.sending import EndpointDown, RunHalted
from weft.errors import BudgetReached, ImageError, StoreError, UnusableJudge, UserError, wrap_error

ENDS_BUILD = (EndpointDown, RunHalted, BudgetReached, StoreError, UnusableJudge, UserError)
MAX_DETAIL = 400  # characters


async def make_row(recipe: Recipe, steps: Sequence[Step], number: int, tools: Tools) -> Row:
    """Return the row of a seed: kept, dropped, or failed. What ends the whole build is raised.

    A step that raises, or returns what cannot be written, costs this row alone. A dialogue that is dropped is tried
    again, as often as the build says, each time as another dialogue of the same seed.
    """
    context = Context(tools, number)
    row = Row(number)
    step_name = ""
    earlier: list[Row] = []
    for attempt in range(max(1, tools.tries)):
        if attempt:
            earlier.append(row)
            context.origins = Origins()  # what was said of another dialogue
        row, step_name = await _try_row(recipe, steps, number + attempt * SEED_SPACE, context, tools)
        if row.outcome != "dropped":
            break
    return _complete(row, earlier, context, number, step_name)


async def _try_row(
    recipe: Recipe, steps: Sequence[Step], number: int, context: Context, tools: Tools
) -> tuple[Row, str]:
    """Return the row of one try, and the step that it came to."""
    task = asyncio.current_task()
    row = Row(number)
    step_name = "seed"
    try:
        row = recipe.seed(number)
        for step in steps:
            if step.group and step.group != row.group:
                continue
            step_name = step.name
            result: Any = await step.work(row, context)
            if not isinstance(result, Row):
                raise TypeError(f"it returned {type(result).__name__} where a Row was expected")
            row = result
        if row.draft is None:
            raise Dropped("no dialogue was made")
        row = await _finish(row, row.draft, number % SEED_SPACE, context, tools)
    except Dropped as error:
        so_far = error.row if isinstance(error.row, Row) else row
        row = _end(so_far, "dropped", step_name, error.reason, str(error.detail))
    except ENDS_BUILD:
        raise
    except (CallFailed, ImageError) as error:
        row = _end(row, "failed", step_name, "a call failed", str(error))
    except BaseException as error:  # also SystemExit, unless it is weft that cancels
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            raise
        row = _end(row, "failed", step_name, "the step raised an error", str(wrap_error(step_name, error)))
    return row, step_name


async def _finish(row: Row, draft: Draft, seed: int, context: Context, tools: Tools) -> Row:
    """Return the row as one that is kept, with where all of it comes from and what its images look like."""
    prints: list[str] = []
    if not tools.dry:
        prints = [await context.feature(PERCEPTUAL, image) for image in draft.images]
    return replace(
        row,
        outcome="kept",
        draft=_hold_out(draft, seed, tools.test_share),
        provenance=find_provenance(draft, row.attempts, context.origins),
        prints=tuple(prints),
    )


def _join_tries(row: Row, earlier: Sequence[Row]) -> Row:
    """Return the last try with the attempts and counts of those before; their items are items of their own."""
    if not earlier:
        return row
    attempts: list[Attempt] = []
    counts: Counter[str] = Counter()
    for number, one in enumerate(earlier, start=1):
        attempts += [replace(attempt, item=f"try {number}: {attempt.item}") for attempt in one.attempts]
        counts.update(one.counts)
    counts.update(row.counts)
    return replace(
        row,
        attempts=(*attempts, *row.attempts),
        counts=dict(counts),
        earlier=tuple(EarlierTry(one.step, one.reason) for one in earlier),
    )


def _complete(row: Row, earlier: Sequence[Row], context: Context, number: int, step_name: str) -> Row:
    """Return the row with its earlier tries and their cost; a failed one instead of a row that no file could hold."""
    facts: dict[str, Any] = {"number": number, "calls": context.calls, "cost": context.cost}
    try:
        row = replace(_join_tries(row, earlier), **facts)
        encode_row(row)
    except Exception as error:
        problem = str(wrap_error(step_name, error))
        return replace(_end(Row(number), "failed", step_name, "the row cannot be written", problem), **facts)
    return row


def _hold_out(draft: Draft, number: int, share: float) -> Draft:
    """Return the dialogue as one of the test part, if its seed is one of those that are held out."""
    is_held_out = Random(f"test part {number}").random() < share
    return replace(draft, split="test") if is_held_out else draft


def _end(row: Row, outcome: str, step: str, reason: str, detail: str) -> Row:
    fields = {"outcome": outcome, "step": step, "reason": reason, "detail": detail[:MAX_DETAIL]}
    return replace(row, **fields)
