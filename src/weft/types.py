"""The words weft is made of. Frozen data, no I/O: read this first.

    data files -> Sample -> what the model sees -> Model -> Reply                      generating
    Replies of one run, or of two -> Questions -> Judge -> Verdicts                    judging
    Verdicts -> settle -> Tables -> report                                             looking

An `Image` is a digest, never bytes. A `Reply` has a typed outcome. A `Verdict` is a share of full marks or unscored: no
error is a number."""

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, cast

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from weft.errors import UserError

Role = Literal["system", "user", "assistant"]
Modality = Literal["text", "image", "interleaved"]
Outcome = Literal["answered", "refused", "empty", "failed"]
Note = Literal["asked again", "same candidates", "stand-in"]  # what happened on the way to a reply
# how a reply ended, where its outcome does not say: a filter's doing, a limit's
StopCause = Literal["", "blocked", "truncated"]
MENTION = re.compile(r"Image #(\d{1,6})(?!\d)")  # a picture that a dialogue's text calls by its number, 1-based


class State(Struct, frozen=True, omit_defaults=True):
    """What a provider wants back with a part, untouched. `of` is the endpoint that gave it: no other is ever sent
    it."""

    data: str
    endpoint_digest: str = field(default="", name="of")


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


def find_mentions(text: str) -> list[int]:
    """Picture numbers in order of mention, repeats kept."""
    return [int(number) for number in MENTION.findall(text)]


def build_caption(number: int) -> Text:
    return Text(f"Image #{number}:")


class Message(Struct, frozen=True):
    role: Role
    parts: tuple[Part, ...]


class MessagesError(UserError):
    """A benchmark's method returned something other than messages. Every turn would fail alike, so the run ends."""


def check_messages(messages: Any, source: str) -> None:
    """Check the messages that a benchmark wrote, before they are sent. `source` begins the error ("... returned").

    Raises MessagesError for anything but a tuple or list of `Message`: the benchmark's code is wrong. Raises TypeError
    for a part that is no Text, Image or Thought: that may be the fault of one reply, and costs one turn.
    """
    if not isinstance(messages, tuple | list):
        raise MessagesError(f"{source} {_with_article(messages)}; expected a tuple of Message")
    for position, message in enumerate(cast(Sequence[Any], messages)):
        if not isinstance(message, Message):
            raise MessagesError(f"{source} {_with_article(message)} at position {position}; expected Message")
        _check_parts(message)


def _with_article(value: object) -> str:
    name = type(value).__name__
    article = "an" if name[0] in "aeiouAEIOU" else "a"
    return f"{article} {name}"


def _check_parts(message: Message) -> None:
    parts: tuple[Any, ...] = message.parts
    for part in parts:
        if not isinstance(part, Text | Image | Thought):
            raise TypeError(
                f"a part of a message is {_with_article(part)}, {str(part)[:60]!r}; parts are Text, Image or Thought"
            )
        if isinstance(part, Image):
            continue
        text: Any = part.text
        if not isinstance(text, str):
            raise TypeError(f"the text of a {type(part).__name__} is {_with_article(text)}: it must be a str")


class TurnRef(Struct, frozen=True):
    """Which turn of which sample of which benchmark something is for, and what the official layout calls its output
    file."""

    sample: str = ""
    turn: int = 0
    file: str = ""
    benchmark: str = ""


class Request(Struct, frozen=True):
    """What must come back. `schema` asks for JSON; `draw` tells repeated draws of one request apart; a judge that is a
    program finds in `question` what the messages say in words. `size` is that of a picture, width and height, where
    somebody chose one: the messages say it as well, for those who have no other way to be told."""

    modality: Modality = "text"
    schema: dict[str, Any] | None = None
    draw: int = 0
    turn_ref: TurnRef = TurnRef()
    question: "Question | None" = None
    size: tuple[int, int] | None = None


class Usage(Struct, frozen=True, omit_defaults=True):
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = None  # in USD; None where the price is not known
    images: int = 0  # that came, where those are what is paid for


