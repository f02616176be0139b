"""Classes of transformers: hf/REPOSITORY or hf/FOLDER.

What a class does with images is in a table, because no class declares it: a class that is not in the table is refused.
Classes that draw do not see images when they draw, so images are taken out of such requests, visibly. Images and texts
are sampled with a random generator per call: the other calls of a batch do not change a draw, though bfloat16's last
bits change with the shape of a batch (`dtype=float32` if that matters).
"""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from weft.errors import UserError
from weft.models.converters import boolean, finite_number, fraction, non_negative_number, one_of, positive_int
from weft.models.local.endpoint import LoadEngine, LocalEndpoint
from weft.models.local.weights import Weights, architecture_of, import_extra, library_versions, locate_weights
from weft.models.registry import ModelSpec, provider_info, provider_options
from weft.plugins import load_target
from weft.store.blobs import Blobs
from weft.types import Gives, Takes

TEXT_ONLY = Gives(image=False, interleaved=False, ordered=False, thoughts=True, seed=True, json=False)
TEXT_OR_IMAGE = Gives(interleaved=False, ordered=False, seed=True, json=False)
MAX_SIDE = 4096  # pixels; larger images are shrunk first, because the classes would hold them in memory
BLIND_PAINTER = Takes(own_images="user", drawing="none", max_side=MAX_SIDE)
SEES_IMAGES = Takes(own_images="user", max_side=MAX_SIDE)
READS_TEXT = Takes(images="none")
IMAGE_BATCH = 64
TEXT_BATCH = 32
DEFAULT_MAX_TOKENS = 1024
TEXT_ENGINE = "weft.models.local.run.text_engine:TextEngine"


class Family(Struct, frozen=True):
    """Classes that are used in the same way."""

    engine: str  # the target of the class that runs their batches
    takes: Takes
    gives: Gives
    batch_sizes: Mapping[str, int]  # by modality
    own_options: tuple[str, ...] = ()  # options that other families do not have


JANUS = Family(
    "weft.models.local.run.janus:Janus",
    BLIND_PAINTER,
    TEXT_OR_IMAGE,
    {"text": TEXT_BATCH, "image": IMAGE_BATCH},
    ("guidance",),
)
# Emu3 reads an image differently next to one of another size, so its texts are not batched.
EMU3 = Family(
    "weft.models.local.run.emu3:Emu3",
    BLIND_PAINTER,
    TEXT_OR_IMAGE,
    {"text": 1, "image": 8},
    ("guidance", "width", "height"),
)
VISION = Family(TEXT_ENGINE, SEES_IMAGES, TEXT_ONLY, {"text": TEXT_BATCH})
LANGUAGE = Family(TEXT_ENGINE, READS_TEXT, TEXT_ONLY, {"text": TEXT_BATCH})
FAMILIES: dict[str, Family] = {
    "JanusForConditionalGeneration": JANUS,
    "Emu3ForConditionalGeneration": EMU3,
    **dict.fromkeys(
        (
            "Qwen2VLForConditionalGeneration",
            "Qwen2_5_VLForConditionalGeneration",
            "Qwen3VLForConditionalGeneration",
            "Qwen3VLMoeForConditionalGeneration",
            "InternVLForConditionalGeneration",
        ),
        VISION,
    ),
    **dict.fromkeys(
        ("LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM", "Qwen3MoeForCausalLM"),
        LANGUAGE,
    ),
}
TWINS = {  # repositories in their authors' own layout -> the same weights for transformers
    "deepseek-ai/Janus-Pro-1B": "deepseek-community/Janus-Pro-1B",
    "deepseek-ai/Janus-Pro-7B": "deepseek-community/Janus-Pro-7B",
    "deepseek-ai/Janus-1.3B": "deepseek-community/Janus-1.3B",
    "BAAI/Emu3-Chat": "BAAI/Emu3-Chat-hf",
    "BAAI/Emu3-Gen": "BAAI/Emu3-Gen-hf",
}
LOCAL_OPTIONS: dict[str, Any] = {
    "revision": str,
    "version": str,
    "dtype": str,
    "device": str,
    "seed": int,
    "batch": positive_int,
    "max_side": positive_int,
    "most_images": positive_int,
    "trust_remote_code": boolean,
}
FAMILY_OPTIONS = ("guidance", "width", "height")  # that only some families have


@provider_info(BLIND_PAINTER, replace(TEXT_OR_IMAGE, thoughts=True), extra="local", key="")
@provider_options(
    **LOCAL_OPTIONS,
    temperature=non_negative_number,
    top_p=fraction,
    top_k=positive_int,
    max_tokens=positive_int,
    thinking=boolean,
    guidance=finite_number,
    attention=one_of("sdpa", "eager", "flash_attention_2"),
    width=positive_int,
    height=positive_int,
)
def from_spec(spec: ModelSpec, blobs: Blobs, **options: Any) -> LocalEndpoint:
    weights, name = resolve_weights(spec, "config.json", blobs, options)
    architecture = architecture_of(weights.config)
    trusted = options.pop("trust_remote_code", False)
    family = _find_family(name, architecture, weights, trusted)
    _check_options(name, architecture, family, options)
    device, dtype = resolve_device(options)
    takes = override_takes(family.takes, options)
    seed = options.pop("seed", 0)
    batch_sizes = _override_batch_sizes(family.batch_sizes, options.pop("batch", None))
    settings = options
    if family.gives.text:
        settings = {"max_tokens": DEFAULT_MAX_TOKENS, **options}
    identity = weights_identity("hf", name, architecture, weights, device, dtype, ("torch", "transformers"))
    identity["parameters"] = {"seed": seed, **settings}
    if trusted:
        identity["trust_remote_code"] = True
    make = engine_loader(
        family.engine, weights, blobs, architecture, device=device, dtype=dtype, trusted=trusted, settings=settings
    )
    note = ""
    if weights.repository and spec.model in TWINS:
        note = f"the same weights as {spec.model}, whose layout is its authors' own"
    return LocalEndpoint(
        name,
        blobs,
        make,
        takes=takes,
        gives=family.gives,
        identity=identity,
        seed=seed,
        batch_sizes=batch_sizes,
        note=note,
        request_settings=_request_settings(family),
        licence=weights.licence,
    )


