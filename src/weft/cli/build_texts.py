"""A recipe as a diagram, and a build's status, as lines of text."""

from collections.abc import Iterator
from pathlib import Path

from weft.benchmarks.options import list_options
from weft.building.recipe import Recipe, Role
from weft.building.status import BuildStatus


def describe_recipe(kind: type[Recipe], name: str) -> Iterator[str]:
    """Yield a recipe's title, its steps as a diagram, its roles and its options."""
    recipe = kind(kind.Options())
    steps = recipe.steps()
    width = max(len(step.name) for step in steps)
    yield f"{kind.name or name}, version {kind.version}: {kind.title}"
    yield ""
    yield f"  {'seeds':<{width}}  by number, always the same"
    for step in steps:
        line = f"  {step.name:<{width}}  {step.about}"
        if step.roles:
            line += f"  [{', '.join(step.roles)}]"
        yield "  |"
        yield line
    yield "  |"
    yield "  dialogues"
    yield ""
    yield "Roles:"
    for role in kind.roles:
        yield f"  --{role.name:<12} {role.makes:<6} {_describe_role(role)}"
    options = list_options(kind.Options)
    if options:
        yield ""
        yield "Options:"
    for option in options:
        flag = option.name.replace("_", "-")
        default = "none" if option.default == "" else option.default
        yield f"  --{flag:<17} {option.help} [{default}]"


def _describe_role(role: Role) -> str:
    words = role.about
    if role.several:
        words += "; several models with commas"
    if role.stands_in:
        return f"{words} (default: the {role.stands_in})"
    if role.optional:
        return f"{words} (optional)"
    return words


def describe_status(status: BuildStatus, out: Path) -> Iterator[str]:
    """Yield lines with a build's outcomes by step, its calls and its cost."""
    manifest = status.manifest
    yield f"{manifest.recipe}, version {manifest.version}, {manifest.seeds:,} seeds in {out}"
    state = "complete" if status.parts_done == status.parts else "run the same command again to continue"
    yield f"parts done: {status.parts_done} of {status.parts} ({state})"
    counts = ", ".join(f"{count:,} {name}" for name, count in sorted(status.outcomes.items()))
    yield f"seeds done: {status.rows:,} ({counts or 'none yet'})"
    if status.kept:
        among = " of those that did not fail" if status.outcomes.get("failed") else ""
        per = f"{status.turns / status.kept:.2f} turns and {status.images / status.kept:.2f} images each"
        yield f"dialogues kept: {status.kept:,} ({status.kept_share:.1%}{among}), {per}"
    yield ""
    yield f"{'step':<12}{'in':>9}{'out':>9}{'yield':>8}"
    for step in status.steps:
        share = "-" if step.share is None else f"{step.share:.1%}"
        yield f"{step.step:<12}{step.entered:>9,}{step.left:>9,}{share:>8}"
        for reason, count in step.reasons.items():
            yield f"{'':<14}{count:,} {reason}"
        if step.failure:
            yield f"{'':<14}the first that failed: {step.failure}"
    if status.left_out:
        yield ""
        for kind, count in status.left_out.items():
            yield f"{f'left out as duplicates: {kind}':<28}{count:>9,}"
    if status.counts:
        yield ""
        for name, count in sorted(status.counts.items()):
            yield f"{name:<28}{count:>9,}"
    yield ""
    for total in status.calls:
        cost = "price unknown" if total.cost is None else f"${total.cost:.2f}"
        model = manifest.names.get(total.role, "")
        yield f"{total.role:<12}{model:<32} {total.calls:>9,} calls, {total.answered:,} answered, {cost}"
    if status.cost is None:
        yield "cost of a kept dialogue: unknown, because a price is unknown"
    elif status.cost_per_kept is not None:
        yield f"cost of a kept dialogue: ${status.cost_per_kept:.4f} (${status.cost:.2f} for all seeds)"
