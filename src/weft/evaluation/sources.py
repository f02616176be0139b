"""Where the replies of a run come from: a model that is asked now, or a run that is in the journal.

A `RunSource` says what a run is about before anything is read or asked: benchmark, options, model, and how its dataset
is loaded. `weft.evaluation.session.open_run` does the rest, whatever the source."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct, field

from weft.benchmarks.base import Benchmark, load_benchmark, locate_code
from weft.errors import UserError
from weft.evaluation.config import RESERVED_NAMES, RunConfig
from weft.evaluation.generate import LiveReplies, ReplySource, StoredReplies
from weft.evaluation.plan import RunPlan, describe_model
from weft.evaluation.selection import load_dataset
from weft.models.baselines import ReferenceModel
from weft.models.endpoint import Endpoint
from weft.models.presets import find_preset, is_judge_preset
from weft.models.registry import ResolvedModel, resolve_model
from weft.results.run import Run, load_run
from weft.store.blobs import Blobs
from weft.types import Dataset, Model
from weft.workspace import Workspace, read_only_journal

BuildReplySource = Callable[[RunPlan, Mapping[str, Model]], ReplySource]


class RunInputs(Struct, frozen=True, kw_only=True):
    """What a run is about. `load` reads the dataset's files, in a thread; `replies` gives the source of replies once
    there is a plan."""

    benchmark: Benchmark
    options: Any
    load: Callable[[], Dataset]
    replies: BuildReplySource
    # as the manifest describes it, and its endpoints by role
    model: Callable[[Dataset], tuple[Mapping[str, Any], Mapping[str, Endpoint]]]
    locations: tuple[str, str]  # where benchmark and dataset can be found again
    strategy: str = "none"
    # which samples, and which presets
    selection: Mapping[str, Any] = field(default_factory=lambda: {"limit": None, "where": {}})
    names: Mapping[str, str] = {}  # what the user calls the model and the judge
    digest: str = ""  # what the dataset's must be
    judge: Endpoint | None = None  # where the source itself says who judges
    judge_preset: str = ""
    prices: Mapping[str, Any] = {}
    code: str = ""  # a digest of the model's code, where it is the user's own
    dry_run_note: str = ""  # what a dry run must say of how calls are counted
    # why the model cannot answer a turn of this kind; nothing if it can
    unsupported_reason: Callable[[Any], str] = lambda kind: ""


class RunSource(Protocol):
    def open(self, config: RunConfig, workspace: Workspace) -> RunInputs: ...


def resolve_benchmark(benchmark: Any) -> Benchmark:
    """A benchmark whose own options have names of their own."""
    made = load_benchmark(benchmark)
    taken = [name for name in made.Options.__struct_fields__ if name in RESERVED_NAMES]
    if taken:
        raise UserError(f"{type(made).__name__} cannot call an option {taken[0]!r}: every run has one of that name")
    return made


class LiveModel:
    """The model that the configuration names is asked."""

    def open(self, config: RunConfig, workspace: Workspace) -> RunInputs:
        benchmark = resolve_benchmark(config.benchmark)
        data = str(config.data)
        if not Path(data).exists() and data.count("/") != 1:  # OWNER/NAME may be on the hub
            raise UserError(f"{data}: there is no such folder or file (--data)")
        presets = _presets(config.preset)
        settings = workspace.settings
        names = find_config_names(settings, model=config.model, judge=config.judge)
        fixed = presets.get("model", "")
        if (
            fixed
            and isinstance(config.model, str)
            and (config.model == "reference" or config.model.startswith("folder/"))
        ):
            raise UserError(f"{config.model} is not asked, so the preset {fixed} sets nothing")
        model = None
        if config.model != "reference":
            model = resolve_model(
                config.model,
                workspace.blobs,
                config.model_options,
                settings,
                data,
                benchmark.preparation.outputs,
                fixed,
            )
        options = benchmark.parse_options(config.options)
        groups = {axis: benchmark.presentation.canonical_group(axis, name) for axis, name in dict(config.where).items()}
        sampled = {} if config.sample is None else {"sample": {"count": config.sample, "seed": config.seed or 0}}
        chosen = {"limit": config.limit, "where": groups, **sampled, **({"presets": presets} if presets else {})}
        if model is not None:
            code = next((one.code_digest for one in model.endpoints.values() if one.code_digest), "")
        else:
            code = ""
        asked = ModelUnderTest(model, workspace.blobs)
        return RunInputs(
            benchmark=benchmark,
            options=options,
            load=partial(load_dataset, benchmark, Path(data), workspace.blobs, groups, config.limit),
            replies=asked.replies,
            model=asked.endpoints,
            locations=(locate_code(config.benchmark), str(Path(data).absolute())),
            strategy=config.strategy,
            selection=chosen,
            names={**names, **({"source": code} if code else {})},
            judge_preset=presets.get("judge", ""),
            code=code,
            dry_run_note=model.composition.dry_run_note if model is not None and model.composition is not None else "",
            unsupported_reason=asked.unsupported_reason,
        )


class ModelUnderTest(Struct):
    """A model that is asked; none where the dataset's own references are."""

    wired_model: ResolvedModel | None
    blobs: Blobs

    def endpoints(self, dataset: Dataset) -> tuple[Mapping[str, Any], Mapping[str, Endpoint]]:
        if self.wired_model is None:
            self.wired_model = ResolvedModel("reference", {"model": ReferenceModel(dataset.digest, self.blobs)})
        return describe_model(self.wired_model), self.wired_model.endpoints

    def replies(self, plan: RunPlan, parts: Mapping[str, Model]) -> LiveReplies:
        assert self.wired_model is not None
        return LiveReplies(plan, self.wired_model, self.blobs, parts)

    def unsupported_reason(self, kind: Any) -> str:
        """The parts of a composition do what they can."""
        if self.wired_model is None or self.wired_model.composition is not None:
            return ""
        return self.wired_model.endpoints["model"].gives.unsupported_reason(kind)


