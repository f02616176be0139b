"""The words weft is made of. Frozen data, no I/O: read this first.

    data files -> Sample -> Dialogue -> (history view -> fit) -> Model -> Reply
                                                              -> Question -> Judge -> Verdict -> Table -> report

An `Image` is a digest, never bytes. A `Reply` has a typed outcome. A `Verdict` is a number or unscored: no error is a number."""

from collections.abc import Mapping
from typing import Any, Literal, Protocol

from msgspec import Struct

Role = Literal["system", "user", "assistant"]
Kind = Literal["text", "image", "interleaved"]
Outcome = Literal["answered", "refused", "empty", "failed"]


class Text(Struct, frozen=True, tag="text"):
    text: str


class Image(Struct, frozen=True, tag="image", omit_defaults=True):
    """A picture in the blob store. `label` is the number that the text around it calls it by, if any."""

    digest: str
    media_type: str
    width: int
    height: int
    size: int
    label: int | None = None


Part = Text | Image


class Message(Struct, frozen=True):
    role: Role
    parts: tuple[Part, ...]


class Place(Struct, frozen=True):
    """Which turn of which sample something is for, what the official layout calls its output file, and which metric is asked."""

    sample: str = ""
    turn: int = 0
    file: str = ""
    metric: str = ""


class Want(Struct, frozen=True):
    """What must come back. `schema` asks for JSON; `draw` tells repeated draws of one request apart."""

    kind: Kind = "text"
    schema: dict[str, Any] | None = None
    draw: int = 0
    place: Place = Place()


class Usage(Struct, frozen=True, omit_defaults=True):
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = None  # in USD; None where the price is not known


class Reply(Struct, frozen=True, omit_defaults=True):
    """What came back. `empty`: nothing of the kind that was due. `failed`: not the model's fault. `keys`: the calls behind it."""

    outcome: Outcome
    parts: tuple[Part, ...] = ()
    reason: str = ""
    usage: Usage = Usage()
    keys: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Text)).strip()

    @property
    def images(self) -> tuple[Image, ...]:
        return tuple(part for part in self.parts if isinstance(part, Image))


class Takes(Struct, frozen=True):
    """What a model can take in; `weft.fit` reshapes the rest, and says how."""

    images: Literal["interleaved", "list", "strip", "none"] = "interleaved"
    own_images: Literal["assistant", "user"] = "assistant"
    max_side: int | None = None


class Model(Protocol):
    """Anything that answers messages. A judge's model is a Model too; so is a strategy made of Models."""

    name: str
    takes: Takes

    async def reply(self, messages: tuple[Message, ...], want: Want) -> Reply: ...


class Turn(Struct, frozen=True):
    """One request of a sample, numbered from 0. `makes`: the number the dialogue gives the picture that is due (`Image #makes`)."""

    number: int
    ask: tuple[Part, ...]
    want: Kind
    truth: tuple[Part, ...]
    makes: int | None = None
    file: str = ""
    gold: Any = None

    @property
    def asked(self) -> str:
        return "".join(part.text for part in self.ask if isinstance(part, Text))


class Sample(Struct, frozen=True):
    """One dialogue of a benchmark. `pictures[k - 1]` is what its texts call `Image #k`; `groups` are its table rows."""

    id: str
    turns: tuple[Turn, ...]
    pictures: tuple[Image, ...] = ()
    groups: Mapping[str, str] = {}
    system: str = ""


class Problem(Struct, frozen=True):
    severity: Literal["error", "warning"]  # an error leaves its record out; a warning does not
    file: str
    record: str
    field: str
    message: str

    def __str__(self) -> str:
        return ": ".join(word for word in (self.file, self.record, self.field, self.message) if word)


class Dataset(Struct, frozen=True):
    name: str  # the benchmark's own, or what else is written in its format
    digest: str  # of everything that can change a number
    samples: tuple[Sample, ...]
    problems: tuple[Problem, ...] = ()
    records: int = 0


class View(Struct, frozen=True):
    """A history policy: what of the dialogue so far a model sees, and where. `official` keeps the released defects."""

    history: Literal["none", "partial", "full", "dialogue"] = "partial"
    placement: Literal["front", "first"] = "front"
    past: Literal["own", "truth"] = "own"
    turns: Literal["all", "image", "text"] = "all"
    official: bool = False


Dialogue = Mapping[int, Reply]  # what has happened so far: turn number -> reply; turns that were not asked are absent


class Question(Struct, frozen=True):
    """One thing to ask a judge: a request, and the schema of a valid answer, whose keys `value` and `reason` are the verdict."""

    metric: str
    messages: tuple[Message, ...]
    schema: dict[str, Any]
    place: Place
    value: str = "score"
    reason: str = "reasoning"
    gold: Any = None
    detail: Any = None  # of the verdict, if nothing comes back that could be used


class Verdict(Struct, frozen=True, omit_defaults=True):
    """One metric of one turn: a value, or None (unscored), with the reason. `by` a judge, a rule, or the model's `failure`: zero."""

    sample: str
    turn: int
    metric: str
    value: float | None
    reason: str = ""
    by: Literal["judge", "rule", "failure"] = "judge"
    keys: tuple[str, ...] = ()
    detail: Any = None  # what another arithmetic needs to come to its own number


class Cell(Struct, frozen=True):
    value: float | None
    scored: int = 0  # of `due` items stand behind the value; both are 0 for published numbers
    due: int = 0
    low: float | None = None  # with `high` the 95% interval
    high: float | None = None


class Table(Struct, frozen=True):
    """Rows of cells by column; `published` names those from a paper. Only `rivals` are ranked; `parts` are of one run."""

    title: str
    columns: tuple[str, ...]
    rows: Mapping[str, Mapping[str, Cell]]
    published: frozenset[str] = frozenset()
    note: str = ""  # what a reader must know
    digits: int = 3
    rows_are: Literal["rivals", "mixed", "parts"] = "rivals"