class Reply(Struct, frozen=True, omit_defaults=True):
    """What came back. `empty`: nothing of the kind that was due. `failed`: not the model's fault. `keys`: the calls
    behind it."""

    outcome: Outcome
    parts: tuple[Part, ...] = ()
    reason: str = ""
    usage: Usage = Usage()
    keys: tuple[str, ...] = ()
    stop_cause: StopCause = ""
    notes: tuple[Note, ...] = ()

    @property
    def finish_reason(self) -> str:
        """In a word, finer than the outcome: ok, no image, refused, blocked, truncated, provider error."""
        return finish_reason_of(self)

    @property
    def raw_text(self) -> str:
        """Its text as it came."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def text(self) -> str:
        return self.raw_text.strip()

    @property
    def thoughts(self) -> str:
        return "\n".join(part.text for part in self.parts if isinstance(part, Thought) and part.text).strip()

    @property
    def output(self) -> tuple[Part, ...]:
        """What it says and shows, without its thoughts."""
        return tuple(part for part in self.parts if not isinstance(part, Thought))

    @property
    def images(self) -> tuple[Image, ...]:
        return tuple(part for part in self.parts if isinstance(part, Image))

    @property
    def last_image(self) -> Image | None:
        """The picture that counts as the reply's output: its last one."""
        if self.outcome == "answered" and self.images:
            return self.images[-1]
        return None


def finish_reason_of(reply: Reply, kind: Modality = "image") -> str:
    """How a reply ended that was to be of this kind."""
    return reply.stop_cause or (
        "no answer" if reply.outcome == "empty" and kind == "text" else FINISH_REASONS[reply.outcome]
    )


FINISH_REASONS = {"answered": "ok", "refused": "refused", "empty": "no image", "failed": "provider error"}


def outcome_of(parts: tuple[Part, ...], kind: Modality) -> tuple[Outcome, str]:
    """The outcome of a reply from what it holds and what was due, and why it is no answer. Thoughts are none."""
    reply = Reply("answered", parts)
    said = " ".join(reply.text.split())
    if kind == "text":
        if said:
            return ("answered", "")
        return ("empty", "a picture where text was due" if reply.images else "an empty reply")
    if reply.last_image is not None or (kind == "interleaved" and said):
        return "answered", ""
    if not (len(said) <= 160):
        said = f"{said[:159]}…"
    return "empty", f"text where a picture was due: {said}" if said else "an empty reply"


ImageInput = Literal["interleaved", "list", "strip", "none"]


class Takes(Struct, frozen=True):
    """What a model can take in; `weft.models.adapt` reshapes the rest, and says how. `most`: pictures in one request.
    `drawing`: how it takes pictures when it is to make one: some models accept images for text output but not for image
    output."""

    images: ImageInput = "interleaved"
    own_images: Literal["assistant", "user"] = "assistant"
    max_side: int | None = None
    max_images: int | None = field(default=None, name="most")
    drawing: ImageInput | None = None

    def for_modality(self, kind: Modality) -> "Takes":
        """For a request that wants this."""
        if self.drawing is None or kind == "text":
            return self
        # what is not shown need not be moved
        if self.drawing == "none":
            own = "assistant"
        else:
            own = self.own_images
        return replace(self, images=self.drawing, own_images=own, drawing=None)


class Gives(Struct, frozen=True):
    """What a model can send, and be told. It is never asked for what it cannot send: that costs nothing, and is no
    answer. `both`: words and pictures in one reply; `order`: as they were made, one after another. `sizes` says how a
    picture's size is told to it."""

    text: bool = True
    image: bool = True
    interleaved: bool = True
    ordered: bool = True
    thoughts: bool = False
    seed: bool = False
    json: bool = True  # by a schema
    sizes: Literal["pixels", "ratio", "words"] = "words"

    def unsupported_reason(self, kind: Modality) -> str:
        """Why it cannot answer a request that wants this; nothing if it can."""
        if kind == "text" and not self.text:
            return "it makes pictures, and no words"
        if kind == "image" and not self.image:
            return "it makes words, and no pictures"
        return ""


class Model(Protocol):
    """Anything that answers messages. A judge's model is one; so is a strategy, or a composition of Models with
    roles."""

    name: str
    takes: Takes

    async def reply(self, messages: tuple[Message, ...], want: Request) -> Reply: ...


