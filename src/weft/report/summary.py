"""What a reader must know to trust a run's numbers: how it was made, what is missing and why, what it cost."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from weft.store.journal import RunRecord, Totals, TurnRecord
from weft.types import Verdict


def title_of(manifest: Mapping[str, Any], state: str = "finished") -> str:
    """A run in a few words: its model, and what was chosen for it."""
    view, model = manifest["view"], manifest["model"]
    how = [view["history"], *(["official inputs"] if view["official"] else []), *(["true past"] if view["past"] == "truth" else [])]
    how += [manifest["strategy"]] if manifest.get("strategy", "none") != "none" else []
    temperature = model.get("temperature") or model.get("parameters", {}).get("temperature")
    how += [f"temperature {temperature:g}"] if isinstance(temperature, (int, float)) else []
    how += ["unfinished"] if state != "finished" else []
    return f"{model['name']} [{', '.join(how)}]"


class Summary(Struct, frozen=True):
    run: str
    state: str
    manifest: dict[str, Any]
    started: str
    samples: int
    turns: int
    outcomes: dict[str, int]
    verdicts: int
    scored: int
    zero_by_rule: dict[str, int]
    unscored: dict[str, int]
    left_out: list[str]
    totals: list[Totals]
    seconds: float | None = None  # from the first start to the end
    calls: int = 0  # behind all replies, those taken over from earlier runs included

    @property
    def unfinished(self) -> str:
        due = self.manifest["dataset"]["turns"]
        return (
            "" if self.state == "finished" else f"UNFINISHED: {self.turns} of {due} turns are done; the numbers are those of what is done"
        )

    @property
    def lines(self) -> list[str]:
        """The same, in words."""
        judge, view = self.manifest["judge"], self.manifest["view"]
        how = f"history {view['history']}, placement {view['placement']}, past {view['past']}, turns {view['turns']}"
        outcomes = ", ".join(f"{count} {name}" for name, count in self.outcomes.items())
        made = [
            f"run {self.run} ({self.state}), started {self.started}",
            f"dataset {self.manifest['dataset']['name']} ({self.manifest['dataset']['digest'][:8]})",
            f"model {title_of(self.manifest)}, judge {judge['name']}, prompts {self.manifest['rubric']['source']} "
            f"({self.manifest['rubric']['digest'][:8]}), {how}{', official inputs' if view['official'] else ''}",
            f"{self.samples} samples, {self.turns} turns: {outcomes}",
            f"{self.scored} of {self.verdicts} verdicts scored",
        ]
        if self.manifest.get("strategy", "none") != "none":
            made.append(f"strategy {self.manifest['strategy']}: {self.calls} model calls stand behind {self.turns} replies")
        if self.unfinished:
            made.insert(0, self.unfinished)
        made += [f"scored zero, the model's doing ({count}): {reason}" for reason, count in self.zero_by_rule.items()]
        made += [f"unscored ({count}): {reason}" for reason, count in self.unscored.items()]
        made += [f"left out of the dataset: {problem}" for problem in self.left_out]
        for total in self.totals:
            cost = "price unknown" if total.cost is None else f"${total.cost:.4f}"
            made.append(f"{total.role} calls: {total.calls} ({total.retries} retries), {cost}")
            made[-1] += f", {total.tokens_in:,} tokens in, {total.tokens_out:,} out"
        return made


def summarise(
    record: RunRecord, turns: Sequence[TurnRecord], verdicts: Sequence[Verdict], totals: Sequence[Totals], most: int = 12
) -> Summary:
    zero = Counter(_kind(v.reason) for v in verdicts if v.by == "failure" and v.value is not None)
    unscored = Counter(_root(v.reason) for v in verdicts if v.value is None)
    return Summary(
        run=record.id,
        state=record.state,
        manifest=record.manifest,
        started=time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(record.started)),
        samples=len({turn.sample for turn in turns}),
        turns=len(turns),
        outcomes=dict(sorted(Counter(turn.reply.outcome for turn in turns).items())),
        verdicts=len(verdicts),
        scored=sum(verdict.value is not None for verdict in verdicts),
        zero_by_rule=_top(zero, most),
        unscored=_top(unscored, most),
        left_out=record.left_out,
        totals=list(totals),
        seconds=None if record.ended is None else record.ended - record.started,
        calls=sum(len(turn.reply.keys) for turn in turns),
    )


def _root(reason: str) -> str:
    """The reason at the bottom of `waits for turn 3, which failed: waits for turn 2, which failed: ...`."""
    return reason.rpartition("which failed: ")[2] or reason


def _kind(reason: str) -> str:
    """Reasons that quote what a model said are counted by what happened, not by the words."""
    return reason.split(": ")[0] + (": " + reason.split(": ")[1] if reason.count(": ") else "")


def _top(counted: Counter[str], most: int) -> dict[str, int]:
    top = dict(counted.most_common(most))
    rest = sum(counted.values()) - sum(top.values())
    return {**top, "other reasons": rest} if rest else top
