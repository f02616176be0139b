"""Where the replies of a run come from: a model that is called now, or a run in the journal.

A `RunSource` says what a run is about before anything is read or called: benchmark, options, model, and how its dataset
is loaded. `weft.evaluation.session.open_run` does the rest, whatever the source.
"""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct, field

from weft.benchmarks.base import Benchmark, load_benchmark, locate_code
from weft.errors import UserError, WeftError, wrap_error
from weft.evaluation.config import RESERVED_NAMES, RunConfig
from weft.evaluation.generate import LiveReplies, ReplySource, StoredReplies
from weft.evaluation.plan import RunPlan, describe_model
from weft.evaluation.reuse import identify_model
from weft.evaluation.selection import load_dataset
from weft.models.baselines import ReferenceModel
from weft.models.code_digest import belongs_to_weft, read_source
from weft.models.endpoint import Endpoint
from weft.models.presets import find_preset, is_judge_preset
from weft.models.registry import ResolvedModel, resolve_model
from weft.results.run import Run, load_run
from weft.store.blobs import Blobs
from weft.store.manifest import Sampling
from weft.types import Dataset, Model
from weft.workspace import Workspace, read_only_journal

BuildReplySource = Callable[[RunPlan, Mapping[str, Model]], ReplySource]


class RunInputs(Struct, frozen=True, kw_only=True):
    """What a run is about."""

    benchmark: Benchmark
    options: Any
    load: Callable[[], Dataset]  # reads the dataset's files; called in a thread
    replies: BuildReplySource
    # returns the model as in the manifest, and its endpoints by role
    model: Callable[[Dataset], tuple[Mapping[str, Any], Mapping[str, Endpoint]]]
    locations: tuple[str, str]  # where benchmark and dataset are found again
    strategy: str = "none"
    # which samples, and which presets
    selection: Mapping[str, Any] = field(default_factory=lambda: {"limit": None, "where": {}})
    names: Mapping[str, str] = {}  # what the user calls the model and the judge
    digest: str = ""  # the digest that the dataset must have
    judge: Endpoint | None = None  # set if the source itself determines the judge
    judge_preset: str = ""
    prices: Mapping[str, Any] = {}
    code: str = ""  # a digest of the model's code, if it is the user's own
    benchmark_code: str = ""  # the same of the benchmark's
    dry_run_note: str = ""  # on how a dry run counts calls
    version_note: str = ""  # on the version of a composition
    unsupported_reason: Callable[[Any], str] = lambda modality: ""  # why the model cannot answer; empty if it can


class RunSource(Protocol):
    """A source of replies."""

    def open(self, config: RunConfig, workspace: Workspace) -> RunInputs: ...


def resolve_benchmark(benchmark: Any) -> Benchmark:
    """Return a benchmark. Raises UserError if one of its options has a reserved name."""
    resolved = load_benchmark(benchmark)
    for name in resolved.Options.__struct_fields__:
        if name in RESERVED_NAMES:
            raise UserError(f"{type(resolved).__name__} cannot call an option {name!r}: every run has one of that name")
    return resolved


class LiveModel:
    """The configured model is called."""

    def open(self, config: RunConfig, workspace: Workspace) -> RunInputs:
        """Resolve benchmark, model and options. Raises UserError for a mistake in the configuration."""
        benchmark = resolve_benchmark(config.benchmark)
        data = str(config.data)
        if not Path(data).exists() and data.count("/") != 1:  # OWNER/NAME may be on the hub
            raise UserError(f"{data}: there is no such folder or file (--data)")
        presets = _resolve_presets(config.preset)
        resolved = _resolve_model(config, workspace, benchmark, presets.get("model", ""))
        presentation = benchmark.presentation
        groups = {axis: presentation.canonical_group(axis, name) for axis, name in dict(config.where).items()}
        selection: dict[str, Any] = {"limit": config.limit, "where": groups}
        if config.sample is not None:
            selection["sample"] = {"count": config.sample, "seed": config.seed or 0}
        if presets:
            selection["presets"] = presets
        if config.crop_rows:
            _check_rows(resolved)
            selection["crop_rows"] = True
        names = find_config_names(workspace.settings, model=config.model, judge=config.judge)
        code_digest = ""
        dry_run_note = ""
        version_note = ""
        if resolved is not None:
            if config.fresh or config.reuse:
                resolved = identify_model(config, resolved)
            endpoints = resolved.endpoints.values()
            code_digest = " ".join(endpoint.code_digest for endpoint in endpoints if endpoint.code_digest)
            version_note = resolved.version_note
            if resolved.composition is not None:
                dry_run_note = resolved.composition.dry_run_note
                code_digest = f"{_composition_digest(resolved.composition, workspace.blobs)} {code_digest}".strip()
        if code_digest:
            names["source"] = code_digest
        benchmark_digest = ""
        options = _read_options(benchmark, config.options)
        location = locate_code(config.benchmark)
        if ":" in location:  # in a file of the user's
            benchmark_digest = read_source(type(benchmark), _project_of(workspace.blobs)).digest
            names["benchmark_source"] = benchmark_digest
        model = ModelUnderTest(resolved, workspace.blobs)
        return RunInputs(
            benchmark=benchmark,
            options=options,
            load=partial(load_dataset, benchmark, Path(data), workspace.blobs, groups, config.limit),
            replies=model.replies,
            model=model.endpoints,
            locations=(location, str(Path(data).absolute())),
            strategy=config.strategy,
            selection=selection,
            names=names,
            judge_preset=presets.get("judge", ""),
            code=code_digest,
            benchmark_code=benchmark_digest,
            dry_run_note=dry_run_note,
            version_note=version_note,
            unsupported_reason=model.unsupported_reason,
        )