class Turn(Struct, frozen=True):
    """One request of a sample, numbered from 0. `makes`: the number the dialogue gives the picture that is due (`Image
    #makes`)."""

    number: int
    prompt: tuple[Part, ...]
    modality: Modality
    reference: tuple[Part, ...]
    image_number: int | None = None
    file: str = ""
    gold: Any = None

    @property
    def prompt_text(self) -> str:
        """The request's text."""
        return "".join(part.text for part in self.prompt if isinstance(part, Text))


class Sample(Struct, frozen=True):
    """One dialogue of a benchmark. `pictures[k - 1]` is what its texts call `Image #k`; `groups` are its table rows."""

    id: str
    turns: tuple[Turn, ...]
    images: tuple[Image, ...] = ()
    groups: Mapping[str, str] = {}
    system: str = ""

    def turn_of_image(self, number: int) -> Turn | None:
        """The turn that is to make `Image #number`; none for a picture that is given."""
        return next((turn for turn in self.turns if turn.image_number == number), None)


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

    def load_all(self) -> "LoadedDataset":
        """All of it in memory, with every problem."""
        samples = tuple(self.samples)
        return LoadedDataset(self.name, self.digest, samples, tuple(self.problems), self.records)


class LoadedDataset(Dataset, frozen=True):
    """A dataset that is in memory as a whole."""

    samples: tuple[Sample, ...]
    problems: tuple[Problem, ...] = ()


Dialogue = Mapping[int, Reply]  # what has happened so far: turn number -> reply; turns that were not asked are absent


class Question(Struct, frozen=True):
    """One thing to ask a judge: a request, and the schema of a valid answer. One call may settle several `metrics`.

    `material` holds by name what the messages show in words and pictures (`made`, `reference`, `answer`, ...). `value`
    and `reason` are the reply's keys for them, at the top for one metric, inside an object under the metric's name for
    several; a benchmark's own `to_scores` may do otherwise. `detail` is the verdicts', if nothing comes back that could
    be used. `variant` tells questions of one metric apart.

    `accepts` is the schema that replies are read by, where it is wider than the one that is asked for. `plain` and
    `jpeg` are for those who must send what a paper's scripts send: words alone, without the schema; pictures as JPEG,
    but for those `as_is`, by their place."""

    metrics: tuple[str, ...]
    messages: tuple[Message, ...]
    schema: dict[str, Any]
    turn_ref: TurnRef
    material: Mapping[str, tuple[Part, ...]] = {}
    value_key: str = "score"
    reason_key: str = "reasoning"
    gold: Any = None
    detail: Any = None
    variant: str = ""
    accepted_schema: dict[str, Any] | None = None
    text_only: bool = False
    jpeg: bool = False
    unconverted_images: tuple[int, ...] = ()


class Score(Struct, frozen=True):
    """What a judge's reply comes to for one metric: a share of full marks, why, and the score as the judge gave it. A
    judge that is a program and knows its limits may leave a metric open: its `value` is None."""

    metric: str
    value: float | None
    reason: str = ""
    score: float | None = None
    detail: Any = None


class OfficialReading(Struct, frozen=True, omit_defaults=True):
    """What a paper's released scripts take from a judge's reply: a score on their own scale, or None where they find
    none. `text` is what they keep that is no number."""

    score: float | None = None
    text: str = ""


class MissingScore(Struct, frozen=True):
    """Where an arithmetic has no number, and why."""

    reason: str


class Verdict(Struct, frozen=True, omit_defaults=True):
    """One metric of one turn: a share of full marks from 0 to 1, or None (unscored), with the reason.

    `by` a judge, a rule, a person, or the model's `failure`: zero. `score` is what the judge said, on the judge's own
    scale. Several verdicts of one metric differ in their `variant` (`repeat 2`, `order BA`, `rater 2`); what
    `merge_variants` makes of them has them `behind`. `detail` is a struct of the benchmark's own, or what JSON made of
    it: `benchmarks/facts.py` reads it."""

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
    standard_deviation: float | None = None  # the standard deviation of those behind it
    merged_from: "tuple[Verdict, ...]" = ()
    # what the released scripts take from the judge's reply; None: nothing, or nobody was asked
    reading: OfficialReading | None = None
    variant_reading: OfficialReading | None = None  # the same of the reply to a question that they put otherwise
    undecided: bool = False  # left open by a judge that is a program and knows its limits


