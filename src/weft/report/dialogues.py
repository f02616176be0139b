"""One dialogue as a page: what was asked, what each run's model saw and answered, every verdict with its reason and the
judge's own words.

Runs stand side by side, the dataset's true reply in a column of its own. Plans, reviews and candidates of a strategy
are calls behind a reply, and are shown with it; thoughts are folded, for they are no part of the answer."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec
from msgspec import Struct

from weft.benchmarks.base import Benchmark, read_score_range
from weft.report.gallery import Gallery
from weft.report.html import Html, build_page, inline_text, join, tag, text_block
from weft.report.scale import format_share
from weft.results.run import read_dataset_turn, read_messages
from weft.store.journal import CallRecord, TurnRecord
from weft.types import Image, Message, Part, Reply, Thought, Verdict
from weft.untrusted import dict_or_empty

TINY = 128  # pictures up to this side are enlarged without blur


class RunDialogue(Struct, frozen=True):
    """What one run made of one dialogue."""

    run: str
    turns: Mapping[int, TurnRecord]
    verdicts: Mapping[int, Sequence[Verdict]]
    adaptation: str = ""  # how what was to be seen was reshaped for the model


def describe_adaptation(takes: Mapping[str, Any]) -> str:
    """A model's fit in words; nothing for one that takes everything as it is."""
    shapes = {"list": "pictures first, then the text", "strip": "all pictures in one strip", "none": "without pictures"}
    told = [shapes[takes["images"]]] if takes.get("images") in shapes else []
    told += (
        ["its own pictures in the user's messages"]
        if takes.get("own_images") == "user" and takes.get("images") == "interleaved"
        else []
    )
    most = takes.get("most")
    told += (
        [f"beyond {most} pictures the first in one row" if most > 1 else "several pictures in one row"] if most else []
    )
    told += [f"when it draws: {shapes[takes['drawing']]}"] if takes.get("drawing") in shapes else []
    told += [f"pictures at most {takes['max_side']} pixels"] if takes.get("max_side") else []
    return ", ".join(told)


