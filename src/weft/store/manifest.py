"""A run's manifest: everything that decides what it asks and how that is scored. Its digest names the run, so that the
same command is the same run.

    manifest = manifest_from(text)          # raises msgspec.MsgspecError for anything else
    manifest.model.name, manifest.dataset.digest, manifest.without_seed()
"""

import hashlib
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from weft.untrusted import dict_or_empty


class Identity(dict[str, Any]):
    """A model or a judge: its name, what it takes, and whatever else its provider says of it. Only the name is sure to
    be there; what a journal of anyone's has in the place of the rest is no error, and counts as nothing."""

    @property
    def name(self) -> str:
        return str(self.get("name", ""))

    @property
    def provider(self) -> str:
        return str(self.get("provider", ""))

    @property
    def version(self) -> str:
        """Of its weights or its code; empty where none is known."""
        version = self.get("version")
        if isinstance(version, str):
            return version
        return ""

    @property
    def takes(self) -> dict[str, Any]:
        """How messages are adapted to it (`weft.models.endpoint.Takes`)."""
        return dict_or_empty(self.get("takes"))

    @property
    def parameters(self) -> dict[str, Any]:
        """What every request to its server has."""
        return dict_or_empty(self.get("parameters"))

    @property
    def options(self) -> dict[str, Any]:
        """What the user's own code was made with."""
        return dict_or_empty(self.get("options"))

    @property
    def parts(self) -> "dict[str, Identity]":
        """The models of a composition, by role."""
        return {role: Identity(dict_or_empty(part)) for role, part in dict_or_empty(self.get("parts")).items()}

    @property
    def plan(self) -> str:
        """How a composition plans, in words."""
        plan = self.get("plan")
        if isinstance(plan, str):
            return plan
        return ""

    @property
    def temperature(self) -> float | None:
        found = self.get("temperature") or self.parameters.get("temperature")
        if isinstance(found, (int, float)):
            return found
        return None

    @property
    def seed(self) -> Any:
        """The seed that it was given, wherever its provider keeps it; None without one."""
        for where in (self, self.parameters, self.options):
            if "seed" in where:
                return where["seed"]
        return None

    @property
    def choice_labels(self) -> dict[str, str]:
        """What was chosen for it, in words, as far as it tells runs of it apart."""
        made: dict[str, str] = {}
        if self.version and self.provider != "composition" and not self.version.startswith("source:"):
            made["version"] = f"version {self.version}"
        if self.temperature is not None:
            made["temperature"] = f"temperature {self.temperature:g}"
        if self.seed is not None:
            made["seed"] = f"seed {self.seed}"
        if self.provider == "python":
            made |= {f"given {name}": f"{name} {value}" for name, value in self.options.items() if name != "seed"}
        if self.plan:
            made["plan"] = self.plan
        for role, part in self.parts.items():
            made |= {f"{role} {key}": f"{role} {text}" for key, text in part.choice_labels.items()}
        return made

    def without_seed(self) -> "Identity":
        """What is left where seeds, also those of its parts, do not count."""
        made = Identity((key, value) for key, value in self.items() if key != "seed")
        for key in ("parameters", "options"):
            if isinstance(made.get(key), dict):
                made[key] = {name: value for name, value in dict_or_empty(made[key]).items() if name != "seed"}
        if isinstance(made.get("parts"), dict):
            parts = dict_or_empty(made["parts"])
            made["parts"] = {
                role: Identity(dict_or_empty(one)).without_seed() if isinstance(one, dict) else one
                for role, one in parts.items()
            }
        return made


class BenchmarkVersion(Struct, frozen=True):
    """Which benchmark, and which version of its code."""

    name: str
    version: str  # changes with what its numbers mean


class DatasetVersion(Struct, frozen=True):
    """Which data. How many samples were asked about is no part of it: that is known only when all are read
    (`RunRecord.expected`)."""

    name: str  # the benchmark's own, or what else is written in its format
    digest: str  # of everything that can change a number


class PromptsVersion(Struct, frozen=True):
    """The judge's prompts."""

    source: str  # `weft`, or where the official ones came from
    digest: str


class Sampling(Struct, frozen=True):
    """A random part of the samples."""

    count: int
    seed: int


class Manifest(Struct, frozen=True, omit_defaults=True):
    """A field that is added later has a default, which is not written: runs keep their names."""

    weft: str  # its version
    benchmark: BenchmarkVersion
    dataset: DatasetVersion
    model: Identity  # what replies
    judge: Identity  # what scores the replies
    prompts: PromptsVersion  # what the judge is asked with
    options: dict[str, Any]  # the benchmark's own
    option_labels: tuple[str, ...]  # the same in words, as far as they tell runs apart
    strategy: str  # how a reply is chosen among several, `none` or such as `best-of:3`
    judge_repeats: int  # how often a judge is asked each question
    limit: int | None  # only so many samples, the first ones
    where: dict[str, str]  # only samples of these groups
    sample: Sampling | None = None  # only some samples, at random
    presets: dict[str, str] = {}  # settings of a paper, by role

    @property
    def digest(self) -> str:
        return hashlib.sha256(msgspec.json.encode(self, order="sorted")).hexdigest()

    def without_seed(self) -> "Manifest":
        """What is left where its model's seeds do not count."""
        return replace(self, model=self.model.without_seed())


def parse_manifest(text: str | bytes) -> Manifest:
    """From JSON, whoever wrote it. Raises msgspec.MsgspecError, or what else JSON can raise, where it is none."""
    return msgspec.json.decode(text, type=Manifest, dec_hook=_identity)


def _identity(kind: type, value: Any) -> Any:
    if kind is not Identity:
        raise NotImplementedError(kind)
    if not isinstance(value, dict):
        raise TypeError(f"Expected `object`, got `{type(value).__name__}`")
    made = Identity(dict_or_empty(value))
    if not isinstance(made.get("name"), str):
        raise ValueError("Object missing required field `name`")
    return made
