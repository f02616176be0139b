"""A sweep: one benchmark with every combination of some models and settings, under one name.

    cells = plan_sweep(fields, ["bagel", "janus"], {"history": ["none", "full"]})

`fields` are those of a `RunConfig`. Every run carries the sweep's name, by which reports find it in any journal.
"""

import hashlib
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from weft.benchmarks.base import load_benchmark
from weft.errors import UserError
from weft.evaluation.config import RunConfig
from weft.evaluation.session import Session
from weft.results.settings import normalize_name
from weft.results.sweeps import NAME_KEY, join_names, sweeps_of
from weft.secrets import strip_url_secrets

RUN_SETTINGS = ("strategy", "prompts", "judge", "judge_repeats", "limit", "sample", "preset")  # fields of RunConfig
NUMBERS = ("judge_repeats", "limit", "sample")
SEED = "seed"
MODEL = "model"
MAX_CELLS = 500
NOT_IN_NAME = ("home", "budget", "concurrency", "judge_concurrency", "preflight", "fresh")  # they change no number


class SweepCell(Struct, frozen=True):
    """One combination of a sweep."""

    settings: Mapping[str, str]  # what it has of the varied settings, the model first
    fields: Mapping[str, Any]  # of its RunConfig

    @property
    def label(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self.settings.items())

    @property
    def config(self) -> RunConfig:
        return RunConfig(**self.fields)


def read_varied(texts: Iterable[str]) -> dict[str, list[str]]:
    """Return the values of each setting from texts NAME=V1,V2. Raises UserError for one that cannot be read."""
    varied: dict[str, list[str]] = {}
    for text in texts:
        name, sign, values = text.partition("=")
        name = normalize_name(name)
        listed = [value.strip() for value in values.split(",") if value.strip()]
        if not sign or not name or not listed:
            raise UserError(f"--vary {text!r}: write NAME=VALUE,VALUE, such as history=none,full")
        if name in varied:
            raise UserError(f"--vary {name}: it is given twice; write all of its values at once")
        if len(set(listed)) < len(listed):
            raise UserError(f"--vary {text}: a value is given twice")
        varied[name] = listed
    return varied


def plan_sweep(
    fields: Mapping[str, Any], models: Sequence[Any], varied: Mapping[str, Sequence[Any]]
) -> list[SweepCell]:
    """Return all combinations, model by model. Raises UserError for a setting or a value that the benchmark refuses."""
    benchmark = load_benchmark(fields["benchmark"])
    own = benchmark.Options.__struct_fields__
    if MODEL in varied or "data" in varied:
        raise UserError("--vary: models are given by --model NAME,NAME; a sweep has one dataset")
    twice = [model for model in models if models.count(model) > 1]
    if twice:
        raise UserError(f"--model {strip_url_secrets(str(twice[0]))}: it is given twice")
    cells: list[SweepCell] = []
    for model in models:
        for values in itertools.product(*varied.values()):
            chosen = dict(zip(varied, values, strict=True))
            cell_fields = _choose({**fields, MODEL: model}, chosen, own)
            benchmark.parse_options(cell_fields["options"])
            settings = {name: str(value) for name, value in chosen.items()}
            cells.append(SweepCell({MODEL: strip_url_secrets(str(model)), **settings}, cell_fields))
    if not cells or len(cells) > MAX_CELLS:
        raise UserError(f"a sweep has 1 to {MAX_CELLS} runs, not {len(cells)}")
    return cells


def _choose(fields: Mapping[str, Any], chosen: Mapping[str, Any], own: Sequence[str]) -> dict[str, Any]:
    """Return the fields of a run with the values that were chosen for it."""
    changed = dict(fields)
    for name in ("options", "model_options", "judge_options"):
        changed[name] = dict(changed.get(name) or {})
    for name, value in chosen.items():
        target, dot, rest = name.partition(".")
        if name in own:
            changed["options"][name] = value
        elif name in RUN_SETTINGS:
            changed[name] = _convert(name, value)
        elif dot and target == "judge":
            changed["judge_options"][rest] = value
        elif dot and target == MODEL:
            changed["model_options"][rest] = value
        else:
            changed["model_options"][name] = value
    return changed


def _convert(name: str, value: Any) -> Any:
    if name not in NUMBERS or not isinstance(value, str):
        return value
    if not value.isdecimal():
        raise UserError(f"--vary {name}={value}: give whole numbers")
    return int(value)


def list_dimensions(models: Sequence[Any], varied: Mapping[str, Sequence[Any]]) -> list[str]:
    """Return what the sweep's table is by: what has several values, but for seeds, which are one row."""
    names = [MODEL] if len(models) > 1 else []
    names += [name for name, values in varied.items() if len(values) > 1 and name.rpartition(".")[2] != SEED]
    return names or [MODEL]


def build_name(fields: Mapping[str, Any], dimensions: Sequence[str], cells: Sequence[SweepCell]) -> str:
    """Return a name that the same command always gives to its sweep: the benchmark, what varies, and a digest."""
    shared = {name: str(value) for name, value in sorted(fields.items()) if name not in NOT_IN_NAME}
    identity = [shared, [dict(cell.settings) for cell in cells]]
    digest = hashlib.sha256(msgspec.json.encode(identity, order="sorted")).hexdigest()[:6]
    benchmark = load_benchmark(fields["benchmark"]).name
    return "-".join([benchmark, *dimensions, digest])[-60:]


def name_session(session: Session, name: str) -> None:
    """Give a session's run the sweep's name, beside those of other sweeps that it is of."""
    before: list[str] = []
    for record in session.journal.runs():
        if record.id == session.run_id:
            before += sweeps_of(record)
    session.names[NAME_KEY] = join_names([*before, name])
