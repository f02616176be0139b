"""The words weft is made of. Frozen data, no I/O: read this first.

    data files -> Sample -> what the model sees -> Model -> Reply                      generating
    Replies of one run, or of two -> Questions -> Judge -> Verdicts                    judging
    Verdicts -> settle -> Tables -> report                                             looking

An `Image` is a digest, never bytes. A `Reply` has a typed outcome. A `Verdict` is a share of full marks or unscored: no error is a number.
"""

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol

from msgspec import Struct
from msgspec.structs import asdict, replace

Role = Literal["system", "user", "assistant"]
Kind = Literal["text", "image", "interleaved"]
Outcome = Literal["answered", "refused", "empty", "failed"]
Note = Literal["asked again", "same candidates", "stand-in"]  # what happened on the way to a reply
Ended = Literal["", "blocked", "truncated"]  # how a reply ended, where its outcome does not say: a filter's doing, a limit's
MENTION = re.compile(r"Image #(\d{1,6})(?!\d)")  # a picture that a dialogue's text calls by its number, 1-based


class State(Struct, frozen=True, omit_defaults=True):
    """What a provider wants back with a part, untouched. `of` is the endpoint that gave it: no other is ever sent it."""

    data: str
    of: str = ""


class Text(Struct, frozen=True, tag="text", omit_defaults=True):
    text: str
    state: State | None = None


class Image(Struct, frozen=True, tag="image", omit_defaults=True):
    """A picture in the blob store. `label` is the number that the text around it calls it by, if any."""

    digest: str
    media_type: str
    width: int
    height: int
    size: int
    label: int | None = None
    state: State | None = None


class Thought(Struct, frozen=True, tag="thought", omit_defaults=True):
    """Reasoning that a model shows but does not say: no part of its answer, and of no history but its own."""

    text: str = ""
    state: State | None = None


Part = Text | Image | Thought


def mentions(text: str) -> list[int]:
    """Picture numbers in order of mention, repeats kept."""
    return [int(number) for number in MENTION.findall(text)]


def caption(number: int) -> Text:
    return Text(f"Image #{number}:")


class Message(Struct, frozen=True):
    role: Role
    parts: tuple[Part, ...]


def check_messages(messages: tuple[Message, ...]) -> None:
    """Raises TypeError for anything in a message that is no part of one: what a benchmark wrote is told before it is sent."""
    for message in messages:
        found: tuple[Any, ...] = message.parts
        for part in found:
            if not isinstance(part, Text | Image | Thought):
                raise TypeError(f"a part of a message is a {type(part).__name__}, {str(part)[:60]!r}; parts are Text, Image or Thought")
            text: Any = "" if isinstance(part, Image) else part.text
            if not isinstance(text, str):
                raise TypeError(f"the text of a {type(part).__name__} is a {type(text).__name__}: it must be a str")


class Place(Struct, frozen=True):
    """Which turn of which sample of which benchmark something is for, and what the official layout calls its output file."""

    sample: str = ""
    turn: int = 0
    file: str = ""
    benchmark: str = ""


class Want(Struct, frozen=True):
    """What must come back. `schema` asks for JSON; `draw` tells repeated draws of one request apart; a judge that is a program finds in
    `question` what the messages say in words. `size` is that of a picture, width and height, where somebody chose one: the messages say it
    as well, for those who have no other way to be told."""

    kind: Kind = "text"
    schema: dict[str, Any] | None = None
    draw: int = 0
    place: Place = Place()
    question: "Question | None" = None
    size: tuple[int, int] | None = None


class Usage(Struct, frozen=True, omit_defaults=True):
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = None  # in USD; None where the price is not known
    images: int = 0  # that came, where those are what is paid for


