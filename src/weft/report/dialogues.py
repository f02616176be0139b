"""One dialogue as a page: each prompt, what each run's model saw and answered, every verdict with its reason and the
raw judge output.

Runs stand side by side, with the dataset's reference reply in a column of its own. Calls of a strategy (plans, reviews,
candidates) are shown with the reply that they led to. Thoughts are folded, since they are not part of the answer."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from weft.benchmarks.base import Benchmark, read_score_range
from weft.errors import wrap_error
from weft.report.gallery import Gallery
from weft.report.glossary import explain_name
from weft.report.html import Html, build_page, inline_text, join, tag, text_block
from weft.report.parts import PartsWriter, render_expected
from weft.report.scale import format_share
from weft.results.run import DatasetTurn, read_dataset_turn, read_messages
from weft.store.journal import CallRecord, TurnRecord
from weft.types import Image, Message, Part, Reply, Verdict
from weft.untrusted import dict_or_empty

ADAPTATIONS = {"list": "images first, then the text", "strip": "all images in one strip", "none": "without images"}
VERDICT_SOURCES = {"rule": " by rule", "failure": " model failure", "person": " by an annotator"}
MODALITIES = {"text": "text", "image": "image"}
Calls = Mapping[str, CallRecord]  # by cache key


class RunDialogue(Struct, frozen=True):
    """What one run has of one dialogue."""

    run: str  # title
    turns: Mapping[int, TurnRecord]  # by number
    verdicts: Mapping[int, Sequence[Verdict]]  # by number of the turn
    adaptation: str = ""  # how messages were adapted to the model


def describe_adaptation(takes: Mapping[str, Any]) -> str:
    """Return how messages are adapted to a model's inputs; an empty text for a model that accepts everything."""
    texts: list[str] = []
    images = takes.get("images")
    if images in ADAPTATIONS:
        texts.append(ADAPTATIONS[images])
    if takes.get("own_images") == "user" and images == "interleaved":
        texts.append("its own images in user messages")
    max_images = takes.get("most")
    if max_images == 1:
        texts.append("several images in one row")
    elif max_images:
        texts.append(f"beyond {max_images} images, the first ones in one row")
    if takes.get("drawing") in ADAPTATIONS:
        texts.append(f"for image output: {ADAPTATIONS[takes['drawing']]}")
    if takes.get("max_side"):
        texts.append(f"images at most {takes['max_side']} pixels")
    return ", ".join(texts)