class Cell(Struct, frozen=True):
    """One number of a table. `verdicts` are those of a run that it was computed from, unscored ones included, the very
    objects: as many as `due`, unless that counts something else (tasks, answers, pairs). A published number has none.
    They are no part of what a cell says: they are not compared, printed or written to files."""

    value: float | None
    scored: int = 0  # of `due` items stand behind the value; both are 0 for published numbers
    expected: int = 0
    low: float | None = None  # with `high` the 95% interval
    high: float | None = None
    count: bool = False  # a number of things, and no measure: it has no decimals, and none is best
    digits: int | None = None  # where they are not those of its table
    standard_deviation: float | None = None  # over runs that differ in their seed alone, of which the value is the mean
    verdicts: Sequence[Verdict] = ()

    @property
    def as_dict(self) -> dict[str, Any]:
        """All that it says, by name."""
        return {name: value for name, value in asdict(self).items() if name != "verdicts"}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cell) and self.as_dict == other.as_dict

    def __hash__(self) -> int:
        return hash(tuple(self.as_dict.values()))

    def __repr__(self) -> str:
        return f"Cell({', '.join(f'{name}={value!r}' for name, value in self.as_dict.items())})"

    def format(self, digits: int = 3) -> str:
        """Its value; where items behind it are unscored, how many of how many stand behind it."""
        if self.value is None and not self.expected:
            return "-"
        if self.digits is not None:
            digits = self.digits
        if self.value is None:
            value = "unscored"
        else:
            value = f"{self.value:.{0 if self.count else digits}f}"
        value += (
            "" if self.standard_deviation is None or self.value is None else f" ± {self.standard_deviation:.{digits}f}"
        )
        if self.scored == self.expected:
            return value
        return f"{value} ({self.scored}/{self.expected})"

    def format_interval(self, digits: int = 3) -> str:
        """Its 95% interval; nothing where there is none."""
        if self.digits is not None:
            digits = self.digits
        if self.low is None or self.high is None or self.value is None:
            return ""
        return f"[{self.low:.{digits}f}, {self.high:.{digits}f}]"


class Row(Struct, frozen=True, omit_defaults=True):
    """One row of a table, which knows what it is: of a run, from a paper, or a part of one run.

    `way` says which arithmetic, where the two differ. `of` is the slice of the run that it shows, if not all. `judge`
    made its verdicts."""

    name: str
    cells: Mapping[str, Cell]
    kind: Literal["run", "published", "part"] = "run"
    arithmetic: Literal["", "strict", "official"] = ""
    subset: str = ""
    run: str = ""
    judge: str = ""

    @property
    def label(self) -> str:
        return (
            self.name
            + (f" ({self.arithmetic})" if self.arithmetic else "")
            + (f", {self.subset}" if self.subset else "")
        )


class Table(Struct, frozen=True):
    """Only `rivals` are ranked; in a `mixed` table rows are not all of one thing; `parts` are of one run."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    note: str = ""  # what a reader must know
    digits: int = 3
    kind: Literal["leaderboard", "mixed", "breakdown"] = "leaderboard"

    def cells(self, label: str) -> Mapping[str, Cell]:
        """The cells of a row by its label."""
        return next(row.cells for row in self.rows if row.label == label)

    def __str__(self) -> str:
        """As text: values with their intervals."""
        rows = [["", *self.columns]]
        for row in self.rows:
            cells = [row.cells.get(column, Cell(None)) for column in self.columns]
            rows.append(
                [row.label, *(f"{one.format(self.digits)} {one.format_interval(self.digits)}".strip() for one in cells)]
            )
        widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([self.title, *lines])

    def _repr_html_(self) -> str:
        """For a notebook: values with their intervals, names as nothing but text."""
        head = "".join(f"<th>{html.escape(column)}</th>" for column in ("", *self.columns))
        rows: list[str] = []
        for row in self.rows:
            cells = [row.cells.get(column, Cell(None)) for column in self.columns]
            told = "".join(
                f"<td>{one.format(self.digits)}<br><small>{one.format_interval(self.digits)}</small></td>"
                for one in cells
            )
            rows.append(f"<tr><th>{html.escape(row.label)}</th>{told}</tr>")
        return f"<table><caption>{html.escape(self.title)}</caption><tr>{head}</tr>{''.join(rows)}</table>"

    @property
    def run_rows(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.kind != "published")

    @property
    def published_rows(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.kind == "published")