class Reply(Struct, frozen=True, omit_defaults=True):
    """What came back. `empty`: nothing of the kind that was due. `failed`: not the model's fault. `keys`: the calls behind it."""

    outcome: Outcome
    parts: tuple[Part, ...] = ()
    reason: str = ""
    usage: Usage = Usage()
    keys: tuple[str, ...] = ()
    ended: Ended = ""
    notes: tuple[Note, ...] = ()

    @property
    def ending(self) -> str:
        """In a word, finer than the outcome: ok, no image, refused, blocked, truncated, provider error."""
        return ending_of(self)

    @property
    def words(self) -> str:
        """Its text as it came."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def text(self) -> str:
        return self.words.strip()

    @property
    def thoughts(self) -> str:
        return "\n".join(part.text for part in self.parts if isinstance(part, Thought) and part.text).strip()

    @property
    def said(self) -> tuple[Part, ...]:
        """What it says and shows, without its thoughts."""
        return tuple(part for part in self.parts if not isinstance(part, Thought))

    @property
    def images(self) -> tuple[Image, ...]:
        return tuple(part for part in self.parts if isinstance(part, Image))

    @property
    def picture(self) -> Image | None:
        """The picture that counts as the reply's output: its last one."""
        return self.images[-1] if self.outcome == "answered" and self.images else None


def ending_of(reply: Reply, kind: Kind = "image") -> str:
    """How a reply ended that was to be of this kind."""
    return reply.ended or ("no answer" if reply.outcome == "empty" and kind == "text" else ENDINGS[reply.outcome])


ENDINGS = {"answered": "ok", "refused": "refused", "empty": "no image", "failed": "provider error"}


def outcome_of(parts: tuple[Part, ...], kind: Kind) -> tuple[Outcome, str]:
    """The outcome of a reply from what it holds and what was due, and why it is no answer. Thoughts are none."""
    reply = Reply("answered", parts)
    said = " ".join(reply.text.split())
    if kind == "text":
        return ("answered", "") if said else ("empty", "a picture where text was due" if reply.images else "an empty reply")
    if reply.picture is not None or (kind == "interleaved" and said):
        return "answered", ""
    said = said if len(said) <= 160 else f"{said[:159]}…"
    return "empty", f"text where a picture was due: {said}" if said else "an empty reply"


Shown = Literal["interleaved", "list", "strip", "none"]


class Takes(Struct, frozen=True):
    """What a model can take in; `weft.models.adapt` reshapes the rest, and says how. `most`: pictures in one request. `drawing`: how
    it takes pictures when it is to make one: some models accept images for text output but not for image output."""

    images: Shown = "interleaved"
    own_images: Literal["assistant", "user"] = "assistant"
    max_side: int | None = None
    most: int | None = None
    drawing: Shown | None = None

    def of(self, kind: Kind) -> "Takes":
        """For a request that wants this."""
        if self.drawing is None or kind == "text":
            return self
        own = "assistant" if self.drawing == "none" else self.own_images  # what is not shown need not be moved
        return replace(self, images=self.drawing, own_images=own, drawing=None)


class Gives(Struct, frozen=True):
    """What a model can send, and be told. It is never asked for what it cannot send: that costs nothing, and is no answer. `both`: words
    and pictures in one reply; `order`: as they were made, one after another. `sizes` says how a picture's size is told to it."""

    text: bool = True
    image: bool = True
    both: bool = True
    order: bool = True
    thoughts: bool = False
    seed: bool = False
    json: bool = True  # by a schema
    sizes: Literal["pixels", "ratio", "words"] = "words"

    def lacks(self, kind: Kind) -> str:
        """Why it cannot answer a request that wants this; nothing if it can."""
        if kind == "text" and not self.text:
            return "it makes pictures, and no words"
        return "it makes words, and no pictures" if kind == "image" and not self.image else ""


class Model(Protocol):
    """Anything that answers messages. A judge's model is one; so is a strategy, or a composition of Models with roles."""

    name: str
    takes: Takes

    async def reply(self, messages: tuple[Message, ...], want: Want) -> Reply: ...


class Turn(Struct, frozen=True):
    """One request of a sample, numbered from 0. `makes`: the number the dialogue gives the picture that is due (`Image #makes`)."""

    number: int
    ask: tuple[Part, ...]
    want: Kind
    reference: tuple[Part, ...]
    makes: int | None = None
    file: str = ""
    gold: Any = None

    @property
    def words(self) -> str:
        """The request's text."""
        return "".join(part.text for part in self.ask if isinstance(part, Text))


class Sample(Struct, frozen=True):
    """One dialogue of a benchmark. `pictures[k - 1]` is what its texts call `Image #k`; `groups` are its table rows."""

    id: str
    turns: tuple[Turn, ...]
    pictures: tuple[Image, ...] = ()
    groups: Mapping[str, str] = {}
    system: str = ""

    def maker_of(self, number: int) -> Turn | None:
        """The turn that is to make `Image #number`; none for a picture that is given."""
        return next((turn for turn in self.turns if turn.makes == number), None)


