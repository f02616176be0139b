"""The data types that all packages share. Frozen data, no I/O: read this first.

    data files -> Sample -> messages -> Model -> Reply                  generate
    Replies -> Questions -> judge -> Verdicts                           judge
    Verdicts -> merge_variants -> Tables -> report                      report

An `Image` is a digest, never bytes. A `Reply` has a typed outcome. A `Verdict` is a share of full marks, or unscored:
an error never becomes a number.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from weft.rounding import format_bounds, format_number

Role = Literal["system", "user", "assistant"]
Modality = Literal["text", "image", "interleaved"]
Outcome = Literal["answered", "refused", "empty", "failed"]
Note = Literal["asked again", "plan", "same candidates", "stand-in", "unreadable"]  # how the reply came about
StopCause = Literal["", "blocked", "truncated"]  # a content filter or a token limit ended the reply
ImageInput = Literal["interleaved", "list", "strip", "none"]
MENTION = re.compile(r"Image #(\d{1,6})(?!\d)")  # how a dialogue's text refers to an image, counted from 1
FINISH_REASONS = {"answered": "ok", "refused": "refused", "empty": "no image", "failed": "provider error"}
MAX_QUOTED = 160  # characters of a reply that a reason quotes


class State(Struct, frozen=True, omit_defaults=True):
    """Opaque provider data that must be sent back with a part, such as a thought signature."""

    data: str  # as the provider sent it
    endpoint_digest: str = field(default="", name="of")  # the endpoint it came from; it is sent to no other


class Text(Struct, frozen=True, tag="text", omit_defaults=True):
    """Text in a message or a reply."""

    text: str
    state: State | None = None


class Image(Struct, frozen=True, tag="image", omit_defaults=True):
    """An image in the blob store."""

    digest: str  # sha256 of the file's bytes, which is also its name in the store
    media_type: str
    width: int
    height: int
    size: int  # bytes
    label: int | None = None  # the number that the text around it refers to it by
    state: State | None = None


class Thought(Struct, frozen=True, tag="thought", omit_defaults=True):
    """Reasoning that a model exposes. It is not part of the answer, and only the same model gets it back."""

    text: str = ""
    state: State | None = None


Part = Text | Image | Thought


def find_mentions(text: str) -> list[int]:
    """Return the image numbers that a text mentions, in order, with repeats."""
    return [int(number) for number in MENTION.findall(text)]


def build_caption(number: int) -> Text:
    """Return the text that stands before an image to number it."""
    return Text(f"Image #{number}:")


class Message(Struct, frozen=True):
    """One message of a chat."""

    role: Role
    parts: tuple[Part, ...]


class TurnRef(Struct, frozen=True):
    """Which turn of which sample something belongs to."""

    sample: str = ""
    turn: int = 0
    file: str = ""  # the output file's name in the benchmark's official layout
    benchmark: str = ""


class Request(Struct, frozen=True):
    """What a model must return."""

    modality: Modality = "text"
    schema: dict[str, Any] | None = None  # the reply must be JSON of this schema
    draw: int = 0  # distinguishes repeated calls with the same messages; part of the cache key
    turn_ref: TurnRef = TurnRef()
    question: "Question | None" = None  # for judges that are programs: what the messages say in words
    size: tuple[int, int] | None = None  # width and height of the image; the messages state it as well


class Usage(Struct, frozen=True, omit_defaults=True):
    """What a call consumed."""

    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = None  # in USD; None where the price is unknown
    images: int = 0  # images returned, where they are billed


class Reply(Struct, frozen=True, omit_defaults=True):
    """A model's answer. `empty`: nothing of the expected modality. `failed`: not the model's fault, so unscored."""

    outcome: Outcome
    parts: tuple[Part, ...] = ()
    reason: str = ""  # why there is no answer, or a remark on it
    usage: Usage = Usage()
    keys: tuple[str, ...] = ()  # cache keys of the calls it was made from
    stop_cause: StopCause = ""
    notes: tuple[Note, ...] = ()

    @property
    def finish_reason(self) -> str:
        """Finer than the outcome: ok, no image, refused, blocked, truncated, provider error."""
        return finish_reason_of(self)

    @property
    def raw_text(self) -> str:
        """All text of the reply, unstripped, without thoughts."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def text(self) -> str:
        """All text of the reply, stripped, without thoughts."""
        return self.raw_text.strip()

    @property
    def thoughts(self) -> str:
        """The reasoning that the model exposed, one paragraph per part."""
        return "\n".join(part.text for part in self.parts if isinstance(part, Thought) and part.text).strip()

    @property
    def output(self) -> tuple[Part, ...]:
        """Text and images, without thoughts."""
        return tuple(part for part in self.parts if not isinstance(part, Thought))

    @property
    def images(self) -> tuple[Image, ...]:
        """All images of the reply, in order."""
        return tuple(part for part in self.parts if isinstance(part, Image))

    @property
    def last_image(self) -> Image | None:
        """The image that counts as the reply's output; None if the reply is no answer."""
        if self.outcome == "answered" and self.images:
            return self.images[-1]
        return None


