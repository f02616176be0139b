"""What to run, and how: one struct from which the command line's options, Python's keywords and the reserved names are made.

    RunConfig(benchmark="weave", data="DATA", model="openai/NAME", judge="openai/gpt-4.1", options={"history": "full"})

A field's help text stands here and nowhere else. `Cli` says how a field looks on the command line, where its name and type do not say so.
Nothing heavy is imported here: the command line reads it for every `--help`.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

from msgspec import Struct, field
from msgspec.structs import fields

Stage = Literal["data", "model", "judge", "calls", "home"]


class Cli(Struct, frozen=True):
    """A field on the command line. `stage` is what it is about: a stored run has no use for the model's."""

    help: str
    stage: Stage
    option: str = ""  # the option's name, where it is not the field's
    many: bool = False  # it may be given several times
    pairs: bool = False  # it is written NAME=VALUE
    least: float | None = None
    metavar: str = ""
    hidden: bool = False  # from Python alone


def _home() -> str:
    from weft.models.config import usual_home

    return usual_home()


def usually_probed() -> bool:
    return os.environ.get("WEFT_PROBE", "1") not in ("0", "no", "false")


class RunConfig(Struct, frozen=True, kw_only=True):
    """Everything that can be chosen for a run. `options` are the benchmark's own."""

    benchmark: Annotated[Any, Cli("A benchmark's name, file.py:NAME, or the class itself.", "data", hidden=True)] = None
    data: Annotated[str | Path, Cli("The dataset's folder.", "data")] = ""
    model: Annotated[
        Any,
        Cli("What is evaluated: provider/model@url, a name from weft.toml, file.py:NAME, or NAME:role=MODEL,role=MODEL.", "model"),
    ] = None
    judge: Annotated[Any, Cli("Who judges: provider/model@url, a name from weft.toml, or file.py:NAME.", "judge")] = None
    strategy: Annotated[str, Cli("Test-time strategy: none, cot, self-verify:N, best-of:N.", "model")] = "none"
    prompts: Annotated[str, Cli("'weft', or 'official:DIR' for the paper's prompts from a checkout of its repository.", "judge")] = "weft"
    model_options: Annotated[
        Mapping[str, Any],
        Cli("NAME=VALUE for the model, such as temperature=0; ROLE.NAME=VALUE for a part. Repeatable.", "model", "model_opt", pairs=True),
    ] = {}
    judge_options: Annotated[
        Mapping[str, Any], Cli("NAME=VALUE for the judge, such as max_tokens=1400. Repeatable.", "judge", "judge_opt", pairs=True)
    ] = {}
    preset: Annotated[
        str | tuple[str, ...],
        Cli(
            "A paper's published settings: PAPER/MODEL, or PAPER/judge for the judge (`weft models presets`). Repeatable.",
            "model",
            many=True,
        ),
    ] = ()
    judge_repeats: Annotated[
        int, Cli("How often the judge is asked each question: mean, deviation and variation follow.", "judge", least=1)
    ] = 1
    judge_batch: Annotated[
        bool, Cli("Hand the judge's questions in as batches: half the price, within a day. OpenAI, Gemini.", "judge")
    ] = False
    limit: Annotated[int | None, Cli("Only the first N samples.", "data", least=0)] = None
    sample: Annotated[int | None, Cli("Only N samples drawn at random: the same ones on every machine.", "data", least=1)] = None
    seed: Annotated[int | None, Cli("Which samples --sample draws. (A model's seed is --model-opt seed=N.)", "data")] = None
    shard: Annotated[
        str,
        Cli("K/N: only the K-th of N parts of the run; all are one run, here or once their journals are merged.", "data", metavar="K/N"),
    ] = ""
    where: Annotated[
        Mapping[str, str] | tuple[tuple[str, str], ...],
        Cli("Only samples of a group, such as domain=edit or class=Game. Repeatable.", "data", pairs=True),
    ] = ()
    concurrency: Annotated[
        int | None,
        Cli("Most calls in flight at each endpoint. Default: found by trying, up to 64; a Python function has its own.", "calls", least=1),
    ] = None
    judge_concurrency: Annotated[int | None, Cli("The same for the judge alone.", "calls", least=1)] = None
    budget: Annotated[float | None, Cli("Stop before more than this many USD are spent by this command.", "calls", least=0)] = None
    probe: Annotated[bool, Cli("Do not ask each endpoint one small question before the run begins.", "calls", "no_probe")] = field(
        default_factory=usually_probed
    )
    patience: Annotated[Any, Cli("How often and how long to try again: a `Patience`.", "calls", hidden=True)] = None
    options: Annotated[Mapping[str, Any], Cli("The benchmark's own options.", "data", hidden=True)] = {}
    home: Annotated[str | Path, Cli("Where the journal and the pictures are kept.", "home")] = field(default_factory=_home)


def _described() -> dict[str, Cli]:
    hints = get_type_hints(RunConfig, include_extras=True)
    return {one.name: next(found for found in hints[one.name].__metadata__ if isinstance(found, Cli)) for one in fields(RunConfig)}


FIELDS = _described()
ONLY_COMMANDS = ("dry_run", "help", "config")  # what commands have besides
SHARED = ("sample", "seed")  # a benchmark may have these of its own, and its own come first
RESERVED = {*FIELDS, *(one.option for one in FIELDS.values() if one.option), *ONLY_COMMANDS} - set(SHARED)


def help_of(name: str) -> str:
    return FIELDS[name].help


def fields_for(*stages: Stage) -> tuple[str, ...]:
    """The fields that are about these."""
    return tuple(name for name, one in FIELDS.items() if one.stage in stages)
