"""What a run would call and cost, before it is started: `--dry-run`, and the lines before a run with a budget."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager

from weft.cli.terminal import complain, say
from weft.evaluation.config import RunConfig
from weft.evaluation.dry_run import RoleEstimate
from weft.evaluation.event_loop import run_in_loop
from weft.evaluation.session import Session, open_run
from weft.evaluation.sources import RunSource


def print_estimate(job: RunConfig, source: RunSource | None = None) -> None:
    """Print what a run would call and cost. Nothing is called."""
    run_in_loop(print_session_estimate(open_run(job, source, dry=True, tell=complain)))


async def print_session_estimate(opened: AbstractAsyncContextManager[Session]) -> int:
    """Print what a session would call and cost; return exit code 0."""
    async with opened as session:
        estimates = await session.dry_run()
        progress = session.dry_run_progress
        say(f"run {session.run_id}: {progress.samples} samples, {progress.turns} turns")
        for line in format_estimates(session, estimates):
            say(line)
        follow_up = session.plan.benchmark.follow_up
        if follow_up is not None:
            say(
                f"a turn without the expected output is asked up to {follow_up.max_tries} times: "
                "there may be more model calls"
            )
        if session.dry_run_note:
            say(session.dry_run_note)
        if session.plan.strategy != "none":
            say(f"calls of {session.plan.strategy} are counted as if every review objected: there may be fewer")
    return 0


def format_estimates(session: Session, estimates: Mapping[str, RoleEstimate]) -> list[str]:
    """Return a line for each role, and one for all together if every price is known."""
    lines: list[str] = []
    total = 0.0
    for role, estimate in estimates.items():
        endpoint = session.endpoints[role]
        total += estimate.cost or 0.0
        if not endpoint.cacheable:
            lines.append(f"{role}: {endpoint.name} answers here, {estimate.calls} times, at no cost")
            continue
        images = ""
        if estimate.images:
            images = f", {estimate.images} images"
        lines.append(
            f"{role}: {estimate.calls} calls to make ({estimate.cached} cached), "
            f"about {estimate.tokens_in:,} tokens in and {estimate.tokens_out:,} out{images}, "
            f"{format_cost(estimate.cost, endpoint.usual_price_share)}"
        )
    if all(estimate.cost is not None for estimate in estimates.values()):
        lines.append(f"together: about ${total:.2f}")
    return [*lines, *_describe_budget(session, estimates, total)]


def _describe_budget(session: Session, estimates: Mapping[str, RoleEstimate], total: float) -> list[str]:
    """Return what the budget does not limit, and whether it is likely to be too small."""
    budget = session.config.budget
    if budget is None:
        return []
    lines: list[str] = []
    for role, estimate in estimates.items():
        endpoint = session.endpoints[role]
        if endpoint.cacheable and estimate.calls and not estimate.cost:
            name = endpoint.identity["model"]
            lines.append(
                f"note: {endpoint.name} counts $0, so the budget does not limit it; "
                f'if it is billed, add [prices."{name}"] to weft.toml'
            )
    left = session.budget.left
    if left is not None and total > left:
        share = "what is left of " if left < budget else ""
        lines.append(
            f"note: that is more than {share}--budget {budget:g}, at which the run stops; the rest can be done later"
        )
    return lines


def format_cost(cost: float | None, price_share: float = 1.0) -> str:
    """Format an estimated cost. `price_share` is the share of the usual price that a batch costs."""
    if cost is None:
        return "price unknown"
    if price_share != 1.0:
        return f"about ${cost:.2f} in batches (${cost / price_share:.2f} live)"
    return f"about ${cost:.2f}"