def finish_reason_of(reply: Reply, modality: Modality = "image") -> str:
    """Return the finish reason of a reply to a request for this modality."""
    if reply.stop_cause:
        return reply.stop_cause
    if reply.outcome == "empty" and modality == "text":
        return "no answer"
    return FINISH_REASONS[reply.outcome]


def outcome_of(parts: tuple[Part, ...], modality: Modality) -> tuple[Outcome, str]:
    """Return `answered` or `empty`, and why, for parts that reply to this modality. Thoughts are never an answer."""
    reply = Reply("answered", parts)
    text = " ".join(reply.text.split())
    if modality == "text" and text:
        return "answered", ""
    if modality == "text" and reply.images:
        return "empty", "an image where text was expected"
    if modality != "text" and reply.images:
        return "answered", ""
    if modality == "interleaved" and text:
        return "answered", ""
    if not text:
        return "empty", "an empty reply"
    if len(text) > MAX_QUOTED:
        text = f"{text[: MAX_QUOTED - 1]}…"
    return "empty", f"text where an image was expected: {text}"


class Takes(Struct, frozen=True):
    """What input a model accepts. `weft.models.adapt` reshapes everything else, and reports how."""

    images: ImageInput = "interleaved"
    own_images: Literal["assistant", "user"] = "assistant"  # the role under which it gets its own images back
    max_side: int | None = None  # pixels
    max_images: int | None = None  # in one request
    drawing: ImageInput | None = None  # replaces `images` when an image is requested

    def for_modality(self, modality: Modality) -> "Takes":
        """Return what it accepts when this modality is requested: some models see images only to write text."""
        if self.drawing is None or modality == "text":
            return self
        own = self.own_images
        if self.drawing == "none":  # what is not sent need not be moved
            own = "assistant"
        return replace(self, images=self.drawing, own_images=own, drawing=None)


class Gives(Struct, frozen=True):
    """What output a model can produce. It is never asked for anything else: the reply is `empty`, at no cost."""

    text: bool = True
    image: bool = True
    interleaved: bool = True  # text and images in one reply
    ordered: bool = True  # the parts of an interleaved reply come in the order in which they were generated
    thoughts: bool = False
    seed: bool = False  # it accepts a seed
    json: bool = True  # it accepts a schema
    sizes: Literal["pixels", "ratio", "words"] = "words"  # how an image's size is requested

    def unsupported_reason(self, modality: Modality) -> str:
        """Return why it cannot answer a request for this modality; empty if it can."""
        if modality == "text" and not self.text:
            return "it generates images, not text"
        if modality == "image" and not self.image:
            return "it generates text, not images"
        return ""


class Model(Protocol):
    """Anything that answers messages: an endpoint, a strategy, a composition of models, a judge's model."""

    name: str
    takes: Takes

    async def reply(self, messages: tuple[Message, ...], request: Request, /) -> Reply: ...


class Turn(Struct, frozen=True):
    """One request of a sample."""

    number: int  # from 0
    prompt: tuple[Part, ...]
    modality: Modality  # of the expected output
    reference: tuple[Part, ...]  # the reference answer
    image_number: int | None = None  # k, if the expected image is `Image #k` of the dialogue
    file: str = ""  # the output file's name in the benchmark's official layout
    gold: Any = None  # what else the dataset has for scoring
    draw: int = 0  # tells turns that ask the very same apart: each is a call of its own, with another seed

    @property
    def prompt_text(self) -> str:
        """The text of the prompt."""
        return "".join(part.text for part in self.prompt if isinstance(part, Text))


class Sample(Struct, frozen=True):
    """One dialogue of a benchmark."""

    id: str
    turns: tuple[Turn, ...]
    images: tuple[Image, ...] = ()  # images[k - 1] is `Image #k` of its texts
    groups: Mapping[str, str] = {}  # axis -> group, such as domain -> edit; tables have rows for them
    system: str = ""

    def turn_of_image(self, number: int) -> Turn | None:
        """Return the turn that must generate `Image #number`; None for an input image."""
        return next((turn for turn in self.turns if turn.image_number == number), None)


