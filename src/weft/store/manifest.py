"""A run's manifest: everything that decides what it asks and how that is scored. Its digest names the run, so that the
same command is the same run.

    manifest = parse_manifest(text)          # raises msgspec.MsgspecError if it is invalid
    manifest.model.name, manifest.dataset.digest, manifest.without_seed()
"""

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from weft.untrusted import dict_or_empty

DERIVED_VERSIONS = ("source:", "object:")  # how versions begin that weft derived from a user's code and its values


class Identity(dict[str, Any]):
    """What identifies a model or a judge: its name, what it accepts, and whatever its provider adds.

    Only the name is certain. A journal may come from anybody: a value of an unexpected type counts as missing.
    """

    @property
    def name(self) -> str:
        return str(self.get("name", ""))

    @property
    def provider(self) -> str:
        return str(self.get("provider", ""))

    @property
    def version(self) -> str:
        """The version of its weights or its code; empty if unknown."""
        return self._text("version")

    @property
    def asked_anew_at(self) -> str:
        """When the user had it asked anew (`--fresh`), to the second; empty if answers may be reused."""
        return self._text("fresh")[:19]

    @property
    def takes(self) -> dict[str, Any]:
        """What input it accepts (`weft.types.Takes`)."""
        return dict_or_empty(self.get("takes"))

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of every request to its server."""
        return dict_or_empty(self.get("parameters"))

    @property
    def options(self) -> dict[str, Any]:
        """The options that the user's own code was created with."""
        return dict_or_empty(self.get("options"))

    @property
    def parts(self) -> "dict[str, Identity]":
        """The models of a composition, by role."""
        return {role: Identity(dict_or_empty(part)) for role, part in dict_or_empty(self.get("parts")).items()}

    @property
    def plan(self) -> str:
        """How a composition plans, in words."""
        return self._text("plan")

    @property
    def temperature(self) -> float | None:
        for settings in (self, self.parameters):
            temperature = settings.get("temperature")
            if isinstance(temperature, (int, float)) and not isinstance(temperature, bool):
                return temperature
        return None

    @property
    def seed(self) -> Any:
        """Its seed, wherever its provider keeps it; None without one."""
        for settings in (self, self.parameters, self.options):
            if "seed" in settings:
                return settings["seed"]
        return None

    @property
    def choice_labels(self) -> dict[str, str]:
        """What the user chose for it, in words, as far as it distinguishes runs."""
        labels: dict[str, str] = {}
        if self.version and self.provider != "composition" and not self.version.startswith(DERIVED_VERSIONS):
            labels["version"] = f"version {self.version}"
        if self.asked_anew_at:
            labels["fresh"] = f"asked anew {self.asked_anew_at}"
        if self.temperature is not None:
            labels["temperature"] = f"temperature {self.temperature:g}"
        if self.seed is not None:
            labels["seed"] = f"seed {self.seed}"
        if self.provider == "python":
            for name, value in self.options.items():
                if name != "seed":
                    labels[f"given {name}"] = f"{name} {value}"
        if self.takes.get("images") == "strip":
            labels["input images"] = "images strip"
        if self.plan:
            labels["plan"] = self.plan
        for role, part in self.parts.items():
            for key, label in part.choice_labels.items():
                labels[f"{role} {key}"] = f"{role} {label}"
        return labels

    def without_seed(self) -> "Identity":
        """Return the identity without its seed and those of its parts."""
        identity = Identity(_without_key(self, "seed"))
        for key in ("parameters", "options"):
            if isinstance(identity.get(key), dict):
                identity[key] = _without_key(dict_or_empty(identity[key]), "seed")
        if isinstance(identity.get("parts"), dict):
            parts = dict(identity["parts"])
            for role, part in parts.items():
                if isinstance(part, dict):
                    parts[role] = Identity(dict_or_empty(part)).without_seed()
            identity["parts"] = parts
        return identity

    def _text(self, key: str) -> str:
        value = self.get(key)
        if isinstance(value, str):
            return value
        return ""


def _without_key(values: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name != key}


class BenchmarkVersion(Struct, frozen=True):
    """Which benchmark, and which version of its code."""

    name: str
    version: str  # changes when its scores change their meaning


class DatasetVersion(Struct, frozen=True):
    """Which dataset. The number of samples is in `RunRecord.expected`: it is known only when all are read."""

    name: str  # the benchmark's own dataset, or another in its format
    digest: str  # of everything that can change a score


class PromptsVersion(Struct, frozen=True):
    """The judge's prompts."""

    source: str  # `weft`, or where the official prompts came from
    digest: str


class Sampling(Struct, frozen=True):
    """A random subset of the samples."""

    count: int
    seed: int


class Manifest(Struct, frozen=True, omit_defaults=True):
    """What a run is. A field that is added later has a default, which is not written: runs keep their ids."""

    weft: str  # version
    benchmark: BenchmarkVersion
    dataset: DatasetVersion
    model: Identity
    judge: Identity
    prompts: PromptsVersion
    options: dict[str, Any]  # the benchmark's own
    option_labels: tuple[str, ...]  # the same in words, as far as they distinguish runs
    strategy: str  # `none`, or how a reply is chosen among several, such as `best-of:3`
    judge_repeats: int  # how often the judge is asked each question
    limit: int | None  # only the first samples
    where: dict[str, str]  # only samples of these groups
    sample: Sampling | None = None  # only a random subset of the samples
    presets: dict[str, str] = {}  # a paper's settings, by role
    crop_rows: bool = False  # of an output in the shape of an input row, the part that was asked for

    @property
    def digest(self) -> str:
        """The sha256 of everything in it."""
        return hashlib.sha256(msgspec.json.encode(self, order="sorted")).hexdigest()

    def without_seed(self) -> "Manifest":
        """Return the manifest without the seeds of its model."""
        return replace(self, model=self.model.without_seed())


def parse_manifest(text: str | bytes) -> Manifest:
    """Parse JSON from anybody. Raises msgspec.MsgspecError, or what else JSON can raise, if it is invalid."""
    return msgspec.json.decode(text, type=Manifest, dec_hook=_decode_identity)


def _decode_identity(type_: type, value: Any) -> Any:
    if type_ is not Identity:
        raise NotImplementedError(type_)
    if not isinstance(value, dict):
        raise TypeError(f"Expected `object`, got `{type(value).__name__}`")
    identity = Identity(dict_or_empty(value))
    if not isinstance(identity.get("name"), str):
        raise ValueError("Object missing required field `name`")
    return identity