class Problem(Struct, frozen=True):
    severity: Literal["error", "warning"]  # an error leaves its record out; a warning does not
    file: str
    record: str
    field: str
    message: str

    def __str__(self) -> str:
        return ": ".join(word for word in (self.file, self.record, self.field, self.message) if word)


class Dataset(Struct, frozen=True):
    """Samples, in memory or streamed: each iteration reads them anew, and `problems` are those found by then."""

    name: str  # the benchmark's own, or what else is written in its format
    digest: str  # of everything that can change a number
    samples: Iterable[Sample]
    problems: Sequence[Problem] = ()
    records: int = 0  # in its files, whether or not they can be used

    def read(self) -> "ReadDataset":
        """All of it in memory, with every problem."""
        samples = tuple(self.samples)
        return ReadDataset(self.name, self.digest, samples, tuple(self.problems), self.records)


class ReadDataset(Dataset, frozen=True):
    """A dataset that is in memory as a whole."""

    samples: tuple[Sample, ...]
    problems: tuple[Problem, ...] = ()


Dialogue = Mapping[int, Reply]  # what has happened so far: turn number -> reply; turns that were not asked are absent


class Question(Struct, frozen=True):
    """One thing to ask a judge: a request, and the schema of a valid answer. One call may settle several `metrics`.

    `material` holds by name what the messages show in words and pictures (`made`, `reference`, `answer`, ...). `value` and `reason` are the
    reply's keys for them, at the top for one metric, inside an object under the metric's name for several; a benchmark's own `to_scores`
    may do otherwise. `detail` is the verdicts', if nothing comes back that could be used. `variant` tells questions of one metric apart.

    `accepts` is the schema that replies are read by, where it is wider than the one that is asked for. `plain` and `jpeg` are for those who
    must send what a paper's scripts send: words alone, without the schema; pictures as JPEG, but for those `as_is`, by their place."""

    metrics: tuple[str, ...]
    messages: tuple[Message, ...]
    schema: dict[str, Any]
    place: Place
    material: Mapping[str, tuple[Part, ...]] = {}
    value: str = "score"
    reason: str = "reasoning"
    gold: Any = None
    detail: Any = None
    variant: str = ""
    accepts: dict[str, Any] | None = None
    plain: bool = False
    jpeg: bool = False
    as_is: tuple[int, ...] = ()


class Mark(Struct, frozen=True):
    """What a judge's reply comes to for one metric: a share of full marks, why, and the score as the judge gave it. A judge that is a
    program and knows its limits may leave a metric open: its `value` is None."""

    metric: str
    value: float | None
    reason: str = ""
    score: float | None = None
    detail: Any = None


class Reading(Struct, frozen=True, omit_defaults=True):
    """What a paper's released scripts take from a judge's reply: a score on their own scale, or None where they find none. `text` is what
    they keep that is no number."""

    score: float | None = None
    text: str = ""


class Missing(Struct, frozen=True):
    """Where an arithmetic has no number, and why."""

    reason: str


class Verdict(Struct, frozen=True, omit_defaults=True):
    """One metric of one turn: a share of full marks from 0 to 1, or None (unscored), with the reason.

    `by` a judge, a rule, a person, or the model's `failure`: zero. `score` is what the judge said, on the judge's own scale. Several
    verdicts of one metric differ in their `variant` (`repeat 2`, `order BA`, `rater 2`); what `merge_variants` makes of them has them
    `behind`.
    `detail` is a struct of the benchmark's own, or what JSON made of it: `benchmarks/facts.py` reads it."""

    sample: str
    turn: int
    metric: str
    value: float | None
    reason: str = ""
    by: Literal["judge", "rule", "failure", "person"] = "judge"
    keys: tuple[str, ...] = ()
    detail: Any = None  # what tables need to know besides
    variant: str = ""
    score: float | None = None
    spread: float | None = None  # the standard deviation of those behind it
    behind: "tuple[Verdict, ...]" = ()
    reading: Reading | None = None  # what the released scripts take from the judge's reply; None: nothing, or nobody was asked
    asked: Reading | None = None  # the same of the reply to a question that they put otherwise
    undecided: bool = False  # left open by a judge that is a program and knows its limits


