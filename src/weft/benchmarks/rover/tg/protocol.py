"""ROVER-TG's protocol: a question about a picture or two, answered with a picture of one's own on the way (`visual`), in words alone
(`text`), or both, item by item, so that the two can be compared.

A reply without a picture is asked for again, twice at most. If none comes, the picture on the way and its alignment are zero; the answer
of the first reply counts as it is. A record without a true picture on the way owes no verdict about it."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from weft.benchmarks.agreed import Agreed
from weft.benchmarks.base import Answered, Benchmark, Groups, Item, Terms
from weft.benchmarks.official import VARIANT
from weft.benchmarks.preparation import Preparation
from weft.benchmarks.presentation import Presentation
from weft.benchmarks.prompts import Rubrics
from weft.benchmarks.rover import agreement
from weft.benchmarks.rover.asking import InsistOnImage, instructions, request
from weft.benchmarks.rover.facts import RoverFacts
from weft.benchmarks.rover.ig.rubric import ALIGNMENT
from weft.benchmarks.rover.outputs import Outputs
from weft.benchmarks.rover.tg import answers, data, paths, rubric, tables
from weft.benchmarks.rover.tg.data import VISUAL, Puzzle
from weft.benchmarks.rover.thinking import after_picture, words_of
from weft.models.thinking import parted
from weft.types import Dialogue, Message, Reply, Sample, Table, Turn, Verdict
from weft.untrusted import fields

Mode = Annotated[
    Literal["visual", "text", "both"],
    Meta(description="Answer with a picture of one's own on the way, in words alone, or both on the same items, which are then paired."),
]
Official = Annotated[
    bool, Meta(description="Have the judge look at what the released code shows it too, a missing text; for the official row.")
]


HERE = Path(__file__).parent


class TGOptions(Struct, frozen=True):
    mode: Mode = "visual"
    official: Official = False


class TGPresentation(Presentation, frozen=True):
    def describe_options(self, options: TGOptions) -> list[str]:
        return [options.mode, *(["official"] if options.official else [])]

    def describe_outputs(self, options: TGOptions) -> list[str]:
        return self.describe_options(options)

    def canonical_group(self, axis: str, name: str) -> str:
        return data.canonical(axis, name)

    def agreement_tables(self, found: Agreed) -> Iterable[Table]:
        return agreement.tables(found, {"IR": rubric.WAY, "Align.": ALIGNMENT}, "figure9")

    def describe_gold(self, gold: Any) -> list[str]:
        facts = fields(gold)
        return [f"the answer: {facts['answer']}"] if facts.get("answer") else []


class TGPreparation(Preparation, frozen=True):
    def rubrics(self, benchmark: Benchmark, prompts: str) -> Rubrics:
        if prompts.startswith("official:"):
            return rubric.official(Path(prompts.removeprefix("official:")), super().rubrics(benchmark, "weft"))
        return super().rubrics(benchmark, prompts)


class RoverTG(Benchmark):
    name = "rover-tg"
    version = "1"
    metrics = (rubric.WAY, ALIGNMENT, rubric.ACCURACY, rubric.TRACK, *rubric.IN_WORDS.values())
    Options = TGOptions
    axes = ("scenario", "type")
    official = rubric.OFFICIAL
    follow_up = InsistOnImage(HERE)
    presentation = TGPresentation(title="ROVER-TG", max_score=100.0, digits=1, turn_names=tuple(tables.MODES.values()))
    preparation = TGPreparation(outputs=Outputs)

    load = staticmethod(data.load)  # pyright: ignore[reportAssignmentType]
    tables = staticmethod(tables.tables)  # pyright: ignore[reportAssignmentType]

    def includes(self, turn: Turn, options: TGOptions) -> bool:
        return options.mode == "both" or (options.mode == "visual") == (turn.number == VISUAL)

    def build_messages(self, sample: Sample, turn: Turn, dialogue: Dialogue, options: TGOptions) -> tuple[Message, ...]:
        puzzle: Puzzle = turn.gold
        name = f"{'ask' if turn.number == VISUAL else 'text'}_{puzzle.kind.replace('-', '_')}"
        return request(instructions(HERE)[name], turn.words, puzzle.shown(turn.number))

    def metrics_for(self, turn: Turn) -> tuple[str, ...]:
        puzzle: Puzzle = turn.gold
        answer = rubric.TRACK if puzzle.is_track else rubric.ACCURACY
        if turn.number != VISUAL:
            return (rubric.IN_WORDS[answer],)
        return (*((rubric.WAY,) if puzzle.has_way else ()), ALIGNMENT, answer)

    def questions(self, answered: Answered) -> Iterable[Item]:
        answer = self._answer(answered)
        if answered.turn.number != VISUAL:
            return [answer]
        due = [metric for metric in self.metrics_for(answered.turn) if metric in (rubric.WAY, ALIGNMENT)]
        made, said = answered.reply.picture, words_of(answered.reply)
        if made is None:
            why = "it made no picture"
            return [answer, *(answered.verdict(metric, 0.0, why, by="failure") for metric in due)]
        asked: list[Item] = [rubric.about(metric, answered, made, said) for metric in due if said or metric == rubric.WAY]
        if said:
            return [answer, *asked]
        silent = answered.verdict(ALIGNMENT, 0.0, "it gives no answer in words", detail=RoverFacts(silent=True))
        theirs = [rubric.about(ALIGNMENT, answered, made, "", variant=VARIANT)] if answered.options.official else []
        return [answer, *asked, silent, *theirs]

    def _answer(self, answered: Answered) -> Verdict:
        puzzle: Puzzle = answered.turn.gold
        said, metric = spoken(answered.reply), self.metrics_for(answered.turn)[-1]
        if puzzle.is_track:
            found = paths.track(said, puzzle.answer, puzzle.source.width, puzzle.source.height)
            if found is None:
                return answered.verdict(metric, 0.0, "it names no path", by="failure")
            share, away = found
            why = f"its path lies {100 * away:.1f}% of the diagonal away on average"
            return answered.verdict(metric, share, why, detail=RoverFacts(away=away))
        if not said:
            return answered.verdict(metric, 0.0, "it gives no answer in words", by="failure")
        right = answers.is_right(puzzle.kind, said, puzzle.answer)
        return answered.verdict(metric, float(right), f"said {answers.final(said)[:200]!r}; {puzzle.answer[:200]!r} is right")

    def headline(self, verdicts: Sequence[Verdict], groups: Groups) -> Terms:
        """Whether the answers are right, with a picture on the way where they were asked for so."""
        with_picture = [verdict for verdict in verdicts if verdict.metric == rubric.ACCURACY]
        in_words = [verdict for verdict in verdicts if verdict.metric == rubric.IN_WORDS[rubric.ACCURACY]]
        return [(1.0, with_picture or in_words)]


def spoken(reply: Reply) -> str:
    """The words that an answer is taken from, thinking aside: all of them where it is marked, else those after the last picture."""
    whole, after = parted(words_of(reply))[1] or words_of(reply), parted(after_picture(reply))[1]
    return whole if answers.STRONG.search(whole) else after or whole
