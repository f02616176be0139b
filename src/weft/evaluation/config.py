"""What to run, and how: one struct from which the command line's options, Python's keywords and the reserved names are
made.

    RunConfig(benchmark="weave", data="DATA", model="openai/NAME", judge="openai/gpt-4.1", options={"history": "full"})

A field's help text stands here and nowhere else. `Cli` says how a field looks on the command line, where its name and
type do not say so. Nothing heavy is imported here: the command line reads it for every `--help`."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

from msgspec import Struct, field
from msgspec.structs import fields

Stage = Literal["data", "model", "judge", "calls", "home"]


class CliField(Struct, frozen=True):
    """A field on the command line. `stage` is what it is about: a stored run has no use for the model's."""

    help: str
    stage: Stage
    option: str = ""  # the option's name, where it is not the field's
    repeatable: bool = False  # it may be given several times
    pairs: bool = False  # it is written NAME=VALUE
    minimum: float | None = None
    metavar: str = ""
    hidden: bool = False  # from Python alone


def _home() -> str:
    from weft.models.config import default_home

    return default_home()


def default_probe() -> bool:
    return os.environ.get("WEFT_PROBE", "1") not in ("0", "no", "false")


class RunConfig(Struct, frozen=True, kw_only=True):
    """Everything that can be chosen for a run. `options` are the benchmark's own."""

    benchmark: Annotated[
        Any, CliField("A benchmark's name, file.py:NAME, or the class itself.", "data", hidden=True)
    ] = None
    data: Annotated[str | Path, CliField("The dataset's folder.", "data")] = ""
    model: Annotated[
        Any,
        CliField(
            "What is evaluated: provider/model@url, a name from weft.toml, file.py:NAME, or NAME:role=MODEL,role=MODEL.",
            "model",
        ),
    ] = None
    judge: Annotated[
        Any, CliField("Who judges: provider/model@url, a name from weft.toml, or file.py:NAME.", "judge")
    ] = None
    strategy: Annotated[str, CliField("Test-time strategy: none, cot, self-verify:N, best-of:N.", "model")] = "none"
    prompts: Annotated[
        str, CliField("'weft', or 'official:DIR' for the paper's prompts from a checkout of its repository.", "judge")
    ] = "weft"
    model_options: Annotated[
        Mapping[str, Any],
        CliField(
            "NAME=VALUE for the model, such as temperature=0; ROLE.NAME=VALUE for a part. Repeatable.",
            "model",
            "model_opt",
            pairs=True,
        ),
    ] = {}
    judge_options: Annotated[
        Mapping[str, Any],
        CliField("NAME=VALUE for the judge, such as max_tokens=1400. Repeatable.", "judge", "judge_opt", pairs=True),
    ] = {}
    preset: Annotated[
        str | tuple[str, ...],
        CliField(
            "A paper's published settings: PAPER/MODEL, or PAPER/judge for the judge (`weft models presets`). Repeatable.",
            "model",
            repeatable=True,
        ),
    ] = ()
    judge_repeats: Annotated[
        int,
        CliField(
            "How often the judge is asked each question: mean, deviation and variation follow.", "judge", minimum=1
        ),
    ] = 1
    judge_batch: Annotated[
        bool,
        CliField("Hand the judge's questions in as batches: half the price, within a day. OpenAI, Gemini.", "judge"),
    ] = False
    limit: Annotated[int | None, CliField("Only the first N samples.", "data", minimum=0)] = None
    sample: Annotated[
        int | None, CliField("Only N samples drawn at random: the same ones on every machine.", "data", minimum=1)
    ] = None
    seed: Annotated[
        int | None, CliField("Which samples --sample draws. (A model's seed is --model-opt seed=N.)", "data")
    ] = None
    shard: Annotated[
        str,
        CliField(
            "K/N: only the K-th of N parts of the run; all are one run, here or once their journals are merged.",
            "data",
            metavar="K/N",
        ),
    ] = ""
    where: Annotated[
        Mapping[str, str] | tuple[tuple[str, str], ...],
        CliField("Only samples of a group, such as domain=edit or class=Game. Repeatable.", "data", pairs=True),
    ] = ()
    concurrency: Annotated[
        int | None,
        CliField(
            "Most calls in flight at each endpoint. Default: found by trying, up to 64; a Python function has its own.",
            "calls",
            minimum=1,
        ),
    ] = None
    judge_concurrency: Annotated[int | None, CliField("The same for the judge alone.", "calls", minimum=1)] = None
    budget: Annotated[
        float | None, CliField("Stop before more than this many USD are spent by this command.", "calls", minimum=0)
    ] = None
    probe: Annotated[
        bool, CliField("Do not ask each endpoint one small question before the run begins.", "calls", "no_probe")
    ] = field(default_factory=default_probe)
    retry_policy: Annotated[
        Any, CliField("How often and how long to try again: a `Patience`.", "calls", hidden=True)
    ] = None
    options: Annotated[Mapping[str, Any], CliField("The benchmark's own options.", "data", hidden=True)] = {}
    home: Annotated[str | Path, CliField("Where the journal and the pictures are kept.", "home")] = field(
        default_factory=_home
    )


def _described() -> dict[str, CliField]:
    hints = get_type_hints(RunConfig, include_extras=True)
    return {
        one.name: next(found for found in hints[one.name].__metadata__ if isinstance(found, CliField))
        for one in fields(RunConfig)
    }


FIELDS = _described()
ONLY_COMMANDS = ("dry_run", "help", "config")  # what commands have besides
SHAREABLE_NAMES = ("sample", "seed")  # a benchmark may have these of its own, and its own come first
RESERVED_NAMES = {*FIELDS, *(one.option for one in FIELDS.values() if one.option), *ONLY_COMMANDS} - set(
    SHAREABLE_NAMES
)


def help_text(name: str) -> str:
    return FIELDS[name].help


def fields_for(*stages: Stage) -> tuple[str, ...]:
    """The fields that are about these."""
    return tuple(name for name, one in FIELDS.items() if one.stage in stages)
