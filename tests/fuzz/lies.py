"""Benchmarks of a user's own that lie: methods that return or raise what they must not, generators that never end,
names that no name may be. A command scores what can be scored, or says in one line what is wrong, and its home can
still be read."""

import itertools
import random
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fuzz import Broken
from toy import toy_records, write_weave
from weft import api
from weft.benchmarks.base import Benchmark
from weft.benchmarks.weave import Weave
from weft.errors import WeftError
from weft.workspace import read_only_journal

LONGEST_S = 60  # of one run and its report, on a busy machine
ATTRIBUTES = ("name", "version", "metrics", "axes", "derived_metrics", "Options")
OBJECTS = ("presentation", "preparation", "official", "follow_up")
METHODS = tuple(name for name, value in vars(Benchmark).items() if callable(value) and not name.startswith("_"))
NAMES: list[Any] = [
    "../../../escaped", "\x1b[31mred", "<script>alert(1)</script>", "=cmd()", "a\nb", "", "x" * 5000, "nul\0", "a/b|c",
    "\ud800", "-x", 3, None, ("a",), ("a", "a"), (None,), [], object(), int,
]  # fmt: skip
VALUES: list[Any] = [None, 3, -1.5, "text\x1b[31m", object(), {"a": {}}, [None] * 100_000, float("nan"), b"\xff"]
ERRORS = [RuntimeError("two\nlines \x1b[31m"), SystemExit(0), RecursionError(), KeyError(("a",))]


class Unprintable(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


def attack(chance: random.Random, count: int, folder: Path) -> Counter[str]:
    done: Counter[str] = Counter()
    data = write_weave(folder / "lies-data", toy_records())
    members = [*METHODS, *ATTRIBUTES, *OBJECTS]
    for number in range(count):
        done[tell_lie(chance.choice(members), chance, data, folder / f"lies-{number}")] += 1
    return done


def tell_lie(member: str, chance: random.Random, data: Path, home: Path) -> str:
    """What came of a run whose benchmark lies in this member."""
    kind, words = _liar(member, chance)
    model: Any = "copy" if member == "on_no_answer" else "reference"
    previous = signal.signal(signal.SIGALRM, _hang)
    signal.alarm(LONGEST_S)
    try:
        run = api.evaluate(kind, data=data, model=model, judge=_judge, home=home)
        for format in ("md", "csv"):
            run.report(format)
        outcome = "ran"
    except WeftError as error:
        if "\n" in str(error):
            raise Broken(f"{words}: an error of more than one line: {error}") from error
        outcome = "refused in one line"
    except (Exception, SystemExit, GeneratorExit) as error:
        raise Broken(f"{words}: {type(error).__name__}: {error}") from error
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)
    if (home / "journal.sqlite").exists():
        with read_only_journal(home) as journal:
            journal.runs()
    return outcome


def _hang(*_: Any) -> None:
    raise Broken("this did not come to an end")


def _judge(messages: Any, want: str) -> str:
    return '{"score": 5, "reasoning": "so"}'


_judge.version = "1"  # type: ignore[attr-defined]


def _liar(member: str, chance: random.Random) -> tuple[type[Weave], str]:
    kind: type[Weave] = type("Liar", (Weave,), {"name": "liar"})
    if member in METHODS:
        act, words = chance.choice(list(_acts(kind, member)))
        setattr(kind, member, act)
        return kind, f"{member} {words}"
    value = chance.choice(NAMES)
    setattr(kind, member, value)
    return kind, f"{member} = {ascii(value)[:80]}"


def _acts(kind: type[Weave], member: str) -> list[tuple[Callable[..., Any], str]]:
    def returning(value: Any) -> Callable[..., Any]:
        return lambda *_, **__: value

    def raising(error: BaseException) -> Callable[..., Any]:
        def act(*_: Any, **__: Any) -> Any:
            raise error

        return act

    def repeating(self: Any, *arguments: Any) -> Any:
        real = getattr(super(kind, self), member)(*arguments)
        return itertools.cycle(list(real))

    acts = [(returning(value), f"returns {ascii(value)[:60]}") for value in VALUES]
    acts += [(raising(error), f"raises {type(error).__name__}") for error in [*ERRORS, Unprintable()]]
    acts += [(lambda *_, **__: itertools.repeat(None), "never ends"), (repeating, "repeats itself for ever")]
    return acts
