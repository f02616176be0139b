"""Pipelines of diffusers: diffusers/REPOSITORY or diffusers/FOLDER.

A list of images means references to one of these classes, a batch to another, and is ignored by a third; some silently
skip guidance without a negative prompt. So what a class does is in a table, and a class that is not in the table is
refused. Pipelines that make images from text can run several requests at once (`batch=N`); those that edit cannot.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from weft.errors import UserError
from weft.models.converters import finite_number, json_object, one_of, positive_int
from weft.models.local.endpoint import LocalEndpoint
from weft.models.local.hf import (
    LOCAL_OPTIONS,
    MAX_SIDE,
    check_size_options,
    engine_loader,
    override_takes,
    resolve_device,
    resolve_weights,
    weights_identity,
)
from weft.models.registry import ModelSpec, provider_info, provider_options
from weft.store.blobs import Blobs
from weft.types import Gives, Takes

IMAGE_ONLY = Gives(text=False, interleaved=False, ordered=False, seed=True, json=False, sizes="pixels")
PIPELINE_OPTIONS = {name: convert for name, convert in LOCAL_OPTIONS.items() if name != "trust_remote_code"}


class PipelineTraits(Struct, frozen=True):
    """What a pipeline class does with its input."""

    max_images: int = 0  # how many it takes
    min_images: int = 0  # how many it needs
    image_argument: str = "image"
    single_image: bool = False  # whether a list of images would be taken for a batch
    guidance_argument: str = "guidance_scale"
    default_negative_prompt: str | None = None  # without one, guidance is skipped
    uses_negative_prompt: bool = True
    tokenizer: str = "tokenizer"  # the one that reads the prompt; "" if nothing is cut
    max_tokens: int = 77  # of the prompt; 0 if nothing is cut
    needs_aspect_ratio: bool = False  # whether the output would not have the shape of the edited image by itself
    has_size: bool = True  # whether the size of the output can be chosen
    needs_image_tags: bool = False  # whether the prompt must say where images stand


QWEN = PipelineTraits(guidance_argument="true_cfg_scale", default_negative_prompt=" ", max_tokens=512)
QWEN_EDIT = replace(QWEN, tokenizer="", max_tokens=0)
FLUX = PipelineTraits(tokenizer="tokenizer_2", max_tokens=512, uses_negative_prompt=False)
PIPELINES: dict[str, PipelineTraits] = {
    "QwenImagePipeline": QWEN,
    "QwenImageEditPipeline": replace(QWEN_EDIT, max_images=1, min_images=1, single_image=True),
    "QwenImageEditPlusPipeline": replace(QWEN_EDIT, max_images=3, min_images=1),
    "FluxPipeline": FLUX,
    "FluxKontextPipeline": replace(FLUX, max_images=1, single_image=True, needs_aspect_ratio=True),
    "OmniGenPipeline": PipelineTraits(
        max_images=3,
        image_argument="input_images",
        needs_image_tags=True,
        tokenizer="",
        max_tokens=0,
        uses_negative_prompt=False,
    ),
    "StableDiffusionPipeline": PipelineTraits(),
    "StableDiffusionXLPipeline": PipelineTraits(),
    "StableDiffusion3Pipeline": PipelineTraits(tokenizer="tokenizer_3", max_tokens=256),
    "StableDiffusionInstructPix2PixPipeline": PipelineTraits(
        max_images=1, min_images=1, single_image=True, has_size=False
    ),
}


@provider_info(Takes(images="list", own_images="user"), IMAGE_ONLY, extra="local", key="")
@provider_options(
    **PIPELINE_OPTIONS,
    steps=positive_int,
    guidance=finite_number,
    negative_prompt=str,
    width=positive_int,
    height=positive_int,
    offload=one_of("none", "model", "sequential"),
    extra=json_object,
)
def from_spec(spec: ModelSpec, blobs: Blobs, **options: Any) -> LocalEndpoint:
    weights, name = resolve_weights(spec, "model_index.json", blobs, options)
    class_name = weights.config.get("_class_name")
    if not isinstance(class_name, str) or class_name not in PIPELINES:
        raise UserError(_unknown_class(name, class_name))
    traits = PIPELINES[class_name]
    device, dtype = resolve_device(options)
    batch = options.pop("batch", 1)
    seed = options.pop("seed", 0)
    _check_options(name, class_name, traits, options, batch)
    takes = Takes("none", "user")
    if traits.max_images:
        takes = Takes("list", "user", MAX_SIDE, traits.max_images)
    takes = override_takes(takes, options)
    if takes.max_images and traits.single_image and takes.max_images > 1:
        raise UserError(f"{name}: {class_name} takes one image; more would be taken for a batch of requests")
    offload = options.pop("offload", "none")
    libraries = ("torch", "transformers", "diffusers")
    identity = weights_identity("diffusers", name, class_name, weights, device, dtype, libraries)
    identity["parameters"] = {"seed": seed, **options}
    make = engine_loader(
        "weft.models.local.run.pipeline_engine:PipelineEngine",
        weights,
        blobs,
        class_name,
        traits,
        device=device,
        dtype=dtype,
        offload=offload,
        settings=options,
    )
    needs = f"{class_name} edits images, and this request has none" if traits.min_images else ""
    return LocalEndpoint(
        name,
        blobs,
        make,
        takes=takes,
        gives=IMAGE_ONLY,
        identity=identity,
        seed=seed,
        batch_sizes={"image": batch},
        needs=needs,
        licence=weights.licence,
    )


def _check_options(name: str, class_name: str, traits: PipelineTraits, options: Mapping[str, Any], batch: int) -> None:
    """Raise UserError for options that the class cannot use."""
    if batch > 1 and traits.max_images:
        raise UserError(
            f"{name}: {class_name} edits one image at a time: batch={batch} is for classes that draw from text alone"
        )
    check_size_options(name, options)
    if "width" in options and not traits.has_size:
        raise UserError(f"{name}: {class_name} makes images of the size of what it edits")
    extra = options.get("extra", {})
    if "negative_prompt" in options and not traits.uses_negative_prompt and "true_cfg_scale" not in extra:
        raise UserError(f"{name}: a negative prompt changes nothing in {class_name}")
    for option in ("max_side", "most_images"):
        if option in options and not traits.max_images:
            raise UserError(f"{name}: {class_name} takes no images: {option} is of no use")


def _unknown_class(name: str, class_name: Any) -> str:
    description = "(it names none)"
    if isinstance(class_name, str):
        description = class_name
    elif class_name:
        description = "with code of its own"
    return (
        f"{name} is a pipeline {description}, and weft does not know what that does with images. "
        f"It knows {', '.join(PIPELINES)}. Wrap it as file.py:NAME: docs/how-to/authors-code.md has a worked example"
    )