class DialogueWriter:
    def __init__(self, gallery: Gallery, benchmark: Benchmark) -> None:
        self._gallery = gallery
        self._benchmark = benchmark
        self._order = {metric: at for at, metric in enumerate(benchmark.metrics)}

    def body(self, sample: str, sides: Sequence[RunDialogue], calls: Mapping[str, CallRecord]) -> Html:
        if sides:
            first = next(iter(sides[0].turns.values()), None)
        else:
            first = None
        groups = " · ".join(f"{key} {value}" for key, value in (first.groups if first else {}).items())
        numbers = sorted({number for side in sides for number in side.turns})
        return join(
            tag("h1", inline_text(sample)),
            tag("p", inline_text(groups), class_="soft"),
            [self._turn(number, sides, calls) for number in numbers],
        )

    def _turn(self, number: int, sides: Sequence[RunDialogue], calls: Mapping[str, CallRecord]) -> Html:
        any_turn = next(side.turns[number] for side in sides if number in side.turns)
        facts = read_dataset_turn(any_turn)
        presentation = self._benchmark.presentation
        rivals = presentation.side_by_side(facts.gold) if facts.gold else []
        turn_names = presentation.turn_names
        columns = [
            tag("div", tag("h3", inline_text(title)), self.parts(parts), class_="column") for title, parts in rivals
        ]
        if not rivals:
            columns = [self._side(side, number, calls, several=len(sides) > 1) for side in sides]
        if facts.reference:
            columns.append(tag("div", tag("h3", "the true reply"), self.parts(facts.reference), class_="column truth"))
        return tag(
            "section",
            tag(
                "h2",
                inline_text(turn_names[number]) if number < len(turn_names) else f"Turn {number + 1}",
                tag("span", f" · {any_turn.modality}", class_="soft"),
            ),
            tag("div", self.parts(facts.prompt), self._due(facts.gold) if not rivals else None, class_="asked"),
            [self._judged(side, number, calls, several=len(sides) > 1) for side in sides] if rivals else None,
            tag("div", columns, class_="columns"),
            class_="turn",
            id=f"turn-{number + 1}",
        )

    def _due(self, gold: Any) -> Html | None:
        if not gold:
            return None
        listed = self._benchmark.presentation.describe_gold(gold)
        if listed:
            lines = tag("ol", [tag("li", inline_text(one)) for one in listed])
            return tag("div", tag("span", "what is due", class_="soft small"), lines, class_="due small")
        return tag("details", tag("summary", "what is due"), _nested(gold), class_="due small")

    def _side(self, side: RunDialogue, number: int, calls: Mapping[str, CallRecord], *, several: bool) -> Html:
        turn = side.turns.get(number)
        if several:
            title = tag("h3", inline_text(side.run))
        else:
            title = None
        if turn is None:
            return tag("div", title, tag("p", "not asked yet", class_="soft"), class_="column")
        found = sorted(
            side.verdicts.get(number, ()), key=lambda verdict: self._order.get(verdict.metric, len(self._order))
        )
        verdicts = [
            self._verdict(verdict, calls, before) for verdict, before in zip(found, (None, *found), strict=False)
        ]
        return tag(
            "div",
            title,
            self._reply(turn.reply),
            verdicts,
            self._seen(turn, side.adaptation),
            self._behind(turn.reply, calls),
            class_="column",
        )

    def _judged(self, side: RunDialogue, number: int, calls: Mapping[str, CallRecord], *, several: bool) -> Html:
        """The verdicts on what stands side by side."""
        found = sorted(
            side.verdicts.get(number, ()), key=lambda verdict: self._order.get(verdict.metric, len(self._order))
        )
        made: list[Html] = []
        for verdict, before in zip(found, (None, *found), strict=False):
            if not verdict.merged_from:
                made.append(self._verdict(verdict, calls, before))
                continue
            made.append(tag("p", tag("b", inline_text(verdict.reason)), class_="small"))
            made += [self._verdict(one, calls) for one in verdict.merged_from]
        return tag("div", tag("h3", inline_text(side.run)) if several else None, made, class_="judged")

    def _reply(self, reply: Reply) -> Html:
        if reply.stop_cause:
            how = f"{reply.outcome} ({reply.stop_cause})"
        else:
            how = reply.outcome
        if reply.outcome != "answered":
            reason = tag("p", f"{how}: ", inline_text(reply.reason), class_="warning")
        else:
            reason = None
        if reply.outcome == "answered" and reply.reason:
            noted = tag("p", inline_text(reply.reason), class_="soft small")
        else:
            noted = None
        return join(reason, self.parts(reply.parts), noted)

    def _verdict(self, verdict: Verdict, calls: Mapping[str, CallRecord], before: Verdict | None = None) -> Html:
        """What a judge said of several metrics at once is shown with the first of them."""
        if verdict.value is None:
            told = "unscored"
        else:
            told = format_share(self._benchmark, verdict.value)
        chip = tag("span", told, class_=f"chip {score_class(verdict.value)}")
        by = {"rule": " by rule", "failure": " the model's failure", "person": " by a person"}.get(verdict.by, "")
        said = [own] if (own := self._own_score(verdict, calls)) else []
        said += (
            [f"deviation {format_share(self._benchmark, verdict.standard_deviation)}"]
            if verdict.standard_deviation is not None
            else []
        )
        told = tag("span", f" {verdict.variant}{by}", f" ({', '.join(said)})" if said else "", class_="soft")
        if verdict.merged_from:
            behind = [self._verdict(one, calls) for one in verdict.merged_from]
            shown = tag("details", tag("summary", f"{len(behind)} judgements"), behind, class_="seen")
            return tag("div", chip, f" {verdict.metric}", told, shown, class_="verdict")
        raw = [
            tag(
                "details",
                tag("summary", "the judge's own words"),
                text_block(record.raw or _text(record), "words small"),
            )
            for key in verdict.keys
            if (record := calls.get(key)) is not None
        ]
        shown = [self._asked(calls[key]) for key in verdict.keys[:1] if key in calls]
        if before is not None and before.keys == verdict.keys:
            raw, shown = [], []
        return tag(
            "div",
            chip,
            f" {verdict.metric}",
            told,
            text_block(verdict.reason, "words small"),
            raw,
            shown,
            class_="verdict",
        )

    def _own_score(self, verdict: Verdict, calls: Mapping[str, CallRecord]) -> str:
        """What the judge said and of how much, where its scale is not the one that is shown."""
        score = verdict.score
        value = verdict.value
        max_score = self._benchmark.presentation.max_score
        if (
            verdict.by != "judge"
            or score is None
            or value is None
            or math.isclose(score, max_score * value, abs_tol=1e-6)
        ):
            return ""
        asked = next((calls[key].request for key in verdict.keys if key in calls), None)
        if asked:
            scale = score_range(msgspec.json.decode(asked).get("schema"), verdict.metric)
        else:
            scale = None
        if scale is None or not math.isclose((score - scale[0]) / (scale[1] - scale[0]), value, abs_tol=1e-3):
            return ""
        return f"the judge said {score:.4g} of {scale[1]:g}{' on average' if verdict.merged_from else ''}"

    def _asked(self, record: CallRecord) -> Html:
        asked = msgspec.convert(msgspec.json.decode(record.request)["messages"], tuple[Message, ...])
        return tag("details", tag("summary", "what the judge saw"), self._messages(asked), class_="seen")

    def _seen(self, turn: TurnRecord, fitted: str) -> Html:
        seen = read_messages(turn.messages_json)
        images = sum(isinstance(part, Image) for message in seen for part in message.parts)
        said = f"what the model saw: {len(seen)} message{'s' * (len(seen) != 1)}, {images} picture{'s' * (images != 1)}"
        said += f" ({fitted})" if fitted else ""
        return tag("details", tag("summary", said), self._messages(seen), class_="seen")

    def _behind(self, reply: Reply, calls: Mapping[str, CallRecord]) -> Html | None:
        """The calls of a strategy."""
        if len(reply.keys) < 2:
            return None
        made: list[Html] = []
        for number, key in enumerate(reply.keys, start=1):
            record = calls.get(key)
            if record is not None:
                said = msgspec.json.decode(record.reply, type=Reply)
                what = {"text": "words", "image": "picture"}.get(
                    msgspec.json.decode(record.request)["want"], "words and pictures"
                )
                if record.role != "model":
                    what = f"{record.role}, {what}"
                if said.images and set(said.images) == set(reply.images):
                    kept = ", the one that counts"
                else:
                    kept = ""
                made.append(
                    join(
                        tag("p", f"call {number}: {what}{kept}", class_="role"),
                        self._reply(said),
                        self._asked_model(record),
                    )
                )
        return tag("details", tag("summary", f"{len(reply.keys)} calls behind this reply"), made, class_="seen calls")

    def _asked_model(self, record: CallRecord) -> Html:
        asked = msgspec.convert(msgspec.json.decode(record.request)["messages"], tuple[Message, ...])
        return tag("details", tag("summary", "what it was asked"), self._messages(asked[-1:]))

    def _messages(self, shown: Sequence[Message]) -> list[Html]:
        return [join(tag("p", message.role, class_="role"), self.parts(message.parts)) for message in shown]

    def parts(self, parts: Sequence[Part]) -> list[Html]:
        """Texts and pictures in their order; pictures that follow one another share a row."""
        made: list[Html] = []
        row: list[Html] = []
        for part in parts:
            if isinstance(part, Image):
                row.append(self.image(part))
                continue
            if row:
                made.append(tag("div", row, class_="pictures"))
                row = []
            if isinstance(part, Thought):
                made += (
                    [
                        tag(
                            "details",
                            tag("summary", "its thoughts"),
                            text_block(part.text.strip(), "words small"),
                            class_="thought",
                        )
                    ]
                    if part.text
                    else []
                )
            elif part.text.strip():
                made.append(text_block(part.text.strip()))
        if row:
            return [*made, tag("div", row, class_="pictures")]
        return made

    def image(self, image: Image) -> Html:
        href = self._gallery.href(image)
        if href is None:
            return tag("p", f"picture {image.digest[:12]} is not in the store", class_="warning")
        if max(image.width, image.height) <= TINY:
            kind = "shown tiny"
        else:
            kind = "shown"
        size = f"{image.width} x {image.height}"
        inside = href.startswith("#")
        shown = tag(
            "img",
            src=None if inside else href,
            data_picture=href[1:] if inside else None,
            alt=f"picture {image.digest[:8]}, {size}",
            title=size,
            class_=kind,
            loading="lazy",
            decoding="async",
            width=image.width,
            height=image.height,
        )
        if inside:
            linked = shown
        else:
            linked = tag("a", shown, href=href, target="_blank", rel="noopener")
        return tag("figure", linked, tag("figcaption", f"Image #{image.label}") if image.label is not None else None)


