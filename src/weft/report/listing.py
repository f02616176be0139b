"""The list of dialogues: data for the page's script, the filters, and the page.

The data has, for each sample, its groups, and for each run and turn the outcome and every metric as a share of full
marks. Differences are to the first run, over what both have scored. Keys are short, since large runs have many samples;
`list.js` says what they mean."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from weft.benchmarks.base import Benchmark, SampleGroups
from weft.report.dialogues import RunDialogue, describe_adaptation
from weft.report.html import Html, build_page, data_island, join, tag
from weft.report.scale import headline_difference, headline_share
from weft.results.run import Run, read_dataset_turn
from weft.store.journal import TurnRecord
from weft.types import Text, Verdict

MAX_PROMPT = 160  # characters of a sample's first prompt, for the search
SHORTCUTS = (("j", "next"), ("k", "previous"), ("/", "search"), ("Esc", "back to the list"))


def sample_order(runs: Mapping[str, Run]) -> list[str]:
    """Return the samples in the dataset's order; those that only a later run has come last."""
    samples: dict[str, None] = {}
    for run in runs.values():
        samples.update(dict.fromkeys(turn.sample for turn in run.turns))
    return list(samples)


def dialogues_by_sample(runs: Mapping[str, Run]) -> dict[str, list[RunDialogue]]:
    """Return for each sample the dialogue that each run had."""
    dialogues: dict[str, list[RunDialogue]] = {sample: [] for sample in sample_order(runs)}
    for title, run in runs.items():
        adaptation = describe_adaptation(run.record.manifest.model.takes)
        turns: dict[str, dict[int, TurnRecord]] = {}
        for turn in run.turns:
            turns.setdefault(turn.sample, {})[turn.turn] = turn
        verdicts: dict[str, dict[int, list[Verdict]]] = {}
        for verdict in run.verdicts:
            verdicts.setdefault(verdict.sample, {}).setdefault(verdict.turn, []).append(verdict)
        for sample, of_sample in dialogues.items():
            of_sample.append(RunDialogue(title, turns.get(sample, {}), verdicts.get(sample, {}), adaptation))
    return dialogues


def key_by_number(number: int, sample: str) -> str:
    """Return the name of a dialogue's page in a report's folder."""
    return str(number)


def key_by_name(number: int, sample: str) -> str:
    """Return a name that stays the same whatever other samples the list has."""
    return hashlib.sha256(sample.encode()).hexdigest()[:16]


def build_listing(
    runs: Mapping[str, Run],
    dialogues: Mapping[str, Sequence[RunDialogue]],
    key: Callable[[int, str], str] = key_by_number,
    **overrides: Any,
) -> dict[str, Any]:
    """Return the data of the list. `key` names each sample's page."""
    benchmark = next(iter(runs.values())).benchmark
    groups: dict[str, Mapping[str, str]] = {}
    for run in runs.values():
        groups.update(run.groups)
    samples: list[dict[str, Any]] = []
    for number, (sample, of_sample) in enumerate(dialogues.items()):
        entry = {"i": number, "k": key(number, sample), "id": sample}
        samples.append(entry | _sample_data(of_sample, benchmark, groups))
    return {
        "runs": list(runs),
        "full": benchmark.presentation.max_score,
        "digits": benchmark.presentation.digits,
        "samples": samples,
        "single": False,
        "place": "d/",
        "suffix": ".html",
        "stamp": "",
        "cells": {"sets": [], "cells": {}},
        **overrides,
    }


def _sample_data(dialogues: Sequence[RunDialogue], benchmark: Benchmark, groups: SampleGroups) -> dict[str, Any]:
    first = dialogues[0]
    turn = _any_turn(dialogues)
    scores: list[float | None] = []
    differences: list[float | None] = []
    for dialogue in dialogues:
        verdicts = _all_verdicts(dialogue)
        scores.append(headline_share(benchmark, verdicts, groups))
        difference = None
        if dialogue is not first:
            difference = headline_difference(benchmark, verdicts, _all_verdicts(first), groups)
        differences.append(difference)
    return {
        "g": turn.groups,
        "x": _first_text(turn)[:MAX_PROMPT],
        "s": scores,
        "d": differences,
        "r": [_turn_data(dialogue, first, benchmark, groups) for dialogue in dialogues],
    }


def _any_turn(dialogues: Sequence[RunDialogue]) -> TurnRecord:
    """Return the first turn that any run has."""
    with_turns = next(dialogue for dialogue in dialogues if dialogue.turns)
    return next(iter(with_turns.turns.values()))


