"""What a figure of one dialogue shows: each turn's prompt, what every model replied, and its scores.

    case = build_case(runs, "garden-12", turns=(1, 3))
    case = build_dataset_case(sample)                     # of a dataset, without a run
    save_cases([case], stores, "garden")

The prompt is the dataset's, so that it is the same for all models. Thoughts are not part of a reply, and are shown only
where they are asked for."""

from collections.abc import Sequence

from msgspec import Struct

from weft.errors import UserError
from weft.evaluation.generate import prompt_with_images
from weft.report.charts import in_words
from weft.report.scale import format_share
from weft.results.run import Run, name_runs, read_dataset_turn
from weft.results.samples import find_sample
from weft.store.records import TurnRecord
from weft.types import Image, Part, Sample, Text, Thought, Verdict

REFERENCE = "reference"
UNSCORED = "-"


class CaseScore(Struct, frozen=True):
    """One metric of a reply."""

    metric: str
    text: str  # on the scale of the paper; a dash if it is unscored
    share: float | None  # of full marks


class CaseReply(Struct, frozen=True):
    """What one column has of a turn."""

    parts: tuple[Part, ...] = ()
    note: str = ""  # why there is no reply
    scores: tuple[CaseScore, ...] = ()


class CaseTurn(Struct, frozen=True):
    """One turn: its title, the prompt, and a reply for each column."""

    title: str
    prompt: tuple[Part, ...]
    replies: tuple[CaseReply, ...]


class Case(Struct, frozen=True):
    """One dialogue of several models."""

    sample: str
    columns: tuple[str, ...]  # the titles of the models; the reference last; none shows prompts alone
    turns: tuple[CaseTurn, ...]


def build_case(
    runs: Sequence[Run],
    sample: str,
    *,
    turns: tuple[int, int] | None = None,
    metrics: Sequence[str] = (),
    scores: bool = True,
    titles: Sequence[str] = (),
    reference: bool = False,
    thoughts: bool = False,
) -> Case:
    """Return a dialogue for a figure. `sample` may be the beginning of its name. `turns`: the first and the last,
    counted from 1; all without it. `metrics`: those whose scores are shown; all without them, and none without
    `scores`. `titles`: names of the columns, in the order of the runs.

    Raises UserError for a sample, a turn or a metric that is not there, and for runs of different data."""
    named = _name_columns(runs, titles)
    benchmark = runs[0].benchmark
    if benchmark.presentation.pairwise:
        raise UserError(f"runs of {benchmark.name} compare models in pairs: they have no dialogue of one model")
    for metric in metrics:
        if metric not in benchmark.metrics:
            raise UserError(f"{benchmark.name} has no metric {metric!r}; it has {', '.join(benchmark.metrics)}")
    name = find_sample([record.sample for run in runs for record in run.turns], sample, _describe_runs(runs))
    records = {title: _find_turns(run, name) for title, run in named.items()}
    shown_metrics = (metrics or benchmark.metrics) if scores else ()
    present_turns: set[int] = set()
    for of_run in records.values():
        present_turns.update(of_run)
    built: list[CaseTurn] = []
    for number in _select_numbers(present_turns, turns, name):
        present = [of_run[number] for of_run in records.values() if number in of_run]
        dataset_turns = [read_dataset_turn(record) for record in present]
        if any(turn.prompt != dataset_turns[0].prompt for turn in dataset_turns):
            raise UserError(f"{name}, turn {number + 1}: the runs have different prompts; are they of the same data?")
        replies = [
            _build_reply(run, records[title].get(number), name, shown_metrics, thoughts) for title, run in named.items()
        ]
        if reference:
            replies.append(_build_reference(dataset_turns[0].reference))
        title = _title_turn(benchmark.presentation.turn_names, number)
        built.append(CaseTurn(title, dataset_turns[0].prompt, tuple(replies)))
    columns = [*named, REFERENCE] if reference else list(named)
    return Case(name, tuple(columns), tuple(built))


def build_dataset_case(
    sample: Sample,
    *,
    turns: tuple[int, int] | None = None,
    references: bool = True,
    turn_names: Sequence[str] = (),
) -> Case:
    """Return a dialogue of a dataset for a figure: its prompts and, if it has any, its reference replies.

    Raises UserError for turns that are not there."""
    numbers = _select_numbers(set(range(len(sample.turns))), turns, sample.id)
    references = references and any(sample.turns[number].reference for number in numbers)
    built: list[CaseTurn] = []
    for number in numbers:
        turn = sample.turns[number]
        replies = (_build_reference(turn.reference),) if references else ()
        built.append(CaseTurn(_title_turn(turn_names, number), prompt_with_images(sample, turn), replies))
    return Case(sample.id, (REFERENCE,) if references else (), tuple(built))


def _name_columns(runs: Sequence[Run], titles: Sequence[str]) -> dict[str, Run]:
    named = name_runs(runs)
    if not titles:
        return named
    if len(titles) != len(runs) or len(set(titles)) < len(titles):
        raise UserError(f"{len(runs)} runs need as many different names; there are {len(set(titles))}")
    return dict(zip(titles, runs, strict=True))


def _describe_runs(runs: Sequence[Run]) -> str:
    if len(runs) == 1:
        return runs[0].id
    return f"these {len(runs)} runs"


def _find_turns(run: Run, sample: str) -> dict[int, TurnRecord]:
    return {record.turn: record for record in run.turns if record.sample == sample}


def _title_turn(names: Sequence[str], number: int) -> str:
    if number < len(names):
        return names[number]
    return f"Turn {number + 1}"


def _select_numbers(present: set[int], turns: tuple[int, int] | None, sample: str) -> list[int]:
    """Return the turns that are shown, in their order. Raises UserError if there is none of them."""
    if turns is None:
        return sorted(present)
    first, last = turns
    selected = [number for number in sorted(present) if first <= number + 1 <= last]
    if not selected:
        wanted = f"turn {first}" if first == last else f"turns {first} to {last}"
        raise UserError(f"{sample} has no {wanted}; its last is {max(present) + 1}")
    return selected


def _build_reply(run: Run, record: TurnRecord | None, sample: str, metrics: Sequence[str], thoughts: bool) -> CaseReply:
    if record is None:
        return CaseReply(note="not generated")
    shown: list[Part] = []
    for part in record.reply.parts:
        if isinstance(part, Thought) and not thoughts:
            continue
        if isinstance(part, Image) or part.text.strip():
            shown.append(part)
    note = ""
    if record.reply.outcome != "answered" or not shown:
        note = f"{record.reply.outcome}: {record.reply.reason}".removesuffix(": ")
    scores: list[CaseScore] = []
    for metric in metrics:
        scores += [
            _build_score(run, verdict)
            for verdict in run.verdicts
            if (verdict.sample, verdict.turn, verdict.metric) == (sample, record.turn, metric)
        ]
    return CaseReply(tuple(shown), note, tuple(scores))


def _build_score(run: Run, verdict: Verdict) -> CaseScore:
    name = in_words(verdict.metric)
    if verdict.variant:
        name += f" ({verdict.variant})"
    if verdict.value is None:
        return CaseScore(name, UNSCORED, None)
    return CaseScore(name, format_share(run.benchmark, verdict.value), verdict.value)


def _build_reference(parts: Sequence[Part]) -> CaseReply:
    shown = tuple(part for part in parts if isinstance(part, Image) or (isinstance(part, Text) and part.text.strip()))
    if not shown:
        return CaseReply(note="none")
    return CaseReply(shown)