def build_dialogue_page(title: str, body: Html, *, home: str, before: str | None, after: str | None) -> str:
    steps = tag(
        "p",
        tag("a", "before (k)", href=before, class_="before") if before else tag("span"),
        tag("a", "all dialogues", href=home, class_="all"),
        tag("a", "next (j)", href=after, class_="next") if after else tag("span"),
        class_="steps small",
    )
    return build_page(title, tag("main", steps, body, steps), script="dialogue.js", kind="dialogue")


def score_range(schema: Any, metric: str) -> tuple[float, float] | None:
    """The lowest and the highest score that a judge was allowed, if its schema has one score for the metric."""
    inner = dict_or_empty(dict_or_empty(schema).get("properties"))
    found: list[tuple[float, float]] = []
    for one in dict_or_empty(dict_or_empty(inner[metric]).get("properties") if metric in inner else inner).values():
        try:
            found.append(read_score_range(dict_or_empty(one)))
        except (ValueError, TypeError):
            continue
    if len(found) == 1:
        return found[0]
    return None


def score_class(share: float | None) -> str:
    if share is None:
        return "sx"
    return f"s{max(0, min(10, round(share * 10)))}"


def _text(record: CallRecord) -> str:
    return msgspec.json.decode(record.reply, type=Reply).text


def _nested(value: Any) -> Html:
    """Gold data of any benchmark as nested lists."""
    if isinstance(value, dict):
        items = cast(dict[str, Any], value).items()
        shown = [
            (key, one)
            for key, one in items
            if one is not None and one is not False and one != "" and one != [] and key != "type"
        ]
        return tag("ul", [tag("li", tag("b", inline_text(str(key))), " ", _nested(one)) for key, one in shown])
    if isinstance(value, list):
        return tag("ol", [tag("li", _nested(one)) for one in cast(list[Any], value)])
    return tag("span", str(value), class_="words", dir="auto")
