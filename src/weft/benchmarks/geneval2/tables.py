"""GenEval 2's numbers, in percent: both means over prompts, by skill over questions, by atoms over prompts.

A model's failure is zero in each of its questions. A prompt of which a question could not be scored is in neither mean.
"""

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from weft.benchmarks.base import RunResults
from weft.benchmarks.geneval2.data import ATOMS, SKILLS
from weft.benchmarks.geneval2.rubric import find_skill
from weft.benchmarks.rows import build_breakdowns, build_mean_cell, build_rows
from weft.types import Cell, Table, Verdict

SKILL_COLUMNS = {skill.capitalize(): skill for skill in SKILLS}
MEANS = {"GM": "gm", "AM": "am"}
DATA_TITLES = {"geneval2": "GenEval 2", "tabletop": "Tabletop in GenEval 2's format"}
NOTE = (
    "Percent. Means over prompts. An answer that is not among the likeliest ones that the judge's server lists counts "
    "as 0: the authors take its probability from the whole vocabulary, which raises GM where it is small and not 0."
)
SKILL_NOTE = "Percent. Means over questions; counts are of questions."


def tables(runs: Sequence[RunResults]) -> Iterator[Table]:
    """Yield both means, the skills, and each run's breakdown by atoms."""
    data = "GenEval 2"
    if runs:
        data = DATA_TITLES.get(runs[0].dataset, "Own prompts in GenEval 2's format")
    yield Table(f"{data}: means over prompts", tuple(MEANS), build_rows(runs, _build_means), NOTE, 1)
    if runs:
        skills = build_rows(runs, _build_skills)
        yield Table(f"{data}: questions by skill", tuple(SKILL_COLUMNS), skills, SKILL_NOTE, 1)
        yield from build_breakdowns(runs, data, "by atoms", tuple(MEANS), _break_down, 1, shown=("GM",))


def _build_means(run: RunResults, is_official: bool) -> dict[str, Cell]:
    return {column: _build_cell(_select(run, metric)) for column, metric in MEANS.items()}


def _build_skills(run: RunResults, is_official: bool) -> dict[str, Cell]:
    """Each cell has the verdicts of the prompts that it has questions of."""
    atoms: dict[str, list[Verdict]] = {skill: [] for skill in SKILLS}
    prompts: dict[str, list[Verdict]] = {skill: [] for skill in SKILLS}
    for verdict in _select(run, "am"):
        for atom in verdict.merged_from or (verdict,):
            skill = find_skill(atom)
            if skill not in atoms:  # its question could not be built
                continue
            atoms[skill].append(atom)
            if not prompts[skill] or prompts[skill][-1] is not verdict:
                prompts[skill].append(verdict)
    cells: dict[str, Cell] = {}
    for column, skill in SKILL_COLUMNS.items():
        cells[column] = replace(_build_cell(atoms[skill]), verdicts=prompts[skill])
    return cells


def _break_down(run: RunResults, is_official: bool) -> dict[str, Mapping[str, Cell]]:
    rows: dict[str, Mapping[str, Cell]] = {}
    for atoms in map(str, ATOMS):
        cells: dict[str, Cell] = {}
        for column, metric in MEANS.items():
            own = [verdict for verdict in _select(run, metric) if run.groups[verdict.sample]["atoms"] == atoms]
            cells[column] = _build_cell(own)
        if any(cell.expected for cell in cells.values()):
            rows[f"{atoms} atoms"] = cells
    return rows


def _select(run: RunResults, metric: str) -> list[Verdict]:
    return [verdict for verdict in run.verdicts if verdict.metric == metric]


def _build_cell(verdicts: Sequence[Verdict]) -> Cell:
    if not verdicts:
        return Cell(None)
    return build_mean_cell(verdicts, scale=100)
