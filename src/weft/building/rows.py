"""One row through all steps of a recipe."""

from collections.abc import Sequence
from random import Random
from typing import Any

from msgspec.structs import replace

from weft.building.context import CallFailed, Context, Tools
from weft.building.draft import Draft, Row
from weft.building.recipe import Dropped, Recipe, Step
from weft.calls.sending import EndpointDown, RunHalted
from weft.errors import BudgetReached, ImageError, StoreError, UnusableJudge, UserError, wrap_error

ENDS_BUILD = (EndpointDown, RunHalted, BudgetReached, StoreError, UnusableJudge, UserError)
MAX_DETAIL = 400  # characters


async def make_row(recipe: Recipe, steps: Sequence[Step], number: int, tools: Tools) -> Row:
    """Return the row of a seed: kept, dropped, or failed. What ends the whole build is raised.

    A step that raises costs this row alone.
    """
    context = Context(tools, number)
    row = Row(number)
    step_name = "seed"
    try:
        row = recipe.seed(number)
        for step in steps:
            step_name = step.name
            result: Any = await step.work(row, context)
            if not isinstance(result, Row):
                raise TypeError(f"it returned {type(result).__name__} where a Row was expected")
            row = result
        if row.draft is None:
            raise Dropped("no dialogue was made")
        row = replace(row, outcome="kept", draft=_hold_out(row.draft, number, tools.test_share))
    except Dropped as error:
        row = _end(error.row or row, "dropped", step_name, error.reason, error.detail)
    except ENDS_BUILD:
        raise
    except (CallFailed, ImageError) as error:
        row = _end(row, "failed", step_name, "a call failed", str(error))
    except Exception as error:
        row = _end(row, "failed", step_name, "the step raised an error", str(wrap_error(step_name, error)))
    return replace(row, number=number, calls=context.calls, cost=context.cost)


def _hold_out(draft: Draft, number: int, share: float) -> Draft:
    """Return the dialogue as one of the test part, if its seed is one of those that are held out."""
    is_held_out = Random(f"test part {number}").random() < share
    return replace(draft, split="test") if is_held_out else draft


def _end(row: Row, outcome: str, step: str, reason: str, detail: str) -> Row:
    fields = {"outcome": outcome, "step": step, "reason": reason, "detail": detail[:MAX_DETAIL]}
    return replace(row, **fields)