def _check_rows(resolved: ResolvedModel | None) -> None:
    """Raise UserError if there are no rows to crop: nobody joins the model's images to one."""
    endpoint = None
    if resolved is not None and resolved.composition is None:
        endpoint = resolved.endpoints["model"]
    if endpoint is None or endpoint.takes.for_modality("image").images != "strip":
        name = "reference" if resolved is None else resolved.name
        raise UserError(
            f"--crop-rows: {name} does not get its images as one row; --model-opt images=strip sends them so"
        )


def find_usual_judge(benchmark: Any, options: Mapping[str, Any]) -> str | None:
    """Return the judge of a benchmark where the user names none; None if the user must."""
    resolved = resolve_benchmark(benchmark)
    return resolved.preparation.judge(_read_options(resolved, options)) or None


def _composition_digest(composition: type, blobs: Blobs) -> str:
    """Return a digest of a composition's code; "" for weft's own."""
    if belongs_to_weft(composition.__module__):
        return ""
    return read_source(composition, _project_of(blobs)).digest


def _project_of(blobs: Blobs) -> Path:
    """Return the folder that the home folder is in."""
    return blobs.root.parent.absolute().parent


def _read_options(benchmark: Benchmark, values: Mapping[str, Any]) -> Struct:
    """Have a benchmark parse its options. Raises WeftError where its code fails, or returns anything but a struct."""
    try:
        options = benchmark.parse_options(values)
    except Exception as error:
        raise wrap_error(f"benchmark {benchmark.name}: its options", error) from error
    if not isinstance(options, Struct):
        raise WeftError(f"benchmark {benchmark.name}: parse_options returned {type(options).__name__}, not a Struct")
    return options


def _resolve_model(config: RunConfig, workspace: Workspace, benchmark: Benchmark, preset: str) -> ResolvedModel | None:
    """Return the configured model; None for `reference`, which needs the dataset first."""
    is_called = not (
        isinstance(config.model, str) and (config.model == "reference" or config.model.startswith("folder/"))
    )
    if preset and not is_called:
        raise UserError(f"{config.model} is not called, so the preset {preset} sets nothing")
    if config.model == "reference":
        return None
    return resolve_model(
        config.model,
        workspace.blobs,
        config.model_options,
        workspace.settings,
        str(config.data),
        benchmark.preparation.outputs,
        preset,
    )


class ModelUnderTest(Struct):
    """A model that is called; without one, the dataset's references are the replies."""

    resolved: ResolvedModel | None
    blobs: Blobs

    def endpoints(self, dataset: Dataset) -> tuple[Mapping[str, Any], Mapping[str, Endpoint]]:
        """Return the model as in the manifest, and its endpoints by role."""
        if self.resolved is None:
            self.resolved = ResolvedModel("reference", {"model": ReferenceModel(dataset.digest, self.blobs)})
        return describe_model(self.resolved), self.resolved.endpoints

    def replies(self, plan: RunPlan, models: Mapping[str, Model]) -> LiveReplies:
        """Return the source of replies, given Models by role."""
        assert self.resolved is not None
        return LiveReplies(plan, self.resolved, self.blobs, models)

    def unsupported_reason(self, modality: Any) -> str:
        """Return why the model cannot answer a turn; empty if it can, and for every composition."""
        if self.resolved is None or self.resolved.composition is not None:
            return ""
        return self.resolved.endpoints["model"].gives.unsupported_reason(modality)


