"""`weft.sweep`: one benchmark with every combination of some models and settings, from Python.

sweep = weft.sweep("weave", data="DATA", model=["bagel", mine], judge="judge", vary={"history": ["none", "full"]})
print(sweep.grid().table)
"""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct

from weft import api
from weft.calls.budget import Budget
from weft.errors import UserError, WeftError
from weft.evaluation import sweep as planning
from weft.evaluation.session import Session
from weft.models.config import default_home
from weft.report.grid import Grid, build_grid
from weft.results.settings import normalize_name
from weft.results.sweeps import check_sweep_name
from weft.store.schema import journal_file
from weft.workspace import open_journal


class Sweep(Struct, frozen=True):
    """What a sweep made."""

    name: str
    by: tuple[str, ...]  # what varies, but for seeds
    runs: tuple[api.Run, ...]
    failures: Mapping[str, WeftError]  # by the settings of the run that could not be made

    def grid(self, *, metric: str = "", baseline: str = "") -> Grid:
        """Return the table and the plot of its runs."""
        return build_grid(self.runs, self.by, metric, baseline)


def sweep(
    benchmark: Any,
    *,
    model: Any,
    vary: Mapping[str, Sequence[Any]],
    name: str = "",
    budget: float | None = None,
    **options: Any,
) -> Sweep:
    """Run a benchmark with every combination of models and settings, one after another.

    `model` is one model or a list. `vary` maps a setting to its values: an option of the benchmark or the model,
    strategy, prompts, judge, judge_repeats, limit, sample or preset. `budget` is for all runs together; `options` are
    those of `evaluate`. A run that ends early does not stop the others: its reason is in `failures`. The same call
    again makes only the calls that are missing.
    """
    models: list[Any] = [*model] if isinstance(model, (list, tuple)) else [model]
    varied = {normalize_name(setting): list(values) for setting, values in vary.items()}
    twice = [setting for setting in varied if options.get(setting) is not None]
    if twice:
        raise UserError(f"sweep(): {twice[0]} is varied and given as well; leave one of them out")
    fields: dict[str, Any] = {**options, "benchmark": benchmark}
    cells = planning.plan_sweep(fields, models, varied)
    by = planning.list_dimensions(models, varied)
    name = name or planning.build_name(fields, by, cells)
    home = Path(options.get("home") or default_home())
    check_sweep_name(open_journal(home).runs() if journal_file(home).exists() else [], name)
    runs: list[api.Run] = []
    failures: dict[str, WeftError] = {}
    shared_budget = Budget(budget)
    for cell in cells:
        cell_fields: dict[str, Any] = {**cell.fields, "budget": budget, "on_start": partial(_start, name)}
        try:
            runs.append(api.evaluate_sharing(shared_budget, **cell_fields))
        except WeftError as error:
            failures[cell.label] = error
    return Sweep(name, tuple(by), tuple(runs), failures)


def _start(name: str, session: Session) -> None:
    planning.name_session(session, name)
