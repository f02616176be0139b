"""A run's summary: how it was made, what is missing and why, what it cost; as fields and as lines of text."""

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from weft.results.titles import format_title, without_tag
from weft.store.manifest import Manifest
from weft.store.records import CallTotals, ExpectedCounts
from weft.types import Reply

if TYPE_CHECKING:
    from weft.results.run import Run

MAX_REASONS = 12  # reasons that are counted one by one


class ReplyCounts(Struct):
    """The replies of a run, counted."""

    turns: int = 0
    outcomes: Counter[str] = msgspec.field(default_factory=Counter[str])  # turns by outcome
    stop_causes: Counter[str] = msgspec.field(default_factory=Counter[str])  # replies that a filter or a limit ended
    calls: int = 0  # model calls of all replies
    follow_ups: int = 0  # replies that the benchmark's protocol requested more than once
    same_candidates: int = 0  # replies that a strategy chose among identical candidates


class Summary(Struct, frozen=True):
    """How a run was made, what is missing and why, what it cost."""

    run: str  # id
    state: str  # finished, running, part, killed, ...
    manifest: Manifest  # everything that can change a number
    started: str  # UTC, to the minute
    samples: int  # samples with at least one turn
    turns: int  # turns that are done
    outcomes: dict[str, int]  # turns by outcome
    verdicts: int  # expected verdicts of the turns that are done
    scored: int  # verdicts with a value
    zeroed: dict[str, int]  # verdicts that are zero for model failure, by reason
    unscored: dict[str, int]  # verdicts without a value, by reason
    left_out: list[str]  # problems that left records of the dataset out
    totals: list[CallTotals]  # calls by role
    wall_time_s: float | None = None  # seconds from start to end; None while the run goes on
    calls: int = 0  # model calls of all replies, cached ones included
    follow_ups: int = 0  # replies that the benchmark's protocol requested more than once
    same_candidates: int = 0  # replies that a strategy chose among identical candidates
    stop_causes: dict[str, int] = {}  # replies that a filter or a limit ended
    lines: tuple[str, ...] = ()  # the summary as text
    names: dict[str, str] = {}  # the user's names, by role: tag, model, judge
    annotation_counts: tuple[int, int] = (0, 0)  # annotated questions, and annotators
    judge_card: str = ""  # the judge's calibration card, in a line
    expected: ExpectedCounts | None = None  # of the whole run; None while unknown

    @property
    def unfinished(self) -> str:
        """A warning for a run that is not finished; an empty text for one that is."""
        if self.state == "finished":
            return ""
        total = f" of {self.expected.turns}" if self.expected else ""
        return f"UNFINISHED: {self.turns}{total} turns are done; all numbers cover these turns only"


def count_replies(replies: Iterable[Reply]) -> ReplyCounts:
    """Count replies in one pass, without holding them in memory."""
    counts = ReplyCounts()
    for reply in replies:
        counts.turns += 1
        counts.outcomes[reply.outcome] += 1
        if reply.stop_cause:
            counts.stop_causes[reply.stop_cause] += 1
        counts.calls += len(reply.keys)
        counts.follow_ups += "asked again" in reply.notes
        counts.same_candidates += reply.outcome == "answered" and "same candidates" in reply.notes
    return counts


def summarise(run: "Run") -> Summary:
    """Return the summary of a run, without its judge's calibration card."""
    record = run.record
    replies = run.replies
    zeroed: Counter[str] = Counter()
    unscored: Counter[str] = Counter()
    for verdict in run.verdicts:
        if verdict.value is None:
            unscored[_root_reason(verdict.reason)] += 1
        elif verdict.by == "failure":
            zeroed[_reason_kind(verdict.reason)] += 1
    wall_time_s = None
    if record.ended is not None:
        wall_time_s = max(0.0, record.ended - record.started)
    summary = Summary(
        run=record.id,
        names=record.names,
        state=record.state,
        manifest=record.manifest,
        expected=record.expected,
        started=time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(record.started)),
        samples=len(run.groups),
        turns=replies.turns,
        outcomes=dict(sorted(replies.outcomes.items())),
        stop_causes=dict(sorted(replies.stop_causes.items())),
        verdicts=len(run.verdicts),
        scored=len(run.verdicts) - unscored.total(),
        zeroed=_most_common(zeroed),
        unscored=_most_common(unscored),
        left_out=record.left_out,
        totals=list(run.totals),
        wall_time_s=wall_time_s,
        calls=replies.calls,
        follow_ups=replies.follow_ups,
        same_candidates=replies.same_candidates,
        annotation_counts=run.annotation_counts,
    )
    return replace(summary, lines=tuple(_build_lines(summary)))


