"""A made-up benchmark with everything that the next ones need: two directions under an option, several scores from one
nested reply, a derived metric, a check of pixels that may spare the judge, a macro mean, strict and official rows."""

import json
from typing import Annotated, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from weft.benchmarks import Benchmark
from weft.benchmarks.prompts import fence, fill_slots, object_schema
from weft.benchmarks.records import Records
from weft.benchmarks.rows import build_mean_cell, build_rows
from weft.calls.structured_output import UnusableReply
from weft.types import Message, Sample, Score, Table, Text, Turn

BEDS = ("roses", "herbs", "trees")
ENTRY = object_schema(reasoning={"type": "string"}, score={"type": "integer", "minimum": 1, "maximum": 5})
DRAWN = ("visual", "alignment", "reasoning")
INSIDE = {"visual": "picture", "alignment": "picture", "reasoning": "thoughts"}


class GardenOptions(Struct, frozen=True):
    mode: Annotated[Literal["draw", "tell", "both"], Meta(description="Which direction: pictures, words, or both.")] = (
        "both"
    )
    threshold: Annotated[float, Meta(description="Mean difference of pixels under which a picture is a copy.")] = 2.0
    polite: Annotated[bool, Meta(description="Say please.")] = False


class GardenRecords(Records):
    def sample(self, name, record):
        if record["bed"] not in BEDS:
            self.fail(name, "bed", f"{record['bed']!r} is none of {', '.join(BEDS)}")
        picture = self.load_image(name, "picture", record["picture"])
        turns = tuple(
            Turn(
                number,
                (picture, Text(turn["ask"])),
                turn["want"],
                tuple(map(Text, turn.get("true", []))),
                gold=turn.get("true"),
            )
            for number, turn in enumerate(record["turns"])
        )
        return Sample(record["id"], turns, groups={"bed": record["bed"]})


class Garden(Benchmark):
    name, version = "garden", "1"
    metrics = (*DRAWN, "change", "telling", "woven", "held")
    derived_metrics = ("held",)
    Options = GardenOptions
    axes = ("bed",)

    def load(self, data, blobs):
        records = json.loads((data / "garden.json").read_text())
        return GardenRecords(data / "garden.json", data, blobs).dataset(self.name, records)

    def includes(self, turn, options):
        return options.mode == "both" or (turn.modality == "image") == (options.mode == "draw")

    def build_messages(self, sample, turn, dialogue, options):
        return (Message("user", (*turn.prompt, *((Text("Please."),) if options.polite else ()))),)

    def metrics_for(self, turn):
        return {"image": (*DRAWN, "change"), "text": ("telling",), "interleaved": ("telling", "woven")}[turn.modality]

    def questions(self, judged_turn):
        turn, texts = judged_turn.turn, judged_turn.rubrics.texts
        asked = fence([Text(turn.prompt_text)], "what was asked for")
        if turn.modality == "image":
            before, after = turn.prompt[0], judged_turn.image
            thoughts = fence([Text(judged_turn.reply.thoughts or "(nothing)")], "what it thought")
            parts = fill_slots(
                texts["draw"], {"asked": asked, "thoughts": thoughts, "before": [before], "after": [after]}
            )
            yield judged_turn.ask(
                DRAWN,
                parts,
                object_schema(
                    picture=object_schema(visual=ENTRY, alignment=ENTRY), thoughts=object_schema(reasoning=ENTRY)
                ),
            )
            yield judged_turn.check("change", lambda blobs: [self.changed(judged_turn, blobs)])
            return
        parts = fill_slots(
            texts["tell"],
            {"asked": asked, "reference": turn.reference, "reply": fence(judged_turn.reply.output, "the reply")},
        )
        if turn.modality == "text":
            yield judged_turn.ask("telling", parts, ENTRY)
        else:
            yield judged_turn.ask(("telling", "woven"), parts, object_schema(telling=ENTRY, woven=ENTRY))

    def changed(self, judged_turn, blobs):
        from PIL import ImageChops, ImageStat

        before, after = judged_turn.turn.prompt[0], judged_turn.image
        one, two = (blobs.decode(image).convert("RGB") for image in (before, after))
        apart = sum(ImageStat.Stat(ImageChops.difference(one, two.resize(one.size))).mean) / 3
        if apart < judged_turn.options.threshold:
            return judged_turn.verdict(
                "change", 0.0, f"nearly the picture it was given: {apart:.2f} apart", by="failure"
            )
        return judged_turn.ask(
            "change", fill_slots(judged_turn.rubrics.texts["change"], {"before": [before], "after": [after]}), ENTRY
        )

    def to_scores(self, question, found):
        if question.metrics != DRAWN:
            return super().to_scores(question, found)
        entries = {metric: found[INSIDE[metric]][metric] for metric in DRAWN}
        if not all(entry["reasoning"] for entry in entries.values()):
            raise UnusableReply("every score needs a reason")
        return [
            Score(metric, (one["score"] - 1) / 4, one["reasoning"], one["score"]) for metric, one in entries.items()
        ]

    def merge_variants(self, verdicts):
        """`held`: the alignment, at most the visual score, for each judgement by itself."""
        visual = {(v.sample, v.turn, v.variant): v for v in verdicts if v.metric == "visual"}
        held = []
        for verdict in verdicts:
            other = visual.get((verdict.sample, verdict.turn, verdict.variant))
            if verdict.metric == "alignment" and other is not None:
                both = None not in (verdict.value, other.value)
                held.append(
                    replace(verdict, metric="held", value=min(verdict.value, other.value) if both else None, score=None)
                )
        return super().merge_variants([*verdicts, *held])

    def headline(self, verdicts, groups):
        """Beds weigh alike."""
        return [(1 / len(BEDS), [v for v in verdicts if groups[v.sample]["bed"] == bed]) for bed in BEDS]

    def tables(self, runs):
        def cells(run, official):
            kept = [v for v in run.verdicts if not (official and v.by == "failure")]
            parts = {bed: [v for v in kept if run.groups[v.sample]["bed"] == bed] for bed in BEDS}
            parts = {bed: some for bed, some in parts.items() if some}
            macro = (
                build_mean_cell([(1 / len(parts), some) for some in parts.values()]) if parts else build_mean_cell([])
            )
            return {**{bed: build_mean_cell(some) for bed, some in parts.items()}, "Macro": macro}

        yield Table("Gardens", (*BEDS, "Macro"), build_rows(runs, cells))
