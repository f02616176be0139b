"""Which run stands in which row of a grid: runs by the values of their settings, and the row that each is compared
with."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from weft.benchmarks.base import Benchmark
from weft.errors import UserError
from weft.results.run import Run
from weft.results.settings import (
    check_names,
    find_differing_settings,
    list_settings,
    normalize_name,
    order_values,
    read_setting,
)

MAX_NAMES = 3
SEED = "seed"
MODEL = "model"
GridKey = tuple[str, ...]  # the values of a row's settings


class GridLayout(Struct, frozen=True):
    """The rows of a grid in order, each with its runs; several of one row differ only in their seed."""

    settings: tuple[str, ...]  # names of those that rows differ in
    values: tuple[tuple[str, ...], ...]  # of each setting, in order
    cells: Mapping[GridKey, Sequence[Run]]
    axis: str = ""  # of the benchmark, whose groups are columns
    groups: tuple[str, ...] = ()
    fixed: Mapping[str, str] = {}  # the settings that a row's baseline has instead of its own
    other_differences: tuple[str, ...] = ()  # settings in which rows differ besides

    @property
    def names(self) -> list[str]:
        """Everything that the grid is by."""
        return [*self.settings, *filter(None, [self.axis])]

    @property
    def has_baseline(self) -> bool:
        """Whether any row has another row as its baseline."""
        return any(self.baseline_of(key) != key and self.baseline_of(key) in self.cells for key in self.cells)

    @property
    def has_seeds(self) -> bool:
        return any(len(runs) > 1 for runs in self.cells.values())

    def baseline_of(self, key: GridKey) -> GridKey:
        """Return the key of the row that a row is compared with; it may have no run."""
        return tuple(self.fixed.get(name, value) for name, value in zip(self.settings, key, strict=True))

    def describe_baseline(self) -> str:
        """Return the baseline in words, such as `history none`; what a row shares with its own is left out."""
        return "the row with " + ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in self.fixed.items())


def plan_layout(runs: Sequence[Run], by: Sequence[str], baseline: str = "") -> GridLayout:
    """Sort runs into rows. Raises UserError for a name or a value that no run has, for runs of several benchmarks, and
    for runs of one row that differ in anything but their seed."""
    _check_runs(runs)
    benchmark = runs[0].benchmark
    names = _check_by(runs, by)
    axes = [name for name in names if _is_axis(runs, name)]
    if len(axes) > 1:
        raise UserError(f"--by: {' and '.join(axes)} are both axes of {benchmark.name}; only one can be the columns")
    settings = tuple(name for name in names if name not in axes)
    keys = {run.id: tuple(read_setting(run.title_input, name) for name in settings) for run in runs}
    values: list[tuple[str, ...]] = []
    for index, name in enumerate(settings):
        values.append(tuple(order_values([key[index] for key in keys.values()], benchmark, name)))

    def place(key: GridKey) -> list[int]:
        return [values[index].index(value) for index, value in enumerate(key)]

    cells: dict[GridKey, list[Run]] = {key: [] for key in sorted(set(keys.values()), key=place)}
    for run in runs:
        cells[keys[run.id]].append(run)
    for key, members in cells.items():
        _check_members(settings, key, members)
    axis = axes[0] if axes else ""
    return GridLayout(
        settings,
        tuple(values),
        cells,
        axis,
        tuple(_list_groups(runs, axis)),
        _parse_baseline(settings, values, baseline),
        tuple(_find_other_differences(runs, settings)),
    )


def _check_runs(runs: Sequence[Run]) -> None:
    names = {run.benchmark.name for run in runs}
    if len(names) > 1:
        raise UserError(f"a grid is of runs of one benchmark; these are of {', '.join(sorted(names))}")
    if len({run.id for run in runs}) < len(runs):
        raise UserError("a run is named twice; name each run once")


def _check_by(runs: Sequence[Run], by: Sequence[str]) -> list[str]:
    names = [normalize_name(name) for name in by]
    if not names or not all(names):
        raise UserError("--by: name one to three settings, with commas between them, such as model,history")
    if len(names) > MAX_NAMES or len(set(names)) < len(names):
        raise UserError(f"--by {','.join(by)}: name one to three different settings")
    check_names([run.title_input for run in runs], names, runs[0].benchmark.axes)
    return names


def _is_axis(runs: Sequence[Run], name: str) -> bool:
    """Whether the groups of samples are meant, not a setting of the same name in which runs differ."""
    if name not in runs[0].benchmark.axes:
        return False
    return len({read_setting(run.title_input, name) for run in runs}) < 2


def _list_groups(runs: Sequence[Run], axis: str) -> list[str]:
    """Return the groups of an axis: in the benchmark's order, then in that of the dataset."""
    if not axis:
        return []
    benchmark: Benchmark = runs[0].benchmark
    found: dict[str, None] = {}
    for run in runs:
        found.update(dict.fromkeys(groups[axis] for groups in run.groups.values() if groups.get(axis)))
    declared = [name for name in benchmark.presentation.axis_names.get(axis, ()) if name in found]
    return list(dict.fromkeys([*declared, *found]))