def describe_runs(summaries: Sequence[Summary]) -> list[str]:
    """Return what must be known of some runs: all lines of a single one; of several the lines that they share, and
    then a line for each with the rest. Without a run there is none."""
    if len(summaries) < 2:
        return [line for summary in summaries for line in summary.lines]
    shared = [line for line in summaries[0].lines if all(line in other.lines for other in summaries)]
    own = ["; ".join(line for line in summary.lines if line not in shared) for summary in summaries]
    return [*(f"all runs: {line}" for line in shared), *own]


def describe_replies(summary: Summary) -> str:
    """Return `10 answered, 4 refused; 3 of them blocked`."""
    text = ", ".join(f"{count} {outcome}" for outcome, count in summary.outcomes.items())
    for cause, count in summary.stop_causes.items():
        text += f"; {count} of them {cause}"
    return text


def describe_scored(summary: Summary) -> str:
    """Return `8/22 scored; 0 zeroed for model failure`."""
    return f"{summary.scored}/{summary.verdicts} scored; {sum(summary.zeroed.values())} zeroed for model failure"


def format_cost(cost: float | None) -> str:
    if cost is None:
        return "price unknown"
    return f"${cost:.4f}"


def _build_lines(summary: Summary) -> list[str]:
    lines = [_run_line(summary), _dataset_line(summary), _settings_line(summary), _turns_line(summary)]
    if summary.unfinished:
        lines.insert(0, summary.unfinished)
    lines.append(f"verdicts: {describe_scored(summary)}")
    lines += _call_lines(summary)
    for reason, count in summary.zeroed.items():
        lines.append(f"zeroed for model failure ({count}): {reason}")
    for reason, count in summary.unscored.items():
        lines.append(f"unscored ({count}): {reason}")
    for problem in summary.left_out:
        lines.append(f"left out of the dataset: {problem}")
    for total in summary.totals:
        lines.append(
            f"{total.role} calls: {total.calls} ({total.retries} retries), {format_cost(total.cost)}, "
            f"{total.tokens_in:,} tokens in, {total.tokens_out:,} out"
        )
    return lines


def _run_line(summary: Summary) -> str:
    line = f"run {summary.run} ({summary.state}), started {summary.started}"
    tag = summary.names.get("tag")
    if tag:
        line += f", tag {tag}"
    return line


def _dataset_line(summary: Summary) -> str:
    dataset = summary.manifest.dataset
    return f"dataset {dataset.name} ({dataset.digest[:8]})"


def _settings_line(summary: Summary) -> str:
    manifest = summary.manifest
    title = format_title(manifest, names=without_tag(summary.names))
    line = (
        f"model {title}, judge {manifest.judge.name}, prompts {manifest.prompts.source} ({manifest.prompts.digest[:8]})"
    )
    for name, value in manifest.options.items():
        if value not in (False, ""):
            line += f", {name} {value}"
    return line


def _turns_line(summary: Summary) -> str:
    line = f"{summary.samples} samples, {summary.turns}"
    if summary.expected and summary.turns != summary.expected.turns:
        line += f" of {summary.expected.turns}"
    line += " turns"
    replies = describe_replies(summary)
    if replies:
        line += f": {replies}"
    return line


def _call_lines(summary: Summary) -> list[str]:
    manifest = summary.manifest
    lines: list[str] = []
    if manifest.presets:
        lines.append(f"presets: {', '.join(f'{role} {name}' for role, name in manifest.presets.items())}")
    if manifest.strategy != "none":
        lines.append(f"strategy {manifest.strategy}: {summary.calls} model calls for {summary.turns} replies")
    if summary.follow_ups:
        lines.append(
            f"{summary.follow_ups} of {summary.turns} replies were requested more than once: the first reply lacked "
            "the expected output"
        )
    if summary.same_candidates:
        lines.append(
            f"WARNING: in {summary.same_candidates} turns all candidates were identical, so nothing was chosen: does "
            "the server use a fixed seed? Where it accepts one, --model-opt seed=0 gives each candidate its own"
        )
    return lines


def _root_reason(reason: str) -> str:
    """Return the last reason of `waits for turn 3, which failed: waits for turn 2, which failed: ...`."""
    return reason.rpartition("which failed: ")[2] or reason


def _reason_kind(reason: str) -> str:
    """Return the first two parts of a reason, without the model output that it may quote."""
    return ": ".join(reason.split(": ")[:2])


def _most_common(counts: Counter[str]) -> dict[str, int]:
    top = dict(counts.most_common(MAX_REASONS))
    rest = counts.total() - sum(top.values())
    if rest:
        top["other reasons"] = rest
    return top
