"""A recipe: seeds by number, and the steps that make a dialogue of each.

    class Postcards(Recipe):
        name = "postcards"
        version = "1"
        roles = (Role("writer", "text"), Role("painter", "image"))

        def steps(self):
            return (Step("write", self.write), Step("draw", self.draw))

A recipe is named by an entry point of the group `weft.recipes`, or as `file.py:NAME`. A step takes a row and a
`Context` and returns the row with more in it; it raises `Dropped` for a row that is not good enough. What else it
raises costs this row alone, and the next command tries it again.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from weft.benchmarks.options import NoOptions, parse_options
from weft.building.draft import Row
from weft.errors import UserError, WeftError
from weft.plugins import find_entry_points, load_object, load_target, suggest_name
from weft.types import Message, Reply, Request

if TYPE_CHECKING:
    from pathlib import Path

    from weft.building.context import Context
    from weft.building.counts import PublishedCounts

GROUP = "weft.recipes"
SEED_SPACE = 100_000_000  # numbers from here on are later tries of the seed `number % SEED_SPACE`


class Dropped(WeftError):
    """Raised by a step: the row is not good enough. `reason` is counted, so it has no details of this row.

    `row` is the row with what the step has added so far, such as its attempts.
    """

    def __init__(self, reason: str, detail: str = "", row: Row | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.detail = detail
        self.row = row


class Role(Struct, frozen=True):
    """A part that a model plays. It is an option of the command."""

    name: str
    makes: Literal["text", "image"]
    about: str = ""
    sees: bool = False  # whether it is shown images
    optional: bool = False
    several: bool = False  # several models may play it: NAME, NAME-2, NAME-3
    stands_in: str = ""  # the role whose model plays it if the user names none


def is_player(name: str, role: str) -> bool:
    """Return whether NAME, or NAME-2, plays a role."""
    first, _, number = name.rpartition("-")
    return name == role or (first == role and number.isdigit())


class Step(Struct, frozen=True):
    """One step of a recipe."""

    name: str
    work: "Callable[[Row, Context], Awaitable[Row]]"
    about: str = ""
    roles: tuple[str, ...] = ()  # that it asks, for `weft build show`
    group: str = ""  # only rows of this group go through it; empty: all


class Recipe:
    """The base class: set `name`, `version` and `roles`, implement `steps`, and `seed` if seeds differ in more than
    their number. Options are the fields of `Options`, as a benchmark's are."""

    name: str = ""
    version: str = "1"  # part of the build's identity: change it when the recipe makes something else
    title: str = ""
    roles: tuple[Role, ...] = ()
    tries: int = 1  # dialogues of one seed, until one is kept, unless the user says otherwise
    published: "PublishedCounts | None" = None  # what the paper that it follows counts in its own data
    Options: type[Struct] = NoOptions

    def __init__(self, options: Any) -> None:
        """`options` are an instance of `Options`."""
        self.options = options

    def check(self, roles: Mapping[str, Sequence[str]]) -> None:
        """Raise UserError for options that cannot work, before anything is called. `roles` are those that have models,
        with the names of their models."""

    def seed(self, number: int) -> Row:
        """Return the row with which a seed starts. Pure: the same number is the same row on every machine.

        Later tries of a seed have numbers of their own: the seed's plus a multiple of `SEED_SPACE`."""
        return Row(number)

    def steps(self) -> Sequence[Step]:
        """Return the steps in their order."""
        raise UserError(f"the recipe {self.name} has no steps")

    def source_digest(self) -> str:
        """Return a digest of the files that seeds are made from; empty if there are none."""
        return ""

    def stand_in(self, role: str, messages: tuple[Message, ...], request: Request) -> Reply | None:
        """Return a reply that a dry run uses instead of a call, with which a row gets through; None for the usual one:
        JSON that fits the schema, a plain image."""
        return None

    def write_extras(self, folder: "Path", rows: Any) -> None:
        """Write files of the recipe's own beside the WEAVE layout. `rows` are the kept rows, iterated once."""


def list_recipes() -> dict[str, str]:
    """Return every recipe that can be named: name -> target."""
    return {point.name: point.value for point in find_entry_points(GROUP)}


def load_recipe(name: str) -> type[Recipe]:
    """Return a recipe's class by its name or `file.py:NAME`. Raises UserError for what is none."""
    recipes = list_recipes()
    if ".py:" in name:
        kind = load_object(name)
    elif name in recipes:
        try:
            kind = load_target(recipes[name])
        except ImportError as error:
            raise UserError(f"the recipe {name} cannot be imported from {recipes[name]}: {error}") from error
    else:
        known = ", ".join(sorted(recipes))
        raise UserError(f"there is no recipe {name!r}; {suggest_name(name, recipes)}there is {known}; or file.py:NAME")
    if not isinstance(kind, type) or not issubclass(kind, Recipe):
        raise UserError(f"{name} is no recipe: make it a class of weft.building.recipe.Recipe")
    if not kind.roles:
        raise UserError(f"{name} has no roles: without a model it can make nothing")
    return kind


def open_recipe(kind: type[Recipe], name: str, values: Mapping[str, Any]) -> Recipe:
    """Return a recipe with the user's options. Raises UserError for an unknown or impossible one."""
    return kind(parse_options(kind.Options, values, kind.name or name))