class DialogueWriter(PartsWriter):
    """Builds the markup of dialogues of one benchmark."""

    def __init__(self, gallery: Gallery, benchmark: Benchmark) -> None:
        super().__init__(gallery)
        self._benchmark = benchmark
        self._metric_order = {metric: index for index, metric in enumerate(benchmark.metrics)}

    def body(self, sample: str, dialogues: Sequence[RunDialogue], calls: Calls) -> Html:
        """Return the content of a dialogue's page. `dialogues`: those of each run; `calls`: those that it shows.

        Raises WeftError if the journal has something else where a prompt, a reference or a request should be.
        """
        try:
            return self._render_body(sample, dialogues, calls)
        except Exception as error:
            raise wrap_error(f"dialogue {sample} cannot be shown", error) from error

    def _render_body(self, sample: str, dialogues: Sequence[RunDialogue], calls: Calls) -> Html:
        numbers: set[int] = set()
        for dialogue in dialogues:
            numbers.update(dialogue.turns)
        groups = ""
        if dialogues and dialogues[0].turns:
            first = next(iter(dialogues[0].turns.values()))
            groups = " · ".join(f"{axis} {group}" for axis, group in first.groups.items())
        turns = [self._render_turn(number, dialogues, calls) for number in sorted(numbers)]
        return join(tag("h1", inline_text(sample)), tag("p", inline_text(groups), class_="soft"), turns)

    def _render_turn(self, number: int, dialogues: Sequence[RunDialogue], calls: Calls) -> Html:
        turn = next(dialogue.turns[number] for dialogue in dialogues if number in dialogue.turns)
        dataset_turn = read_dataset_turn(turn)
        presentation = self._benchmark.presentation
        several = len(dialogues) > 1
        rivals: list[tuple[str, tuple[Part, ...]]] = []
        if dataset_turn.gold:
            rivals = presentation.side_by_side(dataset_turn.gold)
        if rivals:
            judged = [self._render_judged(dialogue, number, calls, several=several) for dialogue in dialogues]
            columns = [self._render_column(title, parts) for title, parts in rivals]
        else:
            judged = None
            columns = [self._render_run(dialogue, number, calls, several=several) for dialogue in dialogues]
        if dataset_turn.reference:
            columns.append(self._render_column("reference", dataset_turn.reference))
        if number < len(presentation.turn_names):
            title: Any = inline_text(presentation.turn_names[number])
        else:
            title = f"Turn {number + 1}"
        return tag(
            "section",
            tag("h2", title, tag("span", f" · {turn.modality}", class_="soft")),
            self._render_prompt(dataset_turn, with_gold=not rivals),
            judged,
            tag("div", columns, class_="columns"),
            class_="turn",
            id=f"turn-{number + 1}",
        )

    def _render_column(self, title: str, parts: Sequence[Part]) -> Html:
        return tag("div", tag("h3", inline_text(title)), self.parts(parts), class_="column")

    def _render_prompt(self, turn: DatasetTurn, *, with_gold: bool) -> Html:
        expected = None
        if with_gold and turn.gold:
            expected = render_expected(self._benchmark.presentation, turn.gold)
        return tag("div", self.parts(turn.prompt), expected, class_="prompt")

    def _render_run(self, dialogue: RunDialogue, number: int, calls: Calls, *, several: bool) -> Html:
        title = tag("h3", inline_text(dialogue.run)) if several else None
        turn = dialogue.turns.get(number)
        if turn is None:
            return tag("div", title, tag("p", "not generated yet", class_="soft"), class_="column")
        verdicts: list[Html] = []
        previous: Verdict | None = None
        for verdict in self._sort_verdicts(dialogue, number):
            verdicts.append(self._render_verdict(verdict, calls, previous))
            previous = verdict
        return tag(
            "div",
            title,
            self._render_reply(turn.reply),
            verdicts,
            self._render_seen(turn, dialogue.adaptation),
            self._render_strategy_calls(turn.reply, calls),
            class_="column",
        )

    def _render_judged(self, dialogue: RunDialogue, number: int, calls: Calls, *, several: bool) -> Html:
        """Return the verdicts about outputs that stand side by side."""
        title = tag("h3", inline_text(dialogue.run)) if several else None
        pieces: list[Html] = []
        previous: Verdict | None = None
        for verdict in self._sort_verdicts(dialogue, number):
            if verdict.merged_from:
                pieces.append(tag("p", tag("b", inline_text(verdict.reason)), class_="small"))
                pieces += [self._render_verdict(variant, calls) for variant in verdict.merged_from]
            else:
                pieces.append(self._render_verdict(verdict, calls, previous))
            previous = verdict
        return tag("div", title, pieces, class_="judged")

    def _sort_verdicts(self, dialogue: RunDialogue, number: int) -> list[Verdict]:
        last = len(self._metric_order)
        verdicts = dialogue.verdicts.get(number, ())
        return sorted(verdicts, key=lambda verdict: self._metric_order.get(verdict.metric, last))

    def _render_reply(self, reply: Reply) -> Html:
        parts = self.parts(reply.parts)
        if reply.outcome == "answered":
            note = tag("p", inline_text(reply.reason), class_="soft small") if reply.reason else None
            return join(parts, note)
        outcome = reply.outcome
        if reply.stop_cause:
            outcome += f" ({reply.stop_cause})"
        return join(tag("p", f"{outcome}: ", inline_text(reply.reason), class_="warning"), parts)

    def _render_verdict(self, verdict: Verdict, calls: Calls, previous: Verdict | None = None) -> Html:
        """Return a verdict. A call about several metrics is shown with the first of them."""
        score = "unscored" if verdict.value is None else format_share(self._benchmark, verdict.value)
        chip = tag("span", score, class_=f"chip {score_class(verdict.value)}")
        metric = explain_name(verdict.metric, self._benchmark.presentation.glossary)
        head = [chip, " ", metric, self._render_details(verdict, calls)]
        if verdict.merged_from:
            variants = [self._render_verdict(variant, calls) for variant in verdict.merged_from]
            folded = tag("details", tag("summary", f"{len(variants)} judgements"), variants, class_="seen")
            return tag("div", head, folded, class_="verdict")
        raw: list[Html] = []
        if previous is None or previous.keys != verdict.keys:
            raw = self._render_judge_calls(verdict, calls)
        return tag("div", head, text_block(verdict.reason, "words small"), raw, class_="verdict")

    def _render_details(self, verdict: Verdict, calls: Calls) -> Html:
        details: list[str] = []
        judge_score = self._judge_score(verdict, calls)
        if judge_score:
            details.append(judge_score)
        if verdict.standard_deviation is not None:
            details.append(f"standard deviation {format_share(self._benchmark, verdict.standard_deviation)}")
        text = f" {verdict.variant}{VERDICT_SOURCES.get(verdict.by, '')}"
        if details:
            text += f" ({', '.join(details)})"
        return tag("span", text, class_="soft")

    def _render_judge_calls(self, verdict: Verdict, calls: Calls) -> list[Html]:
        """Return the raw output of each judge call of a verdict, and what the judge saw in the first."""
        pieces: list[Html] = []
        for key in verdict.keys:
            if key in calls:
                output = calls[key].raw or _read_reply(calls[key]).text
                pieces.append(tag("details", tag("summary", "raw judge output"), text_block(output, "words small")))
        if verdict.keys and verdict.keys[0] in calls:
            messages = self._render_messages(_read_request_messages(calls[verdict.keys[0]]))
            pieces.append(tag("details", tag("summary", "what the judge saw"), messages, class_="seen"))
        return pieces

    def _judge_score(self, verdict: Verdict, calls: Calls) -> str:
        """Return the judge's own score, if its scale is not the one that is shown."""
        score = verdict.score
        value = verdict.value
        if verdict.by != "judge" or score is None or value is None:
            return ""
        if math.isclose(score, self._benchmark.presentation.max_score * value, abs_tol=1e-6):
            return ""
        call = next((calls[key] for key in verdict.keys if key in calls), None)
        if call is None:
            return ""
        scale = score_range(msgspec.json.decode(call.request).get("schema"), verdict.metric)
        if scale is None:
            return ""
        low, high = scale
        if not math.isclose((score - low) / (high - low), value, abs_tol=1e-3):
            return ""
        text = f"the judge said {score:.4g} of {high:g}"
        if verdict.merged_from:
            text += " on average"
        return text

    def _render_seen(self, turn: TurnRecord, adaptation: str) -> Html:
        messages = read_messages(turn.messages_json)
        images = 0
        for message in messages:
            images += sum(isinstance(part, Image) for part in message.parts)
        title = f"what the model saw: {_count(len(messages), 'message')}, {_count(images, 'image')}"
        if adaptation:
            title += f" ({adaptation})"
        return tag("details", tag("summary", title), self._render_messages(messages), class_="seen")

    def _render_strategy_calls(self, reply: Reply, calls: Calls) -> Html | None:
        """Return the calls of a strategy, folded; None for a reply of one call."""
        if len(reply.keys) < 2:
            return None
        pieces: list[Html] = []
        for number, key in enumerate(reply.keys, start=1):
            if key in calls:
                pieces.append(self._render_strategy_call(number, calls[key], reply))
        title = f"{len(reply.keys)} calls for this reply"
        return tag("details", tag("summary", title), pieces, class_="seen calls")

    def _render_strategy_call(self, number: int, call: CallRecord, reply: Reply) -> Html:
        output = _read_reply(call)
        title = MODALITIES.get(msgspec.json.decode(call.request)["want"], "text and images")
        if call.role != "model":
            title = f"{call.role}, {title}"
        if output.images and set(output.images) == set(reply.images):
            title += ", chosen"
        prompt = self._render_messages(_read_request_messages(call)[-1:])
        folded = tag("details", tag("summary", "prompt"), prompt)
        return join(tag("p", f"call {number}: {title}", class_="role"), self._render_reply(output), folded)

    def _render_messages(self, messages: Sequence[Message]) -> list[Html]:
        return [join(tag("p", message.role, class_="role"), self.parts(message.parts)) for message in messages]