def _request_settings(family: Family) -> tuple[str, ...]:
    """Return what a call may set: sampling, and the limit of a text."""
    if family.gives.text:
        return ("temperature", "top_p", "max_tokens")
    return ("temperature", "top_p")


def _find_family(name: str, architecture: str, weights: Weights, trusted: bool) -> Family:
    """Return the family of a class; an unknown one only if the user trusts its code. Raises UserError."""
    if architecture in FAMILIES:
        return FAMILIES[architecture]
    if not trusted:
        raise UserError(_unknown_class(name, architecture, weights))
    if "ForCausalLM" in architecture:
        return LANGUAGE
    return VISION


def _check_options(name: str, architecture: str, family: Family, options: Mapping[str, Any]) -> None:
    """Raise UserError for options that the family cannot use."""
    for option in FAMILY_OPTIONS:
        if option in options and option not in family.own_options:
            raise UserError(f"{name}: {architecture} has no use for {option}={options[option]}")
    if ("top_p" in options or "top_k" in options) and not options.get("temperature"):
        raise UserError(f"{name}: top_p and top_k are for sampling: give a temperature as well")
    if options.get("attention") == "flash_attention_2" and "image" in family.batch_sizes:
        raise UserError(f"{name}: {architecture} draws with attention=sdpa or eager")
    check_size_options(name, options)


def check_size_options(name: str, options: Mapping[str, Any]) -> None:
    if ("width" in options) != ("height" in options):
        raise UserError(f"{name}: give both width and height, or none")


def _override_batch_sizes(batch_sizes: Mapping[str, int], batch: int | None) -> dict[str, int]:
    """Return the batch sizes with the user's own, except where calls cannot be batched."""
    overridden = dict(batch_sizes)
    for modality, size in batch_sizes.items():
        if batch and size > 1:
            overridden[modality] = batch
    return overridden


def resolve_device(options: dict[str, Any]) -> tuple[str, str]:
    """Take device and dtype out of the options, and return those that are used."""
    module = import_extra("weft.models.local.run.device")
    return module.resolve_device(options.pop("device", ""), options.pop("dtype", ""))


def weights_identity(
    provider: str,
    name: str,
    class_name: str,
    weights: Weights,
    device: str,
    dtype: str,
    libraries: tuple[str, ...],
) -> dict[str, Any]:
    """Return what identifies local weights in cache keys, and what runs them."""
    if find_spec("torchvision"):  # prepares images
        libraries = (*libraries, "torchvision")
    return {
        "provider": provider,
        "model": weights.repository or name.rpartition("/")[2],
        "class": class_name,
        **weights.identity,
        "dtype": dtype,
        "device": device.partition(":")[0],
        "versions": library_versions(*libraries),
    }


def engine_loader(engine: str, *arguments: Any, **named: Any) -> LoadEngine:
    """Return a function that imports and creates an engine; nothing of it is imported before."""
    return lambda tell: load_target(engine)(*arguments, tell=tell, **named)


def resolve_weights(spec: ModelSpec, file: str, blobs: Blobs, options: dict[str, Any]) -> tuple[Weights, str]:
    """Return the weights that a user named, and the model's name: a folder is named by the end of its path."""
    if spec.url or not spec.model:
        raise UserError(f"{spec.text}: write {spec.provider}/REPOSITORY or {spec.provider}/FOLDER")
    libraries = ["torch", "transformers"]
    if spec.provider == "diffusers":
        libraries.append("diffusers")
    for library in libraries:
        if find_spec(library) is None:
            import_extra(library)  # raises UserError
    source = spec.model
    if not Path(source).expanduser().is_dir():
        source = TWINS.get(source, source)
    revision = options.pop("revision", "")
    version = options.pop("version", "")
    weights = locate_weights(source, file, blobs, revision=revision, version=version)
    if weights.repository:
        return weights, f"{spec.provider}/{weights.repository}"
    folder_parts = weights.folder.parts[-2:] if weights.folder else ()
    return weights, "/".join([spec.provider, *folder_parts])


def override_takes(takes: Takes, options: dict[str, Any]) -> Takes:
    """Return what the model takes, with the user's own limits, which are taken out of the options."""
    max_side = options.pop("max_side", takes.max_side)
    max_images = options.pop("most_images", takes.max_images)
    return replace(takes, max_side=max_side, max_images=max_images)


def _unknown_class(name: str, architecture: str, weights: Weights) -> str:
    if weights.config.get("model_type") == "multi_modality":
        return (
            f"{name} is in its authors' own layout, which transformers does not read: "
            "take deepseek-community/Janus-Pro-1B or -7B"
        )
    return (
        f"{name} is of the class {architecture or '(it names none)'}, and weft does not know what that does with "
        f"images. It knows {', '.join(FAMILIES)}. Wrap it as file.py:NAME (docs/how-to/authors-code.md has a worked "
        "example), or "
        "serve it by vLLM and give openai-chat/NAME@URL; if it answers through a chat template, with images among the "
        "text, and you trust the code that comes with it: --model-opt trust_remote_code=true"
    )