def _check_members(settings: Sequence[str], key: GridKey, runs: Sequence[Run]) -> None:
    """Raise UserError if runs of one row differ in more than their seed."""
    if len({run.record.manifest.without_seed().digest for run in runs}) < 2:
        return
    differing = find_differing_settings([run.title_input for run in runs])
    others = [name for name in differing if name.rpartition(".")[2] != SEED]
    row = ", ".join(f"{name} {value}" for name, value in zip(settings, key, strict=True))
    if not others:
        raise UserError(
            f"{len(runs)} runs of one grid have {row}: {', '.join(run.id for run in runs)}; leave all but one out"
        )
    texts = [f"{name} ({', '.join(dict.fromkeys(differing[name]))})" for name in others]
    raise UserError(
        f"{len(runs)} runs have {row} and differ in {', '.join(texts)}: add {others[0]} to --by, or leave runs out"
    )


def _parse_baseline(settings: Sequence[str], values: Sequence[Sequence[str]], text: str) -> dict[str, str]:
    """Return the settings that a baseline fixes: by default the first value of the last setting."""
    if not settings:
        return {}
    if not text:
        return {settings[-1]: values[-1][0]}
    by_name = dict(zip(settings, values, strict=True))
    whole = [name for name, known in by_name.items() if _find_value(known, text)]
    if len(whole) > 1:
        raise UserError(f"--baseline {text}: {' and '.join(whole)} both have this value; write {whole[-1]}={text}")
    if whole:
        return {whole[0]: _find_value(by_name[whole[0]], text)}
    fixed: dict[str, str] = {}
    for part in text.split(","):
        name, sign, value = part.partition("=")
        name = normalize_name(name)
        if not sign or name not in by_name or not _find_value(by_name[name], value):
            listed = "; ".join(f"{one}: {', '.join(known)}" for one, known in by_name.items())
            raise UserError(f"--baseline {text}: no row has it; there is {listed}")
        fixed[name] = _find_value(by_name[name], value)
    return fixed


def _find_value(known: Sequence[str], text: str) -> str:
    """Return the value that a text names; an empty text if there is none."""
    wanted = text.strip().casefold()
    return next((value for value in known if value.casefold() == wanted), "")


def _find_other_differences(runs: Sequence[Run], settings: Sequence[str]) -> list[str]:
    """Return in which settings runs differ besides those of the grid. What belongs to a model is left out where rows
    are by model."""
    of_model: set[str] = set()
    if MODEL in settings:
        for run in runs:
            options = run.record.manifest.options
            names = [
                name.removeprefix("model.") for name in list_settings(run.title_input) if name.startswith("model.")
            ]
            of_model |= {name for name in names if name not in options}
    ignored = {*settings, *of_model, SEED}
    if _names_only_repeat(runs, settings):
        ignored.add(MODEL)
    differing = find_differing_settings([run.title_input for run in runs])
    return [name for name in differing if name not in ignored and "." not in name]


def _names_only_repeat(runs: Sequence[Run], settings: Sequence[str]) -> bool:
    """Whether the names of models differ in nothing but a setting of the grid at their end, as `oracle-0.1` does."""
    stems: set[str] = set()
    for run in runs:
        stem = read_setting(run.title_input, MODEL)
        for name in settings:
            stem = stem.removesuffix(f"-{read_setting(run.title_input, name)}")
        stems.add(stem)
    return len(stems) == 1