def build_dialogue_page(title: str, body: Html, *, home: str, before: str | None, after: str | None) -> str:
    """Return a dialogue's page, with links to the list (`home`) and to its neighbours."""
    previous = tag("a", "previous (k)", href=before, class_="previous") if before else tag("span")
    following = tag("a", "next (j)", href=after, class_="next") if after else tag("span")
    steps = tag("p", previous, tag("a", "all dialogues", href=home, class_="all"), following, class_="steps small")
    return build_page(title, tag("main", steps, body, steps), script="dialogue.js", kind="dialogue")


def score_range(schema: Any, metric: str) -> tuple[float, float] | None:
    """Return the lowest and the highest score that a judge may give; None if its schema has not one score for the
    metric."""
    properties = dict_or_empty(dict_or_empty(schema).get("properties"))
    if metric in properties:
        properties = dict_or_empty(dict_or_empty(properties[metric]).get("properties"))
    ranges: list[tuple[float, float]] = []
    for schema_field in properties.values():
        try:
            ranges.append(read_score_range(dict_or_empty(schema_field)))
        except (ValueError, TypeError):
            continue
    if len(ranges) != 1:
        return None
    return ranges[0]


def score_class(share: float | None) -> str:
    """Return the CSS class with a score's color."""
    if share is None:
        return "sx"
    return f"s{max(0, min(10, round(share * 10)))}"


def _count(number: int, noun: str) -> str:
    if number == 1:
        return f"1 {noun}"
    return f"{number} {noun}s"


def _read_reply(call: CallRecord) -> Reply:
    return msgspec.json.decode(call.reply, type=Reply)


def _read_request_messages(call: CallRecord) -> tuple[Message, ...]:
    return msgspec.convert(msgspec.json.decode(call.request)["messages"], tuple[Message, ...])