def _first_text(turn: TurnRecord) -> str:
    for part in read_dataset_turn(turn).prompt:
        if isinstance(part, Text):
            return part.text
    return ""


def _all_verdicts(dialogue: RunDialogue) -> list[Verdict]:
    verdicts: list[Verdict] = []
    for of_turn in dialogue.verdicts.values():
        verdicts += of_turn
    return verdicts


def _turn_data(
    dialogue: RunDialogue, first: RunDialogue, benchmark: Benchmark, groups: SampleGroups
) -> list[dict[str, Any]]:
    turns: list[dict[str, Any]] = []
    for number, turn in sorted(dialogue.turns.items()):
        verdicts = dialogue.verdicts.get(number, ())
        difference = None
        if dialogue is not first:
            difference = headline_difference(benchmark, verdicts, first.verdicts.get(number, ()), groups)
        shares: dict[str, float | None] = {}
        for verdict in verdicts:
            shares[verdict.metric] = verdict.value
        turns.append(
            {
                "t": number + 1,
                "o": turn.reply.outcome,
                "s": headline_share(benchmark, verdicts, groups),
                "d": difference,
                "m": shares,
            }
        )
    return turns


def build_filters(data: Mapping[str, Any], metrics: Sequence[str], *, live: bool = False) -> Html:
    """Return the form of filters. A `live` list has every filter from the start, since more samples may come."""
    groups: dict[str, set[str]] = {}
    outcomes: set[str] = set()
    turns: set[int] = set()
    for sample in data["samples"]:
        for axis, group in sample["g"].items():
            groups.setdefault(axis, set()).add(group)
        for run in sample["r"]:
            outcomes.update(turn["o"] for turn in run)
            turns.update(turn["t"] for turn in run)
    sorts = {"worst": "worst first", "best": "best first", "order": "as in the dataset"}
    search = tag("input", data_filter="search", type="search", placeholder="id or prompt ( / )")
    fields: list[Html] = [tag("label", "search", search, class_="wide")]
    if len(data["runs"]) > 1:
        sorts["gap"] = "largest difference"
        options = {str(index): title for index, title in enumerate(data["runs"])}
        fields.append(_select("run", "run", options, wide=True))
    for axis, names in groups.items():
        if live or len(names) > 1:
            fields.append(_select(f"group:{axis}", axis, _options(sorted(names))))
    fields.append(_select("metric", "metric", _options(metrics)))
    fields.append(_select("turn", "turn", _options([str(turn) for turn in sorted(turns)])))
    fields.append(_select("outcome", "outcome", _options([*sorted(outcomes), "unscored"])))
    fields.append(tag("label", "score at most", _score_input(data["full"])))
    fields.append(_select("sort", "order", sorts))
    return tag("div", fields, class_="filters")


def _score_input(max_score: float) -> Html:
    full = f"{max_score:g}"
    return tag(
        "input", data_filter="most", type="number", min=0, max=full, step=f"{max_score / 20:g}", placeholder=full
    )


def _options(values: Sequence[str]) -> dict[str, str]:
    return {"": "all", **{value: value for value in values}}


def _select(key: str, label: str, options: Mapping[str, str], *, wide: bool = False) -> Html:
    default = next(iter(options))
    elements = [tag("option", text, value=value) for value, text in options.items()]
    select = tag("select", elements, data_filter=key, data_usual=default)
    return tag("label", label, select, class_="wide" if wide else None)


def build_list_page(
    title: str,
    data: Mapping[str, Any],
    metrics: Sequence[str],
    header: Html,
    *,
    templates: Html | None = None,
    kind: str = "list",
    live: bool = False,
) -> str:
    """Return the page of the list, with room for the dialogue that is open."""
    shortcuts = [tag("p", tag("kbd", key), f" {action}") for key, action in SHORTCUTS]
    hint = tag("div", tag("p", "Choose a dialogue."), shortcuts, class_="hint")
    rows = tag("div", tag("div", id="spacer"), id="rows", tabindex="0", role="listbox", aria_label="dialogues")
    side = tag(
        "div",
        build_filters(data, metrics, live=live),
        tag("div", tag("span", ""), " ", tag("button", "show all", type="button"), id="behind", hidden=True),
        tag("div", "", id="count"),
        tag("div", "", id="versus", hidden=True),
        rows,
        class_="side",
    )
    main = tag("main", side, tag("div", hint, class_="pane", id="pane"))
    island = data_island("data", msgspec.json.encode(data).decode())
    return build_page(title, join(header, main, templates, island), script="list.js", kind=kind, live=live)
