"""Orders for images: who makes one, which gates look at it, and who mends it.

    image, attempts = await make_image(order, ["editor", "mender"], gates, context)

All attempts are kept: of those at one item, the chosen one and the rejected ones are preference pairs.
"""

import asyncio
from collections.abc import Sequence
from typing import Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from weft.building.context import Context
from weft.building.draft import Attempt, GateVerdict, Row
from weft.types import Image

MAX_REASON = 200  # characters of a reply's reason that an attempt keeps


class Order(Struct, frozen=True):
    """An image that is wanted."""

    item: str  # such as `edit 2`
    prompt: str  # mentions the shown images as `Image #1`, `Image #2`
    shown: tuple[Image, ...] = ()
    kind: Literal["draw", "edit", "fuse"] = "draw"


class Gate(Protocol):
    """Looks at an image that was made for an order."""

    @property
    def name(self) -> str: ...

    async def check(self, order: Order, image: Image, context: Context) -> GateVerdict: ...


async def make_image(
    order: Order, makers: Sequence[str], gates: Sequence[Gate], context: Context, *, after: Sequence[Attempt] = ()
) -> tuple[Image | None, list[Attempt]]:
    """Ask one maker after the other until an image passes all gates. Return it, or None, and all attempts.

    `after` are earlier attempts at this order, which are not among those returned.
    """
    attempts: list[Attempt] = []
    asked = [attempt.role for attempt in after]
    for role in makers:
        attempt = await attempt_order(order, role, gates, context, _count_draws(role, asked, context))
        asked.append(role)
        if attempt.passed:
            attempts.append(replace(attempt, chosen=True))
            return attempt.image, attempts
        attempts.append(attempt)
    if context.is_flagging:  # a dry run that counts the most calls goes on as if the last attempt would do
        return attempts[-1].image, attempts
    return None, attempts


async def make_best_image(
    order: Order, makers: Sequence[str], gates: Sequence[Gate], context: Context
) -> tuple[Image | None, list[Attempt]]:
    """Ask all makers at once, and choose the image that passes with the highest values; the first of equal ones."""
    draws = [_count_draws(role, makers[:index], context) for index, role in enumerate(makers)]
    orders = (attempt_order(order, role, gates, context, draw) for role, draw in zip(makers, draws, strict=True))
    attempts = list(await asyncio.gather(*orders))
    best = max(range(len(attempts)), key=lambda index: (attempts[index].passed, _value(attempts[index]), -index))
    if not attempts[best].passed and not context.is_flagging:
        return None, attempts
    attempts[best] = replace(attempts[best], chosen=True)
    return attempts[best].image, attempts


async def attempt_order(order: Order, role: str, gates: Sequence[Gate], context: Context, draw: int = 0) -> Attempt:
    """Ask one maker, and let the gates look, cheapest first, until one rejects the image."""
    reply = await context.draw(role, order.prompt, order.shown, draw=draw)
    attempt = Attempt(order.item, role, order.prompt, order.shown, reply.last_image, key="".join(reply.keys[-1:]))
    if attempt.image is None:
        reason = f"{reply.finish_reason}: {reply.reason}" if reply.reason else reply.finish_reason
        return replace(attempt, reason=reason[:MAX_REASON])
    verdicts: list[GateVerdict] = []
    for gate in gates:
        verdict = await gate.check(order, attempt.image, context)
        if context.is_flagging:
            verdict = replace(verdict, passed=False)
        verdicts.append(verdict)
        if not verdict.passed and not context.is_flagging:
            break
    return replace(attempt, verdicts=tuple(verdicts))


def _count_draws(role: str, asked: Sequence[str], context: Context) -> int:
    """Return how often the model of a role was asked before, in whatever role: it is to draw anew, not to repeat."""
    return [context.model_name(one) for one in asked].count(context.model_name(role))


def add_attempts(row: Row, attempts: Sequence[Attempt]) -> Row:
    """Return the row with these attempts, and with what came of them counted."""
    counts = dict(row.counts)
    by_item: dict[str, list[Attempt]] = {}
    for attempt in attempts:
        by_item.setdefault(attempt.item, []).append(attempt)
    for tried in by_item.values():
        result = "lost"
        if tried[0].chosen:
            result = "by the first maker"
        elif any(attempt.chosen for attempt in tried):
            result = "by a later maker"
        _count(counts, "images ordered")
        _count(counts, f"images {result}")
    for attempt in attempts:
        for verdict in attempt.verdicts:
            if not verdict.passed:
                _count(counts, f"rejected by {verdict.gate}")
        if attempt.image is None:
            _count(counts, "no image")
    return replace(row, attempts=(*row.attempts, *attempts), counts=counts)


def _count(counts: dict[str, int], name: str) -> None:
    counts[name] = counts.get(name, 0) + 1


def _value(attempt: Attempt) -> float:
    return sum(verdict.value or 0.0 for verdict in attempt.verdicts if verdict.gate == "judge")
