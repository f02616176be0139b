"""The list of dialogues as data for its page: a sample's groups, and for each run and turn the outcome and every metric
as a share. A difference is to the first run, over what both have scored."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from weft.benchmarks.base import Benchmark, SampleGroups
from weft.report.dialogues import RunDialogue, describe_adaptation
from weft.report.html import Html, build_page, data_island, join, tag
from weft.report.scale import headline_difference, headline_share
from weft.results.run import Run, read_dataset_turn
from weft.types import Text, Verdict


def sample_order(runs: Mapping[str, Run]) -> list[str]:
    """Samples in the dataset's order; those that only a later run has come last."""
    return list(dict.fromkeys(turn.sample for run in runs.values() for turn in run.turns))


def dialogues_by_sample(runs: Mapping[str, Run]) -> dict[str, list[RunDialogue]]:
    """By sample, what each run made of it."""
    made: dict[str, list[RunDialogue]] = {sample: [] for sample in sample_order(runs)}
    for title, run in runs.items():
        how = describe_adaptation(run.record.manifest.model.takes)
        turns: dict[str, dict[int, Any]] = {}
        for turn in run.turns:
            turns.setdefault(turn.sample, {})[turn.turn] = turn
        verdicts: dict[str, dict[int, list[Verdict]]] = {}
        for verdict in run.verdicts:
            verdicts.setdefault(verdict.sample, {}).setdefault(verdict.turn, []).append(verdict)
        for sample, found in made.items():
            found.append(RunDialogue(title, turns.get(sample, {}), verdicts.get(sample, {}), how))
    return made


def key_by_number(number: int, sample: str) -> str:
    return str(number)


def key_by_name(number: int, sample: str) -> str:
    """The same for a sample whatever else is in the list."""
    return hashlib.sha256(sample.encode()).hexdigest()[:16]


def build_listing(
    runs: Mapping[str, Run],
    found: Mapping[str, Sequence[RunDialogue]],
    key: Callable[[int, str], str] = key_by_number,
    **more: Any,
) -> dict[str, Any]:
    """`key` is what a sample's page is called."""
    benchmark = next(iter(runs.values())).benchmark
    groups = {name: found for run in runs.values() for name, found in run.groups.items()}
    samples: list[dict[str, Any]] = []
    for number, (sample, both) in enumerate(found.items()):
        any_turn = next(turn for side in both for turn in side.turns.values())
        asked = next((part.text for part in read_dataset_turn(any_turn).prompt if isinstance(part, Text)), "")
        turns = [_turns(side, both[0], benchmark, groups) for side in both]
        whole = [headline_share(benchmark, _all_of(side), groups) for side in both]
        gaps = [headline_difference(benchmark, _all_of(side), _all_of(both[0]), groups) for side in both[1:]]
        found_of = {"g": any_turn.groups, "x": asked[:160], "s": whole, "d": [None, *gaps], "r": turns}
        samples.append({"i": number, "k": key(number, sample), "id": sample, **found_of})
    scale = {"full": benchmark.presentation.max_score, "digits": benchmark.presentation.digits}
    return {
        "runs": list(runs),
        **scale,
        "samples": samples,
        "single": False,
        "place": "d/",
        "suffix": ".html",
        "stamp": "",
        **more,
    }


def _all_of(side: RunDialogue) -> list[Verdict]:
    return [verdict for some in side.verdicts.values() for verdict in some]


def _turns(side: RunDialogue, first: RunDialogue, benchmark: Benchmark, groups: SampleGroups) -> list[dict[str, Any]]:
    return [
        {
            "t": number + 1,
            "o": turn.reply.outcome,
            "s": headline_share(benchmark, side.verdicts.get(number, ()), groups),
            "d": None
            if side is first
            else headline_difference(benchmark, side.verdicts.get(number, ()), first.verdicts.get(number, ()), groups),
            "m": {
                verdict.metric: None if verdict.value is None else round(verdict.value, 4)
                for verdict in side.verdicts.get(number, ())
            },
        }
        for number, turn in sorted(side.turns.items())
    ]


def build_filters(data: Mapping[str, Any], metrics: Sequence[str], *, live: bool = False) -> Html:
    """A `live` list has every filter from the start: what is not there yet may come."""
    groups: dict[str, list[str]] = {}
    for sample in data["samples"]:
        for key, value in sample["g"].items():
            seen = groups.setdefault(key, [])
            if value not in seen:
                seen.append(value)
    outcomes = sorted({turn["o"] for sample in data["samples"] for run in sample["r"] for turn in run})
    turns = sorted({turn["t"] for sample in data["samples"] for run in sample["r"] for turn in run})
    sorts = {"worst": "worst first", "best": "best first", "order": "as in the dataset"}
    if len(data["runs"]) > 1:
        sorts["gap"] = "runs differ most"
    return tag(
        "div",
        tag("label", "search", tag("input", data_filter="search", type="search", placeholder="id or request ( / )"), class_="wide"),
        _select("run", "run", {str(at): run for at, run in enumerate(data["runs"])}, wide=True) if len(data["runs"]) > 1 else None,
        [_select(f"group:{key}", key, _all(sorted(values))) for key, values in groups.items() if live or len(values) > 1],
        _select("metric", "metric", _all(metrics)),
        _select("turn", "turn", _all([str(turn) for turn in turns])),
        _select("outcome", "outcome", _all([*outcomes, "unscored"])),
        tag("label", "score at most", _most(data["full"])),
        _select("sort", "order", sorts),
        class_="filters",
    )  # fmt: skip


def _most(full: float) -> Html:
    return tag(
        "input",
        data_filter="most",
        type="number",
        min=0,
        max=f"{full:g}",
        step=f"{full / 20:g}",
        placeholder=f"{full:g}",
    )


def _all(values: Sequence[str]) -> dict[str, str]:
    return {"": "all", **{value: value for value in values}}


def _select(key: str, label: str, options: Mapping[str, str], *, wide: bool = False) -> Html:
    usual = next(iter(options))
    shown = [tag("option", text, value=value) for value, text in options.items()]
    return tag("label", label, tag("select", shown, data_filter=key, data_usual=usual), class_="wide" if wide else None)


def build_list_page(
    title: str,
    data: Mapping[str, Any],
    metrics: Sequence[str],
    top: Html,
    *,
    templates: Html | None = None,
    kind: str = "list",
    live: bool = False,
) -> str:
    keys = [("j", "next"), ("k", "before"), ("/", "search"), ("Esc", "back to the list")]
    hint = tag(
        "div",
        tag("p", "Choose a dialogue."),
        [tag("p", tag("kbd", key), f" {what}") for key, what in keys],
        class_="hint",
    )
    side = tag(
        "div", build_filters(data, metrics, live=live), tag("div", "", id="count"), tag("div", "", id="versus", hidden=True),
        tag("div", tag("div", id="spacer"), id="rows", tabindex="0", role="listbox", aria_label="dialogues"), class_="side",
    )  # fmt: skip
    inert = data_island("data", msgspec.json.encode(data).decode())
    body = join(top, tag("main", side, tag("div", hint, class_="pane", id="pane")), templates, inert)
    return build_page(title, body, script="list.js", kind=kind, live=live)
