"""What to run, and how: one struct from which the command line's options, Python's keywords and the reserved names are
derived.

    RunConfig(benchmark="weave", data="DATA", model="openai/NAME", judge="openai/gpt-4.1", options={"history": "full"})

A field's help text is here and nowhere else. `CliField` describes a field on the command line, as far as its name and
type do not. Nothing heavy is imported here: the command line reads it for every `--help`.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

from msgspec import Struct, field
from msgspec.structs import fields

Stage = Literal["data", "model", "judge", "calls", "home"]


class CliField(Struct, frozen=True):
    """A field of RunConfig on the command line."""

    help: str
    stage: Stage  # what it configures: commands on a stored run do not offer the model's
    option: str = ""  # the option's name, if it is not the field's
    repeatable: bool = False
    pairs: bool = False  # it is written NAME=VALUE
    minimum: float | None = None
    metavar: str = ""
    hidden: bool = False  # only for Python


def _default_home() -> str:
    from weft.models.config import default_home

    return default_home()


def default_preflight() -> bool:
    """Return whether endpoints are checked before a run, by the environment variable WEFT_PREFLIGHT."""
    return os.environ.get("WEFT_PREFLIGHT", "1") not in ("0", "no", "false")


class RunConfig(Struct, frozen=True, kw_only=True):
    """Everything that can be chosen for a run. `options` are the benchmark's own."""

    benchmark: Annotated[
        Any, CliField("A benchmark's name, file.py:NAME, or the class itself.", "data", hidden=True)
    ] = None
    data: Annotated[str | Path, CliField("The dataset's folder.", "data")] = ""
    model: Annotated[
        Any,
        CliField(
            "The model under test: provider/model@url, a name from weft.toml, file.py:NAME, or "
            "NAME:role=MODEL,role=MODEL.",
            "model",
        ),
    ] = None
    judge: Annotated[
        Any, CliField("The judge: provider/model@url, a name from weft.toml, or file.py:NAME.", "judge")
    ] = None
    strategy: Annotated[str, CliField("Test-time strategy: none, cot, self-verify:N, best-of:N.", "model")] = "none"
    prompts: Annotated[
        str,
        CliField(
            "'weft', or 'official:PATH' for the paper's prompts: a checkout of its repository, or a file.", "judge"
        ),
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
    crop_rows: Annotated[
        bool,
        CliField(
            "With images=strip, where the model gets its images in one row: if its output has the shape of the row, "
            "keep only the requested image, at its size.",
            "model",
        ),
    ] = False
    preset: Annotated[
        str | tuple[str, ...],
        CliField(
            "A paper's published settings: PAPER/MODEL, or PAPER/judge for the judge (`weft models presets`). "
            "Repeatable.",
            "model",
            repeatable=True,
        ),
    ] = ()
    judge_repeats: Annotated[
        int,
        CliField(
            "How often the judge is asked each question; reports mean, standard deviation and variation.",
            "judge",
            minimum=1,
        ),
    ] = 1
    judge_batch: Annotated[
        bool,
        CliField("Submit the judge's questions as batches: half the price, within a day. OpenAI, Gemini.", "judge"),
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
            "Maximum of calls in flight at each endpoint. Default: found by trying, up to 64; "
            "a Python function has its own.",
            "calls",
            minimum=1,
        ),
    ] = None
    judge_concurrency: Annotated[int | None, CliField("The same for the judge alone.", "calls", minimum=1)] = None
    budget: Annotated[
        float | None,
        CliField("Stop before more than this many USD are spent by this command.", "calls", minimum=0, metavar="USD"),
    ] = None
    preflight: Annotated[
        bool,
        CliField("Skip the preflight check: one small question to each endpoint.", "calls", "no_preflight"),
    ] = field(default_factory=default_preflight)
    fresh: Annotated[
        bool, CliField("Ask model and judge anew, whatever is cached: a new run beside the others.", "calls")
    ] = False
    reuse: Annotated[
        str,
        CliField(
            "Continue RUN although the model's version, file or address has changed. You vouch that it is the same "
            "model.",
            "model",
            metavar="RUN",
        ),
    ] = ""
    retry_policy: Annotated[
        Any, CliField("How often and how long to try again: a `RetryPolicy`.", "calls", hidden=True)
    ] = None
    options: Annotated[Mapping[str, Any], CliField("The benchmark's own options.", "data", hidden=True)] = {}
    home: Annotated[str | Path, CliField("Where the journal and the images are stored.", "home")] = field(
        default_factory=_default_home
    )


def _read_fields() -> dict[str, CliField]:
    """Return the description of every field of RunConfig, by name."""
    hints = get_type_hints(RunConfig, include_extras=True)
    descriptions: dict[str, CliField] = {}
    for config_field in fields(RunConfig):
        metadata = hints[config_field.name].__metadata__
        descriptions[config_field.name] = next(item for item in metadata if isinstance(item, CliField))
    return descriptions


FIELDS = _read_fields()
COMMAND_OPTIONS = ("dry_run", "help", "config")  # options that only commands have
SHAREABLE_NAMES = ("sample", "seed")  # a benchmark may have options of these names, which take precedence
_OPTION_NAMES = {description.option for description in FIELDS.values() if description.option}
RESERVED_NAMES = {*FIELDS, *_OPTION_NAMES, *COMMAND_OPTIONS} - set(SHAREABLE_NAMES)


def help_text(name: str) -> str:
    """Return the help text of a field."""
    return FIELDS[name].help


def fields_for(*stages: Stage) -> tuple[str, ...]:
    """Return the names of the fields that configure these stages."""
    return tuple(name for name, description in FIELDS.items() if description.stage in stages)