class StoredRun(Struct, frozen=True):
    """The replies of a run in the journal, by its id, tag, or the beginning of its id: nobody is asked but the
    judge."""

    run: str

    def open(self, config: RunConfig, workspace: Workspace) -> RunInputs:
        with read_only_journal(config.home) as journal:
            first = load_run(journal, self.run, config.benchmark)
        _check_whole(first)
        manifest = first.record.manifest
        benchmark = first.benchmark
        data = _data_of(config, first)
        known = {name: value for name, value in manifest.options.items() if name in benchmark.Options.__struct_fields__}
        kept = {role: name for role, name in manifest.presets.items() if role == "model"}
        chosen: dict[str, Any] = {"limit": manifest.limit, "where": manifest.where}
        chosen |= (
            {"sample": {"count": manifest.sample.count, "seed": manifest.sample.seed}}
            if manifest.sample is not None
            else {}
        )
        return RunInputs(
            benchmark=benchmark,
            options=benchmark.parse_options(known),
            load=partial(load_dataset, benchmark, data, workspace.blobs, chosen["where"], chosen["limit"]),
            replies=lambda plan, parts: StoredReplies(first.turns),
            model=lambda dataset: (manifest.model, {}),
            locations=(first.record.benchmark, str(data)),
            strategy=manifest.strategy,
            selection={**chosen, **({"presets": kept} if kept else {})},
            names={
                **{role: name for role, name in first.record.names.items() if role == "model"},
                **find_config_names(workspace.settings, judge=config.judge),
            },
            digest=manifest.dataset.digest,
        )


def _check_whole(run: Run) -> None:
    if not run.record.is_complete(len(run.turns)):
        told = run.record.format_turn_count(len(run.turns), "of its")
        raise UserError(f"{run.id} has {told}: finish it first, or name another run (`weft runs`)")


def _data_of(config: RunConfig, run: Run) -> Path:
    """Where the dataset of a stored run is."""
    if not config.data and not run.record.data:
        raise UserError(f"where the dataset of {run.id} was is not in the journal: say where it is with --data")
    data = Path(config.data or run.record.data).absolute()
    if not data.exists():
        raise UserError(f"the dataset of {run.id} is not at {data}: say where it is with --data")
    return data


def _presets(names: str | tuple[str, ...]) -> dict[str, str]:
    """By role."""
    made: dict[str, str] = {}
    for name in (names,) if isinstance(names, str) else names:
        if is_judge_preset(name):
            role = "judge"
        else:
            role = "model"
        if role in made:
            raise UserError(f"two presets for the {role}: {made[role]} and {name}")
        find_preset(name)
        made[role] = name
    return made


def find_config_names(settings: Mapping[str, Any], **given: Any) -> dict[str, str]:
    """What weft.toml calls those who play, by role."""
    known: Mapping[str, Any] = settings.get("models", {})
    return {role: one for role, one in given.items() if isinstance(one, str) and one in known}