class StoredRun(Struct, frozen=True):
    """The replies of a run in the journal are judged: only the judge is called."""

    run: str  # its id, its tag, or the beginning of its id

    def open(self, config: RunConfig, workspace: Workspace) -> RunInputs:
        """Read the stored run. Raises UserError if it is incomplete, or its dataset is gone."""
        with read_only_journal(config.home) as journal:
            stored = load_run(journal, self.run, config.benchmark)
        _check_complete(stored)
        manifest = stored.record.manifest
        benchmark = stored.benchmark
        data = _find_data(config, stored)
        known_options = benchmark.Options.__struct_fields__
        options = {name: value for name, value in manifest.options.items() if name in known_options}
        selection: dict[str, Any] = {"limit": manifest.limit, "where": manifest.where}
        sampling = _choose_sampling(config, stored)
        if sampling is not None:
            selection["sample"] = {"count": sampling.count, "seed": sampling.seed}
        if manifest.crop_rows:
            selection["crop_rows"] = True
        if "model" in manifest.presets:
            selection["presets"] = {"model": manifest.presets["model"]}
        names = find_config_names(workspace.settings, judge=config.judge)
        if "model" in stored.record.names:
            names["model"] = stored.record.names["model"]
        return RunInputs(
            benchmark=benchmark,
            options=_read_options(benchmark, options),
            load=partial(load_dataset, benchmark, data, workspace.blobs, manifest.where, manifest.limit),
            replies=lambda plan, models: StoredReplies(stored.turns),
            model=lambda dataset: (manifest.model, {}),
            locations=(stored.record.benchmark, str(data)),
            strategy=manifest.strategy,
            selection=selection,
            names=names,
            digest=manifest.dataset.digest,
        )


def _choose_sampling(config: RunConfig, run: Run) -> Sampling | None:
    """Return which random subset of a stored run is judged: that of the run itself, unless a smaller one is asked for.

    The samples are those that the model's own run would have had with the same `--sample` and `--seed`: the same ones
    on every call, and for every run of the dataset. Raises UserError for a seed that would draw others."""
    manifest = run.record.manifest
    if config.sample is None:
        if config.seed is not None:
            raise UserError("--seed says which samples --sample draws: give --sample, too")
        return manifest.sample
    if manifest.options.get("sample"):
        raise UserError(f"{run.id} is a sample by its benchmark's own --sample: judge all of it")
    seed = config.seed or 0
    if manifest.sample is not None:
        if config.seed not in (None, manifest.sample.seed):
            raise UserError(f"{run.id} is a random sample itself, with seed {manifest.sample.seed}: leave out --seed")
        seed = manifest.sample.seed
    if run.record.expected is not None and config.sample >= run.record.expected.samples:
        return manifest.sample
    return Sampling(config.sample, seed)


def _check_complete(run: Run) -> None:
    if not run.record.is_complete(len(run.turns)):
        turns = run.record.format_turn_count(len(run.turns), "of its")
        raise UserError(f"{run.id} has {turns}: finish it first, or name another run (`weft runs`)")


def _find_data(config: RunConfig, run: Run) -> Path:
    """Return the path of a stored run's dataset."""
    if not config.data and not run.record.data:
        raise UserError(f"where the dataset of {run.id} was is not in the journal: say where it is with --data")
    data = Path(config.data or run.record.data).absolute()
    if not data.exists():
        raise UserError(f"the dataset of {run.id} is not at {data}: say where it is with --data")
    return data


def _resolve_presets(names: str | tuple[str, ...]) -> dict[str, str]:
    """Return presets by role. Raises UserError for an unknown one, and for two of one role."""
    if isinstance(names, str):
        names = (names,)
    presets: dict[str, str] = {}
    for name in names:
        role = "model"
        if is_judge_preset(name):
            role = "judge"
        if role in presets:
            raise UserError(f"two presets for the {role}: {presets[role]} and {name}")
        find_preset(name)
        presets[role] = name
    return presets


def find_config_names(settings: Mapping[str, Any], **models: Any) -> dict[str, str]:
    """Return the models that are names in weft.toml, by role."""
    configured: Mapping[str, Any] = settings.get("models", {})
    return {role: model for role, model in models.items() if isinstance(model, str) and model in configured}