class Problem(Struct, frozen=True):
    """Something wrong in a dataset's files."""

    severity: Literal["error", "warning"]  # an error leaves its record out; a warning does not
    file: str
    record: str
    field: str
    message: str

    def __str__(self) -> str:
        return ": ".join(word for word in (self.file, self.record, self.field, self.message) if word)


class Dataset(Struct, frozen=True):
    """Samples, in memory or streamed. Each iteration reads them anew; `problems` are those found so far."""

    name: str  # the benchmark's own dataset, or another in its format
    digest: str  # of everything that can change a score
    samples: Iterable[Sample]
    problems: Sequence[Problem] = ()
    records: int = 0  # in its files, usable or not

    def load_all(self) -> "LoadedDataset":
        """Read every sample into memory, and collect every problem."""
        samples = tuple(self.samples)
        return LoadedDataset(self.name, self.digest, samples, tuple(self.problems), self.records)


class LoadedDataset(Dataset, frozen=True):
    """A dataset that is entirely in memory."""

    samples: tuple[Sample, ...]
    problems: tuple[Problem, ...] = ()


Dialogue = Mapping[int, Reply]  # turn number -> reply, so far; turns that were not asked are absent


class Question(Struct, frozen=True):
    """One call to a judge, which scores one or several metrics of a turn."""

    metrics: tuple[str, ...]
    messages: tuple[Message, ...]
    schema: dict[str, Any]  # of a valid answer
    turn_ref: TurnRef
    material: Mapping[str, tuple[Part, ...]] = {}  # what is judged, by name (`output`, `reference`, ...), for programs
    value_key: str = "score"  # in the answer's object; for several metrics, in an object under each metric's name
    reason_key: str = "reasoning"
    gold: Any = None
    detail: Any = None  # the verdicts' detail, if no usable answer comes
    variant: str = ""  # distinguishes several questions about one metric
    accepted_schema: dict[str, Any] | None = None  # replaces `schema` when the answer is read, where it is wider
    text_only: bool = False  # send no schema, as a paper's released scripts do
    jpeg: bool = False  # send images as JPEG, as a paper's released scripts do,
    unconverted_images: tuple[int, ...] = ()  # except those at these positions


class Score(Struct, frozen=True):
    """One metric's value in a judge's answer. What released scripts average instead is `Official.score()`."""

    metric: str
    value: float | None  # a share of full marks; None if a judge that is a program leaves the metric undecided
    reason: str = ""
    score: float | None = None  # on the judge's own scale
    detail: Any = None


class OfficialReading(Struct, frozen=True, omit_defaults=True):
    """What a paper's released scripts parse from a judge's reply."""

    score: float | None = None  # on their own scale; None where they find no score
    text: str = ""  # what they keep besides a number
    failed: bool = False  # there is no reply that they could read, through no fault of the model


class MissingScore(Struct, frozen=True):
    """No official score, with the reason."""

    reason: str


class Verdict(Struct, frozen=True, omit_defaults=True):
    """One metric of one turn, scored or unscored.

    `value` is what strict tables average, `score` the judge's own number, `reading` what the released scripts parse.
    `by="failure"` is the model's own failure and scores 0; a reply with `outcome="failed"` stays unscored, by `rule`.
    """

    sample: str
    turn: int
    metric: str
    value: float | None  # a share of full marks from 0 to 1; None: unscored
    reason: str = ""
    by: Literal["judge", "rule", "failure", "person"] = "judge"
    keys: tuple[str, ...] = ()  # cache keys of the judge's calls
    detail: Any = None  # a struct of the benchmark's own, or its JSON (see benchmarks/facts.py), for tables
    variant: str = ""  # `repeat 2`, `order BA`, `annotator 2`: distinguishes several verdicts of one metric
    score: float | None = None  # on the judge's own scale
    standard_deviation: float | None = None  # of the verdicts it was merged from
    merged_from: "tuple[Verdict, ...]" = ()  # the variants, where `merge_variants` merged them
    reading: OfficialReading | None = None  # what the released scripts parse from the judge's reply
    variant_reading: OfficialReading | None = None  # the same for a question that they phrase differently
    undecided: bool = False  # left open by a judge that is a program