class Cell(Struct, frozen=True):
    """One number of a table. `verdicts` are those of a run that it was computed from, unscored ones included, the very objects: as many as
    `due`, unless that counts something else (tasks, answers, pairs). A published number has none. They are no part of what a cell says:
    they are not compared, printed or written to files."""

    value: float | None
    scored: int = 0  # of `due` items stand behind the value; both are 0 for published numbers
    due: int = 0
    low: float | None = None  # with `high` the 95% interval
    high: float | None = None
    count: bool = False  # a number of things, and no measure: it has no decimals, and none is best
    digits: int | None = None  # where they are not those of its table
    deviation: float | None = None  # over runs that differ in their seed alone, of which the value is the mean
    verdicts: Sequence[Verdict] = ()

    @property
    def numbers(self) -> dict[str, Any]:
        """All that it says, by name."""
        return {name: value for name, value in asdict(self).items() if name != "verdicts"}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cell) and self.numbers == other.numbers

    def __hash__(self) -> int:
        return hash(tuple(self.numbers.values()))

    def __repr__(self) -> str:
        return f"Cell({', '.join(f'{name}={value!r}' for name, value in self.numbers.items())})"

    def told(self, digits: int = 3) -> str:
        """Its value; where items behind it are unscored, how many of how many stand behind it."""
        if self.value is None and not self.due:
            return "-"
        digits = digits if self.digits is None else self.digits
        value = "unscored" if self.value is None else f"{self.value:.{0 if self.count else digits}f}"
        value += "" if self.deviation is None or self.value is None else f" ± {self.deviation:.{digits}f}"
        return value if self.scored == self.due else f"{value} ({self.scored}/{self.due})"

    def between(self, digits: int = 3) -> str:
        """Its 95% interval; nothing where there is none."""
        digits = digits if self.digits is None else self.digits
        return "" if self.low is None or self.high is None or self.value is None else f"[{self.low:.{digits}f}, {self.high:.{digits}f}]"


class Row(Struct, frozen=True, omit_defaults=True):
    """One row of a table, which knows what it is: of a run, from a paper, or a part of one run.

    `way` says which arithmetic, where the two differ. `of` is the slice of the run that it shows, if not all. `judge` made its verdicts."""

    name: str
    cells: Mapping[str, Cell]
    kind: Literal["run", "published", "part"] = "run"
    way: Literal["", "strict", "official"] = ""
    of: str = ""
    run: str = ""
    judge: str = ""

    @property
    def label(self) -> str:
        return self.name + (f" ({self.way})" if self.way else "") + (f", {self.of}" if self.of else "")


class Table(Struct, frozen=True):
    """Only `rivals` are ranked; in a `mixed` table rows are not all of one thing; `parts` are of one run."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    note: str = ""  # what a reader must know
    digits: int = 3
    rows_are: Literal["leaderboard", "mixed", "breakdown"] = "leaderboard"

    def cells(self, label: str) -> Mapping[str, Cell]:
        """The cells of a row by its label."""
        return next(row.cells for row in self.rows if row.label == label)

    def __str__(self) -> str:
        """As text: values with their intervals."""
        rows = [["", *self.columns]]
        for row in self.rows:
            cells = [row.cells.get(column, Cell(None)) for column in self.columns]
            rows.append([row.label, *(f"{one.told(self.digits)} {one.between(self.digits)}".strip() for one in cells)])
        widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([self.title, *lines])

    def _repr_html_(self) -> str:
        """For a notebook: values with their intervals, names as nothing but text."""
        head = "".join(f"<th>{html.escape(column)}</th>" for column in ("", *self.columns))
        rows: list[str] = []
        for row in self.rows:
            cells = [row.cells.get(column, Cell(None)) for column in self.columns]
            told = "".join(f"<td>{one.told(self.digits)}<br><small>{one.between(self.digits)}</small></td>" for one in cells)
            rows.append(f"<tr><th>{html.escape(row.label)}</th>{told}</tr>")
        return f"<table><caption>{html.escape(self.title)}</caption><tr>{head}</tr>{''.join(rows)}</table>"

    @property
    def ours(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.kind != "published")

    @property
    def published(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.kind == "published")