class Cell(Struct, frozen=True):
    """One number of a table. Cells with equal numbers are equal, whatever their verdicts."""

    value: float | None
    scored: int = 0  # scored items behind the value, of `expected`; both are 0 for published numbers
    expected: int = 0
    low: float | None = None  # with `high` the 95% interval
    high: float | None = None
    count: bool = False  # a count, not a measure: no decimals, and no best row
    digits: int | None = None  # decimals, where they differ from the table's
    standard_deviation: float | None = None  # over runs that differ only in their seed, whose mean is the value
    unusable: int = 0  # of `scored`: read by a paper's released scripts from what weft could not use
    not_asked: int = 0  # of `expected`: the released scripts ask their judge something that this run did not
    text: str = ""  # words that stand in place of a number
    verdicts: Sequence[Verdict] = ()  # what the value was computed from, unscored ones included; never serialised

    @property
    def as_dict(self) -> dict[str, Any]:
        """All fields but the verdicts, and the text of a number."""
        return {name: value for name, value in asdict(self).items() if name != "verdicts" and (name != "text" or value)}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cell) and self.as_dict == other.as_dict

    def __hash__(self) -> int:
        return hash(tuple(self.as_dict.values()))

    def __repr__(self) -> str:
        return f"Cell({', '.join(f'{name}={value!r}' for name, value in self.as_dict.items())})"

    def format(self, digits: int = 3) -> str:
        """Return the value, and how many of the expected items are scored where some are not, or were not asked."""
        if self.text:
            return self.text
        if self.value is None and not self.expected:
            return "-"
        digits = self.decimals(digits)
        if self.value is None:
            text = "not asked" if self.not_asked else "unscored"
        else:
            text = format_number(self.value, digits)
        if self.standard_deviation is not None and self.value is not None:
            text += f" ± {format_number(self.standard_deviation, digits)}"
        if self.unusable:
            text += f" ({self.scored}/{self.expected}, {self.unusable} unusable)"
        elif self.not_asked or self.scored != self.expected:
            text += f" ({self.not_asked or self.scored}/{self.expected})"
        return text

    def format_interval(self, digits: int = 3) -> str:
        """Return the 95% interval; empty if there is none."""
        if self.low is None or self.high is None or self.value is None:
            return ""
        return format_bounds(self.low, self.high, self.decimals(digits))

    def decimals(self, digits: int) -> int:
        """Return how many decimals are shown in a table whose numbers have this many."""
        digits = digits if self.digits is None else self.digits
        return 0 if self.count else digits


class Row(Struct, frozen=True, omit_defaults=True):
    """One row of a table: a run, a published result, or a part of one run."""

    name: str
    cells: Mapping[str, Cell]
    kind: Literal["run", "published", "part"] = "run"
    arithmetic: Literal["", "strict", "official"] = ""  # set where the two differ
    subset: str = ""  # the part of the run that it shows, if not all
    run: str = ""  # the run's id
    judge: str = ""
    notes: Mapping[str, str] = {}  # what a reader must know of single numbers, by column
    about: Mapping[str, str] = {}  # what is known of its model, such as its size
    group: str = ""  # the rows among which it competes, if they are not all of the table

    @property
    def label(self) -> str:
        """The name with the arithmetic and the subset."""
        label = self.name
        if self.arithmetic:
            label += f" ({self.arithmetic})"
        if self.subset:
            label += f", {self.subset}"
        return label


class Table(Struct, frozen=True):
    """A table of a report. A leaderboard is ranked, `parts` by `Row.subset`; a breakdown shows parts of one run,
    `groups` several runs by the groups of an axis, which are its columns."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    note: str = ""  # what a reader must know
    digits: int = 3
    kind: Literal["leaderboard", "parts", "mixed", "breakdown", "groups"] = "leaderboard"
    unranked: tuple[str, ...] = ()  # columns without a best row, such as changes from a baseline

    def cells(self, label: str) -> Mapping[str, Cell]:
        """Return the cells of the row with this label."""
        return next(row.cells for row in self.rows if row.label == label)

    def __str__(self) -> str:
        """Return the table as text: values with their intervals."""
        from weft.plain_tables import table_text

        return table_text(self)

    def _repr_html_(self) -> str:
        """Return the table for a notebook: values with their intervals, names escaped."""
        from weft.plain_tables import table_html

        return table_html(self)

    @property
    def run_rows(self) -> tuple[Row, ...]:
        """All rows but the published ones."""
        return tuple(row for row in self.rows if row.kind != "published")

    @property
    def published_rows(self) -> tuple[Row, ...]:
        """The rows taken from papers."""
        return tuple(row for row in self.rows if row.kind == "published")
